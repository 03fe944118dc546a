"""Trees of pages, made by the compiled core (``freshet/compiled/tree.c``).

One call makes a tree from the Lexbor inside selectolax. Where the core cannot,
:mod:`.tree_reference` makes the same.
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
from dataclasses import fields
from functools import cache
from importlib.metadata import version
from itertools import accumulate, chain, pairwise
from struct import Struct
from threading import Lock
from typing import Final

import selectolax.lexbor
from selectolax.lexbor import LexborHTMLParser, LexborNode

from freshet.compiled import function
from freshet.crawler.errors import TreeLimit
from freshet.crawler.reduce.tree import (
    ACTS,
    ALT,
    ALTERNATIVES,
    ANCHOR,
    CONTROL,
    FIRST,
    IGNORED,
    INCLUDED,
    KNOWN,
    LASTING,
    LEVELS,
    LINK,
    MARK,
    MEANINGS,
    MEDIUM,
    NO_LIMITS,
    NOTHING,
    NUMBERS,
    PARSER_OPTIONS,
    PICTURE,
    PREFERRED,
    RAW,
    REL,
    UNSEEN,
    Tree,
    TreeLimits,
    holds,
    meaning_of,
    tree_from,
)
from freshet.crawler.reduce.tree_reference import Node, reference

log = logging.getLogger(__name__)


def tree_of(html: str | bytes, limits: TreeLimits = NO_LIMITS, *, partly: bool = False) -> Tree:
    """Return the tree of a page; ``partly``: of its beginning, if it is beyond a limit.

    Octets are UTF-8.

    Raises:
        TreeLimit: it is beyond a limit.
        MemoryError: there is too little memory.
    """
    octets = html if isinstance(html, bytes) else html.encode("utf-8", "ignore")
    if not is_usable():
        return reference(_parsed(octets), limits.links)
    tree = _native(octets, limits)
    if tree.cut and not partly:
        raise TreeLimit(tree.cut)
    return tree


def _parsed(octets: bytes) -> LexborHTMLParser:
    return LexborHTMLParser(octets.decode(), options=PARSER_OPTIONS)


# -- shadow roots --------------------------------------------------------------

#: How a page that has the attribute may spell it, by a part that is found faster.
_SHADOWED: Final = {
    part: re.compile(rb"%b[rR][oO][oO][tT][mM]" % part) for part in (b"hadow", b"HADOW")
}
_RAW_NAMES: Final = b"script|style|textarea|title|xmp|iframe|noembed|noframes"
#: Comments and raw text, which have no tags, and tags of templates.
_TEMPLATES: Final = re.compile(
    rb"<!--.*?(?:-->|\Z)|<(%b)\b.*?(?:</\1\b|\Z)|<(/?)template(?![^\s/>])([^<>]*)>" % _RAW_NAMES,
    re.DOTALL | re.IGNORECASE,
)
_MODE: Final = re.compile(rb"\sshadowrootmode\s*=\s*[\"']?(?:open|closed)\b", re.IGNORECASE)


def with_shadow_roots(html: bytes) -> bytes:
    """Return a page with its declarative shadow roots (HTML, section 4.12.3) as elements.

    Readers see their contents, but to the parser they are templates, which are empty in every tree.
    Templates that never end are not changed.
    """
    # Faster than lower-casing. Style sheets in a page have shadows as well.
    if not any(part in html and sign.search(html) for part, sign in _SHADOWED.items()):
        return html
    tags = sorted(_shadow_tags(html))
    starts = [0, *(end for _, end, _ in tags)]
    parts = [html[a:b] + tag for a, (b, _, tag) in zip(starts, tags, strict=False)]
    return b"".join(parts) + html[starts[-1] :]


def _shadow_tags(html: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the start and end of tags of shadow roots, and their replacements."""
    opened: list[re.Match[bytes]] = []
    for found in _TEMPLATES.finditer(html):
        slash, attributes = found.group(2, 3)
        if attributes is None:
            continue
        if not slash:
            opened.append(found)
        elif opened and _MODE.search(opened[-1][3]):
            begin = opened.pop()
            yield (*begin.span(), b"<shadow-root%b>" % begin[3])
            yield (*found.span(), b"</shadow-root>")
        elif opened:
            opened.pop()


