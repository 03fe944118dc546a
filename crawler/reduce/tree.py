"""The tree of a page in columns: what every view of a page reads.

One call of the compiled core (``freshet/compiled/tree.c``) makes it from the Lexbor inside
selectolax. :func:`reference` makes the same from selectolax's public interface, slower: it says
what the columns mean, runs where the core cannot, and is what tests compare the core with. What
elements and roles mean is data (``elements.toml``).
"""

from __future__ import annotations

import logging
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from ctypes import (
    CDLL,
    POINTER,
    byref,
    c_bool,
    c_char_p,
    c_int64,
    c_size_t,
    c_uint32,
    c_void_p,
    string_at,
)
from ctypes import cast as cast_pointer
from dataclasses import astuple, dataclass, fields
from functools import cache
from importlib.metadata import version
from itertools import accumulate, chain, islice, pairwise
from string import ascii_lowercase, ascii_uppercase
from struct import Struct
from threading import Lock
from typing import Any, Final, NamedTuple, cast

import numpy as np
import selectolax.lexbor
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from freshet.compiled import function
from freshet.crawler.reduce.nesting import ELEMENTS, NAMES
from freshet.crawler.reduce.selectors import IGNORED, INCLUDED, MARK
from freshet.crawler.urls import reference_head

log = logging.getLogger(__name__)

#: Without mutation events: with them every ``option`` costs a walk over all those before.
PARSER_OPTIONS: Final = LexborDocumentOptions.WO_EVENTS.value
#: Elements deeper than this are no nodes; it bounds the recursion of views.
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
_ACTS: Final = TRAITS["control"]
_ALTERNATIVES: Final = TRAITS["alternatives"]
_PREFERRED: Final = TRAITS["preferred"]
_FIRST: Final = TRAITS["first"]
_LASTING, _RAW, _ANCHOR, _PICTURE = (
    TRAITS[trait] for trait in ("lasting", "raw", "anchor", "picture")
)
_REL, _ALT = "rel", "alt"
_LEADS_BY: Final[Mapping[str, str]] = ELEMENTS["leads_by"]
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


#: Names that the core looks for by themselves.
_SOUGHT: Final = (
    *"br role id class itemprop data-testid style hidden aria-hidden href".split(),
    *(*sorted(NAMES["code"] | NAMES["inline"]), *"sup sub rt time datetime".split()),
)


def _meanings() -> dict[str, _Meaning]:
    """Return what each name means; its place in the dictionary is its number in every tree."""
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
    said = (TEXT, *shown.values(), *_LEADS_BY.values(), _REL, _ALT)
    numbers = {name: i for i, name in enumerate(dict.fromkeys(said))}
    return {
        name: _Meaning(
            place=places.get(name, 0),
            never=never.get(name, 0),
            trait=traits.get(name, 0),
            shown=numbers[shown.get(name, TEXT)],
            tells=tells.get(name, 0),
            leads_by=numbers[_LEADS_BY.get(name, TEXT)],
        )
        for name in dict.fromkeys((*numbers, *named, *tells, *_SOUGHT, *_LEADS_BY))
    }


_MEANINGS: Final = _meanings()
#: Names with a meaning, by their numbers in every tree.
_KNOWN: Final = tuple(_MEANINGS)
NUMBERS: Final = {name: number for number, name in enumerate(_KNOWN)}
_NOTHING: Final = _Meaning()
_LINKS: Final = frozenset(name for name, means in _MEANINGS.items() if means.place & LINK)
_SMALL: Final = str.maketrans(ascii_uppercase, ascii_lowercase)
_SPACES: Final = re.compile("[\t\n\f\r ;]+")
_JOINTS: Final = re.compile("[-_]")


