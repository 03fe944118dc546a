"""The entries of a feed (RSS, Atom, RDF), as links and as blocks of text.

feedparser understands every dialect, at a price: a millisecond for each kilobyte, and a
few kilobytes of malice cost half a second and 40 MB that stay. It is therefore loaded with the
first feed, and only where :mod:`crawler.reduce.parser_process` can end the process.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.reduce.markup import HUB_RELATIONS, ROOT, BlockKind, Blocks, below
from freshet.crawler.reduce.page import LinkColumns, collapsed
from freshet.crawler.urls import canonical, is_http, resolve_all
from freshet.storage.records import Links

#: A longer feed is cut here: it takes about 3 s, and feeds begin with what is new.
MAX_FEED_BYTES: Final = 1024 * 1024
_MAX_ENTRIES: Final = 50_000
_DATE_CHARACTERS: Final = 64
#: The relations of an entry's link that name the entry (RFC 4287, section 4.2.7.2).
_ENTRY_RELATIONS: Final = frozenset({"", "alternate"})


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed's entries in the order of the document.

    ``links`` lead to the entries, with their titles; ``blocks`` has one block per entry: id,
    title and content, without the times of building and updating. ``dated`` are the entries'
    pages (canonical), each with its date as written: of the update, else of publication, else
    None. ``hub_links`` are the feed's links to its hub and to itself.
    """

    links: Links
    blocks: Blocks
    dated: tuple[tuple[str, str | None], ...] = ()
    hub_links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _EntryLink:
    """A link of an entry, with its title and date; ``is_first``: it names the entry's page."""

    href: str
    title: str
    date: str | None
    is_first: bool


def read_feed(body: bytes, url: str) -> Feed:
    """Return the entries of a feed; none if the body is not a feed.

    ``url`` is where the feed came from; relative links are resolved against ``xml:base``
    if the feed has it, else against ``url``. No network.
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
    found = [link for entry in feed.entries for link in _links_of(entry)]
    dated: dict[str, str | None] = {}
    targets = resolve_all([link.href for link in found], url)
    for fetch_url, link in zip(targets, found, strict=True):
        if fetch_url is not None:
            columns.add(fetch_url, "", link.title)
            if link.is_first and is_http(fetch_url):
                dated.setdefault(canonical(fetch_url), link.date)
    return Feed(
        columns.links(), _blocks(feed.entries[:_MAX_ENTRIES]), tuple(dated.items()),
        _hub_links(feed.feed, url),
    )  # fmt: skip


def _hub_links(said: Mapping[str, Any], url: str) -> tuple[tuple[str, str], ...]:
    links = [link for link in said.get("links", ()) if link.get("rel") in HUB_RELATIONS]
    targets = resolve_all([str(link.get("href", "")) for link in links], url)
    return tuple(
        (str(link["rel"]), target) for link, target in zip(links, targets, strict=True) if target
    )


def _blocks(entries: Iterable[Mapping[str, Any]]) -> Blocks:
    texts = [text for text in map(_text_of, entries) if text]
    place = below(ROOT, "entry")
    return Blocks(tuple(texts), (BlockKind.ITEM,) * len(texts), (place,) * len(texts))


def _text_of(entry: Mapping[str, Any]) -> str:
    said = [part.get("value", "") for part in entry.get("content", ())] or [entry.get("summary")]
    content = " ".join(_plain(str(part)) for part in said if part)
    return collapsed(f"{entry.get('id') or ''} {_title(entry)} {content}")


def _links_of(entry: Mapping[str, Any]) -> Iterator[_EntryLink]:
    title, date = _title(entry), _date(entry)
    hrefs = [
        str(link["href"])
        for link in entry.get("links", ())
        if (link.get("rel") or "") in _ENTRY_RELATIONS and link.get("href")
    ]
    for place, href in enumerate(hrefs):
        yield _EntryLink(href, title, date, place == 0)


def _date(entry: Mapping[str, Any]) -> str | None:
    """Return the date as written: the library's own value has lost the time zone."""
    # By its own name: the library would give one for the other, with a warning.
    said = (str(dict.get(entry, name) or "") for name in ("updated", "published"))  # type: ignore[call-overload]
    return next((date[:_DATE_CHARACTERS] for date in said if date.strip()), None)


def _title(entry: Mapping[str, Any]) -> str:
    title = str(entry.get("title") or "")
    if "html" in (entry.get("title_detail") or {}).get("type", ""):
        title = _plain(title)
    return collapsed(title)


def _plain(markup: str) -> str:
    return LexborHTMLParser(markup, is_fragment=True).text(separator=" ")
