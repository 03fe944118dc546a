"""Sitemaps and feeds, read: where they lead, and what they claim of the pages there.

The entries of a large sitemap are read in a thread and admitted in slices, so that nothing else
waits for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from freshet.crawler.admission.admitting import Admission, sitemap_links
from freshet.crawler.parsing.feeds import Feed
from freshet.crawler.parsing.sitemaps import (
    Sitemap,
    SitemapKind,
    SitemapLimits,
    entry_allowed,
    parse_sitemap,
)
from freshet.crawler.robots.book import RobotsBook
from freshet.crawler.signals.claiming import Claimed, Complaints, claimed
from freshet.crawler.urls import canonical
from freshet.storage.records import DueUrl, Links, Targets

_IN_A_THREAD_BYTES: Final = 256 * 1024
#: Entries that are admitted without a break, in a few milliseconds.
_SLICE: Final = 250


@dataclass(frozen=True, slots=True)
class Listing:
    """What a sitemap or feed says; ``offsite`` are the links that lead out of scope.

    ``is_one`` is False of what turns out to be something else; ``problem`` is what is broken.
    """

    links: Links
    targets: Targets
    offsite: frozenset[int]
    said: Claimed
    problem: str | None = None
    is_one: bool = True


@dataclass(frozen=True, slots=True)
class _Entries:
    """The entries of a sitemap as links, and the columns of those for which it may speak."""

    sitemap: Sitemap
    links: Links
    allowed: list[int] = field(default_factory=list)
    said: Claimed = field(default_factory=Claimed)


class Listings:
    """Reads sitemaps and feeds; says once of each what of it is not believed."""

    def __init__(
        self,
        admission: Admission,
        book: RobotsBook,
        limits: SitemapLimits,
        complaints: Complaints,
    ) -> None:
        self._admission = admission
        self._book = book
        self._limits = limits
        self._complaints = complaints

    async def sitemap(self, due: DueUrl, body: bytes, now: float, skew_s: float) -> Listing:
        """Read a sitemap that came at ``now`` from a host whose clock is ``skew_s`` ahead."""
        naming = self._book.naming_origins(due.url) | self._book.naming_origins(due.fetch_url)
        work = (body, self._limits, due.url, naming, now, skew_s)
        if len(body) <= _IN_A_THREAD_BYTES:
            read = _read(*work)
        else:
            read = await asyncio.to_thread(_read, *work)
        self._complaints.tell(due.url, read.said)
        targets = Targets()
        index = read.sitemap.kind is SitemapKind.INDEX
        for first in range(0, len(read.allowed), _SLICE):
            chosen = read.allowed[first : first + _SLICE]
            urls = [(read.links.urls[i], read.links.fetch_urls[i]) for i in chosen]
            self._admission.sitemap(targets, urls, due.depth, index=index)
            if len(chosen) == _SLICE:
                await asyncio.sleep(0)
        if len(read.links) > _SLICE:
            offsite = await asyncio.to_thread(_outside, read.links, targets)
        else:
            offsite = _outside(read.links, targets)
        return Listing(
            read.links,
            targets,
            offsite,
            read.said,
            read.sitemap.problem,
            read.sitemap.kind is not SitemapKind.UNKNOWN,
        )

    def feed(self, due: DueUrl, feed: Feed, now: float, skew_s: float) -> Listing:
        """Take in a feed; its entries are news of pages, known or not."""
        targets, offsite = self._admission.links(feed.links, due.depth, nofollow=False)
        said = claimed(feed.dated, now, skew_s)
        self._complaints.tell(due.url, said)
        return Listing(feed.links, targets, offsite, said)


def _outside(links: Links, targets: Targets) -> frozenset[int]:
    inside = frozenset(targets.urls)
    return frozenset(i for i, url in enumerate(links.urls) if url not in inside)


def _read(
    body: bytes,
    limits: SitemapLimits,
    url: str,
    naming: Collection[str],
    now: float,
    skew_s: float,
) -> _Entries:
    """The entries of a sitemap, each page once."""
    sitemap = parse_sitemap(body, limits)
    entries: dict[str, str] = {}
    dates: dict[str, str] = {}
    for entry in sitemap.entries:
        try:
            page = canonical(entry.url)
        except ValueError:
            continue
        entries.setdefault(page, entry.url)
        if entry.lastmod is not None:
            dates.setdefault(page, entry.lastmod)
    links = sitemap_links(list(entries.items()))
    allowed = [i for i, page in enumerate(entries) if entry_allowed(page, url, naming)]
    dated = ((page, dates.get(page)) for page in (links.urls[i] for i in allowed))
    return _Entries(sitemap, links, allowed, claimed(dated, now, skew_s))
