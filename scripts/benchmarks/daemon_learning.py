"""What very many pages cost a daemon: its start, its memory, a visit, and a valuation of them all.

A store with so many pages, 500 a host, each visited ten times, is opened by a daemon as it is: for
the first time, which learns from all observations, and again with what that noted. Both go on until
a request is sent; then the process makes visits in virtual time, each answered at once that nothing
has changed, with as many requests a day as there are pages (or as ``--budget`` says). What is told:
the CPU of the whole process until the first request and the memory it has had and has by then, the
CPU of a visit (choosing it, recording and learning it, valuing all pages every so often, the hourly
notes), the memory after these, how long the largest snapshot took, and the longest of some forty
commits a second meanwhile; the same of a store of 10,000 pages in the same run; then CPU and delay
of one valuation in a thread.

The pages of a site change at Poisson times; at every third site all change together now and then.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

import numpy as np

from freshet.config.loading import load
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.crawl import Live
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.crawler.run.state import DaemonState
from freshet.crawler.run.wiring import Observer
from freshet.scheduler.arrays import Bools
from freshet.scheduler.queue.rankers import ranker_of
from freshet.scheduler.queue.snapshots import ExtraArrays, Snapshots
from freshet.storage.database import Database, open_store
from freshet.storage.records import Acknowledged, FetchResult
from scripts.benchmarks import command

_OF_A_HOST = 500
_FEW = 10_000
_LOOKS = 10
_EVERY_DAYS = 5
_BEGIN = 1_800_000_000.0
_DAY_S = 86_400.0
_END = _BEGIN + (_LOOKS * _EVERY_DAYS + 1) * _DAY_S
_TICK_S = 0.002
_COMMIT_EVERY_S = 0.02
_ROUNDS = 5
_WARM_UP = 2_000
_ROOT = Path(__file__).parents[2]
#: As the command ``freshet`` sets it.
_HEAP = {
    "MALLOC_TRIM_THRESHOLD_": "1048576", "MALLOC_MMAP_THRESHOLD_": "1048576",
    "MALLOC_ARENA_MAX": "2",
}  # fmt: skip
_SETTINGS = {
    "crawl.scope": "host", "crawl.contact": "https://bench.example/", "change.probe": False,
    "politeness.delay_s": 0.0, "politeness.slow_factor": 0.0,
}  # fmt: skip


def add_options(parser: ArgumentParser) -> None:
    """Add what :func:`measured` is told."""
    parser.add_argument(
        "--learning",
        type=int,
        metavar="PAGES",
        help="instead, what so many pages cost: start, memory, visits, valuing (1000000)",
    )
    parser.add_argument("--visits", type=int, default=20_000, help="with --learning: so many")
    parser.add_argument(
        "--budget", type=float, metavar="A_DAY", help="with --learning; default: one a page"
    )
    parser.add_argument(
        "--store", type=Path, metavar="FILE", help="with --learning: keep the filled store there"
    )


def measured(
    pages: int,
    policy: str,
    directory: Path,
    *,
    visits: int,
    budget: float | None,
    kept: Path | None,
) -> dict[str, object]:
    """The figures, in JSON values; the store is ``kept`` there, or used if it is there."""
    found = _process(pages, policy, directory, visits=visits, budget=budget, kept=kept)
    if pages > _FEW:
        few = _process(_FEW, policy, directory, visits=visits, budget=None, kept=None)["start"]
        found["start_of_few"] = few
        found["visit_times_that_of_few"] = round(
            found["start"]["us_a_visit"] / few["us_a_visit"], 2
        )
    return found | asyncio.run(_valued(directory / f"{pages}.db", policy, budget or pages))


def _process(
    pages: int,
    policy: str,
    directory: Path,
    *,
    visits: int,
    budget: float | None,
    kept: Path | None,
) -> dict[str, Any]:
    path = directory / f"{pages}.db"
    if kept is not None and kept.exists():
        shutil.copyfile(kept, path)
    else:
        _fill(path, pages)
        if kept is not None:
            shutil.copyfile(path, kept)
    given = [str(path), policy, str(budget or pages), str(visits)]
    found: dict[str, Any] = {
        "pages": pages, "hosts": -(-pages // _OF_A_HOST), "observations": pages * _LOOKS,
        "policy": policy, "budget": budget or pages, "store_mb": _megabytes(path),
    }  # fmt: skip
    for name in ("first_start", "start"):
        command.say(f"{name} of a daemon on {pages:,} pages")
        program = "from scripts.benchmarks import daemon_learning as it; it.visiting()"
        line = [sys.executable, "-c", program, *given]
        ran = subprocess.run(
            line, stdout=subprocess.PIPE, check=True, cwd=_ROOT, env=os.environ | _HEAP
        )
        found[name] = json.loads(ran.stdout)
        command.say(f"{name}: {found[name]}")
    found["store_mb_after"] = _megabytes(path)
    return found


def _megabytes(path: Path) -> float:
    return round(path.stat().st_size / 1e6, 1)


# -- the store ---------------------------------------------------------------


def _fill(path: Path, pages: int) -> None:
    async def make() -> None:
        await (await open_store(path)).close()

    asyncio.run(make())
    hosts = -(-pages // _OF_A_HOST)
    command.say(f"filling a store with {pages:,} pages of {hosts:,} hosts")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")
    made = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'observation'"
    indices = connection.execute(made).fetchall()
    with connection:
        for name, _ in indices:
            connection.execute(f"DROP INDEX {name}")
        connection.execute(
            "INSERT INTO crawl_run (id, started_at, state, settings) "
            "VALUES (1, ?, 'running', '{}')",
            (_BEGIN,),
        )
        origins = [f"https://h{n}.example" for n in range(hosts)]
        connection.executemany(
            "INSERT INTO host (id, origin, exchanges) VALUES (?, ?, 1)", enumerate(origins, 1)
        )
        connection.executemany(
            "INSERT INTO robots (host_id, standing, fetched_at, body) VALUES (?, 'allow', ?, x'')",
            ((n + 1, _END) for n in range(hosts)),
        )
        connection.executemany(
            "INSERT INTO seed (id, text, url, page_id, added_at) "
            "VALUES (:id, :url, :url, :page, :at)",
            (
                {"id": n + 1, "url": _url(n * _OF_A_HOST), "page": n * _OF_A_HOST + 1, "at": _BEGIN}
                for n in range(hosts)
            ),
        )
        connection.executemany(
            "INSERT INTO page (id, url, fetch_url, host_id, depth, found_at, found_run_id, "
            "last_kind, last_at, checked_at, status, etag, body_digest, text_digest, title) VALUES "
            "(:id, :url, :url, :host, 1, :found_at, 1, 'unchanged', :at, :at, 200, '\"v1\"', "
            ":digest, :digest, :title)",
            (
                {"id": n + 1, "url": _url(n), "host": n // _OF_A_HOST + 1, "found_at": _BEGIN,
                 "at": _at(_LOOKS - 1, n, pages), "digest": n.to_bytes(16), "title": f"Page {n}"}
                for n in range(pages)
            ),
        )  # fmt: skip
        for turn in range(_LOOKS):
            connection.executemany(
                "INSERT INTO observation (page_id, run_id, at, kind, rung, status, duration_s) "
                "VALUES (?, 1, ?, ?, ?, 200, 0.1)",
                _looks(turn, pages),
            )
        for _, sql in indices:
            connection.execute(sql)
    connection.close()


def _looks(turn: int, pages: int) -> zip[tuple[int, float, str, str | None]]:
    """Return the observations of all pages in a turn, in the order of time."""
    rng = np.random.default_rng(turn)
    rate = np.exp(np.random.default_rng(99).normal(np.log(0.02), 1.5, pages))
    host = np.arange(pages) // _OF_A_HOST
    together = (rng.random(int(host.max()) + 1) < 0.2) & (np.arange(int(host.max()) + 1) % 3 == 0)
    changed = rng.random(pages) < -np.expm1(-rate * _EVERY_DAYS)
    changed |= together[host] & (rng.random(pages) < 0.8)
    place = np.arange(pages) * 7919 % pages
    order = np.argsort(place, kind="stable")
    at = _BEGIN + (turn + place[order] / pages) * _EVERY_DAYS * _DAY_S
    kinds = ["new"] * pages if not turn else [
        "changed" if differs else "unchanged" for differs in changed[order].tolist()
    ]  # fmt: skip
    rungs = [None if kind == "new" else "blocks" if kind == "changed" else "304" for kind in kinds]
    return zip((order + 1).tolist(), at.tolist(), kinds, rungs, strict=True)


def _url(page: int) -> str:
    return f"https://h{page // _OF_A_HOST}.example/{page % 7}/p{page}.html"


def _at(turn: int, page: int, pages: int) -> float:
    """All pages are visited in turn, hosts alternating, every five days."""
    return _BEGIN + (turn + (page * 7919 % pages) / pages) * _EVERY_DAYS * _DAY_S


# -- a daemon ----------------------------------------------------------------


class _Unchanged:
    """A web without changes, which measures the daemon that asks it."""

    def __init__(self, clock: VirtualClock, visits: int) -> None:
        self._clock, self._left = clock, visits
        self._began_at = clock.now()
        self.live: Live | None = None
        self.told: dict[str, object] = {}
        self._visits = 0
        self._from = (0.0, 0)

    async def fetch(self, request: Request) -> FetchResult:
        now = self._clock.now()
        if not self.told:
            self.told = {"cpu_s": round(process_time(), 2), "peak_mb": _peak(), "mb": _resident()}
            command.say(f"  first request: {self.told}")
        self._visits += 1
        if self._visits == _WARM_UP:
            self._from = process_time(), self._visits
        if self._visits == _WARM_UP + self._left and self.live is not None:
            spent = process_time() - self._from[0]
            self.told |= {
                "visits": self._left, "us_a_visit": round(1e6 * spent / self._left, 1),
                "virtual_h": round((now - self._began_at) / 3_600, 2),
                "mb_after": _resident(), "peak_mb_after": _peak(),
            }  # fmt: skip
            self.live.pool.stop()
        if request.url.endswith("/robots.txt"):
            return FetchResult(request.url, "gone", now, 0.1, 404, "http_404")
        headers = ((b"ETag", b'"v1"'), (b"Content-Type", b"text/html"))
        return FetchResult(request.url, "not_modified", now, 0.1, 304, headers=headers)

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def visiting() -> None:
    """Run a daemon in this process and print its figures, for :func:`measured`."""
    db, policy, budget, visits = sys.argv[1:]
    with closing(sqlite3.connect(db)) as connection:
        newest = "SELECT at FROM observation ORDER BY id DESC LIMIT 1"
        (last,) = connection.execute(newest).fetchone()
    clock = VirtualClock(max(_END, last + _DAY_S / 24))
    web = _Unchanged(clock, int(visits))

    def watch(live: Live) -> Observer:
        web.live = live
        return _ignore

    order = DaemonOrder(Path(db), [], float(budget), policy)
    settings = load(None, _SETTINGS)[0]
    snapshot: dict[str, float] = {}
    written = Snapshots.write

    async def timed(self: Snapshots, database: Database, others: Callable[[], ExtraArrays]) -> None:
        began, waited = perf_counter(), 0.0
        writing = asyncio.create_task(written(self, database, others))
        while not writing.done():
            await asyncio.wait([writing], timeout=_COMMIT_EVERY_S)
            asked = perf_counter()
            await database.write(lambda db: db.execute("UPDATE crawl_run SET fetches = fetches"))
            waited = max(waited, perf_counter() - asked)
        await writing
        for name, taken in (("commit_waits_s", waited), ("snapshot_s", perf_counter() - began)):
            snapshot[name] = round(max(taken, snapshot.get(name, 0.0)), 2)

    with patch.object(Snapshots, "write", timed):
        asyncio.run(keep(settings, order, watch=watch, fetcher=web, clock=clock, rng=Random(1)))
    told = (
        web.told | snapshot | {"cpu_s_in_all": round(process_time(), 2), "peak_mb_in_all": _peak()}
    )
    sys.stdout.write(json.dumps(told))


def _ignore(_batch: Sequence[Acknowledged]) -> None:
    """Nothing is shown while it runs."""


def _peak() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, 1)


def _resident() -> float:
    line = Path("/proc/self/statm").read_text("ascii").split()
    return round(int(line[1]) * resource.getpagesize() / 1e6, 1)


# -- one valuation -----------------------------------------------------------


class _AllSites:
    """The choice of a daemon that leaves nothing out, so that its snapshot can be read."""

    named = "[]"

    def left_out(self, urls: Sequence[str]) -> Bools:
        return np.zeros(len(urls), np.bool_)


async def _valued(path: Path, policy: str, budget: float) -> dict[str, object]:
    database = await open_store(path)
    try:
        return await _rounds(database, policy, budget)
    finally:
        await database.close()


async def _rounds(database: Database, policy: str, budget: float) -> dict[str, object]:
    ((pages,),) = await database.reader.execute_fetchall("SELECT count(*) FROM page")
    said = {"daemon.policy": policy, "daemon.budget": f"{budget:.12g}/day"}
    state = DaemonState(
        database.reader,
        load(None, _SETTINGS | said)[0],
        ranker_of(policy, budget),
        choice=_AllSites(),
        many=20_000,
    )
    agenda = state.agenda
    await state.weigh()
    await agenda.open()
    hosts = -(-pages // _OF_A_HOST)
    rounds = [
        await _round(state, hosts, _END + 2 * _DAY_S + 61.0 * turn) for turn in range(_ROUNDS)
    ]
    await agenda.rest()
    return {
        "replan_cpu_s": round(max(spent for spent, _ in rounds[1:]), 3),
        "goal_replan_cpu_s": 2.0,
        "late_ms": round(1e3 * max(late for _, late in rounds[1:]), 1),
        "goal_late_ms": 50.0,
    }


async def _round(state: DaemonState, hosts: int, now: float) -> tuple[float, float]:
    """One replanning while a fetch would like to begin every two milliseconds."""
    agenda = state.agenda
    late, ended = 0.0, asyncio.Event()

    async def fetch() -> None:
        nonlocal late
        while not ended.is_set():
            due = perf_counter() + _TICK_S
            await asyncio.sleep(_TICK_S)
            late = max(late, perf_counter() - due)

    fetching = asyncio.create_task(fetch())
    await asyncio.sleep(5 * _TICK_S)
    cpu = process_time()
    await agenda.replenish(now)
    if len(agenda.pages) >= 20_000:
        await agenda.at_rest()
        await agenda.replenish(now)
    spent = process_time() - cpu
    ended.set()
    await fetching
    # What was brought in is asked for, so that the next round has as much to bring.
    ready = frozenset(range(1, hosts + 1))
    while agenda.next(ready, now) is not None:
        pass
    return spent, late
