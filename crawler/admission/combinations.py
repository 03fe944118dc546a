"""Combinations: URLs made of values that recur, as the filters of a shop make them.

``/shop/red/large`` and ``/shop?colour=red&size=large`` are made of values each of which stands in
other URLs, too; their number is the product of the values, and has no end where any value can be
added to any URL. ``/product?id=17`` and ``/shop/red/shirt-17`` bring something that no other URL
has. So a value *recurs* that was seen beside two different rests: of a pair in a query the rest is
the URL without it, of a segment of a path it is what stands before it.

That says nothing of what a page is worth: categories in two languages are combinations as well.
What they show decides (:mod:`crawler.admission.copies`); here it is said which URLs are judged
together.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

#: Values that are held, those seen last, at some 150 bytes each.
_VALUES: Final = 65_536
#: Where a rest has its hash, a value that was seen beside two has this.
_RECURS: Final = 0
#: Pairs in a query up to which their names stand in the pattern.
_NAMED: Final = 2

#: A value, and what it stood beside, as hashes that are not kept beyond the run.
_Value = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Parts:
    """What a URL is made of: segments of the path and pairs of the query, in order."""

    segments: tuple[str, ...]
    values: tuple[_Value, ...]
    pairs: tuple[_Value, ...]


class Combinations:
    """Which of the URLs seen in one run are combinations; memory is bounded.

    ``least`` values have to recur in one URL, 0: none is a combination. What is forgotten makes a
    value look new, hence a combination like an ordinary URL.
    """

    def __init__(self, least: int) -> None:
        self._least = least
        self._rests: OrderedDict[int, int] = OrderedDict()

    def note(self, url: str) -> Parts | None:
        """Take a canonical URL in; its parts, None where there are too few of them."""
        site, slash, rest = url.partition("://")[2].partition("/")
        path, _, query = (slash + rest).partition("?")
        segments = tuple(each for each in path.split("/") if each)
        pairs = query.split("&") if query else []
        if not self._least or (not segments and not pairs):
            return None
        parts = Parts(segments, _in_path(site, segments), _in_query(site, path, pairs))
        for value, beside in (*parts.values, *parts.pairs):
            self._learn(value, beside)
        return parts if len(segments) + len(pairs) >= self._least else None

    def _learn(self, value: int, beside: int) -> None:
        before = self._rests.get(value)
        if before is None:
            self._rests[value] = beside
            if len(self._rests) > _VALUES:
                self._rests.popitem(last=False)
            return
        self._rests.move_to_end(value)
        if before not in {_RECURS, beside}:
            self._rests[value] = _RECURS

    def _recurs(self, value: _Value) -> bool:
        return self._rests.get(value[0]) == _RECURS

    def _run(self, parts: Parts) -> int:
        """How many segments recur, from the last one on."""
        count = 0
        for value in reversed(parts.values):
            if not self._recurs(value):
                break
            count += 1
        return count

    def is_combined(self, parts: Parts | None) -> bool:
        """Whether enough values of a URL recur, and all those of its query."""
        if parts is None or not all(self._recurs(pair) for pair in parts.pairs):
            return False
        return self._run(parts) + len(parts.pairs) >= self._least

    def pattern(self, parts: Parts | None) -> str | None:
        """The pattern of a combination: the path without what recurs; None for other URLs.

        None also where a query of few parameters is all that recurs: their names tell more.
        """
        if parts is None or not self.is_combined(parts):
            return None
        run = self._run(parts)
        if not run and len(parts.pairs) <= _NAMED:
            return None
        kept = parts.segments[: len(parts.segments) - run]
        path = "".join(f"/{_plain(each)}" for each in kept)
        return f"{path}{'/…' if run else ''}{'?…' if parts.pairs else ''} (recurring values)"


def _plain(segment: str) -> str:
    return "#" if any(c.isdigit() for c in segment) else segment


def _in_path(site: str, segments: Sequence[str]) -> tuple[_Value, ...]:
    return tuple(
        (hash((site, each)), hash((segments[:n], site)) or 1) for n, each in enumerate(segments)
    )


def _in_query(site: str, path: str, pairs: Sequence[str]) -> tuple[_Value, ...]:
    return tuple(
        (hash((site, "?", pair)), hash((path, (*pairs[:n], *pairs[n + 1 :]))) or 1)
        for n, pair in enumerate(pairs)
    )
