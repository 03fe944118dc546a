"""The links of a page, in document order: which elements link, and where they lead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from selectolax.lexbor import LexborNode

from crawler.urls import canonical, resolve_all
from storage.records import Links

#: The elements that :func:`reference` understands, as a selector.
LINKING: Final = "a[href], area[href], iframe[src], frame[src], link[href]"
#: Relations of a ``link`` element that lead to another page for people (HTML, section 4.6.7;
#: older names from HTML 4.01, section 6.12). ``canonical`` is among them because the page
#: that it names may be known by nothing else.
NAVIGABLE_RELATIONS: Final = frozenset(
    {
        *("alternate", "appendix", "author", "bookmark", "canonical", "chapter", "contents"),
        *("copyright", "first", "glossary", "help", "home", "index", "last", "license", "next"),
        *("prev", "previous", "privacy-policy", "section", "start", "subsection"),
        *("terms-of-service", "toc", "top", "up"),
    }
)
_FEED_TYPES: Final = frozenset(
    {
        "application/rss+xml",
        "application/atom+xml",
        "application/rdf+xml",
        "application/feed+json",
    }
)
_PAGE_TYPES: Final = frozenset({"", "text/html", "application/xhtml+xml"})
_ANCHOR_CHARACTERS: Final = 200
_BATCH: Final = 1024


def relations(attributes: dict[str, str | None]) -> list[str]:
    """The tokens of a rel attribute, lower-case, sorted, each once."""
    return sorted(set((attributes.get("rel") or "").lower().split()))


def is_feed(attributes: dict[str, str | None]) -> bool:
    """Whether a ``link`` element names a feed of the page (RSS autodiscovery, Atom, JSON)."""
    tokens = relations(attributes)
    return "feed" in tokens or ("alternate" in tokens and _media_type(attributes) in _FEED_TYPES)


def _media_type(attributes: dict[str, str | None]) -> str:
    return (attributes.get("type") or "").partition(";")[0].strip().lower()


def reference(node: LexborNode) -> tuple[str, str] | None:
    """The URL reference and the relations of a linking element, if it leads to a page."""
    attributes = node.attributes
    tokens = relations(attributes) if "rel" in attributes else []
    if node.tag in {"iframe", "frame"}:
        return attributes.get("src") or "", ""
    if node.tag == "link" and not _is_navigable(tokens, attributes):
        return None
    return attributes.get("href") or "", " ".join(tokens)


def _is_navigable(tokens: list[str], attributes: dict[str, str | None]) -> bool:
    return (
        not NAVIGABLE_RELATIONS.isdisjoint(tokens)
        and "stylesheet" not in tokens
        and _media_type(attributes) in _PAGE_TYPES
    )


@dataclass(slots=True)
class LinkColumns:
    """Links while they are gathered: one entry for each canonical URL.

    The first occurrence gives the place, relations and anchor; an occurrence that may be
    followed replaces one that says ``nofollow``. At ``limit`` entries the rest is left out
    and ``truncated`` set.
    """

    limit: int
    truncated: bool = False
    _fetch_urls: dict[str, str] = field(default_factory=dict)
    _rels: dict[str, str] = field(default_factory=dict)
    _anchors: dict[str, str] = field(default_factory=dict)

    def add(self, fetch_url: str, rels: str, anchor: str) -> None:
        """Take one occurrence of a link; ``fetch_url`` is resolved and has no fragment."""
        url = _canonical(fetch_url)
        if url is None:
            return
        if url in self._rels:
            if "nofollow" not in self._rels[url].split() or "nofollow" in rels.split():
                return
        elif len(self._rels) >= self.limit:
            self.truncated = True
            return
        self._fetch_urls[url], self._rels[url], self._anchors[url] = fetch_url, rels, anchor

    def links(self) -> Links:
        """The columns as a value."""
        return Links(
            tuple(self._fetch_urls),
            tuple(self._fetch_urls.values()),
            tuple(self._rels.values()),
            tuple(self._anchors.values()),
        )


def _canonical(url: str) -> str | None:
    try:
        return canonical(url)
    except ValueError:
        return None


def page_links(nodes: Iterable[LexborNode], base: str, limit: int) -> LinkColumns:
    """The links of a page's linking elements, resolved against ``base``."""
    columns = LinkColumns(limit)
    remaining = iter(nodes)
    # In batches, so that a page of a million links stops at the limit.
    while not columns.truncated and (batch := list(islice(remaining, _BATCH))):
        found = [(node, ref) for node in batch if (ref := reference(node)) is not None]
        urls = resolve_all([href for _, (href, _) in found], base)
        _add_batch(columns, found, urls)
    return columns


def _add_batch(
    columns: LinkColumns,
    found: Sequence[tuple[LexborNode, tuple[str, str]]],
    urls: Sequence[str | None],
) -> None:
    for (node, (_, rels)), url in zip(found, urls, strict=True):
        if url is not None:
            columns.add(url, rels, _anchor(node))


def _anchor(node: LexborNode) -> str:
    """What the link shows: its text, else the alternative text of an image in it."""
    if node.tag not in {"a", "area"}:
        return node.attributes.get("title") or ""
    text = collapsed(node.text())
    if not text:
        image = node if node.tag == "area" else node.css_first("img[alt]")
        text = collapsed(image.attributes.get("alt") or "") if image else ""
    return text


def collapsed(text: str) -> str:
    """Anchor text with white space collapsed, cut at 200 characters."""
    return " ".join(text[: _ANCHOR_CHARACTERS * 10].split())[:_ANCHOR_CHARACTERS].rstrip()
