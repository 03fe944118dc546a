"""Sitemaps and feeds as sources: their links, and their claims on the listed pages.

The entries of a large sitemap are parsed in a thread and admitted in slices, so that other work is
not blocked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from itertools import islice
from math import inf
from typing import Final, Protocol, TypeVar

from freshet.crawler.admission.admit import Admission, FoundUrls, sitemap_links
from freshet.crawler.fetch.bounds import LruCache, meet
from freshet.crawler.fetch.responses import GZIP_MAGIC
from freshet.crawler.frontier.clock import Turns
from freshet.crawler.reduce.links import is_feed, relations
from freshet.crawler.reduce.page import header_links
from freshet.crawler.reduce.sitemaps import (
    Feed,
    Sitemap,
    SitemapLimits,
    entry_allowed,
    sitemap_slices,
)
from freshet.crawler.robots import parse
from freshet.crawler.robots.cache import RobotsCache
from freshet.crawler.signals.dates import believed, span_of
from freshet.crawler.urls import canonical, is_http, origin, resolve, without_fragment
from freshet.storage.entries import Claim, SourceReport
from freshet.storage.records import DueUrl, Links, SitemapSource, StoreUpdate, Targets

# -- claiming ----------------------------------------------------------------

log = logging.getLogger(__name__)

#: Number of sources for which a logged problem is remembered.
_REMEMBERED: Final = 10_000
_SHOWN_CHARACTERS: Final = 40


@dataclass(frozen=True, slots=True)
class SourceClaims:
    """Claims of a source; ``rejected`` counts implausible dates, ``why`` is the first reason."""

    claims: tuple[Claim, ...] = ()
    rejected: int = 0
    why: str | None = None


def claimed(
    dated: Iterable[tuple[str, str | None]], heard_at: float, skew_s: float = 0.0
) -> SourceClaims:
    """Return the claims of pairs of a canonical URL and a date as written; skip a date of None.

    They were read at ``heard_at`` from a host with a clock that is ``skew_s`` ahead of ours.
    """
    claims: list[Claim] = []
    rejected, why = 0, None
    for url, text in dated:
        if text is None:
            continue
        found = believed(span_of(text), heard_at, skew_s)
        if isinstance(found, str):
            rejected += 1
            # Untrusted text: repr() keeps line breaks out of the log.
            why = why or f"{text[:_SHOWN_CHARACTERS]!r} of {url}: {found}"
        else:
            claims.append(Claim(url, *found))
    return SourceClaims(tuple(claims), rejected, why)


class Complaints:
    """Log of rejected content, limited to one line per source."""

    def __init__(self) -> None:
        self._known: LruCache[str, None] = LruCache(_REMEMBERED)

    def tell(self, source: str, found: SourceClaims) -> None:
        """Log the problem of a source, unless it was logged before."""
        if found.rejected and self.is_new(source):
            count = "a date is" if found.rejected == 1 else f"{found.rejected:,} dates are"
            log.warning("%s: %s not believed, such as %s", source, count, found.why)

    def is_new(self, what: str) -> bool:
        """Return whether a problem is logged for the first time, and remember it."""
        if what in self._known:
            return False
        self._known[what] = None
        return True


_IN_A_THREAD_BYTES: Final = 256 * 1024
T = TypeVar("T")
_URL_BYTES: Final = 1024
#: Cost of parsing a byte of robots.txt, relative to other files.
_COSTLY: Final = 16
#: Limit of URL characters in memory, at up to 13 bytes each; nearly all sitemaps have fewer.
_SLICE_CHARS: Final = 2 * 1024 * 1024
#: Number of URLs admitted at a time; this takes a few milliseconds.
_SLICE: Final = 250
#: Up to this number of URLs are admitted without waiting for a turn: most pages have few new URLs.
_FEW: Final = 25


@dataclass(frozen=True, slots=True)
class SitemapEntries:
    """The entries of a sitemap as links; ``allowed`` are the columns it is authorized to list.

    ``said`` has its claims on these; ``problem`` describes damage. ``is_one`` is False if the body
    is not a sitemap. A long sitemap has its first entries here, and ``more`` yields the others in
    slices.
    """

    links: Links
    allowed: list[int]
    said: SourceClaims
    is_index: bool
    is_one: bool
    problem: str | None
    more: Iterator[SitemapEntries] | None = field(default=None, repr=False, compare=False)


class ListingRoom:
    """Limit of URL characters in memory; each reading task holds its share until it ends.

    *Invariant.* A task waits while its share and the others would exceed ``most``. Consequence:
    the listings of all hosts together take the memory of one slice, because a task ends when the
    entries that it has read are in the store.
    """

    def __init__(self, most: float) -> None:
        self._most, self._held = most, dict[object, float]()
        self._freed = asyncio.Event()

    async def take(self, size: float) -> None:
        """Wait until ``size`` characters are free, and take them for the current task."""
        task = asyncio.current_task()
        held = self._held.pop(task, 0.0)
        while self._held and sum(self._held.values()) + size > self._most:
            meet("characters of listed URLs in memory")
            self._freed.clear()
            await self._freed.wait()
        if not held and task is not None:
            task.add_done_callback(self._release)
        self._held[task] = size

    def _release(self, task: object) -> None:
        self._held.pop(task, None)
        self._freed.set()


class KnownLinks(Protocol):
    """Queries that the reader of listings needs from the store."""

    async def sources(self, page_id: int, /) -> Sequence[SitemapSource]:
        """Return the sitemaps that redirect to a page, and the indexes that list it."""

    async def offsite_at(self, url: str, origin: str, /) -> list[tuple[str, int]]:
        """Return a page's out-of-scope links to an origin, each with the depth of the page."""


