"""The daemon: it keeps pages fresh under a budget until it is stopped.

:func:`keep` opens the resources in the order of their dependencies. :class:`_Daemon` builds its
parts from them. :meth:`_Daemon.run` starts the parts, visits pages day by day, and returns a
report. A reload replaces the settings between two visits.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import replace
from functools import partial
from math import inf
from random import Random
from typing import TypeAlias, TypeVar

import numpy as np

from freshet.config.settings import Settings
from freshet.crawler.admission.admit import HasRoom, Seeding
from freshet.crawler.errors import CrawlError, UsageError
from freshet.crawler.fetch.bounds import connections
from freshet.crawler.fetch.client import Fetcher, OursOrTheirs
from freshet.crawler.frontier.clock import Clock, SteadyClock
from freshet.crawler.frontier.politeness import Pacer
from freshet.crawler.run.crawl import Live
from freshet.crawler.run.daemon_settings import (
    BrowserRequests,
    DefaultBudget,
    InForce,
    budget_of_store,
    chosen_sites,
    for_store,
    learning_budget,
    limited,
    taken_over,
    waiting_for_a_restart,
    with_budget,
)
from freshet.crawler.run.daily_upkeep import EVERY_S, DailyUpkeep
from freshet.crawler.run.hooks import Companions, RunShard, check_companions
from freshet.crawler.run.importance import ListedPage
from freshet.crawler.run.network import (
    Network,
    fetcher_layers,
    parser_of,
    require_fetchers,
    with_kept,
)
from freshet.crawler.run.orders import CrawlReport, DaemonOrder, Reread, Tally, make_report
from freshet.crawler.run.outages import (
    StoreOutages,
    enduring,
    handling_reload_signals,
    unreachable_hosts,
)
from freshet.crawler.run.pool import Ending, FetchPool, PoolRules, Supervisor
from freshet.crawler.run.reports import Reports
from freshet.crawler.run.rules import copy_rule, take_over_pages
from freshet.crawler.run.service import Service
from freshet.crawler.run.state import DaemonState
from freshet.crawler.run.status_recorder import StatusRecorder
from freshet.crawler.run.upkeep import keep_to, require_readable, resumed
from freshet.crawler.run.wiring import (
    Assembly,
    Observer,
    RunContext,
    archiving,
    described,
    open_index,
    stopping_on_signals,
)
from freshet.scheduler import PolicyError
from freshet.scheduler.arrays import Bools
from freshet.scheduler.queue.hooks import AgendaHooks
from freshet.scheduler.queue.rankers import ranker_of
from freshet.scheduler.queue.recrawl import RecrawlAgenda
from freshet.storage.database import Database, open_store
from freshet.storage.entries import Outlook
from freshet.storage.errors import StoreError
from freshet.storage.records import Acknowledged, Estimate
from freshet.storage.tables import observations, runs, url_patterns

T = TypeVar("T")
log = logging.getLogger(__name__)

_DAY_S = 86_400.0
_MOMENT_S = 1e-3
#: Seconds between two counts of the pages, if the budget follows their number.
_COUNTED_S = 10.0
#: The ranker learns from scratch when the default budget has changed by this factor.
_RELEARN_FACTOR = 2.5
#: From this number on, pages are valued in a thread.
_MANY = 20_000
#: Called at a SIGHUP.
Reload: TypeAlias = Callable[[], None]
_NOTHING_TO_KEEP = "there is nothing to keep fresh: name a SITE, or a list with --sites FILE"

# -- the start -----------------------------------------------------------------


async def keep(  # noqa: PLR0913 - all but two have defaults
    settings: Settings,
    order: DaemonOrder,
    *,
    watch: Callable[[Live], Observer],
    reread: Reread | None = None,
    fetcher: Fetcher | None = None,
    clock: Clock | None = None,
    rng: Random | None = None,
    service: Service | None = None,
    embedded: bool = False,
    shard: RunShard | None = None,
) -> CrawlReport:
    """Keep pages fresh until a signal or the time limit; return a report.

    On SIGHUP, ``reread`` returns the new order, which replaces the old one if it is valid.
    ``fetcher`` replaces the network, and ``clock`` the system clock. ``service`` reports the
    status. With ``embedded``, the signals of the host program stay untouched, and the daemon runs
    until its pool is stopped. With ``shard``, only its pages are visited.

    Raises:
        CrawlError: there is nothing to keep fresh, or no contact for a crawl beyond loopback.
        PolicyError: the policy or one of its options is unknown.
        StoreError: the store cannot be opened, read or written.
    """
    _check(settings, order)
    service = service or Service()
    clock = clock or SteadyClock()
    async with AsyncExitStack() as stack:
        # Handle SIGHUP before the lock file shows the process id to `freshet reload`.
        at_reload_signals = stack.enter_context(_reload_signals(embedded=embedded))
        network = Network(settings, clock)
        stack.push_async_callback(network.close)
        layers = fetcher_layers(settings, stack)
        await network.require_contact([seed.url for seed in order.seeds])
        database = await _open_store(order, shard, embedded=embedded, closed_by=stack)
        settings = await with_kept(settings, database.reader)
        parser = parser_of(settings, clock, network)
        stack.push_async_callback(parser.close)
        was_killed = await resumed(database, clock)
        per_day = await _budget(order, database)
        run_id, has_room = await _open_run(database, settings, order, per_day, clock.now())
        sites = await chosen_sites(database.reader, order.seeds, settings)
        await network.require_contact([s.root_url or s.url for s in sites.seeds])
        began_at = await runs.began_at(database.reader, run_id)
        archive = await archiving(
            settings, sites.seeds, clock, began_at=began_at, lasting=True, closed_by=stack
        )
        context = RunContext(
            settings=settings,
            database=database,
            run_id=run_id,
            clock=clock,
            fetcher=OursOrTheirs(fetcher or network.fetcher, clock),
            queues=network,
            parser=parser,
            rng=rng or Random(),
            lasting=True,
            was_killed=was_killed,
            embedded=embedded,
            index=await open_index(database, settings),
            has_room=has_room,
            shard=shard,
            archive=archive,
            layers=layers,
        )
        stack.push_async_callback(service.leave)
        learns_by = learning_budget(order, per_day)
        force = InForce(order, settings, sites, per_day, learns_by)
        daemon = _Daemon(context, force, network, service, shard)
        stack.push_async_callback(daemon.companions.close)
        stack.push_async_callback(daemon.state.close)
        if reread is not None:
            at_reload_signals(partial(daemon.reload, reread))
        return await daemon.run(watch)


def _check(settings: Settings, order: DaemonOrder) -> None:
    """Raise an error for an impossible order, before any file is opened."""
    ranker_of(order.policy, order.budget or 1.0)
    check_companions(settings)
    require_fetchers(settings)
    if not order.seeds and not order.db.exists():
        raise UsageError(_NOTHING_TO_KEEP)


def _reload_signals(*, embedded: bool) -> AbstractContextManager[Callable[[Reload], None]]:
    """Return a context that gives a function to register a SIGHUP handler.

    An embedded daemon registers none.
    """
    return nullcontext(lambda _reload: None) if embedded else handling_reload_signals()


async def _open_store(
    order: DaemonOrder, shard: RunShard | None, *, embedded: bool, closed_by: AsyncExitStack
) -> Database:
    """Open the store of the order, and take its lease for the shard."""
    database = await open_store(order.db, owner="embedded daemon" if embedded else "daemon")
    closed_by.push_async_callback(database.close)
    await keep_to(database, shard, closed_by)
    await require_readable(database.reader, order.db)
    return database


async def _budget(order: DaemonOrder, database: Database) -> float:
    """Return the ordered requests per day, or the default."""
    return order.budget or await budget_of_store(database.reader, len(order.seeds))


async def _open_run(
    database: Database, settings: Settings, order: DaemonOrder, per_day: float, now: float
) -> tuple[int, HasRoom | None]:
    """Start a run, or resume a killed one; return its id, and the page limit test.

    Raises:
        CrawlError: there is nothing to keep fresh.
    """
    last = await runs.latest(database.reader)
    recorded = for_store(with_budget(settings, order, per_day))
    if not order.seeds and not await runs.load(database.reader):
        raise UsageError(_NOTHING_TO_KEEP)

    def begin(connection: sqlite3.Connection) -> tuple[int, HasRoom | None]:
        runs.add(connection, order.seeds, now)
        has_room = take_over_pages(connection, settings, lasting=True)
        url_patterns.reconsider(connection, copy_rule(settings), now)
        if last is not None and last.ended_at is None:
            runs.reopen(connection, last.run_id)
            runs.record_settings(connection, last.run_id, recorded)
            return last.run_id, has_room
        return runs.start(connection, now, recorded), has_room

    return await database.write(begin)


class _DaemonHooks(AgendaHooks):
    """Connects a daemon's queue with its pacer, its service and, once attached, its pool."""

    def __init__(self, pacer: Pacer, service: Service) -> None:
        self._pacer = pacer
        self._service = service
        self._pool: FetchPool | None = None

    def attach(self, pool: FetchPool) -> None:
        """Use this pool and its frontier from now on."""
        self._pool = pool

    def wake(self) -> None:
        """Start the pool's next turn at once."""
        if self._pool is not None:
            self._pool.wake()

    def timed(self, work: str) -> AbstractContextManager[None]:
        """Time a piece of work for the metrics."""
        return self._service.timed(work)

    def away(self, now: float) -> Collection[int]:
        """Return the hosts that the frontier holds back."""
        return () if self._pool is None else self._pool.frontier.waits(now)

    def saved(self, now: float) -> float:
        """Return how many requests may start at once."""
        return self._pacer.saved(now)

    def save(self, most: float) -> None:
        """Set the number of requests that may be saved."""
        self._pacer.save(most)

    def allows(self, now: float) -> bool:
        """Return whether the budget allows a request."""
        return self._pacer.allows(now)


