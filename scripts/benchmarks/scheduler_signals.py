"""Noisy signals in a simulation: heed them by their worth, ignore them, or believe them.

Every policy makes exactly one crawl each 1/R, of the source whose index is largest, in the same
worlds, on the same signals: ratios have the noise of few of their parts. Changes are never drawn:
the cost is their conditional expectation given the times of crawls and signals.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import product

import numpy as np

from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.costs import noisy_harmonic
from freshet.scheduler.policies import noisy_signal_index
from freshet.scheduler.policies.greedy_index import GreedyIndex, GreedyIndexBinary
from freshet.scheduler.policies.noisy_signal_index import NoisySignalIndex
from freshet.scheduler.policy import IndexPolicy
from freshet.scheduler.sources import Rows, SourceTable
from scripts.benchmarks.command import say
from scripts.benchmarks.signal_race import Index, Waiting, level, lost, race, unsignalled, world

BANDWIDTH = 0.2
WARM_UP_DAYS = 8.0
COSTS = ("harmonic", "binary")


def figures(*, quick: bool = False) -> dict[str, object]:
    """Costs over those of the policy, by precision and recall; accuracy and speed of the index."""
    n, days, seeds = (60, 4.0, 2) if quick else (400, 12.0, 4)
    precisions, recalls = ((0.7,), (0.6,)) if quick else ((0.5, 0.7, 0.95), (0.3, 0.6, 0.9))
    say("noisy signals: accuracy and speed")
    return _evaluation(1_000 if quick else 20_000) | {
        "sources": n,
        "measured_days": days,
        "seeds": seeds,
        "bandwidth": BANDWIDTH,
        "cost_over_noisy_signal_index": [
            _compared(cost, q, recall, n, days, seeds)
            for cost, q, recall in product(COSTS, precisions, recalls)
        ],
    }


def _compared(
    cost: str, precision: float, recall: float, n: int, days: float, seeds: int
) -> dict[str, object]:
    say(f"noisy signals: {cost}, precision {precision}, recall {recall}")
    costs = {
        name: np.array([_cost(cost, index, precision, recall, n, days, s) for s in range(seeds)])
        for name, index in indices(cost).items()
    }
    ours = costs["noisy_signal_index"]
    ratios = {name: theirs / ours for name, theirs in costs.items() if theirs is not ours}
    return {
        "cost": cost,
        "precision": precision,
        "recall": recall,
        "noisy_signal_index": round(float(ours.mean()), 3),
        "ratio": {name: round(float(ratio.mean()), 4) for name, ratio in ratios.items()},
        "standard_error": {
            name: round(float(ratio.std(ddof=1) / np.sqrt(seeds)), 4)
            for name, ratio in ratios.items()
        },
    }


def _cost(
    cost: str, index: Index, precision: float, recall: float, n: int, days: float, seed: int
) -> float:
    end = WARM_UP_DAYS + days
    sources = world(n, precision, recall, BANDWIDTH, end, seed)
    return race(sources, index, cost, BANDWIDTH * n, WARM_UP_DAYS, end)


def indices(cost: str) -> dict[str, Index]:
    """What is compared."""
    return {
        "noisy_signal_index": partial(_by_policy, NoisySignalIndex(cost)),
        "ignoring": partial(_by_policy, _without_signals(cost)),
        "believing": _believing,
        "believing_with_clock": partial(_at_effective_age, believed=True),
        "effective_age": partial(_at_effective_age, believed=False),
        "realised_path": _realised_path,
    }


def _by_policy(policy: IndexPolicy, waiting: Waiting, rows: Rows, now: float) -> Floats:
    return policy.index(waiting.table.take(rows), now)


def _without_signals(cost: str) -> IndexPolicy:
    return GreedyIndex() if cost == "harmonic" else GreedyIndexBinary()


def _believing(waiting: Waiting, rows: Rows, now: float) -> Floats:  # noqa: ARG001 - as its peers
    """As complete observations: μ k/g, and for the binary cost μ/g once there is one."""
    table = waiting.table
    k = table.pending_signals[rows]
    worth: Floats = table.importance[rows] / table.signal_rate[rows]
    return worth * (k if waiting.cost == "harmonic" else k > 0)


def _at_effective_age(waiting: Waiting, rows: Rows, now: float, *, believed: bool) -> Floats:
    """The greedy index at the age that makes the expected changes those of clock and signals.

    A signal is one change if it is believed, and q changes if not.
    """
    older = waiting.table.take(rows)
    m = unsignalled(waiting.table, rows) * (now - older.last_crawl)
    changes = older.pending_signals * (1.0 if believed else older.signal_precision)
    older.last_crawl[:] = now - (m + changes) / older.change_rate
    return _without_signals(waiting.cost).index(older, now)


def _realised_path(waiting: Waiting, rows: Rows, now: float) -> Floats:
    """s·D − ∫₀ˢ D along the path that was heard."""
    table = waiting.table
    spent = waiting.spent[rows] + lost(waiting, rows, waiting.since[rows], now)
    return (now - table.last_crawl[rows]) * level(waiting.cost, table, rows, now) - spent


def _evaluation(n: int) -> dict[str, object]:
    """Relative error of the harmonic index against the exact sum, and microseconds a row."""
    rng = np.random.default_rng(0)
    r, q = rng.uniform(0.01, 1, n), rng.uniform(0.02, 1, n)
    s = rng.lognormal(0, 1.3, n)
    k = rng.poisson(r / q * s)
    first = _seconds(NoisySignalIndex(), r[:1], q[:1], s[:1] + 10, k[:1] + 10)
    fast = noisy_signal_index.harmonic_value(r, q, s, k)
    started = time.perf_counter()
    exact = noisy_signal_index.exact_harmonic_value(r, q, noisy_harmonic((1 - r) * s, k, q))
    exactly = time.perf_counter() - started
    error = np.abs(fast / exact - 1)
    return {
        "first_call_seconds": round(first, 3),
        "microseconds_a_row": {
            "harmonic": round(_seconds(NoisySignalIndex(), r, q, s, k) / n * 1e6, 2),
            "binary": round(_seconds(NoisySignalIndex("binary"), r, q, s, k) / n * 1e6, 2),
            "harmonic_exact_sum": round(exactly / n * 1e6, 2),
        },
        "relative_error_harmonic": {
            "median": float(f"{np.median(error):.2g}"),
            "99_percent": float(f"{np.quantile(error, 0.99):.2g}"),
            "largest": float(f"{error.max():.2g}"),
        },
    }


def _seconds(policy: IndexPolicy, r: Floats, q: Floats, s: Floats, k: Ints) -> float:
    n = len(r)
    table = SourceTable.of(
        np.ones(n),
        np.ones(n),
        last_crawl=-s,
        pending_signals=k,
        signal_rate=r / q,
        signal_precision=q,
    )
    started = time.perf_counter()
    policy.index(table, 0.0)
    return time.perf_counter() - started
