"""The choice of the pieces of a page that are its main content.

Each piece is described by a row of numbers (:mod:`.features`): its own text, the elements in which
it stands, their names, its neighbours and the page. Boosted trees, fitted on pages with a known
main text (``scripts/fit_content``, ADR 0008), give its probability of being content. Chosen are
the pieces with the greatest expected F score of words: on a page without doubts those above one
half, on a page where nothing is sure also less probable ones.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from ctypes import c_int64, c_void_p
from functools import cache
from importlib.resources import files
from itertools import accumulate, chain, pairwise, starmap
from types import SimpleNamespace
from typing import Final

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from freshet.compiled import function, numeric
from freshet.crawler.reduce.boilerplate import is_control, is_frame_name, is_hidden
from freshet.crawler.reduce.cutting import HEADINGS, Piece, pieces_at
from freshet.crawler.reduce.features import COLUMNS, Vocabulary, judged
from freshet.crawler.reduce.pieces import Pieces
from freshet.crawler.reduce.selectors import NO_HINTS, SelectorHints
from freshet.crawler.reduce.tree import CONTROL, PARSER_OPTIONS, PLACES, TRAITS, UNSEEN, Tree
from freshet.crawler.reduce.tree_parser import marked

_BLOCK: Final = TRAITS["block"]
_APART: Final = TRAITS["apart"]
_CAPTION: Final = PLACES["figcaption"]
#: Precision counts a little more than recall, as the trees know manuals and shops, too.
_BETA: Final = 0.75
#: Pieces in a row that are kept because those around them are.
_GAP: Final = 3
#: Words of a long text, of whose later pieces the trees know little, its least share of the prose
#: around it, and elements that make a pattern.
_LONG_WORDS: Final = 2000
_LEAST_SHARE: Final = 0.2
_ALIKE: Final = 3
#: A piece that is less probable is no part of a long text.
_UNLIKELY: Final = 0.05
#: On a page of no more words all prose is content that is no frame by its place or name.
_FEW_WORDS: Final = 100
_FRAME: Final = PLACES["nav"] | PLACES["frame"]
_ASIDE: Final = PLACES["aside"]
_NO_PROSE: Final = _FRAME | _ASIDE | PLACES["link"] | PLACES["noscript"]
_EDGES: Final = PLACES["header"] | PLACES["footer"]
_ARTICLES: Final = PLACES["main"] | PLACES["article"]
#: Edges of the page, not of an article.
_EDGE_ONLY: Final = {PLACES["header"], PLACES["footer"], _EDGES}
#: Controls in a row that are content, and times that a page has the same control where it is none.
_MOST_CONTROLS: Final = 5
_REPEATED: Final = 3

#: Leaves of a tree, at most.
LEAVES: Final = int(numeric.CONSTANTS["LEAVES"])
_begin: Final = function("trees_begin", [c_void_p], c_int64)


@cache
def _model() -> tuple[Vocabulary, numeric.Structure]:
    """Return what words of names say, and the fitted trees."""
    path = files("freshet.crawler.reduce") / "content_model.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    return Vocabulary(said["words"]), trees_of(said["trees"], len(COLUMNS))


def trees_of(columns: Mapping[str, Sequence[float]], width: int) -> numeric.Structure:
    """Return boosted trees, which judge rows of so many numbers, as the core reads them.

    A node sends a row to ``yes`` where the value of its ``column`` is at most ``limit``, else to
    ``no``; a leaf leads to itself, and has a ``value``. The first node of each tree is in
    ``roots``.

    Raises:
        ValueError: a tree has more leaves than the core can judge, or the row is too long.
    """
    yes, no = (np.array(columns[name]).tolist() for name in ("yes", "no"))
    tests = [*zip(map(int, columns["column"]), columns["limit"], strict=True)]
    distinct = {test for node, test in enumerate(tests) if yes[node] != node}
    limits: list[list[float]] = [[] for _ in range(width)]
    for column, limit in sorted(distinct):
        limits[column].append(limit)
    ranks = {(i, limit): rank for i, own in enumerate(limits) for rank, limit in enumerate(own)}
    branches: list[tuple[int, int, int]] = []
    ends: list[int] = []
    leaves = np.zeros((len(columns["roots"]), LEAVES))

    def add(node: int, tree: int, count: int) -> int:
        """Add a node of a tree with so many leaves before it; return how many there are then."""
        if yes[node] == node:
            if count == LEAVES:
                raise ValueError(f"tree {tree} has more than {LEAVES} leaves")
            leaves[tree, count] = columns["value"][node]
            return count + 1
        middle = add(yes[node], tree, count)
        struck = (1 << middle) - (1 << count)
        branches.append((tests[node][0], ranks[tests[node]], struck))
        return add(no[node], tree, middle)

    for tree, root in enumerate(columns["roots"]):
        add(int(root), tree, 0)
        ends.append(len(branches))
    arrays = SimpleNamespace(
        limits=np.array([*chain(*limits)]),
        limit_ends=np.array([*accumulate(map(len, limits))]),
        branch=np.array(branches, numeric.record("branch")),
        branch_ends=np.array(ends),
        leaves=leaves,
    )
    numbers = {"columns": width, "count": len(ends), "nodes": len(branches)}
    trees = numeric.Structure("trees", arrays, **numbers, limits_count=len(arrays.limits))
    if _begin(trees.address):
        raise ValueError("the core refused the trees")
    return trees


def choice_of(tree: Tree, html: bytes, hints: SelectorHints) -> tuple[Tree, list[Piece], bool]:
    """Return the chosen pieces of a page, the tree as its site's selectors show it.

    ``html`` is the page. The last value is true if ``hints`` include some of it: that is the
    content, then.
    """
    tree, pieces, has_included = pieces_shown(tree, html, hints)
    if has_included:
        return tree, list(pieces), True
    return tree, [] if hints.strict else chosen(tree, pieces, title_of(tree)), False


def pieces_shown(
    tree: Tree, html: bytes, hints: SelectorHints
) -> tuple[Tree, Sequence[Piece], bool]:
    """Return the tree as selectors show it, and all pieces that may be content.

    The last value is true if they are what ``hints`` include.
    """
    if hints != NO_HINTS:
        parser = LexborHTMLParser(html, options=PARSER_OPTIONS)
        has_included = hints.mark(parser)
        tree, included = marked(tree, parser)
        if has_included:
            return tree, [it for node in included for it in pieces_at(tree, node)], True
    return tree, Pieces(tree), False


def title_of(tree: Tree) -> str:
    """Return the title in the head of a page, or an empty text."""
    titles = (it for it in tree.named("title") if tree.place[it] & PLACES["page_head"])
    return next((" ".join(tree.text_of(it).split()) for it in titles), "")


def chosen(tree: Tree, pieces: Sequence[Piece], title: str) -> list[Piece]:
    """Return the pieces of the main content; ``title`` is that of the page.

    The model judges by words. Controls are not shown to it, but on a page that has nothing else,
    and images have none: what stands beside them decides.
    """
    pieces = Pieces.of(tree, pieces)
    controls = pieces.controls
    if all(controls):
        kept = set(_judged(pieces, title))
    else:
        numbers = [i for i, acts in enumerate(controls) if not acts]
        kept = {numbers[i] for i in _judged(pieces.without_controls(), title)}
    kept.update(list(_kept_beside(pieces, kept)))
    return [pieces[i] for i in sorted(kept)]


def _judged(pieces: Pieces, title: str) -> list[int]:
    """Return the numbers of the pieces that are probably content; none of them is a control."""
    if not pieces:
        return []
    texts, kinds, place = pieces.texts, pieces.kinds, pieces.tree.place
    holders = pieces.holders.tolist()
    odds, sizes = judged(pieces, title, *_model())
    probability = 1 / (1 + np.exp(-odds))
    order = np.argsort(-probability, kind="stable")
    found = np.cumsum((probability * sizes)[order])
    expected = found / (np.cumsum(sizes[order]) + _BETA**2 * found[-1] + 1e-9)
    kept = set(order[: int(expected.argmax()) + 1].tolist())
    # References leave it out, readers want it: the page's own headline.
    heads = [i for i, kind in enumerate(kinds) if kind == "h1" and texts[i]]
    own = [i for i in heads if len(heads) == 1 or texts[i].casefold() in title.casefold()]
    kept.update(own[:1])
    frame = _Frame(pieces, kept)
    kept.update(list(_beside(pieces, kept, frame)))
    if sizes[list(kept)].sum() >= _LONG_WORDS:
        likely = (probability > _UNLIKELY).tolist()
        kept.update(list(_continued(pieces, kept, sizes.tolist(), likely, frame)))
    is_short = sizes.sum() <= _FEW_WORDS
    if is_short:
        # The trees know little of such pages, most of whose tables lead to other pages.
        kept.update(i for i, kind in enumerate(kinds) if kind != "table" and frame.lacks(i))
    # A long menu outweighs a few words, and so may an advert on a page of few.
    edges = _FRAME | _ASIDE if is_short else _FRAME
    kept = {i for i in kept if not place[holders[i]] & edges} or kept
    # Links such as "Read more" are no content either. A cell of a table may say it of something.
    spared = {"h1", "table"}
    said = [
        i for i in sorted(kept) if kinds[i] in spared or not is_control(texts[i]) or frame.lacks(i)
    ]
    return said or sorted(kept)


class _Frame:
    """The frame of a page, by places and names of elements, with what is hidden.

    What holds a piece that was ``kept`` is none, whatever its name.
    """

    def __init__(self, pieces: Pieces, kept: Set[int]) -> None:
        self._pieces = pieces
        self._known = {0: False, pieces.tree.body: False}
        parent = pieces.tree.parent
        for holder in pieces.holders[list(kept)].tolist():
            node = parent[holder]
            while node not in self._known:
                self._known[node] = False
                node = parent[node]

    def lacks(self, number: int) -> bool:
        """Return whether a piece is prose, not most of it links, and stands outside."""
        pieces = self._pieces
        linked, place, holder = pieces.tree.linked, pieces.tree.place, pieces.holder(number)
        return (
            not pieces.leads(number)
            and not place[holder] & _NO_PROSE
            and 2 * sum(linked[it] for it in pieces.nodes(number)) < len(pieces.texts[number])
            and not self._holds(holder)
        )

    def _holds(self, node: int) -> bool:
        tree = self._pieces.tree
        if node not in self._known:
            said = tree.attributes(node)
            self._known[node] = (
                is_frame_name(said.get("id"), said.get("class"))
                or is_hidden(said)
                or tree.place[node] & (_EDGES | _ARTICLES) in _EDGE_ONLY
                or self._holds(tree.parent[node])
            )
        return self._known[node]


def _beside(pieces: Pieces, kept: Set[int], frame: _Frame) -> Iterator[int]:
    """Yield the prose beside a kept piece that stands in its block, a few pieces at most.

    It may be a price, or a sentence about a picture: the trees trust few words little.
    """
    parent, holders, count = pieces.tree.parent, pieces.holders.tolist(), len(pieces)
    for before, behind in pairwise((-1, *sorted(kept), count)):
        gap = range(before + 1, behind)
        if 0 < len(gap) <= _GAP:
            around = {parent[holders[i]] for i in (before, behind) if 0 <= i < count}
            yield from (i for i in gap if parent[holders[i]] in around and frame.lacks(i))


def _continued(
    pieces: Pieces, kept: Set[int], words: Sequence[int], likely: Sequence[bool], frame: _Frame
) -> Iterator[int]:
    """Yield the prose that goes on with a long text, such as the later sections of a law.

    The trees were fitted on articles, below which comments and adverts stand: the further down, the
    less they trust a piece. One goes on with the text if its element, or one around it, has
    siblings of the same tag and classes that hold kept pieces.
    """
    tree, body = pieces.tree, pieces.tree.body
    rest = [i for i in range(len(pieces)) if likely[i] and i not in kept and frame.lacks(i)]
    if not rest:
        return
    told, untold = _Words(pieces, kept, words), _Words(pieces, rest, words)

    @cache
    def patterns(block: int) -> Counter[tuple[str, str]]:
        found = (node for node in _children(tree, block) if told.stand_in(node))
        return Counter(_pattern(tree, node) for node in found)

    @cache
    def goes_on(node: int, block: int) -> bool:
        count = told.of(block)
        least = max(_LONG_WORDS, _LEAST_SHARE * (count + untold.of(block)))
        return count >= least and patterns(block)[_pattern(tree, node)] >= _ALIKE

    for i in rest:
        if any(starmap(goes_on, pairwise(_up(tree, body, pieces.holder(i))))):
            yield i


class _Words:
    """The words of these pieces in an element, by the numbers of their holders."""

    def __init__(self, pieces: Pieces, numbers: Collection[int], words: Sequence[int]) -> None:
        self._tree = pieces.tree
        found = sorted((pieces.holder(i), words[i]) for i in numbers)
        self._holders = [holder for holder, _ in found]
        self._before = [0, *accumulate(count for _, count in found)]

    def of(self, node: int) -> int:
        """Return their number."""
        begin, end = self._range(node)
        return self._before[end] - self._before[begin]

    def stand_in(self, node: int) -> bool:
        """Return whether one of the pieces stands there."""
        begin, end = self._range(node)
        return begin < end

    def _range(self, node: int) -> tuple[int, int]:
        ends = node, self._tree.end[node]
        begin, end = (bisect_left(self._holders, it) for it in ends)
        return begin, end


def _up(tree: Tree, body: int, node: int) -> Iterator[int]:
    """Yield an element and those around it, up to the body."""
    while node not in (0, body):
        yield node
        node = tree.parent[node]
    yield body


def _children(tree: Tree, node: int) -> Iterator[int]:
    """Yield the nodes directly in an element, seen or not."""
    child = node + 1
    while child < tree.end[node]:
        yield child
        child = tree.end[child]


def _pattern(tree: Tree, node: int) -> tuple[str, str]:
    """Return the tag and the classes of an element."""
    classes = tree.attribute_of(node, "class") or ""
    return tree.tag(node), " ".join(sorted(classes.split()))


def _kept_beside(pieces: Pieces, kept: Set[int]) -> Iterator[int]:
    """Yield the controls, and the images with their captions, that stand inside of content.

    Both neighbours are kept, or one in the block around them. A call for an action is no content,
    nor is what stands at each entry of a list, nor one of many controls in a row.
    """
    tree, controls = pieces.tree, pieces.controls
    in_caption = np.asarray(tree.place)[pieces.holders] & _CAPTION > 0
    depends = pieces.are_wordless | in_caption | np.array(controls, bool)
    if not depends.any():
        return
    texts = {i: text_of(tree, pieces[i], UNSEEN) for i, acts in enumerate(controls) if acts}
    times = Counter(texts.values())
    edges = np.flatnonzero(np.diff(depends, prepend=False, append=False)).tolist()
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        near = [pieces[i].nodes[0] for i in (begin - 1, end) if i in kept]
        are_many = sum(controls[begin:end]) > _MOST_CONTROLS
        for i in range(begin, end) if near else ():
            block = _block_of(tree, pieces[i].holder)
            is_inside = len(near) == 2 or any(block <= node < tree.end[block] for node in near)
            is_content = not controls[i] or not (
                are_many or not texts[i] or times[texts[i]] >= _REPEATED or is_control(texts[i])
            )
            if is_inside and is_content:
                yield i


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
