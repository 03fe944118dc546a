"""Replay of archives into a store, with the result of the original crawl."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Final, Protocol

from aiosqlite import Connection as Reader

from freshet.config.settings import Settings
from freshet.crawler.admission.admit import Seeding
from freshet.crawler.archive.exchanges import ArchivedRun, IndexEntry, accounts_of
from freshet.crawler.archive.index import ArchiveIndex
from freshet.crawler.archive.inputs import ArchiveFile, inputs_of
from freshet.crawler.archive.reader import ExchangeReader, accept_of, fetch_result, is_ours
from freshet.crawler.archive.records import ArchivedExchange, Damage
from freshet.crawler.errors import CrawlError
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.archive_player import ArchivePlayer, PlayedExchange, ReplayCounts
from freshet.crawler.run.crawl import BreadthFirst
from freshet.crawler.run.network import parser_of, with_kept
from freshet.crawler.run.orders import CrawlReport, Tally, make_report
from freshet.crawler.run.pool import Supervisor
from freshet.crawler.run.rules import copy_rule, depth_at
from freshet.crawler.run.upkeep import correct, retention_of
from freshet.crawler.run.wiring import Assembly, RunContext, open_index
from freshet.crawler.urls import origin
from freshet.storage import maintenance
from freshet.storage.database import Database, open_store
from freshet.storage.entries import Host
from freshet.storage.extensions import recorders
from freshet.storage.records import Acknowledged, DueUrl, FetchResult, StoredSeed
from freshet.storage.tables import frontier, hosts, observations, pages, url_patterns
from freshet.storage.tables import runs as runs_tables

_DAY_S: Final = 86_400.0
#: An exchange that ended this long before the last stored one is stored: visits overlap by less.
_MARGIN_S: Final = 600.0
#: Limits of reading ahead: exchanges, and bytes of their bodies.
_AHEAD: Final = 48
_AHEAD_BYTES: Final = 4 << 20


class RecordedRun(Protocol):
    """The exchanges of a run."""

    def exchanges(self, after: float, /) -> AsyncIterator[PlayedExchange]:
        """Return the exchanges that ended at or after a time, in order."""

    async def probe(self, origin: str, after: float, /) -> FetchResult | None:
        """Return the answer to a host's next soft-404 probe after a time, or None."""


@dataclass(frozen=True, slots=True)
class RunPast:
    """A run in the archives.

    Attributes:
        began_at: Unix seconds.
        seeds: text, URL, fallback URL and importance of each line of its site list.
        recorded: its exchanges.
        is_lasting: whether a daemon made it.
    """

    began_at: float
    seeds: Sequence[StoredSeed]
    recorded: RecordedRun
    is_lasting: bool = False

    def last_upkeep(self, at: float) -> float:
        """Return the end of the daemon's last full day before a time, or a crawl's beginning."""
        if not self.is_lasting or at <= self.began_at:
            return self.began_at
        return self.began_at + (at - self.began_at) // _DAY_S * _DAY_S


class _Nowhere:
    """A network that refuses requests: a replay sends none."""

    async def fetch(self, request: Request) -> FetchResult:
        raise AssertionError(f"{request.url} was requested in a replay")


class _OwnQueues:
    """One queue per URL; it is never used for requests."""

    async def queue_key(self, url: str) -> str:
        """Return the URL."""
        return url


class _Store:
    """The store that a replay fills."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def find_pages(self, urls: Collection[str]) -> Sequence[DueUrl]:
        """Return the pages with these URLs."""
        return await frontier.of_urls(self._reader, urls)

    async def find_host(self, host_id: int) -> Host:
        """Return a host."""
        (host,) = await hosts.load(self._reader, [host_id])
        return host

    async def host_at(self, origin: str) -> Host | None:
        """Return the host of an origin, if it is known."""
        return await hosts.find(self._reader, origin)

    async def count_at(self, page_id: int, at: float) -> int:
        """Return the number of observations of a page at a time."""
        return await observations.count_at(self._reader, page_id, at)


@dataclass(frozen=True, slots=True)
class _Probes:
    """The recorded probes of a run."""

    store: _Store
    past: RunPast
    clock: VirtualClock

    async def ask(self, host_id: int, _url: str) -> FetchResult | None:
        """Return the recorded answer to a host's next probe."""
        host = await self.store.find_host(host_id)
        return await self.past.recorded.probe(host.origin, self.clock.now())


