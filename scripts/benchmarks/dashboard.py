"""What the figures of a dashboard take to read of a large store, and its pages over HTTP.

The store is ``--store`` (made there if it is not), of :mod:`large_store`. Each read is made so
often with other parameters; told are the median and the worst time, CPU, and the peak of memory.
With ``--path`` so many requests for each of these go to a ``freshet serve`` of the store.
``--writing`` measures instead what a visit costs the writer, with and without the triggers that
keep the figures, in turn.
"""

from __future__ import annotations

import asyncio
import re
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

from freshet.storage.database import Database, open_store, reading
from freshet.storage.entries import HostState
from freshet.storage.queries import overview, sites
from freshet.storage.records import Capture, Digests, DueUrl, Observation, Visit
from freshet.storage.tables import runs
from freshet.storage.writer import VisitTables
from scripts.benchmarks import command, large_store
from scripts.benchmarks.memory_watch import MemoryWatch

_WRITTEN, _BATCH, _TURNS = 10_000, 50, 3


async def reads(path: Path, times: int) -> dict[str, Any]:
    """The figures of each read."""
    async with reading(path) as db:
        today = int(time.time() // large_store.DAY_S)
        ((middle,),) = await db.execute_fetchall("SELECT avg(at) FROM site_change")
        ((most,),) = await db.execute_fetchall("SELECT max(id) FROM host")
        hosts, ends = [1, 2, 10, most // 2, most], [None, (middle, 0), (middle / 1.0005, 0)]

        def changes(**what: Any) -> Callable[[int], Awaitable[object]]:
            return lambda n: overview.changes_page(db, 50, before=ends[n % 3], **what)

        named: dict[str, Callable[[int], Awaitable[object]]] = {
            "totals, 30 days": lambda _: sites.totals(db, today - 30),
            "totals of a site": lambda n: sites.totals(db, today - 30, hosts[n % 5]),
            "sites by origin": lambda _: sites.sites(db, today - 30),
            "sites by changes": lambda _: sites.sites(db, today - 30, "changed"),
            "sites by staleness": lambda _: sites.sites(db, today - 30, "stale"),
            "changes by hour": lambda n: sites.changes_by_hour(db, hosts[n % 5]),
            "changes": changes(),
            "changes: significant": changes(kinds=["changed"]),
            "changes: gone": changes(kinds=["gone"]),
            "changes of a large site": changes(host_ids=[1]),
            "changes of a small site": changes(host_ids=[most]),
            "changes with a word": changes(words=["river"]),
            "changes without such a word": changes(words=["no such word"]),
            "visits that failed": changes(kinds=["failed"]),
            "visits that failed at a small site": changes(kinds=["failed"], host_ids=[most]),
            "since a week ago, counted": lambda _: overview.since(db, time.time() - 7 * 86_400, 50),
        }
        return {name: await _timed(read, times) for name, read in named.items()}


async def _timed(read: Callable[[int], Awaitable[object]], times: int) -> dict[str, float]:
    await read(0)
    took, cpu = list[float](), time.process_time()
    for number in range(times):
        began = time.perf_counter()
        await read(number)
        took.append(1e3 * (time.perf_counter() - began))
    cpu = 1e3 * (time.process_time() - cpu) / times
    return {"ms": round(median(took), 1), "worst_ms": round(max(took), 1), "cpu_ms": round(cpu, 1)}


# -- over HTTP ---------------------------------------------------------------


def served(path: Path, paths: list[str], times: int) -> dict[str, Any]:
    """The same of requests, and the memory of the server."""
    program = str(Path(sys.executable).with_name("freshet"))
    line = [program, "serve", "--db", str(path), "--listen", "127.0.0.1:0"]
    with (
        subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as it,
        MemoryWatch(it.pid) as watch,
    ):
        assert it.stdout is not None
        told = ""
        while not (found := re.search(r"http://[^\s/]+", told)):
            told = it.stdout.readline()
        result = {each: _asked(found[0] + each, times) for each in paths}
        it.terminate()
    resident = [sample.resident / 1e6 for sample in watch.samples] or [0.0]
    return result | {"memory_mb": [round(resident[0], 1), round(max(resident), 1)]}


def _asked(url: str, times: int) -> dict[str, float]:
    took, size = list[float](), 0
    for _ in range(times):
        began = time.perf_counter()
        with urlopen(url) as answer:
            size = len(answer.read())
        took.append(1e3 * (time.perf_counter() - began))
    return {"ms": round(median(took), 1), "worst_ms": round(max(took), 1), "kb": round(size / 1e3)}


# -- writing -----------------------------------------------------------------


@contextmanager
def _without(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path)) as db, db:
        made = db.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND sql LIKE '%site\\_%' "
            "ESCAPE '\\'"
        ).fetchall()
        for name, _ in made:
            db.execute(f"DROP TRIGGER {name}")
    yield
    with closing(sqlite3.connect(path)) as db, db:
        for _, sql in made:
            db.execute(sql)


