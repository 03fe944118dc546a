"""A crawl, from settings and a site list to a report."""

import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from random import Random

from freshet.config.settings import Settings
from freshet.crawler.admission.admit import HasRoom, Seeding
from freshet.crawler.bounds import LISTED_URLS, connections
from freshet.crawler.clock import Clock, SteadyClock
from freshet.crawler.errors import UsageError
from freshet.crawler.fetch.client import Fetcher, OursOrTheirs
from freshet.crawler.hooks import RunShard
from freshet.crawler.network import Network, parser_of, with_kept
from freshet.crawler.pacing import Pacer
from freshet.crawler.pool import FetchPool, PoolRules
from freshet.crawler.rendering import require_renderer
from freshet.crawler.run import companions
from freshet.crawler.run.indexing import open_index
from freshet.crawler.run.orders import CrawlReport, make_report
from freshet.crawler.run.rules import copy_rule, take_over_pages
from freshet.crawler.run.upkeep import (
    Grouping,
    catch_up,
    correct,
    keep_to,
    require_readable,
    resumed,
    retention_of,
)
from freshet.crawler.run.wiring import (
    Assembly,
    Observer,
    RunContext,
    archiving,
    stopping_on_signals,
)
from freshet.crawler.tally import DaemonSnapshot, Ending, Tally
from freshet.scheduler.agenda.breadth_first import BreadthFirst
from freshet.storage import maintenance
from freshet.storage.database import Database, open_store
from freshet.storage.extensions import recorders
from freshet.storage.records import StoredSeed
from freshet.storage.tables import frontier as frontier_tables
from freshet.storage.tables import observations, runs, site_settings, url_patterns
from freshet.storage.tables.runs import RunState

_DAY_S = 86_400.0
#: Pages compared in one transaction, some 0.3 s: Ctrl-C waits for it.
COMPARED = 2_000
_NOTHING_TO_CRAWL = "there is nothing to crawl: name a SITE, or a list with --sites FILE"
_STATE_AT: dict[Ending, RunState] = {
    "nothing due": "ended",
    "interrupted": "interrupted",
    "limit": "limit",
    "requests": "limit",
    "cut off": "interrupted",
}


