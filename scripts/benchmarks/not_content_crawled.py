"""The hosts of the benchmark of block pages in whole crawls, as the store judges in the end.

Everything is on but the network. Visits follow one another as a host's home page links to the
pages, so that what proves to be a block page only later is amended as it would be.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Final

from freshet.config.loading import load
from freshet.config.settings import Settings
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.compare.not_content.check import CheckedPage
from freshet.crawler.compare.not_content.page import NotContent, NotContentKind, Proof
from freshet.crawler.fetch.client import Request
from freshet.crawler.run.crawl import CrawlOrder, Live, crawl
from freshet.crawler.run.wiring import Observer
from freshet.storage.entries import DOUBTFUL
from freshet.storage.records import FetchResult

_HTML: Final = ((b"Content-Type", b"text/html; charset=utf-8"),)
#: A home page that says enough of its own to be no block page, whatever it links to.
_HOME: Final = "".join(
    f"<p>This house has {n} rooms and as many windows, and in the room with the number {n} "
    f"stands a table on which lies the book of its guests.</p>"
    for n in range(30)
)
#: Block pages in a row until the host would be left alone for good.
_NEVER: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Findings:
    """What crawls found, by URL and crawl, counted from 0.

    ``verdicts`` are what stood there; what ``led_away`` at once, by a refresh in
    its markup, was a redirect and no page.
    """

    verdicts: Mapping[tuple[str, int], CheckedPage]
    led_away: frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class CrawledHost:
    """A host: ``pages`` are its pages' HTML by URL, at each crawl.

    ``lost`` gives the page for a URL that does not exist; without it there is an honest 404.
    """

    origin: str
    pages: Sequence[Mapping[str, str]]
    lost: Callable[[str], str] | None = None

    def answer(self, url: str, crawled: int) -> str | None:
        """The HTML at a URL, None: it does not exist."""
        if url == f"{self.origin}/":
            links = "".join(f"<li><a href='{each}'>{each}</a></li>" for each in self.pages[0])
            return f"<title>Home</title><ul>{links}</ul><main>{_HOME}</main>"
        known = self.pages[crawled].get(url)
        return self.lost(url) if known is None and self.lost is not None else known


class _HostsFetcher:
    """Answers at once for all hosts."""

    def __init__(self, hosts: Sequence[CrawledHost]) -> None:
        self._hosts = {host.origin: host for host in hosts}
        self.crawled = 0

    async def fetch(self, request: Request) -> FetchResult:
        """Make one exchange."""
        host = self._hosts["/".join(request.url.split("/", 3)[:3])]
        is_page = request.accept in {"page", "probe"}
        html = host.answer(request.url, self.crawled) if is_page else None
        if html is None:
            return FetchResult(request.url, "gone", time(), 0, 404, "http_404")
        body = html.encode()
        return FetchResult(
            request.url, "fetched", time(), 0, 200, headers=_HTML, wire_body=body, body=body
        )

    async def close(self) -> None:
        """Nothing is open."""


def crawled(hosts: Sequence[CrawledHost], folder: Path) -> Findings:
    """Crawl these hosts, which all have as many crawls, and read what was found."""
    db = folder / "pages.db"
    asyncio.run(_crawl(hosts, db))
    with closing(sqlite3.connect(db)) as connection:
        rows = connection.execute(
            "SELECT p.fetch_url, f.run_id - 1, f.kind, f.reason, f.detail "
            "FROM finding AS f JOIN page AS p ON p.id = f.page_id ORDER BY f.id"
        ).fetchall()
    return Findings(
        {(url, n): _checked(kind, *why) for url, n, kind, *why in rows},
        frozenset((url, n) for url, n, kind, *_ in rows if kind == "redirected"),
    )


def _checked(kind: str, reason: str | None, detail: str | None) -> CheckedPage:
    words = detail or ""
    if kind == "failed":
        found = NotContent(NotContentKind(reason or ""), words, 1.0, frozenset(Proof))
        return CheckedPage(verdict=found)
    if reason == DOUBTFUL:
        named = next(each for each in NotContentKind if f"({each}," in words)
        return CheckedPage(doubt=NotContent(named, words, 0.5, frozenset({Proof.WORDS})))
    return CheckedPage()


async def _crawl(hosts: Sequence[CrawledHost], db: Path) -> None:
    fetcher = _HostsFetcher(hosts)
    seeds = seeds_from_arguments([f"{host.origin}/" for host in hosts]).seeds
    for number in range(len(hosts[0].pages) if hosts else 0):
        fetcher.crawled = number
        order = CrawlOrder(db, seeds, resume=False)
        await crawl(_settings(), order, watch=_unwatched, fetcher=fetcher)


def _unwatched(_live: Live) -> Observer:
    return lambda _batch: None


def _settings() -> Settings:
    options = {
        "crawl.contact": "https://crawler.example/about",
        "crawl.attempts": 1,
        "politeness.delay_s": 0,
        "politeness.slow_factor": 0,
        "politeness.back_off_initial_s": 0.001,
        "politeness.back_off_max_s": 0.001,
        "politeness.failures_to_park": _NEVER,
    }
    return load(None, options)[0]
