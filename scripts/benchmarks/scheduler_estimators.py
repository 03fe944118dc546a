"""Estimators of change rates: how fast they are, and how far from the truth."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from scipy.optimize import brentq

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.estimate import Estimator
from freshet.scheduler.estimate.bayes import EmpiricalBayes
from freshet.scheduler.estimate.evidence import Evidence
from freshet.scheduler.estimate.poisson import PoissonMle, estimate_many
from freshet.scheduler.evaluate.world import surrogate
from freshet.scheduler.sources import Rows
from scripts.benchmarks.command import say

OBSERVATIONS = 20
SMOOTHING = 0.5

#: What a sketch of both estimators measured: (observations, empirical Bayes, eq. 10).
SKETCH = ((5, 0.93, 1.48), (20, 0.58, 0.79), (80, 0.33, 0.41))

#: The highest memory use of a process that has observed every one of n sources.
_PEAK = """
import sys
import numpy as np
from freshet.scheduler.estimate.bayes import EmpiricalBayes
from freshet.scheduler.estimate.evidence import Evidence

n, batch = int(sys.argv[1]), 10_000
learner = EmpiricalBayes(max(n, 1))
for first in range(0, n, batch):
    rows = np.arange(first, min(first + batch, n))
    ones = np.ones(len(rows))
    learner.observe(Evidence(rows, ones, ones, rows % 2, ones == 0))
