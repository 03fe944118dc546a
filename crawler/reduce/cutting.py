"""The pieces of a page, cut out of its tree.

:func:`pieces_of` cuts an element into pieces: a paragraph, a heading, a list, a table, a code
block, a quote, an image. :mod:`.pieces` has the pieces of a whole page, which the core cuts alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from freshet.crawler.reduce.pieces import HEADINGS, Piece
from freshet.crawler.reduce.tree import CONTROL, NAMES, NUMBERS, TRAITS, Tree

#: Blocks of an item of a list, and characters of a cell of a table; beyond it is a layout.
_PARTS: Final = 6
_LONGEST_CELL: Final = 1_000
#: Characters of an item on the average; beyond it the list is one of comments or articles.
_LONGEST_ITEM: Final = 600

#: No number of a line has more.
_DIGITS: Final = 6

_LISTS: Final = NAMES["lists"]
_VERBATIM: Final = NAMES["verbatim"]
_BLOCK: Final = TRAITS["block"]
_LARGE: Final = TRAITS["large"]
_TABLE: Final = TRAITS["table"]
_IMAGE: Final = TRAITS["image"]
_BUTTON: Final = TRAITS["button"]
_HELD: Final = TRAITS["control"]
_BREAK: Final = NUMBERS["br"]


def pieces_of(tree: Tree, node: int) -> list[Piece]:
    """Return the pieces in a block, in order."""
    found: list[Piece] = []
    _cut(tree, tree.children(node), node, None, found)
    return found


def pieces_at(tree: Tree, node: int) -> list[Piece]:
    """Return the piece that a node is, or the pieces in it, in order."""
    found: list[Piece] = []
    _cut(tree, [node], tree.body, None, found)
    return found


def _cut(
    tree: Tree, nodes: Iterable[int], holder: int, link: str | None, found: list[Piece]
) -> None:
    """Add the pieces of these nodes, which are in a block."""
    if tree.tag(holder) == "a":
        link = tree.attribute_of(holder, "href") or link
    name, trait, holds = tree.name, tree.trait, tree.holds
    run: list[int] = []
    # The traits of all that is in the run.
    traits = 0
    for node in nodes:
        own = trait[node] | holds[node]
        if not own & _BLOCK and not (name[node] == _BREAK and _breaks_twice(tree, run)):
            run.append(node)
            traits |= own
            continue
        found.extend(_of_run(tree, Piece("p", run, holder, link), traits))
        run, traits = [], 0
        if own & _BLOCK and shows(tree, node):
            _cut_block(tree, node, link, found)
    found.extend(_of_run(tree, Piece("p", run, holder, link), traits))


def _of_run(tree: Tree, run: Piece, traits: int) -> Iterator[Piece]:
    """Yield the piece of a run of text with these traits, if it shows something.

    One with controls alone is cut into several.
    """
    shown = [node for node in run.nodes if shows(tree, node)] if traits & _HELD else []
    if shown and all(_is_control(tree, node) for node in shown):
        yield from (replace(run, nodes=nodes) for nodes in _controls_apart(tree, shown))
    elif shown or traits & _IMAGE or any(map(tree.chars.__getitem__, run.nodes)):
        yield run


def _controls_apart(tree: Tree, controls: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield each button alone, and the fields and labels between two buttons together."""
    trait, holds = tree.trait, tree.holds
    for is_button, nodes in groupby(controls, lambda it: (trait[it] | holds[it]) & _BUTTON > 0):
        if is_button:
            yield from ([node] for node in nodes)
        else:
            yield list(nodes)


def in_control(tree: Tree, piece: Piece) -> bool:
    """Return whether a piece is only controls, such as a button, or is in one."""
    return bool(tree.place[piece.holder] & CONTROL) or (
        piece.kind in {"p", "list"}
        and all(_is_control(tree, it) for it in piece.nodes if shows(tree, it))
    )


def _is_control(tree: Tree, node: int) -> bool:
    """Return whether a node is a control, or contains controls alone."""
    is_alone = not tree.name[node] or tree.end[node] == node + 1 or tree.trait[node] & _IMAGE
    if tree.place[node] & CONTROL or is_alone:
        return bool(tree.place[node] & CONTROL)
    return all(_is_control(tree, it) for it in tree.children(node) if shows(tree, it))


def _cut_block(tree: Tree, node: int, link: str | None, found: list[Piece]) -> None:
    tag = tree.tag(node)
    if tag in _VERBATIM:
        if not _counts_lines(tree, node):
            found.append(Piece("pre", [node], node, link))
    elif tag in HEADINGS or tag == "textarea" or _is_whole(tree, node, tag):
        kind = "list" if tag in _LISTS else "p" if tag == "textarea" else tag
        found.append(Piece(kind, [node], node, link))
    else:
        _cut(tree, tree.children(node), node, link, found)


def _is_whole(tree: Tree, node: int, tag: str) -> bool:
    """Return whether a block is a quote, a list or a table, and no part of the page's layout."""
    if tree.holds[node] & _LARGE:
        return False
    if tag == "table":
        return not tree.holds[node] & _TABLE and _is_table(tree, node)
    if tag == "blockquote" or (tag in _LISTS and _is_list(tree, node)):
        return not tree.holds[node] & _TABLE or all(
            _is_whole(tree, each, "table")
            for each in range(node + 1, tree.end[node])
            if tree.tag(each) == "table"
        )
    return False


def _counts_lines(tree: Tree, node: int) -> bool:
    """Return whether verbatim text is only the numbers of another block's lines."""
    lines = tree.text_of(node).split()
    if (
        len(lines) < 2
        or not (lines[0].isascii() and lines[0].isdecimal())
        or len(lines[0]) > _DIGITS
    ):
        return False
    first = int(lines[0])
    return lines == [str(first + i) for i in range(len(lines))]


def shows(tree: Tree, node: int) -> bool:
    """Return whether there is a word or an image in a node."""
    holds = tree.holds[node]
    return tree.chars[node] > 0 or bool((tree.trait[node] | holds) & _IMAGE or holds & _HELD)


def _breaks_twice(tree: Tree, run: list[int]) -> bool:
    """Return whether a line break would follow another one: they part paragraphs."""
    last = next((each for each in reversed(run) if tree.name[each] or tree.chars[each]), None)
    return last is not None and tree.name[last] == _BREAK


def _is_list(tree: Tree, node: int) -> bool:
    """Return whether a list is one to a reader: its items are not parts of the page's layout."""
    items, trait, holds = tree.elements(node), tree.trait, tree.holds
    return tree.chars[node] <= _LONGEST_ITEM * len(items) and all(
        sum(bool((trait[part] | holds[part]) & _BLOCK) for part in tree.children(item)) <= _PARTS
        for item in items
    )


def _is_table(tree: Tree, node: int) -> bool:
    """Return whether a table holds data: rows and columns of short cells."""
    rows = [tree.elements(row) for row in rows_of(tree, node)]
    return (
        tree.attribute_of(node, "role") != "presentation"
        and len(rows) > 1
        and max(map(len, rows)) > 1
        and max(tree.chars[cell] for row in rows for cell in row) <= _LONGEST_CELL
    )


def rows_of(tree: Tree, node: int) -> Iterator[int]:
    """Yield the rows of a table."""
    for child in tree.elements(node):
        tag = tree.tag(child)
        if tag == "tr":
            yield child
        elif tag in {"thead", "tbody", "tfoot"}:
            yield from rows_of(tree, child)
