"""One daemon on a web with sitemaps: what it asked for, and what it believed on each day."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from math import floor
from pathlib import Path
from random import Random

import numpy as np

from freshet.config.loading import load
from freshet.config.settings import Settings
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.crawl import Live
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.crawler.run.outages import StoreOutages
from freshet.crawler.run.pool import FetchPool
from freshet.crawler.run.service import Service
from freshet.crawler.run.status_recorder import StatusRecorder
from freshet.crawler.run.wiring import Observer
from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate.sources_trust import SiteTrust
from freshet.scheduler.evaluate.crawl_costs import Crawls
from freshet.scheduler.queue.site_clock_ranker import SiteClockRanker
from freshet.storage.database import Database
from freshet.storage.records import Acknowledged, StoredSeed
from scripts.benchmarks.daemon_web import DAY_S
from scripts.benchmarks.signals_reference import Stage
from scripts.benchmarks.signals_web import Hosts, SignallingWeb

#: A midnight.
BEGIN = 1_800_057_600.0


@dataclass(frozen=True, slots=True)
class Belief:
    """What is thought of the claims on a site at the end of a day.

    Attributes:
        day: the number of days since the beginning.
        site: the code of the site.
        loss, loss_without: log losses of what is foretold, with claims and without.
        proven: whether claims are therefore believed.
        share: how much of what was claimed last is taken to be a change.
    """

    day: int
    site: int
    loss: float
    loss_without: float
    proven: bool
    share: float


@dataclass(slots=True)
class Diary:
    """Takes beliefs down once a day; ``agenda`` knows the sites by the codes that they have."""

    beliefs: list[Belief] = field(default_factory=list)
    day: int = 0
    sites: int = 0
    host_ids: Sequence[int] = ()

    def write(self, ranker: SiteClockRanker, now: float) -> None:
        """Note, at the first valuing of a day, what is believed."""
        day = floor(now - BEGIN / DAY_S)
        if day <= self.day:
            return
        for site in range(self.sites):
            if (site_trust := ranker.site_trust(site)) is not None:
                self.beliefs.append(_belief(day, site, site_trust))
        self.day = day


def _belief(day: int, site: int, site_trust: SiteTrust) -> Belief:
    facts, event = site_trust.state.facts[0], site_trust.state.event
    last = event[(int(facts["events"]) - 1) % len(event)]
    return Belief(
        day, site, float(facts["loss"]), float(facts["loss_without"]), site_trust.proven,
        float(last["share"]),
    )  # fmt: skip


class _Observing(Service):
    """Lets the diary be written when pages are to be valued."""

    def __init__(self, diary: Diary) -> None:
        super().__init__()
        self._diary = diary

    @contextmanager
    def timed(self, work: str) -> Iterator[None]:
        agenda, ranker = self._agenda, self._agenda.ranker
        if work == "value" and isinstance(ranker, SiteClockRanker):
            self._diary.sites = len(agenda.learner.hosts)
            self._diary.write(ranker, self._clock.now() / DAY_S)
        with super().timed(work):
            yield

    def attend(
        self, pool: FetchPool, recorder: StatusRecorder, outages: StoreOutages, database: Database
    ) -> None:
        super().attend(pool, recorder, outages, database)
        self._agenda, self._clock = recorder.agenda, pool.clock

    async def leave(self) -> None:
        self._diary.host_ids = self._agenda.learner.hosts.ids
        await super().leave()


@dataclass(frozen=True, slots=True)
class Kept:
    """What a daemon did; ``beliefs`` are by host."""

    web: SignallingWeb
    beliefs: dict[int, list[Belief]]

    @property
    def crawls(self) -> Crawls:
        """The visits to pages."""
        return Crawls(np.array(self.web.pages.rows, np.intp), np.array(self.web.pages.days))

    def polls_of(self, host: int) -> Floats:
        """The days on which a host's sitemap was asked for."""
        return np.array([day for polled, day in self.web.polls if polled == host])


def settings(**more: object) -> Settings:
    """Defaults, without what would keep a host from taking the budget."""
    given = {
        "crawl.scope": "host", "politeness.delay_s": 0.0, "politeness.slow_factor": 0.0,
        "change.probe": False, "store.bodies_per_page": 2,
    }  # fmt: skip
    return load(None, {**given, **{name.replace("__", "."): more[name] for name in more}})[0]


def kept(
    stage: Stage, hosts: Hosts, budget: float, db: Path, *, policy: str = "site_clock",
    **more: object,
) -> Kept:  # fmt: skip
    """Keep a web with these sitemaps from nothing; ``more`` are settings."""
    clock, diary = VirtualClock(BEGIN), Diary()
    web = SignallingWeb(stage.changes, hosts, BEGIN, clock)
    urls = [hosts.url(row) for row in range(len(stage.table))]
    seeds = [
        StoredSeed(url, url, None, importance)
        for row, (url, importance) in enumerate(
            zip(urls, stage.table.importance.tolist(), strict=True)
        )
    ]
    order = DaemonOrder(db, seeds, budget, policy, stage.days * DAY_S)
    asyncio.run(
        keep(
            settings(**more), order, watch=_watch, fetcher=web, clock=clock, rng=Random(1),
            service=_Observing(diary),
        )
    )  # fmt: skip
    return Kept(web, _by_host(diary, db))


def _by_host(diary: Diary, db: Path) -> dict[int, list[Belief]]:
    with closing(sqlite3.connect(db)) as connection:
        origins = dict(connection.execute("SELECT id, origin FROM host"))
    found: dict[int, list[Belief]] = {}
    for belief in diary.beliefs:
        name = origins[diary.host_ids[belief.site]].removeprefix("http://h").split(".")[0]
        found.setdefault(int(name), []).append(belief)
    return found


def _watch(_live: Live) -> Observer:
    return _ignore


def _ignore(_batch: Sequence[Acknowledged]) -> None:
    """Nothing is shown while it runs."""
