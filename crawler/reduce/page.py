"""Parsing of pages: text, links and head; :mod:`crawler.reduce.parser_process` runs it.

HTML is parsed by Lexbor as a browser without scripting would, so that the content of
``noscript`` counts. No rule here depends on the subject of the page.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import unescape
from itertools import compress, islice
from typing import Any, Final, TypeAlias
from unicodedata import normalize

from selectolax.lexbor import LexborHTMLParser, LexborNode

from freshet.crawler.reduce.blocks import Blocks, blocks_compared, compared
from freshet.crawler.reduce.charset import decode
from freshet.crawler.reduce.formats.registry import format_of
from freshet.crawler.reduce.main_text import main_text
from freshet.crawler.reduce.markup import (
    HUB_RELATIONS,
    NO_HINTS,
    Markup,
    SelectorHints,
    Tag,
    is_feed,
    read,
    relations,
)
from freshet.crawler.reduce.nesting import max_depth, start_tags
from freshet.crawler.reduce.requisites import page_requisites
from freshet.crawler.reduce.tree import PARSER_OPTIONS
from freshet.crawler.urls import canonical, is_http, resolve, resolve_all, without_fragment
from freshet.storage.records import Links

# -- links -------------------------------------------------------------------

_ANCHOR_CHARACTERS: Final = 200
_BATCH: Final = 1024


def gathered(found: Iterable[tuple[str, str, str]], limit: int) -> tuple[Links, bool]:
    """Return links as columns, one entry for each canonical URL, and whether there are more.

    ``found`` has fetch URLs (resolved, without fragments), relations and anchors. Of a URL the
    first occurrence counts, or the first that does not say ``nofollow``.
    """
    links: dict[str, tuple[str, str, str]] = {}
    is_cut = False
    for link in found:
        try:
            url = canonical(link[0])
        except ValueError:
            continue
        if url not in links:
            is_cut = len(links) >= limit
            if is_cut:
                break
        elif "nofollow" not in links[url][1].split() or "nofollow" in link[1].split():
            continue
        links[url] = link
    columns = zip(*links.values(), strict=True) if links else ((), (), ())
    return Links(tuple(links), *columns), is_cut


def page_links(markup: Markup, base: str) -> Iterator[tuple[str, str, str]]:
    """Yield URLs (resolved against ``base``), relations and anchors of a page's links."""
    # Most links of a page are repetitions: only the first counts, and only it is examined.
    first: dict[tuple[str, str], tuple[int, Tag]] = {}
    for told in markup.told:
        link = told[1].link
        if link is not None:
            first.setdefault(link, told)
    remaining = iter(first.items())
    # In batches, so that a page of a million links stops at the limit.
    while batch := list(islice(remaining, _BATCH)):
        urls = resolve_all([href for (href, _), _ in batch], base)
        found = [(url, *link) for link, url in zip(batch, urls, strict=True) if url is not None]
        anchors = _anchors(markup, [told for _, _, told in found])
        for (url, (_, rels), _), anchor in zip(found, anchors, strict=True):
            yield url, rels, anchor


def _anchors(markup: Markup, links: Sequence[tuple[int, Tag]]) -> Iterator[str]:
    """Yield the text of each link, else the alternative text of an image in it."""
    texts = markup.texts([i for i, _ in links], _ANCHOR_CHARACTERS * 10, _ANCHOR_CHARACTERS)
    for (_, tag), (text, image) in zip(links, texts, strict=True):
        if tag.name not in {"a", "area"}:
            yield tag.attributes.get("title", "")
        elif image is not None:
            yield collapsed(image.attributes["alt"])
        else:
            yield text


def collapsed(text: str) -> str:
    """Return the beginning of an anchor text with white space collapsed."""
    return " ".join(text[: _ANCHOR_CHARACTERS * 10].split())[:_ANCHOR_CHARACTERS].rstrip()


