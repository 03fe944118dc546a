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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice
from math import log, log1p
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.crawler.reduce.boilerplate import is_frame_name, is_frame_role, is_hidden
from freshet.crawler.reduce.markdown import HEADINGS, Element, Node, Piece

_TAGS: Final = (
    "main article nav aside header footer form table li section p a figcaption dd".split()
)
_TAG_BITS: Final = {tag: 1 << i for i, tag in enumerate(_TAGS)}
_KINDS: Final = {
    kind: float(i) for i, kind in enumerate("p blockquote list table pre h6 h5 h4 h3 h2 h1".split())
}
_NAMING: Final = ("id", "class", "role", "itemprop", "data-testid")
_WORD: Final = re.compile(r"[A-Z]*[^\W\d_A-Z]+|[A-Z]+")
_COMMENTS: Final = frozenset({"comment", "comments", "commentlist", "disqus", "reply", "replies"})
#: A paragraph has this number of characters, few of them in links.
_LONG: Final = 80
#: Recall counts more than precision: who reads a menu too many skips it, who misses a price or a
#: list of options has lost what the page is about.
_BETA: Final = 1.5
_SHARES: Final = (0.25, 0.5, 0.8)
_ABOVE: Final = 4
_AROUND: Final = (-2, -1, 1, 2)
_NOTHING: Final = (-1.0, -1.0, 0.0)
#: Log odds of a word that speaks against content.
_BAD: Final = -1.5
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
        nodes = np.broadcast_to(self.roots, (len(rows), len(self.roots)))
        numbers = np.arange(len(rows))[:, None]
        for _ in range(self.levels):
            low = rows[numbers, self.column[nodes]] <= self.limit[nodes]
            nodes = np.where(low, self.yes[nodes], self.no[nodes])
        sums: NDArray[np.float64] = self.value[nodes].sum(axis=1)
        return 1 / (1 + np.exp(-sums))


@cache
def _model() -> ContentModel:
    path = files("freshet.crawler.reduce") / "content_model.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    columns = {name: np.array(values) for name, values in said["trees"].items()}
    return ContentModel(words=said["words"], levels=said["levels"], **columns)


def chosen(pieces: Sequence[Piece], title: str) -> list[Piece]:
    """Return the pieces of the main content; ``title`` is that of the page."""
    if not pieces:
        return []
    model, texts = _model(), list(map(text_of, pieces))
    rows = described(pieces, texts, title, model.words)
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


def text_of(piece: Piece) -> str:
    """Return the text of a piece on one line."""
    parts: list[str] = []
    _gather(piece.nodes, parts)
    return " ".join("".join(parts).split())


def _gather(nodes: Sequence[Node], parts: list[str]) -> None:
    for node in nodes:
        if isinstance(node, str):
            parts.append(node)
        else:
            if node.is_block or node.tag == "br":
                parts.append(" ")
            _gather(node.children, parts)


# -- description -------------------------------------------------------------


@dataclass(slots=True)
class _Place:
    """The traits of an element and of those above it: the nearest is last in ``above``.

    ``said`` is what the names of all of them say; ``near`` that of the two nearest with attributes.
    """

    above: tuple[Element, ...] = ()
    bits: int = 0
    hidden: bool = False
    frame_names: int = 0
    frame_role: bool = False
    comments: bool = False
    article: int = 0
    said: tuple[float, ...] = ()
    near: tuple[tuple[float, ...], ...] = ((), ())

    def numbers(self) -> Iterator[float]:
        near = self.near[0] + self.near[1]
        yield from (self.bits >> i & 1 for i in range(len(_TAGS)))
        yield from (self.hidden, self.frame_names, self.frame_role, len(self.above))
        yield from (self.comments, self.article, min(self.said, default=0.0))
        yield from (max(self.said, default=0.0), sum(self.said), sum(v < _BAD for v in self.said))
        yield from (min(near, default=0.0), sum(near))


class _Places:
    """The places of a page's elements, each worked out once."""

    def __init__(self, words: Mapping[str, float]) -> None:
        self._words = words
        self._known: dict[Element | None, _Place] = {None: _Place()}
        self._articles = 0

    def of(self, node: Element | None) -> _Place:
        """Return the place in an element."""
        if node is None or node in self._known:
            return self._known[node]
        up, values, names = self.of(node.parent), node.attributes, _names(node)
        said = tuple([self._words[name] for name in sorted(names) if name in self._words])
        style = values.get("style", "").replace(" ", "").lower()
        self._articles += node.tag == "article"
        place = self._known[node] = _Place(
            above=(*up.above, node),
            bits=up.bits | _TAG_BITS.get(node.tag, 0),
            hidden=up.hidden or is_hidden(values) or "display:none" in style,
            frame_names=up.frame_names + is_frame_name(values.get("id"), values.get("class")),
            frame_role=up.frame_role or is_frame_role(values),
            comments=up.comments or not _COMMENTS.isdisjoint(names),
            article=self._articles if node.tag == "article" else up.article,
            said=up.said + said,
            near=(said, up.near[0]) if values else up.near,
        )
        return place


