"""The daemon: it keeps pages fresh under a budget until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from random import Random
from typing import Final

import aiosqlite
import numpy as np

from freshet.config.settings import Settings
from freshet.config.sites import with_stored
from freshet.crawler.admission.admit import HasRoom, Scope, Seeding
from freshet.crawler.bounds import connections
from freshet.crawler.clock import Clock, SteadyClock
from freshet.crawler.errors import CrawlError, UsageError
from freshet.crawler.fetch.client import Fetcher, OursOrTheirs
from freshet.crawler.hooks import RunShard
from freshet.crawler.importance import ListedPage, interests
from freshet.crawler.network import Network, parser_of, with_kept
from freshet.crawler.pacing import Pacer
from freshet.crawler.pool import FetchPool, PoolRules
from freshet.crawler.rendering import require_renderer
from freshet.crawler.run import companions, default_budget
from freshet.crawler.run.crawl import COMPARED, Live
from freshet.crawler.run.default_budget import DefaultBudget, limited
from freshet.crawler.run.indexing import open_index
from freshet.crawler.run.notes import StatusRecorder
from freshet.crawler.run.orders import CrawlReport, DaemonOrder, Reread, make_report
from freshet.crawler.run.reports import Reports
from freshet.crawler.run.rules import copy_rule, scope_at, take_over_pages
from freshet.crawler.run.service import Service
from freshet.crawler.run.state import DaemonState
from freshet.crawler.run.upkeep import (
    Grouping,
    StoreOutages,
    catch_up,
    correct,
    enduring,
    handling_reload_signals,
    keep_to,
    require_readable,
    resumed,
    retention_of,
    unreachable_hosts,
)
from freshet.crawler.run.wiring import (
    Assembly,
    Observer,
    RunContext,
    archiving,
    described,
    stopping_on_signals,
)
from freshet.crawler.tally import Ending, Tally
from freshet.scheduler import PolicyError
from freshet.scheduler.agenda.hooks import AgendaHooks
from freshet.scheduler.agenda.rankers import ranker_of
from freshet.scheduler.agenda.recrawl import RecrawlAgenda
from freshet.scheduler.arrays import Bools
from freshet.scheduler.policies.greedy_index import SearchQuality
from freshet.storage import maintenance
from freshet.storage.database import Database, open_store
from freshet.storage.entries import Outlook
from freshet.storage.errors import StoreError
from freshet.storage.extensions import recorders
from freshet.storage.queries import columns
from freshet.storage.records import Estimate, StoredSeed
from freshet.storage.tables import frontier, observations, runs, site_settings, url_patterns
from freshet.storage.tables.site_settings import VISIT, SiteSetting

# -- chosen sites ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ChosenSites:
    """The seeds that the daemon keeps fresh, and the scope of the store's other seeds."""

    seeds: list[StoredSeed]
    left_out: Scope

    def left_out_of(self, urls: Sequence[str], scope: Scope) -> Bools:
        """Return a mask (m,) of the pages that belong to other seeds only."""
        if not self.left_out.roots():
            return np.zeros(len(urls), np.bool_)
        return np.array(
            [self.left_out.contains(url) and not scope.contains(url) for url in urls], np.bool_
        )

    def beside(self, before: _ChosenSites) -> str:
        """Return the change in the number of seeds for a log line, or ""."""
        now, then = ({seed.url for seed in each.seeds} for each in (self, before))
        came, went = len(now - then), len(then - now)
        return f", {came:,} seeds added, {went:,} removed" if came or went else ""


async def chosen_sites(
    connection: aiosqlite.Connection, named: Sequence[StoredSeed], settings: Settings
) -> _ChosenSites:
    """Return the stored seeds that are ``named``; all of them if none is."""
    stored = await runs.load(connection)
    urls = {seed.url for seed in named} or {seed.url for seed in stored}
    others = [seed.root_url or seed.url for seed in stored if seed.url not in urls]
    return _ChosenSites(
        [seed for seed in stored if seed.url in urls], Scope(scope_at(settings), others)
    )


# -- reload ------------------------------------------------------------------

#: Settings that map hosts to host queues cannot change while the queues are in use.
_OF_QUEUES: Final = ("key", "groups")


