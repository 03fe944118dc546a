"""What :mod:`crawler.reduce.features` tells of pieces, in Python: slow, and without a doubt."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import chain
from math import log, log1p
from operator import add
from typing import Final

from freshet.crawler.reduce.boilerplate import is_frame_name
from freshet.crawler.reduce.content import TAGS, has_comments, is_shown, names_in
from freshet.crawler.reduce.pieces import HEADINGS, KINDS, Piece
from freshet.crawler.reduce.tree import LINK, PLACES, Tree

_TAG_PLACES: Final = tuple([LINK if tag == "a" else PLACES[tag] for tag in TAGS])
_FRAME: Final = PLACES["frame"]
_DECIMAL: Final = re.compile(r"\d")
#: A paragraph has this number of characters, few of them in links.
_LONG: Final = 80
_SHARES: Final = (0.25, 0.5, 0.8)
_ABOVE: Final = 4
#: What is told of pieces before the first and behind the last.
_NOTHINGS: Final = ((-1.0, -1.0, 0.0),) * 2
#: Log odds of a word that speaks against content.
_BAD: Final = -1.5
_SENTENCE_ENDS: Final = tuple('.!?…。”":')
_WIDE_COMMA: Final = "\uff0c"


@dataclass(slots=True)
class _Place:
    """The traits of an element and of those above it: the nearest is last in ``above``.

    ``said`` is what the names of all of them say; ``near`` that of the two nearest with attributes.
    ``climbed`` is how far above it shares of the page's prose are held.
    """

    above: tuple[int, ...] = ()
    bits: int = 0
    hidden: bool = False
    frame_names: int = 0
    comments: bool = False
    article: int = 0
    said: tuple[float, ...] = ()
    near: tuple[tuple[float, ...], ...] = ((), ())
    climbed: tuple[int, ...] = (0,) * len(_SHARES)

    def numbers(self) -> tuple[float, ...]:
        near, said = self.near[0] + self.near[1], self.said
        return (
            *_in_tags(self.bits),
            *(self.hidden, self.frame_names, self.bits & _FRAME > 0, len(self.above)),
            *(self.comments, self.article, min(said, default=0.0), max(said, default=0.0)),
            *(_sum(said), len([value for value in said if value < _BAD])),
            *(min(near, default=0.0), _sum(near)),
        )


def _sum(values: Sequence[float]) -> float:
    """Return a sum that is rounded at each step: from Python 3.12 on sum() is more exact."""
    return reduce(add, values, 0.0)


@lru_cache(maxsize=4096)
def _in_tags(bits: int) -> tuple[bool, ...]:
    return tuple([bits & place > 0 for place in _TAG_PLACES])


class _Places:
    """The places of a page's elements, each worked out once."""

    def __init__(self, tree: Tree, words: Mapping[str, float]) -> None:
        self._tree = tree
        self._words = words
        self._known: dict[int, _Place] = {}
        self._top = tree.body
        self._articles = 0
        self.prose = max(1, _prose(tree, tree.body))
        self._shares = [share * self.prose for share in _SHARES]

    def of(self, node: int) -> _Place:
        """Return the place in an element of the body."""
        if node in self._known:
            return self._known[node]
        up = _Place() if node == self._top else self.of(self._tree.parent[node])
        place = self._known[node] = self._below(up, node)
        return place

    def _below(self, up: _Place, node: int) -> _Place:
        values, is_article = self._tree.attributes(node), self._tree.tag(node) == "article"
        names = names_in(values)
        said = tuple([self._words[name] for name in sorted(names) if name in self._words])
        self._articles += is_article
        held, above = _prose(self._tree, node), zip(self._shares, up.climbed, strict=True)
        return _Place(
            above=(*up.above, node),
            bits=self._tree.place[node],
            hidden=up.hidden or not is_shown(values),
            frame_names=up.frame_names + is_frame_name(values.get("id"), values.get("class")),
            comments=up.comments or has_comments(names),
            article=self._articles if is_article else up.article,
            said=up.said + said,
            near=(said, up.near[0]) if values else up.near,
            climbed=tuple([0 if held >= share else steps + 1 for share, steps in above]),
        )


def _prose(tree: Tree, node: int) -> int:
    """Return the number of characters in a node that are in no link."""
    return int(tree.chars[node] - tree.linked[node])


