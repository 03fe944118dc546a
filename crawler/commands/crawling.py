"""The composition root of a crawl: settings and a site list in, a report out."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from math import inf
from pathlib import Path
from random import Random

from config.settings import Settings
from crawler.admission.admitting import Admission, AdmissionRules
from crawler.admission.copies import Copies
from crawler.admission.redirection import Redirection
from crawler.admission.scope import Scope, ScopeKind
from crawler.admission.seeding import Seeding
from crawler.admission.sites import Seed
from crawler.admission.traps import TrapLimits
from crawler.clock import Clock, SteadyClock
from crawler.commands.correcting import correct
from crawler.commands.formats import require_readable
from crawler.commands.grouping import Watch, catch_up
from crawler.commands.networking import Network
from crawler.commands.parsers import parser_of
from crawler.commands.report import CrawlReport, make_report
from crawler.detection.detector import Detector, Recall
from crawler.errors import CrawlError
from crawler.frontier import Frontier
from crawler.network.fetch import Fetcher
from crawler.pacing import Pacer
from crawler.parsing.quarantine import Parser
from crawler.parsing.sitemaps import SitemapLimits
from crawler.politeness.lanes import PolitenessRules
from crawler.politeness.retrying import Retrying
from crawler.pool import Ending, FetchPool, PoolRules
from crawler.probing import Probing
from crawler.reduction import Judges, Reduction, ReductionRules
from crawler.robots.book import RobotsBook, RobotsRules
from crawler.tally import Tally
from crawler.urls import origin, robots_url
from crawler.vetting import Vetting, WallRecall
from crawler.visiting import Visiting
from scheduler.agenda import BreadthFirst
from storage import bodies, copies, frontier, hosts, links, memories, pages, runs, seeds
from storage.copies import CopyRule
from storage.database import Database, open_store
from storage.errors import sqlite_errors
from storage.records import Acknowledged
from storage.runs import RunState
from storage.visits import VisitTables
from storage.writer import Writer

_DAY_S = 86_400.0
#: Pages compared in one transaction, some 0.3 s: as long as Ctrl-C may take.
_COMPARED = 2_000
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
    """The running parts that progress is read from; ``comparing`` is what it ends with."""

    pool: FetchPool
    frontier: Frontier
    tally: Tally
    clock: Clock
    resumed: bool
    comparing: Watch


Observer = Callable[[Sequence[Acknowledged]], None]


async def crawl(
    settings: Settings,
    order: CrawlOrder,
    *,
    watch: Callable[[Live], Observer],
    fetcher: Fetcher | None = None,
) -> CrawlReport:
    """Crawl until nothing is due, a limit, or a signal; everything reported is committed.

    ``watch`` is given the running parts once, and what it returns is told of every batch
    that has committed. ``fetcher`` replaces the network (archive, synthetic web).

    Raises:
        CrawlError: there is nothing to crawl, or no contact for a crawl beyond loopback.
        StoreError: the store cannot be opened, read or written.
    """
    if not order.seeds and not order.db.exists():
        raise CrawlError(_NOTHING_TO_CRAWL)
    async with AsyncExitStack() as stack:
        clock = SteadyClock()
        network = Network(settings, clock)
        stack.push_async_callback(network.close)
        network.require_contact([seed.url for seed in order.seeds])
        database = await open_store(order.db)
        stack.push_async_callback(database.close)
        await require_readable(database.reader, order.db)
        parser = parser_of(settings)
        stack.push_async_callback(parser.close)
        run_id, resumed = await _open_run(database, settings, order, clock.now())
        crawl_run = _CrawlRun(
            settings, database, run_id, clock, fetcher or network.fetcher, network, parser
        )
        return await crawl_run.perform(watch, resumed=resumed)


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
    if not order.seeds and not await seeds.load(database.reader):
        raise CrawlError(_NOTHING_TO_CRAWL)
    async with database.transaction() as connection:
        await seeds.add(
            connection, [(s.text, s.url, s.fallback_url, s.importance) for s in order.seeds], now
        )
        if resume and last is not None:
            await runs.reopen(connection, last.run_id)
            await frontier.resume_run(connection, now)
            await copies.reconsider(connection, _copy_rule(settings), now)
            return last.run_id, True
        run_id = await runs.start(connection, now, settings.model_dump_json())
        recheck_before = now - settings.crawl.permanent_recheck_days * _DAY_S
        await pages.lift_depth(connection, settings.crawl.max_depth)
        await copies.reconsider(connection, _copy_rule(settings), now)
        await frontier.begin_run(connection, now, recheck_before)
        return run_id, False


def _copy_rule(settings: Settings) -> CopyRule:
    return CopyRule(settings.traps.min_copy_urls, settings.traps.copy_share)


@dataclass(frozen=True, slots=True)
class _Acknowledgements:
    """Passes on what has committed, in this order."""

    listeners: list[Observer]

    def tell(self, batch: Sequence[Acknowledged]) -> None:
        for listener in self.listeners:
            listener(batch)


async def _unasked(_host_id: int, _url: str) -> None:
    """The answer to a probe that is not sent."""


class _CrawlRun:
    """The parts of one invocation, wired."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        run_id: int,
        clock: Clock,
        fetcher: Fetcher,
        network: Network,
        parser: Parser,
    ) -> None:
        self._settings = settings
        self._database = database
        self._run_id = run_id
        self._clock = clock
        self._tally = Tally()
        rng = Random()
        rules = PolitenessRules(**settings.politeness.model_dump(exclude={"key", "groups"}))
        robots_rules = RobotsRules(**settings.robots.model_dump())
        token = settings.crawl.product.lower()
        self._book = RobotsBook(token, robots_rules, rules, rng)
        self._agenda = BreadthFirst(database.reader)
        self._frontier = Frontier(
            self._agenda, self._book, rules, rng, robots_url_of=lambda o: robots_url(origin(o))
        )
        self._admission = Admission(
            Scope(ScopeKind(settings.crawl.scope)),
            AdmissionRules(settings.crawl.max_depth, frozenset(settings.fetch.excluded_extensions)),
            TrapLimits(**settings.traps.model_dump(exclude={"min_copy_urls", "copy_share"})),
        )
        reader = database.reader
        self._probing = Probing(self._frontier)
        self._reduction = Reduction(
            parser,
            self._admission,
            Redirection(
                self._admission,
                lambda url: pages.alias_target(reader, url),
                max_redirects=settings.crawl.max_redirects,
            ),
            Retrying(rules, settings.crawl.attempts, rng),
            self._book,
            Judges(
                Detector(
                    Recall(
                        partial(memories.load, reader),
                        partial(memories.predecessor, reader),
                        partial(memories.sample, reader),
                    ),
                    significant_below=settings.change.significant_below,
                ),
                Vetting(
                    WallRecall(partial(hosts.walls, reader), partial(memories.load, reader)),
                    self._probing.ask if settings.change.probe else _unasked,
                    parser,
                    rng,
                ),
                Copies(self._admission.pattern, partial(copies.texts, reader)),
            ),
            ReductionRules(
                token,
                SitemapLimits(settings.sitemaps.max_bytes, settings.sitemaps.max_entries),
                settings.store.zstd_level,
            ),
        )
        self._fetcher = fetcher
        self._network = network
        self._robots_rules = robots_rules

    async def perform(self, watch: Callable[[Live], Observer], *, resumed: bool) -> CrawlReport:
        """Run to the end and report."""
        started_at = self._clock.now()
        stored = await seeds.load(self._database.reader)
        seeding = Seeding(stored, self._admission)
        self._network.require_contact([s.root_url or s.url for s in stored])
        acknowledgements = _Acknowledgements([self._tally.add])
        writer = Writer(
            self._database, VisitTables(self._run_id, _copy_rule(self._settings)),
            acknowledgements.tell,
            batch=self._settings.store.batch,
        )  # fmt: skip
        pool = self._pool(seeding, writer)
        comparing = Watch(lambda: pool.stopping)
        live = Live(pool, self._frontier, self._tally, self._clock, resumed, comparing)
        acknowledgements.listeners.extend([pool.acknowledged, watch(live)])
        await self._probe(seeding)
        ending = await self._run(pool, seeding, writer)
        await self._correct(started_at)
        await self._close_run(ending)
        if not pool.stopping:
            with _stopping_on_signals(pool):
                await catch_up(self._database, self._clock.now, batch=_COMPARED, watch=comparing)
        return await make_report(
            self._database.reader, self._run_id, self._tally, ending,
            seconds=self._clock.now() - started_at, resumed=resumed,
        )  # fmt: skip

    def _pool(self, seeding: Seeding, writer: Writer) -> FetchPool:
        lane_key = self._network.lane_key
        visiting = Visiting(
            self._fetcher, self._frontier, self._probing, self._book, self._reduction,
            self._admission, seeding, lane_key, self._clock, self._robots_rules,
            self._settings.sitemaps.max_bytes,
            lambda url, at: links.offsite_at(self._database.reader, url, at),
        )  # fmt: skip
        chosen = self._settings.crawl
        rules = PoolRules(
            chosen.exchanges, chosen.max_pages, chosen.time_limit_s, chosen.patience_s
        )
        return FetchPool(
            self._frontier, self._agenda, visiting, writer.submit, lane_key, self._clock, rules,
            Pacer(inf, self._clock.now()),
        )  # fmt: skip

    async def _run(self, pool: FetchPool, seeding: Seeding, writer: Writer) -> Ending:
        """Crawl under the signal handlers, with the writer beside the pool."""
        with _stopping_on_signals(pool):
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(writer.run())
                    return await self._feed(pool, seeding, writer)
            except BaseExceptionGroup as group:
                with sqlite_errors(self._database.path):
                    raise _first(group) from group

    async def _feed(self, pool: FetchPool, seeding: Seeding, writer: Writer) -> Ending:
        await self._agenda.open()
        await pool.submit(seeding.decided(self._clock.now()))
        ending = await pool.run()
        await writer.finish()
        return ending

    async def _probe(self, seeding: Seeding) -> None:
        """Ask the hosts whose answer decides the scheme of some seeds.

        Their rows are written before the writer starts: it is the only one from then on.
        """
        origins = seeding.open_origins()
        if not origins:
            return
        async with self._database.transaction() as connection:
            ids = await hosts.ensure(connection, origins)
        for host in await hosts.load(self._database.reader, list(ids.values())):
            self._frontier.add_host(host, await self._network.lane_key(host.origin))
            self._frontier.ask_robots(host.host_id)

    async def _correct(self, invoked_at: float) -> None:
        """Let what the run showed in the end count; also of earlier invocations of it."""
        run = await runs.latest(self._database.reader)
        since = run.started_at if run is not None else invoked_at
        now = self._clock.now()
        for correction in await correct(self._database, self._run_id, since, now):
            if correction.at >= invoked_at:
                self._tally.correct(correction.was, correction.kind)

    async def _close_run(self, ending: Ending) -> None:
        now = self._clock.now()
        async with self._database.transaction() as connection:
            if ending is Ending.NOTHING_DUE:
                await frontier.defer(connection, self._frontier.waits(now))
            await runs.close(connection, self._run_id, _STATE_AT[ending], now)
            await bodies.prune(
                connection,
                per_page=self._settings.store.bodies_per_page,
                older_than=now - self._settings.store.body_age_days * _DAY_S,
            )


@contextmanager
def _stopping_on_signals(pool: FetchPool) -> Iterator[None]:
    """First SIGINT or SIGTERM: drain. Second: abort what is in flight at once."""
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if pool.stopping:
            pool.abandon()
        else:
            pool.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error to report: they all have one cause, and the first was there first."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