def _meaning_of(tag: str, attributes: Mapping[str, str | None]) -> _Meaning:
    """Return what is said of an element by all of its names."""
    own = _MEANINGS.get(tag, _NOTHING)
    names = chain.from_iterable(
        _names(own, tag, *attribute)
        for attribute in attributes.items()
        if _MEANINGS.get(attribute[0], _NOTHING).tells
    )
    for means in (_MEANINGS[name] for name in names if name in _MEANINGS):
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
        if _MEANINGS[attribute].tells & bit:
            yield f"{before}[{attribute}]"
            yield from (f"{before}[{attribute}={part}]" for part in parts)


# -- the tree ------------------------------------------------------------------

#: Characters of a text in a link that are read, and of what it is called.
_READ: Final = 2_000
_WRITTEN: Final = 200


def collapsed(text: str) -> str:
    """Return the beginning of what a link is called, with white space collapsed."""
    return " ".join(text[:_READ].split())[:_WRITTEN].rstrip()


class TreeLimit(Exception):
    """A page is beyond what a tree may have; the message says in what."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The elements and texts of a page in document order, as columns; the first is the root.

    ``parent`` is the number of the element in which a node stands, the root's is its own. ``end``
    is that of the next node behind all that stands in it. ``name`` is a number in ``names``, 0 of
    a text. ``text_at`` to ``text_end`` are its characters in ``text``: of an element those of all
    texts in it. ``said_at`` to ``said_end`` are its attributes: ``attribute`` is a number in
    ``names``, ``owner`` that of the element, ``value_at`` to ``value_end`` are characters in
    ``values``.

    ``place`` has the bits of :data:`PLACES` that the element and those around it make, ``trait``
    those of :data:`TRAITS` that it is, ``holds`` the traits of the seen elements in it. ``chars``
    counts the characters of its seen texts without white space around each, ``linked`` those in
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

    ``nodes`` and ``said`` are the same columns as the core has them, rows of 32-bit numbers, and
    ``text_octets`` and ``value_octets`` the same texts, as UTF-8.
    """

    names: tuple[str, ...]
    text: str
    values: str
    text_octets: bytes
    value_octets: bytes
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
    cut: str = ""

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def body(self) -> int:
        """The body, or the root of a document that has none."""
        return next(self.named("body"), 0)

    def tag(self, node: int) -> str:
        """Return the name of an element, or :data:`TEXT`."""
        return self.names[self.name[node]]

    def named(self, name: str) -> Iterator[int]:
        """Yield the elements of that name in document order."""
        if name in self.names:
            rows = np.frombuffer(self.nodes, np.uint32)[_NAME_COLUMN::_NODE_COLUMNS]
            yield from np.flatnonzero(rows == self.names.index(name)).tolist()

    def saying(self, name: str) -> Iterator[int]:
        """Yield the elements that have an attribute of that name in document order."""
        if name in self.names:
            owner, which = np.frombuffer(self.said, np.uint32).reshape(-1, _SAID_COLUMNS).T[:2]
            yield from owner[which == self.names.index(name)].tolist()

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
        return {
            self.names[self.attribute[i]]: self.values[self.value_at[i] : self.value_end[i]]
            for i in range(self.said_at[node], self.said_end[node])
        }

    def attribute_of(self, node: int, name: str) -> str | None:
        """Return the value of an attribute, None if the element has none of that name."""
        for i in range(self.said_at[node], self.said_end[node]):
            if self.names[self.attribute[i]] == name:
                return self.values[self.value_at[i] : self.value_end[i]]
        return None

    def text_of(self, node: int) -> str:
        """Return the text of a node, seen or not."""
        return self.text[self.text_at[node] : self.text_end[node]]


_NODE_COLUMNS: Final = 12
#: The place of the name among them.
_NAME_COLUMN: Final = 2
_SAID_COLUMNS: Final = 4
#: URLs are read without them (WHATWG URL, section 4.4).
_BREAKS: Final = re.compile(r"[\t\n\r]")


