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
from collections.abc import Iterable, Iterator, Sequence
from ctypes import byref, c_char_p, c_int64, c_size_t, c_uint64, c_void_p
from functools import partial
from itertools import accumulate, compress
from types import SimpleNamespace
from typing import Final, NamedTuple
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from freshet.compiled import function, numeric
from freshet.crawler.reduce.blocks import (
    KINDS,
    ROOT,
    Blocks,
    alike,
    below,
    compared,
    kind_of,
    named,
)
from freshet.crawler.reduce.boilerplate import STAMPS, Verdicts, are_stamps, is_stamp
from freshet.crawler.reduce.cutting import Piece
from freshet.crawler.reduce.markdown import MOMENT, PERMALINKS
from freshet.crawler.reduce.nesting import NAMES
from freshet.crawler.reduce.pieces import Pieces, checked, columns_of
from freshet.crawler.reduce.tree import CONTROL, KNOWN, NUMBERS, TRAITS, UNSEEN, Tree

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


def _wording() -> numeric.Structure:
    kinds = np.zeros(len(NUMBERS), np.int64)
    for role, names in enumerate(_ROLES):
        for name in names:
            kinds[NUMBERS[name]] = role
    for name in NAMES["inline"]:
        kinds[NUMBERS[name]] += _IS_INLINE
    letters = [name.encode() for name in KNOWN]
    arrays = SimpleNamespace(
        kinds=kinds,
        block_kinds=np.array([KINDS.index(kind_of(name)) for name in KNOWN], np.int64),
        ends=np.array([*accumulate(map(len, letters))], np.int64),
        letters=np.frombuffer(bytearray().join(letters), np.uint8),
        groups=np.frombuffer(bytearray(STAMPS.groups), np.uint8),
        starts=np.frombuffer(bytearray(STAMPS.starts), np.uint8),
        line_numbers=_lines(NAMES["line_numbers"]),
        permalinks=_lines(PERMALINKS - {""}),
        passing=_lines(NAMES["passing_classes"]),
    )
    numbers = {name: NUMBERS[name] for name in ("id", "class", "datetime")}
    numbers |= {name: TRAITS[name] for name in ("block", "apart", "tex")}
    numbers |= {"unseen": UNSEEN, "in_control": CONTROL, "names": len(kinds)}
    numbers |= {"most": STAMPS.characters, "words": STAMPS.words}
    numbers |= {"relative": STAMPS.relative, "start_octets": len(STAMPS.starts)}
    numbers |= {"octets": len(arrays.line_numbers), "name_octets": len(arrays.letters)}
    numbers |= {"permalink_octets": len(arrays.permalinks), "passing_octets": len(arrays.passing)}
    return numeric.Structure("wording", arrays, **numbers)


def _lines(words: Iterable[str]) -> NDArray[np.uint8]:
    lines = "".join(f"{word}\n" for word in sorted(words)).encode()
    return np.frombuffer(bytearray(lines), np.uint8)


WORDING: Final = _wording()
_made: Final = function("blocks_made", [c_void_p, c_void_p, c_char_p, c_size_t, c_void_p], c_int64)
_asked: Final = function("blocks_asked", [c_void_p] * 3)
_placed: Final = function("blocks_placed", [c_void_p, c_uint64, c_char_p, c_size_t], c_int64)
_columns: Final = function("blocks_columns", [c_void_p] * 3)
_drop: Final = function("blocks_drop", [c_void_p])


class _Cut(NamedTuple):
    """Blocks, as the core tells of them: texts, kinds by number, and places.

    ``bits`` are not 0 of a text that NFC may change, or that may be a stamp.
    """

    texts: list[str]
    bits: memoryview
    kinds: bytes
    places: memoryview


def _cut(tree: Tree, pieces: Sequence[Piece]) -> _Cut:
    # What the core has is given back with the object.
    held, core = Pieces.of(tree, pieces), c_void_p()
    replaced = array("I", _moments(tree))
    told = replaced.tobytes(), len(replaced)
    try:
        result = _made(WORDING.address, held.core, *told, byref(core))
        checked(result, tree)
        (asked,) = columns_of(_asked, core, 1)
        said = array("Q", [_named(tree, node) for node in memoryview(asked).cast("I")])
        checked(_placed(core, ROOT, said.tobytes(), len(said)), tree)
        blocks, texts, kinds, places = columns_of(_columns, core, 4)
    finally:
        _drop(core)
    bits = memoryview(blocks).cast("I")[1::2]
    return _Cut(texts.decode().split("\n")[:-1], bits, kinds, memoryview(places).cast("Q"))


def _named(tree: Tree, node: int) -> int:
    said = tree.attributes(node)
    return named(tree.tag(node), said.get("id"), said.get("class"))


def _moments(tree: Tree) -> Iterator[int]:
    """Yield the elements whose machine-readable time stands in place of their text.

    "3 hours ago" reads otherwise tomorrow.
    """
    for node in tree.named("time"):
        if MOMENT.fullmatch(tree.attribute_of(node, "datetime") or ""):
            yield node


# -- the blocks ----------------------------------------------------------------


def main_text(tree: Tree, pieces: Sequence[Piece]) -> Blocks:
    """Return the blocks of these pieces: NFC, white space collapsed, none empty, and no stamps.

    Raises:
        ValueError: a piece has nodes that the tree has not.
        MemoryError: there is too little memory.
    """
    texts, bits, kinds, places = _cut(tree, pieces)
    named_kinds = tuple(map(KINDS.__getitem__, kinds))
    if not any(bits):
        return Blocks(tuple(texts), named_kinds, tuple(places))
    stay = iter(_SETTLED.of([*compress(texts, bits)]))
    found = [
        (text, kind, place)
        for said, tells, kind, place in zip(texts, bits, named_kinds, places, strict=True)
        if (text := next(stay) if tells else said)
    ]
    return Blocks(*zip(*found, strict=True)) if found else Blocks()


def _settled(texts: Sequence[str]) -> list[str]:
    """Return what stays of blocks at which the core cannot look itself: nothing of a stamp."""
    found = [*map(partial(normalize, "NFC"), texts)]
    stamps = are_stamps(found)
    return ["" if is_one else text for text, is_one in zip(found, stamps, strict=True)]


_SETTLED: Final = Verdicts(_settled)


def settled(lines: bytes) -> bytes:
    """Return what stays of each of these blocks, which have a newline behind each."""
    texts = _SETTLED.of(lines.decode().split("\n")[:-1])
    return "\n".join([*texts, ""]).encode()


def plain_text(text: str, *, by_line: bool = False) -> Blocks:
    """Return a text without markup as paragraphs, or as lines if there are few enough."""
    text = compared(text)
    by_line = by_line and text.count("\n") <= _MOST_LINES
    parts = text.splitlines() if by_line else _BLANK_LINE.split(text)
    paragraphs = (" ".join(part.split()) for part in parts)
    texts = tuple(t for p in paragraphs if p and not is_stamp(t := normalize("NFC", p)))
    return alike(texts, "paragraph", below(ROOT, "p"))