def taken_over(running: Settings, wanted: Settings) -> Settings:
    """Return the running settings with the groups that a reload can change."""
    keys = {name: getattr(running.politeness, name) for name in _OF_QUEUES}
    politeness = wanted.politeness.model_copy(update=keys)
    groups = {name: it for name, it in wanted.groups().items() if it.RELOADED}
    return running.model_copy(update={**groups, "sites": wanted.sites, "politeness": politeness})


def waiting_for_a_restart(running: Settings, wanted: Settings) -> str:
    """Return the changed settings that need a restart, for a log line, or ""."""
    now, then = running.model_dump(), wanted.model_dump()
    names = [
        f"{group}.{key}"
        for group, values in then.items()
        if isinstance(values, dict)
        for key, value in values.items()
        if value != now[group][key]
    ]
    return f"; restart the daemon to apply {', '.join(names)}" if names else ""


log = logging.getLogger(__name__)

#: Share of the budget that may go unused without a log line.
_UNLOGGED: Final = 0.02


_DAY_S = 86_400.0
#: The daemon pauses this often to correct verdicts and delete old bodies.
_UPKEEP_EVERY_S = _DAY_S
_MOMENT_S = 1e-3
#: It looks this often for what was set in a browser.
_HEEDED_S = 2.0
#: It looks this often for how many pages there are, if its budget follows them.
_COUNTED_S = 10.0
#: With more observations, learning anew takes over a minute and waits for the next start.
_RELEARNT = 1_000_000
#: A default budget that has become so many times larger, or smaller, lets the ranker learn anew.
_LEARNS_ANEW = 2.5
#: From this number on, pages are valued in a thread.
_MANY = 20_000
_NOTHING_TO_KEEP = "there is nothing to keep fresh: name a SITE, or a list with --sites FILE"


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
    """Keep pages fresh until a signal or the time limit, and report what was done.

    At SIGHUP the order is ``reread``, and replaced if the new one is valid. ``fetcher`` replaces
    the network, ``clock`` the machine's. ``service`` reports the status. ``embedded`` in another
    program it leaves the signals alone, and runs until the pool is told to stop. Of a ``shard`` it
    visits the pages of that.

    Raises:
        CrawlError: there is nothing to keep fresh, or no contact for a crawl beyond loopback.
        PolicyError: the policy is not known, or an option of it.
        StoreError: the store cannot be opened, read or written.
    """
    service = service or Service()
    ranker_of(order.policy, order.budget or 1.0)
    _check(settings)
    if not order.seeds and not order.db.exists():
        raise UsageError(_NOTHING_TO_KEEP)
    async with AsyncExitStack() as stack:
        # Before the lock file shows the process, and somebody sends it a SIGHUP.
        handling = nullcontext(lambda _reload: None) if embedded else handling_reload_signals()
        at_reload_signals = stack.enter_context(handling)
        clock = clock or SteadyClock()
        network = Network(settings, clock)
        stack.push_async_callback(network.close)
        await network.require_contact([seed.url for seed in order.seeds])
        database = await open_store(order.db, owner="embedded daemon" if embedded else "daemon")
        stack.push_async_callback(database.close)
        await keep_to(database, shard, stack)
        await require_readable(database.reader, order.db)
        settings = await with_kept(settings, database.reader)
        parser = parser_of(settings, clock, network)
        stack.push_async_callback(parser.close)
        was_killed = await resumed(database, clock)
        per_day = order.budget or await default_budget.of_store(database.reader, len(order.seeds))
        run_id, has_room = await _open_run(database, settings, order, per_day, clock.now())
        chosen = await chosen_sites(database.reader, order.seeds, settings)
        await network.require_contact([s.root_url or s.url for s in chosen.seeds])
        began_at = await runs.began_at(database.reader, run_id)
        archive = await archiving(
            settings, chosen.seeds, clock, began_at=began_at, lasting=True, closed_by=stack
        )
        context = RunContext(
            settings=settings,
            database=database,
            run_id=run_id,
            clock=clock,
            fetcher=fetcher or OursOrTheirs(network.fetcher),
            queue_key=network.queue_key,
            parser=parser,
            rng=rng or Random(),
            lasting=True,
            was_killed=was_killed,
            embedded=embedded,
            index=await open_index(database, settings),
            has_room=has_room,
            is_ours=None if shard is None else shard.is_ours,
            archive=archive,
            renderer=network.renderer,
        )
        stack.push_async_callback(service.leave)
        daemon = _Daemon(
            context=context,
            order=order,
            per_day=per_day,
            chosen=chosen,
            network=network,
            service=service,
            shard=shard,
        )
        stack.push_async_callback(daemon.close)
        stack.push_async_callback(daemon.state.close)
        if reread is not None:
            at_reload_signals(partial(daemon.reload, reread))
        return await daemon.run(watch)


