"""The choice of the pieces of a page that are its main content.

Each piece is described by a row of numbers (:mod:`.features`): its own text, the elements in which
it stands, their names, its neighbours and the page. Boosted trees, fitted on pages with a known
main text (``scripts/fit_content``, ADR 0008), give its probability of being content. Chosen are
the pieces with the greatest expected F score of words: on a page without doubts those above one
half, on a page where nothing is sure also less probable ones. Some rules follow, of prose beside
them, of long texts, short pages, menus, controls and images.

The compiled core chooses (``freshet/compiled/choice.c``); the tests have the same in Python
(``tests/crawler/reduce/reference/content.py``), which says what each rule is for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from ctypes import byref, c_char_p, c_int64, c_size_t, c_void_p
from functools import cache
from importlib.resources import files
from itertools import accumulate, chain
from types import SimpleNamespace
from typing import Final

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from freshet.compiled import function, numeric
from freshet.crawler.reduce.boilerplate import are_controls
from freshet.crawler.reduce.cutting import HEADINGS, Piece, pieces_at
from freshet.crawler.reduce.features import COLUMNS, Vocabulary, considered
from freshet.crawler.reduce.pieces import Pieces, checked, columns_of
from freshet.crawler.reduce.selectors import NO_HINTS, SelectorHints
from freshet.crawler.reduce.tree import CONTROL, PARSER_OPTIONS, PLACES, TRAITS, UNSEEN, Tree
from freshet.crawler.reduce.tree_parser import marked

_BLOCK: Final = TRAITS["block"]
_APART: Final = TRAITS["apart"]

#: Leaves of a tree, at most.
LEAVES: Final = int(numeric.CONSTANTS["LEAVES"])
_begin: Final = function("trees_begin", [c_void_p], c_int64)
_made: Final = function("choice_made", [c_void_p, c_int64, c_void_p], c_int64)
_settled: Final = function("choice_settled", [c_void_p, c_void_p, c_char_p, c_size_t], c_int64)
_finished: Final = function("choice_finished", [c_void_p, c_char_p, c_size_t], c_int64)
_columns: Final = function("choice_columns", [c_void_p] * 3)
_drop: Final = function("choice_drop", [c_void_p])


@cache
def model() -> tuple[Vocabulary, numeric.Structure]:
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
    limits = _limits_by_column(distinct, width)
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


def _limits_by_column(tests: Iterable[tuple[int, float]], width: int) -> list[list[float]]:
    """Return the limits that nodes compare each column with, from the least on."""
    limits: list[list[float]] = [[] for _ in range(width)]
    for column, limit in sorted(tests):
        limits[column].append(limit)
    return limits


def choice_of(tree: Tree, html: bytes, hints: SelectorHints) -> tuple[Tree, Sequence[Piece], bool]:
    """Return the chosen pieces of a page, the tree as its site's selectors show it.

    ``html`` is the page. The last value is true if ``hints`` include some of it: that is the
    content, then.
    """
    tree, pieces, has_included = pieces_shown(tree, html, hints)
    if has_included:
        return tree, pieces, True
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


def chosen(tree: Tree, pieces: Sequence[Piece], title: str) -> Sequence[Piece]:
    """Return the pieces of the main content; ``title`` is that of the page.

    The model judges by words. Controls are not shown to it, but on a page that has nothing else,
    and images have none: what stands beside them decides.
    """
    pieces = Pieces.of(tree, pieces)
    if not pieces:
        return pieces
    core = c_void_p()
    some = pieces.without_controls() or pieces
    with considered(some, title, *model()) as judged:
        try:
            checked(_made(judged.core, judged.headline, byref(core)), tree)
            (texts, _, _) = columns_of(_columns, core, 3)
            said = are_controls(texts)
            checked(_settled(core, pieces.core, said, len(said)), tree)
            (_, _, texts) = columns_of(_columns, core, 3)
            said = are_controls(texts)
            checked(_finished(core, said, len(said)), tree)
            (_, numbers, _) = columns_of(_columns, core, 3)
        finally:
            _drop(core)
    return pieces.only(memoryview(numbers).cast("I"))


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