@lru_cache(maxsize=4096)
def _words(name: str) -> frozenset[str]:
    return frozenset(found[0].lower() for found in _WORD.finditer(name[:300]))


def _names(node: Element) -> frozenset[str]:
    values = node.attributes
    return frozenset().union(*(_words(values[n]) for n in _NAMING if n in values))


def _own(piece: Piece, text: str, linked: float) -> Iterator[float]:
    words, start = text.split(), text[:400]
    few = words[:60]
    yield from (_KINDS[piece.kind], log1p(len(text)), log1p(len(words)), linked)
    yield text.endswith(_SENTENCE_ENDS)
    yield (text.count(",") + text.count(". ") + text.count(_WIDE_COMMA)) / max(1, len(words))
    yield sum(map(str.isdecimal, start)) / max(1, len(start))
    yield sum(word[:1].isupper() for word in few) / max(1, len(few))
    yield len(piece.holder.elements) if piece.kind == "list" else 0


def described(
    pieces: Sequence[Piece], texts: Sequence[str], title: str, words: Mapping[str, float]
) -> Iterator[list[float]]:
    """Yield the row of each piece, in the order of :data:`COLUMNS`."""
    places = _Places(words)
    found = [places.of(piece.holder) for piece in pieces]
    linked = list(map(_linked_share, pieces, texts, found))
    body = found[0].above[0]
    prose = max(1, body.chars - body.linked)
    long, best = _weights(pieces, texts, linked, found)
    titled = _title_number(pieces, texts, title.lower())
    page = [long[body], log(prose), 1 - prose / max(1, body.chars), log(len(pieces))]
    page.append((best.chars - best.linked) / prose if best is not None else 0.0)
    around = {
        i: (log1p(len(text)), share, piece.kind in HEADINGS)
        for i, (piece, text, share) in enumerate(zip(pieces, texts, linked, strict=True))
    }
    repeated, before, all_chars = Counter(texts), 0, max(1, sum(map(len, texts)))
    for i, (piece, text, place) in enumerate(zip(pieces, texts, found, strict=True)):
        after = 1 - (before + len(text)) / all_chars
        yield [
            *_own(piece, text, linked[i]),
            repeated[text],
            *place.numbers(),
            *(i / len(pieces), before / all_chars, after),
            max(-30, min(60, i - titled)) if titled >= 0 else -40,
            best in place.above,
            *_climbed(place.above[::-1], prose, long),
            *(number for j in _AROUND for number in around.get(i + j, _NOTHING)),
            *page,
        ]
        before += len(text)


def _climbed(upwards: Sequence[Element], prose: int, long: Counter[Element]) -> Iterator[float]:
    """Yield how far above shares of the page's prose are held, and what the nearest hold."""
    held = [node.chars - node.linked for node in upwards]
    for share in _SHARES:
        yield next((step for step, own in enumerate(held) if own >= share * prose), len(held))
    for j in range(_ABOVE):
        at = min(j, len(upwards) - 1)
        yield 1 - held[at] / max(1, upwards[at].chars)
        yield held[at] / prose
        yield min(30, long[upwards[at]])


def _linked_share(piece: Piece, text: str, place: _Place) -> float:
    if piece.link is not None or place.bits & _TAG_BITS["a"]:
        return 1.0
    nodes = (node for node in piece.nodes if isinstance(node, Element))
    linked = sum(node.chars if node.tag == "a" else node.linked for node in nodes)
    return min(1.0, linked / max(1, len(text)))


def _weights(
    pieces: Sequence[Piece], texts: Sequence[str], linked: Sequence[float], places: Sequence[_Place]
) -> tuple[Counter[Element], Element | None]:
    """Return the number of paragraphs in each element, and the one that holds the most prose.

    The latter as Readability finds it: paragraphs count for the elements above them, less for those
    far above, by their length and commas.
    """
    long = Counter[Element]()
    weights = dict[Element, float]()
    for piece, text, share, place in zip(pieces, texts, linked, places, strict=True):
        above = place.above
        if len(text) >= _LONG and share < 0.3:
            long.update(above)
        if piece.kind in {"p", "pre", "blockquote", "list"} and share < 0.5 and len(text) > 25:
            weight = 1 + text.count(",") + text.count(_WIDE_COMMA) + min(len(text) / 100, 3)
            for j, node in enumerate(above[:-6:-1]):
                weights[node] = weights.get(node, 0.0) + weight / max(1, 3 * j - (j == 1))
    return long, max(
        weights, key=lambda n: weights[n] * (1 - n.linked / max(1, n.chars)), default=None
    )


def _title_number(pieces: Sequence[Piece], texts: Sequence[str], title: str) -> int:
    """Return the number of the heading that repeats the document's title, else the first h1."""
    kinds = [piece.kind for piece in pieces]
    main = (i for i, kind in enumerate(kinds) if kind in {"h1", "h2"})
    same = (i for i in main if len(texts[i]) > 5 and texts[i].lower() in title)
    return next(same, kinds.index("h1") if "h1" in kinds else -1)