def _check(settings: Settings) -> None:
    """Raise CrawlError where what is needed beside the visits is missing."""
    companions.check(settings)
    require_renderer(settings)


async def _open_run(
    database: Database, settings: Settings, order: DaemonOrder, per_day: float, now: float
) -> tuple[int, HasRoom | None]:
    """Start a run, or resume one that was killed; return its id, and room.

    Raises:
        CrawlError: there is nothing to keep fresh.
    """
    last = await runs.latest(database.reader)
    said = with_stored(_in_force(settings, order, per_day), ()).model_dump_json()
    if not order.seeds and not await runs.load(database.reader):
        raise UsageError(_NOTHING_TO_KEEP)

    def begin(connection: sqlite3.Connection) -> tuple[int, HasRoom | None]:
        runs.add(connection, order.seeds, now)
        has_room = take_over_pages(connection, settings, lasting=True)
        url_patterns.reconsider(connection, copy_rule(settings), now)
        if last is not None and last.ended_at is None:
            runs.reopen(connection, last.run_id)
            runs.record_settings(connection, last.run_id, said)
            return last.run_id, has_room
        return runs.start(connection, now, said), has_room

    return await database.write(begin)


def _in_force(settings: Settings, order: DaemonOrder, per_day: float) -> Settings:
    """Return the settings with this budget and the policy of the order."""
    said = {"budget": f"{per_day:.12g}/day", "policy": order.policy}
    daemon = settings.daemon.model_copy(update=said)
    return settings.model_copy(update={"daemon": daemon})


def _learns_by(order: DaemonOrder, per_day: float) -> float:
    """Return the budget by which a ranker learns."""
    return default_budget.for_ranker(per_day) if order.budget is None else per_day


class _DaemonHooks(AgendaHooks):
    """The run around the agenda of a daemon: its pacer, its service, its pool once there is one."""

    def __init__(self, pacer: Pacer, service: Service) -> None:
        self._pacer = pacer
        self._service = service
        self._pool: FetchPool | None = None

    def attach(self, pool: FetchPool) -> None:
        """Wake this pool from now on, and ask its frontier for hosts."""
        self._pool = pool

    def wake(self) -> None:
        """Begin the pool's next turn at once."""
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
        """Save so many requests at most."""
        self._pacer.save(most)

    def allows(self, now: float) -> bool:
        """Return whether the budget allows a request."""
        return self._pacer.allows(now)


