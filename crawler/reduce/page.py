"""Parsing of pages: text, links and head; :mod:`crawler.reduce.parser_process` runs it.

HTML is parsed by Lexbor as a browser without scripting would, so that the content of
``noscript`` counts. No rule here depends on the subject of the page.
"""

import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from functools import lru_cache
from html import escape, unescape
from itertools import chain, compress, islice
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias, cast
from unicodedata import normalize

from selectolax.lexbor import LexborHTMLParser, LexborNode

from freshet.crawler.reduce.blocks import Blocks, blocks_compared, compared
from freshet.crawler.reduce.charset import decode, utf8_of
from freshet.crawler.reduce.content import choice_of, is_shown, words_of
from freshet.crawler.reduce.formats import format_of
from freshet.crawler.reduce.links import MetaRefresh, PageHead, links_of
from freshet.crawler.reduce.main_text import main_text
from freshet.crawler.reduce.native import ReadPage
from freshet.crawler.reduce.native import read as read_at_once
from freshet.crawler.reduce.pieces import Piece, Pieces
from freshet.crawler.reduce.sketch import Sketch, block_digests
from freshet.crawler.reduce.tree import (
    NO_HINTS,
    NO_LIMITS,
    PARSER_OPTIONS,
    SelectorHints,
    Tree,
    TreeLimits,
    max_depth,
    start_tags,
)
from freshet.crawler.reduce.tree_parser import is_usable, tree_of, with_shadow_roots
from freshet.crawler.urls import without_fragment
from freshet.storage import value
from freshet.storage.records import Links


@value(frozen=True, slots=True)
class ParsedPage:
    """A parsed page. ``encoding`` is the WHATWG name of its character encoding, None of PDF.

    ``is_plain``: it was read as a text without markup.

    ``canonical`` (a hint), ``feeds`` and ``base_url`` are resolved and without fragments;
    ``robots_meta`` are the contents of the robots ``meta`` elements for everybody and for
    this crawler; ``blocks`` is the main text; ``remark`` names deviations from the
    settings; ``hub_links`` are its links to its hub and to itself; ``requisites`` are the URLs
    that it needs to be shown, if requested. ``sketch`` is the summary of the main text, if it was
    made with it.
    """

    base_url: str
    encoding: str | None
    is_plain: bool = False
    title: str | None = None
    language: str | None = None
    canonical: str | None = None
    links: Links = field(default_factory=Links)
    remark: str | None = None
    feeds: tuple[str, ...] = ()
    meta_refresh: MetaRefresh | None = None
    robots_meta: tuple[str, ...] = ()
    blocks: Blocks = field(default_factory=Blocks)
    hub_links: tuple[tuple[str, str], ...] = ()
    requisites: tuple[str, ...] = ()
    sketch: Sketch | None = field(default=None, compare=False)


#: The tree of a page and the chosen pieces.
Chosen: TypeAlias = tuple[Tree, Sequence[Piece]]


class _Kept(NamedTuple):
    """A parsed page: its bytes, type and selectors, and its choice of content."""

    body: bytes
    content_type: str | None
    hints: SelectorHints
    chosen: Callable[[], Chosen]


#: The last pages, by which the kinds of a change are judged after their text, and their bytes at
#: most: a tree takes some ten times as much. To compare a few bodies costs less than a hash of one.
_KEPT: Final = deque[_Kept](maxlen=16)
_KEPT_BYTES: Final = 2**21


def _keep(page: _Kept) -> None:
    """Keep a page in the place of the oldest ones."""
    room = _KEPT_BYTES - len(page.body)
    if room < 0:
        return
    while sum(map(len, map(itemgetter(0), _KEPT))) > room:
        _KEPT.popleft()
    _KEPT.append(page)


def chosen_lately(body: bytes, content_type: str | None, hints: SelectorHints) -> Chosen | None:
    """Return the tree and the chosen pieces of a page that was parsed a moment ago."""
    for kept in tuple(_KEPT):
        if kept.body == body and kept.content_type == content_type and kept.hints == hints:
            return kept.chosen()
    return None


