"""Pages of HTML that the compiled core reads by one call (``freshet/compiled/page.c``).

It takes the steps of :mod:`.head`, :mod:`.links`, :mod:`.content`, :mod:`.main_text` and
:mod:`.sketch` one after the other; objects are made of the result at the end. If the core needs
information, it calls a function here once for the whole page.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Sequence
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    addressof,
    byref,
    c_bool,
    c_char_p,
    c_double,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
    cast,
    string_at,
)
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from typing import Any, Final

from freshet.compiled import function
from freshet.crawler.errors import TreeLimit
from freshet.crawler.reduce import content, links, main_text, sketch
from freshet.crawler.reduce.blocks import KINDS, ROOT, Blocks, named
from freshet.crawler.reduce.boilerplate import are_controls
from freshet.crawler.reduce.content import model
from freshet.crawler.reduce.links import (
    PRAGMAS,
    RELATIONS,
    TDM_META,
    PageHead,
    answers_about,
    base_by,
    parts_of,
)
from freshet.crawler.reduce.main_text import MOMENT, settled
from freshet.crawler.reduce.pieces import ELEMENTS, Pieces, columns_of, know
from freshet.crawler.reduce.tree import NUMBERS, PARSER_OPTIONS, PLACES, TRAITS, Tree, TreeLimits
from freshet.crawler.reduce.tree_parser import failure_of, is_usable, limits_told, tree_at
from freshet.crawler.urls import without_fragment
from freshet.storage.records import Links

#: Results of the core: Python failed to answer, the page must be read again as readers see it, and
#: judging its pieces takes too long.
_NOT_ANSWERED, _SHOWN_OTHERWISE, _TOO_MANY_PIECES = -6, -7, -8
_NO_MEMORY: Final = -1
_COLUMNS: Final = 9


class _Reading(threading.local):
    """The page that a thread reads, and the error of an answer."""

    url = base_url = ""
    error: BaseException | None = None


_READING: Final = _Reading()


# -- answers -------------------------------------------------------------------


def _base(question: bytes) -> bytes:
    _READING.base_url = base_by(question.decode(), _READING.url)
    return parts_of(_READING.base_url)


def _links(question: bytes) -> bytes:
    said = iter(question.decode().split("\0")[:-1])
    return answers_about([*zip(*[said] * 5, strict=True)], _READING.base_url)


def _characters(question: bytes) -> bytes:
    know(memoryview(question).cast("I"))
    return b""


def _names(question: bytes) -> bytes:
    vocabulary, _ = model()
    rows, odds = array("I"), array("d")
    values: dict[str, str] = {}
    said = iter(question.decode().split("\0")[:-1])
    for name in said:
        if name:
            values[name] = next(said)
            continue
        bits, found = vocabulary.answer(values)
        rows.extend((bits, len(found)))
        odds.extend(found)
        values = {}
    return rows.tobytes() + odds.tobytes()


def _title(question: bytes) -> bytes:
    (count,) = memoryview(question[:4]).cast("I")
    begin, end = 4, 4 + 8 * count
    texts, _, title = question[end:].rpartition(b"\n")
    return array("q", content.titles(question[begin:end], texts, title.decode())).tobytes()


def _moments(question: bytes) -> bytes:
    matches = map(MOMENT.fullmatch, question.decode().split("\0")[:-1])
    return bytes([match is not None for match in matches])


def _places(question: bytes) -> bytes:
    said = iter(question.decode().split("\0")[:-1])
    return array("Q", map(named, said, said, said)).tobytes()


def _classes(question: bytes) -> bytes:
    sketch.classify(memoryview(question).cast("I"))
    return b""


def _letters(question: bytes) -> bytes:
    return question.decode().lower().encode()


#: In the order of the core's numbers of questions.
_ANSWERS: Final[Sequence[Callable[[bytes], bytes]]] = (
    *(_base, _links, _characters, _names, _title, are_controls),
    *(_moments, settled, _places, _classes, _letters),
)


def _asked(about: int, question: int, length: int, page: int) -> int:
    try:
        answer = _ANSWERS[about](string_at(question, length))
    except BaseException as error:  # noqa: BLE001  # raised again behind the call
        _READING.error = error
        return _NOT_ANSWERED
    return 0 if _answered(page, answer, len(answer)) else _NO_MEMORY


_ASK: Final = CFUNCTYPE(c_int64, c_int64, c_void_p, c_size_t, c_void_p)(_asked)


# -- the core ------------------------------------------------------------------


class _Reader(Structure):
    """The method of reading pages; the objects that it points at must live as long."""

    _fields_ = (
        *[(name, c_void_p) for name in "vocabulary elements wording trees".split()],
        *[(name, c_void_p) for name in "classes factors summands".split()],
        *[(f"text{i}", c_char_p) for i in range(5)],
        *[(f"length{i}", c_size_t) for i in range(5)],
        *(("slice", c_size_t), ("seconds", c_double), ("key", c_uint64 * 2), ("root", c_uint64)),
        *[(name, c_uint32) for name in "options version".split()],
        *[(f"name{i}", c_uint32) for i in range(16)],
        *[(f"bit{i}", c_uint32) for i in range(4)],
        ("ask", c_void_p),
    )  # fmt: skip


#: Names and places that the core looks for, in its order.
_NAMES: Final = (
    "base body link meta title time href content http-equiv name rel type datetime lang xml:lang"
    " title"
).split()
_PLACES: Final = "page_head drawing noscript".split()


@cache
def _reader() -> tuple[_Reader, Any]:
    """Return the method of reading pages, with the objects that it points at.

    Raises:
        OSError: the core cannot call the parser.
    """
    if not is_usable():
        raise OSError("the compiled core cannot use the parser of selectolax")
    vocabulary, trees = model()
    factors, summands = sketch.permutations()
    lines = ["".join(f"{word}\n" for word in words).encode() for words in (PRAGMAS, RELATIONS)]
    texts = links.NAVIGABLE, links.TRACKING, links.PAGE_TYPES, *lines
    reader = _Reader(
        *(vocabulary.address, ELEMENTS.address, main_text.WORDING.address, trees.address),
        *(addressof(sketch.CLASSES), factors.ctypes.data, summands.ctypes.data),
        *(*texts, *map(len, texts), sketch.SLICE, content.SECONDS, links.KEYS, ROOT),
        *(PARSER_OPTIONS, sketch.PLAIN_VERSION, *map(NUMBERS.__getitem__, _NAMES)),
        *(TRAITS["anchor"], *map(PLACES.__getitem__, _PLACES)),
        cast(_ASK, c_void_p),
    )
    return reader, (texts, factors, summands)


_made: Final = function(
    "page_made",
    [
        *(POINTER(_Reader), c_char_p, c_size_t, c_bool, c_char_p, c_char_p, c_size_t),
        *(c_char_p, c_size_t, c_size_t, c_void_p),
    ],
    c_int64,
)
_answered: Final = function("page_answered", [c_void_p, c_char_p, c_size_t], c_bool)
_told: Final = function("page_told", [c_void_p, c_void_p], c_void_p)
_tree: Final = function("page_tree", [c_void_p], c_void_p)
_chosen: Final = function("page_chosen", [c_void_p] * 3)
_drop: Final = function("page_drop", [c_void_p])


class _Core:
    """A page that the core has, which is given back with this."""

    __slots__ = ("address",)

    def __init__(self, address: c_void_p) -> None:
        self.address = address

    def __del__(self) -> None:
        _drop(self.address)


class ReadPage:
    """A page as the core has read it.

    Attributes:
        head: its statements about itself.
        links: its links; ``is_cut``: it has more.
        blocks: its main text.
        sketch: the summary of that.
    """

    #: No selectors of a site were looked at.
    has_included = False

    def __init__(self, core: _Core, base_url: str, *, is_cut: bool) -> None:
        ends = (c_size_t * _COLUMNS)()
        at = _told(core.address, ends)
        if at is None:
            raise MemoryError("no memory for what is told of a page")
        told = string_at(at, ends[-1])
        *_, strings, text, kind, place, _ = ends
        texts, kinds, places = told[strings:text], told[text:kind], told[kind:place]
        # The statements of the head, and then the columns of the links.
        said, first = told[:strings].decode().split("\0"), told.count(b"\0", 0, ends[0])
        count = (len(said) - 1 - first) // 4
        rows = iter(said[:first])
        self._core = core
        self.head = PageHead(zip(*[rows] * 4, strict=True), base_url)
        ends_of = [first + count * i for i in range(5)]
        self.links = Links(*[tuple(said[i:j]) for i, j in pairwise(ends_of)])
        self.is_cut = is_cut
        self.blocks = Blocks(
            tuple(texts.decode().split("\n")[:-1]),
            tuple(map(KINDS.__getitem__, kinds)),
            tuple(memoryview(places).cast("Q")),
        )
        self.sketch = sketch.Sketch.from_bytes(told[place:])

    @cached_property
    def tree(self) -> Tree:
        """Return the tree of the page."""
        return tree_at(c_void_p(_tree(self._core.address)))

    def chosen(self) -> tuple[Tree, Pieces]:
        """Return the tree of the page, and the pieces that are its content."""
        (numbers,) = columns_of(_chosen, self._core.address, 1)
        return self.tree, Pieces(self.tree).only(memoryview(numbers).cast("I"))


@lru_cache(maxsize=16)
def _asked_for(agent_token: str, max_links: int) -> tuple[TreeLimits, bytes, bytes]:
    """Return the limits of a page, the same for the core, and the names of its directives."""
    # Of two links one may lead where the other does.
    limits = TreeLimits(links=2 * max_links)
    return limits, limits_told(limits), f"robots\n{agent_token.lower()}\n{TDM_META}\n".encode()


def read(
    html: bytes, url: str, agent_token: str, max_links: int, *, is_shown: bool = False
) -> ReadPage | None:
    """Read a page of UTF-8; None if readers see another one, and it is not ``is_shown`` so.

    Raises:
        TreeLimit: it is beyond a limit.
        MemoryError: there is too little memory.
    """
    base_url = without_fragment(url)
    _READING.url, _READING.base_url = url, base_url
    limits, told, robots = _asked_for(agent_token, max_links)
    base, core = parts_of(base_url), c_void_p()
    reader, _ = _reader()
    about = (html, len(html), is_shown, told, base, len(base))
    names = robots, len(robots), max_links
    result = _made(reader, *about, *names, byref(core))
    if core.value is not None:
        return ReadPage(_Core(core), _READING.base_url, is_cut=result > 0)
    if result == _SHOWN_OTHERWISE:
        return None
    if result == _NOT_ANSWERED:
        error, _READING.error = _READING.error, None
        raise error or SystemError("the core was not answered")
    if result == _TOO_MANY_PIECES:
        raise TreeLimit(f"its pieces took more than {content.SECONDS:g} s of a processor")
    raise failure_of(result, limits, len(html))