class _Daemon:
    """One invocation of the daemon."""

    def __init__(
        self,
        *,
        context: RunContext,
        order: DaemonOrder,
        per_day: float,
        chosen: _ChosenSites,
        network: Network,
        service: Service,
        shard: RunShard | None = None,
    ) -> None:
        self._shard = shard
        #: Wishes that were heeded, and when new ones are looked for.
        self._wishes, self._heeds_at = set[SiteSetting](), -inf
        self._counts_at = -inf
        self._context = context
        self._service = service
        self._order = order
        self._clock = context.clock
        self._chosen = chosen
        self._settings = context.settings
        self._network = network
        self._reread: Reread | None = None
        self._pool: FetchPool | None = None
        self._ends_at = self._kept_up_at = inf
        # A shard has its share when it is told.
        self._pacer = Pacer(per_day if shard is None else shard.least_per_day, context.clock.now())
        self._hooks = _DaemonHooks(self._pacer, service)
        #: The budget by which the ranker learns.
        self._learns_by = _learns_by(order, per_day)
        #: Requests spent and forgone at the last report.
        self._reported = 0, 0.0
        self._tally = Tally()
        self.state = DaemonState(
            context.database.reader,
            _in_force(context.settings, order, self._learns_by),
            ranker_of(order.policy, self._learns_by),
            seeds=chosen.seeds,
            choice=self,
            rng=context.rng,
            # In virtual time the result must not depend on the order in which threads end.
            many=_MANY if isinstance(context.clock, SteadyClock) else inf,
            hooks=self._hooks,
        )
        self.agenda.budget = per_day
        self._assembly = Assembly(context, self.agenda, alias_age_s=_UPKEEP_EVERY_S)
        self.companions = companions.Companions(context, network)
        self._recorder = StatusRecorder(
            self.state, self._pacer, context.clock.now(), context.database
        )
        self._reports = Reports(
            self._recorder, self._pacer, self._tally, self._default_of(order, per_day),
            context.database.reader,
        )  # fmt: skip

    @property
    def agenda(self) -> RecrawlAgenda:
        """The pages in the order of their visits."""
        return self.state.agenda

    @property
    def named(self) -> str:
        """Return the roots that are left out, as text."""
        return repr(sorted(self._chosen.left_out.roots()))

    def left_out(self, urls: Sequence[str]) -> Bools:
        """Return a mask (m,) of the pages that belong to other seeds only."""
        return self._chosen.left_out_of(urls, self._assembly.admission.scope)

    def _default_of(self, order: DaemonOrder, per_day: float) -> DefaultBudget | None:
        return DefaultBudget(self.agenda, self._pacer, per_day) if order.budget is None else None

    async def _importances(self, listed: Sequence[ListedPage]) -> Sequence[float]:
        ids = np.array([each.page_id for each in listed], np.int64)
        found = self.state.terms(
            ids, [each.url for each in listed], [each.origin for each in listed]
        )
        return [float(value) for value in found.importance]

    async def run(self, watch: Callable[[Live], Observer]) -> CrawlReport:
        """Visit pages, and do the upkeep every day."""
        seeding = Seeding(self._chosen.seeds, self._assembly.admission)
        started_at = self._clock.now()
        newest = await observations.newest(self._context.database.reader)
        self._ends_at = started_at + (self._order.time_limit_s or inf)
        self._clock.on_step(self._shift)
        pool = self._pool = self._pool_of(seeding, watch)
        outages = StoreOutages(pool, self._clock)
        self._assembly.endure = outages.endure
        self._assembly.listeners += [
            unreachable_hosts(),
            self._service.committed,
            self.companions.committed,
        ]
        self._service.attend(pool, self._recorder, outages, self._context.database)
        listens = [each for each in (self._service.address, *self.companions.listens) if each]
        with stopping_on_signals(pool, self._context):
            self._reports.started(self._order, len(self._chosen.seeds), listens, started_at)
            await self._assembly.ask_schemes(seeding)
            await self.state.weigh()
            async with self.companions.beside(self._assembly, pool, self._importances):
                ending = await self._visit(pool, seeding, outages)
            if not pool.stopping:
                await self.companions.finish(pool.told_to_stop)
        await self.agenda.rest()
        await self._recorder.stop()
        last = await self._recorder.outlook(self._clock.now())
        changed = [each async for batch in self._recorder.estimates() for each in batch.estimates]
        await outages.endure(partial(self._close_run, last, changed))
        await outages.endure(partial(self.state.write, self._context.database))
        self._reports.ended(ending, self._clock.now())
        report = await make_report(
            self._context.database.reader,
            self._context.run_id,
            self._tally,
            ending,
            after=newest,
            seconds=self._clock.now() - started_at,
        )
        requisites = self._assembly.counted_requisites()
        return replace(report, forgone=round(self._pacer.forgone, 1), requisites=requisites)

    def _pool_of(self, seeding: Seeding, watch: Callable[[Live], Observer]) -> FetchPool:
        """Return the fetch pool, and register the observers of its batches."""
        rules = PoolRules(
            connections(self._context.settings.crawl.exchanges), patience_s=inf, goes_on=True
        )
        self._assembly.listeners.append(self._tally.add)
        pool = self._assembly.pool(seeding, rules, self._pacer, begun=self.companions.begun)
        self._hooks.attach(pool)
        if self._shard is None:
            pool.chores.append(enduring(self._follow_pages))
        pool.chores.append(enduring(partial(self._recorder.chore, submit=pool.submit)))
        pool.chores.append(self._reports.chore)
        if isinstance(self._clock, SteadyClock):
            pool.chores.append(enduring(partial(self._heed, pool)))
        if self._shard is not None:
            attended = self._shard.attend(
                pool=pool, admission=self._assembly.admission,
                database=self._context.database, clock=self._clock,
                pacer=self._pacer, state=self.state, reload=self.reload,
            )  # fmt: skip
            self._assembly.listeners.append(attended)
        live = Live(pool=pool, tally=self._tally, snapshot=self._recorder.snapshot)
        self._assembly.listeners.append(watch(live))
        return pool

    async def _visit(self, pool: FetchPool, seeding: Seeding, outages: StoreOutages) -> Ending:
        """Visit pages until the end or a signal; reload and do the upkeep in between."""
        ending: Ending = "limit"
        self._kept_up_at = self._clock.now()
        while ending in {"limit", "paused"} and self._clock.now() < self._ends_at:
            while self._reread is not None:
                await self._reload(self._reread, seeding, outages)
            until = min(self._kept_up_at + _UPKEEP_EVERY_S, self._ends_at)
            limit = max(_MOMENT_S, until - self._clock.now())
            ending = await self._assembly.run(pool, seeding, time_limit_s=limit)
            if ending != "paused":
                self._service.keeps_up()
                comparing = Grouping(lambda: pool.stopping)
                await outages.endure(partial(self._upkeep, self._kept_up_at, comparing))
                self._kept_up_at = self._clock.now()
        return ending

    def _shift(self, by: float) -> None:
        self._ends_at += by
        self._heeds_at += by
        self._counts_at += by
        self._reports.shift(by)
        self._kept_up_at += by
        self.agenda.shift(by, self._clock.now())
        self._recorder.shift(by)

    async def _close_run(self, last: Outlook, changed: Sequence[Estimate]) -> None:
        run_id, now = self._context.run_id, self._clock.now()

        def close(connection: sqlite3.Connection) -> None:
            runs.append(connection, run_id, last)
            observations.write(connection, changed)
            runs.close(connection, run_id, "ended", now)

        await self._context.database.write(close)

    async def _heed(self, pool: FetchPool, now: float) -> None:
        """Take over what was set in a browser, and visit first what was wished there."""
        hosts = self._assembly.frontier
        if now < self._heeds_at or self._reread is not None or not hosts.host_count:
            return
        self._heeds_at = now + _HEEDED_S
        asyncio.get_running_loop().call_later(_HEEDED_S, pool.wake)
        said = await site_settings.load(reader := self._context.database.reader)
        new = [it.match for it in said if it.key == VISIT and it not in self._wishes]
        self._wishes = {it for it in said if it.key == VISIT}
        for due in await frontier.of_urls(reader, new):
            if hosts.knows(due.host_id):
                self.agenda.wish(due)
                hosts.wake(due.host_id)
        before, self._settings = self._settings, with_stored(self._settings, said)
        if before.sites != self._settings.sites:
            self.reload(lambda: self._order)

    async def _follow_pages(self, now: float) -> None:
        """Let the default budget follow the pages, and the ranker the budget."""
        default = self._reports.default
        if default is None or now < self._counts_at:
            return
        await self.agenda.at_rest()
        before, per_day = default.steady, default.per_day()
        self._counts_at = now + (1.0 if default.first else _COUNTED_S)
        if per_day != self._pacer.per_day:
            self._pacer.change(per_day, now)
            self.agenda.budget = per_day
        if default.steady != before:
            said = _in_force(self._settings, self._order, default.steady)
            await self._context.database.write(partial(self._note_settings, said=said))
        wanted = _learns_by(self._order, default.steady)
        if not 1 / _LEARNS_ANEW < wanted / self._learns_by < _LEARNS_ANEW:
            self._learns_by = wanted
            self.state.follow(_in_force(self._settings, self._order, wanted))
            self.agenda.budget = per_day
            await self.agenda.settle()
            await self.state.learn_anew(ranker_of(self._order.policy, wanted))

    def reload(self, reread: Reread) -> None:
        """Read the order again when the requests under way have ended."""
        # The queue begins anew.
        self._reread, self._wishes = reread, set()
        self._service.reloads()
        if self._pool is not None:
            self._pool.pause()

    async def _reload(self, reread: Reread, seeding: Seeding, outages: StoreOutages) -> None:
        """Apply the order as it is now, or go on as before."""
        self._reread = None
        try:
            order = reread()
            per_day = order.budget or limited(len(self.agenda.pages) or len(order.seeds))
            learns_by = _learns_by(order, per_day)
            ranker = ranker_of(order.policy, learns_by)
            await self._network.require_contact([seed.url for seed in order.seeds])
            now, database = self._clock.now(), self._context.database
            wanted = order.settings or self._settings
            settings = await with_kept(taken_over(self._settings, wanted), database.reader)
            self.companions.obey(settings)
            said = _in_force(settings, order, per_day)
            self._network.obey(settings)
            self._assembly.obey(settings)
            self._assembly.admission.has_room = await database.write(
                partial(self._record, order=order, said=said, now=now)
            )
        except (CrawlError, PolicyError, StoreError) as error:
            log.warning("not reloaded: %s; the daemon goes on with its old settings", error)
            self._service.reloaded(done=False)
            self._context.database.answer(f"refused: {error}")
            return
        left_for_later = waiting_for_a_restart(settings, wanted)
        before, self._settings = self._chosen, settings
        self._chosen = await chosen_sites(database.reader, order.seeds, settings)
        await self._describe_archive()
        self._learns_by = learns_by
        self.state.follow(_in_force(settings, order, learns_by))
        await self.state.weigh()
        seeding.renew(self._chosen.seeds)
        await outages.endure(partial(self._assembly.ask_schemes, seeding))
        await self.state.begin_anew(ranker)
        self._spend(order, per_day, now)
        self._service.reloaded(done=True)
        done = (
            f"reloaded: {per_day:g} requests a day by {order.policy}"
            f"{self._chosen.beside(before)}{left_for_later}"
        )
        self._reports.reloaded(done)
        self._context.database.answer(done)

    async def close(self) -> None:
        """Let what runs beside the visits end."""
        await self.companions.close()

    async def _describe_archive(self) -> None:
        """Write into the archive what is crawled from now on."""
        if self._context.archive is not None:
            began_at = await runs.began_at(self._context.database.reader, self._context.run_id)
            self._context.archive.describe(
                described(self._settings, self._chosen.seeds, began_at=began_at, lasting=True)
            )

    def _spend(self, order: DaemonOrder, per_day: float, now: float) -> None:
        """Go by the budget of an order from now on; a shard is told its own."""
        self._order, self._counts_at = order, -inf
        self.agenda.budget = per_day
        if self._shard is None:
            self._pacer.change(per_day, now)
        if self._reports.default is None or order.budget is not None:
            self._reports.default = self._default_of(order, per_day)

    def _record(
        self, connection: sqlite3.Connection, order: DaemonOrder, said: Settings, now: float
    ) -> HasRoom | None:
        runs.add(connection, order.seeds, now)
        has_room = take_over_pages(connection, said, lasting=True)
        self._note_settings(connection, said)
        return has_room

    def _note_settings(self, connection: sqlite3.Connection, said: Settings) -> None:
        runs.record_settings(
            connection, self._context.run_id, with_stored(said, ()).model_dump_json()
        )

    async def _relearn(self, moved: Sequence[int]) -> None:
        """Learn anew from corrected verdicts, unless that would take long."""
        if await columns.visits(self._context.database.reader) > _RELEARNT:
            await self.agenda.learner.inherit(moved)
            return
        await self.state.learn_anew(ranker_of(self._order.policy, self._learns_by))

    def _report_unused(self) -> None:
        """Log the requests since the last report that the budget allowed and no host could take."""
        pacer, (spent, forgone) = self._pacer, self._reported
        spent, forgone = pacer.spent - spent, pacer.forgone - forgone
        self._reported = pacer.spent, pacer.forgone
        if forgone >= max(1.0, _UNLOGGED * (spent + forgone)):
            log.warning(
                "%.0f of %.0f requests of the budget were not used: no host with due pages allows "
                "more; add sites, or lower the delay or the budget",
                forgone,
                spent + forgone,
            )

    async def _upkeep(self, since: float, comparing: Grouping) -> None:
        """Correct verdicts by the last days' visits, and delete old data."""
        context, now = self._context, self._clock.now()
        self._report_unused()
        await self.agenda.rest()
        telling = [*recorders(self._settings), self._context.index]
        corrections = await correct(context.database, context.run_id, since, now, telling)
        await context.index.keep_up(context.database, context.parser, self._settings, now)
        self.companions.committed()
        if await observations.any_since(context.database.reader, since):
            await self._relearn([each.page_id for each in corrections if each.was == "new"])
        await maintenance.prune(context.database, retention_of(context.settings.store), now)
        if not comparing.stopping():
            await catch_up(context.database, self._clock.now, batch=COMPARED, watch=comparing)
            if isinstance(self.state.policy, SearchQuality) and (known := interests()) is not None:
                await known.judge_next(context.database, now)
            await self.agenda.learner.reweigh(await self.state.weigh())
