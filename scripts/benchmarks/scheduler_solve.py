"""LambdaCrawl, exact and at scale, and what other policies pay on the surrogate population."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import brentq

from freshet.scheduler.arrays import Floats
from freshet.scheduler.costs import plan_costs
from freshet.scheduler.evaluate.world import surrogate
from freshet.scheduler.policies.binary_lambda_crawl import BinaryLambdaCrawl, BinaryLambdaCrawlFloor
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl, LambdaCrawlApprox, solve
from freshet.scheduler.policies.uniform import ChangeRateCrawl, UniformCrawl
from freshet.scheduler.policy import CrawlPlan, RatePolicy
from freshet.scheduler.solve.budget import Hosts, PricedSpending, allocate, clearing_prices
from freshet.scheduler.solve.demand import HarmonicDemand
from freshet.scheduler.sources import SourceTable, hosts_of
from scripts.benchmarks.command import say
from tests.scheduler.algorithm_3 import algorithm_3

#: R, crawls per day and source.
BANDWIDTH = 0.2
ROUNDS = 9
HOSTS = 20_000

#: Harmonic costs over LambdaCrawl's and binary costs per URL at R = 20 %, one million sources:
#: what another program for the same surrogate found, and the paper (2019, figure 1).
EXPECTED: dict[str, dict[str, float | None]] = {
    "lambda_crawl_approx": {"ratio": 1.41, "paper_ratio": 1.38, "binary": None},
    "binary_lambda_crawl_floor": {"ratio": 1.68, "paper_ratio": 1.53, "binary": 261},
    "uniform": {"ratio": 3.83, "paper_ratio": 3.9, "binary": 551},
    "change_rate": {"ratio": 7.02, "paper_ratio": 6.6, "binary": 960},
    "binary_lambda_crawl": {"ratio": None, "paper_ratio": None, "binary": 236},
}
POLICIES: dict[str, RatePolicy] = {
    "lambda_crawl_approx": LambdaCrawlApprox(),
    "binary_lambda_crawl_floor": BinaryLambdaCrawlFloor(),
    "uniform": UniformCrawl(),
    "change_rate": ChangeRateCrawl(),
    "binary_lambda_crawl": BinaryLambdaCrawl(),
}

#: Solves in a process of their own: the median of five, each, and the peak of memory.
_LARGE = """
import json, sys, time
from statistics import median
import numpy as np
from freshet.scheduler.policies.lambda_crawl import solve
from freshet.scheduler.evaluate.world import surrogate

n = int(sys.argv[1])
columns = np.empty(n), np.empty(n), np.empty(n, np.bool_)
for first in range(0, n, 500_000):
    part = surrogate(min(500_000, n - first), np.random.default_rng(first))
    for column, values in zip(
        columns, (part.importance, part.change_rate, part.complete_observations)
    ):
        column[first : first + len(values)] = values