# -- what scripts change -------------------------------------------------------

#: What hides the tags behind it: comments and raw text.
_HIDING: Final = re.compile(rb"<!--|<(%b)\b" % _RAW_NAMES)
#: Parts of a page that React sends later, their places, the edges of the placeholders there, and
#: the calls that put parts in their places; ``$RS`` names the part first.
_PART: Final = re.compile(rb'<div hidden(?:="")? id="(S:[0-9a-f]+)">')
_PLACE: Final = re.compile(rb'<template id="([BP]:[0-9a-f]+)"></template>')
_DIV: Final = re.compile(rb"<div\b|<(/)div>")
_EDGE: Final = re.compile(rb"<!--(?:\$[?!~]?|(/\$))-->")
_PUT: Final = re.compile(rb'\$R[CRS]\("([BS]:[0-9a-f]+)","([PS]:[0-9a-f]+)"')


#: What is looked for in a page, each with a bit of what :func:`.tree.holds` returns.
_NOSCRIPT, _STREAMED = 1, 2
_LEFT: Final = b"<noscript\0<div hidden\0"


def as_scripts_leave(html: bytes) -> bytes:
    """Return a page as a browser that runs scripts reads it, without running any.

    To such a browser all of a ``noscript`` element is text. To a parser without scripts an
    ``<iframe/>`` in it, or a comment without an end, hides the rest of the page; each ends with the
    element here. Parts that React streams after a page are moved to the places of its calls.
    """
    held = holds(html, _LEFT)
    if held & _NOSCRIPT and (ends := list(_missing_ends(html))):
        starts = [0, *(at for at, _ in ends)]
        whole = (html[a:b] + end for a, (b, end) in zip(starts, ends, strict=False))
        html = b"".join(whole) + html[starts[-1] :]
    if held & _STREAMED and (puts := _PUT.findall(html)):
        html, parts = _apart(html)
        # The first argument names the place, but for "$RS".
        named = {b if a[:1] == b"S" else a: a if a[:1] == b"S" else b for a, b in puts}
        html = b"".join((*_filled(html, named, parts), *parts.values()))
    return html


