"""Five policies before a year of a store: a fetch for each page and 20 days, from its tables."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import numpy as np

from freshet.crawler.cli.options import read_settings
from freshet.crawler.extensions.lab.counterfactual import ask, read_past
from freshet.scheduler.evaluate.counterfactual import ReplayTerms
from freshet.scheduler.evaluate.verdicts import compare
from freshet.storage.database import open_store
from scripts.benchmarks.command import say, workspace

POLICIES = ("site_clock", "lambda_crawl", "optimal_intervals", "uniform", "nutch_adaptive")
_DAYS, _EVERY = 365.0, 20.0
_A_HOST = 100
_DAY_S = 86_400.0


def figures(pages: int) -> dict[str, object]:
    """Seconds from the store's tables to the verdicts, and what each policy takes by itself."""
    settings, _ = read_settings(None, {})
    with workspace() as folder:
        db = folder / "year.db"
        observations = fill(db, pages)
        say(f"{observations:,} observations of {pages:,} pages")
        before = _spent()
        answer = ask(db, POLICIES, [pages / _EVERY], 0.1, settings)
        whole = _since(before)
        peaks = {"peak_mb": _peak_mb(RUSAGE_SELF), "peak_mb_of_a_child": _peak_mb(RUSAGE_CHILDREN)}
        say(f"{whole}; now each policy by itself")
        before = _spent()
        captures, _, _ = asyncio.run(read_past(db, settings))
        parts = {"reading": _since(before)}
    (start, end), each = (answer.comparison.start, answer.comparison.end), {}
    for name in POLICIES:
        before = _spent()
        compare(captures, [name], [ReplayTerms(pages / _EVERY, start, end)])
        each[name] = _since(before)
    return {
        "pages": pages,
        "observations": observations,
        "asks_a_policy": answer.comparison.verdicts[0].fetches,
        "whole": whole | peaks | {"goal_seconds": 120},
        "alone": parts | each,
    }


def _spent() -> tuple[float, float]:
    """Seconds on the clock, and of processors, children that have ended included."""
    return time.perf_counter(), sum(os.times()[:4])


def _since(before: tuple[float, float]) -> dict[str, float]:
    seconds, cpu_seconds = np.subtract(_spent(), before).round(1).tolist()
    return {"seconds": seconds, "cpu_seconds": cpu_seconds}


def _peak_mb(who: int) -> int:
    return round(getrusage(who).ru_maxrss / 1024)


def fill(db: Path, pages: int) -> int:
    """Write a store that asked for each page every 20 days or so; its observations."""
    asyncio.run(_new(db))
    rng = np.random.default_rng(7)
    rate = np.exp(-4 + 1.5 * rng.standard_normal(pages))
    visits = [
        (row, day, seen) for row in range(pages) for day, seen in _visits(rng, float(rate[row]))
    ]
    visits.sort(key=lambda visit: visit[1])
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute(
            "INSERT INTO crawl_run (started_at, state, settings) VALUES (0, 'ended', '{}')"
        )
        connection.executemany(
            "INSERT INTO host (id, origin) VALUES (?, ?)",
            ((k + 1, f"http://h{k}.example") for k in range(pages // _A_HOST + 1)),
        )
        connection.executemany(
            "INSERT INTO page (id, url, fetch_url, host_id, depth, found_at, found_run_id) "
            "VALUES (?, ?, ?, ?, 0, 0.0, 1)",
            (
                (row + 1, url, url, row // _A_HOST + 1)
                for row in range(pages)
                for url in (f"http://h{row // _A_HOST}.example/a{row % 3}/{row}",)
            ),
        )
        connection.executemany(
            "INSERT INTO observation (page_id, run_id, at, kind, duration_s) "
            "VALUES (?, 1, ?, ?, 0.1)",
            ((row + 1, day * _DAY_S, kind) for row, day, kind in visits),
        )
    return len(visits)


def _visits(rng: np.random.Generator, rate: float) -> list[tuple[float, str]]:
    """The days of the visits to a page, and what they found."""
    later = np.sort(rng.uniform(5, _DAYS, rng.poisson(_DAYS / _EVERY)))
    days = np.concatenate([rng.uniform(0, 5, 1), later])
    changed = rng.random(len(later)) < -np.expm1(-rate * np.diff(days))
    kinds = ["new", *np.where(changed, "changed", "unchanged").tolist()]
    return list(zip(days.tolist(), kinds, strict=True))


async def _new(db: Path) -> None:
    await (await open_store(db)).close()
