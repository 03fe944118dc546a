"""The choice of the pieces of a page that are its main content.

Each piece is described by a row of numbers (:data:`COLUMNS`): its own text, the elements in which
it stands, their names, its neighbours and the page. Boosted trees, fitted on pages with a known
main text (``scripts/fit_content``, ADR 0008), give its probability of being content. Chosen are
the pieces with the greatest expected F score of words: on a page without doubts those above one
half, on a page where nothing is sure also less probable ones.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain, groupby, islice
from math import log, log1p
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.compiled.numeric import leaf_sums
from freshet.crawler.reduce.boilerplate import is_control, is_frame_name, is_hidden
from freshet.crawler.reduce.markdown import HEADINGS, Piece, in_control
from freshet.crawler.reduce.tree import CONTROL, LINK, PLACES, TRAITS, UNSEEN, Tree

_TAGS: Final = (
    "main article nav aside header footer form table li section p a figcaption dd".split()
)
_TAG_PLACES: Final = tuple([LINK if tag == "a" else PLACES[tag] for tag in _TAGS])
_FRAME: Final = PLACES["frame"]
_BLOCK: Final = TRAITS["block"]
_APART: Final = TRAITS["apart"]
_KINDS: Final = {
    kind: float(i) for i, kind in enumerate("p blockquote list table pre h6 h5 h4 h3 h2 h1".split())
}
_NAMING: Final = ("id", "class", "role", "itemprop", "data-testid")
_WORD: Final = re.compile(r"[A-Z]*[^\W\d_A-Z]+|[A-Z]+")
_DECIMAL: Final = re.compile(r"\d")
_COMMENTS: Final = frozenset({"comment", "comments", "commentlist", "disqus", "reply", "replies"})
#: A paragraph has this number of characters, few of them in links.
_LONG: Final = 80
#: Recall counts more than precision: who reads a menu too many skips it, who misses a price or a
#: list of options has lost what the page is about.
_BETA: Final = 1.5
_SHARES: Final = (0.25, 0.5, 0.8)
_ABOVE: Final = 4
_AROUND: Final = (-2, -1, 1, 2)
#: What is told of pieces before the first and behind the last.
_NOTHINGS: Final = ((-1.0, -1.0, 0.0),) * 2
#: Log odds of a word that speaks against content.
_BAD: Final = -1.5
#: Controls in a row that are content, and times that a page has the same control where it is none.
_MOST_CONTROLS: Final = 5
_REPEATED: Final = 3
_SENTENCE_ENDS: Final = tuple('.!?…。”":')
_WIDE_COMMA: Final = "\uff0c"
#: Pieces that are judged at a time: bounds the memory for a page of a million.
_BATCH: Final = 1_000

COLUMNS: Final = (
    "kind chars words linked_share ends_sentence commas digits capitals items repeated".split()
    + [f"in_{tag}" for tag in _TAGS]
    + "hidden frame_names frame_role depth comments article".split()
    + "names_min names_max names_sum names_bad near_min near_sum".split()
    + "place before after from_title in_best".split()
    + [f"climb_{share}" for share in _SHARES]
    + [f"above{i}_{what}" for i in range(_ABOVE) for what in ("linked", "share", "long")]
    + [f"near{i}_{what}" for i in _AROUND for what in ("chars", "linked", "heading")]
    + "page_long page_chars page_linked page_pieces best_share".split()
)


@dataclass(frozen=True, slots=True)
class ContentModel:
    """Boosted trees in columns, and what words of names say.

    A node sends a row to ``yes`` where the value of its column is at most ``limit``, else to
    ``no``; a leaf leads to itself. The first node of each tree is in ``roots``.
    """

    words: Mapping[str, float]
    column: NDArray[np.int64]
    limit: NDArray[np.float64]
    yes: NDArray[np.int64]
    no: NDArray[np.int64]
    value: NDArray[np.float64]
    roots: NDArray[np.int64]
    levels: int

    def probabilities(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of each row."""
        sums = leaf_sums(
            rows,
            self.column,
            self.limit,
            yes=self.yes,
            no=self.no,
            value=self.value,
            roots=self.roots,
            levels=self.levels,
        )
        return 1 / (1 + np.exp(-sums))


@cache
def _model() -> ContentModel:
    path = files("freshet.crawler.reduce") / "content_model.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    columns = {name: np.array(values) for name, values in said["trees"].items()}
    return ContentModel(words=said["words"], levels=said["levels"], **columns)


def chosen(tree: Tree, pieces: Sequence[Piece], title: str) -> list[Piece]:
    """Return the pieces of the main content; ``title`` is that of the page.

    The model judges by words. Controls are not shown to it, and images have none: what stands
    beside them decides.
    """
    controls = [in_control(tree, piece) for piece in pieces]
    plain = [piece for piece, acts in zip(pieces, controls, strict=True) if not acts]
    kept = {id(piece) for piece in _judged(tree, plain, title)}
    kept |= {id(piece) for piece in _kept_beside(tree, pieces, controls, kept)}
    return [piece for piece in pieces if id(piece) in kept]