@dataclass(frozen=True, slots=True)
class CrawlOrder:
    """The seeds of a crawl, and its store; ``resume`` None: the last run if it is unfinished."""

    db: Path
    seeds: Sequence[StoredSeed]
    resume: bool | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The running parts that progress is read from.

    ``comparing`` is the progress of the last step, ``snapshot`` the status of a daemon at a time,
    ``left`` counts the URLs that are due by host.
    """

    pool: FetchPool
    tally: Tally
    comparing: Grouping = field(default_factory=Grouping)
    snapshot: Callable[[float], DaemonSnapshot] | None = None
    left: Callable[[], Awaitable[Mapping[int, int]]] | None = None


async def crawl(
    settings: Settings,
    order: CrawlOrder,
    *,
    watch: Callable[[Live], Observer],
    fetcher: Fetcher | None = None,
    clock: Clock | None = None,
    embedded: bool = False,
    shard: RunShard | None = None,
) -> CrawlReport:
    """Crawl until nothing is due, a limit, or a signal; everything reported is committed.

    ``watch`` receives the running parts once, and returns an observer of every committed batch.
    ``fetcher`` replaces the network (archive, synthetic web) and uses the same ``clock``, which is
    the machine's by default. ``embedded`` in another program it leaves the signals alone. Of a
    ``shard`` it visits the pages of that, until no shard has a page left.

    Raises:
        CrawlError: there is nothing to crawl, or no contact for a crawl beyond loopback.
        StoreError: the store cannot be opened, read or written.
    """
    if not order.seeds and not order.db.exists():
        raise UsageError(_NOTHING_TO_CRAWL)
    # Before anything is fetched.
    companions.check(settings)
    require_renderer(settings)
    async with AsyncExitStack() as stack:
        clock = clock or SteadyClock()
        network = Network(settings, clock)
        stack.push_async_callback(network.close)
        await network.require_contact([seed.url for seed in order.seeds])
        database = await open_store(order.db)
        stack.push_async_callback(database.close)
        await keep_to(database, shard, stack)
        await require_readable(database.reader, order.db)
        settings = await with_kept(settings, database.reader)
        parser = parser_of(settings, clock, network)
        stack.push_async_callback(parser.close)
        was_killed = await resumed(database, clock)
        run_id, is_resumed, has_room = await _open_run(database, settings, order, clock.now())
        await database.write(partial(site_settings.put_first, now=clock.now()))
        stored = await runs.load(database.reader)
        await network.require_contact([s.root_url or s.url for s in stored])
        began_at = await runs.began_at(database.reader, run_id)
        archive = await archiving(
            settings, stored, clock, began_at=began_at, lasting=False, closed_by=stack
        )
        context = RunContext(
            settings=settings,
            database=database,
            run_id=run_id,
            clock=clock,
            fetcher=fetcher or OursOrTheirs(network.fetcher),
            queue_key=network.queue_key,
            parser=parser,
            rng=Random(),
            was_killed=was_killed,
            embedded=embedded,
            index=await open_index(database, settings),
            has_room=has_room,
            is_ours=None if shard is None else shard.is_ours,
            archive=archive,
            renderer=network.renderer,
        )
        beside = companions.Companions(context, network)
        stack.push_async_callback(beside.close)
        return await _CrawlRun(context, shard, beside).perform(watch, resumed=is_resumed)


async def _open_run(
    database: Database, settings: Settings, order: CrawlOrder, now: float
) -> tuple[int, bool, HasRoom | None]:
    """Start a run, or resume the last one; return its id, whether it was resumed, and room."""
    last = await runs.latest(database.reader)
    if order.resume and last is None:
        raise UsageError(f"{order.db}: there is no run to resume; leave out --resume")
    is_unfinished = last is not None and last.ended_at is None
    resume = is_unfinished if order.resume is None else order.resume
    if not order.seeds and not await runs.load(database.reader):
        raise UsageError(_NOTHING_TO_CRAWL)

    def begin(connection: sqlite3.Connection) -> tuple[int, bool, HasRoom | None]:
        runs.add(connection, order.seeds, now)
        goes_on = resume and last is not None
        has_room = take_over_pages(connection, settings, lasting=False, lift=not goes_on)
        if resume and last is not None:
            runs.reopen(connection, last.run_id)
            runs.record_settings(connection, last.run_id, settings.model_dump_json())
            frontier_tables.resume_run(connection, now)
            url_patterns.reconsider(connection, copy_rule(settings), now)
            return last.run_id, True, has_room
        run_id = runs.start(connection, now, settings.model_dump_json())
        recheck_before = now - settings.crawl.permanent_recheck_days * _DAY_S
        url_patterns.reconsider(connection, copy_rule(settings), now)
        frontier_tables.begin_run(connection, now, recheck_before)
        return run_id, False, has_room

    return await database.write(begin)


class _CrawlRun:
    """One invocation of a crawl."""

    def __init__(
        self, context: RunContext, shard: RunShard | None, beside: companions.Companions
    ) -> None:
        self._context = context
        self._companions = beside
        self._shard = shard
        self._settings = context.settings
        self._database = context.database
        self._clock = context.clock
        self._tally = Tally()
        self._assembly = Assembly(context, BreadthFirst(context.database.reader, LISTED_URLS))

    async def perform(self, watch: Callable[[Live], Observer], *, resumed: bool) -> CrawlReport:
        """Run to the end and report."""
        started_at = self._clock.now()
        newest = await observations.newest(self._database.reader)
        seeds = await runs.load(self._database.reader)
        seeding = Seeding(seeds, self._assembly.admission)
        listeners = self._assembly.listeners
        listeners.append(self._tally.add)
        chosen = self._settings.crawl
        rules = PoolRules(
            exchanges=connections(chosen.exchanges),
            max_pages=chosen.max_pages,
            # Beside pages there are failures, redirects, sitemaps, and each seed's robots.txt.
            max_requests=chosen.max_pages and 10 * chosen.max_pages + 100 + 2 * len(seeds),
            patience_s=chosen.patience_s,
        )
        pacer = Pacer(inf, started_at)
        pool = self._assembly.pool(seeding, rules, pacer, begun=self._companions.begun)
        if self._shard is not None:
            pool.more_comes = self._shard.may_get_more
            listeners.append(
                self._shard.attend(
                    pool=pool, admission=self._assembly.admission, database=self._database,
                    clock=self._clock,
                )
            )  # fmt: skip
        comparing = Grouping(lambda: pool.stopping)
        left = partial(frontier_tables.due_by_host, self._database.reader)
        live = Live(pool=pool, tally=self._tally, comparing=comparing, left=left)
        listeners.append(watch(live))
        listeners.append(self._companions.committed)
        with stopping_on_signals(pool, self._context):
            await self._assembly.ask_schemes(seeding)
            async with self._companions.beside(self._assembly, pool):
                ending = await self._assembly.run(pool, seeding, time_limit_s=chosen.time_limit_s)
            await self._correct(started_at)
            await self._close_run(ending)
            if not pool.stopping:
                await self._companions.finish(pool.told_to_stop)
                await catch_up(self._database, self._clock.now, batch=COMPARED, watch=comparing)
        report = await make_report(
            self._database.reader,
            self._context.run_id,
            self._tally,
            ending,
            after=newest,
            seconds=self._clock.now() - started_at,
            resumed=resumed,
            parser=self._context.parser,
        )
        return replace(report, requisites=self._assembly.counted_requisites())

    async def _correct(self, invoked_at: float) -> None:
        """Correct verdicts of the run, also of its earlier invocations, by its other pages."""
        run = await runs.latest(self._database.reader)
        since = run.started_at if run is not None else invoked_at
        now = self._clock.now()
        telling = [*recorders(self._settings), self._context.index]
        await correct(self._database, self._context.run_id, since, now, telling)
        context = self._context
        await context.index.keep_up(self._database, context.parser, self._settings, now)

    async def _close_run(self, ending: Ending) -> None:
        now = self._clock.now()
        waits = self._assembly.frontier.waits(now) if ending == "nothing due" else None

        def close(connection: sqlite3.Connection) -> None:
            if waits is not None:
                frontier_tables.defer(connection, waits)
            runs.close(connection, self._context.run_id, _STATE_AT[ending], now)

        await self._database.write(close)
        await maintenance.prune(self._database, retention_of(self._settings.store), now)