def _tree(names: tuple[str, ...], columns: Sequence[bytes], octets: Sequence[bytes]) -> Tree:
    nodes, said, links = columns
    texts = [each.decode() for each in octets]
    rows, attributes = memoryview(nodes).cast("I"), memoryview(said).cast("I")
    numbers = [rows[i::_NODE_COLUMNS] for i in range(_NODE_COLUMNS)]
    numbers += [attributes[i::_SAID_COLUMNS] for i in range(_SAID_COLUMNS)]
    numbers.append(memoryview(links).cast("I"))
    # The fields are in this order.
    return Tree(names, *cast(Any, (*texts[:2], *octets[:2], nodes, said, *numbers, *texts[2:])))


def tree_of(html: str, limits: TreeLimits = NO_LIMITS, *, partly: bool = False) -> Tree:
    """Return the tree of a page; ``partly``: of its beginning, if it is beyond a limit.

    Raises:
        TreeLimit: it is beyond a limit.
        MemoryError: there is too little memory.
    """
    octets = html.encode("utf-8", "ignore")
    if not _is_usable():
        return reference(_parsed(octets), limits.links)
    tree = _native(octets, limits)
    if tree.cut and not partly:
        raise TreeLimit(tree.cut)
    return tree


def _parsed(octets: bytes) -> LexborHTMLParser:
    return LexborHTMLParser(octets.decode(), options=PARSER_OPTIONS)


# -- shadow roots --------------------------------------------------------------

_SHADOW: Final = "shadowrootmode"
#: How a page that has the attribute may spell it, by a part that is found faster.
_SHADOWED: Final = {part: re.compile(f"{part}[rR][oO][oO][tT][mM]") for part in ("hadow", "HADOW")}
_RAW_NAMES: Final = "script|style|textarea|title|xmp|iframe|noembed|noframes"
#: Comments and raw text, in which there are no tags, and tags of templates.
_TEMPLATES: Final = re.compile(
    rf"<!--.*?(?:-->|\Z)|<({_RAW_NAMES})\b.*?(?:</\1\b|\Z)|<(/?)template(?![^\s/>])([^<>]*)>",
    re.DOTALL | re.IGNORECASE,
)
_MODE: Final = re.compile(rf"\s{_SHADOW}\s*=\s*[\"']?(?:open|closed)\b", re.IGNORECASE)


def with_shadow_roots(html: str) -> str:
    """Return a page with its declarative shadow roots (HTML, section 4.12.3) as elements.

    Readers see what stands in them, but to the parser they are templates, which are empty in every
    tree. Of those that never end nothing is changed.
    """
    # Faster than to make all letters small. Styles in a page have shadows, too.
    if not any(part in html and sign.search(html) for part, sign in _SHADOWED.items()):
        return html
    opened: list[re.Match[str]] = []
    tags = list[tuple[int, int, str]]()
    for found in _TEMPLATES.finditer(html):
        slash, attributes = found.group(2, 3)
        if attributes is None:
            continue
        if not slash:
            opened.append(found)
        elif opened and _MODE.search(opened[-1][3]):
            begin = opened.pop()
            tags.append((*begin.span(), f"<shadow-root{begin[3]}>"))
            tags.append((*found.span(), "</shadow-root>"))
        elif opened:
            opened.pop()
    tags.sort()
    starts = [0, *(end for _, end, _ in tags)]
    parts = [html[a:b] + tag for a, (b, _, tag) in zip(starts, tags, strict=False)]
    return "".join(parts) + html[starts[-1] :]


# -- selectors of a site -------------------------------------------------------