async def _write(database: Database, unlike: Iterator[int]) -> float:
    """Microseconds of CPU of a visit, of which every tenth finds a change."""
    reader = database.reader
    run = await database.write(lambda db: runs.start(db, time.time(), "{}"))
    tables, rows = VisitTables(run), list[Any]()
    for first in range(_WRITTEN // _BATCH):
        rows += await reader.execute_fetchall(
            "SELECT id, url, host_id FROM page WHERE id % 97 = ? LIMIT ?", (first % 97, _BATCH)
        )
    entries = list[list[Visit]]()
    for first in range(0, len(rows), _BATCH):
        batch = list[Visit]()
        for page, url, host in rows[first : first + _BATCH]:
            number, at = next(unlike), time.time()
            due, digest = DueUrl(page, url, url, host, at), number.to_bytes(16)
            state = HostState(host, url.split("/")[2], at, 1.0, 0, None, None)
            differs = number % 10 == 0
            seen = Observation(
                page, at, "changed" if differs else "unchanged",
                rung="blocks" if differs else "304", status=200, duration_s=0.1,
            )  # fmt: skip
            capture = Capture(Digests(digest, digest), 20_000, "text/html")
            batch.append(Visit(due, seen, host=state, capture=capture if differs else None))
        entries.append(batch)
    began = time.process_time()
    for batch in entries:
        await tables.write(database, batch)
    return 1e6 * (time.process_time() - began) / len(rows)


async def _written(path: Path, unlike: Iterator[int]) -> float:
    database = await open_store(path)
    try:
        return await _write(database, unlike)
    finally:
        await database.close()


def writing(path: Path) -> dict[str, Any]:
    """Both ways in turn."""
    found: dict[str, list[float]] = {"with": [], "without": []}
    unlike = count(time.time_ns())
    asyncio.run(_written(path, unlike))
    for _ in range(_TURNS):
        found["with"].append(asyncio.run(_written(path, unlike)))
        with _without(path):
            found["without"].append(asyncio.run(_written(path, unlike)))
    us = {name: round(median(each), 1) for name, each in found.items()}
    return {"us_a_visit": us, "ratio": round(us["with"] / us["without"], 3), "all": found}


def main() -> None:
    """The command ``scripts/bench dashboard``."""
    parser = command.arguments(__doc__)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--observations", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=300)
    parser.add_argument("--store", type=Path, metavar="FILE", help="make it there, or use it")
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--path", action="append", default=[], help="request it of freshet serve")
    parser.add_argument(
        "--writing", action="store_true", help="what the writer takes; it alters the store"
    )
    chosen = parser.parse_args()
    with command.workspace() as directory:
        store, made = chosen.store or directory / "store.db", {}
        if not store.exists():
            made = large_store.make(store, chosen.pages, chosen.observations, chosen.hosts)
        result: dict[str, Any] = {"made": made, "store_mb": round(store.stat().st_size / 1e6)}
        if chosen.writing:
            result["writing"] = writing(store)
        elif chosen.path:
            result["served"] = served(store, chosen.path, chosen.times)
        else:
            result["reads"] = asyncio.run(reads(store, chosen.times))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            result["peak_mb"] = round(peak / 1e3)
        command.finish(result, chosen.output)
