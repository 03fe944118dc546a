"""A daemon in real time under load: does its memory stay flat, and what does its file grow by?

The web is the synthetic one on loopback, of which a day passes in 40 seconds; or its pages are
fixed. Memory counts from the 20th minute on, or in the second half of a shorter run; the growth of
the file in that time stands beside the rows that came, each with the mean bytes of its table
(indices and all) at the end.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, linear_regression
from time import monotonic
from typing import Any

from scripts.benchmarks import command
from scripts.benchmarks.living_web import UNSLOWED, Load, living

_DAYS_PER_S = 1 / 40
_FIXED_DAYS_PER_S = 1e-9
_FIXED_PAGES_PER_HOST = 250
_HOUR_S = 3_600.0
_SETTLED_S = 1_200.0
_LOOK_EVERY_S = 10.0
_SERIES_POINTS = 20
_GOAL_MB_PER_H = 5.0
_BY_TABLE = (
    "SELECT coalesce(m.tbl_name, s.name), sum(s.pgsize) FROM dbstat AS s "
    "LEFT JOIN sqlite_master AS m ON m.name = s.name WHERE s.aggregate = TRUE GROUP BY 1"
)


@dataclass(frozen=True, slots=True)
class File:
    """The store at one time: bytes of the file and of what is free in it; tables by name."""

    at: float
    size: int
    free: int
    rows: dict[str, int]
    bytes: dict[str, int]


def soak(seconds: float, policy: str, directory: Path, *, is_fixed: bool) -> dict[str, Any]:
    """Run a daemon for so long; pages that are ``is_fixed`` do not change."""
    load = Load(days_per_s=_DAYS_PER_S, span_days=2 + seconds * _DAYS_PER_S)
    if is_fixed:
        load = Load(pages_per_host=_FIXED_PAGES_PER_HOST, days_per_s=_FIXED_DAYS_PER_S)
    store, notes = directory / "store.db", directory / "memory.jsonl"
    program = [
        sys.executable, "-m", "scripts.benchmarks.memory_parts", str(notes), str(_LOOK_EVERY_S)
    ]  # fmt: skip
    settled_s = min(_SETTLED_S, seconds / 2)
    (directory / "freshet.toml").write_text(UNSLOWED, "utf-8")
    options = ("--policy", policy, "--time-limit", str(seconds))
    with living(load, directory / "exchanges.log") as web:
        begun_at = monotonic()
        with web.daemon(store, *options, program=program) as running:
            running.wait(settled_s)
            settled = _file(store)
            # Before the daemon ends, which throws old bodies away.
            running.wait(0.97 * seconds - settled_s)
            end = _file(store)
            report = running.report()
        asked = len(web.asked())
    looks = [json.loads(line) for line in notes.read_text("ascii").splitlines()]
    late = [it for it in looks if settled_s < it["at"] - begun_at < 0.97 * seconds]
    return {
        "seconds": seconds,
        "policy": policy,
        "requests_per_s": round(asked / seconds, 1),
        "unused_requests": report.get("unused_requests"),
        "pages": end.rows["page"],
        "changed": report["changed"],
        "goal_mb_per_h": _GOAL_MB_PER_H,
        "memory": {name: _growth(late, name) for name in late[0] if name != "at"},
        "resident_mb": _series(looks, begun_at),
        "file": _grown(settled, end),
    }


def _file(store: Path) -> File:
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        rows = {
            name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
            for name in tables
        }
        page_size, pages, free = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_size", "page_count", "freelist_count")
        )
        return File(
            monotonic(), page_size * pages, page_size * free, rows,
            dict(connection.execute(_BY_TABLE).fetchall()),
        )  # fmt: skip


def _grown(half: File, end: File) -> dict[str, Any]:
    came = Counter({name: end.rows[name] - half.rows.get(name, 0) for name in end.rows})
    each = {name: end.bytes.get(name, 0) / max(rows, 1) for name, rows in end.rows.items()}
    explained = {name: came[name] * each[name] for name in came if came[name]}
    return {
        "mb": round(end.size / 1e6, 2),
        "free_mb": round(end.free / 1e6, 2),
        "grown_mb": round((end.size - half.size) / 1e6, 2),
        "explained_by_rows_mb": round(sum(explained.values()) / 1e6, 2),
        "rows": {
            name: {"came": came[name], "bytes_each": round(each[name])}
            for name in sorted(explained, key=lambda name: -explained[name])
        },
    }


def _growth(looks: Sequence[dict[str, float]], part: str) -> dict[str, float]:
    """Return the mean of a part of the memory in MB (of blocks in millions), and its slope."""
    at, sizes = [look["at"] for look in looks], [look[part] / 1e6 for look in looks]
    slope = linear_regression(at, sizes).slope * _HOUR_S
    return {"mb": round(fmean(sizes), 2), "mb_per_h": round(slope, 2)}


def _series(looks: Sequence[dict[str, float]], begun_at: float) -> dict[int, float]:
    chosen = looks[:: max(1, len(looks) // _SERIES_POINTS)]
    return {round(it["at"] - begun_at): round(it["resident"] / 1e6, 1) for it in chosen}


def main(seconds: float, policy: str, output: Path | None, *, is_fixed: bool) -> None:
    """The command ``scripts/bench daemon --soak``."""
    with command.workspace() as directory:
        command.finish(soak(seconds, policy, directory, is_fixed=is_fixed), output)
