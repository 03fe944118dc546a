"""A parsed document as its tags, and the text after each of them.

Serialising a tree costs less than a tenth of walking over its nodes, and gives well-formed markup
whatever the page was. The compiled core cuts it and walks over it
(``freshet/compiled/markup.c``); what a tag means is said here.

Lexbor writes "<" and ">" as references in texts and attribute values. A "<" in a text begins a
tag or a comment, a tag ends at the next ">", and a "<" before that is part of a name. Exceptions
are comments and raw text (HTML, section 13.3), which are taken out.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from ctypes import (
    byref,
    c_bool,
    c_char_p,
    c_double,
    c_int64,
    c_size_t,
    c_uint64,
    c_void_p,
    string_at,
)
from dataclasses import dataclass
from functools import partial
from html import escape, unescape
from math import inf
from struct import Struct
from sys import intern, maxsize
from typing import Final, NamedTuple, TypeAlias
from unicodedata import normalize

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from freshet.compiled import function
from freshet.crawler.fetch.responses import HTML_TYPES
from freshet.crawler.reduce.blocks import KINDS, ROOT, Blocks, kind_of, named
from freshet.crawler.reduce.boilerplate import (
    FRAME_TAGS,
    INVISIBLE_TAGS,
    PAGE_EDGE_TAGS,
    PHRASES,
    is_frame_name,
    is_frame_role,
    is_hidden,
)
from freshet.crawler.reduce.nesting import NAMES
from freshet.crawler.urls import reference_head

# -- selectors ---------------------------------------------------------------

#: The attribute that marks selected elements in the tree, and its values.
MARK: Final = "data-freshet"
INCLUDED: Final = "included"
IGNORED: Final = "ignored"


@dataclass(frozen=True, slots=True)
class SelectorHints:
    """CSS selectors for the pages of one site; ValueError names one that is not valid.

    ``include``: on a page that has such elements, they are the whole main text. ``ignore``:
    such elements and their descendants are never part of it. ``strict``: a page without elements
    to include has no text.
    """

    include: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    strict: bool = False

    def __post_init__(self) -> None:
        for selector in (*self.include, *self.ignore):
            try:
                LexborHTMLParser("<p>").css(selector)
            except SelectolaxError as error:
                raise ValueError(
                    f"{selector!r} is not a CSS selector, such as .price or #main"
                ) from error

    def mark(self, tree: LexborHTMLParser) -> bool:
        """Mark each element that a selector matches; return whether one stays included."""
        included, ignored = (
            tree.css(", ".join(selectors)) if selectors else []
            for selectors in (self.include, self.ignore)
        )
        for nodes, verdict in ((included, INCLUDED), (ignored, IGNORED)):
            for node in nodes:
                node.attrs[MARK] = verdict
        return any(node.attrs[MARK] == INCLUDED for node in included)


NO_HINTS: Final = SelectorHints()


# -- references --------------------------------------------------------------

_PAGE_TYPES: Final = HTML_TYPES | {""}
#: The attribute of each linking element that holds the reference.
_LEADING: Final = {"a": "href", "area": "href", "link": "href", "iframe": "src", "frame": "src"}


def relations(attributes: Mapping[str, str]) -> list[str]:
    """Return the distinct tokens of a rel attribute, lower-case and sorted."""
    return sorted(set(attributes.get("rel", "").lower().split()))


def reference(name: str, attributes: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the URL reference and the relations of an element, if it leads to a page.

    Without the fragment, so that the parts of a page are one link.
    """
    target = attributes.get(_LEADING.get(name, ""))
    if target is None:
        return None
    target = reference_head(target)
    if name in {"iframe", "frame"}:
        return target, ""
    tokens = relations(attributes) if "rel" in attributes else []
    if name == "link" and (
        NAMES["navigable"].isdisjoint(tokens)
        or "stylesheet" in tokens
        or _media_type(attributes) not in _PAGE_TYPES
    ):
        return None
    return target, " ".join(tokens)


def _media_type(attributes: Mapping[str, str]) -> str:
    return attributes.get("type", "").partition(";")[0].strip().lower()


# -- tags --------------------------------------------------------------------
# The pages of a site repeat each other's tags by the thousand: the meaning of a tag is worked out
# once and remembered by its text. The numbers are those of the compiled core.

