"""The composition root of a replay: archived exchanges in, a store out, as the crawl filled it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Final

from freshet.config.settings import Settings
from freshet.crawler.admission.seeding import Seeding
from freshet.crawler.clock import VirtualClock
from freshet.crawler.commands.assembly import Assembly, Surroundings, copy_rule
from freshet.crawler.commands.correcting import correct
from freshet.crawler.commands.parsers import parser_of
from freshet.crawler.commands.report import CrawlReport, make_report
from freshet.crawler.commands.retaining import retention_of
from freshet.crawler.errors import CrawlError
from freshet.crawler.network.fetch import Request
from freshet.crawler.pool import Ending
from freshet.crawler.replaying.playing import Counts, Known, Played, Player, Stage, Uncommitted
from freshet.crawler.tally import Tally
from freshet.scheduler.agenda.breadth_first import BreadthFirst
from freshet.storage import maintenance
from freshet.storage.database import Database, open_store
from freshet.storage.entries import Host
from freshet.storage.records import FetchResult, SeedLine
from freshet.storage.tables import frontier, hosts, observations, pages, runs, url_patterns
from freshet.storage.tables.runs import RunState

#: In the record of a run: when the store was made from which it is replayed (Unix seconds).
REPLAYED_FROM: Final = "replayed_from"
_DAY_S: Final = 86_400.0
#: Visits overtake one another by less: what ended so long before the last one is in the store.
_MARGIN_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class RunPast:
    """A run as archives, or a store, hold it.

    Attributes:
        began_at: Unix seconds.
        seeds: text, URL, URL to fall back to and importance of each line of its site list.
        exchanges: those that ended from a time on, in the order in which they did.
        probe: the answer to the probe that a host was sent next after a time, if one was.
        is_lasting: a daemon's run, which had no end.
        source: when the store was made that it stands in; None: it stands in archives.
    """

    began_at: float
    seeds: Sequence[SeedLine]
    exchanges: Callable[[float], AsyncIterator[Played]]
    probe: Callable[[str, float], Awaitable[FetchResult | None]]
    is_lasting: bool = False
    source: float | None = None

    def last_upkeep(self, at: float) -> float:
        """When the daemon's last day before a time was over; of a crawl, its beginning."""
        if not self.is_lasting or at <= self.began_at:
            return self.began_at
        return self.began_at + (at - self.began_at) // _DAY_S * _DAY_S


class _Nowhere:
    """The network of a replay: there is none."""

    async def fetch(self, request: Request) -> FetchResult:
        raise AssertionError(f"{request.url} was to be fetched in a replay")

    async def close(self) -> None:
        """Nothing is open."""


async def _own_lane(url: str) -> str:
    """Nobody is asked: each host is as good as alone."""
    return url


async def replay(
    settings: Settings, db: Path, pasts: Sequence[RunPast]
) -> tuple[list[CrawlReport], Counts]:
    """Fill a store from the past, run after run; the report of each, and what was no visit.

    No alerts are written: they would be sent years late.

    Raises:
        StoreError: the store cannot be opened, read or written.
    """
    silent = settings.alerts.model_copy(update={"rules": ()})
    settings = settings.model_copy(update={"alerts": silent})
    async with AsyncExitStack() as stack:
        database = await open_store(db)
        stack.push_async_callback(database.close)
        parser = parser_of(settings)
        stack.push_async_callback(parser.close)
        counts, reports = Counts(), []
        for past in await _left(database, pasts):
            clock = VirtualClock(past.began_at)
            run_id = await _open_run(database, settings, past)
            around = Surroundings(
                settings, database, run_id, clock, _Nowhere(), _own_lane, parser, Random(0),
                lasting=past.is_lasting, probe=_probes(database, past, clock),
            )  # fmt: skip
            reports.append(await _Replay(around, past, clock, counts).perform())
        return reports, counts


def _known(database: Database) -> Known:
    reader = database.reader
    return Known(
        partial(frontier.of_url, reader),
        partial(_host, database),
        partial(hosts.find, reader),
        partial(observations.count_at, reader),
    )


async def _host(database: Database, host_id: int) -> Host:
    (host,) = await hosts.load(database.reader, [host_id])
    return host


def _probes(
    database: Database, past: RunPast, clock: VirtualClock
) -> Callable[[int, str], Awaitable[FetchResult | None]]:
    async def probe(host_id: int, _url: str) -> FetchResult | None:
        host = await _host(database, host_id)
        return await past.probe(host.origin, clock.now())

    return probe


