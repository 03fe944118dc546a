"""The composition root of the daemon: pages kept fresh under a budget, for ever."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from random import Random
from typing import Final

import aiosqlite
import numpy as np

from freshet.config.settings import Settings
from freshet.crawler.admission.admit import Scope, ScopeKind, Seeding
from freshet.crawler.admission.site_lists import Seed
from freshet.crawler.alerts.rules import channels, matching
from freshet.crawler.clock import Clock, SteadyClock
from freshet.crawler.fetch.client import Fetcher
from freshet.crawler.network import Network, parser_of
from freshet.crawler.pacing import Pacer
from freshet.crawler.pool import Ending, FetchPool, PoolRules
from freshet.crawler.run.archive import ArchivedRun, archiving
from freshet.crawler.run.crawl import COMPARED, Live
from freshet.crawler.run.notes import Noting
from freshet.crawler.run.orders import (
    NOTHING_TO_KEEP,
    CrawlReport,
    DaemonOrder,
    Reread,
    given,
    in_force,
    make_report,
    open_run,
    require_readable,
)
from freshet.crawler.run.outages import Absences, Outages, heeding_hang_ups
from freshet.crawler.run.push import receiving, sender
from freshet.crawler.run.service import Parts, Service
from freshet.crawler.run.state import DaemonState
from freshet.crawler.run.upkeep import Watch, catch_up, correct, retention_of
from freshet.crawler.run.wiring import (
    Assembly,
    Observer,
    Surroundings,
    politeness_rules,
    stopping_on_signals,
)
from freshet.crawler.tally import CrawlError, Tally
from freshet.crawler.terminal import moment, span
from freshet.scheduler.agenda.ranker import Ranker
from freshet.scheduler.agenda.rankers import ranker_of
from freshet.scheduler.agenda.site_clock_ranker import prepare
from freshet.scheduler.arrays import Bools
from freshet.scheduler.policy import PolicyError
from freshet.storage import maintenance
from freshet.storage.database import Database, StoreError, open_store
from freshet.storage.entries import Outlook
from freshet.storage.queries import columns
from freshet.storage.records import Estimate, StoredSeed
from freshet.storage.tables import estimates, hosts, observations, runs
from freshet.storage.tables.alerts import PendingAlert
from freshet.storage.tables.runs import RunState
from freshet.storage.words import Kind

# -- chosen sites ------------------------------------------------------------
#
# Which of a store's seeds a daemon keeps fresh: those that it is given, or all.


@dataclass(frozen=True, slots=True)
class ChosenSites:
    """The seeds that are kept, and the scope of the others of the store."""

    seeds: list[StoredSeed]
    left_out: Scope

    def left_out_of(self, urls: Sequence[str], scope: Scope) -> Bools:
        """(m,), whether pages belong to a seed that is not kept, and to none in ``scope``."""
        if not self.left_out.roots():
            return np.zeros(len(urls), np.bool_)
        return np.array(
            [self.left_out.contains(url) and not scope.contains(url) for url in urls], np.bool_
        )

    def beside(self, before: ChosenSites) -> str:
        """How many seeds came and went, as part of a sentence; "" if they are the same."""
        now, then = ({seed.url for seed in each.seeds} for each in (self, before))
        came, went = len(now - then), len(then - now)
        return f", {came:,} seeds more, {went:,} left out" if came or went else ""


async def chosen_sites(
    connection: aiosqlite.Connection, named: Sequence[Seed], scope: str
) -> ChosenSites:
    """The stored seeds that are ``named``; all of them if none is."""
    stored = await runs.load(connection)
    urls = {seed.url for seed in named} or {seed.url for seed in stored}
    others = [seed.root_url or seed.url for seed in stored if seed.url not in urls]
    return ChosenSites(
        [seed for seed in stored if seed.url in urls], Scope(ScopeKind(scope), others)
    )


# -- reloading ---------------------------------------------------------------
#
# What a running daemon takes over of settings that are read again.

#: Who shares a delay decides which lanes there are: not to be changed while they are used.
_OF_LANES: Final = ("key", "groups")


def taken_over(running: Settings, asked: Settings) -> Settings:
    """The settings in force from now on.

    Of ``daemon``, ``ephemeral``, ``politeness`` and ``alerts`` as asked, of the rest as they were.
    """
    lanes = {name: getattr(running.politeness, name) for name in _OF_LANES}
    politeness = asked.politeness.model_copy(update=lanes)
    taken = {
        "daemon": asked.daemon, "ephemeral": asked.ephemeral, "politeness": politeness,
        "alerts": asked.alerts,
    }  # fmt: skip
    return running.model_copy(update=taken)


def waiting_for_a_restart(running: Settings, asked: Settings) -> str:
    """What was asked for and is not in force, as the end of a sentence; "" if nothing is."""
    now, then = running.model_dump(), asked.model_dump()
    names = [
        f"{group}.{key}"
        for group, values in then.items()
        for key, value in values.items()
        if value != now[group][key]
    ]
    return f"; {', '.join(names)}: in force after a restart only" if names else ""


# -- resuming ----------------------------------------------------------------
#
# A store that was written in the future: the machine's clock was set back since.

log = logging.getLogger(__name__)

#: Clocks that differ by less are set all the time.
_TOLD_FROM_S: Final = 60.0


async def resume_time(database: Database, clock: Clock) -> None:
    """Let time go on where the store's ended, so that nobody waits for times to come again."""
    last, now = await hosts.last_exchange_at(database.reader), clock.now()
    if last is None or last <= now:
        return
    clock.go_on_from(last)
    if last - now > _TOLD_FROM_S:
        log.warning(
            "%s was last written at %s, and by this machine's clock that is %s ahead: time goes "
            "on from there, a little slower until both agree",
            database.path,
            moment(last, now),
            span(last - now),
        )