def marked(tree: Tree, parser: LexborHTMLParser) -> tuple[Tree, list[int]]:
    """Return the tree of a page as its selectors show it, and the outermost included elements.

    ``parser`` has the same page with the marks of :class:`.selectors.SelectorHints`. Elements that
    are marked as ignored are not seen; the outermost of those that are included are seen.
    """
    elements = [node for node, name in enumerate(tree.name) if name]
    found = parser.css("*")
    if len(found) > len(elements):
        found = _high_enough(found)
    marks = {each.mem_id: each.attributes[MARK] for each in parser.css(f"[{MARK}]")}
    said = {node: marks.get(it.mem_id) for node, it in zip(elements, found, strict=True)}
    included, place = _remarked(tree, said if marks else {})
    chars, linked, holds = (array("I", column) for column in (tree.chars, tree.linked, tree.holds))
    for node in elements:
        chars[node] = linked[node] = holds[node] = 0
    # From the last on: what stands in a node is behind it.
    for node in range(len(tree) - 1, 0, -1):
        if not place[node] & UNSEEN:
            parent, trait = tree.parent[node], tree.trait[node]
            holds[parent] |= holds[node] | (trait if chars[node] else trait & ~_ACTS)
            if not place[node] & ~place[parent] & CONTROL:
                chars[parent] += chars[node]
                linked[parent] += chars[node] if tree.tag(node) in _LINKS else linked[node]
    changed = {"place": place, "chars": chars, "linked": linked, "holds": holds}
    columns = [changed.get(each.name, getattr(tree, each.name)) for each in fields(_Node)]
    rows = array("I", chain.from_iterable(zip(*columns, strict=True)))
    others = (tree.references, tree.relations, tree.anchors, tree.cut)
    octets = (tree.text_octets, tree.value_octets, *(each.encode() for each in others))
    return _tree(tree.names, (rows.tobytes(), tree.said, tree.links.tobytes()), octets), included


def _remarked(tree: Tree, marks: Mapping[int, str | None]) -> tuple[list[int], array[int]]:
    """Return the outermost included elements, and the places of all nodes."""
    included: list[int] = []
    place, end = array("I", tree.place), 0
    for node in range(len(tree)):
        mark, parent = marks.get(node), tree.parent[node]
        is_unseen = tree.place[node] & UNSEEN
        if is_unseen and node and tree.place[parent] & UNSEEN:
            # As all in the element that is around it; what does it say itself?
            is_unseen = _meaning_of(tree.tag(node), tree.attributes(node)).place & UNSEEN
        is_unseen = is_unseen or mark == IGNORED or (node > 0 and place[parent] & UNSEEN)
        if mark == INCLUDED and node >= end:
            included.append(node)
            end, is_unseen = tree.end[node], False
        place[node] = place[node] & ~UNSEEN | (UNSEEN if is_unseen else 0)
    return included, place


def _high_enough(elements: Sequence[LexborNode]) -> list[LexborNode]:
    """Return the elements of a document, given in its order, that are nodes of a tree."""
    levels = dict[int, int]()
    for each in elements:
        parent = each.parent
        levels[each.mem_id] = 1 + (levels.get(parent.mem_id, -1) if parent is not None else -1)
    return [
        each
        for each in elements
        if levels[each.mem_id] <= LEVELS or _MEANINGS.get(each.tag or "", _NOTHING).trait & _LASTING
    ]


# -- the compiled core ---------------------------------------------------------

#: Functions of Lexbor's, in the order in which the core knows them.
SYMBOLS: Final = (
    "lxb_html_document_create",
    "lxb_html_document_destroy",
    "lxb_html_document_dom_opt_set_noi",
    "lxb_html_document_parse_chunk_begin",
    "lxb_html_document_parse_chunk",
    "lxb_html_document_parse_chunk_end",
    "lxb_dom_node_first_child_noi",
    "lxb_dom_node_next_noi",
    "lxb_dom_node_parent_noi",
    "lxb_dom_node_type_noi",
    "lxb_dom_element_qualified_name",
    "lxb_dom_element_first_attribute_noi",
    "lxb_dom_element_next_attribute_noi",
    "lxb_dom_attr_qualified_name",
    "lxb_dom_attr_value_noi",
    "lxb_dom_node_text_content",
    "lxb_dom_document_destroy_text_noi",
    "lexbor_memory_setup",
)
_tree_parser: Final = function("tree_parser", [c_void_p, c_size_t], c_bool)
_tree_table: Final = function(
    "tree_table", [c_char_p, c_void_p, c_void_p, c_size_t, c_void_p], c_bool
)
_tree_made: Final = function(
    "tree_made", [c_char_p, c_size_t, c_uint32, c_char_p, POINTER(c_void_p)], c_int64
)
#: The fields of TreeLimits in the core, and the levels of nodes.
_LIMITS: Final = Struct("NNdNNN")
_COLUMNS: Final = 10
_tree_columns: Final = function("tree_columns", [c_void_p] * 3)
_tree_drop: Final = function("tree_drop", [c_void_p])
_NO_MEMORY, _TOO_LARGE, _TOO_SLOW, _NOT_PARSED = -1, -3, -4, -5