# WHATWG HTML, section 4.2.5.3, "shared declarative refresh steps".
_REFRESH: Final = re.compile(
    r"""[\t\n\f\r ]* (\d+|(?=\.)) [\d.]* (?>[\t\n\f\r ]*[;,]|[\t\n\f\r ]) [\t\n\f\r ]*+
    (?>url [\t\n\f\r ]* = [\t\n\f\r ]*|) (?: "([^"]*) | '([^']*) | (.+) )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_MAX_DELAY_S: Final = 10.0**9
#: A redirect in the page itself: the seconds before it, and the resolved URL.
MetaRefresh: TypeAlias = tuple[float, str]


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """A parsed page. ``encoding`` is the WHATWG name of its character encoding, None of PDF.

    ``is_plain``: it was read as a text without markup.

    ``canonical`` (a hint), ``feeds`` and ``base_url`` are resolved and without fragments;
    ``robots_meta`` are the contents of the robots ``meta`` elements for everybody and for
    this crawler; ``blocks`` is the main text; ``remark`` says what was not read as asked
    for; ``hub_links`` are its links to its hub and to itself; ``requisites`` are the URLs that it
    needs to be shown, if they were asked for.
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
    """Parse a page. ``url`` is where it came from, ``content_type`` its header, if any.

    What is read without markup (:mod:`freshet.crawler.reduce.formats.registry`) has no links.
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
    encoding, tree = found.encoding, dom_of(found.html, body, deepest)
    del found  # up to 40 MB of a large page
    has_included = hints.mark(tree)
    shown = written(tree)
    markup = read(shown)
    head = _Head(markup, url)
    needed = page_requisites(markup.distinct, shown, head.base_url) if requisites else ()
    del shown
    links, is_cut = gathered(page_links(markup, head.base_url), max_links)
    remark = None
    if hints.strict:
        blocks = markup.walk(selected=True, spares=True)[0]
    else:
        blocks = main_text(markup, selected=has_included)
    if is_cut:
        remark = f"only its first {max_links:,} links were read; raise parse.max_links to read more"
    elif hints.include and not has_included:
        remark = "nothing matches the site's include: its main text was found as without it"
    return ParsedPage(
        base_url=head.base_url,
        encoding=encoding,
        title=head.title,
        language=head.language(),
        canonical=head.canonical(),
        links=links,
        remark=remark,
        feeds=head.feeds(),
        meta_refresh=head.meta_refresh(),
        robots_meta=head.robots_meta(agent_token),
        blocks=blocks,
        hub_links=head.hub_links(),
        requisites=needed,
    )


#: Lexbor writes their text as it is, also in drawings and formulas, where it may be anything.
_RAW: Final = ":is(script, style, xmp, iframe, noembed, noframes, plaintext)"
_FOREIGN_RAW: Final = f"svg {_RAW}, math {_RAW}"


def written(tree: LexborHTMLParser) -> str:
    """Return the document of a tree.

    Raw text in drawings and formulas is taken out of the tree where it may be mistaken for tags.

    Raises:
        MemoryError: Lexbor has written nothing, not even the tags that every document has.
    """
    html = tree.html
    if html and ("<svg" in html or "<math" in html):
        raw = [it for it in tree.css(_FOREIGN_RAW) if "<" in it.text()]
        # The inner ones first: an element that is taken out takes them with it.
        for node in reversed(raw):
            node.decompose()
        html = tree.html if raw else html
    if html:
        return html
    raise MemoryError("no memory for the document of a tree")


def markup_of(body: bytes, content_type: str | None) -> str | bytes:
    """Return a body as HTML, whatever its format."""
    html = format_of(content_type).read(body, content_type).html
    return decode(body, content_type)[0] if html is None else html


def dom_of(html: str | bytes, body: bytes, deepest: int | None = None) -> LexborHTMLParser:
    """Return the tree of a body that was read as HTML; raises as :func:`parse`."""
    refuse_depth(html, body, deepest)
    return LexborHTMLParser(html, options=PARSER_OPTIONS)


def refuse_depth(html: str | bytes, body: bytes, deepest: int | None) -> None:
    """Raise RecursionError if a body that was read as HTML has more than ``deepest`` levels."""
    octets = html if isinstance(html, bytes) else body
    if deepest is None or start_tags(octets) <= deepest:
        return
    if (depth := max_depth(octets)) > deepest:
        raise RecursionError(f"elements nested {depth:,} deep")


# -- stubs -------------------------------------------------------------------

#: A longer page is none.
_STUB_BYTES: Final = 65_536
_UNSHOWN: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<title\b.*?</title\s*>|<style\b.*?</style\s*>|<!doctype[^>]*>|<\?xml[^>]*>",
    re.IGNORECASE | re.DOTALL,
)
_ANY_TAG: Final = re.compile(r"</?([a-z][^\s/>]*)([^>]*)>", re.IGNORECASE)
#: Elements that show nothing without a text in them.
_EMPTY_ELEMENTS: Final = frozenset(
    "html head title meta link style base body div span p br hr main article section header footer "
    "nav aside center font b i em strong a ul ol li dl table thead tbody tfoot tr td th "
    "h1 h2 h3 h4 h5 h6 noscript".split()
)
#: Attributes that may show a picture, or lead to the page that was meant.
_SHOWING: Final = re.compile(r"url\(|\bbackground\s*=|\brefresh\b|\bhref\s*=", re.IGNORECASE)


def is_stub(body: bytes, content_type: str | None, *, is_plain: bool) -> bool:
    """Return whether a body is white space, or a page of HTML in which there is nothing to see.

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


class _Head:
    """Elements that say something about a page, wherever they stand in the document."""

    def __init__(self, markup: Markup, url: str) -> None:
        self.title: str | None = None
        self._root: Mapping[str, str] | None = None
        self._links: list[Mapping[str, str]] = []
        self._metas: list[Mapping[str, str]] = []
        #: Whether each of them counts where scripts run, too.
        self._lasting: list[bool] = []
        bases: list[str] = []
        enclosing: Counter[str] = Counter()
        for i, tag in markup.told:
            if tag.link is not None and tag.name != "link":
                continue
            match tag.name:
                case "svg" | "noscript" as name:
                    enclosing[name] += -1 if tag.ends else 1
                case "link":
                    self._links.append(tag.attributes)
                case "meta":
                    self._metas.append(tag.attributes)
                    self._lasting.append(enclosing["noscript"] <= 0)
                case "base":
                    bases.append(tag.attributes["href"])
                case "html" if self._root is None:
                    self._root = tag.attributes
                # A drawing may have a title, too.
                case "title" if self.title is None and not enclosing["svg"]:
                    self.title = markup.texts([i])[0][0] or None
        # The first counts, if it is usable.
        self.base_url = (http_url(bases[0], url) if bases else None) or without_fragment(url)

    def language(self) -> str | None:
        """Return the language tag of the document (HTML, section 3.2.6.2), as written."""
        root = self._root or {}
        declared = root.get("lang") or root.get("xml:lang") or ""
        pragmas = (m["content"] for m in self._metas if _http_equiv(m) == "content-language")
        return declared.strip() or next((c.strip() for c in pragmas if "," not in c), "") or None

    def canonical(self) -> str | None:
        hints = (link for link in self._links if "canonical" in relations(link))
        return next(filter(None, map(self._target, hints)), None)

    def feeds(self) -> tuple[str, ...]:
        found = (self._target(link) for link in self._links if is_feed(link))
        return tuple(dict.fromkeys(url for url in found if url))

    def hub_links(self) -> tuple[tuple[str, str], ...]:
        """Return the links of relation hub and self, resolved (W3C WebSub, section 4)."""
        found = ((token, self._target(link)) for link in self._links for token in relations(link))
        return tuple((token, url) for token, url in found if url and token in HUB_RELATIONS)

    def _target(self, link: Mapping[str, str]) -> str | None:
        return http_url(link["href"], self.base_url)

    def meta_refresh(self) -> MetaRefresh | None:
        """Return the first refresh that leads elsewhere, and that scripts would not prevent."""
        metas = compress(self._metas, self._lasting)
        said = (meta["content"] for meta in metas if _http_equiv(meta) == "refresh")
        return next(filter(None, (refresh_of(text, self.base_url) for text in said)), None)

    def robots_meta(self, agent_token: str) -> tuple[str, ...]:
        names = {"robots", agent_token.lower()}
        return tuple(
            meta["content"] for meta in self._metas if meta.get("name", "").strip().lower() in names
        )


def refresh_of(text: str, base: str) -> MetaRefresh | None:
    """Return what a refresh in a page or in the header of that name says, if it leads elsewhere."""
    match = _REFRESH.match(text)
    url = http_url(match[2] or match[3] or match[4] or "", base) if match else None
    return (min(float(match[1] or 0), _MAX_DELAY_S), url) if match and url else None


def _http_equiv(meta: Mapping[str, str]) -> str:
    return meta.get("http-equiv", "").strip().lower()


def http_url(reference: str, base: str) -> str | None:
    """Return the URL of a page that a reference leads to, without its fragment."""
    url = resolve(reference, base) if reference.strip() else None
    return without_fragment(url) if url is not None and is_http(url) else None


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

    It selects one element, and takes a few blocks of it and nothing else. Raises as :func:`parse`.
    """

    def texts(**selectors: Any) -> list[Counter[str]]:
        said = replace(hints, **selectors)
        pages = (parse(of, url, kind, hints=said, deepest=deepest) for of, kind, _ in sides)
        return [Counter(it.blocks.texts) for it in pages]

    def is_fit(it: str) -> bool:
        left, inside = texts(ignore=(*hints.ignore, it)), texts(include=(it,), strict=True)
        return all(
            left[i] and left[i] <= whole[i] and (lost := whole[i] - left[i]) <= inside[i]
            and lost.total() <= max(1, min(_FEW, whole[i].total() // 4))
            and (not text or text in lost) and left[i] - left[~i] <= whole[i] - whole[~i]
            for i, (_, _, text) in enumerate(sides)
        )  # fmt: skip

    whole = texts()
    body, content_type, text = next(side for side in reversed(sides) if side[2])
    tree = dom_of(markup_of(body, content_type), body)
    tree.strip_tags(["script", "style", "svg", "template"])
    named = ((it, node) for node in _holders(tree, text) for it in selectors_of(node))
    alone = (it for it, node in named if [n.mem_id for n in tree.css(it)] == [node.mem_id])
    return {"selector": next(filter(is_fit, islice(alone, _TRIED)), "")}


def _holders(tree: LexborHTMLParser, text: str) -> Iterator[LexborNode]:
    """Yield the innermost elements with a text, whatever its white space, in document order."""
    wanted, waiting = "".join(text.split()), [tree.body] if tree.body else []
    while waiting:
        node = waiting.pop()
        texts = [(it, normalize("NFC", compared(it.text()))) for it in node.iter()]
        inner = [it for it, shown in texts if wanted in "".join(shown.split())]
        waiting += reversed(inner)
        if not inner:
            yield node


def selectors_of(node: LexborNode | None) -> Iterator[str]:
    """Yield selectors of an element, by its own name before its place below a named one."""
    path, steps = "", _STEPS
    while node and (steps := steps - 1) and (tag := node.tag or "").replace("-", "").isalnum():
        classes = (node.attrs.get("class") or "").split()
        names = [("#", node.id or ""), *((f"{tag}.", each) for each in classes)]
        yield from (f"{sign}{name}{path}" for sign, name in names if _NAME.fullmatch(name))
        if tag == "body":
            yield f"body{path}"
            return
        same = [it.mem_id for it in node.parent.iter() if it.tag == tag] if node.parent else []
        count = f":nth-of-type({same.index(node.mem_id) + 1})" if len(same) > 1 else ""
        path, node = f" > {tag}{count}{path}", node.parent


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