# -- usage -------------------------------------------------------------------
#
# How much of its budget a daemon could use, told where that was not all of it.

#: Of a budget so much may go unused without a word.
_UNTOLD: Final = 0.02


class Usage:
    """Remembers what was spent and forgone when it was told last."""

    def __init__(self) -> None:
        self._spent = 0
        self._forgone = 0.0

    def tell(self, pacer: Pacer) -> None:
        """Log what the budget had room for, since the last time, while nothing could be asked."""
        spent, forgone = pacer.spent - self._spent, pacer.forgone - self._forgone
        self._spent, self._forgone = pacer.spent, pacer.forgone
        if forgone >= max(1.0, _UNTOLD * (spent + forgone)):
            log.warning(
                "%.0f of %.0f requests of the budget could not be used: no host with pages to ask "
                "for could be asked more often",
                forgone,
                spent + forgone,
            )


_DAY_S = 86_400.0
#: After so long the daemon pauses for a moment: verdicts are corrected, old bodies thrown away.
_UPKEEP_EVERY_S = _DAY_S
_MOMENT_S = 1e-3
#: More observations than these are learnt from anew, in a minute, at the next start only.
_RELEARNT = 1_000_000
#: Compiled code is loaded in less.
_TOLD_AFTER_S = 3.0
#: So many pages are looked over in a thread.
_MANY = 20_000


async def keep(
    settings: Settings,
    order: DaemonOrder,
    *,
    watch: Callable[[Live], Observer],
    reread: Reread | None = None,
    fetcher: Fetcher | None = None,
    clock: Clock | None = None,
    rng: Random | None = None,
    service: Service | None = None,
) -> CrawlReport:
    """Keep pages fresh until a signal or the time limit, and report what was done.

    At SIGHUP the order is ``reread``, and followed from then on if all of it can be. ``fetcher``
    replaces the network, ``clock`` the machine's. ``service`` tells others how it stands.

    Raises:
        CrawlError: there is nothing to keep fresh, or no contact for a crawl beyond loopback.
        PolicyError: the policy is not known, or an option of it.
        StoreError: the store cannot be opened, read or written.
    """
    service = service or Service()
    ranker = ranker_of(order.policy, order.budget)
    channels(settings.alerts)
    if not order.seeds and not order.db.exists():
        raise CrawlError(NOTHING_TO_KEEP)
    async with AsyncExitStack() as stack:
        # Before others can see who writes the store, and tell it to reload.
        hang_ups = stack.enter_context(heeding_hang_ups())
        clock = clock or SteadyClock()
        network = Network(settings, clock)
        stack.push_async_callback(network.close)
        network.require_contact([seed.url for seed in order.seeds])
        await _prepared()
        database = await open_store(order.db, owner="daemon")
        stack.push_async_callback(database.close)
        await require_readable(database.reader, order.db)
        parser = parser_of(settings, clock)
        stack.push_async_callback(parser.close)
        await resume_time(database, clock)
        run_id = await open_run(database, settings, order, clock.now())
        chosen = await chosen_sites(database.reader, order.seeds, settings.crawl.scope)
        network.require_contact([s.root_url or s.url for s in chosen.seeds])
        began_at = await runs.began_at(database.reader, run_id)
        run = ArchivedRun(began_at, is_lasting=True)
        archive = await archiving(settings, chosen.seeds, run, clock, closed_by=stack)
        around = Surroundings(
            settings=settings,
            database=database,
            run_id=run_id,
            clock=clock,
            fetcher=fetcher or network.fetcher,
            lane_key=network.lane_key,
            parser=parser,
            rng=rng or Random(),
            lasting=True,
            archive=archive,
        )
        stack.push_async_callback(service.leave)
        daemon = _Daemon(around, order, ranker, chosen, network, service)
        stack.push_async_callback(daemon.outbox.close)
        hang_ups.serve(partial(daemon.reload, reread) if reread is not None else None)
        return await daemon.run(watch)


