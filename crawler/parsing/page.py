"""Parsing: what a crawler reads from a page. Pure; :mod:`crawler.parsing.quarantine` runs it.

HTML is parsed by Lexbor as a browser without scripting would, so that what stands in
``noscript`` counts. No rule here depends on what the page is about.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from crawler.parsing.blocks import Blocks
from crawler.parsing.charset import decode
from crawler.parsing.json_text import is_json, json_text, media_type
from crawler.parsing.links import LINKING, is_feed, page_links, relations
from crawler.parsing.main_text import main_text, plain_text
from crawler.parsing.selectors import NO_HINTS, SelectorHints
from crawler.urls import is_http, resolve, without_fragment
from storage.records import Links

#: Without mutation events: with them every ``option`` costs a walk over all those before.
_OPTIONS: Final = LexborDocumentOptions.WO_EVENTS.value
_TELLING: Final = f"{LINKING}, base[href], meta[content], title"

# WHATWG HTML, section 4.2.5.3, "shared declarative refresh steps".
_REFRESH: Final = re.compile(
    r"""[\t\n\f\r ]* (\d+|(?=\.)) [\d.]* (?>[\t\n\f\r ]*[;,]|[\t\n\f\r ]) [\t\n\f\r ]*+
    (?:url [\t\n\f\r ]* = [\t\n\f\r ]*)?+ (?: "([^"]*) | '([^']*) | (.+) )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_MAX_DELAY_S: Final = 10.0**9


@dataclass(frozen=True, slots=True)
class MetaRefresh:
    """A redirect in the page itself: after ``delay_s`` seconds to ``url`` (resolved)."""

    delay_s: float
    url: str


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """A page as read. ``encoding`` is the WHATWG name of its character encoding.

    ``canonical`` (a hint), ``feeds`` and ``base_url`` are resolved and without fragments;
    ``robots_meta`` are the contents of the robots ``meta`` elements for everybody and for
    this crawler; ``blocks`` is the main text; ``links_truncated`` says that the page has
    more links than the limit.
    """

    base_url: str
    encoding: str
    title: str | None = None
    language: str | None = None
    canonical: str | None = None
    links: Links = field(default_factory=Links)
    links_truncated: bool = False
    feeds: tuple[str, ...] = ()
    meta_refresh: MetaRefresh | None = None
    robots_meta: tuple[str, ...] = ()
    blocks: Blocks = field(default_factory=Blocks)


def parse(
    body: bytes,
    url: str,
    content_type: str | None,
    agent_token: str = "freshet",  # a robots token is no secret
    max_links: int = 50_000,
    hints: SelectorHints = NO_HINTS,
) -> ParsedPage:
    """Read a page. ``url`` is where it came from, ``content_type`` its header, if any.

    Text of any kind but HTML and XML is taken as paragraphs without links, JSON as its
    values; ``hints`` say for HTML which elements are the main text.

    Raises:
        SelectolaxError: if Lexbor gives up (it runs out of memory).
    """
    text, encoding = decode(body, content_type)
    if is_plain(content_type):
        blocks = json_text(text) if is_json(content_type) else None
        return ParsedPage(without_fragment(url), encoding, blocks=blocks or plain_text(text))
    tree = LexborHTMLParser(text, options=_OPTIONS)
    del text  # up to 40 MB of a large page
    head = _Head(tree.css(_TELLING), url)
    links = page_links(head.linking, head.base_url, max_links)
    return ParsedPage(
        base_url=head.base_url,
        encoding=encoding,
        title=head.title(),
        language=_language(tree.root, head),
        canonical=head.canonical(),
        links=links.links(),
        links_truncated=links.truncated,
        feeds=head.feeds(),
        meta_refresh=head.meta_refresh(),
        robots_meta=head.robots_meta(agent_token),
        blocks=main_text(tree.body, hints) if tree.body is not None else Blocks(),
    )


