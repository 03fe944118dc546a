"""A crawl, from settings and a site list to a report."""

import sqlite3
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import chain
from math import inf
from pathlib import Path
from random import Random

import aiosqlite

from freshet.config.settings import Settings
from freshet.crawler.admission.admit import HasRoom, Seeding
from freshet.crawler.errors import UsageError
from freshet.crawler.fetch.bounds import LISTED_URLS, connections
from freshet.crawler.fetch.client import Fetcher, OursOrTheirs
from freshet.crawler.frontier.clock import Clock, SteadyClock
from freshet.crawler.frontier.politeness import Pacer
from freshet.crawler.run.hooks import Companions, RunShard, check_companions
from freshet.crawler.run.network import (
    Network,
    fetcher_layers,
    parser_of,
    require_fetchers,
    with_kept,
)
from freshet.crawler.run.orders import CrawlReport, DaemonSnapshot, Tally, make_report
from freshet.crawler.run.pool import Ending, FetchPool, PoolRules, Supervisor
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
    open_index,
    stopping_on_signals,
)
from freshet.storage import maintenance
from freshet.storage.database import Database, open_store
from freshet.storage.entries import Host
from freshet.storage.extensions import recorders
from freshet.storage.records import Acknowledged, DueUrl, StoredSeed, Visit
from freshet.storage.tables import frontier, hosts, observations, runs, url_patterns
from freshet.storage.tables import frontier as frontier_tables
from freshet.storage.tables.runs import RunState

_WINDOW = 64
_LEAST = 2
_LOW_WATER = 16
_IN_MEMORY = 20_000
_HOSTS_PER_QUERY = 200
#: Maximum number of URLs of a sitemap (sitemaps.org).
_OF_A_SITEMAP = 50_000


