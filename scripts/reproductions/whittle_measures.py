"""What is computed for the reproduction: the example, random utilities, random tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from freshet.scheduler.arrays import Floats
from freshet.scheduler.ephemeral.policies import (
    PeriodPolicy,
    at_frequencies,
    best_sources,
    greedy_expected,
    relaxed,
    round_robin,
    static_frequencies,
    whittle_by_age,
)
from freshet.scheduler.ephemeral.sources import EphemeralSources, UtilityLaw
from scripts.reproductions.whittle_bounds import optimum, replicated
from scripts.reproductions.whittle_items import arriving
from scripts.reproductions.whittle_observed import (
    GreedyObserved,
    IndexCurve,
    WhittleByCurve,
    WhittleByState,
    atoms,
    index_curve,
)
from scripts.reproductions.whittle_periods import Outcome, run

TABLE_1 = EphemeralSources.of(250, [1.0, 0.7, 0.2, 0.08], [0.7, 0.35, 0.7, 0.21])
#: Whole cycles of 1, 2, 4 and 7 periods.
CYCLES = 840
WARM_UP = 200
#: Laws of ξ under which the random figures are computed.
LAWS = {
    "every item worth the same": UtilityLaw(),
    "exponential, each item its own": UtilityLaw("exponential"),
    "log-normal, σ = 2, each item its own": UtilityLaw("lognormal", 2.0),
    "log-normal, σ = 0.5, one draw a period": UtilityLaw("lognormal", 0.5, together=True),
    "log-normal, σ = 0.8, one draw a period": UtilityLaw("lognormal", 0.8, together=True),
    "exponential, one draw a period": UtilityLaw("exponential", together=True),
    "log-normal, σ = 1.5, one draw a period": UtilityLaw("lognormal", 1.5, together=True),
    "Pareto, exponent 1.5, one draw a period": UtilityLaw("pareto", 1.5, together=True),
}
#: Periods from which the law of U is learned.
SAMPLE = 20_000
#: Periods are averaged in blocks of which the spread is taken.
_BLOCKS = 50
#: Periods that are told apart by the dynamic programme, by number of sources.
_OLDEST = {3: 24, 4: 14, 5: 9, 6: 7}
#: Where the relaxed bound leaves less in doubt, no programme is run.
_SETTLED = 5e-4
REPLICAS = (1, 10, 100)


def deterministic(budget: int) -> dict[str, Outcome]:
    """Long-run averages of every policy on the example."""
    frequencies = at_frequencies(static_frequencies(TABLE_1, budget))
    policies: dict[str, PeriodPolicy] = {
        "Whittle": whittle_by_age(TABLE_1),
        "greedy, state expected": greedy_expected(TABLE_1),
        "static frequencies": frequencies,
        "round robin": round_robin,
        "best sources": best_sources(TABLE_1),
    }
    return {
        name: run(TABLE_1, policy, budget, CYCLES, warm_up=WARM_UP)
        for name, policy in policies.items()
    }


@dataclass(frozen=True, slots=True)
class Random:
    """Average rewards under one law, and by how much the stochastic index is the better.

    ``variation`` is the standard deviation of U over its mean, source 1. ``margin`` is the gain of
    the stochastic over the deterministic index, both seeing the state, as a share, ± ``spread``
    (two standard errors of the same periods' differences).
    """

    law: str
    variation: float
    means: dict[str, float]
    margin: float
    spread: float


def stochastic(name: str, budgets: Sequence[int], periods: int, seed: int) -> list[Random]:
    """The example with random utilities, by M, every policy on the same draws."""
    law, streams = LAWS[name], np.random.default_rng(seed).spawn(2)
    coming = arriving(TABLE_1, law, WARM_UP + periods, streams[0])
    sample = arriving(TABLE_1, law, SAMPLE, streams[1])
    curves = [
        index_curve(atoms(sample[:, row], 200, float(TABLE_1.fresh[row])), float(alpha), points=150)
        for row, alpha in enumerate(TABLE_1.retention)
    ]
    return [_stochastic(name, budget, coming, sample, curves) for budget in budgets]


def _stochastic(
    name: str, budget: int, coming: Floats, sample: Floats, curves: list[IndexCurve]
) -> Random:
    policies: dict[str, PeriodPolicy] = {
        "round robin": round_robin,
        "best sources": best_sources(TABLE_1),
        "static frequencies": at_frequencies(static_frequencies(TABLE_1, budget)),
        "greedy, state expected": greedy_expected(TABLE_1),
        "Whittle, state unseen": whittle_by_age(TABLE_1),
        "greedy, state seen": GreedyObserved(TABLE_1),
        "Whittle, state seen": WhittleByState(TABLE_1),
        "stochastic Whittle": WhittleByCurve(TABLE_1, curves),
        "stochastic, 1 and 2 seen": WhittleByCurve(TABLE_1, [*curves[:2], None, None]),
    }
    halves = np.array([True, True, False, False])
    outcomes = {
        each: run(
            TABLE_1, policy, budget, len(coming) - WARM_UP, warm_up=WARM_UP, arriving=coming,
            observed=halves if "1 and 2" in each else True,
        )
        for each, policy in policies.items()
    }  # fmt: skip
    theirs = outcomes["Whittle, state seen"]
    gain = outcomes["stochastic Whittle"].reward - theirs.reward
    blocks = np.array([part.mean() for part in np.array_split(gain, _BLOCKS)])
    return Random(
        name,
        float(sample[:, 0].std() / TABLE_1.fresh[0]),
        {each: outcome.mean for each, outcome in outcomes.items()},
        float(gain.mean()) / theirs.mean,
        2 * float(blocks.std(ddof=1)) / _BLOCKS**0.5 / theirs.mean,
    )


def random_table(n: int, rng: np.random.Generator) -> EphemeralSources:
    """So many sources: arrivals 1 to 10, utilities 0.1 to 1, decays 0.1 to 2 a period."""
    decay = np.exp(rng.uniform(np.log(0.1), np.log(2), n))
    return EphemeralSources.of(rng.uniform(1, 10, n), rng.uniform(0.1, 1, n), decay)


def gap_to_optimum(sources: EphemeralSources, count: int) -> float:
    """By how much the index policy may fall short of the best policy, as a share; at most.

    The best is not above the relaxed bound, nor above what the dynamic programme promises.
    """
    bound = relaxed(sources, count).bound
    mean = run(sources, whittle_by_age(sources), count, 2000, warm_up=WARM_UP).mean
    if 1 - mean / bound > _SETTLED:
        found = optimum(sources, count, _OLDEST[len(sources)], tolerance=2e-4)
        bound = min(bound, found.high)
    return 1 - mean / bound


def gaps_to_optimum(instances: int, seed: int) -> Floats:
    """(instances,), the gap on random tables of 3 to 6 sources, at most all but one crawled."""
    rng = np.random.default_rng(seed)
    gaps = np.empty(instances)
    for number in range(instances):
        n = 3 + number % 4
        sources = random_table(n, rng)
        gaps[number] = gap_to_optimum(sources, int(rng.integers(1, n)))
    return gaps


def gaps_by_replicas(tables: int, seed: int) -> Floats:
    """(tables, replicas), the gap to the relaxed bound with one crawl for each copy of a table.

    Copies begin at random: what begins together stays together, and has the gap of one.
    """
    rng = np.random.default_rng(seed)
    gaps = np.empty((tables, len(REPLICAS)))
    for row in range(tables):
        table = random_table(4, rng)
        for column, times in enumerate(REPLICAS):
            many = replicated(table, times)
            start = rng.integers(1, 9, len(many)).astype(float)
            found = run(many, whittle_by_age(many), times, 800, warm_up=WARM_UP, since_crawl=start)
            gaps[row, column] = 1 - found.mean / relaxed(many, times).bound
    return gaps