async def replay(
    settings: Settings, db: Path, pasts: Sequence[RunPast]
) -> tuple[list[CrawlReport], ReplayCounts]:
    """Fill a store from archived runs in order; return their reports and the other counts.

    No alerts are recorded, because they would be sent years late.
    """
    settings = settings.silent()
    async with AsyncExitStack() as stack:
        database = await open_store(db)
        stack.push_async_callback(database.close)
        settings = await with_kept(settings, database.reader)
        parser = parser_of(settings, VirtualClock(0.0))
        stack.push_async_callback(parser.close)
        counts, reports = ReplayCounts(), []
        index = await open_index(database, settings)
        for past in await _left(database, pasts):
            clock = VirtualClock(past.began_at)
            run_id = await _open_run(database, settings, past)
            around = RunContext(
                settings=settings,
                database=database,
                run_id=run_id,
                clock=clock,
                fetcher=_Nowhere(),
                queues=_OwnQueues(),
                parser=parser,
                rng=Random(0),
                lasting=past.is_lasting,
                index=index,
                probes=_Probes(_Store(database.reader), past, clock),
            )
            reports.append(await _Replay(around, past, clock, counts).perform())
        return reports, counts


async def _left(database: Database, pasts: Sequence[RunPast]) -> Sequence[RunPast]:
    """Return the runs that are not complete in the store, starting with an unfinished one."""
    last = await runs_tables.latest(database.reader)
    if last is None:
        return pasts
    if last.started_at not in {past.began_at for past in pasts}:
        raise CrawlError(f"{database.path}: has pages of other archives; name a new file with --db")
    return [past for past in pasts if past.began_at >= last.started_at]


async def _open_run(database: Database, settings: Settings, past: RunPast) -> int:
    """Start a run as a crawl does, or resume one of an earlier replay."""
    last = await runs_tables.latest(database.reader)

    def begin(connection: sqlite3.Connection) -> int:
        if last is not None and last.started_at == past.began_at:
            runs_tables.reopen(connection, last.run_id)
            return last.run_id
        now = past.began_at
        runs_tables.add(connection, list(past.seeds), now)
        run_id = runs_tables.start(connection, now, settings.model_dump_json())
        if not past.is_lasting:
            recheck_before = now - settings.crawl.permanent_recheck_days * _DAY_S
            pages.lift_depth(connection, depth_at(settings))
            url_patterns.reconsider(connection, copy_rule(settings), now)
            frontier.begin_run(connection, now, recheck_before)
        return run_id

    return await database.write(begin)