@dataclass(slots=True, eq=False)
class Listings:
    """Reader of sitemaps and feeds; logs rejected dates once per source."""

    admission: Admission
    robots: RobotsCache
    limits: SitemapLimits
    complaints: Complaints
    past: KnownLinks
    _turns: Turns = field(default_factory=Turns, init=False)
    _room: ListingRoom = field(default_factory=lambda: ListingRoom(_SLICE_CHARS), init=False)

    async def read(self, due: DueUrl, body: bytes, now: float, skew_s: float) -> SitemapEntries:
        """Read a sitemap received at ``now`` from a host with a clock that is ``skew_s`` ahead."""
        naming = self.robots.naming_origins(due.url) | self.robots.naming_origins(due.fetch_url)
        for source in await self.past.sources(due.page_id):
            parsing = partial(parse, source.robots, limit_bytes=len(source.robots))
            robots = await off_loop(_COSTLY * len(source.robots), parsing)
            is_own = source.is_seed or _is_among(robots.sitemaps, source.url)
            naming |= self._naming(source.url, is_own=is_own)
        size = inf if body.startswith(GZIP_MAGIC) else len(body)
        await self._room.take(min(size, _SLICE_CHARS))
        slices = _read(body, self.limits, due.url, naming=naming, now=now, skew_s=skew_s)
        entries: SitemapEntries = await off_loop(size, partial(next, slices))
        if size > _SLICE_CHARS:
            entries = replace(entries, more=slices)
        self.complaints.tell(due.url, entries.said)
        if entries.links.urls and not entries.allowed and self.complaints.is_new(f"{due.url} all"):
            first = entries.links.urls[0]
            log.warning("%s: not read: no host of its URLs names it, such as %s", due.url, first)
        return entries

    def _naming(self, sitemap_url: str, *, is_own: bool) -> frozenset[str]:
        """Return the origins that list a sitemap, including the sitemap's origin if ``is_own``."""
        own = {str(origin(sitemap_url))} if is_own else frozenset[str]()
        return self.robots.naming_origins(sitemap_url) | own

    async def listed(
        self, targets: Targets, sitemap_url: str, naming_origins: Iterable[str]
    ) -> None:
        """Append the URLs of these origins that a sitemap listed before they named the sitemap."""
        for each in naming_origins:
            for url, depth in await self.past.offsite_at(sitemap_url, each):
                self.admission.add(targets, url, url, depth=depth + 1)

    async def redirected(self, due: DueUrl, targets: Targets) -> None:
        """Append the URLs that a redirect's target listed before the redirect was known."""
        named = self.robots.sitemaps(due.host_id)
        is_own = due.seed_id is not None or _is_among(named, due.url)
        for target in targets.urls:
            await self.listed(targets, target, self._naming(due.url, is_own=is_own))

    async def slices(self, items: Sequence[T]) -> AsyncIterator[Sequence[T]]:
        """Yield a few items at a time; one caller proceeds per turn of the event loop."""
        for first in range(0, len(items), _SLICE):
            await self._turns.take()
            yield items[first : first + _SLICE]

    async def follow(self, links: Links, depth: int, *, nofollow: bool = False) -> FoundUrls:
        """Admit the links of a page or feed at this depth."""
        targets, offsite = Targets(), set[int]()
        admit = partial(self.admission.links, targets, links, depth=depth, nofollow=nofollow)
        if len(columns := self.admission.unsettled(links)) <= _FEW:
            offsite = admit(columns)
        else:
            async for some in self.slices(columns):
                offsite |= admit(some)
        return FoundUrls(links=links, offsite=frozenset(offsite), targets=targets)

    async def admit(self, entries: SitemapEntries, depth: int) -> FoundUrls:
        """Admit the entries of a sitemap at this depth."""
        targets = Targets()
        async for chosen in self.slices(entries.allowed):
            urls = [(entries.links.urls[i], entries.links.fetch_urls[i]) for i in chosen]
            self.admission.sitemap(targets, urls, depth, index=entries.is_index)
        size = _URL_BYTES * len(entries.links)
        offsite = await off_loop(size, partial(_outside, entries.links, targets))
        return FoundUrls(links=entries.links, offsite=offsite, targets=targets)

    async def more(
        self, entries: Iterator[SitemapEntries], due: DueUrl, now: Callable[[], float]
    ) -> AsyncIterator[StoreUpdate]:
        """Admit the further slices of a sitemap with their claims, one per iteration."""
        while (some := await off_loop(inf, partial(next, entries, None))) is not None:
            if some.links.urls:
                targets = (await self.admit(some, due.depth)).targets or Targets()
                found = some.said.claims, some.said.rejected
                report = SourceReport("sitemap", due.host_id, due.url, *found, page_id=due.page_id)
                yield StoreUpdate(now(), targets=targets, said=report)

    def claims(self, due: DueUrl, feed: Feed, now: float, skew_s: float) -> SourceClaims:
        """Return the claims of a feed on pages, known or not."""
        said = claimed(feed.dated, now, skew_s)
        self.complaints.tell(due.url, said)
        return said