async def _left(database: Database, pasts: Sequence[RunPast]) -> Sequence[RunPast]:
    """The runs that are not in the store yet; one that is there in part comes first.

    Raises:
        CrawlError: what is in the store is not of this past.
    """
    last = await runs.latest(database.reader)
    if last is None:
        return pasts
    known = [past for past in pasts if past.began_at == last.started_at]
    if not known:
        raise CrawlError(
            f"{database.path}: holds what is not in these archives; name a new file with --db"
        )
    return [past for past in pasts if past.began_at >= last.started_at]


async def _open_run(database: Database, settings: Settings, past: RunPast) -> int:
    """Begin a run as a crawl does, or go on with one that a replay had begun."""
    last = await runs.latest(database.reader)
    async with database.transaction() as connection:
        if last is not None and last.started_at == past.began_at:
            await runs.reopen(connection, last.run_id)
            return last.run_id
        now = past.began_at
        await runs.add(connection, list(past.seeds), now)
        run_id = await runs.start(connection, now, _recorded(settings, past))
        if not past.is_lasting:
            recheck_before = now - settings.crawl.permanent_recheck_days * _DAY_S
            await pages.lift_depth(connection, settings.crawl.max_depth)
            await url_patterns.reconsider(connection, copy_rule(settings), now)
            await frontier.begin_run(connection, now, recheck_before)
        return run_id


def _recorded(settings: Settings, past: RunPast) -> str:
    """The settings as the run keeps them, and from which store it is replayed."""
    text = settings.model_dump_json()
    if past.source is None:
        return text
    return json.dumps(json.loads(text) | {REPLAYED_FROM: past.source})


class _Replay:
    """One run."""

    def __init__(
        self, around: Surroundings, past: RunPast, clock: VirtualClock, counts: Counts
    ) -> None:
        self._around = around
        self._past = past
        self._clock = clock
        self._tally = Tally()
        self._kept_up_at = past.began_at
        self._assembly = Assembly(
            around, BreadthFirst(around.database.reader),
            alias_age_s=_DAY_S if past.is_lasting else inf,
        )  # fmt: skip
        self._uncommitted = Uncommitted(self._assembly.submit)
        self._assembly.listeners += [self._tally.add, self._uncommitted.acknowledged]
        self._counts = counts

    async def perform(self) -> CrawlReport:
        """Take in all exchanges, and close the run as a crawl does."""
        began = perf_counter()
        known = await runs.load(self._around.database.reader)
        seeding = Seeding(known, self._assembly.admission)
        await self._assembly.ask_schemes(seeding)
        await self._assembly.beside_writer(lambda: self._play(seeding))
        database, run_id, now = self._around.database, self._around.run_id, self._clock.now()
        await self._keep_up(now)
        async with database.transaction() as connection:
            await runs.close(connection, run_id, RunState.ENDED, now)
        await maintenance.prune(database, retention_of(self._around.settings.store), now)
        return await make_report(
            database.reader, run_id, self._tally, Ending.NOTHING_DUE,
            seconds=perf_counter() - began, resumed=False,
        )  # fmt: skip

    async def _play(self, seeding: Seeding) -> None:
        assembly = self._assembly
        await self._uncommitted.submit(seeding.decided(self._past.began_at))
        await self._uncommitted.settled()
        stage = Stage(
            assembly.visiting(seeding), assembly.frontier, assembly.book, assembly.admission,
            _known(self._around.database), self._clock,
        )  # fmt: skip
        done_at = await observations.last_at(self._around.database.reader, self._around.run_id)
        player = Player(stage, self._uncommitted, self._counts, done_at)
        self._kept_up_at = self._past.last_upkeep(done_at)
        async for played in self._past.exchanges(done_at - _MARGIN_S):
            while self._past.is_lasting and played.result.ended_at >= self._kept_up_at + _DAY_S:
                await self._uncommitted.settled()
                await self._keep_up(self._kept_up_at + _DAY_S)
            await player.take(played)
        await player.finish()

    async def _keep_up(self, now: float) -> None:
        """Let what a run, or a daemon's day, showed count, as it does at its end."""
        around = self._around
        found = await correct(around.database, around.run_id, self._kept_up_at, now)
        for correction in found:
            self._tally.correct(correction.was, correction.kind)
        self._kept_up_at = now