class _Replay(Supervisor):
    """The replay of one run."""

    def __init__(
        self, around: RunContext, past: RunPast, clock: VirtualClock, counts: ReplayCounts
    ) -> None:
        self._around = around
        self._past = past
        self._clock = clock
        self._tally = Tally()
        self._kept_up_at = past.began_at
        self._assembly = Assembly(
            around,
            BreadthFirst(around.database.reader),
            self,
            alias_age_s=_DAY_S if past.is_lasting else inf,
        )
        self._player: ArchivePlayer | None = None
        self._counts = counts

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """Count a batch, and notify the player."""
        self._tally.add(batch)
        if self._player is not None:
            self._player.acknowledged(batch)

    async def perform(self) -> CrawlReport:
        """Process all exchanges, and close the run as a crawl does."""
        began = perf_counter()
        newest = await observations.newest(self._around.database.reader)
        known = await runs_tables.load(self._around.database.reader)
        seeding = Seeding(known, self._assembly.admission)
        await self._assembly.ask_schemes(seeding)
        await self._assembly.beside_writer(lambda: self._play(seeding))
        database, run_id, now = self._around.database, self._around.run_id, self._clock.now()
        await self._keep_up(now)
        await database.write(partial(runs_tables.close, run_id=run_id, state="ended", now=now))
        await maintenance.prune(database, retention_of(self._around.settings.store), now)
        return await make_report(
            database.reader, run_id, self._tally, "nothing due", after=newest,
            seconds=perf_counter() - began,
        )  # fmt: skip

    async def _play(self, seeding: Seeding) -> None:
        assembly, reader = self._assembly, self._around.database.reader
        done_at = await observations.last_at(reader, self._around.run_id)
        player = self._player = ArchivePlayer(
            requester=assembly.requester(seeding),
            clock=self._clock,
            writer=assembly.writer,
            store=_Store(reader),
            counts=self._counts,
            done_at=done_at,
        )
        for note in seeding.decided(self._past.began_at):
            await player.submit(note)
        await player.settled()
        self._kept_up_at = self._past.last_upkeep(done_at)
        async for played in self._announced(player, done_at - _MARGIN_S):
            while self._past.is_lasting and played.result.ended_at >= self._kept_up_at + _DAY_S:
                await player.settled()
                await self._keep_up(self._kept_up_at + _DAY_S)
            await player.take(played)
        await player.finish()

    async def _announced(
        self, player: ArchivePlayer, after: float
    ) -> AsyncIterator[PlayedExchange]:
        """Yield the exchanges after a time, and let the player know the next ones."""
        size = 0
        async for played in self._past.recorded.exchanges(after):
            player.coming.append(played)
            size += len(played.result.body)
            while len(player.coming) > _AHEAD or (size > _AHEAD_BYTES and player.coming):
                size -= len(player.coming[0].result.body)
                yield player.coming.popleft()
        while player.coming:
            yield player.coming.popleft()

    async def _keep_up(self, now: float) -> None:
        """Do the upkeep at the end of a run, or of a daemon's day."""
        around = self._around
        await correct(
            around.database,
            around.run_id,
            self._kept_up_at,
            now,
            [*recorders(around.settings), around.index],
        )
        self._kept_up_at = now


# -- replaying archives ------------------------------------------------------
#: A probe is a host's next request, so this many exchanges are compared: of the host, and of all.
_NEXT_OF_HOST: Final = 4
_NEXT: Final = 2_000
_REPORTED_EVERY: Final = 500
#: Record types without an exchange that every archive has.
_PLAIN: Final = frozenset({"warcinfo"})
#: Number of damaged records that are listed one by one.
_LISTED: Final = 20


@dataclass(slots=True)
class Losses:
    """Parts of the archives that could not be read."""

    damages: list[str] = field(default_factory=list)
    flaws: Counter[str] = field(default_factory=Counter)
    skipped: dict[str, int] = field(default_factory=dict)

    def add(self, damage: Damage) -> None:
        """Count a damaged record, and keep the text of the first ones."""
        self.flaws[damage.flaw] += 1
        if len(self.damages) < _LISTED:
            self.damages.append(str(damage))

    def as_json(self) -> dict[str, object]:
        """Return the losses as JSON values."""
        return {
            "damages": dict(self.flaws),
            "first_damages": self.damages,
            "records_skipped": self.skipped,
        }

    def lines(self) -> list[str]:
        """Return the losses as lines for people."""
        found = [*self.damages]
        left = self.flaws.total() - len(self.damages)
        if left > 0:
            found.append(f"and {left:,} more damaged or missing records")
        skipped = {kind: count for kind, count in self.skipped.items() if kind not in _PLAIN}
        if skipped:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in skipped.items())
            found.append(f"skipped, not HTTP exchanges: {kinds}")
        return found


