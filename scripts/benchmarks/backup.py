"""What a backup does to the commits of whoever writes the store meanwhile.

A process commits transactions as a daemon does (a visit with its body, synced, so many a second)
and notes how long each took. Beside it, a store is copied: by ``freshet backup``, and by the ways
that it does not go: VACUUM INTO, and SQLite's backup without a read transaction round it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import TypeAlias

import numpy as np

from freshet.storage.backup import back_up
from freshet.storage.extensions import migrations, newest

#: How long each commit took, and how long the log became.
Told: TypeAlias = "multiprocessing.SimpleQueue[tuple[list[float], int]]"

_BODY_BYTES = 8_000
_GIVEN_UP_S = 120.0


class _GivenUp(Exception):
    """It takes too long."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1_000, help="size of the store")
    parser.add_argument("--rate", type=float, default=30.0, help="commits a second")
    parser.add_argument("--dir", type=Path, default=None, help="where; a disk, not a memory")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.dir) as name:
        db = Path(name) / "crawl.db"
        _fill(db, arguments.megabytes)
        sys.stdout.write(json.dumps(_measure(db, arguments.rate)) + "\n")


def _fill(db: Path, megabytes: int) -> None:
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for _, _, sql in migrations():
            connection.executescript(sql)
        connection.execute("PRAGMA application_id = 0x46525348")
        connection.execute(f"PRAGMA user_version = {newest()}")
        connection.execute("BEGIN")
        connection.execute(
            "INSERT INTO crawl_run (id, started_at, state, settings) VALUES (1, 0, 'running', '{}')"
        )
        connection.execute("INSERT INTO host (id, origin) VALUES (1, 'http://one.example')")
        connection.execute(
            "INSERT INTO page (id, url, fetch_url, host_id, depth, found_at, found_run_id) "
            "VALUES (1, 'http://one.example/', 'http://one.example/', 1, 0, 0, 1)"
        )
        for _ in range(megabytes * 1_000_000 // (_BODY_BYTES + 400)):
            _visit(connection)
        connection.execute("COMMIT")


def _visit(connection: sqlite3.Connection) -> None:
    connection.execute(
        "INSERT INTO observation (page_id, run_id, at, kind, duration_s) "
        "VALUES (1, 1, ?, 'changed', 0.1)",
        (time.time(),),
    )
    connection.execute(
        "INSERT INTO body VALUES (?, ?, ?, ?)",
        (os.urandom(16), time.time(), _BODY_BYTES, os.urandom(_BODY_BYTES)),
    )


def _write(
    db: str, rate: float, stop: Event, told: multiprocessing.SimpleQueue[tuple[list[float], int]]
) -> None:
    took: list[float] = []
    wal = 0
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        due = time.monotonic()
        while not stop.is_set():
            due = max(due + 1 / rate, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
            began = time.monotonic()
            connection.execute("BEGIN IMMEDIATE")
            _visit(connection)
            connection.execute("COMMIT")
            took.append(time.monotonic() - began)
            wal = max(wal, Path(f"{db}-wal").stat().st_size)
    told.put((took, wal))


def _measure(db: Path, rate: float) -> dict[str, object]:
    ways: dict[str, Callable[[Path, Path], None]] = {
        "nothing": lambda _db, _target: time.sleep(10),
        "freshet backup": _backed_up,
        "VACUUM INTO": _vacuumed,
        "backup without a transaction": _stepped,
    }
    return {"store_bytes": db.stat().st_size} | {
        name: _beside(db, way, rate) for name, way in ways.items()
    }


def _beside(db: Path, way: Callable[[Path, Path], None], rate: float) -> dict[str, object]:
    """How a way of copying goes, and the commits beside it."""
    told: Told = multiprocessing.SimpleQueue()
    stop = multiprocessing.Event()
    process = multiprocessing.Process(target=_write, args=(str(db), rate, stop, told))
    process.start()
    time.sleep(1)
    target, began, cpu = db.with_name("copy.db"), time.monotonic(), time.process_time()
    try:
        way(db, target)
        done = True
    except _GivenUp:
        done = False
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    stop.set()
    took, wal = told.get()
    process.join()
    target.unlink(missing_ok=True)
    commits = 1e3 * np.array(took)
    return {
        "done": done,
        "seconds": round(seconds, 2),
        "cpu_s": round(cpu, 2),
        "commits": len(commits),
        "commits_a_second": round(len(commits) / (seconds + 1), 1),
        "commit_ms": {str(q): round(float(np.quantile(commits, q)), 1) for q in (0.5, 0.99, 1.0)},
        "wal_bytes": wal,
    }


def _backed_up(db: Path, target: Path) -> None:
    back_up(db, target, replace=False, progress=lambda _what, _share: None)


def _vacuumed(db: Path, target: Path) -> None:
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute("VACUUM INTO ?", (str(target),))


def _stepped(db: Path, target: Path) -> None:
    until = time.monotonic() + _GIVEN_UP_S

    def told(_status: int, _remaining: int, _total: int) -> None:
        if time.monotonic() > until:
            raise _GivenUp

    with closing(sqlite3.connect(db)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new, pages=1_024, progress=told, sleep=0.01)