def parse(
    body: bytes,
    url: str,
    content_type: str | None,
    agent_token: str = "freshet",  # a robots token is no secret
    max_links: int = 50_000,
    hints: SelectorHints = NO_HINTS,
    *,
    deepest: int | None = None,
    requisites: bool = False,
) -> ParsedPage:
    """Parse a page. ``url`` is its URL, ``content_type`` its header, if any.

    What is read without markup (:mod:`freshet.crawler.reduce.formats`) has no links.
    ``agent_token`` is the robots token, ``hints`` select the main text in HTML, ``requisites`` asks
    for them.

    Raises:
        RecursionError: the tree would have more than ``deepest`` levels.
        SelectolaxError: if Lexbor gives up (it runs out of memory).
        MemoryError: if there is too little memory elsewhere.
    """
    found = format_of(content_type).read(body, content_type)
    if found.html is None:
        return ParsedPage(
            without_fragment(url),
            found.encoding,
            is_plain=True,
            blocks=blocks_compared(found.blocks),
        )
    refuse_depth(found.html, deepest)
    html, encoding = found.html, found.encoding
    del found  # up to 40 MB of a large page
    if hints == NO_HINTS and is_usable():
        read: ReadPage | _InSteps = _at_once(html, url, agent_token, max_links)
    else:
        read = _in_steps(html, url, hints, max_links)
    if not read.is_cut:
        _keep(_Kept(body, content_type, hints, read.chosen))
    remark = None
    if read.is_cut:
        remark = f"only its first {max_links:,} links were read; raise parse.max_links to read more"
    elif hints.include and not read.has_included:
        remark = "nothing matches the site's include: its main text was found as without it"
    needed = _requisites(read) if requisites else ()
    return _about(
        read.head,
        read.links,
        encoding,
        agent_token,
        blocks=read.blocks,
        sketch=read.sketch,
        remark=remark,
        requisites=needed,
    )


def standing(
    body: bytes, content_type: str | None, digests: Set[int], *, deepest: int | None = None
) -> Blocks:
    """Return the blocks of a page with these digests, also beside its content.

    The result is empty if the page lacks one of the digests. Texts in an element with a state, such
    as a tab, do not count: they may be shown and hidden although the markup has them. Raises as
    :func:`parse`.
    """
    chosen = chosen_lately(body, content_type, NO_HINTS)
    if chosen is None:
        found = format_of(content_type).read(body, content_type)
        if found.html is None:
            return having(blocks_compared(found.blocks), digests)
        refuse_depth(found.html, deepest)
        tree, _ = tree_shown(found.html)
    else:
        tree, _ = chosen
    pieces = Pieces(tree)
    every = having(main_text(tree, pieces), digests)
    # Mostly one is missing, and visibility need not be computed.
    if not every:
        return every
    holders = pieces.holders
    ordered = sorted(holders)
    toggled = [*_toggled(tree, ordered)]
    hidden = {node for each in toggled for node in _within(ordered, each)}
    if not hidden:
        return every
    shown = [number for number, node in enumerate(holders) if node not in hidden]
    return having(main_text(tree, pieces.only(shown)), digests)


def having(blocks: Blocks, digests: Set[int]) -> Blocks:
    """Return the blocks with these digests, empty if one of them is missing."""
    found = block_digests(blocks.texts)
    if not digests <= set(found):
        return Blocks()
    stay = [digest in digests for digest in found]
    texts, kinds = tuple(compress(blocks.texts, stay)), tuple(compress(blocks.kinds, stay))
    return Blocks(texts, kinds, tuple(compress(blocks.places, stay)))


def _within(ordered: Sequence[int], nodes: range) -> Sequence[int]:
    """Return the ordered nodes in a range."""
    return ordered[bisect_left(ordered, nodes.start) : bisect_left(ordered, nodes.stop)]


def _toggled(tree: Tree, holders: Sequence[int]) -> Iterator[range]:
    """Yield the nodes of each element with a state, except for one with most of the pieces.

    ``holders`` are the elements of the pieces, sorted.
    """
    body, names = tree.body, [*tree.values_of("class"), *tree.values_of("id")]
    states = set(filter(_tells_state, {name for _, name in names}))
    telling = {node for node, name in names if name in states}
    for node in telling.union(*map(tree.saying, _HIDING)):
        if not body < node < tree.end[body]:
            continue
        nodes = range(node, tree.end[node])
        is_part = 0 < 2 * len(_within(holders, nodes)) <= len(holders)
        if is_part and (node in telling or not is_shown(tree.attributes(node))):
            yield nodes


#: Words in names of elements that are shown at times, and those that make them a matter of style.
_STATES: Final = frozenset(
    "hidden hide invisible visible show shown collapse collapsed expanded active inactive "
    "open opened closed current selected disabled enabled offscreen".split()
)
_STYLES: Final = frozenset("backface border events outline overflow select text transition".split())
#: Attributes without which no element is hidden, but by its names.
_HIDING: Final = frozenset({"hidden", "aria-hidden", "style"})
_NONE: Final = frozenset({"d-none", "display-none"})