def _missing_ends(html: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield where a ``noscript`` element ends in a comment or raw text, and what ends that."""
    end = 0
    while (begin := html.find(b"<noscript", end)) >= 0:
        if (end := html.find(b"</noscript", begin)) < 0:
            return
        if missing := _missing_end(html[begin:end].lower()):
            yield end, missing


def _missing_end(text: bytes) -> bytes:
    """Return the end of the comment or raw text in which a text ends, if it ends in one."""
    at = 0
    while found := _HIDING.search(text, at):
        end = b"-->" if found[1] is None else b"</%b>" % found[1]
        at = text.find(end[: len(end) - (found[1] is not None)], found.end())
        if at < 0:
            return end
    return b""


def _apart(html: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """Return a page without its parts, and those."""
    parts, kept, at = dict[bytes, bytes](), list[bytes](), 0
    while (found := _PART.search(html, at)) and (end := _end(_DIV, html, found.end())):
        kept.append(html[at : found.start()])
        parts[found[1]], at = html[found.start() : end.end()], end.end()
    return b"".join(kept) + html[at:], parts


def _filled(
    html: bytes, named: Mapping[bytes, bytes], parts: dict[bytes, bytes]
) -> Iterator[bytes]:
    """Yield a page with parts in the places for which they are ``named``, and take them away."""
    todo, is_sound = [(html, 0)], True
    while todo:
        text, at = todo.pop()
        place = _PLACE.search(text, at)
        if place is None:
            yield text[at:]
            continue
        part, end = parts.pop(named.get(place[1], b""), b""), place
        yield text[at : place.start() if part else place.end()]
        if part and is_sound and place[1][:1] == b"B":
            edge = _end(_EDGE, text, place.end())
            is_sound, end = edge is not None, edge or place
        todo.append((text, end.end()))
        if part:
            todo.append((part[part.index(b">") + 1 : -len(b"</div>")], 0))


def _end(edges: re.Pattern[bytes], html: bytes, at: int) -> re.Match[bytes] | None:
    """Return the edge that ends the placeholder that was opened before ``at``."""
    depth = 1
    for edge in edges.finditer(html, at):
        depth += -1 if edge[1] else 1
        if not depth:
            return edge
    return None


# -- selectors of a site -------------------------------------------------------


def marked(tree: Tree, parser: LexborHTMLParser) -> tuple[Tree, list[int]]:
    """Return the tree of a page as its selectors show it, and the outermost included elements.

    ``parser`` has the same page with the marks of :class:`.selectors.SelectorHints`. Elements that
    are marked as ignored are not seen; the outermost of those that are included are seen.
    """
    included, place = _remarked(tree, _marks(tree, parser))
    changed = {"place": place} | _sums(tree, place)
    columns = [changed.get(each.name, getattr(tree, each.name)) for each in fields(Node)]
    rows = array("I", chain.from_iterable(zip(*columns, strict=True)))
    others = (tree.references, tree.relations, tree.anchors, tree.cut)
    octets = (tree.text, tree.values, *(each.encode() for each in others))
    return tree_from(
        tree.names, (rows.tobytes(), tree.said, tree.links.tobytes()), octets
    ), included


def _marks(tree: Tree, parser: LexborHTMLParser) -> Mapping[int, str | None]:
    """Return the marks of a tree's elements, nothing of a page without any."""
    elements = [node for node, name in enumerate(tree.name) if name]
    found = parser.css("*")
    if len(found) > len(elements):
        found = _high_enough(found)
    marks = {each.mem_id: each.attributes[MARK] for each in parser.css(f"[{MARK}]")}
    said = {node: marks.get(it.mem_id) for node, it in zip(elements, found, strict=True)}
    return said if marks else {}


def _sums(tree: Tree, place: array[int]) -> dict[str, array[int]]:
    """Return the columns of what nodes hold, where the nodes are at other places."""
    chars, linked, holds = (array("I", column) for column in (tree.chars, tree.linked, tree.holds))
    for node, name in enumerate(tree.name):
        if name:
            chars[node] = linked[node] = holds[node] = 0
    # From the last on: the contents of a node follow it.
    for node in range(len(tree) - 1, 0, -1):
        if not place[node] & UNSEEN:
            parent, trait = tree.parent[node], tree.trait[node]
            holds[parent] |= holds[node] | (trait if chars[node] else trait & ~ACTS)
            if not place[node] & ~place[parent] & CONTROL:
                chars[parent] += chars[node]
                linked[parent] += (
                    chars[node] if place[node] & ~place[parent] & LINK else linked[node]
                )
    return {"chars": chars, "linked": linked, "holds": holds}


def _remarked(tree: Tree, marks: Mapping[int, str | None]) -> tuple[list[int], array[int]]:
    """Return the outermost included elements, and the places of all nodes."""
    included: list[int] = []
    place, end = array("I", tree.place), 0
    for node in range(len(tree)):
        mark, parent = marks.get(node), tree.parent[node]
        is_unseen = mark == IGNORED or _is_unseen(tree, node)
        is_unseen = is_unseen or (node > 0 and place[parent] & UNSEEN > 0)
        if mark == INCLUDED and node >= end:
            included.append(node)
            end, is_unseen = tree.end[node], False
        place[node] = place[node] & ~UNSEEN | (UNSEEN if is_unseen else 0)
    return included, place


def _is_unseen(tree: Tree, node: int) -> bool:
    """Return whether a node is invisible by its own attributes."""
    if not tree.place[node] & UNSEEN:
        return False
    if node and tree.place[tree.parent[node]] & UNSEEN:
        # Like all contents of its parent; only its own attributes decide.
        return meaning_of(tree.tag(node), tree.attributes(node)).place & UNSEEN > 0
    return True


def _high_enough(elements: Sequence[LexborNode]) -> list[LexborNode]:
    """Return the elements of a document, given in its order, that are nodes of a tree."""
    levels = dict[int, int]()
    for each in elements:
        parent = each.parent
        levels[each.mem_id] = 1 + (levels.get(parent.mem_id, -1) if parent is not None else -1)
    return [
        each
        for each in elements
        if levels[each.mem_id] <= LEVELS or MEANINGS.get(each.tag or "", NOTHING).trait & LASTING
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


def limits_told(limits: TreeLimits) -> bytes:
    """Return limits as the core reads them."""
    return _LIMITS.pack(*limits, LEVELS)


_COLUMNS: Final = 10
_tree_columns: Final = function("tree_columns", [c_void_p] * 3)
_tree_drop: Final = function("tree_drop", [c_void_p])
_NO_MEMORY, _TOO_LARGE, _TOO_SLOW, _NOT_PARSED = -1, -3, -4, -5


def _native(octets: bytes, limits: TreeLimits) -> Tree:
    made = c_void_p()
    result = _tree_made(octets, len(octets), PARSER_OPTIONS, limits_told(limits), byref(made))
    if made.value is None:
        raise failure_of(result, limits, len(octets))
    try:
        return tree_at(made, _cut_by(result, limits))
    finally:
        _tree_drop(made)


def failure_of(result: int, limits: TreeLimits, length: int) -> TreeLimit | MemoryError:
    """Return the error of the core's number, for a page of that length."""
    if cut := _cut_by(result, limits):
        return TreeLimit(cut)
    reason = "Lexbor gave up" if result == _NOT_PARSED else "no memory for its tree"
    return MemoryError(f"a page of {length:,} bytes: {reason}")


def _cut_by(result: int, limits: TreeLimits) -> str:
    """Return why a page is only read in part, or an empty text."""
    if result == _TOO_LARGE:
        cut = f"a page of more than {limits.nodes:,} nodes or {limits.octets:,} bytes"
        return cut + f", or for which the parser takes more than {limits.memory:,}"
    if result == _TOO_SLOW:
        return f"parsing took more than {limits.seconds:g} s of processor time"
    return ""


def tree_at(made: c_void_p, cut: str = "") -> Tree:
    """Return the tree that the core has at an address."""
    at, lengths = (c_void_p * _COLUMNS)(), (c_size_t * _COLUMNS)()
    _tree_columns(made, at, lengths)
    columns = (string_at(*each) if each[1] else b"" for each in zip(at, lengths, strict=True))
    nodes, said, text, values, names, ends, links, *others = columns
    edges = memoryview(ends).cast("I")[len(KNOWN) - 1 :]
    others_named = [names[begin:end].decode() for begin, end in pairwise(edges)]
    texts = text, values, *others, cut.encode()
    return tree_from((*KNOWN, *others_named), (nodes, said, links), texts)


#: One of the threads that make their first trees prepares the core.
_PREPARING: Final = Lock()


@cache
def is_usable() -> bool:
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
    encoded = [name.encode() for name in KNOWN]
    ends = (c_uint32 * len(encoded))(*accumulate(map(len, encoded)))
    meanings = [number for means in MEANINGS.values() for number in means]
    said = b"".join(encoded), ends, (c_uint32 * len(meanings))(*meanings), len(encoded)
    bits = (
        *(UNSEEN, LINK, CONTROL, ACTS, ALTERNATIVES, PREFERRED, FIRST, MEDIUM),
        *(LASTING, RAW, ANCHOR, PICTURE, NUMBERS[REL], NUMBERS[ALT]),
    )
    if not _tree_table(*said, (c_uint32 * len(bits))(*bits)):
        raise MemoryError("no memory for what elements mean")


#: A page with an example for each column.
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
