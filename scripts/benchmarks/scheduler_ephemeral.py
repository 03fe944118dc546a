"""Ephemeral content: the index of a million sources, and who is crawled in a period."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from freshet.scheduler.arrays import Floats
from freshet.scheduler.ephemeral.policies import Rows, affordable
from freshet.scheduler.ephemeral.sources import EphemeralSources
from scripts.benchmarks.command import say

GOAL_MS = 20
#: M, the share of the sources that is crawled in a period.
SHARES = (0.0001, 0.01, 0.2)
_REPEATS = 7


def figures(*, quick: bool) -> dict[str, object]:
    """Milliseconds, medians of several, beside sorting all."""
    n = 50_000 if quick else 1_000_000
    rng = np.random.default_rng(1)
    ages = rng.integers(1, 50, n).astype(float)
    sources = EphemeralSources.of(
        rng.uniform(1, 300, n), rng.uniform(0.05, 1, n), rng.uniform(0.05, 1, n)
    )
    say(f"ephemeral: {n:,} sources")
    index = sources.index(ages)
    return {
        "sources": n,
        "index_ms": _milliseconds(lambda: sources.index(ages)),
        "goal_selection_ms": GOAL_MS,
        "selection": [_selection(index, sources.cost, share) for share in SHARES],
    }


def _selection(index: Floats, cost: Floats, share: float) -> dict[str, object]:
    count = int(share * len(index))
    chosen = affordable(index, cost, count)
    return {
        "crawled": len(chosen),
        "selection_ms": _milliseconds(lambda: affordable(index, cost, count)),
        "sorting_all_ms": _milliseconds(lambda: np.argsort(-index, kind="stable")[:count]),
        "least_chosen_over_most_left": float(index[chosen].min() / _most_left(index, chosen)),
    }


def _most_left(index: Floats, chosen: Rows) -> float:
    left = np.ones(len(index), dtype=np.bool_)
    left[chosen] = False
    return float(index[left].max())


def _milliseconds(call: Callable[[], object]) -> float:
    taken = []
    for _ in range(_REPEATS):
        started = time.perf_counter()
        call()
        taken.append(1e3 * (time.perf_counter() - started))
    return round(float(np.median(taken)), 2)
