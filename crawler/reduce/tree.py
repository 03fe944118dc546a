"""The tree of a page in columns: what every view of a page reads.

:mod:`.tree_parser` makes it. What elements and roles mean is data (``elements.toml``).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from ctypes import c_char_p, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from itertools import chain
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final, NamedTuple, cast

import numpy as np
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, SelectolaxError

from freshet.compiled import function

#: Bounds on a calm body: its tags, and the work that they can cause beyond the work of every body,
#: a tenth of a second.
_CALM_TAGS: Final = 32_000
_CALM_NS: Final = 1e8
#: Measured with Lexbor of selectolax 1.0.2: a tag searches all open elements, rebuilds formatting
#: elements, and compares each attribute with those before it; a text that follows another one is
#: added to it in another place. A new link costs us as much.
_SEARCH_NS: Final = 2.5
_REBUILD_NS: Final = 240.0
_COMPARE_NS: Final = 1.6
_JOIN_NS: Final = 0.15
_LINK_NS: Final = 12_000.0

#: What elements are and mean.
ELEMENTS: Final = tomllib.loads((files(__package__) / "elements.toml").read_text("utf-8"))
#: Names of elements, relations and classes by what they have in common.
NAMES: Final = {what: frozenset(names.split()) for what, names in ELEMENTS["sets"].items()}
_CLOSES: Final = {name: closed.split() for name, closed in ELEMENTS["closes"].items()}
#: Elements by their treatment in the compiled core: their kinds there, as bits.
_KINDS: Final = (
    (1, NAMES["childless"]),
    # They may be open between an element and the tag that ends it.
    (2, NAMES["yielding"].union(_CLOSES)),
    (4, "script style textarea title xmp iframe noembed noframes".split()),
    # Those that are rebuilt (HTML, section 13.2.4.3), but ``a``, which is never nested.
    (8, "b big code em font i nobr s small strike strong tt u".split()),
    (16, NAMES["void"] - NAMES["frames"]),
    (32, NAMES["shapes"]),
    (64, NAMES["closed"]),
    (128, NAMES["in_table"]),
    (256, {"select", "frameset"}),
    # Those that can lead elsewhere.
    (512, "a area frame iframe link".split()),
)


def _entries() -> Iterator[int]:
    """Yield the fields of each name: its letters, its bit, the bits it closes, its kinds."""
    bits = {name: 1 << i for i, name in enumerate(sorted(set().union(*_CLOSES.values())))}
    for name in sorted(set().union(*(names for _, names in _KINDS)), key=_letters):
        closes = sum(bits[closed] for closed in _CLOSES.get(name, ()))
        kinds = sum(bit for bit, names in _KINDS if name in names)
        yield from (_letters(name), bits.get(name, 0), closes, kinds)


def _letters(name: str) -> int:
    return int.from_bytes(name.encode(), "little")


_TABLE: Final = tuple(_entries())
_NAMES: Final = ((c_uint64 * len(_TABLE))(*_TABLE), len(_TABLE) // 4)
_short: Final = partial(function, is_short=True)
_max_depth: Final = _short("max_depth", [c_char_p, c_size_t, c_void_p, c_size_t], c_int64)
_holds: Final = _short("holds", [c_char_p, c_size_t, c_char_p], c_uint32)
_parser_work: Final = _short("parser_work", [c_char_p, c_size_t, c_void_p, c_size_t, c_void_p])


class _Work(NamedTuple):
    """Bounds on the work that a body can cause in a parser, for any reading of its bytes.

    Its ``tags`` of both kinds, the elements that may be open at once (``deepest``; the parser may
    add twice as many), the formatting elements that may be rebuilt in others (``left``), the sum
    of the ``squares`` of the numbers of attributes that tags may have, the tags that the parser
    may have ``ignored``, so that it joins the texts around them, the bytes of ``text``, and the
    ``links`` that we read then.
    """

    tags: int
    deepest: int
    left: int
    squares: int
    ignored: int
    text: int
    links: int


def parser_work(body: bytes) -> _Work:
    """Bound the work of a parser, in linear time."""
    bounds = (c_uint64 * len(_Work._fields))()
    _parser_work(body, len(body), *_NAMES, bounds)
    return _Work(*bounds)


def is_calm(body: bytes, times: int = 1) -> bool:
    """Return whether no order of this body's tags can make a parser slow or hungry.

    ``times`` multiplies its bounds.
    """
    tags, deepest, left, squares, ignored, text, links = parser_work(body)
    ns = tags * (_SEARCH_NS * deepest + _REBUILD_NS * left) + _COMPARE_NS * squares
    ns += _JOIN_NS * ignored * text + _LINK_NS * links
    return tags <= times * _CALM_TAGS and ns <= times * _CALM_NS


def holds(body: bytes, sought: bytes) -> int:
    """Return which of some texts a body holds, a bit each, the first one's the lowest.

    At most 32 are given, each with a NUL after it. All at once, because most bodies contain none.
    """
    return int(_holds(body, len(body), sought))


def start_tags(body: bytes) -> int:
    """Over-count the start tags in a fraction of the time of :func:`max_depth`."""
    return body.count(b"<") - body.count(b"</")


def max_depth(body: bytes) -> int:
    """Return the greatest number of elements open at once, according to the tags.

    Comments and the contents of ``script``, ``style`` and their like are skipped; void
    elements do not nest, nor do elements with an implied end tag in themselves. An end tag
    without a start tag near is ignored, so that errors add to the depth.

    Raises:
        MemoryError: there is too little memory, four times the bytes of the body at worst.
    """
    depth = _max_depth(body, len(body), *_NAMES)
    if depth < 0:
        raise MemoryError(f"no memory for the depth of {len(body):,} bytes")
    return int(depth)


#: Without mutation events: with them every ``option`` costs a walk over all those before.
PARSER_OPTIONS: Final = LexborDocumentOptions.WO_EVENTS.value
#: Elements deeper than this are not nodes; it bounds the recursion of views.
LEVELS: Final = 101


class TreeLimits(NamedTuple):
    """Bounds on a tree: nodes or attributes, bytes of texts or values, seconds of a processor.

    ``memory`` is in bytes that the parser takes; ``links`` bounds those that are read.
    """

    nodes: int = 1 << 24
    octets: int = 1 << 28
    seconds: float = 60.0
    memory: int = 1 << 32
    links: int = 0


#: The parser's process has less memory, and ends sooner.
NO_LIMITS: Final = TreeLimits()

# -- what elements mean --------------------------------------------------------

#: Bits by the names of traits and places.
TRAITS: Final = {trait: 1 << i for i, trait in enumerate(ELEMENTS["traits"])}
PLACES: Final = {place: 1 << i for i, place in enumerate(ELEMENTS["places"])}
UNSEEN: Final = PLACES["unseen"]
LINK: Final = PLACES["link"]
CONTROL: Final = PLACES["control"]
ACTS: Final = TRAITS["control"]
ALTERNATIVES: Final = TRAITS["alternatives"]
PREFERRED: Final = TRAITS["preferred"]
FIRST: Final = TRAITS["first"]
MEDIUM: Final = TRAITS["medium"]
LASTING, RAW, ANCHOR, PICTURE = (TRAITS[trait] for trait in ("lasting", "raw", "anchor", "picture"))
REL, ALT = "rel", "alt"
LEADS_BY: Final[Mapping[str, str]] = ELEMENTS["leads_by"]
#: The name of texts.
TEXT: Final = "#text"


class _Meaning(NamedTuple):
    """The meaning of a name: its traits, and the places that it makes and that it never makes.

    ``shown`` is the number of what is shown of an empty one. ``tells`` has bits of elements and
    attributes that stand in names: :data:`_ALONE` for "[role=note]", :data:`_WITH` for
    "aside[class=note]". ``leads_by`` is the number of the attribute by which it leads elsewhere.
    """

    place: int = 0
    never: int = 0
    trait: int = 0
    shown: int = 0
    tells: int = 0
    leads_by: int = 0


_ALONE: Final = 1
_WITH: Final = 2
_WITH_ATTRIBUTE: Final = re.compile(r"([^\[]*)\[([^=\]]+)=?([^\]]*)\]")


def _by_name(section: str, bits: Mapping[str, int]) -> dict[str, int]:
    """Return the bits of each name in a section of elements.toml."""
    found = dict[str, int]()
    for what, words in ELEMENTS[section].items():
        for name in (name for word in words.split() for name in sorted(NAMES.get(word, {word}))):
            found[name] = found.get(name, 0) | bits[what]
    return found


#: Attributes with the source of an image, and with sets of such, the first one first.
SOURCES: Final = ("src", "data-src", "data-original", "data-lazy-src", "data-hi-res-src")
SOURCE_SETS: Final = ("srcset", "data-srcset", "data-lazy-srcset")
#: Names that the core looks for by themselves.
_SOUGHT: Final = (
    *"br role id class itemprop data-testid style hidden aria-hidden href".split(),
    *"body http-equiv content name rel type lang xml:lang title".split(),
    *(*sorted(NAMES["code"] | NAMES["inline"]), *"sup sub rt time datetime".split()),
    # Those that documents are written by.
    *"alt class width height colspan rowspan start type value reversed display math".split(),
    *(*SOURCES, *SOURCE_SETS),
)


def _meanings() -> dict[str, _Meaning]:
    """Return the meaning of each name; its place in the dictionary is its number in every tree."""
    places, never = _by_name("places", PLACES), _by_name("never", PLACES)
    traits, shown = _by_name("traits", TRAITS), ELEMENTS["shown"]
    named = dict.fromkeys((*places, *never, *traits, *shown))
    tells = dict[str, int]()
    for tag, attribute, _ in (
        match.groups() for match in map(_WITH_ATTRIBUTE.fullmatch, named) if match
    ):
        bit = _WITH if tag else _ALONE
        for name in filter(None, (tag, attribute)):
            tells[name] = tells.get(name, 0) | bit
    said = (TEXT, *shown.values(), *LEADS_BY.values(), REL, ALT)
    numbers = {name: i for i, name in enumerate(dict.fromkeys(said))}
    return {
        name: _Meaning(
            place=places.get(name, 0),
            never=never.get(name, 0),
            trait=traits.get(name, 0),
            shown=numbers[shown.get(name, TEXT)],
            tells=tells.get(name, 0),
            leads_by=numbers[LEADS_BY.get(name, TEXT)],
        )
        for name in dict.fromkeys((*numbers, *named, *tells, *_SOUGHT, *LEADS_BY))
    }


MEANINGS: Final = _meanings()
#: Names with a meaning, by their numbers in every tree.
KNOWN: Final = tuple(MEANINGS)
NUMBERS: Final = {name: number for number, name in enumerate(KNOWN)}
NOTHING: Final = _Meaning()
_SMALL: Final = str.maketrans(ascii_uppercase, ascii_lowercase)
_SPACES: Final = re.compile("[\t\n\f\r ;]+")
_JOINTS: Final = re.compile("[-_]")


def meaning_of(tag: str, attributes: Mapping[str, str | None]) -> _Meaning:
    """Return the meaning of an element by all of its names."""
    own = MEANINGS.get(tag, NOTHING)
    names = chain.from_iterable(
        _names(own, tag, *attribute)
        for attribute in attributes.items()
        if MEANINGS.get(attribute[0], NOTHING).tells
    )
    for means in (MEANINGS[name] for name in names if name in MEANINGS):
        own = own._replace(
            place=own.place | means.place,
            never=own.never | means.never,
            trait=own.trait | means.trait,
            shown=max(own.shown, means.shown),
        )
    return own._replace(place=own.place & ~own.never)


def _names(own: _Meaning, tag: str, attribute: str, value: str | None) -> Iterator[str]:
    """Yield the names that an element of that meaning has by an attribute."""
    words = _SPACES.split((value or "").translate(_SMALL))
    parts = [part for word in words for part in (word, *_JOINTS.split(word))]
    for before, bit in (("", _ALONE), (tag, _WITH & own.tells)):
        if MEANINGS[attribute].tells & bit:
            yield f"{before}[{attribute}]"
            yield from (f"{before}[{attribute}={part}]" for part in parts)


# -- the tree ------------------------------------------------------------------

#: Characters of a text in a link that are read, and of its anchor.
_READ: Final = 2_000
_WRITTEN: Final = 200


def collapsed(text: str) -> str:
    """Return the beginning of a link's anchor, with white space collapsed."""
    return " ".join(text[:_READ].split())[:_WRITTEN].rstrip()


