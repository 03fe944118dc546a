"""The composition root of the daemon: pages kept fresh under a budget, for ever."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from random import Random

import numpy as np

from config.settings import Settings
from crawler.admission.seeding import Seeding
from crawler.admission.sites import Seed
from crawler.clock import Clock, SteadyClock
from crawler.commands.assembly import Assembly, Observer, Surroundings, copy_rule
from crawler.commands.correcting import correct
from crawler.commands.crawling import Live
from crawler.commands.formats import require_readable
from crawler.commands.grouping import Watch
from crawler.commands.networking import Network
from crawler.commands.noting import Noting
from crawler.commands.parsers import parser_of
from crawler.commands.report import CrawlReport, make_report
from crawler.commands.sources.areas import Areas
from crawler.commands.sources.importance import importances
from crawler.commands.sources.page_rules import terms
from crawler.errors import CrawlError
from crawler.network.fetch import Fetcher
from crawler.pacing import Pacer
from crawler.pool import Ending, FetchPool, PoolRules
from crawler.tally import Tally
from scheduler import policy
from scheduler.policies.greedy_index import GreedyIndex
from scheduler.policy import IndexPolicy, PolicyError, RatePolicy
from scheduler.recrawl.agenda import RecrawlAgenda
from scheduler.recrawl.by_clock import ByClock
from scheduler.recrawl.by_index import ByIndex
from scheduler.recrawl.by_rate import ByRate
from scheduler.recrawl.guarded import Guarded
from scheduler.recrawl.refresher import Refresher
from scheduler.recrawl.terms import Terms
from storage import bodies, copies, outlooks, pages, runs, seeds
from storage.database import Database, open_store
from storage.records import StoredSeed
from storage.runs import RunState

log = logging.getLogger(__name__)

_DAY_S = 86_400.0
#: After so long the daemon pauses for a moment: verdicts are corrected, old bodies thrown away.
_UPKEEP_EVERY_S = _DAY_S
_NOTHING_TO_KEEP = "there is nothing to keep fresh: name a SITE, or a list with --sites FILE"


@dataclass(frozen=True, slots=True)
class DaemonOrder:
    """What to keep fresh, and how. ``budget`` is in requests a day, ``time_limit_s`` 0: none."""

    db: Path
    seeds: Sequence[Seed]
    budget: float
    policy: str = "greedy_index"
    time_limit_s: float = 0.0


#: Reads the order again; raises CrawlError where it cannot be followed.
Reread = Callable[[], DaemonOrder]


async def keep(
    settings: Settings,
    order: DaemonOrder,
    *,
    watch: Callable[[Live], Observer],
    reread: Reread | None = None,
    fetcher: Fetcher | None = None,
    clock: Clock | None = None,
    rng: Random | None = None,
) -> CrawlReport:
    """Keep pages fresh until a signal or the time limit, and report what was done.

    At SIGHUP the order is ``reread``, and followed from then on if all of it can be. ``fetcher``
    replaces the network, ``clock`` the machine's.

    Raises:
        CrawlError: there is nothing to keep fresh, no contact for a crawl beyond loopback, or
            the policy is none that a daemon can follow.
        StoreError: the store cannot be opened, read or written.
    """
    refresher = refresher_of(order.policy)
    if not order.seeds and not order.db.exists():
        raise CrawlError(_NOTHING_TO_KEEP)
    async with AsyncExitStack() as stack:
        clock = clock or SteadyClock()
        network = Network(settings, clock)
        stack.push_async_callback(network.close)
        network.require_contact([seed.url for seed in order.seeds])
        database = await open_store(order.db, owner="daemon")
        stack.push_async_callback(database.close)
        await require_readable(database.reader, order.db)
        parser = parser_of(settings)
        stack.push_async_callback(parser.close)
        run_id = await _open_run(database, settings, order, clock.now())
        stored = await seeds.load(database.reader)
        network.require_contact([s.root_url or s.url for s in stored])
        around = Surroundings(
            settings, database, run_id, clock, fetcher or network.fetcher, network.lane_key, parser,
            rng or Random(),
        )  # fmt: skip
        daemon = _Daemon(around, order, refresher, stored, network.require_contact)
        with _told_to_reload(daemon, reread):
            return await daemon.run(watch)


def refresher_of(specification: str) -> Refresher:
    """What values pages by the policy of this name.

    Raises:
        CrawlError: there is none of this name, or it is of a kind that a daemon cannot follow.
    """
    try:
        chosen = policy.load(specification)
    except PolicyError as error:
        raise CrawlError(str(error)) from error
    if isinstance(chosen, GreedyIndex):
        return Guarded(ByClock(), specification)
    if isinstance(chosen, IndexPolicy):
        return Guarded(ByIndex(chosen), specification)
    if isinstance(chosen, RatePolicy):
        return Guarded(ByRate(chosen), specification)
    raise CrawlError(
        f"policy {specification}: sets intervals and knows no budget; a daemon follows policies "
        "of indices and of rates"
    )


@contextmanager
def _told_to_reload(daemon: _Daemon, reread: Reread | None) -> Iterator[None]:
    """SIGHUP tells the daemon to read its order again."""
    if reread is None:
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, daemon.reload, reread)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


def given(named: Sequence[Seed]) -> list[tuple[str, str, str | None, float]]:
    """Seeds as the store takes them."""
    return [(s.text, s.url, s.fallback_url, s.importance) for s in named]


async def _open_run(database: Database, settings: Settings, order: DaemonOrder, now: float) -> int:
    """Start a run, or go on with one that was killed."""
    last = await runs.latest(database.reader)
    if not order.seeds and not await seeds.load(database.reader):
        raise CrawlError(_NOTHING_TO_KEEP)
    async with database.transaction() as connection:
        await seeds.add(connection, given(order.seeds), now)
        await pages.lift_depth(connection, settings.crawl.max_depth)
        await copies.reconsider(connection, copy_rule(settings), now)
        if last is not None and last.ended_at is None:
            await runs.reopen(connection, last.run_id)
            await runs.record_settings(connection, last.run_id, _recorded(settings, order))
            return last.run_id
        return await runs.start(connection, now, _recorded(settings, order))


def _recorded(settings: Settings, order: DaemonOrder) -> str:
    """The settings as the run keeps them, with what is in force of the order."""
    said = {"budget": f"{order.budget:g}/day", "policy": order.policy}
    daemon = settings.daemon.model_copy(update=said)
    return settings.model_copy(update={"daemon": daemon}).model_dump_json()


class _Daemon:
    """One invocation of the daemon."""

    def __init__(
        self,
        around: Surroundings,
        order: DaemonOrder,
        refresher: Refresher,
        stored: Sequence[StoredSeed],
        require_contact: Callable[[Sequence[str]], None],
    ) -> None:
        self._around = around
        self._order = order
        self._clock = around.clock
        self._stored = stored
        self._areas = Areas()
        self._require_contact = require_contact
        self._reread: Reread | None = None
        self._pool: FetchPool | None = None
        self._pacer = Pacer(order.budget, around.clock.now())
        self._tally = Tally()
        self.agenda = RecrawlAgenda(
            around.database.reader, refresher, self._terms, around.rng,
            audit_share=around.settings.daemon.audit_share,
        )  # fmt: skip
        self._assembly = Assembly(around, self.agenda)
        refresher.replan(order.budget, around.clock.now() / _DAY_S)
        self._noting = Noting(
            around.database.reader, self.agenda, self._pacer, around.settings.politeness,
            around.clock.now(),
        )  # fmt: skip
        self._noting.follow(order.policy, refresher, order.budget)

    def _terms(self, urls: Sequence[str], origins: Sequence[str]) -> Terms:
        known = {origin: code for code, origin in enumerate(dict.fromkeys(origins))}
        host = np.array([known[origin] for origin in origins], np.intp)
        importance = importances(urls, host, list(known), self._stored)
        return terms(urls, self._areas.codes(urls), importance, self._around.settings.daemon.rules)

    async def run(self, watch: Callable[[Live], Observer]) -> CrawlReport:
        """Visit pages, with a moment of upkeep every day."""
        seeding = Seeding(self._stored, self._assembly.admission)
        self._assembly.listeners.append(self._tally.add)
        started_at = self._clock.now()
        ends_at = started_at + (self._order.time_limit_s or inf)
        rules = PoolRules(self._around.settings.crawl.exchanges, patience_s=inf)
        pool = self._pool = self._assembly.pool(seeding, rules, self._pacer)
        pool.chore = partial(self._noting.chore, submit=pool.submit)
        live = Live(
            pool, self._assembly.frontier, self._tally, self._clock, False, Watch(),
            self._noting.glimpse,
        )  # fmt: skip
        self._assembly.listeners.append(watch(live))
        await self._assembly.ask_schemes(seeding)
        ending = Ending.LIMIT
        while ending in {Ending.LIMIT, Ending.PAUSED} and self._clock.now() < ends_at:
            if self._reread is not None:
                await self._reload(self._reread, seeding)
            since = self._clock.now()
            pool.rules = replace(rules, time_limit_s=min(_UPKEEP_EVERY_S, ends_at - since))
            ending = await self._assembly.run(pool, seeding)
            if ending is not Ending.PAUSED:
                await self._upkeep(since)
        await self._noting.stop()
        last = await self._noting.outlook(self._clock.now())
        async with self._around.database.transaction() as connection:
            await outlooks.append(connection, self._around.run_id, [last])
            await runs.close(connection, self._around.run_id, RunState.ENDED, self._clock.now())
        return await make_report(
            self._around.database.reader, self._around.run_id, self._tally, ending,
            seconds=self._clock.now() - started_at, resumed=False,
        )  # fmt: skip

    def reload(self, reread: Reread) -> None:
        """Read the order again as soon as the exchanges under way have ended."""
        self._reread = reread
        if self._pool is not None:
            self._pool.pause()

    async def _reload(self, reread: Reread, seeding: Seeding) -> None:
        """Follow the order as it is now, or go on as before."""
        self._reread = None
        try:
            order = reread()
            refresher = refresher_of(order.policy)
            self._require_contact([seed.url for seed in order.seeds])
        except CrawlError as error:
            log.warning("not reloaded: %s; the daemon goes on as before", error)
            return
        now, database = self._clock.now(), self._around.database
        async with database.transaction() as connection:
            await seeds.add(connection, given(order.seeds), now)
            recorded = _recorded(self._around.settings, order)
            await runs.record_settings(connection, self._around.run_id, recorded)
        self._stored = await seeds.load(database.reader)
        seeding.renew(self._stored)
        await self._assembly.ask_schemes(seeding)
        self._pacer.change(order.budget, now)
        refresher.replan(order.budget, now / _DAY_S)
        self.agenda.forget(refresher)
        self._noting.follow(order.policy, refresher, order.budget)
        self._order = order
        log.warning("reloaded: %g requests a day by %s", order.budget, order.policy)

    async def _upkeep(self, since: float) -> None:
        """Let what the last days showed count, and throw away what is not to be kept."""
        around, now = self._around, self._clock.now()
        await correct(around.database, around.run_id, since, now)
        store = around.settings.store
        async with around.database.transaction() as connection:
            await bodies.prune(
                connection,
                per_page=store.bodies_per_page,
                older_than=now - store.body_age_days * _DAY_S,
            )