@lru_cache(maxsize=4096)
def _tells_state(names: str) -> bool:
    """Return whether one of these names, an id or classes, is a state's."""
    # The part before the colon is a condition of a style.
    tokens = [token.rpartition(":")[2] for token in names.split()]
    words = (words_of(token) for token in tokens)
    return not _NONE.isdisjoint(tokens) or any(
        not _STATES.isdisjoint(it) and _STYLES.isdisjoint(it) for it in words
    )


class _InSteps(NamedTuple):
    """A page that was read step by step: its head, links, text and chosen pieces."""

    head: PageHead
    links: Links
    is_cut: bool
    blocks: Blocks
    has_included: bool
    chosen: Callable[[], Chosen]
    sketch: Sketch | None = None


def _requisites(read: "ReadPage | _InSteps") -> tuple[str, ...]:
    from freshet.crawler.reduce.requisites import page_requisites  # noqa: PLC0415 - for archives

    return page_requisites(read.chosen()[0], read.head.base_url)


def _in_steps(html: bytes, url: str, hints: SelectorHints, max_links: int) -> _InSteps:
    """Read a page as its site's selectors show it, or by a parser that the core cannot call."""
    tree, html = tree_shown(html, TreeLimits(links=2 * max_links))
    head = PageHead.of(tree, url)
    found = links_of(tree, head.base_url, max_links)
    tree, pieces, has_included = choice_of(tree, html, hints)
    chosen = tree, pieces
    return _InSteps(head, *found, main_text(tree, pieces), has_included, lambda: chosen)


def _at_once(html: bytes, url: str, agent_token: str, max_links: int) -> ReadPage:
    return read_at_once(html, url, agent_token, max_links) or cast(
        ReadPage, read_at_once(_shown(html), url, agent_token, max_links, is_shown=True)
    )


def beginning(
    body: bytes,
    url: str,
    content_type: str | None,
    limits: TreeLimits,
    agent_token: str = "freshet",  # a robots token is no secret
    max_links: int = 50_000,
) -> ParsedPage:
    """Return the metadata and links of a page, without text, as far as the limits allow.

    For pages that :func:`parse` cannot read; raises as that.
    """
    found = format_of(content_type).read(body, content_type)
    if found.html is None:
        raise ValueError("what has no markup has no links")
    tree, _ = tree_shown(found.html, limits._replace(links=2 * max_links), partly=True)
    head = PageHead.of(tree, url)
    links, _ = links_of(tree, head.base_url, max_links)
    return _about(head, links, found.encoding, agent_token)


def _about(
    head: PageHead, links: Links, encoding: str | None, agent_token: str, **others: Any
) -> ParsedPage:
    """Return a page with the statements of its head."""
    return ParsedPage(
        base_url=head.base_url,
        encoding=encoding,
        title=head.title(),
        language=head.language(),
        canonical=head.canonical(),
        links=links,
        feeds=head.feeds(),
        meta_refresh=head.meta_refresh(),
        robots_meta=head.robots_meta(agent_token),
        hub_links=head.hub_links(),
        **others,
    )


#: An address that Cloudflare hides from machines: its bytes, each combined with the first one.
_HIDDEN_ADDRESS: Final = re.compile(
    rb"(<[^<>]*\sdata-cfemail\s*=\s*[\"']?([0-9a-f]{2})((?:[0-9a-f]{2})+)\b[^<>]*>)[^<]*",
    re.IGNORECASE,
)
#: The same of a link that a script would lead to an address; it differs in each response.
_PROTECTED: Final = "/cdn-cgi/l/email-protection"
_HIDDEN_LINK: Final = re.compile(
    rb"(<a\b[^<>]*\shref\s*=\s*[\"']?)[^\"'<>\s]*/cdn-cgi/l/email-protection#"
    rb"([0-9a-f]{2})((?:[0-9a-f]{2})+)",
    re.IGNORECASE,
)