async def off_loop(size: float, work: Callable[[], T]) -> T:
    """Run work on ``size`` bytes, in a thread if it is large."""
    return work() if is_short(size) else await asyncio.to_thread(work)


def is_short(size: float) -> bool:
    """Return whether work on ``size`` bytes is short enough for the event loop."""
    return size <= _IN_A_THREAD_BYTES


def _is_among(sitemaps: Iterable[str], url: str) -> bool:
    """Return whether a URL is a sitemap of its origin: in robots.txt, or at ``/sitemap.xml``."""
    place = str(origin(url))
    if url == f"{place}{WELL_KNOWN_SITEMAP}":
        return True
    base = f"{place}/robots.txt"
    named = filter(None, (resolve(each, base) for each in sitemaps))
    return any(is_http(each) and canonical(each) == url for each in named)


def _outside(links: Links, targets: Targets) -> frozenset[int]:
    inside = frozenset(targets.urls)
    return frozenset(i for i, url in enumerate(links.urls) if url not in inside)


def _read(
    body: bytes, limits: SitemapLimits, url: str, naming: Collection[str], now: float, skew_s: float
) -> Iterator[SitemapEntries]:
    """Yield the entries of a sitemap in slices without duplicates within a slice."""
    for sitemap in sitemap_slices(body, limits, url, most_chars=_SLICE_CHARS):
        yield _of_slice(sitemap, url, naming, now, skew_s)