@dataclass(frozen=True, slots=True)
class Tree:
    """The elements and texts of a page in document order, as columns; the first is the root.

    ``parent`` is the number of the element around a node, for the root its own. ``end`` is the
    number of the next node after its contents. ``name`` is a number in ``names``, 0 for a text.
    ``text_at`` to ``text_end`` are its octets in ``text``, which is UTF-8: for an element, of all
    texts in it. ``said_at`` to ``said_end`` are its attributes: ``attribute`` is a number in
    ``names``, ``owner`` the element's number, ``value_at`` to ``value_end`` are octets in
    ``values``.

    ``place`` has the bits of :data:`PLACES` of the element and its ancestors, ``trait`` its bits of
    :data:`TRAITS`, ``holds`` the traits of the visible elements in it. ``chars`` counts the
    characters of its visible texts without white space around each, ``linked`` those in
    links below it. Texts in a control, such as a button, count in it and not around it; only a
    control that has some is held.

    An element that is empty may show something all the same (``[shown]`` of elements.toml), such as
    the value of an input; that is a text in it.

    Comments are left out, and the texts around one are one. Elements below the level
    :data:`LEVELS` are left out, too, and their texts belong to the element above; but for lasting
    ones, which stand in that, empty. Templates are empty.

    ``links`` are elements that lead elsewhere: of those of the trait ``anchor`` that have the same
    reference and relations the first. ``references``, without fragments, ``relations`` and
    ``anchors`` are texts of theirs, each with a newline behind it; an anchor is the text in it, or
    else the alternative text of the first picture. ``cut`` says why this is only the beginning of
    the page.

    ``listed`` are the elements of each name in :data:`LISTED`, in document order.
    ``plain`` are the values as text if they are ASCII, else an empty one.

    ``nodes`` and ``said`` are the same columns in the form of the core, rows of 32-bit numbers.
    """

    names: tuple[str, ...]
    text: bytes
    values: bytes
    nodes: bytes
    said: bytes
    parent: memoryview
    end: memoryview
    name: memoryview
    place: memoryview
    trait: memoryview
    holds: memoryview
    chars: memoryview
    linked: memoryview
    text_at: memoryview
    text_end: memoryview
    said_at: memoryview
    said_end: memoryview
    owner: memoryview
    attribute: memoryview
    value_at: memoryview
    value_end: memoryview
    links: memoryview
    references: str
    relations: str
    anchors: str
    cut: str
    listed: Mapping[str, Sequence[int]]
    plain: str

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def body(self) -> int:
        """The body, or the root of a document without one."""
        return next(self.named("body"), 0)

    def tag(self, node: int) -> str:
        """Return the name of an element, or :data:`TEXT`."""
        return self.names[self.name[node]]

    def named(self, name: str) -> Iterator[int]:
        """Yield the elements of that name in document order."""
        if name in LISTED:
            yield from self.listed.get(name, ())
        elif (number := self._number(name)) is not None:
            rows = np.frombuffer(self.nodes, np.uint32)[_NAME_COLUMN::_NODE_COLUMNS]
            yield from (rows == number).nonzero()[0].tolist()

    def saying(self, name: str) -> Iterator[int]:
        """Yield the elements that have an attribute of that name in document order."""
        if (number := self._number(name)) is not None:
            owner, which = np.frombuffer(self.said, np.uint32).reshape(-1, SAID_COLUMNS).T[:2]
            yield from owner[which == number].tolist()

    def values_of(self, name: str) -> list[tuple[int, str]]:
        """Return the elements that have an attribute of that name, each with its value."""
        if (number := self._number(name)) is None:
            return []
        rows = np.frombuffer(self.said, np.uint32).reshape(-1, SAID_COLUMNS)
        owners, _, begins, ends = rows[rows[:, 1] == number].T.tolist()
        if plain := self.plain:
            values = [plain[begin:end] for begin, end in zip(begins, ends, strict=True)]
        else:
            octets = (self.values[begin:end] for begin, end in zip(begins, ends, strict=True))
            values = [each.decode() for each in octets]
        return [*zip(owners, values, strict=True)]

    def _number(self, name: str) -> int | None:
        """Return the number of a name, None if the page does not have it."""
        if name in NUMBERS:
            return NUMBERS[name]
        return self.names.index(name) if name in self.names else None

    def children(self, node: int) -> list[int]:
        """Return the nodes directly in an element, but for those that readers do not see."""
        place, end = self.place, self.end
        child, stop = node + 1, end[node]
        found: list[int] = []
        while child < stop:
            if not place[child] & UNSEEN:
                found.append(child)
            child = end[child]
        return found

    def elements(self, node: int) -> list[int]:
        """Return the elements among its children."""
        return [child for child in self.children(node) if self.name[child]]

    def attributes(self, node: int) -> dict[str, str]:
        """Return the attributes of an element; a value may be empty."""
        names, attribute, begin, end = self.names, self.attribute, self.value_at, self.value_end
        said = range(self.said_at[node], self.said_end[node])
        if plain := self.plain:
            return {names[attribute[i]]: plain[begin[i] : end[i]] for i in said}
        values = self.values
        return {names[attribute[i]]: values[begin[i] : end[i]].decode() for i in said}

    def attribute_of(self, node: int, name: str) -> str | None:
        """Return the value of an attribute, None if the element has none of that name."""
        for i in range(self.said_at[node], self.said_end[node]):
            if self.names[self.attribute[i]] == name:
                return self.values[self.value_at[i] : self.value_end[i]].decode()
        return None

    def text_of(self, node: int) -> str:
        """Return the text of a node, seen or not."""
        return self.text[self.text_at[node] : self.text_end[node]].decode()