solve(columns[0][:1000], columns[1][:1000], 200.0, complete_observations=columns[2][:1000])
seconds = []
for _ in range(5):
    began = time.perf_counter()
    plan = solve(columns[0], columns[1], 0.2 * n, complete_observations=columns[2])
    seconds.append(time.perf_counter() - began)
    spent = float(plan.crawl_rate.sum())
    del plan
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
told = {"seconds": median(seconds), "each": seconds, "peak_kb": peak, "spent": spent / n}
print(json.dumps(told))
"""


def figures(*, quick: bool = False) -> dict[str, object]:
    """Speed at one million and at the paper's 18.5 million, exactness, capacities, ratios."""
    n = 20_000 if quick else 1_000_000
    table = surrogate(n, np.random.default_rng(1))
    return {
        "one_core": _speed(table),
        "paper_scale": _paper_scale(100_000 if quick else 18_500_000),
        "exactness": _exactness(surrogate(2_000 if quick else 20_000, np.random.default_rng(2))),
        "capacities": _capacities(table, min(HOSTS, n // 10)),
        "surrogate_ratios": _ratios(table),
    }


def _speed(table: SourceTable) -> dict[str, object]:
    n = len(table)
    say(f"solve: {n:,} sources, one core")
    price = _multiplier(table)
    return {
        "sources": n,
        "solve_ms": _milliseconds(partial(_solved, table)),
        "goal_solve_ms": 45,
        "multiplier_ms": _milliseconds(partial(_multiplier, table)),
        "goal_multiplier_ms": 25,
        "warm_start_ms": _milliseconds(partial(_multiplier, table, 1.01 * price)),
        "alternatives": _alternatives(table, price),
        "authors_cpu_seconds": 167,
    }


def _in_a_process(program: str, *words: str) -> dict[str, Any]:
    """What a program prints as JSON."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    told = subprocess.run(
        [sys.executable, "-c", program, *words],
        check=True, capture_output=True, text=True, env={**os.environ, **threads},
    )  # fmt: skip
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def _solved(table: SourceTable) -> CrawlPlan:
    """What ``solve`` does for these columns, validation included."""
    return solve(
        table.importance,
        table.change_rate,
        BANDWIDTH * len(table),
        complete_observations=table.complete_observations,
    )


def _demand(table: SourceTable) -> HarmonicDemand:
    return HarmonicDemand(table.importance, table.change_rate, table.complete_observations)


def _multiplier(table: SourceTable, start: float | None = None) -> float:
    """λ alone, of columns that are checked; ``start`` is a price of before."""
    demand, rates = _demand(table), np.empty(len(table))
    budget = np.array([BANDWIDTH * len(table)])

    def spend(price: Floats) -> PricedSpending:
        total, slope = demand.spending_at(float(price[0]), rates)
        return PricedSpending(price, np.array([total]), np.array([slope]))

    first = demand.guess(budget, None) if start is None else np.array([start])
    return float(clearing_prices(spend, budget, first, demand.step).price[0])


def _alternatives(table: SourceTable, price: float) -> dict[str, object]:
    """One root search of scipy on the same sum; the paper's Algorithm 3, once."""
    demand, rates = _demand(table), np.empty(len(table))
    budget = BANDWIDTH * len(table)

    def excess(log_price: float) -> float:
        return demand.spending_at(float(np.exp(log_price)), rates)[0] - budget

    log_price = float(np.log(price))
    brent = _milliseconds(lambda: brentq(excess, log_price - 10, log_price + 10, xtol=1e-14), 3)
    ours = _milliseconds(lambda: _multiplier(table), 3)
    began = time.perf_counter()
    algorithm_3(
        table.importance, table.change_rate, table.complete_observations, budget, tolerance=1e-6
    )
    split = 1e3 * (time.perf_counter() - began)
    return {
        "scipy_brentq_multiplier_ms": brent,
        "scipy_brentq_over_ours": round(brent / ours, 2),
        "algorithm_3_ms": round(split),
        "algorithm_3_over_ours": round(split / ours, 1),
    }


def _paper_scale(n: int) -> dict[str, object]:
    say(f"solve: {n:,} sources in a process of their own")
    one = _in_a_process(_LARGE, str(n))
    return {
        "sources": n,
        "seconds": round(one["seconds"], 3),
        "seconds_each": [round(seconds, 3) for seconds in one["each"]],
        "goal_seconds": 0.8,
        "peak_mb": round(one["peak_kb"] / 1e3),
        "goal_peak_mb": 1_000,
        "spent_of_budget": one["spent"] / BANDWIDTH,
    }


def _exactness(table: SourceTable) -> dict[str, object]:
    """Against Algorithm 3 to tight tolerance, and the conditions of Karush, Kuhn and Tucker."""
    say(f"solve: Algorithm 3 on {len(table):,} sources, and optimality")
    budget = BANDWIDTH * len(table)
    plan = _solved(table)
    cost = float(plan_costs(table, plan).harmonic.sum())
    split = algorithm_3(
        table.importance, table.change_rate, table.complete_observations, budget, tolerance=1e-11
    )
    return {
        "sources": len(table),
        "relative_difference_of_cost_to_algorithm_3": abs(cost / split.cost - 1),
        "goal_difference": 1e-9,
        "kkt_residual": kkt_residual(table, plan),
        "goal_kkt_residual": 1e-12,
    }


def kkt_residual(table: SourceTable, plan: CrawlPlan) -> float:
    """The worst relative breach of budget, stationarity and bounds of a plan without capacities."""
    mu, delta, rate = table.importance, table.change_rate, plan.crawl_rate
    price = plan.price or 0.0
    told = table.complete_observations
    marginal = np.where(told, mu / rate, mu * delta / (rate * (delta + rate)))
    interior = ~told | (rate < delta)
    stationarity = np.abs(marginal[interior] / price - 1).max(initial=0.0)
    # At its bound a source would take more: what it saves there is worth the price or more.
    bound = np.maximum(1 - marginal[~interior] / price, 0.0).max(initial=0.0)
    budget = abs(rate.sum() / plan.bandwidth - 1)
    return float(max(stationarity, bound, budget))


def _capacities(table: SourceTable, hosts: int) -> dict[str, object]:
    """Hosts as large as Zipf's law has them; capacities that bind at many of them."""
    say(f"solve: {len(table):,} sources on {hosts:,} hosts with capacities")
    rng = np.random.default_rng(3)
    weight = 1 / np.arange(1, hosts + 1)
    host = rng.choice(hosts, len(table), p=weight / weight.sum())
    unlimited = _solved(table)
    wanted = np.bincount(host, unlimited.crawl_rate, hosts)
    capacity = np.maximum(wanted, 0.01) * rng.uniform(0.3, 2.0, hosts)
    no_limits = Hosts(*hosts_of(host, np.full(hosts, np.inf), len(table)))
    budget = BANDWIDTH * len(table)

    def run() -> CrawlPlan:
        return solve(
            table.importance,
            table.change_rate,
            budget,
            complete_observations=table.complete_observations,
            host=host,
            host_capacity=capacity,
        )

    plan = run()
    rates = np.bincount(host, plan.crawl_rate, hosts)
    excess = (rates - capacity) / np.maximum(1.0, capacity)
    with_capacities = _milliseconds(run, 5)
    without = _milliseconds(lambda: allocate(_demand(table), budget, no_limits), 5)
    return {
        "sources": len(table),
        "hosts": hosts,
        "hosts_at_capacity": int((rates >= capacity * (1 - 1e-9)).sum()),
        "seconds": round(with_capacities / 1e3, 4),
        "goal_seconds": 0.4,
        "over_the_same_without_capacities": round(with_capacities / without, 1),
        "largest_relative_excess": float(excess.max()),
        "goal_excess": 1e-9,
        "left_over": plan.left_over,
    }


def _ratios(table: SourceTable) -> dict[str, object]:
    say("solve: what other policies pay")
    budget = BANDWIDTH * len(table)
    best = plan_costs(table, _solved(table))
    found: dict[str, object] = {
        "lambda_crawl": {
            "harmonic_per_url": round(float(best.harmonic.mean()), 1),
            "binary_per_url": round(float(best.binary.mean()), 1),
            "expected_harmonic_per_url": 302.6,
            "expected_binary_per_url": 184.9,
        }
    }
    for name, policy in POLICIES.items():
        costs = plan_costs(table, policy.rates(table, budget))
        harmonic = float(costs.harmonic.mean() / best.harmonic.mean())
        found[name] = {
            "harmonic_ratio": round(harmonic, 3) if np.isfinite(harmonic) else None,
            "expected": EXPECTED[name]["ratio"],
            "paper": EXPECTED[name]["paper_ratio"],
            "binary_per_url": round(float(costs.binary.mean()), 1),
            "expected_binary_per_url": EXPECTED[name]["binary"],
            "binary_ratio": round(float(costs.binary.mean() / best.binary.mean()), 3),
        }
    periodic = plan_costs(table, LambdaCrawl("periodic").rates(table, budget))
    found["lambda_crawl:crawling=periodic"] = {
        "harmonic_ratio": round(float(periodic.harmonic.mean() / best.harmonic.mean()), 3),
        "expected": 0.69,
    }
    return found


def _milliseconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The median of several."""
    work()
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return round(1e3 * median(taken), 2)