def _native(octets: bytes, limits: TreeLimits) -> Tree:
    made, cut = c_void_p(), ""
    bounds = _LIMITS.pack(*limits, LEVELS)
    result = _tree_made(octets, len(octets), PARSER_OPTIONS, bounds, byref(made))
    if result == _TOO_LARGE:
        cut = f"a page of more than {limits.nodes:,} nodes or {limits.octets:,} bytes"
        cut += f", or for which the parser takes more than {limits.memory:,}"
    elif result == _TOO_SLOW:
        cut = f"parsing took more than {limits.seconds:g} s of processor time"
    if cut and made.value is None:
        raise TreeLimit(cut)
    if made.value is None:
        reason = "Lexbor gave up" if result == _NOT_PARSED else "no memory for its tree"
        raise MemoryError(f"a page of {len(octets):,} bytes: {reason}")
    try:
        at, lengths = (c_void_p * _COLUMNS)(), (c_size_t * _COLUMNS)()
        _tree_columns(made, at, lengths)
        columns = (string_at(*each) if each[1] else b"" for each in zip(at, lengths, strict=True))
        nodes, said, text, values, names, ends, links, *others = columns
    finally:
        _tree_drop(made)
    edges = memoryview(ends).cast("I")[len(_KNOWN) - 1 :]
    others_named = (names[begin:end].decode() for begin, end in pairwise(edges))
    texts = text, values, *others, cut.encode()
    return _tree((*_KNOWN, *others_named), (nodes, said, links), texts)


#: Of threads that make their first trees one tells the core what it needs.
_PREPARING: Final = Lock()


@cache
def _is_usable() -> bool:
    """Return whether the core makes trees with the Lexbor that is installed."""
    try:
        with _PREPARING:
            _prepare()
        octets = _PROBE.encode()
        limits = TreeLimits(links=9)
        is_equal = _native(octets, limits) == reference(_parsed(octets), limits.links)
    except (AttributeError, OSError, MemoryError, TreeLimit, ValueError) as error:
        problem = f"{type(error).__name__}: {error}"
    else:
        if is_equal:
            return True
        problem = "it reads another tree"
    log.warning(
        "pages are read more slowly: the compiled core cannot use the parser of selectolax %s (%s)",
        version("selectolax"), problem,
    )  # fmt: skip
    return False


def _prepare() -> None:
    """Tell the core Lexbor's functions and what elements mean.

    Raises:
        OSError: the library of selectolax cannot be loaded.
        AttributeError: it does not export a function.
        MemoryError: there is too little memory.
    """
    library = CDLL(selectolax.lexbor.__file__)
    functions = [cast_pointer(library[name], c_void_p) for name in SYMBOLS]
    if not _tree_parser((c_void_p * len(functions))(*functions), len(functions)):
        raise OSError("the core knows other functions")
    encoded = [name.encode() for name in _KNOWN]
    ends = (c_uint32 * len(encoded))(*accumulate(map(len, encoded)))
    meanings = [number for means in _MEANINGS.values() for number in means]
    said = b"".join(encoded), ends, (c_uint32 * len(meanings))(*meanings), len(encoded)
    bits = (
        *(UNSEEN, LINK, CONTROL, _ACTS, _ALTERNATIVES, _PREFERRED, _FIRST),
        *(_LASTING, _RAW, _ANCHOR, _PICTURE, NUMBERS[_REL], NUMBERS[_ALT]),
    )
    if not _tree_table(*said, (c_uint32 * len(bits))(*bits)):
        raise MemoryError("no memory for what elements mean")