@dataclass(frozen=True, slots=True)
class _Recorded:
    """The exchanges of one run; only Freshet's own runs send probes."""

    archives: Archives
    begin: float
    end: float
    sends_probes: bool

    def exchanges(self, after: float) -> AsyncIterator[PlayedExchange]:
        """Return the exchanges that ended at or after a time, in order."""
        return self.archives.exchanges(max(after, self.begin), self.end)

    async def probe(self, origin: str, after: float) -> FetchResult | None:
        """Return the answer to a host's next soft-404 probe after a time, or None."""
        return await self.archives.probe(origin, after) if self.sends_probes else None


class Archives:
    """Archives in the order of time, by an index file beside the new store."""

    def __init__(
        self, paths: Sequence[Path], index: Path, settings: Settings, tell: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._tell = tell
        limits = settings.fetch.max_body_bytes, settings.sitemaps.max_bytes
        self._order = _order_of(inputs_of(paths), index, tell)
        self._reading = ExchangeReader(
            self._order, max(limits), page_bytes=settings.fetch.max_body_bytes, requests=False
        )
        self.losses = Losses(skipped=self._order.skipped())
        for damage in self._order.damages():
            self.losses.add(damage)

    def close(self) -> None:
        """Close the files."""
        self._reading.close()
        self._order.close()

    def runs(self) -> list[RunPast]:
        """Return the runs that wrote the archives; foreign archives count as one run."""
        accounts = accounts_of(self._reading.infos())
        # Building an index without entries fails.
        first = next(self._order.entries())
        ends = [each.began_at for each in accounts] + [inf]
        found = [self._run(a, end) for a, end in zip(accounts, ends[1:], strict=True)]
        if first.ended_at < ends[0]:
            others = ArchivedRun(first.started_at, is_lasting=False, seeds=())
            found.insert(0, self._run(others, ends[0], sends_probes=False))
        return found

    def _run(self, account: ArchivedRun, end: float, *, sends_probes: bool = True) -> RunPast:
        recorded = _Recorded(self, account.began_at, end, sends_probes)
        return RunPast(account.began_at, account.seeds, recorded, account.is_lasting)

    async def exchanges(self, begin: float, end: float) -> AsyncIterator[PlayedExchange]:
        """Yield the exchanges that ended between two times, in order."""
        for number, found in enumerate(self._reading.exchanges(begin)):
            if isinstance(found, Damage):
                self.losses.add(found)
                continue
            if found.ended_at >= end:
                return
            if number % _REPORTED_EVERY == 0:
                self._tell(f"Replaying {number:,} of {self._order.exchanges:,}")
            yield self._played(found)

    def _played(self, found: ArchivedExchange) -> PlayedExchange:
        result = fetch_result(found, self._settings.fetch.max_body_bytes)
        return PlayedExchange(result, accept_of(found), is_ours(found), found.facts.is_unasked)

    async def probe(self, at_origin: str, after: float) -> FetchResult | None:
        """Return the answer to a host's next probe, if the probe was its next request."""
        probe = self._order.next_probe(at_origin, after)
        if probe is None:
            return None
        nearby = islice(self._order.entries(after), _NEXT)
        of_host = islice((each for each in nearby if _is_of(each, at_origin)), _NEXT_OF_HOST)
        if probe not in of_host:
            return None
        try:
            return self._played(self._reading.exchange(probe)).result
        except (ValueError, OSError):
            # The damage is reported when the record is read in order.
            return None


def _order_of(
    inputs: Sequence[ArchiveFile], index: Path, tell: Callable[[str], None]
) -> ArchiveIndex:
    """Return the index of these archives; delete a new one if they cannot be read."""
    is_new = not index.exists()
    order = ArchiveIndex(index)
    try:
        order.build(inputs, lambda name: tell(f"Reading {name}"))
    except BaseException as error:
        order.close()
        if is_new and isinstance(error, CrawlError):
            index.unlink()
        raise
    return order


def _is_of(entry: IndexEntry, at_origin: str) -> bool:
    try:
        return str(origin(entry.url)) == at_origin
    except ValueError:
        return False
