"""Claims out of dates: which are believed, and what is said of those that are not."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from freshet.crawler.signals.lastmod import Span, Unbelievable, believed, span_of
from freshet.storage.entries import Claim

log = logging.getLogger(__name__)

#: Sources of which it is remembered that they were complained of.
_REMEMBERED: Final = 10_000
_SHOWN_CHARACTERS: Final = 40


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a source claims; ``rejected`` dates are not believed, ``why`` of the first of them."""

    claims: tuple[Claim, ...] = ()
    rejected: int = 0
    why: str | None = None


def claimed(
    dated: Iterable[tuple[str, str | None]], heard_at: float, skew_s: float = 0.0
) -> Claimed:
    """The claims of pairs of a canonical URL and a date as written; None claims nothing.

    They were heard at ``heard_at`` of a host whose clock is ``skew_s`` ahead of ours.
    """
    claims: list[Claim] = []
    rejected, why = 0, None
    for url, text in dated:
        if text is None:
            continue
        found = believed(span_of(text), heard_at, skew_s)
        if isinstance(found, Span):
            claims.append(Claim(url, found.since, found.until))
        else:
            rejected += 1
            why = why or _why(text, url, found)
    return Claimed(tuple(claims), rejected, why)


def _why(text: str, url: str, reason: Unbelievable) -> str:
    # What a stranger wrote, so that no sign of it can end the line.
    return f"{text[:_SHOWN_CHARACTERS]!r} of {url}: {reason}"


class Complaints:
    """Says once of each source why something of it was rejected."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()

    def tell(self, source: str, found: Claimed) -> None:
        """Log what is wrong with a source, unless that was said before."""
        if found.rejected and self.is_new(source):
            count = "a date is" if found.rejected == 1 else f"{found.rejected:,} dates are"
            log.warning("%s: %s not believed, such as %s", source, count, found.why)

    def is_new(self, what: str) -> bool:
        """Whether nothing was said of it yet; from now on it was."""
        if what in self._known:
            return False
        self._known[what] = None
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return True
