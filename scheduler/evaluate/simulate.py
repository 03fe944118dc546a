"""Costs of policies, each simulated in the same world with the same budget. Seeded.

    population × change process × policy (× estimator) → realised cost

The cost of a source is a time average over the measured days, weighted with its importance; a
policy's cost is the mean over the sources. For Poisson changes it is the conditional expectation
given the times of crawls and signals, which is free of the noise of the changes; for any other
process it is the realised cost in this world.

Known rates: every policy starts in its steady state (scheduler.evaluate.runners), runs for a
lead-in of two rounds, and is then measured for all days. A policy that starves sources, such as
those for the binary cost, has no steady state of the harmonic cost: the cost grows with the days.
Learned rates: on day 0 only the last crawl of each source is known, from a round-robin schedule;
the last week is measured.

Hosts have no limits here and no signal is false: politeness and noisy signals are not simulated.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Final

import numpy as np
from numpy.random import Generator

from freshet.scheduler import arrays, estimate
from freshet.scheduler.arrays import Floats
from freshet.scheduler.costs import plan_costs
from freshet.scheduler.evaluate import changes as changes_evaluate
from freshet.scheduler.evaluate import crawl_costs, runners
from freshet.scheduler.evaluate.changes import ChangeProcess, poisson
from freshet.scheduler.evaluate.crawl_costs import Crawls, RateLearner
from freshet.scheduler.evaluate.runners import OverBudget, WaitingSources
from freshet.scheduler.evaluate.serving import PolicyProgress, Progress, silent
from freshet.scheduler.evaluate.world import World
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl
from freshet.scheduler.policies.optimal_intervals import OptimalIntervals
from freshet.scheduler.policy import IndexPolicy, IntervalPolicy, Policy, RatePolicy, load
from freshet.scheduler.sources import SourceTable

#: The measured days of a learning crawler: the last ones.
MEASURED_WHEN_LEARNING: Final = 7.0

#: One round is the time in which the budget could crawl every source once. Within two rounds an
#: index or interval policy has settled: its cost moves by less than 0.5 % from then on.
_LEAD_IN_ROUNDS, _LEAD_IN_DAYS = 2.0, 30.0
#: Only copies of sources that are hardly crawled are older than forty rounds. The history is
#: shorter if it would have too many changes to hold, or too many days for processes that step by
#: day.
_HISTORY_ROUNDS, _LEAST_HISTORY_DAYS, _MOST_HISTORY_DAYS = 40.0, 60.0, 1_000.0
_HISTORY_CHANGES = 10_000_000


@dataclass(frozen=True, slots=True)
class _SimulatedCost:
    """A policy's cost, the mean over the sources, and its crawls over the measured days.

    ``budget`` is R times the measured days; plans with random crawl times spend it in the mean.
    """

    harmonic_cost: float
    binary_cost: float
    crawls: int
    budget: float


@dataclass(frozen=True, slots=True)
class Optimum:
    """Long-run cost of LambdaCrawl's plan for known rates, the mean over the sources."""

    harmonic_cost: float
    binary_cost: float


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Costs of all policies, by the name under which they were requested."""

    policies: dict[str, _SimulatedCost]
    lambda_crawl_optimum: Optimum


def simulate(  # noqa: PLR0913 - the parameters of an experiment
    table: SourceTable,
    policies: Sequence[str],
    *,
    bandwidth: float,
    days: float,
    seed: int,
    learn: bool = False,
    estimator: str = "empirical_bayes",
    process: str = "poisson",
    progress: PolicyProgress = silent,
) -> SimulationResult:
    """Simulate policies, each ``NAME`` or ``NAME:OPTION=VALUE,…``, in the same world.

    Args:
        table: the sources with their true change rates.
        policies: the policies to compare.
        bandwidth: R, crawls per day over all sources.
        days: length of the simulation; see the module for the measured part.
        seed: determines the world and all random draws; the same seed gives the same result.
        learn: whether change rates are unknown at the start.
        estimator: the estimator of the rates: one of freshet.scheduler.estimate.ESTIMATORS.
        process: the change process: ``NAME`` or ``NAME:OPTION=VALUE,…``.
        progress: called with the progress of each policy.

    Raises:
        ValueError: naming the argument; PolicyError for a policy.
        OverBudget: if a policy would crawl more than R.
    """
    # All names are read before the work begins.
    loaded = {specification: load(specification) for specification in policies}
    law, learner = changes_evaluate.load(process), estimator if learn else None
    experiment = Experiment(
        table, law, bandwidth=bandwidth, days=days, seed=seed, estimator=learner
    )
    outcomes = {name: experiment.outcome(name, policy, progress) for name, policy in loaded.items()}
    return SimulationResult(outcomes, lambda_crawl_optimum(table, bandwidth))


def lambda_crawl_optimum(table: SourceTable, bandwidth: float) -> Optimum:
    """Return the closed form at the true rates."""
    costs = plan_costs(table, LambdaCrawl().rates(table, bandwidth))
    return Optimum(float(costs.harmonic.mean()), float(costs.binary.mean()))


@dataclass(slots=True, eq=False)
class Experiment:
    """One world and one budget, for measuring policies.

    The arguments are as in :func:`simulate`; ``estimator`` is None if rates are known.

    Raises:
        ValueError: naming the argument.
    """

    table: SourceTable
    process: ChangeProcess
    _: KW_ONLY
    bandwidth: float
    days: float
    seed: int
    estimator: str | None = None
    _world: World = field(init=False)

    def __post_init__(self) -> None:
        _refuse_what_is_not_simulated(self.table)
        arrays.counts("seed", [self.seed])
        if self.estimator is not None:
            arrays.one_of("estimator", self.estimator, tuple(estimate.ESTIMATORS))
        self.bandwidth = arrays.budget("bandwidth", self.bandwidth)
        self.days = arrays.budget("days", self.days)
        round_days = len(self.table) / self.bandwidth
        changes_per_day = max(float(self.table.change_rate.sum()), 1.0)
        affordable = max(_LEAST_HISTORY_DAYS, _HISTORY_CHANGES / changes_per_day)
        history = min(_HISTORY_ROUNDS * round_days, affordable, _MOST_HISTORY_DAYS)
        lead_in = min(_LEAD_IN_ROUNDS * round_days, _LEAD_IN_DAYS)
        days = self.days + (lead_in if self.estimator is None else 0.0)
        rng = np.random.default_rng([self.seed, 0])
        self._world = World.draw(self.table, self.process, history, days, rng)

    def outcome(
        self, name: str, policy: Policy, progress: PolicyProgress = silent
    ) -> _SimulatedCost:
        """Return the cost of a policy in this world; errors and progress have its ``name``.

        Raises:
            OverBudget: if it would crawl more than the budget.
        """

        def report(day: float) -> None:
            progress(name, day / self._world.days)

        try:
            start, crawls = self._run(policy, report)
        except OverBudget as error:
            raise OverBudget(f"policy {name}: {error}") from error
        report(self._world.days)
        return self._judged(start, crawls)

    def _run(self, policy: Policy, progress: Progress) -> tuple[SourceTable, Crawls]:
        """Return the sources on day 0, and all crawls from then on."""
        rng = np.random.default_rng([self.seed, 1])
        world = self._world if self.estimator is None else self._world.blind()
        if isinstance(policy, IntervalPolicy):
            waiting = self._waiting(policy, world, rng)
            start = runners.left_at(world, waiting.last_crawl.copy())
            return start, runners.run_intervals(waiting, world, self.bandwidth, progress)
        begin = self._start(policy, world, rng)
        start, _ = begin
        named = self.estimator
        learner = RateLearner(start, estimate.load(named, start.host)) if named else None
        if isinstance(policy, RatePolicy):
            crawls = runners.run_rates(
                policy, world, begin, self.bandwidth, rng, learner=learner, progress=progress
            )
        else:
            crawls = runners.run_index(
                policy, world, start, self.bandwidth, learner=learner, progress=progress
            )
        return start, crawls

    def _start(
        self, policy: RatePolicy | IndexPolicy, world: World, rng: Generator
    ) -> tuple[SourceTable, Floats]:
        if self.estimator is not None:
            return runners.round_robin(world, self.bandwidth, rng)
        planner = policy if isinstance(policy, RatePolicy) else OptimalIntervals()
        return runners.under_plan(world, planner.rates(world.table, self.bandwidth), rng)

    def _waiting(self, policy: IntervalPolicy, world: World, rng: Generator) -> WaitingSources:
        if self.estimator is None:
            return runners.settled(policy, world, self.process, self.bandwidth, rng)
        start, _ = runners.round_robin(world, self.bandwidth, rng)
        return WaitingSources.begin(policy, start.last_crawl)

    def _judged(self, start: SourceTable, crawls: Crawls) -> _SimulatedCost:
        end = self._world.days
        days = self.days if self.estimator is None else min(self.days, MEASURED_WHEN_LEARNING)
        begin = end - days
        table = replace(
            self._world.table, last_crawl=start.last_crawl, pending_signals=start.pending_signals
        )
        changes, signalled = self._world.changes, table.complete_observations
        if self.process is poisson:
            costs = crawl_costs.expected_costs(
                table, crawls, begin, end, changes=changes, signalled=signalled
            )
        else:
            costs = crawl_costs.realised_costs(table, crawls, begin, end, changes=changes)
        return _SimulatedCost(
            float(costs.harmonic.mean()),
            float(costs.binary.mean()),
            crawls.within(begin, end),
            self.bandwidth * (end - begin),
        )


def _refuse_what_is_not_simulated(table: SourceTable) -> None:
    if not len(table):
        raise ValueError("table: has no sources; accepted is at least one")
    noisy = (table.signal_rate > 0) & ~table.complete_observations
    if noisy.any():
        raise ValueError(
            f"signal_rate: row {int(np.argmax(noisy))} has noisy signals, which are not simulated; "
            "accepted are 0 and complete observations"
        )
    limited = np.isfinite(table.host_capacity)
    if limited.any():
        row = int(np.argmax(limited))
        raise ValueError(
            f"host_capacity: row {row} is {table.host_capacity[row]}; accepted is inf: "
            "politeness is not simulated"
        )