async def _prepared() -> None:
    """Compile what learning needs, or load it; the first time the user is told why that takes."""
    work = asyncio.create_task(asyncio.to_thread(prepare))
    done, _ = await asyncio.wait([work], timeout=_TOLD_AFTER_S)
    if not done:
        log.warning("compiling what the daemon learns with; after an installation it takes a while")
    await work


class _Daemon:
    """One invocation of the daemon."""

    def __init__(
        self,
        around: Surroundings,
        order: DaemonOrder,
        ranker: Ranker,
        chosen: ChosenSites,
        network: Network,
        service: Service,
    ) -> None:
        self._around = around
        self._service = service
        self._order = order
        self._clock = around.clock
        self._chosen = chosen
        self._settings = around.settings
        self._require_contact = network.require_contact
        self._reread: Reread | None = None
        self._pool: FetchPool | None = None
        self._pacer = Pacer(order.budget, around.clock.now())
        self._usage = Usage()
        self._tally = Tally()
        self.state = DaemonState(
            around.database.reader,
            in_force(around.settings, order),
            ranker,
            seeds=chosen.seeds,
            left_out=self._left_out,
            rng=around.rng,
            # Threads end when they like: in virtual time the outcome must not depend on it.
            many=_MANY if isinstance(around.clock, SteadyClock) else inf,
        )
        self.agenda = self.state.agenda
        self.agenda.timed = service.timed
        self._assembly = Assembly(around, self.agenda, alias_age_s=_UPKEEP_EVERY_S)
        self.outbox = sender(around, network.resolver, self._importances)
        self._noting = Noting(self.state, self._pacer, around.clock.now())

    def _left_out(self, urls: Sequence[str]) -> Bools:
        return self._chosen.left_out_of(urls, self._assembly.admission.scope)

    async def _importances(self, told: Sequence[PendingAlert]) -> Sequence[float]:
        ids = np.array([each.page_id for each in told], np.int64)
        found = self.state.terms(ids, [each.url for each in told], [each.origin for each in told])
        return [float(value) for value in found.importance]

    async def run(self, watch: Callable[[Live], Observer]) -> CrawlReport:
        """Visit pages, with a moment of upkeep every day."""
        seeding = Seeding(self._chosen.seeds, self._assembly.admission)
        started_at = self._clock.now()
        ends_at = started_at + (self._order.time_limit_s or inf)
        pool = self._pool = self._pool_of(seeding, watch)
        outages = Outages(pool, self._clock)
        self._assembly.patience = outages.wait
        self._assembly.listeners += [
            outages.written, Absences().told, self._service.committed, self.outbox.committed,
        ]  # fmt: skip
        parts = Parts(
            pool, self._assembly.frontier, self.agenda, self._pacer, self._noting, outages,
            self._clock, self._around.database,
        )  # fmt: skip
        self._service.attend(parts)
        await self._assembly.ask_schemes(seeding)
        await self.state.weigh()
        async with receiving(self._around, self._assembly, pool):
            ending = await self._visit(pool, seeding, outages, ends_at)
        if not pool.stopping:
            with stopping_on_signals(pool):
                await self.outbox.finish(pool.told_to_stop)
        await self.agenda.rest()
        await self._noting.stop()
        last = await self._noting.outlook(self._clock.now())
        changed = [each async for batch in self._noting.estimates() for each in batch.estimates]
        await outages.endure(partial(self._close_run, last, changed))
        report = await make_report(
            self._around.database.reader, self._around.run_id, self._tally, ending,
            seconds=self._clock.now() - started_at, resumed=False,
        )  # fmt: skip
        return replace(report, forgone=round(self._pacer.forgone, 1))

    def _pool_of(self, seeding: Seeding, watch: Callable[[Live], Observer]) -> FetchPool:
        """The pool that fetches, with all who are told of what it does."""
        rules = PoolRules(self._around.settings.crawl.exchanges, patience_s=inf, goes_on=True)
        self._assembly.listeners.append(self._tally.add)
        # No message is sent before: while it learns and looks all over, no answer could be noted.
        pool = self._assembly.pool(seeding, rules, self._pacer, begun=self.outbox.start)
        self.agenda.wake, self.agenda.away = pool.wake, self._assembly.frontier.waits
        pool.chores.append(partial(self._noting.chore, submit=pool.submit))
        live = Live(
            pool, self._assembly.frontier, self._tally, self._clock, False, Watch(),
            self._noting.glimpse,
        )  # fmt: skip
        self._assembly.listeners.append(watch(live))
        return pool

    async def _visit(
        self, pool: FetchPool, seeding: Seeding, outages: Outages, ends_at: float
    ) -> Ending:
        """Visit pages until the end, or until told to stop; reload and keep up in between."""
        ending, kept_up_at = Ending.LIMIT, self._clock.now()
        while ending in {Ending.LIMIT, Ending.PAUSED} and self._clock.now() < ends_at:
            while self._reread is not None:
                await self._reload(self._reread, seeding, outages)
            until = min(kept_up_at + _UPKEEP_EVERY_S, ends_at)
            limit = max(_MOMENT_S, until - self._clock.now())
            ending = await self._assembly.run(pool, seeding, time_limit_s=limit)
            if ending is not Ending.PAUSED:
                self._service.keeps_up()
                with stopping_on_signals(pool):
                    comparing = Watch(lambda: pool.stopping)
                    await outages.endure(partial(self._upkeep, kept_up_at, comparing))
                kept_up_at = self._clock.now()
        return ending

    async def _close_run(self, last: Outlook, changed: Sequence[Estimate]) -> None:
        run_id, now = self._around.run_id, self._clock.now()

        def close(connection: sqlite3.Connection) -> None:
            runs.append(connection, run_id, [last])
            estimates.write(connection, changed)
            runs.close(connection, run_id, RunState.ENDED, now)

        await self._around.database.write(close)

    def reload(self, reread: Reread) -> None:
        """Read the order again as soon as the exchanges under way have ended."""
        self._reread = reread
        self._service.reloads()
        if self._pool is not None:
            self._pool.pause()

    async def _reload(self, reread: Reread, seeding: Seeding, outages: Outages) -> None:
        """Follow the order as it is now, or go on as before."""
        self._reread = None
        try:
            order = reread()
            ranker = ranker_of(order.policy, order.budget)
            self._require_contact([seed.url for seed in order.seeds])
            now, database = self._clock.now(), self._around.database
            asked = order.settings or self._settings
            settings = taken_over(self._settings, asked)
            self.outbox.obey(settings.alerts, channels(settings.alerts))
            said = in_force(settings, order)
            await database.write(partial(self._record, order=order, said=said, now=now))
        except (CrawlError, PolicyError, StoreError) as error:
            log.warning("not reloaded: %s; the daemon goes on as before", error)
            self._service.reloaded(done=False)
            return
        left_for_later = waiting_for_a_restart(settings, asked)
        before, self._settings = self._chosen, settings
        self._chosen = await chosen_sites(database.reader, order.seeds, settings.crawl.scope)
        if self._around.archive is not None:
            self._around.archive.describe(settings, self._chosen.seeds)
        self._assembly.obey(politeness_rules(settings))
        self._assembly.alert_by(settings.alerts)
        self.state.follow(said)
        await self.state.weigh()
        seeding.renew(self._chosen.seeds)
        await outages.endure(partial(self._assembly.ask_schemes, seeding))
        self._pacer.change(order.budget, now)
        await self.state.begin_anew(ranker)
        self._order = order
        self._service.reloaded(done=True)
        log.warning(
            "reloaded: %g requests a day by %s%s%s",
            order.budget, order.policy, self._chosen.beside(before), left_for_later,
        )  # fmt: skip

    def _record(
        self, connection: sqlite3.Connection, order: DaemonOrder, said: Settings, now: float
    ) -> None:
        runs.add(connection, given(order.seeds), now)
        runs.record_settings(connection, self._around.run_id, said.model_dump_json())

    async def _relearn(self, moved: Sequence[int]) -> None:
        """Learn anew from verdicts that are others by now, unless that would take long."""
        if await columns.visits(self._around.database.reader) > _RELEARNT:
            await self.agenda.inherit(moved)
            return
        await self.state.learn_anew(ranker_of(self._order.policy, self._order.budget))

    async def _upkeep(self, since: float, comparing: Watch) -> None:
        """Let what the last days showed count, and throw away what is not to be kept."""
        around, now = self._around, self._clock.now()
        self._usage.tell(self._pacer)
        await self.agenda.rest()
        rules = matching(self._settings.alerts)
        corrections = await correct(around.database, around.run_id, since, now, rules)
        self.outbox.committed()
        if await observations.any_since(around.database.reader, since):
            await self._relearn([each.page_id for each in corrections if each.was is Kind.NEW])
        await maintenance.prune(around.database, retention_of(around.settings.store), now)
        if not comparing.stopping():
            await catch_up(around.database, self._clock.now, batch=COMPARED, watch=comparing)
            await self.agenda.reweigh(await self.state.weigh())
