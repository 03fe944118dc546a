"""A daemon whose store cannot be written for a while, and exchanges that outlast a pause."""

import asyncio
import gc
import os
import re
import signal
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from pathlib import Path

import pytest
from tenacity import RetryCallState

from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run import daemon
from freshet.crawler.run.outages import StoreOutages
from freshet.storage.database import Database, open_store
from freshet.storage.errors import StoreUnavailable
from freshet.storage.records import FetchResult
from tests.integration.quick import assert_consistent
from tests.integration.test_daemon import DAY_S, Server, Stage

HOUR_S = 3_600.0
NO_LIMIT = 1 << 30


@dataclass(slots=True)
class Disk:
    """The disk of a daemon, which may be full for some time."""

    full_from: float
    full_until: float
    is_full: bool = False
    database: Database | None = None

    async def open(self, path: Path, *, owner: str) -> Database:
        self.database = await open_store(path, owner=owner)
        return self.database

    async def at(self, now: float) -> None:
        """SQLite itself says that the disk is full: no page may be added, and none is free."""
        should = self.full_from <= now < self.full_until
        if self.database is not None and should is not self.is_full:
            self.is_full = should
            await self.database.at_once(_fill if should else _empty)


def _fill(connection: sqlite3.Connection) -> None:
    ((free,),) = connection.execute("PRAGMA freelist_count")
    ((size,),) = connection.execute("PRAGMA page_size")
    connection.execute("CREATE TABLE rubbish (data BLOB)")
    connection.execute("INSERT INTO rubbish VALUES (zeroblob(?))", (free * size,))
    # At least as many pages as there are.
    connection.execute("PRAGMA max_page_count = 1").fetchall()


def _empty(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA max_page_count = {NO_LIMIT}").fetchall()
    connection.execute("DROP TABLE rubbish")


class DiskClock(VirtualClock):
    """A clock by which a disk is filled and emptied."""

    def __init__(self, at: float, disk: Disk) -> None:
        super().__init__(at)
        self._disk = disk

    async def wait(self, changed: asyncio.Event, until: float, *, idle: bool) -> bool:
        came = await super().wait(changed, until, idle=idle)
        await self._disk.at(self.now())
        return came


def stage_on(disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage(tmp_path / "crawl.db")
    stage.at(DiskClock(stage.clock.now(), disk))
    disk.full_from += stage.clock.now()
    disk.full_until += stage.clock.now()
    monkeypatch.setattr(daemon, "open_store", disk.open)
    return stage


@pytest.mark.long
async def test_a_full_disk_is_waited_for_and_costs_nothing_that_was_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk(10 * HOUR_S, 30 * HOUR_S)
    stage = stage_on(disk, tmp_path, monkeypatch)
    await stage.keep(480.0, 3.0)
    times = [at for at, _ in stage.server.asked]
    meanwhile = [at for at in times if disk.full_from + HOUR_S < at < disk.full_until]
    afterwards = [at for at in times if at > disk.full_until]
    # What had room in pages that were there already could still be written.
    assert meanwhile == []
    assert abs(len(afterwards) - 480 * 42 / 24) <= 7
    assert min(b - a for a, b in pairwise(afterwards)) > 0.99 * DAY_S / 480
    stored = stage.rows("SELECT count(*) FROM observation WHERE kind <> 'refused'")[0][0]
    pages = [url for _, url in stage.server.asked if not url.endswith("/robots.txt")]
    assert stored == len(pages) - stage.server.repeats
    assert stage.rows("SELECT fetches FROM crawl_run") == [(len(times),)]
    assert_consistent(stage.db)
    told = [
        r.getMessage()
        for r in caplog.records
        if "the disk is full" in r.getMessage() or "written again" in r.getMessage()
    ]
    assert len(told) == 2
    assert f"{stage.db}: the disk is full; fetching is paused" in told[0]
    # It begins when the room in the last pages is used up.
    assert re.search("can be written again after (19|20) h", told[1])


async def test_who_stops_a_daemon_whose_disk_is_full_gets_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = stage_on(Disk(10 * HOUR_S, inf), tmp_path, monkeypatch)
    tries: list[float] = []

    def stop(moment: float) -> None:
        tries.append(moment)
        if len(tries) == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(daemon, "StoreOutages", watched(stop))
    with pytest.raises(StoreUnavailable, match="the disk is full; free some space"):
        await stage.keep(480.0, 3.0)
    waits = [b - a for a, b in pairwise(tries)]
    assert waits[:4] == [60.0, 120.0, 240.0, 480.0]
    assert_consistent(stage.db)


def watched(told: Callable[[float], None]) -> type[StoreOutages]:
    class Watched(StoreOutages):
        def failed(self, tries: RetryCallState) -> None:
            told(self._clock.now())
            super().failed(tries)

    return Watched


class BusyClock(VirtualClock):
    """Time passes while something is under way, too, if there is something to wait until."""

    async def wait(self, changed: asyncio.Event, until: float, *, idle: bool) -> bool:
        if idle or until == inf:
            return await super().wait(changed, until, idle=idle)
        for _ in range(20):
            await asyncio.sleep(0)
        return await super().wait(changed, until, idle=True)


@dataclass(slots=True)
class Slow(Server):
    """Its 30th answer takes until the clock has stood still for a while; then comes SIGHUP."""

    given: asyncio.Event = field(default_factory=asyncio.Event)

    async def fetch(self, request: Request) -> FetchResult:
        result = await Server.fetch(self, request)
        if len(self.asked) == 30:
            os.kill(os.getpid(), signal.SIGHUP)
            asyncio.get_running_loop().call_later(0.2, self.given.set)
            await self.given.wait()
        return result


@pytest.mark.long
async def test_an_exchange_that_outlasts_a_reload_keeps_no_host_closed(stage: Stage) -> None:
    stage.at(BusyClock(stage.clock.now()))
    stage.server = Slow(stage.server.web, stage.clock)
    await stage.keep(480.0, 1.0, ["news"], lambda order: order)
    # This clock does not wait for the store either, which costs some.
    assert len(stage.server.asked) > 60


async def test_what_is_done_at_once_leaves_nothing_to_the_collector() -> None:
    class Pool:
        told_to_stop = asyncio.Event()

    async def done() -> int:
        return 1

    outages = StoreOutages(Pool(), VirtualClock(0.0))  # type: ignore[arg-type]
    gc.collect()
    gc.disable()
    try:
        assert [await outages.endure(done) for _ in range(100)] == [1] * 100
        assert gc.collect() < 100
    finally:
        gc.enable()