def tree_shown(
    html: bytes, limits: TreeLimits = NO_LIMITS, *, partly: bool = False
) -> tuple[Tree, bytes]:
    """Return the tree of a page as readers see it, and the page so.

    It contains addresses that Cloudflare hides, and shadow roots as elements. Raises as
    :func:`tree_of`.
    """
    tree = tree_of(html, limits, partly=partly)
    said = chain(tree.saying("data-cfemail"), tree.saying("shadowrootmode"))
    if next(said, None) is None and _PROTECTED.encode() not in tree.values:
        return tree, html
    html = _shown(html)
    return tree_of(html, limits, partly=partly), html


def _shown(html: bytes) -> bytes:
    if b"/cdn-cgi/l/email-protection#" in html:
        html = _HIDDEN_LINK.sub(
            lambda it: b"%bmailto:%b" % (it[1], _address(it).replace(b" ", b"%20")), html
        )
    if b"data-cfemail" in html:
        html = _HIDDEN_ADDRESS.sub(_with_address, html)
    return with_shadow_roots(html)


def _with_address(found: re.Match[bytes]) -> bytes:
    """Return the tag and the address that a script would write in place of the text.

    The same page is served with and without this protection, and the text hides the address.
    """
    return found[1] + _address(found)


def _address(found: re.Match[bytes]) -> bytes:
    key = int(found[2], 16)
    address = bytes(byte ^ key for byte in bytes.fromhex(found[3].decode()))
    return escape(address.decode("utf-8", "replace")).encode()


def markup_of(body: bytes, content_type: str | None) -> bytes:
    """Return a body of any format as HTML in UTF-8."""
    html = format_of(content_type).read(body, content_type).html
    return utf8_of(body, content_type)[0] if html is None else html


def dom_of(html: bytes, deepest: int | None = None) -> LexborHTMLParser:
    """Return the tree of a page; raises as :func:`parse`."""
    refuse_depth(html, deepest)
    return LexborHTMLParser(html, options=PARSER_OPTIONS)


def refuse_depth(html: bytes, deepest: int | None) -> None:
    """Raise RecursionError if a page has more than ``deepest`` levels."""
    if deepest is None or start_tags(html) <= deepest:
        return
    if (depth := max_depth(html)) > deepest:
        raise RecursionError(f"elements nested {depth:,} deep")


# -- stubs -------------------------------------------------------------------

#: A longer page is not a stub.
_STUB_BYTES: Final = 65_536
_UNSHOWN: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<title\b.*?</title\s*>|<style\b.*?</style\s*>|<!doctype[^>]*>|<\?xml[^>]*>",
    re.IGNORECASE | re.DOTALL,
)
_ANY_TAG: Final = re.compile(r"</?([a-z][^\s/>]*)([^>]*)>", re.IGNORECASE)
#: Elements that are invisible without a text in them.
_EMPTY_ELEMENTS: Final = frozenset(
    "html head title meta link style base body div span p br hr main article section header footer "
    "nav aside center font b i em strong a ul ol li dl table thead tbody tfoot tr td th "
    "h1 h2 h3 h4 h5 h6 noscript".split()
)
#: Attributes that may show a picture, or lead to the page that was meant.
_SHOWING: Final = re.compile(r"url\(|\bbackground\s*=|\brefresh\b|\bhref\s*=", re.IGNORECASE)


def is_stub(body: bytes, content_type: str | None, *, is_plain: bool) -> bool:
    """Return whether a body is white space, or an HTML page without visible content.

    A word, a picture, a frame, a form, a link or a script in it is something.
    """
    if len(body) > _STUB_BYTES or is_plain:
        return not body.strip()
    text = _UNSHOWN.sub("", decode(body, content_type)[0])
    for name, attributes in _ANY_TAG.findall(text):
        shows = _SHOWING.search(attributes) and name.lower() not in ("link", "base")
        if shows or name.lower() not in _EMPTY_ELEMENTS:
            return False
    return not unescape(_ANY_TAG.sub("", text)).strip(_INVISIBLE)


#: White space, no-break spaces, and characters without width.
_INVISIBLE: Final = "".join(
    chr(code) for code in (*range(0x21), 0x7F, 0x85, 0xA0, 0xAD, *range(0x2000, 0x2010), 0x2028,
                           0x2029, 0x202F, 0x205F, 0x2060, 0x3000, 0xFEFF)
)  # fmt: skip


# -- selectors ---------------------------------------------------------------
# One of the innermost elements with a text is named by its id or a class, else by its path below a
# named one. Names that a tool made, or that need escapes, are left out.

