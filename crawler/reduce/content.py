"""The choice of the pieces of a page that are its main content.

Each piece is described by a row of numbers (:mod:`.features`): its own text, the elements in which
it stands, their names, its neighbours and the page. Boosted trees, fitted on pages with a known
main text (``scripts/fit_content``, ADR 0008), give its probability of being content. Chosen are
the pieces with the greatest expected F score of words: on a page without doubts those above one
half, on a page where nothing is sure also less probable ones.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import groupby
from types import SimpleNamespace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.compiled import numeric
from freshet.crawler.reduce.boilerplate import is_control
from freshet.crawler.reduce.features import Vocabulary, judged
from freshet.crawler.reduce.markdown import HEADINGS, Piece
from freshet.crawler.reduce.pieces import Pieces
from freshet.crawler.reduce.tree import CONTROL, PLACES, TRAITS, UNSEEN, Tree

_BLOCK: Final = TRAITS["block"]
_APART: Final = TRAITS["apart"]
_CAPTION: Final = PLACES["figcaption"]
#: Recall counts more than precision: who reads a menu too many skips it, who misses a price or a
#: list of options has lost what the page is about.
_BETA: Final = 1.5
#: Controls in a row that are content, and times that a page has the same control where it is none.
_MOST_CONTROLS: Final = 5
_REPEATED: Final = 3


@dataclass(frozen=True)
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

    @cached_property
    def trees(self) -> numeric.Structure:
        """The trees as the core reads them."""
        branch = np.empty(len(self.column), numeric.record("branch"))
        for name in ("limit", "value", "column", "yes", "no"):
            branch[name] = getattr(self, name)
        numbers = {"nodes": len(branch), "count": len(self.roots), "levels": self.levels}
        arrays = SimpleNamespace(branch=branch, roots=self.roots)
        return numeric.Structure("trees", arrays, **numbers)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words as the core reads them."""
        return Vocabulary(self.words)


@cache
def _model() -> ContentModel:
    path = files("freshet.crawler.reduce") / "content_model.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    columns = {name: np.array(values) for name, values in said["trees"].items()}
    return ContentModel(words=said["words"], levels=said["levels"], **columns)


def chosen(tree: Tree, pieces: Sequence[Piece], title: str) -> list[Piece]:
    """Return the pieces of the main content; ``title`` is that of the page.

    The model judges by words. Controls are not shown to it, but on a page that has nothing else,
    and images have none: what stands beside them decides.
    """
    pieces = Pieces.of(tree, pieces)
    controls = pieces.controls
    shown = pieces if all(controls) else pieces.without_controls()
    kept = {id(piece) for piece in _judged(shown, title)}
    kept |= {id(piece) for piece in _kept_beside(tree, pieces, controls, kept)}
    return [piece for piece in pieces if id(piece) in kept]


def _judged(pieces: Pieces, title: str) -> list[Piece]:
    """Return the pieces that are probably content; none of them is a control."""
    if not pieces:
        return []
    model, texts = _model(), pieces.texts
    odds, sizes = judged(pieces, title, model.vocabulary, model.trees)
    probability = 1 / (1 + np.exp(-odds))
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
    """Yield the controls, and the images with their captions, that stand inside of content.

    Both neighbours are kept, or one in the block around them. A call for an action is no content,
    nor is what stands at each entry of a list, nor one of many controls in a row.
    """
    texts = [
        text_of(tree, it, UNSEEN) if acts else "" for it, acts in zip(pieces, controls, strict=True)
    ]
    times = Counter(texts)
    depends = [
        acts
        or tree.place[piece.holder] & _CAPTION > 0
        or (piece.kind == "p" and not any(tree.chars[node] for node in piece.nodes))
        for piece, acts in zip(pieces, controls, strict=True)
    ]
    for is_row, run in groupby(range(len(pieces)), depends.__getitem__):
        row = list(run)
        around = [pieces[i] for i in (row[0] - 1, row[-1] + 1) if 0 <= i < len(pieces)]
        near = [piece for piece in around if id(piece) in kept]
        are_many = sum(controls[i] for i in row) > _MOST_CONTROLS
        for i in row if is_row else ():
            block = _block_of(tree, pieces[i].holder)
            is_inside = len(near) == 2 or any(
                block <= piece.nodes[0] < tree.end[block] for piece in near
            )
            is_content = not controls[i] or not (
                are_many or not texts[i] or times[texts[i]] >= _REPEATED or is_control(texts[i])
            )
            if is_inside and is_content:
                yield pieces[i]


def _block_of(tree: Tree, node: int) -> int:
    """Return the next element around a control or an image that has words of its own."""
    while node and (tree.place[node] & CONTROL or not tree.chars[node]):
        node = tree.parent[node]
    return node


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