# -- the visits ----------------------------------------------------------------


class _Daemon(Supervisor):
    """One invocation of the daemon, from its first visit to its report."""

    def __init__(
        self,
        context: RunContext,
        force: InForce,
        network: Network,
        service: Service,
        shard: RunShard | None,
    ) -> None:
        self._context = context
        self._force = force
        self._network = network
        self._service = service
        self._shard = shard
        clock = context.clock
        # A shard learns its share of the budget from the coordinator later.
        least = force.per_day if shard is None else shard.least_per_day
        self._pacer = Pacer(least, clock.now())
        hooks = _DaemonHooks(self._pacer, service)
        self.state = DaemonState(
            context.database.reader,
            force.of_ranker,
            ranker_of(force.order.policy, force.learns_by),
            seeds=force.sites.seeds,
            choice=self,
            rng=context.rng,
            # In virtual time, results must not depend on the order in which threads end.
            many=_MANY if isinstance(clock, SteadyClock) else inf,
            hooks=hooks,
        )
        self.agenda.budget = force.per_day
        self._assembly = Assembly(context, self.agenda, self, alias_age_s=EVERY_S)
        self.companions = Companions(context, network)
        self._tally = Tally()
        self._recorder = StatusRecorder(self.state, self._pacer, clock.now(), context.database)
        self._reports = Reports(
            self._recorder, self._pacer, self._tally, self._default_of(force),
            context.database.reader,
        )  # fmt: skip
        self._seeding = Seeding(force.sites.seeds, self._assembly.admission)
        rules = PoolRules(
            connections(context.settings.crawl.concurrent_requests), patience_s=inf, goes_on=True
        )
        self._pool = self._assembly.pool(self._seeding, rules, self._pacer)
        hooks.attach(self._pool)
        if shard is not None:
            shard.attend(
                pool=self._pool, admission=self._assembly.admission, database=context.database,
                clock=clock, pacer=self._pacer, state=self.state, reload=self.reload,
            )  # fmt: skip
        self._outages = StoreOutages(self._pool, clock)
        self._browser = BrowserRequests(context.database, self.agenda, self._pool)
        self._upkeep = DailyUpkeep(
            context, self.state, self.companions, self._pacer, self._pool, since=clock.now()
        )
        self._reread: Reread | None = None
        self._chores = list(self._in_order())
        #: All observers of batches that have no attribute of their own here.
        self._observers: list[Observer] = []

    def _in_order(self) -> Iterator[Callable[[float], Awaitable[None]]]:
        """Yield the work to do before each turn of the pool."""
        yield self._service.turn
        if self._shard is None:
            yield enduring(self._follow_pages)
        yield enduring(partial(self._recorder.chore, submit=self._pool.submit))
        yield self._reports.chore
        yield enduring(lambda _now: self._assembly.note_network())
        if isinstance(self._context.clock, SteadyClock):
            yield enduring(self._apply_browser_settings)

    @property
    def agenda(self) -> RecrawlAgenda:
        """The crawl queue, ordered by the value of a visit."""
        return self.state.agenda

    @property
    def named(self) -> str:
        """The seeds that are left out, as text."""
        return self._force.sites.named

    def left_out(self, urls: Sequence[str]) -> Bools:
        """Return a mask (m,) of the pages that only belong to other seeds."""
        return self._force.sites.left_out_of(urls, self._assembly.admission.scope)

    def _default_of(self, force: InForce) -> DefaultBudget | None:
        if force.order.budget is not None:
            return None
        return DefaultBudget(self.agenda, self._pacer, force.per_day)

    async def run(self, watch: Callable[[Live], Observer]) -> CrawlReport:
        """Visit pages, do the daily upkeep, and return the report."""
        context, clock, pool = self._context, self._context.clock, self._pool
        started_at = clock.now()
        newest = await observations.newest(context.database.reader)
        self._upkeep.ends_at = started_at + (self._force.order.time_limit_s or inf)
        clock.on_step(self._shift)
        live = Live(pool=pool, tally=self._tally, snapshot=self._recorder.snapshot)
        self._observers = [watch(live), unreachable_hosts()]
        self._service.attend(pool, self._recorder, self._outages, context.database)
        listens = [each for each in (self._service.address, *self.companions.listens) if each]
        with stopping_on_signals(pool, context):
            sites = len(self._force.sites.seeds)
            self._reports.started(self._force.order, sites, listens, started_at)
            await self._assembly.ask_schemes(self._seeding)
            await self.state.weigh()
            async with self.companions.beside(self._assembly, pool, self._importances):
                ending = await self._visit()
            if not pool.stopping:
                await self.companions.finish(pool.told_to_stop)
        await self._end()
        self._reports.ended(ending, clock.now())
        report = await make_report(
            context.database.reader,
            context.run_id,
            self._tally,
            ending,
            after=newest,
            seconds=clock.now() - started_at,
        )
        requisites = self._assembly.counted_requisites()
        return replace(report, unused_requests=round(self._pacer.forgone, 1), requisites=requisites)

    # -- callbacks of the pool and the writer (:class:`Supervisor`)

    def begun(self) -> None:
        """Notify the companions of the end of the first turn."""
        self.companions.begun()

    async def turn(self) -> None:
        """Do the due work before each turn of the pool."""
        clock = self._context.clock
        for chore in self._chores:
            await chore(clock.now())
        if self._shard is not None:
            await self._shard.turn()
        await self.companions.turn(clock.now())

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """Count a batch, and pass it to the observers."""
        self._tally.add(batch)
        if self._shard is not None:
            self._shard.committed(batch)
        for observe in self._observers:
            observe(batch)
        self._service.committed(batch)
        self.companions.committed(batch)

    async def endure(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work, and repeat it while the store is unavailable."""
        return await self._outages.endure(work)

    # -- the visits, day by day

    async def _importances(self, listed: Sequence[ListedPage]) -> Sequence[float]:
        ids = np.array([each.page_id for each in listed], np.int64)
        found = self.state.terms(
            ids, [each.url for each in listed], [each.origin for each in listed]
        )
        return [float(value) for value in found.importance]

    async def _visit(self) -> Ending:
        """Visit pages until the end or a signal; reload and do the upkeep in between."""
        ending: Ending = "limit"
        clock, upkeep = self._context.clock, self._upkeep
        upkeep.since = clock.now()
        while ending in {"limit", "paused"} and clock.now() < upkeep.ends_at:
            while self._reread is not None:
                await self._reload(self._reread)
            limit = max(_MOMENT_S, upkeep.until() - clock.now())
            ending = await self._assembly.run(self._pool, self._seeding, time_limit_s=limit)
            if ending != "paused":
                self._service.keeps_up()
                await self._outages.endure(partial(upkeep.keep_up, self._force))
                upkeep.since = clock.now()
        return ending

    def _shift(self, by: float) -> None:
        if self._reports.default is not None:
            self._reports.default.counts_at += by
        self._upkeep.shift(by)
        self._browser.shift(by)
        self._reports.shift(by)
        self.agenda.shift(by, self._context.clock.now())
        self._recorder.shift(by)

    async def _end(self) -> None:
        """Write the last status, the estimates and the ranker's snapshot, and close the run."""
        database = self._context.database
        await self.agenda.rest()
        await self._recorder.stop()
        last = await self._recorder.outlook(self._context.clock.now())
        changed = [each async for batch in self._recorder.estimates() for each in batch.estimates]
        await self._outages.endure(partial(self._close_run, last, changed))
        await self._outages.endure(partial(self.state.write, database))

    async def _close_run(self, last: Outlook, changed: Sequence[Estimate]) -> None:
        run_id, now = self._context.run_id, self._context.clock.now()

        def close(connection: sqlite3.Connection) -> None:
            runs.append(connection, run_id, last)
            observations.write(connection, changed)
            runs.close(connection, run_id, "ended", now)

        await self._context.database.write(close)

    # -- chores --------------------------------------------------------------------

    async def _apply_browser_settings(self, now: float) -> None:
        """Apply settings made in a browser, and put the pages requested there in front."""
        if self._reread is not None:
            return
        before = self._force.settings
        settings = await self._browser.apply(before, now)
        if settings is not before:
            self._force = replace(self._force, settings=settings)
        if before.sites != settings.sites:
            self.reload(lambda: self._force.order)

    async def _follow_pages(self, now: float) -> None:
        """Adapt the default budget to the number of pages, and the ranker to the budget."""
        default = self._reports.default
        if default is None or now < default.counts_at:
            return
        await self.agenda.at_rest()
        before, per_day = default.steady, default.per_day()
        default.counts_at = now + (1.0 if default.first else _COUNTED_S)
        if per_day != self._pacer.per_day:
            self._pacer.change(per_day, now)
            self.agenda.budget = per_day
        force = self._force
        if default.steady != before:
            settings_now = with_budget(force.settings, force.order, default.steady)
            await self._context.database.write(
                partial(self._record_settings, settings_now=settings_now)
            )
        wanted = learning_budget(force.order, default.steady)
        if not 1 / _RELEARN_FACTOR < wanted / force.learns_by < _RELEARN_FACTOR:
            force = self._force = replace(force, learns_by=wanted)
            self.state.follow(force.of_ranker)
            self.agenda.budget = per_day
            await self.agenda.settle()
            await self.state.relearn(ranker_of(force.order.policy, wanted))

    def _record_settings(self, connection: sqlite3.Connection, settings_now: Settings) -> None:
        runs.record_settings(connection, self._context.run_id, for_store(settings_now))

    # -- reload --------------------------------------------------------------------

    def reload(self, reread: Reread) -> None:
        """Read the order again after the requests under way."""
        self._reread = reread
        self._browser.reset()
        self._service.reloads()
        self._pool.pause()

    async def _reload(self, reread: Reread) -> None:
        """Apply the new order, or keep the old one if it is invalid."""
        self._reread = None
        database, now = self._context.database, self._context.clock.now()
        try:
            order = reread()
            wanted = order.settings or self._force.settings
            force = await self._renewed(order, wanted)
            ranker = ranker_of(order.policy, force.learns_by)
            await self._apply(force, now)
        except (CrawlError, PolicyError, StoreError) as error:
            log.warning("not reloaded: %s; the daemon keeps its old settings", error)
            self._service.reloaded(done=False)
            database.answer(f"refused: {error}")
            return
        before = self._force
        sites = await chosen_sites(database.reader, order.seeds, force.settings)
        self._force = force = replace(force, sites=sites)
        await self._describe_archive()
        self.state.follow(force.of_ranker)
        await self.state.weigh()
        self._seeding.renew(sites.seeds)
        await self._outages.endure(partial(self._assembly.ask_schemes, self._seeding))
        await self.state.reset(ranker)
        self._spend(now)
        self._service.reloaded(done=True)
        done = (
            f"reloaded: {force.per_day:g} requests a day by {order.policy}"
            f"{sites.beside(before.sites)}{waiting_for_a_restart(force.settings, wanted)}"
        )
        self._reports.reloaded(done)
        database.answer(done)

    async def _renewed(self, order: DaemonOrder, wanted: Settings) -> InForce:
        """Return the state for an order and its settings, still with the current sites."""
        per_day = order.budget or limited(len(self.agenda.pages) or len(order.seeds))
        learns_by = learning_budget(order, per_day)
        ranker_of(order.policy, learns_by)
        await self._network.require_contact([seed.url for seed in order.seeds])
        taken = taken_over(self._force.settings, wanted)
        settings = await with_kept(taken, self._context.database.reader)
        return InForce(order, settings, self._force.sites, per_day, learns_by)

    async def _apply(self, force: InForce, now: float) -> None:
        """Apply settings to all parts, and record them in the store."""
        settings, order = force.settings, force.order
        self.companions.obey(settings)
        self._network.obey(settings)
        self._assembly.obey(settings)
        settings_now = with_budget(settings, order, force.per_day)

        def record(connection: sqlite3.Connection) -> HasRoom | None:
            runs.add(connection, order.seeds, now)
            has_room = take_over_pages(connection, settings_now, lasting=True)
            self._record_settings(connection, settings_now)
            return has_room

        self._assembly.admission.has_room = await self._context.database.write(record)

    async def _describe_archive(self) -> None:
        """Describe the new settings in the archive."""
        context, force = self._context, self._force
        if context.archive is not None:
            began_at = await runs.began_at(context.database.reader, context.run_id)
            context.archive.describe(
                described(force.settings, force.sites.seeds, began_at=began_at, lasting=True)
            )

    def _spend(self, now: float) -> None:
        """Apply the budget in force; a shard gets its share from the coordinator."""
        force = self._force
        if self._reports.default is not None:
            self._reports.default.counts_at = -inf
        self.agenda.budget = force.per_day
        if self._shard is None:
            self._pacer.change(force.per_day, now)
        if self._reports.default is None or force.order.budget is not None:
            self._reports.default = self._default_of(force)
