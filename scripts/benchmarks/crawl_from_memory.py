"""A crawl of the benchmark's pages with everything on but the network."""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import process_time, time

from freshet.config.loading import load
from freshet.config.settings import Settings
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.fetch.client import Request
from freshet.crawler.run.crawl import CrawlOrder, Live, crawl
from freshet.crawler.run.wiring import Observer
from freshet.storage.records import Acknowledged, Entry, FetchResult, StoredSeed, Visit
from scripts.benchmarks.crawl_tree import Tree

_TYPES = {".txt": "text/plain"}
_ETAG = '"same"'


@dataclass(frozen=True, slots=True)
class Page:
    """A page as a server sends it."""

    url: str
    body: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class MemoryFetcher:
    """Answers at once, 304 where the validator is known; what is not there is gone."""

    pages: Mapping[str, Page]

    async def fetch(self, request: Request) -> FetchResult:
        """Make one exchange."""
        page, now = self.pages.get(request.url), time()
        if page is None:
            return FetchResult(request.url, "gone", now, 0, 404, "http_404")
        headers = ((b"Content-Type", page.content_type.encode()), (b"ETag", _ETAG.encode()))
        if request.validators is not None and request.validators.etag == _ETAG:
            return FetchResult(request.url, "not_modified", now, 0, 304, headers=headers)
        return FetchResult(
            request.url, "fetched", now, 0, 200, headers=headers, wire_body=page.body,
            body=page.body,
        )  # fmt: skip

    async def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True)
class Whole:
    """What the crawls took, in CPU microseconds a page, and what the first one wrote.

    ``first_children_us`` is the part of ``first_us`` that the parser's process took.
    """

    pages: Sequence[Page]
    entries: Sequence[Entry]
    seeds: Sequence[StoredSeed]
    first_us: float
    first_children_us: float
    again_us: float

    @property
    def bytes_a_page(self) -> float:
        """The mean size of a body."""
        return sum(len(page.body) for page in self.pages) / len(self.pages)

    @property
    def links_a_page(self) -> float:
        """The mean number of different URLs that a page links to."""
        visits = (entry for entry in self.entries if isinstance(entry, Visit))
        links = sum(len(visit.links.urls) for visit in visits if visit.links is not None)
        return links / len(self.pages)


@dataclass(slots=True)
class _Record:
    """Keeps what is acknowledged."""

    entries: list[Entry] = field(default_factory=list)

    def watch(self, live: Live) -> Observer:
        """The observer for a run."""
        return self._note

    def _note(self, batch: Sequence[Acknowledged]) -> None:
        self.entries += [acknowledged.entry for acknowledged in batch]


async def crawl_from_memory(
    tree: Tree, origins: Sequence[str], limit: int, directory: Path
) -> Whole:
    """Crawl so many pages, and once more all that were found, for which 304 is answered."""
    pages = {page.url: page for page in pages_of(tree, origins)}
    seeds = seeds_from_arguments([f"{origin}/index.html" for origin in origins]).seeds
    order = CrawlOrder(directory / "memory.db", seeds)
    fetcher, record = MemoryFetcher(pages), _Record()
    own_s, children_s = cpu_s()
    await crawl(_settings(limit), order, watch=record.watch, fetcher=fetcher)
    own_after_s, children_after_s = cpu_s()
    fetched = [e.due.fetch_url for e in record.entries if isinstance(e, Visit) and e.capture]
    forget_unfetched(order.db)
    order, again = replace(order, resume=False), _Record()
    before_s = process_time()
    await crawl(_settings(0), order, watch=again.watch, fetcher=fetcher)
    again_us = 1e6 * (process_time() - before_s) / len(again.entries)
    scale = 1e6 / len(fetched)
    children_us = scale * (children_after_s - children_s)
    return Whole(
        [pages[url] for url in fetched],
        record.entries,
        seeds,
        scale * (own_after_s - own_s) + children_us,
        children_us,
        again_us,
    )


def pages_of(tree: Tree, origins: Sequence[str]) -> list[Page]:
    """The pages of the sites, under these origins."""
    return [
        Page(
            f"{origin}/{path.relative_to(site).as_posix()}",
            path.read_bytes(),
            _TYPES.get(path.suffix, "text/html"),
        )
        for site, origin in zip(tree.sites, origins, strict=True)
        for path in tree.pages
        if path.is_relative_to(site)
    ]


def forget_unfetched(store: Path) -> None:
    """Let nothing be due but the pages that have been fetched."""
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE page SET held_back = 'sample' WHERE last_kind IS NULL")
        connection.execute(
            "DELETE FROM frontier WHERE page_id IN (SELECT id FROM page WHERE last_kind IS NULL)"
        )


def _settings(limit: int) -> Settings:
    options = {
        "crawl.max_pages": limit,
        "politeness.delay_s": 0,
        "politeness.slow_factor": 0,
        "politeness.connections_per_host": 16,
        "network.allow_private_addresses": True,
    }
    return load(None, options)[0]


def cpu_s() -> tuple[float, float]:
    """CPU seconds of this process, and of its children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time(), usage.ru_utime + usage.ru_stime