# Actions of the main-text walk at a tag; 0 is nothing.
PASS: Final = 0
OPEN: Final = 1
CLOSE: Final = 2
#: Blocks end at a void element of their level, such as ``br``.
BREAK: Final = 3
#: Leave the element out.
SKIP: Final = 4
#: Leave it out unless it holds the main text; ``EDGE``: or stands in it.
NAMED: Final = 5
EDGE: Final = 6
#: Leave it out unless elements that are not shown hold most of the page's text.
HIDDEN: Final = 7

# What else there is to know of a tag: it is an end tag, ...
ENDS: Final = 1
VOID: Final = 2
ANCHOR: Final = 4
BODY: Final = 8
TEMPLATE: Final = 16
#: The markup declares it the main element.
HOLDS_MAIN: Final = 32
#: It says something about the page, or only leads to another one.
TELLS: Final = 64
LEADS: Final = 128
#: It is marked as included, or has a text in place of an image.
SELECTED: Final = 256
IMAGE: Final = 512
#: Its machine-readable time is compared in place of its text.
MOMENT: Final = 1024

# Phrases that a block may be.
STAMP: Final = 1
CONTROL: Final = 2

# Zones: where a block stands. Bits, so that they are inherited by a single "or".
IN_MAIN: Final = 1
IN_ARTICLE: Final = 2
IN_LINK: Final = 4
IN_LIST: Final = 8
IN_TABLE: Final = 16
IN_TITLE: Final = 32
_ZONES: Final[dict[str, int]] = {
    "main": IN_MAIN,
    "article": IN_ARTICLE,
    **dict.fromkeys(("ul", "ol"), IN_LIST),
    # A table, a definition or a sentence is content, even where it is linked.
    **dict.fromkeys(("td", "th", "dt", "dd", "p", "pre"), IN_TABLE),
    **dict.fromkeys(("h2", "h3", "h4", "h5", "h6"), IN_TABLE),
    "h1": IN_TABLE | IN_TITLE,
}

VOID_TAGS: Final = NAMES["void"]
_FLAGS: Final = {**dict.fromkeys(VOID_TAGS, VOID), "a": ANCHOR, "body": BODY, "template": TEMPLATE}
_INLINE: Final = NAMES["inline"]
#: Elements about the whole page; for the last two the end tags count, too.
_PAGE_TAGS: Final = frozenset({"html", "body", "title", "svg", "noscript"})
_ENCLOSING: Final = frozenset({"svg", "noscript"})
#: Elements that say something about the page where they have an attribute.
_ABOUT_PAGE: Final = {"base": "href", "link": "href", "meta": "content"}

_ATTRIBUTE: Final = re.compile(r'\s(\S[^\s=]*)="([^"]*)"')
#: Without one of these, or the mark, in its tag an inline element is nothing but text, or a link.
_HIDDEN: Final = "hidden"
_ROLE: Final = "role="
_DATETIME: Final = "datetime="
_HOURS: Final = r"(?:[01]\d|2[0-3]):?[0-5]\d"
_DAY: Final = r"(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_TIME_OF_DAY: Final = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?"
_ZONE: Final = rf"(?:Z|[+-]{_HOURS})"
#: The valid machine-readable times (HTML, section 4.5.14); any digits of a second.
_MOMENT: Final = re.compile(
    rf"""\s*(?:\d{{4,}}(?:-(?:0[1-9]|1[0-2]))? | \d{{4,}}-W(?:0[1-9]|[1-4]\d|5[0-3])
    | (?:\d{{4,}}-|--)?{_DAY} | {_TIME_OF_DAY} | {_ZONE}
    | \d{{4,}}-{_DAY}[T\ ]{_TIME_OF_DAY}\ ?{_ZONE}?
    | P(?=[\dT])(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?
    | (?:\d+(?:\.\d+)?[WDHMSwdhms]\s*)+)\s*""",
    re.VERBOSE | re.ASCII,
)
_NO_ATTRIBUTES: Final[Mapping[str, str]] = {}
_ALL: Final = maxsize
#: Tags are remembered up to this number, at some 300 bytes each.
_REMEMBERED: Final = 20_000


class Tag(NamedTuple):
    """A start tag, or an end tag (``ends``) with the name of its element.

    ``meaning`` is what the compiled core is told of it; ``link`` is the result of
    :func:`reference`. ``attributes`` are kept only where a later step reads them.
    """

    name: str
    meaning: bytes
    ends: bool = False
    link: tuple[str, str] | None = None
    attributes: Mapping[str, str] = _NO_ATTRIBUTES