#: A page with something of all that columns tell.
_PROBE: Final = (
    "<!doctype html><html lang=en><head><title>A page</title><meta name=x content='a &amp; é'>"
    "<script>if (a < b) c()</script></head><body class=k><nav role=NAVIGATION><a href='/'>Up</a>"
    "</nav><main><h1>A <!-- c -->heading<button>?</button></h1><p>One<br>two<p hidden>3 \u00a0"
    "<svg viewBox='0 0 1 1'><foreignObject>x</foreignObject><use xlink:href=#a></use></svg>"
    "<table><tr><td>cell</table><template>t</template><x-y Z=1>&lt;</x-y></main><select><option>o"
    "<option selected>p</select><input type=CheckBox checked><input value='é 1'><aside class="
    "'x my-note'>n</aside><math><semantics><mi>x</mi><annotation encoding=TeX>x</annotation>"
    "</semantics></math><dialog open>d</dialog>"
    + "<b>" * LEVELS + "deep<a href='/#b' rel=up>Up<img alt='An  image'></a><a href=b><img alt=c>"
)  # fmt: skip

# -- the reference -------------------------------------------------------------


def reference(parser: LexborHTMLParser, links: int = 0) -> Tree:
    """Return the tree of a page that selectolax has parsed, and so many of its links at most.

    Raises:
        MemoryError: Lexbor has not even made the elements that every page has.
    """
    if parser.root is None:
        raise MemoryError("Lexbor gave up a page: it has no root")
    builder = _Builder()
    builder.add(parser.root)
    return builder.tree(links)