class BreadthFirst:
    """A crawl queue over the stored frontier, with one queue per host.

    It implements :class:`~freshet.storage.records.Agenda`. All queues together hold ``_IN_MEMORY``
    URLs, and ``_LEAST`` more for each host. A sitemap is not read if it could make more than
    ``most_listed`` URLs of its host due.
    """

    def __init__(self, reader: aiosqlite.Connection, most_listed: float = inf) -> None:
        self._reader = reader
        self._most_listed = most_listed
        # URLs from sitemaps since the host's due URLs were last counted, by the sitemap's host.
        self._listed: Counter[int] = Counter()
        # Sitemaps that were handed out and are not yet acknowledged.
        self._reading: Counter[int] = Counter()
        self._known: set[int] = set()
        # Entries are removed when they are empty: a crawl may have 100,000s of hosts.
        self._queues: dict[int, deque[DueUrl]] = {}
        self._taken: dict[int, set[int]] = {}
        self._held = 0
        # Hosts with due URLs beyond their queue, and those of them to read next.
        self._more: set[int] = set()
        self._to_refill: dict[int, None] = {}
        # Heap of times at which to load URLs of a host that are not due yet.
        self._later: list[tuple[float, int]] = []
        # Pages settled during a read, whose snapshot may still show them as due.
        self._settled: set[int] = set()

    async def open(self) -> None:
        """Read which hosts have due URLs; call this once, before any other method."""
        self._later = [(at, host_id) for host_id, at in await frontier.wake_times(self._reader)]
        heapify(self._later)

    def next(self, ready: Collection[int], now: float) -> DueUrl | None:
        """Take the shallowest due URL of the host that has been ready longest."""
        for host_id in ready:
            while queue := self._queues.get(host_id):
                due = queue.popleft()
                self._held -= 1
                if not queue:
                    del self._queues[host_id]
                waits = due.role == "sitemap" and self._is_full(host_id)
                if waits or (len(queue) < _LOW_WATER and host_id in self._more):
                    self._to_refill[host_id] = None
                if not waits:
                    self._reading[host_id] += due.role == "sitemap"
                    return due
                self._taken[host_id].discard(due.page_id)
        return None

    def put_back(self, due: DueUrl) -> None:
        """Put an unvisited URL back in front of its host's queue."""
        self._queues.setdefault(due.host_id, deque()).appendleft(due)
        self._held += 1
        self._reading[due.host_id] -= due.role == "sitemap"

    def waiting(self, host_id: int) -> bool:
        """Return whether a due URL of this host can be taken now."""
        return host_id in self._queues

    def done(self, acknowledged: Acknowledged) -> None:
        """Remove a settled URL; note its retry, and the hosts that got new URLs."""
        if isinstance(acknowledged.entry, Visit):
            self._settle(acknowledged.entry)
            if acknowledged.entry.role == "sitemap":
                host_id = acknowledged.entry.due.host_id
                self._listed[host_id] += len(acknowledged.pages)
                self._reading[host_id] -= 1
                self._to_refill[host_id] = None
        elif acknowledged.entry.targets:
            # Another part of a sitemap, or the sitemaps of a robots.txt.
            for host_id in acknowledged.supplied:
                self._listed[host_id] += len(acknowledged.pages)
        for host_id, page_ids in acknowledged.withdrawn:
            self._withdraw(host_id, page_ids)
        for host_id in acknowledged.supplied:
            if len(self._queues.get(host_id, ())) < _LOW_WATER:
                self._to_refill[host_id] = None
            else:
                self._more.add(host_id)

    @property
    def hungry(self) -> bool:
        """Return whether :meth:`replenish` would load URLs without waiting for a due time."""
        return bool(self._to_refill)

    def wakes_at(self) -> float | None:
        """Return the next due time of a URL that waits for one, or None."""
        return self._later[0][0] if self._later else None

    def overdue_at(self) -> float:
        """Return inf: each page is fetched once."""
        return inf

    def target_of(self, host_id: int) -> int | None:
        """Return None: pages are fetched in order."""
        del host_id
        return None

    def take_probe(self, host_id: int) -> bool:
        """Return True: a crawl has no budget."""
        del host_id
        return True

    async def replenish(self, now: float) -> tuple[Sequence[Host], Sequence[int]]:
        """Refill the queues that run low."""
        while self._later and self._later[0][0] <= now:
            self._to_refill[heappop(self._later)[1]] = None
        asked = list(self._to_refill)[:_HOSTS_PER_QUERY]
        if not asked:
            return (), ()
        for host_id in asked:
            del self._to_refill[host_id]
        await self._fill(asked, now)
        new = [host_id for host_id in asked if host_id not in self._known]
        self._known.update(new)
        new_hosts = await hosts.load(self._reader, new) if new else []
        return new_hosts, [h for h in asked if h in self._queues]

    def _is_full(self, host_id: int) -> bool:
        """Return whether another sitemap of the host could bring too many URLs."""
        sitemaps = self._reading[host_id] + 1
        return self._listed[host_id] + sitemaps * _OF_A_SITEMAP > self._most_listed

    def _settle(self, visit: Visit) -> None:
        due = visit.due
        self._settled.add(due.page_id)
        taken = self._taken.get(due.host_id, set())
        taken.discard(due.page_id)
        if not taken:
            self._taken.pop(due.host_id, None)
        if visit.retry_at is not None:
            heappush(self._later, (visit.retry_at, due.host_id))

    def _withdraw(self, host_id: int, page_ids: Collection[int]) -> None:
        """Remove pages that are no longer due from a queue.

        The last one stays: the frontier counts on the host having a URL, and one needless visit is
        cheap.
        """
        queue = self._queues.get(host_id, deque())
        kept = [due for due in queue if due.page_id not in page_ids] or [*queue][:1]
        taken = self._taken.get(host_id, set())
        taken.difference_update(due.page_id for due in queue)
        taken.update(due.page_id for due in kept)
        # A read in progress may still show them as due.
        self._settled.update(page_ids)
        self._held -= len(queue) - len(kept)
        if queue:
            self._queues[host_id] = deque(kept)
        if len(kept) < _LOW_WATER and host_id in self._more:
            self._to_refill[host_id] = None

    async def _still_full(self, host_ids: list[int], now: float) -> list[int]:
        """Recount the due URLs of full hosts; return the hosts that are still full."""
        full = [host_id for host_id in host_ids if self._is_full(host_id)]
        for host_id in full:
            self._listed[host_id] = await frontier.due_count(self._reader, host_id, now)
        return [host_id for host_id in full if self._is_full(host_id)]

    async def _fill(self, host_ids: list[int], now: float) -> None:
        """Load more URLs of these hosts behind the last ones."""
        room = (_IN_MEMORY - self._held) // len(host_ids)
        size = max(_LEAST, min(_WINDOW, room))
        # The snapshot of this read lacks pages that are found or settled during it.
        self._more.difference_update(host_ids)
        self._settled.clear()
        full = await self._still_full(host_ids, now)
        # URLs in memory are still in the table.
        taken = list(chain.from_iterable(self._taken.get(host_id, ()) for host_id in host_ids))
        loaded = await frontier.load(
            self._reader, host_ids, now, size, without_pages=taken, without_sitemaps=full
        )
        by_host: dict[int, list[DueUrl]] = {host_id: [] for host_id in host_ids}
        for due in loaded:
            by_host[due.host_id].append(due)
        for host_id, rows in by_host.items():
            left_out = self._supply(host_id, rows, size)
            if left_out or len(rows) == size or host_id in full:
                self._more.add(host_id)

    def _supply(self, host_id: int, rows: list[DueUrl], size: int) -> bool:
        """Fill a queue up to ``size`` from these rows; return whether some did not fit."""
        taken = self._taken.get(host_id, set())
        fresh = [d for d in rows if d.page_id not in self._settled]
        queue = self._queues.get(host_id, deque())
        chosen = fresh[: max(0, size - len(queue))]
        if chosen:
            queue.extend(chosen)
            taken.update(due.page_id for due in chosen)
            self._queues[host_id], self._taken[host_id] = queue, taken
            self._held += len(chosen)
        return len(chosen) < len(fresh)


