"""The main text of a page, which is compared version by version: blocks of its chosen pieces.

The compared text is the delivered one (:mod:`freshet.crawler.reduce.document`): a block has the
words that the document shows. Only noise may differ: invisible characters, and stamps, which change
without an edit of the page.

The compiled core cuts the pieces into blocks (``freshet/compiled/blocks.c``); the tests have the
same in Python (``tests/crawler/reduce/reference/main_text.py``).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from functools import partial
from itertools import accumulate, compress, count
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
from freshet.crawler.reduce.pieces import (
    CHARACTERS,
    ELEMENTS,
    KIND_NUMBERS,
    NO_NODE,
    Piece,
    Pieces,
    TreeColumns,
    checked,
    columns_of,
    know,
)
from freshet.crawler.reduce.tree import (
    CONTROL,
    KNOWN,
    NAMES,
    NUMBERS,
    SOURCE_SETS,
    SOURCES,
    TRAITS,
    UNSEEN,
    Tree,
)
from freshet.crawler.urls import Base

#: What elements are to the writer, by their numbers there.
_TAGS: Final = (
    *((), NAMES["code"], ("a",), ("br",), ("img",), ("input",), ("math",), ("ruby",)),
    *(("textarea",), ("time",), NAMES["media"], ("b", "strong"), ("cite", "dfn", "em", "i", "var")),
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
#: Texts of a link to its heading; readers copy its address, and do not read it.
PERMALINKS: Final = frozenset({"", "#", "¶", "§", "🔗", "⚓", "\uf0c1"})
#: URLs without a page.
_SCRIPTS: Final = ("javascript:", "vbscript:", "data:", "blob:", "about:")


class WrittenPieces(NamedTuple):
    """Pieces, and both of their forms."""

    pieces: Sequence[Piece]
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


def _lines(words: Iterable[str]) -> NDArray[np.uint8]:
    lines = "".join(f"{word}\n" for word in sorted(words)).encode()
    return np.frombuffer(bytearray(lines), np.uint8)


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
_writer_columns: Final = function("writer_columns", [c_void_p] * 3)
_drop_writer: Final = function("writer_drop", [c_void_p])


def written(tree: Tree, pieces: Sequence[Piece], base: str) -> WrittenPieces:
    """Return the pieces of a tree in both forms, without empty ones.

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
        answers = known.answers(*columns_of(_writer_columns, writer, _COLUMNS)[3:5])
        while True:
            checked(_write(writer, answers), tree)
            *forms, numbers, _, _, unknown = columns_of(_writer_columns, writer, _COLUMNS)
            if not unknown:
                break
            know(memoryview(unknown).cast("I"))
    finally:
        _drop_writer(writer)
    shown = [pieces[i] for i in memoryview(numbers).cast("I")]
    return WrittenPieces(shown, *(form.decode().split("\0")[:-1] for form in forms))


_COLUMNS: Final = 6


class _Known:
    """Facts of a page for the core, and answers to its questions."""

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
        """Answer the core's questions about nodes; an empty answer means no."""
        asked = zip(questions.decode().split("\0")[:-1], memoryview(nodes).cast("I"), strict=True)
        each = [self._answer(it[0], it[1:], node).encode() for it, node in asked]
        texts, ends = b"".join(each), array("I", accumulate(map(len, each)))
        return _Answers(texts, ends.tobytes(), len(texts), len(each))

    def _answer(self, kind: str, text: str, node: int) -> str:
        if kind == "u":
            return self._url(text)
        if kind == "t":
            return text if MOMENT.fullmatch(text) else ""
        if kind == "m":
            from freshet.crawler.reduce.media import medium_of  # noqa: PLC0415 - few pages have any

            return "\n".join(medium_of(self._tree, node, self._url))
        from freshet.crawler.reduce.formulas import tex_of  # noqa: PLC0415 - few pages have any

        return tex_of(self._tree, node)

    def _url(self, reference: str) -> str:
        """Return the absolute URL of a reference, or an empty text if no reader can follow it."""
        if reference not in self._urls:
            url = self._base.resolve(reference) or ""
            follows = ":" in url and not url.startswith(_SCRIPTS)
            self._urls[reference] = url.replace(" ", "%20") if follows else ""
        return self._urls[reference]


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
#: Added to the number of an element that makes no place.
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


WORDING: Final = _wording()
_made: Final = function("blocks_made", [c_void_p, c_void_p, c_char_p, c_size_t, c_void_p], c_int64)
_asked: Final = function("blocks_asked", [c_void_p] * 3)
_placed: Final = function("blocks_placed", [c_void_p, c_uint64, c_char_p, c_size_t], c_int64)
_columns: Final = function("blocks_columns", [c_void_p] * 3)
_drop: Final = function("blocks_drop", [c_void_p])


class _Cut(NamedTuple):
    """Blocks in the form of the core: texts, kinds by number, and places.

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
    """Yield the elements with a machine-readable time that replaces their text.

    "3 hours ago" reads otherwise tomorrow.
    """
    for node in tree.named("time"):
        if MOMENT.fullmatch(tree.attribute_of(node, "datetime") or ""):
            yield node


# -- the blocks ----------------------------------------------------------------


def main_text(tree: Tree, pieces: Sequence[Piece]) -> Blocks:
    """Return the blocks of these pieces: NFC, white space collapsed, without stamps and empty ones.

    Raises:
        ValueError: a piece has nodes that the tree has not.
        MemoryError: there is too little memory.
    """
    texts, bits, kinds, places = _cut(tree, pieces)
    named_kinds = tuple(map(KINDS.__getitem__, kinds))
    if not any(bits):
        return Blocks(tuple(texts), named_kinds, tuple(places))
    stay = _SETTLED.of([*compress(texts, bits)])
    for number, text in zip(compress(count(), bits), stay, strict=True):
        texts[number] = text
    if all(stay):
        return Blocks(tuple(texts), named_kinds, tuple(places))
    kept = tuple(compress(texts, texts)), tuple(compress(named_kinds, texts))
    return Blocks(*kept, tuple(compress(places, texts)))


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