def _of_slice(
    sitemap: Sitemap, url: str, naming: Collection[str], now: float, skew_s: float
) -> SitemapEntries:
    entries: dict[str, str] = {}
    dates: dict[str, str] = {}
    for entry, lastmod in sitemap.entries:
        try:
            # Bypass the cache: listings have many URLs.
            page = canonical.__wrapped__(entry)
        except ValueError:
            continue
        # Resolved like a link, because raw control characters cannot be sent. Nearly all results
        # equal the canonical URL; one string object is kept for both then.
        kept = without_fragment(resolve(entry, entry) or page)
        entries.setdefault(page, page if kept == page else kept)
        if lastmod is not None:
            dates.setdefault(page, lastmod)
    links = sitemap_links(list(entries.items()))
    allowed = [i for i, page in enumerate(entries) if entry_allowed(page, url, naming)]
    dated = ((page, dates.get(page)) for page in (links.urls[i] for i in allowed))
    return SitemapEntries(
        links=links,
        allowed=allowed,
        said=claimed(dated, now, skew_s),
        is_index=sitemap.kind == "index",
        is_one=sitemap.kind != "unknown",
        problem=sitemap.problem,
    )


# -- discovery ---------------------------------------------------------------

#: Pattern that limits the number of feeds of a host, like the patterns of traps.
FEEDS_SHAPE: Final = "linked feeds"
_FEEDS_KIND: Final = "trap: feeds"
_WELL_KNOWN_SHAPE: Final = "well-known feeds"
WELL_KNOWN_FEEDS: Final = ("/feed", "/rss.xml", "/atom.xml", "/feed.xml", "/index.xml")
WELL_KNOWN_SITEMAP: Final = "/sitemap.xml"
#: Largest number of links in headers that are considered.
_LINKS: Final = 32


@dataclass(frozen=True, slots=True)
class SourceDiscovery:
    """Admission of feeds and sitemaps that pages, headers and well-known URLs give.

    At most ``most`` feeds of a host are taken from its links, because a page may name a feed for
    each of its articles. With ``well_known``, each well-known URL is tried once.
    """

    admission: Admission
    _: KW_ONLY
    most: int
    well_known: bool

    def feeds(
        self, targets: Targets, due: DueUrl, linked: Sequence[str], headers: Iterable[str]
    ) -> None:
        """Append the feeds of a page from the links in its head and from Link headers.

        A host's root page (``/``) without feeds adds the well-known feed URLs.
        """
        named = [*linked, *header_feeds(headers, due.fetch_url)] if self.most else []
        for url in named:
            self._add(targets, url, due.depth, FEEDS_SHAPE, self.most)
        if self.well_known and not named and due.url.split("/", 3)[3] == "":
            usual, most = str(origin(due.url)), len(WELL_KNOWN_FEEDS)
            for path in WELL_KNOWN_FEEDS:
                self._add(targets, usual + path, due.depth, _WELL_KNOWN_SHAPE, most)

    def sitemap(self, targets: Targets, host_origin: str) -> None:
        """Append ``/sitemap.xml`` of a host. Call only if its robots.txt lists no sitemap."""
        if self.well_known:
            url = f"{host_origin}{WELL_KNOWN_SITEMAP}"
            self.admission.add(targets, canonical(url), url, depth=0, role="sitemap")

    def _add(self, targets: Targets, url: str, depth: int, shape: str, most: int) -> None:
        page = canonical(url)
        if not self.admission.scope.contains(page):
            return
        self.admission.add(targets, page, url, depth=depth + 1, role="feed")
        targets[-1] = *targets[-1][:7], shape, _FEEDS_KIND, most, targets[-1][10]


def header_feeds(headers: Iterable[str], base: str) -> list[str]:
    """Return the resolved feed URLs of Link headers (RFC 8288), without duplicates."""
    found: dict[str, None] = {}
    for target, parameters in islice(header_links(headers), _LINKS):
        url = (
            resolve(target, base)
            if is_feed(relations(parameters), parameters.get("type", ""))
            else None
        )
        if url is not None and is_http(url):
            found.setdefault(without_fragment(url))
    return list(found)