#: Names that views of every page look for.
LISTED: Final = frozenset("base body link meta time title".split())
#: By the number of a name, whether it is one of them; the last one is for all without a meaning.
_IS_LISTED: Final = np.array([*(name in LISTED for name in KNOWN), False])
_NODE_COLUMNS: Final = 12
#: The place of the name among them.
_NAME_COLUMN: Final = 2
SAID_COLUMNS: Final = 4
#: URLs are read without them (WHATWG URL, section 4.4).
BREAKS: Final = re.compile(r"[\t\n\r]")


def tree_from(names: tuple[str, ...], columns: Sequence[bytes], octets: Sequence[bytes]) -> Tree:
    """Return the tree of these columns and texts, as its fields are ordered."""
    nodes, said, links = columns
    texts = [each.decode() for each in octets[2:]]
    rows, attributes = memoryview(nodes).cast("I"), memoryview(said).cast("I")
    numbers = [rows[i::_NODE_COLUMNS] for i in range(_NODE_COLUMNS)]
    numbers += [attributes[i::SAID_COLUMNS] for i in range(SAID_COLUMNS)]
    numbers.append(memoryview(links).cast("I"))
    listed: dict[str, list[int]] = {}
    column = np.frombuffer(nodes, np.uint32)[_NAME_COLUMN::_NODE_COLUMNS]
    for node in _IS_LISTED.take(column, mode="clip").nonzero()[0].tolist():
        listed.setdefault(names[numbers[_NAME_COLUMN][node]], []).append(node)
    plain = octets[1].decode() if octets[1].isascii() else ""
    return Tree(names, *cast(Any, (*octets[:2], nodes, said, *numbers, *texts, listed, plain)))


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
