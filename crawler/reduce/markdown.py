"""The pieces of a page as Markdown and as clean HTML, by the core (``freshet/compiled/writing.c``).

Markdown is CommonMark 0.31 with the tables and the strikethrough of GitHub. HTML has structural
elements only. All references are absolute. The tests have the same in Python
(``tests/crawler/reduce/reference/markdown.py``), which says what is written.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from ctypes import POINTER, Structure, byref, c_char_p, c_int64, c_size_t, c_uint32, c_void_p
from itertools import accumulate
from types import SimpleNamespace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freshet.compiled import function, numeric
from freshet.crawler.reduce.characters import CHARACTERS, know
from freshet.crawler.reduce.cutting import Piece
from freshet.crawler.reduce.nesting import NAMES
from freshet.crawler.reduce.pieces import (
    ELEMENTS,
    KIND_NUMBERS,
    NO_NODE,
    TreeColumns,
    checked,
    columns_of,
)
from freshet.crawler.reduce.tree import NUMBERS, SOURCE_SETS, SOURCES, TRAITS, Tree
from freshet.crawler.urls import Base

#: What elements are to the writer, by their numbers there.
_TAGS: Final = (
    *((), NAMES["code"], ("a",), ("br",), ("img",), ("input",), ("math",), ("ruby",)),
    *(("textarea",), ("time",), ("b", "strong"), ("cite", "dfn", "em", "i", "var")),
    *(("del", "s", "strike"), ("q",), ("rt",), ("sub",), ("sup",), ("caption",), ("th",)),
)
_ITEM: Final = 32
_LINE: Final = 64
_HOURS: Final = r"(?:[01]\d|2[0-3]):?[0-5]\d"
_DAY: Final = r"(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_TIME_OF_DAY: Final = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?"
_ZONE: Final = rf"(?:Z|[+-]{_HOURS})"
#: The valid machine-readable times (HTML, section 4.5.14); any digits of a second.
MOMENT: Final = re.compile(
    rf"""\s*(?:\d{{4,}}(?:-(?:0[1-9]|1[0-2]))? | \d{{4,}}-W(?:0[1-9]|[1-4]\d|5[0-3])
    | (?:\d{{4,}}-|--)?{_DAY} | {_TIME_OF_DAY} | {_ZONE}
    | \d{{4,}}-{_DAY}[T\ ]{_TIME_OF_DAY}\ ?{_ZONE}?
    | P(?=[\dT])(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?
    | (?:\d+(?:\.\d+)?[WDHMSwdhms]\s*)+)\s*""",
    re.VERBOSE | re.ASCII,
)
#: What stands in a link to its own heading; readers copy its address, and do not read it.
PERMALINKS: Final = frozenset({"", "#", "¶", "§", "🔗", "⚓", "\uf0c1"})
#: URLs that are no place to go to.
_SCRIPTS: Final = ("javascript:", "vbscript:", "data:", "blob:", "about:")


class Written(NamedTuple):
    """Pieces in both forms, and their kinds."""

    kinds: Sequence[str]
    markdown: Sequence[str]
    html: Sequence[str]


def _markup() -> numeric.Structure:
    kinds = np.zeros(len(NUMBERS), np.int64)
    for tag, names in enumerate(_TAGS):
        for name in names:
            kinds[NUMBERS[name]] = tag
    for bit, names in ((_ITEM, NAMES["items"]), (_LINE, NAMES["lines"])):
        for name in names:
            kinds[NUMBERS[name]] |= bit
    letters = [name.encode() for name in NUMBERS]
    source = [NUMBERS[name] for name in (*SOURCES, *SOURCE_SETS)]
    arrays = SimpleNamespace(
        kinds=kinds,
        ends=np.array(list(accumulate(map(len, letters))), np.int64),
        letters=_octets(b"".join(letters)),
        source=np.array(source, np.int64),
        line_numbers=_lines(NAMES["line_numbers"]),
        permalinks=_lines(PERMALINKS - {""}),
        characters=CHARACTERS,
    )
    attributes = "ol dt dd href alt class width height colspan rowspan start type value reversed"
    numbers = {name: NUMBERS[name] for name in (*attributes.split(), "datetime", "display")}
    numbers |= {"names": len(kinds), "octets": len(arrays.line_numbers), "tex": TRAITS["tex"]}
    numbers |= {"name_octets": len(arrays.letters), "permalink_octets": len(arrays.permalinks)}
    numbers |= {"sources": len(SOURCES), "all_sources": len(source)}
    return numeric.Structure("markup", arrays, **numbers)


def _lines(texts: Iterable[str]) -> NDArray[np.uint8]:
    return _octets("".join(f"{text}\n" for text in sorted(texts)).encode())


def _octets(octets: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(octets, np.uint8).copy()


_MARKUP: Final = _markup()


class _Told(Structure):
    _fields_ = (
        ("pieces", c_char_p), ("nodes", c_char_p), ("url_ends", c_char_p), ("urls", c_char_p),
        *(("home", c_char_p), ("folder", c_char_p), ("origin", c_char_p)),
        *(("count", c_size_t), ("node_count", c_size_t)),
    )  # fmt: skip


class _Answers(Structure):
    _fields_ = (
        *(("texts", c_char_p), ("ends", c_char_p)),
        *(("octets", c_size_t), ("count", c_size_t)),
    )


_begin: Final = function(
    "writer_begin",
    [c_void_p, c_void_p, POINTER(TreeColumns), c_uint32, POINTER(_Told), c_void_p],
    c_int64,
)
_write: Final = function("writer_write", [c_void_p, POINTER(_Answers)], c_int64)
_columns: Final = function("writer_columns", [c_void_p] * 3)
_drop: Final = function("writer_drop", [c_void_p])


def written(tree: Tree, pieces: Sequence[Piece], base: str) -> Written:
    """Return the pieces of a tree in both forms, but for those of which nothing is left.

    They are in document order. References of the page are relative to ``base``.

    Raises:
        ValueError: a piece has nodes that the tree has not.
        MemoryError: there is too little memory.
    """
    columns, writer, known = TreeColumns.of(tree), c_void_p(), _Known(tree, base)
    told = known.told(pieces)
    try:
        begun = ELEMENTS.address, _MARKUP.address, columns, tree.body, told
        checked(_begin(*begun, byref(writer)), tree)
        answers = known.answers(*columns_of(_columns, writer, _COLUMNS)[3:5])
        while True:
            checked(_write(writer, answers), tree)
            *forms, numbers, _, _, unknown = columns_of(_columns, writer, _COLUMNS)
            if not unknown:
                break
            know(memoryview(unknown).cast("I"))
    finally:
        _drop(writer)
    kinds = [pieces[i].kind for i in memoryview(numbers).cast("I")]
    return Written(kinds, *(form.decode().split("\0")[:-1] for form in forms))


_COLUMNS: Final = 6


class _Known:
    """Facts of a page that the core is told, and answers to what it asks."""

    def __init__(self, tree: Tree, base: str) -> None:
        self._tree = tree
        self._base = Base(base)
        self._urls: dict[str, str] = {}

    def told(self, pieces: Sequence[Piece]) -> _Told:
        """Tell of the pieces and of the base."""
        rows, nodes, urls, ends = array("I"), array("I"), b"", array("I")
        for piece in pieces:
            begin = len(nodes)
            nodes.extend(piece.nodes)
            rows.extend((KIND_NUMBERS[piece.kind], piece.holder, NO_NODE, begin, len(nodes), 0))
            if piece.link is not None:
                urls += self._url(piece.link).encode()
            ends.append(len(urls))
        parts = [part.encode() for part in self._base.parts]
        told = rows.tobytes(), nodes.tobytes(), ends.tobytes(), urls
        return _Told(*told, *parts, len(pieces), len(nodes))

    def answers(self, questions: bytes, nodes: bytes) -> _Answers:
        """Answer what the core asks of nodes; an empty answer says no."""
        asked = zip(questions.decode().split("\0")[:-1], memoryview(nodes).cast("I"), strict=True)
        each = [self._answer(it[0], it[1:], node).encode() for it, node in asked]
        texts, ends = b"".join(each), array("I", accumulate(map(len, each)))
        return _Answers(texts, ends.tobytes(), len(texts), len(each))

    def _answer(self, kind: str, text: str, node: int) -> str:
        if kind == "u":
            return self._url(text)
        if kind == "t":
            return text if MOMENT.fullmatch(text) else ""
        from freshet.crawler.reduce.formulas import tex_of  # noqa: PLC0415 - few pages have any

        return tex_of(self._tree, node)

    def _url(self, reference: str) -> str:
        """Return the absolute URL of a reference, or an empty text if no reader can follow it."""
        if reference not in self._urls:
            url = self._base.resolve(reference) or ""
            follows = ":" in url and not url.startswith(_SCRIPTS)
            self._urls[reference] = url.replace(" ", "%20") if follows else ""
        return self._urls[reference]
