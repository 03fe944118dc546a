"""The entries of a feed (RSS, Atom, RDF), as links and as blocks of text.

feedparser understands every dialect, at a price: a millisecond for each kilobyte, and a
few kilobytes of malice cost half a second and 40 MB that stay. So it is loaded only when
the first feed arrives, and only where :mod:`crawler.parsing.quarantine` can end the process.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser

from crawler.parsing.blocks import ROOT, BlockKind, Blocks, below
from crawler.parsing.links import LinkColumns, collapsed
from crawler.urls import resolve_all
from storage.records import Links

#: A longer feed is cut here: it takes about 3 s, and feeds begin with what is new.
MAX_FEED_BYTES: Final = 1024 * 1024
_MAX_ENTRIES: Final = 50_000
#: The relations of an entry's link that name the entry (RFC 4287, section 4.2.7.2).
_ENTRY_RELATIONS: Final = frozenset({"", "alternate"})


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed's entries in the order of the document.

    ``links`` lead to them, with their titles; ``blocks`` have one block for each: its id,
    title and content. When the feed was built, or says that an entry was updated, is in
    neither.
    """

    links: Links
    blocks: Blocks


def read_feed(body: bytes, url: str) -> Feed:
    """The entries of a feed.

    ``url`` is where the feed came from; relative links are resolved against ``xml:base``
    if the feed says so, else against it. What is not a feed has no entries. No network.
    """
    import feedparser  # noqa: PLC0415  # slow to load, and most crawls meet few feeds

    feed = feedparser.parse(
        # A stream: bytes could be taken for the name of a file.
        io.BytesIO(body[:MAX_FEED_BYTES]),
        response_headers={"content-location": url},
        sanitize_html=False,
        resolve_relative_uris=False,
    )
    columns = LinkColumns(_MAX_ENTRIES)
    found = [pair for entry in feed.entries for pair in _links_of(entry)]
    for fetch_url, (_, title) in zip(resolve_all([h for h, _ in found], url), found, strict=True):
        if fetch_url is not None:
            columns.add(fetch_url, "", title)
    return Feed(columns.links(), _blocks(feed.entries[:_MAX_ENTRIES]))


def _blocks(entries: Iterable[Mapping[str, Any]]) -> Blocks:
    texts = [text for text in map(_text_of, entries) if text]
    place = below(ROOT, "entry")
    return Blocks(tuple(texts), (BlockKind.ITEM,) * len(texts), (place,) * len(texts))


def _text_of(entry: Mapping[str, Any]) -> str:
    said = [part.get("value", "") for part in entry.get("content", ())] or [entry.get("summary")]
    content = " ".join(_plain(str(part)) for part in said if part)
    return collapsed(f"{entry.get('id') or ''} {_title(entry)} {content}")


def _links_of(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    title = _title(entry)
    for link in entry.get("links", ()):
        if (link.get("rel") or "") in _ENTRY_RELATIONS and link.get("href"):
            yield str(link["href"]), title


def _title(entry: Mapping[str, Any]) -> str:
    title = str(entry.get("title") or "")
    if "html" in (entry.get("title_detail") or {}).get("type", ""):
        title = _plain(title)
    return collapsed(title)


def _plain(markup: str) -> str:
    return LexborHTMLParser(markup, is_fragment=True).text(separator=" ")
