"""Which elements lead to other pages, and to which: links by tag and attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from freshet.crawler.urls import reference_head

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
#: Relations by which a page or a feed names its hub, and itself as the hub knows it.
HUB_RELATIONS: Final = frozenset({"hub", "self"})
_FEED_TYPES: Final = frozenset(
    {
        "application/rss+xml",
        "application/atom+xml",
        "application/rdf+xml",
        "application/feed+json",
    }
)
_PAGE_TYPES: Final = frozenset({"", "text/html", "application/xhtml+xml"})
#: The attribute of each linking element that says where it leads.
_LEADING: Final = {"a": "href", "area": "href", "link": "href", "iframe": "src", "frame": "src"}


def relations(attributes: Mapping[str, str]) -> list[str]:
    """The tokens of a rel attribute, lower-case, sorted, each once."""
    return sorted(set(attributes.get("rel", "").lower().split()))


def is_feed(attributes: Mapping[str, str]) -> bool:
    """Whether a ``link`` element names a feed of the page (RSS autodiscovery, Atom, JSON)."""
    tokens = relations(attributes)
    return "feed" in tokens or ("alternate" in tokens and _media_type(attributes) in _FEED_TYPES)


def reference(name: str, attributes: Mapping[str, str]) -> tuple[str, str] | None:
    """The URL reference and the relations of an element, if it leads to a page.

    Without the fragment, so that the parts of a page are one link.
    """
    target = attributes.get(_LEADING.get(name, ""))
    if target is None:
        return None
    target = reference_head(target)
    if name in {"iframe", "frame"}:
        return target, ""
    tokens = relations(attributes) if "rel" in attributes else []
    if name == "link" and not _is_navigable(tokens, attributes):
        return None
    return target, " ".join(tokens)


def _is_navigable(tokens: list[str], attributes: Mapping[str, str]) -> bool:
    return (
        not NAVIGABLE_RELATIONS.isdisjoint(tokens)
        and "stylesheet" not in tokens
        and _media_type(attributes) in _PAGE_TYPES
    )


def _media_type(attributes: Mapping[str, str]) -> str:
    return attributes.get("type", "").partition(";")[0].strip().lower()