with open("/proc/self/status") as status:
    sys.stdout.write(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def figures(*, quick: bool = False) -> dict[str, object]:
    """Speed and agreement of the MLE; errors of both estimators; cost of empirical Bayes."""
    rng = np.random.default_rng(2019)
    n = 20_000 if quick else 1_000_000
    return {
        "mle": _mle(n, 50 if quick else 1_000, rng),
        "rmse_of_log_rate": _errors(2_000 if quick else 50_000, rng),
        "empirical_bayes": _costs(5_000 if quick else 100_000, 200 if quick else 20_000, rng)
        | {"bytes_per_source": _bytes_per_source(100_000 if quick else 1_000_000)},
    }


def change_rates(n: int, rng: np.random.Generator) -> Floats:
    """Of n surrogate sources of incomplete observations."""
    table = surrogate(int(n * 1.1) + 100, rng)
    return table.change_rate[~table.complete_observations][:n]


def _mle(n: int, sample: int, rng: np.random.Generator) -> dict[str, object]:
    say(f"estimators: eq. 10 for {n:,} sources with {OBSERVATIONS} observations each")
    rates = change_rates(n, rng)
    source = np.repeat(np.arange(n), OBSERVATIONS)
    intervals = rng.exponential(1.0, len(source))
    changed = rng.random(len(source)) < -np.expm1(-intervals * rates[source])
    started = time.perf_counter()
    ours = estimate_many(source, intervals, changed, n, smoothing=SMOOTHING)
    seconds = time.perf_counter() - started
    say(f"estimators: the same by scipy.optimize.brentq, {sample:,} of them")
    started = time.perf_counter()
    theirs = [
        _root(intervals[i : i + OBSERVATIONS], changed[i : i + OBSERVATIONS])
        for i in range(0, sample * OBSERVATIONS, OBSERVATIONS)
    ]
    scipy_seconds = (time.perf_counter() - started) * n / sample
    return {
        "sources": n,
        "observations_each": OBSERVATIONS,
        "seconds": round(seconds, 3),
        "goal_seconds_for_a_million": 3.0,
        "scipy_seconds": round(scipy_seconds, 1),
        "scipy_sample": sample,
        "scipy_over_ours": round(scipy_seconds / seconds, 1),
        "largest_relative_difference": float(np.abs(ours[:sample] / theirs - 1).max()),
    }


def _root(intervals: Floats, changed: Bools) -> float:
    """Eq. 10 as it is printed, by bracketing, in ln Δ."""
    differed, unchanged = intervals[changed], intervals[~changed].sum()

    def left_side(log_rate: float) -> float:
        rate = np.exp(log_rate)
        smoothed = SMOOTHING / np.expm1(SMOOTHING * rate) - SMOOTHING
        return float((differed / np.expm1(differed * rate)).sum() - unchanged + smoothed)

    with np.errstate(over="ignore"):
        return float(np.exp(brentq(left_side, -12.0, 5.0, xtol=1e-13)))


def _errors(n: int, rng: np.random.Generator) -> list[dict[str, object]]:
    say(f"estimators: errors on {n:,} surrogate sources")
    rates = change_rates(n, rng)
    daily = _learning(rates, lambda: rng.exponential(1.0, n), rng)
    rows = [
        {"crawls": "Poisson, one a day", "sketch_empirical_bayes": bayes, "sketch_poisson_mle": mle}
        | daily[observations]
        for observations, bayes, mle in SKETCH
    ]
    # Uniform crawling at R = 0.2, which is where a learner of that budget starts.
    every_fifth = _learning(rates, lambda: np.full(n, 5.0), rng)
    return rows + [{"crawls": "every 5 days"} | found for found in every_fifth.values()]


def _learning(
    rates: Floats, next_span: Callable[[], Floats], rng: np.random.Generator
) -> dict[int, dict[str, object]]:
    """By number of observations, the error of each estimator."""
    n = len(rates)
    learners: dict[str, Estimator] = {
        "empirical_bayes": EmpiricalBayes(n),
        "poisson_mle": PoissonMle(n),
    }
    at = np.zeros(n)
    found: dict[int, dict[str, object]] = {}
    for observations in range(1, SKETCH[-1][0] + 1):
        span = next_span()
        at = at + span
        changed = rng.random(n) < -np.expm1(-rates * span)
        evidence = Evidence(np.arange(n), at, span, changed.astype(np.int64), np.zeros(n, np.bool_))
        for learner in learners.values():
            learner.observe(evidence)
        if observations in {each for each, _, _ in SKETCH}:
            errors: dict[str, object] = {
                name: round(_error(learner.change_rate(), rates), 3)
                for name, learner in learners.items()
            }
            found[observations] = {"observations": observations} | errors
    return found


def _error(estimates: Floats, rates: Floats) -> float:
    return float(np.sqrt(np.mean(np.log(estimates / rates) ** 2)))


def _costs(n: int, repetitions: int, rng: np.random.Generator) -> dict[str, object]:
    """In microseconds: one source at a time, as a simulation does, and in batches."""
    say(f"estimators: empirical Bayes, {n:,} sources")
    learner = EmpiricalBayes(n)
    rows = np.arange(n)
    batch = _crawled(rows, rng)
    observe_batch = _seconds(lambda: learner.observe(batch))
    fit_and_estimate = _seconds(learner.change_rate)
    estimate_all = _seconds(learner.change_rate)
    fits = learner.revision
    single = [rows[i : i + 1] for i in rng.integers(0, n, repetitions)]
    pieces = [_crawled(row, rng) for row in single]
    observe = [_seconds(lambda piece=piece: learner.observe(piece)) for piece in pieces]  # type: ignore[misc]
    ask = [_seconds(lambda row=row: learner.change_rate(row)) for row in single]  # type: ignore[misc]
    return {
        "sources": n,
        "observe_one_us": round(median(observe) * 1e6, 2),
        "estimate_one_us": round(median(ask) * 1e6, 2),
        "observe_in_a_batch_us": round(observe_batch / n * 1e6, 3),
        "estimate_in_a_batch_us": round(estimate_all / n * 1e6, 3),
        "fit_of_the_prior_s": round(fit_and_estimate - estimate_all, 3),
        "fits_while_asked_one_by_one": learner.revision - fits,
    }


def _crawled(rows: Rows, rng: np.random.Generator) -> Evidence:
    m = len(rows)
    changes = rng.integers(0, 2, m)
    return Evidence(rows, np.ones(m), rng.exponential(1.0, m), changes, np.zeros(m, np.bool_))


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _bytes_per_source(n: int) -> float:
    """What a source adds to the highest memory use of a process."""
    say("estimators: memory of empirical Bayes")
    return round((_peak(n) - _peak(0)) / n, 1)


def _peak(n: int) -> int:
    command = [sys.executable, "-c", _PEAK, str(n)]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(found) * 1024