#: A body, its content type, and the text of a block, "" where it is not.
Side: TypeAlias = tuple[bytes, str | None, str]
_NAME: Final = re.compile("-?[A-Za-z_][A-Za-z_-]{0,63}")
#: Blocks that may go with one, if they are a quarter of all; selectors, and steps, that are tried.
_FEW, _TRIED, _STEPS = 8, 48, 16


def selector_of(
    url: str, sides: Sequence[Side], hints: SelectorHints, *, deepest: int | None = None
) -> dict[str, str]:
    """Return as ``selector`` one that takes a block out of two versions, else "".

    It selects one element, with only a few blocks. Raises as :func:`parse`.
    """

    def texts(**selectors: Any) -> list[Counter[str]]:
        said = replace(hints, **selectors)
        pages = (parse(of, url, kind, hints=said, deepest=deepest) for of, kind, _ in sides)
        return [Counter(it.blocks.texts) for it in pages]

    def is_fit(it: str) -> bool:
        left, inside = texts(ignore=(*hints.ignore, it)), texts(include=(it,), strict=True)
        return all(
            _takes_few(whole[i], left[i], inside[i], text)
            and left[i] - left[~i] <= whole[i] - whole[~i]
            for i, (_, _, text) in enumerate(sides)
        )

    whole = texts()
    body, content_type, text = next(side for side in reversed(sides) if side[2])
    tree = dom_of(markup_of(body, content_type))
    tree.strip_tags(["script", "style", "svg", "template"])
    named = ((it, node) for node in _holders(tree, text) for it in selectors_of(node))
    alone = (it for it, node in named if [n.mem_id for n in tree.css(it)] == [node.mem_id])
    return {"selector": next(filter(is_fit, islice(alone, _TRIED)), "")}


def _takes_few(whole: Counter[str], left: Counter[str], inside: Counter[str], text: str) -> bool:
    """Return whether a page without the selected part lacks only a few blocks, with a text.

    ``inside`` are the blocks that are taken.
    """
    lost = whole - left
    most = max(1, min(_FEW, whole.total() // 4))
    is_little = bool(left) and left <= whole and lost <= inside and lost.total() <= most
    return is_little and (not text or text in lost)


def _holders(tree: LexborHTMLParser, text: str) -> Iterator[LexborNode]:
    """Yield the innermost elements with a text, ignoring white space, in document order."""
    wanted, waiting = "".join(text.split()), [tree.body] if tree.body else []
    while waiting:
        node = waiting.pop()
        texts = [(it, normalize("NFC", compared(it.text()))) for it in node.iter()]
        inner = [it for it, shown in texts if wanted in "".join(shown.split())]
        waiting += reversed(inner)
        if not inner:
            yield node


def selectors_of(node: LexborNode | None) -> Iterator[str]:
    """Yield selectors of an element, first by its name, then by its place below a named one."""
    path, steps = "", _STEPS
    while node and (steps := steps - 1) and (tag := node.tag or "").replace("-", "").isalnum():
        yield from (f"{own}{path}" for own in _named(node, tag))
        if tag == "body":
            yield f"body{path}"
            return
        same = [it.mem_id for it in node.parent.iter() if it.tag == tag] if node.parent else []
        count = f":nth-of-type({same.index(node.mem_id) + 1})" if len(same) > 1 else ""
        path, node = f" > {tag}{count}{path}", node.parent


def _named(node: LexborNode, tag: str) -> Iterator[str]:
    """Yield selectors of an element by its id and by its classes."""
    classes = (node.attrs.get("class") or "").split()
    names = [("#", node.id or ""), *((f"{tag}.", each) for each in classes)]
    return (f"{sign}{name}" for sign, name in names if _NAME.fullmatch(name))


# -- link headers ------------------------------------------------------------
# Links of HTTP Link headers (RFC 8288).

# Section 3: a target in angle brackets, then parameters.
_LINK: Final = re.compile(
    r"""<([^<>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s",;]*))?)*)"""
)
_PARAMETER: Final = re.compile(
    r""";\s*([\w!#$&+.^`|~*-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*)))?"""
)
#: Characters of a header that are read: hubs and feeds are named in fewer.
MAX_HEADER: Final = 8_192


def header_links(headers: Iterable[str]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each link's reference, as written, and its parameters by lower-case name.

    Of a parameter that is given twice the first counts, as section 3.3 demands for ``rel``.
    """
    for header in headers:
        for target, parameters in _LINK.findall(header[:MAX_HEADER]):
            found = reversed(_PARAMETER.findall(parameters))
            yield target.strip(), {name.lower(): quoted or plain for name, quoted, plain in found}
