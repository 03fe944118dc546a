"""The links of a page, in document order, each URL once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from freshet.crawler.parsing.markup import Markup
from freshet.crawler.parsing.tags import Tag
from freshet.crawler.urls import canonical, resolve_all
from freshet.storage.records import Links

_ANCHOR_CHARACTERS: Final = 200
_BATCH: Final = 1024


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


def page_links(markup: Markup, numbers: Iterable[int], base: str, limit: int) -> LinkColumns:
    """The links of the linking elements that begin there, resolved against ``base``."""
    columns = LinkColumns(limit)
    # Most links of a page are repetitions: only the first counts, and only it is looked into.
    first: dict[tuple[str, str], int] = {}
    for i in numbers:
        link = markup.tags[i].link
        if link is not None:
            first.setdefault(link, i)
    remaining = iter(first.items())
    # In batches, so that a page of a million links stops at the limit.
    while not columns.truncated and (batch := list(islice(remaining, _BATCH))):
        urls = resolve_all([href for (href, _), _ in batch], base)
        for ((_, rels), i), url in zip(batch, urls, strict=True):
            if url is not None:
                columns.add(url, rels, _anchor(markup, i))
    return columns


def _anchor(markup: Markup, i: int) -> str:
    """What the link shows: its text, else the alternative text of an image in it."""
    tag = markup.tags[i]
    if tag.name not in {"a", "area"}:
        return tag.attributes.get("title", "")
    text = collapsed(markup.text(i))
    if not text:
        inside = (tag, *markup.tags[i + 1 : markup.end(i)])
        text = collapsed(next((t.attributes["alt"] for t in inside if _has_words(t)), ""))
    return text


def _has_words(tag: Tag) -> bool:
    return tag.name in {"img", "area"} and "alt" in tag.attributes


def collapsed(text: str) -> str:
    """Anchor text with white space collapsed, cut at 200 characters."""
    return " ".join(text[: _ANCHOR_CHARACTERS * 10].split())[:_ANCHOR_CHARACTERS].rstrip()