_DAY_S = 86_400.0
#: Pages compared in one transaction, about 0.3 s; Ctrl-C waits for its end.
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
    """The seeds and store of a crawl; ``resume`` None resumes the last run if it is unfinished."""

    db: Path
    seeds: Sequence[StoredSeed]
    resume: bool | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The running parts that the progress display reads.

    ``comparing`` is the progress of the last step. ``snapshot`` returns the status of a daemon at a
    time. ``left`` counts the due URLs by host.
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
    """Crawl until no URL is due, a limit is reached or a signal arrives; report what is committed.

    ``watch`` receives the running parts once, and returns an observer of committed batches.
    ``fetcher`` replaces the network (by an archive or a synthetic web) and must use the same
    ``clock``, by default the system clock. With ``embedded``, the signals of the host program stay
    untouched. With ``shard``, only its pages are visited, until no shard has a page left.

    Raises:
        CrawlError: there is nothing to crawl, or no contact for a crawl beyond loopback.
        StoreError: the store cannot be opened, read or written.
    """
    if not order.seeds and not order.db.exists():
        raise UsageError(_NOTHING_TO_CRAWL)
    # Check these before any request.
    check_companions(settings)
    require_fetchers(settings)
    async with AsyncExitStack() as stack:
        clock = clock or SteadyClock()
        network = Network(settings, clock)
        stack.push_async_callback(network.close)
        layers = fetcher_layers(settings, stack)
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
        await database.write(partial(runs.put_wished_first, now=clock.now()))
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
            fetcher=OursOrTheirs(fetcher or network.fetcher, clock),
            queues=network,
            parser=parser,
            rng=Random(),
            was_killed=was_killed,
            embedded=embedded,
            index=await open_index(database, settings),
            has_room=has_room,
            shard=shard,
            archive=archive,
            layers=layers,
        )
        beside = Companions(context, network)
        stack.push_async_callback(beside.close)
        return await _CrawlRun(context, shard, beside).perform(watch, resumed=is_resumed)


async def _open_run(
    database: Database, settings: Settings, order: CrawlOrder, now: float
) -> tuple[int, bool, HasRoom | None]:
    """Start or resume a run; return its id, whether it was resumed, and the page limit test."""
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


class _CrawlRun(Supervisor):
    """One invocation of a crawl."""

    def __init__(self, context: RunContext, shard: RunShard | None, beside: Companions) -> None:
        self._context = context
        self._companions = beside
        self._shard = shard
        self._settings = context.settings
        self._database = context.database
        self._clock = context.clock
        self._tally = Tally()
        self._assembly = Assembly(context, BreadthFirst(context.database.reader, LISTED_URLS), self)
        self._watch: Observer | None = None

    async def perform(self, watch: Callable[[Live], Observer], *, resumed: bool) -> CrawlReport:
        """Run to the end and report."""
        started_at = self._clock.now()
        newest = await observations.newest(self._database.reader)
        seeds = await runs.load(self._database.reader)
        seeding = Seeding(seeds, self._assembly.admission)
        chosen = self._settings.crawl
        rules = PoolRules(
            concurrent_requests=connections(chosen.concurrent_requests),
            max_pages=chosen.max_pages,
            # Failures, redirects, sitemaps and each seed's robots.txt need requests besides the
            # pages.
            max_requests=chosen.max_pages and 10 * chosen.max_pages + 100 + 2 * len(seeds),
            patience_s=chosen.patience_s,
        )
        pacer = Pacer(inf, started_at)
        pool = self._assembly.pool(seeding, rules, pacer)
        if self._shard is not None:
            self._shard.attend(
                pool=pool, admission=self._assembly.admission, database=self._database,
                clock=self._clock,
            )  # fmt: skip
        comparing = Grouping(lambda: pool.stopping)
        left = partial(frontier_tables.due_by_host, self._database.reader)
        live = Live(pool=pool, tally=self._tally, comparing=comparing, left=left)
        self._watch = watch(live)
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

    def begun(self) -> None:
        """Notify the companions of the end of the first turn."""
        self._companions.begun()

    async def turn(self) -> None:
        """Run the turn of the shard and of the companions."""
        if self._shard is not None:
            await self._shard.turn()
        await self._companions.turn(self._clock.now())
        await self._assembly.note_network()

    def may_get_more(self) -> bool:
        """Return whether another shard may still find pages."""
        return self._shard is not None and self._shard.may_get_more()

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """Count a batch, and pass it to the observers."""
        self._tally.add(batch)
        if self._shard is not None:
            self._shard.committed(batch)
        if self._watch is not None:
            self._watch(batch)
        self._companions.committed(batch)

    async def _correct(self, invoked_at: float) -> None:
        """Correct verdicts of the whole run, including earlier invocations, by its other pages."""
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