def _own(tree: Tree, piece: Piece, text: str, linked: float) -> tuple[float, ...]:
    words, start = text.split(), text[:400]
    few = words[:60]
    commas = text.count(",") + text.count(". ") + text.count(_WIDE_COMMA)
    capitals = len([word for word in few if word[0].isupper()])
    return (
        *(KINDS.index(piece.kind), log1p(len(text)), log1p(len(words)), linked),
        *(text.endswith(_SENTENCE_ENDS), commas / max(1, len(words))),
        *(len(_DECIMAL.findall(start)) / max(1, len(start)), capitals / max(1, len(few))),
        len(tree.elements(piece.holder)) if piece.kind == "list" else 0,
    )


def described(
    tree: Tree,
    pieces: Sequence[Piece],
    texts: Sequence[str],
    title: str,
    words: Mapping[str, float],
) -> Iterator[list[float]]:
    """Yield the row of each piece, in the order of :data:`COLUMNS`."""
    places = _Places(tree, words)
    found = [places.of(piece.holder) for piece in pieces]
    linked = [_linked_share(tree, *each) for each in zip(pieces, texts, found, strict=True)]
    body, prose = found[0].above[0], places.prose
    long, best = _weights(tree, pieces, texts, linked, found)
    titled = title_number([piece.kind for piece in pieces], texts, title.lower())
    page = [long[body], log(prose), 1 - prose / max(1, tree.chars[body]), log(len(pieces))]
    page.append(_prose(tree, best) / prose if best is not None else 0.0)
    near: list[tuple[float, float, float]] = [
        (log1p(len(text)), share, piece.kind in HEADINGS)
        for piece, text, share in zip(pieces, texts, linked, strict=True)
    ]
    # The piece itself is at i + 2.
    around = [*_NOTHINGS, *near, *_NOTHINGS]
    holding = dict[int, tuple[float, ...]]()
    repeated, before, all_chars = Counter(texts), 0, max(1, sum(map(len, texts)))
    for i, (piece, text, place) in enumerate(zip(pieces, texts, found, strict=True)):
        after = 1 - (before + len(text)) / all_chars
        for node in place.above[-_ABOVE:]:
            if node not in holding:
                held, chars = _prose(tree, node), max(1, tree.chars[node])
                holding[node] = (1 - held / chars, held / prose, min(30, long[node]))
        nearest = place.above[: -_ABOVE - 1 : -1]
        yield [
            *_own(tree, piece, text, linked[i]),
            repeated[text],
            *place.numbers(),
            *(i / len(pieces), before / all_chars, after),
            max(-30, min(60, i - titled)) if titled >= 0 else -40,
            best in place.above,
            *place.climbed,
            *chain.from_iterable([holding[node] for node in nearest]),
            *holding[nearest[-1]] * (_ABOVE - len(nearest)),
            *chain(around[i], around[i + 1], around[i + 3], around[i + 4]),
            *page,
        ]
        before += len(text)


def _linked_share(tree: Tree, piece: Piece, text: str, place: _Place) -> float:
    if piece.link is not None or place.bits & LINK:
        return 1.0
    linked = sum(
        tree.chars[node] if tree.tag(node) == "a" else tree.linked[node] for node in piece.nodes
    )
    return min(1.0, linked / max(1, len(text)))


def _weights(
    tree: Tree,
    pieces: Sequence[Piece],
    texts: Sequence[str],
    linked: Sequence[float],
    places: Sequence[_Place],
) -> tuple[Counter[int], int | None]:
    """Return the number of paragraphs in each element, and the one that holds the most prose.

    The latter as Readability finds it: paragraphs count for the elements above them, less for those
    far above, by their length and commas.
    """
    long = Counter[int]()
    weights = dict[int, float]()
    for piece, text, share, place in zip(pieces, texts, linked, places, strict=True):
        above = place.above
        if len(text) >= _LONG and share < 0.3:
            long.update(above)
        if piece.kind in {"p", "pre", "blockquote", "list"} and share < 0.5 and len(text) > 25:
            weight = 1 + text.count(",") + text.count(_WIDE_COMMA) + min(len(text) / 100, 3)
            for j, node in enumerate(above[:-6:-1]):
                weights[node] = weights.get(node, 0.0) + weight / max(1, 3 * j - (j == 1))
    return long, max(
        weights,
        key=lambda node: weights[node] * (1 - tree.linked[node] / max(1, tree.chars[node])),
        default=None,
    )


def title_number(kinds: Sequence[str], texts: Sequence[str], title: str) -> int:
    """Return the number of the heading that repeats the document's title, else the first h1."""
    main = (i for i, kind in enumerate(kinds) if kind in {"h1", "h2"})
    same = (i for i in main if len(texts[i]) > 5 and texts[i].lower() in title)
    return next(same, kinds.index("h1") if "h1" in kinds else -1)