def is_plain(content_type: str | None) -> bool:
    """Whether a Content-Type is that of text without markup."""
    kind, _, subtype = media_type(content_type).partition("/")
    return "xml" not in subtype and (
        (kind == "text" and subtype != "html") or is_json(content_type)
    )


class _Head:
    """The elements that say something about a page, wherever in the document they stand."""

    def __init__(self, nodes: list[LexborNode], url: str) -> None:
        self.linking: list[LexborNode] = []
        self._metas: list[tuple[LexborNode, dict[str, str | None]]] = []
        self._titles: list[LexborNode] = []
        bases: list[str | None] = []
        for node in nodes:
            if node.tag == "meta":
                self._metas.append((node, node.attributes))
            elif node.tag == "base":
                bases.append(node.attributes["href"])
            elif node.tag == "title":
                self._titles.append(node)
            else:
                self.linking.append(node)
        self.base_url = _base_url(bases, url)

    def title(self) -> str | None:
        """The first title that is not one of an SVG drawing."""
        for node in self._titles:
            if node.parent is None or node.parent.tag in {"head", "body"}:
                return " ".join(node.text().split()) or None
        return None

    def canonical(self) -> str | None:
        links = (n for n in self.linking if n.tag == "link")
        hints = (n for n in links if "canonical" in relations(n.attributes))
        return next(filter(None, map(self._target, hints)), None)

    def feeds(self) -> tuple[str, ...]:
        links = (n for n in self.linking if n.tag == "link")
        found = (self._target(n) for n in links if is_feed(n.attributes))
        return tuple(dict.fromkeys(url for url in found if url))

    def _target(self, node: LexborNode) -> str | None:
        return _http_url(node.attributes.get("href") or "", self.base_url)

    def http_equiv(self, name: str) -> list[tuple[LexborNode, str]]:
        """The elements and contents of ``meta http-equiv=name``."""
        return [
            (node, attributes["content"] or "")
            for node, attributes in self._metas
            if (attributes.get("http-equiv") or "").strip().lower() == name
        ]

    def meta_refresh(self) -> MetaRefresh | None:
        """The first refresh that leads somewhere; not one that only scripts would avert."""
        for node, content in self.http_equiv("refresh"):
            refresh = _refresh(content, self.base_url)
            if refresh is not None and not _in_noscript(node):
                return refresh
        return None

    def robots_meta(self, agent_token: str) -> tuple[str, ...]:
        names = {"robots", agent_token.lower()}
        return tuple(
            attributes["content"] or ""
            for _, attributes in self._metas
            if (attributes.get("name") or "").strip().lower() in names
        )


def _base_url(bases: list[str | None], url: str) -> str:
    """The document base URL: the first ``base`` counts, if it is one that can be used."""
    base = _http_url(bases[0] or "", url) if bases else None
    return base or without_fragment(url)


def _http_url(reference: str, base: str) -> str | None:
    url = resolve(reference, base) if reference.strip() else None
    return without_fragment(url) if url is not None and is_http(url) else None


def _refresh(content: str, base: str) -> MetaRefresh | None:
    """None where the content is not valid, or only asks to load the same page again."""
    match = _REFRESH.match(content)
    if match is None:
        return None
    url = _http_url(match[2] or match[3] or match[4] or "", base)
    return MetaRefresh(min(float(match[1] or 0), _MAX_DELAY_S), url) if url else None


def _in_noscript(node: LexborNode) -> bool:
    above = node.parent
    while above is not None and above.tag != "noscript":
        above = above.parent
    return above is not None


def _language(root: LexborNode | None, head: _Head) -> str | None:
    """The language tag of the document (HTML, section 3.2.6.2), as written."""
    attributes = root.attributes if root is not None else {}
    declared = attributes.get("lang") or attributes.get("xml:lang") or ""
    pragmas = (content for _, content in head.http_equiv("content-language"))
    return declared.strip() or next((c.strip() for c in pragmas if "," not in c), "") or None
