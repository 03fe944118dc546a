"""The main text of a page, which is compared version by version: blocks of its chosen pieces.

What is compared is what is delivered (:mod:`freshet.crawler.reduce.document`): a block has the
words that the document shows. Only noise may differ: characters that nobody sees, and stamps, which
change although nobody edited the page.

The compiled core cuts the pieces into blocks (``freshet/compiled/blocks.c``); the tests have the
same in Python (``tests/crawler/reduce/reference/main_text.py``).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from ctypes import POINTER, byref, c_char_p, c_int64, c_size_t, c_uint32, c_void_p
from itertools import accumulate, chain
from types import SimpleNamespace
from typing import Final, NamedTuple
from unicodedata import normalize

import numpy as np

from freshet.compiled import function, numeric
from freshet.crawler.reduce.blocks import (
    ROOT,
    BlockKind,
    Blocks,
    alike,
    below,
    compared,
    kind_of,
    named,
    within,
)
from freshet.crawler.reduce.boilerplate import STAMPS, is_stamp
from freshet.crawler.reduce.cutting import Piece
from freshet.crawler.reduce.markdown import MOMENT, PERMALINKS
from freshet.crawler.reduce.nesting import NAMES
from freshet.crawler.reduce.pieces import TreeColumns, checked, columns_of
from freshet.crawler.reduce.tree import CONTROL, NUMBERS, TRAITS, UNSEEN, Tree

#: The signs of boxes that a reader may tick (``elements.toml``).
BOXES: Final = "☐☑"
UNBOXED: Final = str.maketrans("", "", BOXES)
#: A text of more lines is compared by its paragraphs.
_MOST_LINES: Final = 20_000
_BLANK_LINE: Final = re.compile(r"(?>\r\n?|\n)[^\S\r\n]*(?>\r\n?|\n)")


# -- the compiled core ---------------------------------------------------------

#: What elements are to the core, by their numbers there.
_ROLES: Final = (
    *((), NAMES["code"] | NAMES["verbatim"], ("br",), ("sup",), ("sub",), ("rt",), ("time",)),
    ("a",),
)
#: Added to that of one that makes no place.
_IS_INLINE: Final = 16
#: Bits of the core: NFC may change a block, and it may be a stamp.
_IS_ODD: Final = 1
_MAY_BE_STAMP: Final = 2


def _wording() -> numeric.Structure:
    kinds = np.zeros(len(NUMBERS), np.int64)
    for role, names in enumerate(_ROLES):
        for name in names:
            kinds[NUMBERS[name]] = role
    for name in NAMES["inline"]:
        kinds[NUMBERS[name]] += _IS_INLINE
    classes = "".join(f"{name}\n" for name in sorted(NAMES["line_numbers"])).encode()
    arrays = SimpleNamespace(
        kinds=kinds,
        groups=np.frombuffer(bytearray(STAMPS.groups), np.uint8),
        line_numbers=np.frombuffer(bytearray(classes), np.uint8),
    )
    numbers = {name: NUMBERS[name] for name in ("id", "class", "datetime")}
    numbers |= {name: TRAITS[name] for name in ("block", "apart", "tex")}
    numbers |= {"unseen": UNSEEN, "in_control": CONTROL, "names": len(kinds)}
    numbers |= {"most": STAMPS.characters, "words": STAMPS.words, "octets": len(classes)}
    return numeric.Structure("wording", arrays, **numbers)


_WORDING: Final = _wording()
_made: Final = function(
    "blocks_made",
    [c_void_p, POINTER(TreeColumns), c_uint32, *(c_char_p, c_size_t) * 3, c_void_p],
    c_int64,
)
_columns: Final = function("blocks_columns", [c_void_p] * 3)
_drop: Final = function("blocks_drop", [c_void_p])


class _Cut(NamedTuple):
    """Blocks, as the core tells of them.

    ``rows`` have for each text the number of the element in which it stands, and bits. For each of
    these elements ``standing`` has the number of the one around it, and that of its name plus 1, or
    0 if it makes no place; the first is the body. For each name ``named`` has a node.
    """

    texts: list[str]
    rows: memoryview
    standing: memoryview
    named: memoryview


def _cut(tree: Tree, pieces: Sequence[Piece]) -> _Cut:
    runs = [piece.nodes for piece in pieces]
    nodes = array("I", chain.from_iterable(runs))
    ends = zip([piece.holder for piece in pieces], accumulate(map(len, runs)), strict=True)
    rows = array("I", chain.from_iterable(ends))
    replaced = array("I", sorted((*_moments(tree), *_permalinks(tree))))
    told = rows.tobytes(), len(rows) // 2, nodes.tobytes(), len(nodes)
    core = c_void_p()
    try:
        result = _made(
            *(_WORDING.address, TreeColumns.of(tree), tree.body, *told),
            *(replaced.tobytes(), len(replaced), byref(core)),
        )
        checked(result, tree)
        blocks, texts, *others = columns_of(_columns, core, 4)
    finally:
        _drop(core)
    numbers = (memoryview(octets).cast("I") for octets in (blocks, *others))
    return _Cut(texts.decode().split("\n")[:-1], *numbers)


def _moments(tree: Tree) -> Iterator[int]:
    """Yield the elements whose machine-readable time stands in place of their text.

    "3 hours ago" reads otherwise tomorrow.
    """
    for node in tree.named("time"):
        if MOMENT.fullmatch(tree.attribute_of(node, "datetime") or ""):
            yield node


def _permalinks(tree: Tree) -> Iterator[int]:
    """Yield the links to their own headings, which documents leave out, too."""
    are_links = np.asarray(tree.name) == NUMBERS["a"]
    for node in np.flatnonzero(are_links & (np.asarray(tree.chars) == 1)).tolist():
        if tree.text_of(node).strip() in PERMALINKS:
            yield node


# -- the blocks ----------------------------------------------------------------


def main_text(tree: Tree, pieces: Sequence[Piece]) -> Blocks:
    """Return the blocks of these pieces: NFC, white space collapsed, none empty, and no stamps.

    Raises:
        ValueError: a piece has nodes that the tree has not.
        MemoryError: there is too little memory.
    """
    cut = _cut(tree, pieces)
    places, texts = _places(tree, cut), cut.texts
    empty, ticked = BOXES
    if empty.encode() in tree.text or ticked.encode() in tree.text:
        # Whether a box is ticked is a state, and no word.
        texts = [
            " ".join(said.translate(UNBOXED).split()) if empty in said or ticked in said else said
            for said in texts
        ]
    found = [
        (text, *places[number])
        for said, number, bits in zip(texts, cut.rows[::2], cut.rows[1::2], strict=True)
        if (text := normalize("NFC", said) if bits & _IS_ODD else said)
        and not (bits & _MAY_BE_STAMP and is_stamp(text))
    ]
    return Blocks(*zip(*found, strict=True)) if found else Blocks()


def _places(tree: Tree, cut: _Cut) -> list[tuple[BlockKind, int]]:
    """Return the kind and the place of a block in each element in which one stands."""
    names = []
    for node in cut.named:
        tag, said = tree.tag(node), tree.attributes(node)
        names.append((kind_of(tag), named(tag, said.get("id"), said.get("class"))))
    found = [(kind_of("body"), ROOT)]
    for up, name in zip(cut.standing[2::2], cut.standing[3::2], strict=True):
        where = found[up]
        if name:
            kind, own = names[name - 1]
            where = kind, within(where[1], own)
        found.append(where)
    return found


def plain_text(text: str, *, by_line: bool = False) -> Blocks:
    """Return a text without markup as paragraphs, or as lines if there are few enough."""
    text = compared(text)
    by_line = by_line and text.count("\n") <= _MOST_LINES
    parts = text.splitlines() if by_line else _BLANK_LINE.split(text)
    paragraphs = (" ".join(part.split()) for part in parts)
    texts = tuple(t for p in paragraphs if p and not is_stamp(t := normalize("NFC", p)))
    return alike(texts, "paragraph", below(ROOT, "p"))
