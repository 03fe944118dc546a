"""The entries of a feed (RSS, Atom, RDF) as links.

feedparser understands every dialect, at a price: a millisecond for each kilobyte, and a
few kilobytes of malice cost half a second and 40 MB that stay. So it is loaded only when
the first feed arrives, and only where :mod:`crawler.parsing.quarantine` can end the process.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser

from crawler.parsing.links import LinkColumns, collapsed
from crawler.urls import resolve_all
from storage.records import Links

#: A longer feed is cut here: it takes about 3 s, and feeds begin with what is new.
MAX_FEED_BYTES: Final = 1024 * 1024
_MAX_ENTRIES: Final = 50_000
#: The relations of an entry's link that name the entry (RFC 4287, section 4.2.7.2).
_ENTRY_RELATIONS: Final = frozenset({"", "alternate"})


def entry_links(body: bytes, url: str) -> Links:
    """The links of a feed's entries in the order of the document, with their titles.

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
    return columns.links()


def _links_of(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    title = _title(entry)
    for link in entry.get("links", ()):
        if (link.get("rel") or "") in _ENTRY_RELATIONS and link.get("href"):
            yield str(link["href"]), title


def _title(entry: Mapping[str, Any]) -> str:
    title = str(entry.get("title") or "")
    if "html" in (entry.get("title_detail") or {}).get("type", ""):
        title = LexborHTMLParser(title, is_fragment=True).text()
    return collapsed(title)
