"""A daemon in real time under load: does its memory stay flat, and what does its file grow by?

The web is the synthetic one on loopback, of which a day passes in 40 seconds. The slope of the
memory is that of the second half; the growth of the file in that time stands beside the rows
that came, each with the mean bytes of its table (indices and all) at the end.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import linear_regression
from time import monotonic
from typing import Any

from scripts.benchmarks import command
from scripts.benchmarks.living_web import UNSLOWED, Load, living
from scripts.benchmarks.memory_watch import MemoryWatch, Sample

_DAYS_PER_S = 1 / 40
_HOUR_S = 3_600.0
_SERIES_POINTS = 20
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


def soak(seconds: float, policy: str, directory: Path) -> dict[str, Any]:
    """Run a daemon for so long."""
    load = Load(days_per_s=_DAYS_PER_S, span_days=2 + seconds * _DAYS_PER_S)
    store = directory / "store.db"
    (directory / "freshet.toml").write_text(UNSLOWED, "utf-8")
    options = ("--policy", policy, "--time-limit", str(seconds))
    with living(load, directory / "exchanges.log") as web:
        begun_at = monotonic()
        with web.daemon(store, *options) as running, MemoryWatch(running.pid) as watch:
            running.wait(seconds / 2)
            half = _file(store)
            # Before the daemon ends, which throws old bodies away.
            running.wait(0.45 * seconds)
            end = _file(store)
            report = running.report()
        asked = len(web.asked())
    late = [s for s in watch.samples if seconds / 2 < s.at - begun_at < 0.95 * seconds]
    return {
        "seconds": seconds,
        "policy": policy,
        "requests_per_s": round(asked / seconds, 1),
        "forgone": report.get("forgone"),
        "pages": end.rows["page"],
        "changed": report["changed"],
        "rss_slope_mb_per_h": round(_slope(late), 2),
        "goal_mb_per_h": 1.0,
        "rss_mb": _series(watch.samples, begun_at),
        "peak_mb": watch.peaks(),
        "file": _grown(half, end),
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


def _slope(samples: Sequence[Sample]) -> float:
    if len(samples) < 2:
        return 0.0
    line = linear_regression([s.at for s in samples], [s.resident for s in samples])
    return line.slope * _HOUR_S / 1e6


def _series(samples: Sequence[Sample], begun_at: float) -> dict[int, float]:
    chosen = samples[:: max(1, len(samples) // _SERIES_POINTS)]
    return {round(s.at - begun_at): round(s.resident / 1e6, 1) for s in chosen}


def main(seconds: float, policy: str, output: Path | None) -> None:
    """The command ``scripts/bench_daemon --soak``."""
    with command.workspace() as directory:
        command.finish(soak(seconds, policy, directory), output)
