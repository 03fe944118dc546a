"""Summaries of a plan: the split of the budget, and the expected cost of every policy.

Sources and hosts are rows of the table.
Rates are per day; costs are sums over the sources, time averages weighted with importance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.costs import Costs, plan_costs
from freshet.scheduler.policy import CrawlPlan, PolicyError, RatePolicy, load
from freshet.scheduler.sources import Rows, SourceTable

#: The policies that a plan is compared with. ``optimal_intervals`` is what ``greedy_index``,
#: which has no rates, comes to within a per cent.
COMPARED = (
    "lambda_crawl",
    "lambda_crawl:crawling=periodic",
    "optimal_intervals",
    "lambda_crawl_approx",
    "binary_lambda_crawl",
    "binary_lambda_crawl_floor",
    "uniform",
    "change_rate",
)

#: A source that changes this often between two crawls is hardly crawled.
HARDLY = 10.0

#: A host this near below its capacity, as a share of it, counts as capped.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Share:
    """The number of some sources, and their crawls per day."""

    sources: int
    crawl_rate: float


@dataclass(frozen=True, slots=True)
class HostShares:
    """The split of a budget among H hosts: sources, crawls per day, capacity; each (H,).

    ``capped`` is True where the capacity binds: the host would get more without it.
    """

    sources: Rows
    crawl_rate: Floats
    capacity: Floats
    capped: Bools

    def largest(self, limit: int) -> Rows:
        """Return the hosts with the most crawls, at most ``limit``."""
        busy = _largest(self.crawl_rate, limit)
        return busy[self.sources[busy] > 0]


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected costs of a policy, and its crawls per day."""

    policy: str
    harmonic_cost: float
    binary_cost: float
    crawl_rate: float


@dataclass(frozen=True, slots=True)
class Starvation:
    """Sources that change and matter, and that a plan neglects.

    Attributes:
        never: how many are never crawled.
        hardly: how many more change :data:`HARDLY` times or more between two crawls.
        idle: how many other sources are not crawled because there is nothing to gain: no
            importance, or no changes.
        worst: the first of the neglected: those never crawled by their importance, then those
            that change most often between two crawls.
    """

    never: int
    hardly: int
    idle: int
    worst: Rows


def rate_plan(specification: str, table: SourceTable, budget: float) -> CrawlPlan:
    """Return the plan of the policy ``NAME`` or ``NAME:OPTION=VALUE,…``.

    Raises:
        PolicyError: if there is no such policy, or none that divides a budget into rates; if
            it refuses the budget or the numbers of the sources.
    """
    policy = load(specification)
    if not isinstance(policy, RatePolicy):
        raise PolicyError(
            f"policy {specification}: has no crawl rates to show as a plan; use one with rates, "
            f"such as {', '.join(COMPARED)} (optimal_intervals comes close to greedy_index)"
        )
    try:
        return policy.rates(table, budget)
    except ValueError as error:
        raise PolicyError(f"policy {specification}: {error}") from error


def compare(
    table: SourceTable, budget: float, policies: Sequence[str] = COMPARED
) -> Iterator[Expectation]:
    """Yield the expected cost of each of these policies at this budget.

    Raises:
        PolicyError: as :func:`rate_plan`.
    """
    for specification in policies:
        plan = rate_plan(specification, table, budget)
        yield expectation(specification, plan, plan_costs(table, plan))


def expectation(policy: str, plan: CrawlPlan, costs: Costs) -> Expectation:
    """Return the expected costs of a plan."""
    return Expectation(
        policy, float(costs.harmonic.sum()), float(costs.binary.sum()), float(plan.crawl_rate.sum())
    )


def class_shares(table: SourceTable, plan: CrawlPlan) -> tuple[Share, Share]:
    """Split the budget into sources of incomplete and of complete observations."""
    complete = table.complete_observations
    return _share(plan.crawl_rate[~complete]), _share(plan.crawl_rate[complete])


def host_shares(table: SourceTable, plan: CrawlPlan) -> HostShares:
    """Split the budget by host."""
    capacity = table.host_capacity
    rate = np.asarray(np.bincount(table.host, plan.crawl_rate, len(capacity)), np.float64)
    return HostShares(
        np.bincount(table.host, minlength=len(capacity)),
        rate,
        capacity,
        np.isfinite(capacity) & (rate >= capacity * (1 - _ROUNDING)),
    )


def most_crawled(plan: CrawlPlan, limit: int) -> Rows:
    """Return the sources with the highest crawl rates above 0, at most ``limit``."""
    rows = _largest(plan.crawl_rate, limit)
    return rows[plan.crawl_rate[rows] > 0]


def starvation(table: SourceTable, plan: CrawlPlan, limit: int) -> Starvation:
    """Count the sources that a plan neglects, and list at most ``limit`` of them by row."""
    worthy = (table.importance > 0) & (table.change_rate > 0)
    never = worthy & plan.not_crawled
    changes = changes_between_crawls(table, plan)
    hardly = worthy & ~never & (changes >= HARDLY)
    worst = np.concatenate(
        [_largest_of(never, table.importance, limit), _largest_of(hardly, changes, limit)]
    )
    return Starvation(
        int(never.sum()),
        int(hardly.sum()),
        int((plan.not_crawled & ~worthy).sum()),
        worst[:limit],
    )


def intervals(plan: CrawlPlan) -> Floats:
    """Return the mean days between two crawls (n,); inf for a source never crawled."""
    with np.errstate(divide="ignore", over="ignore"):
        return 1.0 / plan.crawl_rate


def changes_between_crawls(table: SourceTable, plan: CrawlPlan) -> Floats:
    """Return Δ/ρ (n,): mean changes from one crawl to the next.

    inf for a source that is never crawled, 0 for one that never changes.
    """
    changes = np.zeros(len(table))
    with np.errstate(divide="ignore", over="ignore"):
        np.divide(table.change_rate, plan.crawl_rate, out=changes, where=table.change_rate > 0)
    return changes


def _share(crawl_rate: Floats) -> Share:
    return Share(len(crawl_rate), float(crawl_rate.sum()))


def _largest_of(which: Bools, values: Floats, limit: int) -> Rows:
    rows = np.flatnonzero(which)
    return rows[_largest(values[rows], limit)]


def _largest(values: Floats, limit: int) -> Rows:
    """Return the rows of the largest values, in falling order; of equal ones the first rows."""
    return np.argsort(-values, kind="stable")[:limit]
