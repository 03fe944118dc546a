"""What keeping real sites fresh costs, end to end: the daemon beside plain strategies.

The whole daemon runs on recorded sites in virtual time. A first complete crawl is free for
everybody; from then on every request counts: robots.txt, sitemaps, feeds, redirects, dead links.
One request for each page and 60 or 20 days. Costs are those of :mod:`site_windows`, strategies
those of :mod:`plain_strategies`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from time import process_time
from urllib.parse import urlsplit

import uvloop

from freshet.config.loading import load
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.clock import Clock, VirtualClock
from freshet.crawler.fetch.client import Request
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.storage.records import FetchResult
from scripts.benchmarks.recorded_web import RecordedWeb
from scripts.benchmarks.site_windows import DAY_S, Bill, Window
from tests.integration.quick import unwatched

#: The network is not used, but a crawler beyond loopback must say who it is.
_SETTINGS = {"crawl.contact": "https://example.org/bench", "store.bodies_per_page": 1}


class Sites:
    """Several recorded sites as one fetcher: each begins its window at the clock's present."""

    def __init__(self, windows: Sequence[Window], clock: Clock, sitemap: str) -> None:
        self.webs = [
            RecordedWeb(
                window.site, clock, ahead=window.begin - clock.now(), sitemap=sitemap
            )
            for window in windows
        ]
        self._of_host = {host: web for web in self.webs for host in web.recording.hosts}

    async def fetch(self, request: Request) -> FetchResult:
        """Answer as the host's site."""
        host = urlsplit(request.url).hostname or ""
        return await self._of_host.get(host, self.webs[0]).fetch(request)

    async def close(self) -> None:
        """Do nothing: nothing is open."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a strategy made of a window: its bill, and its requests by what they met."""

    bill: Bill
    kinds: Mapping[str, int]
    seconds: float

    @property
    def useful(self) -> float:
        """The share of requests that reached pages, or sitemaps and feeds that exist."""
        met = self.kinds.get("pages", 0) + self.kinds.get("sitemaps and feeds", 0)
        return met / max(1, sum(self.kinds.values()))


def daemon(
    windows: Sequence[Window], db: Path, interval: float, *, sitemap: str = "own",
    policy: str = "site_clock", seed: int = 1, factor: float = 1.0,
) -> list[Kept]:  # fmt: skip
    """What the daemon made of these windows under one budget."""
    days = min(window.days for window in windows)
    budget = factor * sum(window.mean_pages for window in windows) / interval
    clock = VirtualClock(windows[0].begin)
    sites = Sites(windows, clock, sitemap)
    seeds = seeds_from_arguments([window.site.start for window in windows]).seeds
    settings, _ = load(None, _SETTINGS)
    db.unlink(missing_ok=True)
    started = process_time()

    async def whole() -> float:
        await crawl(settings, CrawlOrder(db, seeds), watch=unwatched, fetcher=sites, clock=clock)
        for web in sites.webs:
            web.forget()
        begin = clock.now()
        order = DaemonOrder(db, seeds, budget, policy, days * DAY_S)
        await keep(
            settings, order, watch=unwatched, fetcher=sites, clock=clock, rng=Random(seed)
        )
        return begin

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        begin = runner.run(whole())
    took = process_time() - started
    return [
        Kept(window.bill(_visits(web, begin)), dict(web.kinds), took / len(windows))
        for window, web in zip(windows, sites.webs, strict=True)
    ]


def _visits(web: RecordedWeb, begin: float) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for page, at in web.shown:
        # The first crawl is that of the first moment.
        found.setdefault(page, []).append(max(0.0, (at - begin) / DAY_S))
    return found
