"""The pieces of a page in columns, cut by the compiled core (``freshet/compiled/pieces.c``).

They equal the pieces of :func:`.cutting.pieces_of`, which defines pieces; tests compare both.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_int64,
    c_size_t,
    c_uint32,
    c_void_p,
    string_at,
)
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, Self, overload
from unicodedata import category

import numpy as np

from freshet.compiled import function, numeric
from freshet.compiled.numeric import CONSTANTS
from freshet.crawler.reduce.tree import CONTROL, NAMES, NUMBERS, TRAITS, UNSEEN, Tree

#: Characters that are made known together.
_BLOCK: Final = 256
_KNOWN, _UPPER, _DIGIT, _WORD, _PUNCTUATION = (
    int(CONSTANTS[name])
    for name in ("KNOWN_CHARACTER", "UPPER_CASE", "DIGIT", "WORD", "PUNCTUATION")
)
#: Bits of each character, 0 if they are not known yet; threads may write the same ones twice.
CHARACTERS: Final = np.zeros(int(CONSTANTS["CHARACTERS"]), np.uint8)


def know(blocks: Iterable[int]) -> None:
    """Fill in the characters of these blocks of 256."""
    for block in blocks:
        begin = block * _BLOCK
        characters = [*map(chr, range(begin, begin + _BLOCK))]
        bits = zip(
            map(str.isupper, characters),
            map(str.isdecimal, characters),
            map(str.isalnum, characters),
            map(category, characters),
            strict=True,
        )
        CHARACTERS[begin : begin + _BLOCK] = [
            _KNOWN | _UPPER * upper | _DIGIT * digit | _WORD * word
            | _PUNCTUATION * (kind[0] in "PS")
            for upper, digit, word, kind in bits
        ]  # fmt: skip


# Those of ASCII; "_" is part of words.
know([0])
CHARACTERS[ord("_")] |= _WORD


HEADINGS: Final = NAMES["headings"]


@dataclass(slots=True, eq=False)
class Piece:
    """A run of text, or one element, that is kept or left out as a whole: its nodes in a tree.

    ``kind`` is the tag in the output, ``p`` for any run of text; ``holder`` is the element, or the
    block around the run.
    """

    kind: str
    nodes: Sequence[int]
    holder: int
    link: str | None = None


#: Kinds of pieces by their numbers in the core.
KINDS: Final = ("p", "blockquote", "list", "table", "pre", *sorted(HEADINGS, reverse=True))
KIND_NUMBERS: Final = {kind: number for number, kind in enumerate(KINDS)}
#: What elements are to the cutter, by their numbers there.
_CUT: Final = (
    *((), ("blockquote",), NAMES["lists"], ("table",), NAMES["verbatim"], ("textarea",)),
    *(("tr",), ("thead", "tbody", "tfoot")),
    *((heading,) for heading in sorted(HEADINGS, reverse=True)),
)


def _elements() -> numeric.Structure:
    kinds = np.zeros(len(NUMBERS), np.int64)
    for kind, names in enumerate(_CUT):
        for name in names:
            kinds[NUMBERS[name]] = kind
    numbers = {name: NUMBERS[name] for name in ("a", "br", "href", "role")}
    traits = "block large table image control button apart stated".split()
    numbers |= {name: TRAITS[name] for name in traits}
    numbers |= {"unseen": UNSEEN, "in_control": CONTROL, "names": len(kinds)}
    return numeric.Structure("elements", SimpleNamespace(kinds=kinds), **numbers)


ELEMENTS: Final = _elements()


class TreeColumns(Structure):
    """The columns of a tree in the form for the core; the tree must live as long."""

    _fields_ = (
        ("nodes", c_char_p), ("said", c_char_p), ("text", c_char_p), ("values", c_char_p),
        *[(f"count{i}", c_size_t) for i in range(4)],
    )  # fmt: skip

    @classmethod
    def of(cls, tree: Tree) -> Self:
        """Return the columns of a tree."""
        told = tree.nodes, tree.said, tree.text, tree.values
        return cls(*told, len(tree), len(tree.owner), len(tree.text), len(tree.values))


_TAKING: Final[list[Any]] = [c_void_p, POINTER(TreeColumns), c_uint32]
_cut: Final = function("pieces_cut", [*_TAKING, c_void_p], c_int64)
_given: Final = function(
    "pieces_given", [*_TAKING, c_char_p, c_size_t, c_char_p, c_size_t, c_void_p], c_int64
)
_only: Final = function("pieces_only", [c_void_p, c_char_p, c_size_t, c_void_p], c_int64)
_rows: Final = function("pieces_rows", [c_void_p] * 3)
_columns: Final = function("pieces_columns", [c_void_p] * 3)
_drop: Final = function("pieces_drop", [c_void_p])
NO_NODE: Final = (1 << 32) - 1
_ROW: Final = 6


class _Held(NamedTuple):
    """Pieces in the core, with its input, which must live as long."""

    core: c_void_p
    columns: TreeColumns


def _held(tree: Tree, cut: Callable[..., int], *told: object) -> _Held:
    columns, core = TreeColumns.of(tree), c_void_p()
    checked(cut(ELEMENTS.address, columns, tree.body, *told, byref(core)), tree)
    return _Held(core, columns)


class Pieces(Sequence[Piece]):
    """The pieces in the body of a page.

    Attributes:
        tree: the page's.
        core: where the core has them.

    Raises:
        MemoryError: there is too little memory.
    """

    def __init__(
        self, tree: Tree, held: _Held | None = None, made: Iterable[Piece] | None = None
    ) -> None:
        self.tree = tree
        self._held = held or _held(tree, _cut)
        self.core = self._held.core
        #: What they are as objects, which are only made if somebody asks for one.
        self._given = None if made is None else [*made]
        (rows,) = columns_of(_rows, self.core, 1)
        self._rows = memoryview(rows).cast("I")

    @property
    def kinds(self) -> list[str]:
        """The kind of each."""
        return [KINDS[kind] for kind in self._rows[::_ROW]]

    @property
    def holders(self) -> list[int]:
        """The element around each piece."""
        return self._rows[1::_ROW].tolist()

    @property
    def controls(self) -> list[bool]:
        """For each, true if it is only controls, such as a button, or is in one."""
        return [acts > 0 for acts in self._rows[_ROW - 1 :: _ROW]]

    @property
    def texts(self) -> list[str]:
        """The text of each, as :func:`.content.text_of` returns it."""
        (texts, _) = columns_of(_columns, self.core, 2)
        return texts.decode().split("\n")[:-1]

    @classmethod
    def of(cls, tree: Tree, pieces: Sequence[Piece]) -> Self:
        """Return these pieces, which may have been cut elsewhere, in columns.

        Raises:
            ValueError: a piece has nodes that the tree has not.
            MemoryError: there is too little memory.
        """
        if isinstance(pieces, cls) and pieces.tree is tree:
            return pieces
        rows, nodes = array("I"), array("I")
        for piece in pieces:
            begin = len(nodes)
            nodes.extend(piece.nodes)
            link = NO_NODE if piece.link is None else piece.holder
            kind = KIND_NUMBERS[piece.kind]
            # The last is filled in by the core.
            rows.extend((kind, piece.holder, link, begin, len(nodes), 0))
        told = rows.tobytes(), len(pieces), nodes.tobytes(), len(nodes)
        return cls(tree, _held(tree, _given, *told), list(pieces))

    def only(self, numbers: Sequence[int]) -> Self:
        """Return the pieces of these numbers."""
        core, told = c_void_p(), array("I", numbers)
        checked(_only(self.core, told.tobytes(), len(told), byref(core)), self.tree)
        given = None if self._given is None else [self._given[number] for number in numbers]
        return type(self)(self.tree, self._held._replace(core=core), given)

    def without_controls(self) -> Self:
        """Return those that are not controls."""
        controls = self._rows[_ROW - 1 :: _ROW].tolist()
        if not any(controls):
            return self
        return self.only([number for number, acts in enumerate(controls) if not acts])

    def __del__(self) -> None:
        _drop(getattr(self, "core", None))

    def __len__(self) -> int:
        return len(self._rows) // _ROW

    @overload
    def __getitem__(self, number: int) -> Piece: ...

    @overload
    def __getitem__(self, number: slice) -> list[Piece]: ...

    def __getitem__(self, number: int | slice) -> Piece | list[Piece]:
        return self._made[number]

    def __iter__(self) -> Iterator[Piece]:
        return iter(self._made)

    @cached_property
    def _made(self) -> list[Piece]:
        if self._given is not None:
            return self._given
        (_, octets) = columns_of(_columns, self.core, 2)
        nodes, hrefs = memoryview(octets).cast("I").tolist(), self.tree.attribute_of
        return [
            Piece(kind, nodes[begin:end], holder, hrefs(link, "href") if link != NO_NODE else None)
            for kind, holder, link, begin, end in zip(
                self.kinds, *(self._rows[i::_ROW] for i in range(1, _ROW - 1)), strict=True
            )
        ]


def columns_of(told: Callable[..., None], core: c_void_p, count: int) -> list[bytes]:
    """Return ``count`` columns of the core."""
    at, lengths = (c_void_p * count)(), (c_size_t * count)()
    told(core, at, lengths)
    return [string_at(*each) if each[1] else b"" for each in zip(at, lengths, strict=True)]


def checked(result: int, tree: Tree) -> None:
    """Raise the error of a number of the core.

    Raises:
        MemoryError: the memory does not suffice.
        ValueError: an argument of the core is not in the tree.
    """
    if result == numeric.CONSTANTS["NO_MEMORY"]:
        raise MemoryError(f"no memory for the pieces of a page of {len(tree):,} nodes")
    if result:
        raise ValueError("the compiled core was told of what is not in the tree")