def _walk(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Yield all nodes in document order, true where one begins and false where it ends."""
    node, depth = root, 0
    while True:
        yield node, True
        if (child := node.first_child) is not None:
            node, depth = child, depth + 1
            continue
        yield node, False
        while depth and node.next is None:
            node, depth = cast(LexborNode, node.parent), depth - 1
            yield node, False
        if not depth:
            return
        node = cast(LexborNode, node.next)


@dataclass(slots=True)
class _Node:
    """A row of a tree's columns."""

    parent: int
    end: int
    name: int
    place: int
    trait: int
    holds: int
    chars: int
    linked: int
    text_at: int
    text_end: int
    said_at: int
    said_end: int


@dataclass(slots=True)
class _Link:
    """An element that leads elsewhere, what stands in it, and its attributes."""

    node: int
    last: int
    said: Mapping[str, str]


class _Builder:
    """The columns of a tree, built from the first node to the last."""

    def __init__(self) -> None:
        self._numbers = dict(NUMBERS)
        self._nodes: list[_Node] = []
        self._said = array("I")
        self._texts = _Text()
        self._values = _Text()
        self._open: list[int] = []
        #: The parts of the text that is the last node and goes on.
        self._text: list[str] = []
        #: All links, and those that are open; alternative texts by node.
        self._links: list[_Link] = []
        self._open_links: list[_Link] = []
        self._pictures: dict[int, str] = {}

    def tree(self, most_links: int) -> Tree:
        """Return what was built."""
        rows = array("I", [number for node in self._nodes for number in astuple(node)])
        text, values = "".join(self._texts.parts), "".join(self._values.parts)
        links = list(islice(self._different(), most_links))
        most, size, anchors = len(text.encode()) + len(values.encode()), 0, list[str]()
        for link in links:
            anchors.append("" if size > most else self._anchor(link, text))
            size += len(f"{anchors[-1]}\n".encode())
        columns = rows, self._said, array("I", [link.node for link in links])
        lines = (
            [_BREAKS.sub("", self._reference(it)) for it in links],
            [_BREAKS.sub(" ", it.said.get(_REL, "")) for it in links],
            anchors,
        )
        texts = (text, values, *("".join(f"{line}\n" for line in each) for each in lines))
        octets = [each.encode() for each in texts]
        return _tree(tuple(self._numbers), [it.tobytes() for it in columns], octets)

    def _reference(self, link: _Link) -> str:
        tag = _tag_of(self._nodes[link.node].name)
        return reference_head(link.said[_LEADS_BY[tag]])

    def _different(self) -> Iterator[_Link]:
        met = set[tuple[str, str]]()
        for link in self._links:
            key = (self._reference(link), link.said.get(_REL, ""))
            if not self._nodes[link.node].trait & _ANCHOR:
                yield link
            elif key not in met:
                met.add(key)
                yield link

    def _is_called(self, text: _Node) -> bool:
        """Return whether a text in a link counts for what it is called.

        Raw text and values of hidden controls do not.
        """
        trait = self._nodes[text.parent].trait
        return not trait & _RAW and not (trait & _ACTS and text.place & UNSEEN)

    def _anchor(self, link: _Link, text: str) -> str:
        nodes = self._nodes
        if not nodes[link.node].trait & _ANCHOR:
            return ""
        inside = range(link.node + 1, link.last)
        texts = (nodes[it] for it in inside if not nodes[it].name and self._is_called(nodes[it]))
        words = collapsed("".join(text[it.text_at : it.text_end] for it in texts))
        pictures = (self._pictures.get(it) for it in (link.node, *inside))
        return words or collapsed(next((alt for alt in pictures if alt is not None), ""))

    def add(self, root: LexborNode) -> None:
        """Add an element and all that stands in it."""
        # Of the elements that are too deep, how many are open, and how many in one not seen; a
        # lasting one of them, and how many were open with it.
        deeper = muted = lasting = lasting_at = 0
        for node, begins in _walk(root):
            if node.is_text_node and begins and not muted:
                self._add_text(node.text_content or "")
            if not node.is_element_node:
                continue
            self._end_text()
            tag = node.tag or ""
            if begins and (deeper or len(self._open) > LEVELS):
                deeper += 1
                if _MEANINGS.get(tag, _NOTHING).trait & _LASTING:
                    number = self._start(tag, node, is_muted=muted > 0)
                    if lasting_at:
                        self._end_node(number)
                    else:
                        lasting, lasting_at = number, deeper
                muted += bool(muted or _MEANINGS.get(tag, _NOTHING).place & UNSEEN)
            elif begins:
                self._open.append(self._start(tag, node))
                self._show(tag, node)
            elif deeper:
                if lasting_at == deeper:
                    self._nodes[lasting].text_end = self._texts.length
                    self._end_node(lasting)
                    lasting_at = 0
                deeper -= 1
                muted -= muted > 0
            else:
                self._end()

    def _start(self, tag: str, element: LexborNode, *, is_muted: bool = False) -> int:
        """Add the row of an element, and return its number."""
        number, name, said_at = len(self._nodes), self._number(tag), self._said_count()
        attributes = {key: value or "" for key, value in element.attributes.items()}
        for key, value in attributes.items():
            begin, end = self._values.add(value)
            self._said.extend((number, self._number(key), begin, end))
        means = _meaning_of(tag, attributes)
        place, trait = means.place | (UNSEEN if is_muted else 0), means.trait
        if trait & _ALTERNATIVES and _has_preferred(element):
            trait = trait & ~_FIRST | _PREFERRED
        elif trait & _ALTERNATIVES:
            trait &= ~_ALTERNATIVES
        parent = self._open[-1] if self._open else 0
        if self._open:
            above = self._nodes[parent]
            place |= above.place
            if self._is_alternative(above, parent, trait):
                place |= UNSEEN
        at = self._texts.length
        row = (place, trait, 0, 0, 0, at, at, said_at, self._said_count())
        self._nodes.append(_Node(parent, number + 1, name, *row))
        if trait & _PICTURE and _ALT in attributes:
            self._pictures[number] = attributes[_ALT]
        if _LEADS_BY.get(tag) in attributes:
            self._open_links.append(_Link(number, number + 1, attributes))
            self._links.append(self._open_links[-1])
        return number

    def _show(self, tag: str, element: LexborNode) -> None:
        """Add the text that an element shows beside what stands in it."""
        attributes = element.attributes
        means = _meaning_of(tag, attributes)
        if means.shown:
            shown = _KNOWN[means.shown]
            if shown not in attributes:
                self._add_text(shown)
            elif element.first_child is None:
                self._add_text(attributes[shown] or "")

    def _is_alternative(self, above: _Node, parent: int, trait: int) -> bool:
        """Return whether the next element is not seen in its parent, as another one is."""
        if above.trait & _ALTERNATIVES:
            return not trait & _PREFERRED
        before = len(self._nodes) - parent - 1
        # A text, such as a line break, may stand before the first element.
        return bool(
            above.trait & _FIRST and (before > 1 or (before and self._nodes[parent + 1].name))
        )

    def _end(self) -> None:
        number = self._open.pop()
        node = self._nodes[number]
        node.end, node.text_end = len(self._nodes), self._texts.length
        self._end_node(number)

    def _end_node(self, number: int) -> None:
        if self._open_links and self._open_links[-1].node == number:
            self._open_links.pop().last = len(self._nodes)
        self._add_up(number)

    def _add_text(self, text: str) -> None:
        if not text:
            return
        begin, end = self._texts.add(text)
        if not self._text:
            number, parent, said = len(self._nodes), self._open[-1], self._said_count()
            row = (self._nodes[parent].place, 0, 0, 0, 0, begin, end, said, said)
            self._nodes.append(_Node(parent, number + 1, 0, *row))
        self._nodes[-1].text_end = end
        self._text.append(text)

    def _end_text(self) -> None:
        if self._text:
            self._nodes[-1].chars = len("".join(self._text).strip())
            self._text.clear()
            self._add_up(len(self._nodes) - 1)

    def _add_up(self, number: int) -> None:
        """Add what a node holds to its parent, unless it is not seen."""
        node = self._nodes[number]
        if not number or node.place & UNSEEN:
            return
        parent = self._nodes[node.parent]
        parent.holds |= node.holds | (node.trait if node.chars else node.trait & ~_ACTS)
        if not node.place & ~parent.place & CONTROL:
            is_link = _tag_of(node.name) in _LINKS
            parent.chars += node.chars
            parent.linked += node.chars if is_link else node.linked

    def _number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def _said_count(self) -> int:
        return len(self._said) // _SAID_COLUMNS


class _Text:
    """A text that grows by parts."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.length = 0

    def add(self, part: str) -> tuple[int, int]:
        """Add a part, and return where it begins and ends."""
        self.parts.append(part)
        begin, self.length = self.length, self.length + len(part)
        return begin, self.length


def _tag_of(number: int) -> str:
    return _KNOWN[number] if number < len(_KNOWN) else ""


def _has_preferred(element: LexborNode) -> bool:
    """Return whether one is in an element that is seen in place of its siblings.

    It stands directly in the element, or in one with alternatives that does.
    """
    for child, trait in _traits_in(element):
        if trait & _PREFERRED:
            return True
        if trait & _ALTERNATIVES and any(its & _PREFERRED for _, its in _traits_in(child)):
            return True
    return False


def _traits_in(element: LexborNode) -> Iterator[tuple[LexborNode, int]]:
    """Yield the elements directly in one, and the traits that their names say."""
    child = element.first_child
    while child is not None:
        if child.is_element_node:
            yield child, _meaning_of(child.tag or "", child.attributes).trait
        child = child.next