#: The number of the name, flags, the place in its parent (:func:`named`), the action of the
#: main-text walk and its action where frame counts as content, kind and zone of an element.
_MEANING: Final = Struct("=IIQBBBB4x")
_TEXT: Final = (0, PASS, PASS, 0, 0)


class _Tags(dict[str, Tag]):
    """Tags by their text between the brackets; each name has a number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._words_only = {
            name: self._tag(intern(name), _FLAGS.get(name, 0), _TEXT) for name in _INLINE - {"img"}
        }
        self._leads = self._tag("a", ANCHOR | LEADS, _TEXT).meaning

    def __missing__(self, text: str) -> Tag:
        name = text.partition(" ")[0]
        if (
            name not in _INLINE or _HIDDEN in text or _ROLE in text or MARK in text
            or (name == "time" and _DATETIME in text)
        ):  # fmt: skip
            tag = self._end(text[1:]) if text.startswith("/") else self._start(name, text)
        # Most of all distinct tags are links.
        elif name == "a" and ' href="' in text:
            # As Tag() does, in half of the time.
            tag = tuple.__new__(Tag, ("a", self._leads, False, _linked(text), _NO_ATTRIBUTES))
        elif name == "img":
            attributes = attributes_of(name, text)
            flags = VOID | IMAGE if "alt" in attributes else VOID
            tag = self._tag(name, flags, _TEXT)._replace(attributes=attributes)
        else:
            tag = self._words_only[name]
        self[text] = tag
        return tag

    def _tag(self, name: str, flags: int, block: tuple[int, int, int, int, int]) -> Tag:
        """Return a tag; ``block`` is its place, steps, kind and zone."""
        numbers = self.numbers
        number = numbers.setdefault(name, len(numbers))
        meaning = _MEANING.pack(number, flags, *block)
        return tuple.__new__(Tag, (name, meaning, bool(flags & ENDS), None, _NO_ATTRIBUTES))

    def _end(self, name: str) -> Tag:
        name = intern(name)
        step = PASS if name in _INLINE or name in INVISIBLE_TAGS else CLOSE
        tells = TELLS if name in _ENCLOSING else 0
        return self._tag(name, ENDS | tells | _FLAGS.get(name, 0), (0, step, step, 0, 0))

    def _start(self, name: str, text: str) -> Tag:
        name = intern(name)
        attributes = attributes_of(name, text)
        get = attributes.get
        element_id, classes = get("id"), get("class")
        inline = name in _INLINE
        link = reference(name, attributes)
        is_main = get("role") == "main" or element_id in NAMES["main_ids"]
        flags = _FLAGS.get(name, 0) if link is None else _FLAGS.get(name, 0) | LEADS
        if not inline and (is_main or name in {"main", "article"}):
            flags |= HOLDS_MAIN
        if name in _PAGE_TAGS or _ABOUT_PAGE.get(name) in attributes:
            flags |= TELLS
        if get(MARK) == INCLUDED:
            flags |= SELECTED
        if name in {"img", "area"} and "alt" in attributes:
            flags |= IMAGE
        if name == "time" and _MOMENT.fullmatch(get("datetime", "")):
            flags |= MOMENT
        place = 0 if inline else named(name, element_id, classes)
        steps = _steps(name, attributes, holds_main=bool(flags & HOLDS_MAIN))
        zone = _ZONES.get(name, 0) | (IN_MAIN if is_main else 0)
        tag = self._tag(name, flags, (place, *steps, KINDS.index(kind_of(name)), zone))
        return tuple.__new__(Tag, (name, tag.meaning, False, link, attributes))


def _linked(text: str) -> tuple[str, str] | None:
    """Return the :func:`reference` of a link, given the text between the brackets of its tag."""
    target = text.partition(' href="')[2].partition('"')[0]
    if "&" in target:
        target = unescape(target)
    if " rel=" in text:
        return reference("a", {**attributes_of("a", text), "href": target})
    return reference_head(target), ""


def attributes_of(name: str, text: str) -> Mapping[str, str]:
    """Return the attributes of a start tag, given its name and the text between its brackets."""
    if len(text) == len(name):
        return _NO_ATTRIBUTES
    found = dict(_ATTRIBUTE.findall(text, len(name)))
    return {key: unescape(value) for key, value in found.items()} if "&" in text else found


def _steps(name: str, attributes: Mapping[str, str], *, holds_main: bool) -> tuple[int, int]:
    """Return the step at a start tag, and the one where the frame is spared."""
    spared = step = _spared(name, attributes)
    # Also of a word in a sentence, such as a link that is styled as one of the menu.
    if spared == OPEN:
        if name in FRAME_TAGS or is_frame_role(attributes):
            step = SKIP
        elif not holds_main and is_frame_name(attributes.get("id"), attributes.get("class")):
            step = NAMED
        elif not holds_main and name in PAGE_EDGE_TAGS:
            step = EDGE
    return step, spared


def _spared(name: str, attributes: Mapping[str, str]) -> int:
    """Return the step where the frame is spared: only hidden text is left out."""
    if name in INVISIBLE_TAGS or attributes.get(MARK) == IGNORED:
        return PASS if name in VOID_TAGS else SKIP
    if name == "noscript" or is_hidden(attributes):
        return PASS if name in VOID_TAGS else HIDDEN
    if name in _INLINE or name[:1] in {"!", "?"}:
        return PASS
    return BREAK if name in VOID_TAGS else OPEN


_remembered = _Tags()

# -- documents ---------------------------------------------------------------

# Of long documents in the parser's process only, which has one thread.
_short: Final = partial(function, is_short=True)
_unmarked: Final = _short("unmarked", [c_char_p, c_size_t, c_void_p], c_int64)
_discard: Final = _short("discard", [c_void_p])
_cut: Final = _short("markup_cut", [c_char_p, c_size_t, c_void_p, c_void_p], c_void_p)
_mean: Final = _short("markup_mean", [c_void_p, c_char_p, c_size_t, c_size_t], c_int64)
_telling: Final = _short("markup_telling", [c_void_p, c_size_t, c_void_p, c_void_p], c_size_t)
_texts_in: Final = _short(
    "markup_texts_in", [*[c_void_p] * 2, *[c_size_t] * 3, *[c_void_p] * 2], c_int64
)
_walk: Final = _short(
    "markup_walk",
    [c_void_p, c_uint64, c_char_p, *[c_size_t] * 3, c_bool, c_bool, c_double, c_bool],
    c_int64,
)
_walked: Final = _short("markup_walked", [c_void_p] * 4, c_size_t)
_drop: Final = _short("markup_drop", [c_void_p])

#: An address that Cloudflare hides from machines: its bytes, each combined with the first one.
_HIDDEN_ADDRESS: Final = re.compile(
    rb'(<[^<>]*\sdata-cfemail="([0-9a-f]{2})((?:[0-9a-f]{2})+)"[^<>]*>)[^<]*'
)
#: The bytes of a block: its place (8), its kind, its zone, whether it is a link, whether NFC may
#: change it, and the phrases that it may be.
_BLOCK: Final = 16
#: What a walk found: blocks in document order, the zone of each, whether most of it stands in
#: anchors, how many characters were left out, by the step of their element (``NAMED`` or
#: ``HIDDEN``; at 0 the number of elements walked over), and the phrases that each block may be.
Walk: TypeAlias = tuple[Blocks, Sequence[int], Sequence[int], Sequence[int], Sequence[int]]


class Markup:
    """A document cut into tags and texts, in the memory of the compiled core.

    ``told`` are the tags that say something about the page, with their numbers in it: of equal
    tags that only lead elsewhere the first. ``distinct`` are the texts between the brackets of all
    tags, of equal ones the first. Templates are empty.

    Raises:
        MemoryError: there is too little memory.
    """

    def __init__(self, html: bytes) -> None:
        global _remembered  # noqa: PLW0603  # what is remembered is bounded
        if len(_remembered) > _REMEMBERED:
            _remembered = _Tags()
        tags = _remembered
        self._html = html  # it must outlive its columns
        names, length = c_void_p(), c_size_t()
        self._core = _cut(html, len(html), byref(names), byref(length))
        if self._core is None:
            raise MemoryError(f"no memory for the tags of {len(html):,} bytes")
        self.distinct = _decoded(names, length.value).split(">")[:-1]
        self._tags = list(map(tags.__getitem__, self.distinct))
        meanings = b"".join([tag.meaning for tag in self._tags])
        self._checked(_mean(self._core, meanings, len(self._tags), len(tags.numbers)))
        self.told = self._telling()

    def __del__(self) -> None:
        _drop(getattr(self, "_core", None))

    def _checked(self, result: int) -> int:
        """Return a result of the core that is no failure."""
        if result == -1:
            raise MemoryError(f"no memory for a document of {len(self._html):,} bytes")
        if result < 0:
            raise ValueError("the compiled core was told of what is not in the document")
        return result

    def _telling(self) -> list[tuple[int, Tag]]:
        most = 256
        while True:
            numbers, which = array("I", bytes(4 * most)), array("I", bytes(4 * most))
            count = _telling(self._core, most, _address(numbers), _address(which))
            if count <= most:
                tags = map(self._tags.__getitem__, which[:count])
                return list(zip(numbers[:count], tags, strict=True))
            most = count

    def texts(
        self, elements: Sequence[int], read: int = _ALL, written: int = _ALL
    ) -> list[tuple[str, Tag | None]]:
        """Return the text in each of these elements, white space collapsed; of none an image.

        ``read`` and ``written`` bound its characters before and after that. The image is the first
        one in an element without text that has a text in its place.
        """
        # Types of ctypes, one for each length, would cost more than all the rest.
        numbers, images = array("I", elements), array("q", bytes(8 * len(elements)))
        columns, found = (_address(numbers), len(elements)), c_void_p()
        length = _texts_in(
            self._core, *columns, *(read, written), *(_address(images), byref(found))
        )
        texts = _decoded(found, self._checked(length)).split("\n")
        tags = (self._tags[image] if image >= 0 else None for image in images)
        return list(zip(texts[:-1], tags, strict=True))

    def walk(
        self,
        *,
        selected: bool = False,
        spares: bool = False,
        bar: float = inf,
        shows_hidden: bool = False,
    ) -> Walk:
        """Return the blocks in the body, or in the elements that are marked as included.

        Their texts are NFC with white space collapsed and without ignorable characters
        (:func:`.blocks.compared`), none empty.
        The machine-readable time of a ``time`` element stands in place of its text, from then on.
        An element whose name sounds like frame is none with more than ``bar`` characters;
        ``spares``: frame counts as content.
        """
        options = *PHRASES, selected, spares, bar, shows_hidden
        count = self._checked(_walk(self._core, ROOT, *options))
        blocks, texts, left_out = c_void_p(), c_void_p(), c_void_p()
        length = _walked(self._core, byref(blocks), byref(texts), byref(left_out))
        rows = string_at(blocks, count * _BLOCK) if count else b""
        lines = _decoded(texts, length).split("\n")[:-1]
        columns = Blocks(
            tuple(
                [
                    normalize("NFC", line) if is_odd else line
                    for line, is_odd in zip(lines, rows[11::_BLOCK], strict=True)
                ]
            ),
            tuple([KINDS[kind] for kind in rows[8::_BLOCK]]),
            tuple(memoryview(rows).cast("Q")[::2].tolist()),
        )
        counts = memoryview(string_at(left_out, 8 * (HIDDEN + 1))).cast("Q").tolist()
        return columns, rows[9::_BLOCK], rows[10::_BLOCK], counts, rows[12::_BLOCK]


def _address(column: array[int]) -> int:
    return column.buffer_info()[0]


def _decoded(octets: c_void_p, length: int) -> str:
    return string_at(octets, length).decode("utf-8", "surrogatepass") if length else ""


def read(html: str) -> Markup:
    """Cut a document that Lexbor wrote."""
    return Markup(_shown(html))


def _shown(html: str) -> bytes:
    """Return the document without comments and raw texts, but for those that readers see."""
    octets, copy = html.encode("utf-8", "surrogatepass"), c_void_p()
    length = _unmarked(octets, len(octets), byref(copy))
    if length < 0:
        raise MemoryError(f"no memory for a document of {len(octets):,} bytes")
    shown = string_at(copy, length)
    _discard(copy)
    return _addresses(shown)


def shown_addresses(html: str) -> str:
    """Return a page with the addresses that Cloudflare hides in it."""
    if "data-cfemail" not in html:
        return html
    return _addresses(html.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _addresses(html: bytes) -> bytes:
    return _HIDDEN_ADDRESS.sub(_with_address, html) if b"data-cfemail" in html else html


def _with_address(found: re.Match[bytes]) -> bytes:
    """Return the tag and the address that a script would write in place of the text.

    The same page comes with and without this protection, and the text hides which address changed.
    """
    key = int(found[2], 16)
    address = bytes(byte ^ key for byte in bytes.fromhex(found[3].decode()))
    return found[1] + escape(address.decode("utf-8", "replace"), quote=False).encode()