def _judged(tree: Tree, pieces: Sequence[Piece], title: str) -> list[Piece]:
    """Return the pieces that are probably content; none of them is a control."""
    if not pieces:
        return []
    model, texts = _model(), [text_of(tree, piece) for piece in pieces]
    rows = described(tree, pieces, texts, title, model.words)
    batches = iter(lambda: list(islice(rows, _BATCH)), [])
    probability = np.concatenate([model.probabilities(np.array(batch)) for batch in batches])
    sizes = np.array([len(text.split()) for text in texts])
    order = np.argsort(-probability, kind="stable")
    found = np.cumsum((probability * sizes)[order])
    expected = found / (np.cumsum(sizes[order]) + _BETA**2 * found[-1] + 1e-9)
    kept = set(order[: int(expected.argmax()) + 1].tolist())
    # References leave it out, readers want it: the page's own headline.
    heads = [i for i, piece in enumerate(pieces) if piece.kind == "h1" and texts[i]]
    own = [i for i in heads if len(heads) == 1 or texts[i].casefold() in title.casefold()]
    kept.update(own[:1])
    return [piece for i, piece in enumerate(pieces) if i in kept]


def _kept_beside(
    tree: Tree, pieces: Sequence[Piece], controls: Sequence[bool], kept: Set[int]
) -> Iterator[Piece]:
    """Yield the controls and images that stand inside of content.

    Both neighbours are kept, or one in the same block. A call for an action is no content, nor is
    what stands at each entry of a list, nor one of many controls in a row.
    """
    texts = [
        text_of(tree, it, UNSEEN) if acts else "" for it, acts in zip(pieces, controls, strict=True)
    ]
    times = Counter(texts)
    depends = [
        acts or (piece.kind == "p" and not any(tree.chars[node] for node in piece.nodes))
        for piece, acts in zip(pieces, controls, strict=True)
    ]
    for is_row, run in groupby(range(len(pieces)), depends.__getitem__):
        row = list(run)
        around = [pieces[i] for i in (row[0] - 1, row[-1] + 1) if 0 <= i < len(pieces)]
        near = [piece for piece in around if id(piece) in kept]
        are_many = sum(controls[i] for i in row) > _MOST_CONTROLS
        for i in row if is_row else ():
            block = tree.parent[pieces[i].holder]
            is_inside = len(near) == 2 or any(
                block <= piece.nodes[0] < tree.end[block] for piece in near
            )
            is_content = not controls[i] or not (
                are_many or not texts[i] or times[texts[i]] >= _REPEATED or is_control(texts[i])
            )
            if is_inside and is_content:
                yield pieces[i]


def text_of(tree: Tree, piece: Piece, without: int = UNSEEN | CONTROL) -> str:
    """Return the text of a piece on one line, without what stands in these places.

    A heading is read with its controls: it may be a button that opens what follows.
    """
    if piece.kind in HEADINGS:
        without &= ~CONTROL
    names, place, trait, holds = tree.name, tree.place, tree.trait, tree.holds
    parts: list[str] = []
    # Where elements end whose words do not join those beside them.
    ends = set[int]()
    for top in piece.nodes:
        node, stop = top, tree.end[top]
        while node < stop:
            if node in ends:
                parts.append(" ")
            if place[node] & without:
                node = tree.end[node]
                continue
            if not names[node]:
                parts.append(tree.text_of(node))
            elif trait[node] & _APART:
                parts.append(" ")
                ends.add(tree.end[node])
            elif (trait[node] | holds[node]) & _BLOCK or tree.tag(node) == "br":
                parts.append(" ")
            node += 1
    return " ".join("".join(parts).split())


# -- description -------------------------------------------------------------


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
            *(sum(said), len([value for value in said if value < _BAD])),
            *(min(near, default=0.0), sum(near)),
        )


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
        style = values.get("style", "").replace(" ", "").lower()
        self._articles += is_article
        held, above = _prose(self._tree, node), zip(self._shares, up.climbed, strict=True)
        return _Place(
            above=(*up.above, node),
            bits=self._tree.place[node],
            hidden=up.hidden or is_hidden(values) or "display:none" in style,
            frame_names=up.frame_names + is_frame_name(values.get("id"), values.get("class")),
            comments=up.comments or not _COMMENTS.isdisjoint(names),
            article=self._articles if is_article else up.article,
            said=up.said + said,
            near=(said, up.near[0]) if values else up.near,
            climbed=tuple([0 if held >= share else steps + 1 for share, steps in above]),
        )


def _prose(tree: Tree, node: int) -> int:
    """Return the number of characters in a node that are in no link."""
    return int(tree.chars[node] - tree.linked[node])


@lru_cache(maxsize=4096)
def _words(name: str) -> frozenset[str]:
    return frozenset(found[0].lower() for found in _WORD.finditer(name[:300]))


def names_in(values: Mapping[str, str]) -> frozenset[str]:
    """Return the words of the names that the attributes of an element have."""
    return frozenset().union(*(_words(values[n]) for n in _NAMING if n in values))


def _own(tree: Tree, piece: Piece, text: str, linked: float) -> tuple[float, ...]:
    words, start = text.split(), text[:400]
    few = words[:60]
    commas = text.count(",") + text.count(". ") + text.count(_WIDE_COMMA)
    capitals = len([word for word in few if word[0].isupper()])
    return (
        *(_KINDS[piece.kind], log1p(len(text)), log1p(len(words)), linked),
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
    titled = _title_number(pieces, texts, title.lower())
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


def _title_number(pieces: Sequence[Piece], texts: Sequence[str], title: str) -> int:
    """Return the number of the heading that repeats the document's title, else the first h1."""
    kinds = [piece.kind for piece in pieces]
    main = (i for i, kind in enumerate(kinds) if kind in {"h1", "h2"})
    same = (i for i in main if len(texts[i]) > 5 and texts[i].lower() in title)
    return next(same, kinds.index("h1") if "h1" in kinds else -1)
