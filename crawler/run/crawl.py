"""The composition root of a crawl: settings and a site list in, a report out."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from pathlib import Path
from random import Random

from freshet.config.settings import Settings
from freshet.crawler.admission.admit import Seeding
from freshet.crawler.admission.site_lists import Seed
from freshet.crawler.alerts.messages import stored_importances
from freshet.crawler.alerts.outbox import Outbox
from freshet.crawler.alerts.rules import channels, matching
from freshet.crawler.clock import Clock, SteadyClock
from freshet.crawler.fetch.client import Fetcher
from freshet.crawler.frontier import Frontier
from freshet.crawler.network import Network, parser_of
from freshet.crawler.pacing import Pacer
from freshet.crawler.pool import Ending, FetchPool, PoolRules
from freshet.crawler.run.archive import ArchivedRun, archiving
from freshet.crawler.run.orders import CrawlReport, given, make_report, require_readable
from freshet.crawler.run.push import sender
from freshet.crawler.run.snapshot import Glimpse
from freshet.crawler.run.upkeep import Watch, catch_up, correct, retention_of
from freshet.crawler.run.wiring import (
    Assembly,
    Observer,
    Surroundings,
    copy_rule,
    stopping_on_signals,
)
from freshet.crawler.tally import CrawlError, Tally
from freshet.scheduler.agenda.breadth_first import BreadthFirst
from freshet.storage import maintenance
from freshet.storage.database import Database, open_store
from freshet.storage.tables import frontier as frontier_tables
from freshet.storage.tables import pages, runs, url_patterns
from freshet.storage.tables.runs import RunState

_DAY_S = 86_400.0
#: Pages compared in one transaction, some 0.3 s: as long as Ctrl-C may take.
COMPARED = 2_000
_NOTHING_TO_CRAWL = "there is nothing to crawl: name a SITE, or a list with --sites FILE"
_STATE_AT = {
    Ending.NOTHING_DUE: RunState.ENDED,
    Ending.INTERRUPTED: RunState.INTERRUPTED,
    Ending.LIMIT: RunState.LIMIT,
}


class Mode(StrEnum):
    """Whether to finish the last run or to start a new one; by default as it ended."""

    AUTOMATIC = "automatic"
    RESUME = "resume"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class CrawlOrder:
    """What to crawl, and into which file."""

    db: Path
    seeds: Sequence[Seed]
    mode: Mode = Mode.AUTOMATIC


@dataclass(frozen=True, slots=True)
class Live:
    """The running parts that progress is read from; ``comparing`` is what it ends with.

    ``glimpse`` tells at a time how a daemon stands, None in a crawl.
    """

    pool: FetchPool
    frontier: Frontier
    tally: Tally
    clock: Clock
    resumed: bool
    comparing: Watch
    glimpse: Callable[[float], Glimpse] | None = None


async def crawl(
    settings: Settings,
    order: CrawlOrder,
    *,
    watch: Callable[[Live], Observer],
    fetcher: Fetcher | None = None,
    clock: Clock | None = None,
) -> CrawlReport:
    """Crawl until nothing is due, a limit, or a signal; everything reported is committed.

    ``watch`` is given the running parts once, and what it returns is told of every batch
    that has committed. ``fetcher`` replaces the network (archive, synthetic web); it dates what
    it fetches by ``clock``, which is the machine's if none is given.

    Raises:
        CrawlError: there is nothing to crawl, or no contact for a crawl beyond loopback.
        StoreError: the store cannot be opened, read or written.
    """
    if not order.seeds and not order.db.exists():
        raise CrawlError(_NOTHING_TO_CRAWL)
    # Before anything is fetched.
    channels(settings.alerts)
    async with AsyncExitStack() as stack:
        clock = clock or SteadyClock()
        network = Network(settings, clock)
        stack.push_async_callback(network.close)
        network.require_contact([seed.url for seed in order.seeds])
        database = await open_store(order.db)
        stack.push_async_callback(database.close)
        await require_readable(database.reader, order.db)
        parser = parser_of(settings, clock)
        stack.push_async_callback(parser.close)
        run_id, resumed = await _open_run(database, settings, order, clock.now())
        stored = await runs.load(database.reader)
        network.require_contact([s.root_url or s.url for s in stored])
        began_at = await runs.began_at(database.reader, run_id)
        run = ArchivedRun(began_at, is_lasting=False)
        archive = await archiving(settings, stored, run, clock, closed_by=stack)
        around = Surroundings(
            settings=settings,
            database=database,
            run_id=run_id,
            clock=clock,
            fetcher=fetcher or network.fetcher,
            lane_key=network.lane_key,
            parser=parser,
            rng=Random(),
            archive=archive,
        )
        importances = stored_importances(database, settings)
        outbox = sender(around, network.resolver, importances)
        stack.push_async_callback(outbox.close)
        return await _CrawlRun(around, outbox).perform(watch, resumed=resumed)


async def _open_run(
    database: Database, settings: Settings, order: CrawlOrder, now: float
) -> tuple[int, bool]:
    """Start a run, or go on with the last one; its id, and whether it was resumed."""
    last = await runs.latest(database.reader)
    resume = last is not None and last.ended_at is None and order.mode is not Mode.NEW
    if order.mode is Mode.RESUME:
        if last is None:
            raise CrawlError(f"{order.db}: there is no run to resume")
        resume = True
    if not order.seeds and not await runs.load(database.reader):
        raise CrawlError(_NOTHING_TO_CRAWL)

    def begin(connection: sqlite3.Connection) -> tuple[int, bool]:
        runs.add(connection, given(order.seeds), now)
        if resume and last is not None:
            runs.reopen(connection, last.run_id)
            frontier_tables.resume_run(connection, now)
            url_patterns.reconsider(connection, copy_rule(settings), now)
            return last.run_id, True
        run_id = runs.start(connection, now, settings.model_dump_json())
        recheck_before = now - settings.crawl.permanent_recheck_days * _DAY_S
        pages.lift_depth(connection, settings.crawl.max_depth)
        url_patterns.reconsider(connection, copy_rule(settings), now)
        frontier_tables.begin_run(connection, now, recheck_before)
        return run_id, False

    return await database.write(begin)


class _CrawlRun:
    """One invocation of a crawl."""

    def __init__(self, around: Surroundings, outbox: Outbox) -> None:
        self._around = around
        self._outbox = outbox
        self._settings = around.settings
        self._database = around.database
        self._clock = around.clock
        self._tally = Tally()
        self._assembly = Assembly(around, BreadthFirst(around.database.reader))

    async def perform(self, watch: Callable[[Live], Observer], *, resumed: bool) -> CrawlReport:
        """Run to the end and report."""
        started_at = self._clock.now()
        seeding = Seeding(await runs.load(self._database.reader), self._assembly.admission)
        listeners = self._assembly.listeners
        listeners.append(self._tally.add)
        chosen = self._settings.crawl
        rules = PoolRules(
            exchanges=chosen.exchanges, max_pages=chosen.max_pages, patience_s=chosen.patience_s
        )
        pacer = Pacer(inf, started_at)
        pool = self._assembly.pool(seeding, rules, pacer, begun=self._outbox.start)
        comparing = Watch(lambda: pool.stopping)
        live = Live(
            pool=pool,
            frontier=self._assembly.frontier,
            tally=self._tally,
            clock=self._clock,
            resumed=resumed,
            comparing=comparing,
        )
        listeners.append(watch(live))
        listeners.append(self._outbox.committed)
        await self._assembly.ask_schemes(seeding)
        ending = await self._assembly.run(pool, seeding, time_limit_s=chosen.time_limit_s)
        await self._correct(started_at)
        await self._close_run(ending)
        if not pool.stopping:
            with stopping_on_signals(pool):
                await self._outbox.finish(pool.told_to_stop)
                await catch_up(self._database, self._clock.now, batch=COMPARED, watch=comparing)
        return await make_report(
            self._database.reader, self._around.run_id, self._tally, ending,
            seconds=self._clock.now() - started_at, resumed=resumed,
        )  # fmt: skip

    async def _correct(self, invoked_at: float) -> None:
        """Let what the run showed in the end count; also of earlier invocations of it."""
        run = await runs.latest(self._database.reader)
        since = run.started_at if run is not None else invoked_at
        now = self._clock.now()
        rules = matching(self._settings.alerts)
        for correction in await correct(self._database, self._around.run_id, since, now, rules):
            if correction.at >= invoked_at:
                self._tally.correct(correction.was, correction.kind)

    async def _close_run(self, ending: Ending) -> None:
        now = self._clock.now()
        waits = self._assembly.frontier.waits(now) if ending is Ending.NOTHING_DUE else None

        def close(connection: sqlite3.Connection) -> None:
            if waits is not None:
                frontier_tables.defer(connection, waits)
            runs.close(connection, self._around.run_id, _STATE_AT[ending], now)

        await self._database.write(close)
        await maintenance.prune(self._database, retention_of(self._settings.store), now)
