"""What policies cost when they are carried out, with rates known and rates learned."""

from __future__ import annotations

import time
from statistics import mean, stdev

import numpy as np

from freshet.scheduler.costs import plan_costs
from freshet.scheduler.evaluate.simulate import MEASURED_WHEN_LEARNING, SimulationResult, simulate
from freshet.scheduler.evaluate.world import surrogate
from freshet.scheduler.policies.binary_lambda_crawl import BinaryLambdaCrawl
from freshet.scheduler.sources import SourceTable
from scripts.benchmarks.command import say
from scripts.reproductions.relaxed_bound import relaxed_bound

#: R, crawls per day and source.
BANDWIDTH = 0.2
DAYS = 21.0
KNOWN = (
    "lambda_crawl",
    "lambda_crawl:crawling=periodic",
    "optimal_intervals",
    "greedy_index",
    "greedy_index_binary",
    "binary_lambda_crawl",
    "binary_lambda_crawl_floor",
    "uniform:crawling=periodic",
    "nutch_adaptive",
    "stormcrawler_adaptive",
)
LEARNED = ("greedy_index", "lambda_crawl", "lambda_crawl_approx", "uniform:crawling=periodic")
PROCESSES = ("bursts", "drift", "together")
SEEDS = (1, 2, 3, 4, 5)


def figures(*, quick: bool = False) -> dict[str, object]:
    """Known rates, learned rates over seeds, and worlds in which the model is wrong."""
    n, days = (300, 4.0) if quick else (20_000, DAYS)
    return {
        "known_rates": _known(n, days),
        "binary_cost": _binary(n, days),
        "learned_rates": _learned(n, days, SEEDS[:2] if quick else SEEDS),
        "other_processes": {process: _wrong(n, days, process) for process in PROCESSES},
        "seconds": _seconds(200 if quick else 100_000, days),
    }


def population(n: int, seed: int) -> SourceTable:
    """The surrogate sources of a run."""
    return surrogate(n, np.random.default_rng(seed))


def _known(n: int, days: float) -> dict[str, object]:
    say(f"simulation: {n:,} sources, {days:g} days, rates known")
    table, budget = population(n, 1), BANDWIDTH * n
    found = simulate(table, KNOWN, bandwidth=budget, days=days, seed=1)
    index = found.policies["greedy_index"]
    bound = relaxed_bound(table, budget) / n
    return {
        "sources": n,
        "days": days,
        "lambda_crawl_optimum": found.lambda_crawl_optimum.harmonic_cost,
        "greedy_index_over_optimum": _over(found, "greedy_index"),
        "goal_over_optimum": 0.70,
        "greedy_index_crawls_over_budget": round(index.crawls / index.budget, 5),
        "greedy_index_over_relaxed_bound": round(index.harmonic_cost / bound, 4),
        "goal_over_relaxed_bound": 1.01,
        "all_over_optimum": {name: _both(found, name) for name in KNOWN},
    }


def _binary(n: int, days: float) -> dict[str, object]:
    """The binary index beside the optimal rates for its cost, those of BinaryLambdaCrawl.

    These ignore notifications: hence also the same sources without any.
    """
    say(f"simulation: {n:,} sources, {days:g} days, the binary cost")
    notifying = population(n, 1)
    silent = SourceTable.of(notifying.importance, notifying.change_rate)
    return {
        "sources": n,
        "days": days,
        "greedy_index_binary_over_blc": _over_blc(notifying, days),
        "without_notifications": _over_blc(silent, days),
    }


def _over_blc(table: SourceTable, days: float) -> float:
    budget = BANDWIDTH * len(table)
    index = simulate(table, ["greedy_index_binary"], bandwidth=budget, days=days, seed=1)
    plan = BinaryLambdaCrawl().rates(table, budget)
    optimum = float(plan_costs(table, plan).binary.mean())
    return round(index.policies["greedy_index_binary"].binary_cost / optimum, 4)


def _learned(n: int, days: float, seeds: tuple[int, ...]) -> dict[str, object]:
    say(f"simulation: {n:,} sources, rates learned from nothing, {len(seeds)} seeds")
    ratios: dict[str, list[float]] = {name: [] for name in LEARNED}
    crawls: list[float] = []
    for seed in seeds:
        found = simulate(
            population(n, seed), LEARNED, bandwidth=BANDWIDTH * n, days=days, seed=seed, learn=True
        )
        for name in LEARNED:
            ratios[name].append(_over(found, name))
        index = found.policies["greedy_index"]
        crawls.append(index.crawls / index.budget)
    return {
        "sources": n,
        "measured": f"the last {min(days, MEASURED_WHEN_LEARNING):g} of {days:g} days",
        "seeds": len(seeds),
        "greedy_index_over_optimum": round(mean(ratios["greedy_index"]), 4),
        "greedy_index_worst_seed": max(ratios["greedy_index"]),
        "goal_over_optimum": 0.74,
        "greedy_index_crawls_over_budget": round(mean(crawls), 5),
        "over_optimum": {
            name: {"mean": round(mean(each), 4), "standard_deviation": round(stdev(each), 4)}
            for name, each in ratios.items()
        },
        "greedy_index_by_poisson_mle": _by_mle(n, days, seeds[0]),
    }


def _by_mle(n: int, days: float, seed: int) -> float:
    """The same index with the estimator of the paper, one seed."""
    found = simulate(
        population(n, seed),
        ["greedy_index"],
        bandwidth=BANDWIDTH * n,
        days=days,
        seed=seed,
        learn=True,
        estimator="poisson_mle",
    )
    return _over(found, "greedy_index")


def _wrong(n: int, days: float, process: str) -> dict[str, object]:
    """Realised costs where changes are not Poisson, as a share of LambdaCrawl's realised cost."""
    say(f"simulation: changes by {process}")
    told: dict[str, object] = {}
    for learn in (False, True):
        found = simulate(
            population(n, 1),
            ("lambda_crawl", "greedy_index", "uniform:crawling=periodic"),
            bandwidth=BANDWIDTH * n,
            days=days,
            seed=1,
            learn=learn,
            process=process,
        )
        base = found.policies["lambda_crawl"].harmonic_cost
        told["learned" if learn else "known"] = {
            name: round(outcome.harmonic_cost / base, 3) for name, outcome in found.policies.items()
        }
    return told


def _seconds(n: int, days: float) -> dict[str, object]:
    """NotContent time of one run of each policy, population and world included."""
    return {
        "sources": n,
        "days": days,
        "rates_known": {name: _timed(n, days, name, learn=False) for name in KNOWN},
        "rates_learned": {name: _timed(n, days, name, learn=True) for name in LEARNED},
    }


def _timed(n: int, days: float, name: str, *, learn: bool) -> float:
    say(f"simulation: {n:,} sources by {name}{', learning' if learn else ''}")
    began = time.perf_counter()
    simulate(population(n, 1), [name], bandwidth=BANDWIDTH * n, days=days, seed=1, learn=learn)
    return round(time.perf_counter() - began, 1)


def _over(found: SimulationResult, name: str) -> float:
    cost = found.policies[name].harmonic_cost
    return round(cost / found.lambda_crawl_optimum.harmonic_cost, 4)


def _both(found: SimulationResult, name: str) -> dict[str, float | None]:
    outcome, optimum = found.policies[name], found.lambda_crawl_optimum
    harmonic = outcome.harmonic_cost / optimum.harmonic_cost
    return {
        "harmonic": round(harmonic, 4) if np.isfinite(harmonic) else None,
        "binary": round(outcome.binary_cost / optimum.binary_cost, 4),
    }
