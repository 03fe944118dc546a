"""Crawls and daemons with an archive: it holds all that the store knows, whatever happens."""

import asyncio
import errno
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

import pytest

from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.lab.synthetic_web.web import showcase
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.crawl import crawl
from scripts.synthetic_server import plain, serve
from tests.crawler.archive.exchanges import Record, check, read, whole
from tests.crawler.cli.test_crawl import LOCAL, start
from tests.integration.quick import assert_consistent, order, quick, unwatched
from tests.integration.test_daemon import Server, Stage
from tests.storage.small_store import rows

HOUR_S = 3_600.0
#: The roles whose visits are observations.
VISITS = {"page", "sitemap"}
PLAIN = (b"Accept-Encoding", b"identity")


@dataclass(frozen=True, slots=True)
class Archived:
    """The records of an archive."""

    records: list[Record]

    @classmethod
    def of(cls, folder: Path) -> "Archived":
        assert check(whole(folder)) == 0
        return cls([record for path in whole(folder) for record in read(path)])

    def of_kind(self, kind: str) -> list[Record]:
        return [record for record in self.records if record.kind == kind]

    def urls(self, kind: str) -> Counter[str]:
        return Counter(r.headers["WARC-Target-URI"] for r in self.of_kind(kind))

    @property
    def facts(self) -> list[Mapping[str, str]]:
        return [record.fields for record in self.of_kind("metadata")]

    @property
    def repeats(self) -> int:
        """How many requests were plain ones after others for the same URL that were not."""
        is_plain: dict[str, bool] = {}
        count = 0
        for record in self.of_kind("request"):
            url, plain = record.headers["WARC-Target-URI"], PLAIN in record.http
            count += plain and not is_plain.get(url, True)
            is_plain[url] = plain
        return count

    def assert_closed(self) -> None:
        """Every revisit refers to a response of its URL that was written before it."""
        seen: dict[str, Record] = {}
        for record in self.records:
            if record.kind == "response":
                seen[record.headers["WARC-Record-ID"]] = record
            elif record.kind == "revisit":
                original = seen[record.headers["WARC-Refers-To"]].headers
                assert record.headers["WARC-Target-URI"] == original["WARC-Target-URI"]
                assert record.headers["WARC-Refers-To-Date"] == original["WARC-Date"]
                digests = {h["WARC-Payload-Digest"] for h in (record.headers, original)}
                assert len(digests) == 1


def one(db: Path, query: str) -> int:
    ((value,),) = rows(db, query)
    return int(value)


@pytest.mark.long
async def test_two_crawls_leave_every_exchange_in_one_archive(tmp_path: Path) -> None:
    web, db, folder = showcase(seed=7, traps=False), tmp_path / "crawl.db", tmp_path / "archive"
    settings = quick(archive__dir=str(folder), archive__max_file_bytes=1_000_000)
    async with serve(web) as server:
        for days in (5, 10):
            server.clock.advance(days * 86_400.0)
            await crawl(settings, order(db, server, list(web.sites)), watch=unwatched)
    archived = Archived.of(folder)
    archived.assert_closed()
    assert len(archived.of_kind("request")) == one(db, "SELECT sum(fetches) FROM crawl_run")
    observed = one(db, "SELECT count(*) FROM observation")
    visits = sum(facts["accept"] in VISITS for facts in archived.facts)
    assert visits == observed + archived.repeats
    outcomes = Counter(facts["outcome"] for facts in archived.facts)
    refused = one(db, "SELECT count(*) FROM observation WHERE kind = 'refused'")
    assert outcomes["refused"] == refused > 0
    unmodified = one(db, "SELECT count(*) FROM observation WHERE rung = '304'")
    assert outcomes["not_modified"] == unmodified > 0
    profiles = Counter(
        r.headers["WARC-Profile"].rpartition("/")[2] for r in archived.of_kind("revisit")
    )
    assert profiles["server-not-modified"] == unmodified
    assert profiles["identical-payload-digest"] > 0
    statuses = {r.status_line.split()[1] for r in archived.of_kind("response") if r.status_line}
    assert statuses >= {b"200", b"301", b"404"}
    said = archived.of_kind("warcinfo")[0].fields
    assert said["software"].startswith("Freshet/")
    assert server.url("news") in said["freshet-seeds"]


@pytest.mark.long
async def test_a_daemon_archives_every_request_at_its_time(tmp_path: Path) -> None:
    stage, folder = Stage(tmp_path / "crawl.db"), tmp_path / "archive"
    await stage.keep(480.0, 1.0, archive__dir=str(folder))
    archived = Archived.of(folder)
    asked = Counter(url for _, url in stage.server.asked)
    assert archived.urls("request") == asked
    archived.assert_closed()


