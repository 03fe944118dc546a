"""The parts that visit pages, wired: what a crawl and a daemon have in common."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from random import Random
from typing import Protocol, TypeVar

from freshet.config.settings import Alerts, Settings
from freshet.crawler.admission.admit import (
    Admission,
    AdmissionRules,
    Redirection,
    Scope,
    ScopeKind,
    Seeding,
)
from freshet.crawler.admission.copies import Copies
from freshet.crawler.admission.traps import TrapLimits
from freshet.crawler.alerts.rules import matching
from freshet.crawler.clock import Clock
from freshet.crawler.compare.ladder import Detector, Recall
from freshet.crawler.compare.not_content.check import Vetting, WallRecall
from freshet.crawler.fetch.client import Fetcher
from freshet.crawler.frontier import Frontier
from freshet.crawler.pacing import Pacer
from freshet.crawler.politeness import FailureRetries, PolitenessRules
from freshet.crawler.pool import Ending, FetchPool, PoolRules
from freshet.crawler.reduce.parser_process import Parser
from freshet.crawler.reduce.sitemaps import SitemapLimits
from freshet.crawler.reduction import Judges, Listener, Reduction, ReductionRules
from freshet.crawler.requests import Calls, Probing
from freshet.crawler.robots.cache import RobotsCache, RobotsRules
from freshet.crawler.run.archive import Archiving
from freshet.crawler.signals.headers import Hearing
from freshet.crawler.signals.listings import Complaints, Listings, SourceDiscovery
from freshet.crawler.urls import origin, robots_url
from freshet.crawler.visit import Visiting
from freshet.storage.database import Database, StoreUnavailable, sqlite_errors
from freshet.storage.records import Acknowledged, Agenda, DueUrl, Entry, FetchResult, Observation
from freshet.storage.tables import hosts, links, observations, pages, url_patterns
from freshet.storage.tables.url_patterns import CopyRule
from freshet.storage.writer import VisitTables, Writer

T = TypeVar("T")
Observer = Callable[[Sequence[Acknowledged]], None]
#: Waits for a store that is unavailable, or raises the error.
Patience = Callable[[StoreUnavailable], Awaitable[None]]


class OpenAgenda(Agenda, Protocol):
    """An agenda that is told when it may begin to read."""

    async def open(self) -> None:
        """Learn what there is; called once, before anything else."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the parts stand on; the owner opens and closes it.

    ``lane_key`` gives the politeness key of a URL's host; a ``lasting`` run has no end. What
    ``fetcher`` brings is kept in the ``archive`` where there is one; ``probe`` answers probes
    where no network does (a replay).
    """

    settings: Settings
    database: Database
    run_id: int
    clock: Clock
    fetcher: Fetcher
    lane_key: Callable[[str], Awaitable[str]]
    parser: Parser
    rng: Random
    lasting: bool = False
    archive: Archiving | None = None
    probe: Callable[[int, str], Awaitable[FetchResult | None]] | None = None


async def _unasked(_host_id: int, _url: str) -> None:
    """The answer to a probe that is not sent."""


def _unheard(_due: DueUrl, _observation: Observation) -> None:
    """Nobody is told of what is not asked for."""


def copy_rule(settings: Settings) -> CopyRule:
    """When a URL pattern gives nothing but copies."""
    return CopyRule(settings.traps.min_copy_urls, settings.traps.copy_share)


def politeness_rules(settings: Settings) -> PolitenessRules:
    """How hosts are treated."""
    return PolitenessRules(**settings.politeness.model_dump(exclude={"key", "groups"}))


class Assembly:
    """The parts of one invocation.

    What a URL leads to is taken to be so still for ``alias_age_s``, within the run.

    Attributes:
        frontier: which exchange may start now.
        admission: which URLs are crawled.
        book: what is known of robots.txt.
        calls: requests that are for no page.
        listeners: told of every batch that has committed, in this order.
        patience: what is done where the store is unavailable; None: the run ends.
    """

    def __init__(
        self, around: Surroundings, agenda: OpenAgenda, *, alias_age_s: float = inf
    ) -> None:
        self._around = around
        self._alias_age_s = alias_age_s
        self._agenda = agenda
        settings = around.settings
        self._rules = politeness_rules(settings)
        self._robots_rules = RobotsRules(**settings.robots.model_dump())
        token = settings.crawl.product.lower()
        self.book = RobotsCache(token, self._robots_rules, self._rules, around.rng)
        self.frontier = Frontier(
            agenda, self.book, self._rules, around.rng,
            robots_url_of=lambda o: robots_url(origin(o)),
        )  # fmt: skip
        self.admission = Admission(
            Scope(ScopeKind(settings.crawl.scope)),
            AdmissionRules(settings.crawl.max_depth, frozenset(settings.fetch.excluded_extensions)),
            TrapLimits(**settings.traps.model_dump(exclude={"min_copy_urls", "copy_share"})),
        )
        signals = settings.signals
        self._discovery = SourceDiscovery(
            self.admission, most=signals.max_feeds, well_known=signals.well_known and around.lasting
        )
        self._probing = Probing(self.frontier)
        self.calls = Calls(self.frontier)
        self._retrying = FailureRetries(
            self._rules, settings.crawl.attempts, around.rng, lasting=around.lasting
        )
        self._reduction = self._reduces(token)
        self.listeners: list[Observer] = []
        self.patience: Patience | None = None
        self._tables = VisitTables(around.run_id, copy_rule(settings), matching(settings.alerts))
        self._writer = Writer(
            around.database, self._tables, self._tell,
            batch=settings.store.batch, patience=self._wait_for_store,
            secure=around.archive.secure if around.archive is not None else None,
        )  # fmt: skip

    def _reduces(self, token: str) -> Reduction:
        around, settings = self._around, self._around.settings
        reader = around.database.reader
        return Reduction(
            around.parser,
            self.admission,
            Redirection(
                self.admission,
                lambda url: pages.alias_target(reader, url, around.clock.now() - self._alias_age_s),
                max_redirects=settings.crawl.max_redirects,
            ),
            self._retrying,
            self._judges(),
            self._listener(),
            ReductionRules(token, settings.store.zstd_level),
        )

    def _listener(self) -> Listener:
        limits, complaints = self._around.settings.sitemaps, Complaints()
        return Listener(
            Listings(
                self.admission,
                self.book,
                SitemapLimits(limits.max_bytes, limits.max_entries),
                complaints,
            ),
            Hearing(complaints),
            self._discovery,
        )

    def _judges(self) -> Judges:
        reader, change = self._around.database.reader, self._around.settings.change
        recall = Recall(
            partial(observations.load, reader),
            partial(observations.predecessor, reader),
            partial(observations.sample, reader),
        )
        vetting = Vetting(
            WallRecall(partial(hosts.walls, reader), partial(observations.load, reader)),
            (self._around.probe or self._probing.ask) if change.probe else _unasked,
            self._around.parser,
            self._around.rng,
        )
        return Judges(
            Detector(recall, significant_below=change.significant_below),
            vetting,
            Copies(
                self.admission.pattern, partial(url_patterns.texts, reader), self.admission.proof
            ),
        )

    def obey(self, rules: PolitenessRules) -> None:
        """Treat hosts by these rules from now on."""
        self._rules = rules
        self.frontier.obey(rules)
        self.book.obey(rules)
        self._retrying.obey(rules)

    def alert_by(self, alerts: Alerts) -> None:
        """Write alerts by these rules from now on."""
        self._tables.alert_rules = matching(alerts)

    def _tell(self, batch: Sequence[Acknowledged]) -> None:
        for listener in self.listeners:
            listener(batch)

    async def _wait_for_store(self, error: StoreUnavailable) -> None:
        if self.patience is None:
            raise error
        await self.patience(error)

    def pool(self, seeding: Seeding, rules: PoolRules, pacer: Pacer) -> FetchPool:
        """The pool that runs errands; it is told first of what has committed."""
        around = self._around
        visiting = self.visiting(seeding)
        pool = FetchPool(
            self.frontier, self._agenda, visiting, self._writer.submit, around.lane_key,
            around.clock, rules, pacer,
        )  # fmt: skip
        self.listeners.append(pool.acknowledged)
        return pool

    def visiting(self, seeding: Seeding) -> Visiting:
        """What performs errands, and takes in what came."""
        around, archive = self._around, self._around.archive
        return Visiting(
            archive.around(around.fetcher) if archive is not None else around.fetcher,
            self.frontier, self._probing, self.calls, self.book, self._reduction,
            self.admission, self._discovery, seeding, around.lane_key, around.clock,
            self._robots_rules, around.settings.sitemaps.max_bytes,
            lambda url, at: links.offsite_at(around.database.reader, url, at),
            archive.unasked if archive is not None else _unheard, around.lasting,
        )  # fmt: skip

    async def ask_schemes(self, seeding: Seeding) -> None:
        """Ask the hosts whose answer decides the scheme of some seeds.

        Their rows are written before the writer starts: it is the only one from then on.
        """
        origins = seeding.open_origins()
        if not origins:
            return
        async with self._around.database.transaction() as connection:
            ids = await hosts.ensure(connection, origins)
        for host in await hosts.load(self._around.database.reader, list(ids.values())):
            self.frontier.add_host(host, await self._around.lane_key(host.origin))
            self.frontier.ask_robots(host.host_id)

    async def run(self, pool: FetchPool, seeding: Seeding) -> Ending:
        """Visit pages under the signal handlers, with the writer beside the pool.

        Raises:
            StoreError: the store cannot be read or written.
        """
        with stopping_on_signals(pool):
            return await self.beside_writer(lambda: self._feed(pool, seeding))

    async def beside_writer(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work that submits entries; all of them are committed when this returns.

        Raises:
            StoreError: the store cannot be read or written.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._writer.run())
                done = await work()
                await self._writer.finish()
                return done
        except BaseExceptionGroup as group:
            with sqlite_errors(self._around.database.path):
                raise _first(group) from group

    async def submit(self, entry: Entry) -> None:
        """Hand an entry to the writer."""
        await self._writer.submit(entry)

    async def _feed(self, pool: FetchPool, seeding: Seeding) -> Ending:
        # What the agenda opens with may depend on the scope, which this sets.
        settled = seeding.decided(self._around.clock.now())
        await self._agenda.open()
        await pool.submit(settled)
        return await pool.run()


@contextmanager
def stopping_on_signals(pool: FetchPool) -> Iterator[None]:
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
