"""Figure 3: Algorithm 4 with three policies, day by day, from rates of 1 a day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from freshet.scheduler.arrays import Floats
from freshet.scheduler.costs import plan_costs
from freshet.scheduler.estimate.poisson import PoissonMle
from freshet.scheduler.evaluate.changes import poisson
from freshet.scheduler.evaluate.crawl_costs import RateLearner
from freshet.scheduler.evaluate.runners import PlanExecution, split
from freshet.scheduler.evaluate.world import World, surrogate
from freshet.scheduler.policies.binary_lambda_crawl import BinaryLambdaCrawlFloor
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl, LambdaCrawlApprox
from freshet.scheduler.policy import CrawlPlan, RatePolicy
from freshet.scheduler.sources import SourceTable
from scripts.benchmarks.command import say

POLICIES: dict[str, RatePolicy] = {
    "LLC": LambdaCrawl(),
    "LLCA": LambdaCrawlApprox(),
    "BLLCε": BinaryLambdaCrawlFloor(),
}


#: The paper's figure goes from epoch 0 to epoch 20.
EPOCHS = 21


@dataclass(frozen=True, slots=True)
class Epoch:
    """A point of a curve: the mean harmonic cost per URL, and half of its 95 % interval."""

    policy: str
    epoch: int
    harmonic: float
    half_width: float


@dataclass(frozen=True, slots=True)
class Runs:
    """Harmonic costs per URL by epoch: mean over runs, half of the 95 % interval, and known.

    ``known`` is the mean cost of the same policy with the true rates.
    """

    mean: dict[str, Floats]
    half_width: dict[str, Floats]
    known: dict[str, float]

    def rows(self) -> Iterator[Epoch]:
        """One row a policy and epoch."""
        for name, means in self.mean.items():
            for epoch, mean in enumerate(means):
                yield Epoch(name, epoch, float(mean), float(self.half_width[name][epoch]))


def runs(count: int, sources: int, bandwidth: float, seed: int) -> Runs:
    """``count`` runs, each on a population of its own."""
    costs: dict[str, list[list[float]]] = {name: [] for name in POLICIES}
    known: dict[str, list[float]] = {name: [] for name in POLICIES}
    for run in range(count):
        say(f"figure 3: run {run + 1} of {count}")
        table = surrogate(sources, np.random.default_rng([seed, run]))
        budget = bandwidth * sources
        for name, policy in POLICIES.items():
            rng = np.random.default_rng([seed, run, 1])
            costs[name].append([judged(table, plan) for plan in plans(policy, table, budget, rng)])
            known[name].append(judged(table, policy.rates(table, budget)))
    spread = {
        name: np.std(each, axis=0, ddof=1) if count > 1 else np.zeros(EPOCHS)
        for name, each in costs.items()
    }
    return Runs(
        {name: np.mean(each, axis=0) for name, each in costs.items()},
        {name: 1.96 * each / np.sqrt(count) for name, each in spread.items()},
        {name: float(np.mean(each)) for name, each in known.items()},
    )


def judged(table: SourceTable, plan: CrawlPlan) -> float:
    """The harmonic cost per URL under the true rates: a share p of the true changes is crawled."""
    answered = plan.crawl_probability * table.change_rate
    carried_out = replace(plan, crawl_rate=np.where(plan.on_signals, answered, plan.crawl_rate))
    return float(plan_costs(table, carried_out).harmonic.mean())


def plans(
    policy: RatePolicy, table: SourceTable, budget: float, rng: np.random.Generator
) -> Iterator[CrawlPlan]:
    """The plans of all epochs, each made from what the epochs before it observed.

    The paper starts from fresh copies and the belief that everything changes once a day.
    """
    world = World.draw(table, poisson, 0.0, float(EPOCHS), rng)
    execution = PlanExecution(world, table, rng.random(len(table)), rng)
    learner = RateLearner(table, PoissonMle(len(table)))
    believed = replace(table, change_rate=np.ones(len(table)))
    for begin, end in split(0.0, float(EPOCHS), 1.0):
        plan = policy.rates(believed, budget)
        yield plan
        execution.learnt_from(learner, plan, begin, end)
        believed = learner.table