class FullDisk:
    """The disk of an archive, full from one time to another."""

    def __init__(self, clock: VirtualClock, start_s: float, end_s: float) -> None:
        self._clock = clock
        self._from, self._until = clock.now() + start_s, clock.now() + end_s
        self._pwrite = os.pwrite

    def pwrite(self, file: int, data: memoryview, at: int) -> int:
        if self._from <= self._clock.now() < self._until:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._pwrite(file, data, at)


@pytest.mark.long
async def test_a_daemon_waits_for_the_disk_of_its_archive_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage, folder = Stage(tmp_path / "crawl.db"), tmp_path / "archive"
    disk = FullDisk(stage.clock, 6 * HOUR_S, 12 * HOUR_S)
    monkeypatch.setattr(os, "pwrite", disk.pwrite)
    start_at = stage.clock.now()
    await stage.keep(480.0, 1.0, archive__dir=str(folder))
    times = [at - start_at for at, _ in stage.server.asked]
    assert [at for at in times if 6.5 * HOUR_S < at < 12 * HOUR_S] == []
    assert max(times) > 13 * HOUR_S
    assert Archived.of(folder).urls("request") == Counter(url for _, url in stage.server.asked)
    assert stage.rows("SELECT fetches FROM crawl_run") == [(len(times),)]
    told = [
        r.getMessage()
        for r in caplog.records
        if "the disk is full" in r.getMessage() or "written again" in r.getMessage()
    ]
    assert len(told) == 2
    assert f"{folder}: the disk is full; fetching is paused" in told[0]
    assert_consistent(stage.db)


async def test_a_crawl_without_room_for_its_archive_ends_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "archive"
    disk = FullDisk(VirtualClock(0.0), 0.0, inf)
    monkeypatch.setattr(os, "pwrite", disk.pwrite)
    async with serve(plain(hosts=1, pages_per_host=3)) as server:
        with pytest.raises(Exception, match="the disk is full; free some space"):
            await crawl(
                quick(archive__dir=str(folder)), order(tmp_path / "db", server, ["h1"]),
                watch=unwatched,
            )  # fmt: skip
    assert one(tmp_path / "db", "SELECT count(*) FROM observation") == 0


@pytest.mark.long
async def test_after_a_kill_the_archive_holds_all_that_the_store_knows(tmp_path: Path) -> None:
    db, folder = tmp_path / "crawl.db", tmp_path / "archive"
    options = ("--db", str(db), "--archive", str(folder), "--verbose", *LOCAL)
    async with serve(plain(hosts=1, pages_per_host=300), latency_s={"h1": 0.005}) as server:
        process = await start(server.url("h1"), *options)
        assert process.stderr is not None
        for _ in range(40):
            await process.stderr.readline()
        process.kill()
        await process.communicate()
        (left,) = folder.glob("*.open")
        known = one(db, "SELECT count(*) FROM observation")
        there = [r.fields for r in read(left) if r.kind == "metadata"]
        assert sum(facts["accept"] in VISITS for facts in there) >= known > 0
        process = await start(server.url("h1"), *options)
        await process.communicate()
    assert process.returncode == 0
    assert list(folder.glob("*.open")) == []
    archived = Archived.of(folder)
    archived.assert_closed()
    observed = one(db, "SELECT count(DISTINCT page_id) FROM observation")
    assert len(archived.urls("response")) >= observed >= 300


async def test_two_crawls_cannot_write_one_archive(tmp_path: Path) -> None:
    settings = quick(archive__dir=str(tmp_path / "archive"))
    entered, over = asyncio.Event(), asyncio.Event()

    class Waiting(Server):
        async def fetch(self, request):  # type: ignore[no-untyped-def]
            entered.set()
            await over.wait()
            return await Server.fetch(self, request)

    stage = Stage(tmp_path / "one.db")
    stage.server = Waiting(stage.server.web, stage.clock)
    async with serve(plain(hosts=1, pages_per_host=3)) as server, asyncio.TaskGroup() as tasks:
        tasks.create_task(stage.keep(48.0, 0.1, archive__dir=str(tmp_path / "archive")))
        await entered.wait()
        with pytest.raises(CrawlError, match="another process writes this archive"):
            await crawl(settings, order(tmp_path / "two.db", server, ["h1"]), watch=unwatched)
        over.set()
