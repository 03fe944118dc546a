"""Summaries of a plan: the split of the budget, and the expected cost of every policy.

Sources and hosts are rows of the table.
Rates are per day; costs are sums over the sources, time averages weighted with importance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from freshet.scheduler import PolicyError
from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.costs import Costs, plan_costs
from freshet.scheduler.policy import CrawlPlan, RatePolicy, load
from freshet.scheduler.sources import Rows, SourceTable

#: The policies that a plan is compared with. ``greedy_index`` has no rates; its cost is within one
#: per cent of ``optimal_intervals``.
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

#: A source with this many changes between two crawls counts as hardly crawled.
HARDLY = 10.0

#: Relative tolerance within which a host at its capacity counts as capped.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class CrawlShare:
    """The number of some sources, and their crawls per day."""

    sources: int
    crawl_rate: float


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected costs of a policy, and its crawls per day."""

    policy: str
    harmonic_cost: float
    binary_cost: float
    crawl_rate: float


def rate_plan(specification: str, table: SourceTable, budget: float) -> CrawlPlan:
    """Return the plan of the policy ``NAME`` or ``NAME:OPTION=VALUE,…``.

    Raises:
        PolicyError: if the policy does not exist, does not divide a budget into rates, or refuses
            the budget or the numbers of the sources.
    """
    policy = load(specification)
    if not isinstance(policy, RatePolicy):
        raise PolicyError(
            f"policy {specification}: has no crawl rates to show as a plan; use one with rates, "
            f"such as {', '.join(COMPARED)} (optimal_intervals is close to greedy_index)"
        )
    try:
        return policy.rates(table, budget)
    except ValueError as error:
        raise PolicyError(f"policy {specification}: {error}") from error


def compare(
    table: SourceTable, budget: float, policies: Sequence[str] = COMPARED
) -> Iterator[Expectation]:
    """Yield the expected cost of each policy at this budget; raises as :func:`rate_plan`."""
    for specification in policies:
        plan = rate_plan(specification, table, budget)
        yield expectation(specification, plan, plan_costs(table, plan))


def expectation(policy: str, plan: CrawlPlan, costs: Costs) -> Expectation:
    """Return the expected costs of a plan."""
    return Expectation(
        policy, float(costs.harmonic.sum()), float(costs.binary.sum()), float(plan.crawl_rate.sum())
    )


def class_shares(table: SourceTable, plan: CrawlPlan) -> tuple[CrawlShare, CrawlShare]:
    """Split the budget into sources of incomplete and of complete observations."""
    complete = table.complete_observations
    return _share(plan.crawl_rate[~complete]), _share(plan.crawl_rate[complete])


def host_shares(table: SourceTable, plan: CrawlPlan) -> tuple[Rows, Floats, Bools]:
    """Return the sources of each host, its crawls per day, and whether its capacity binds; (H,)."""
    capacity = table.host_capacity
    rate = np.asarray(np.bincount(table.host, plan.crawl_rate, len(capacity)), np.float64)
    capped = np.isfinite(capacity) & (rate >= capacity * (1 - _ROUNDING))
    return np.bincount(table.host, minlength=len(capacity)), rate, capped


def most_crawled(plan: CrawlPlan, limit: int) -> Rows:
    """Return the sources with the highest crawl rates above 0, at most ``limit``."""
    rows = largest(plan.crawl_rate, limit)
    return rows[plan.crawl_rate[rows] > 0]


def starvation(table: SourceTable, plan: CrawlPlan, limit: int) -> tuple[int, int, int, Rows]:
    """Count the sources that a plan neglects, and list at most ``limit`` rows, the worst first.

    Returns:
        The number of sources with importance and changes that are never crawled; the number of
        others with importance and changes that change :data:`HARDLY` times or more between two
        crawls; the number of sources that are not crawled because a crawl would gain nothing; and
        rows: first the sources never crawled, by importance, then the hardly crawled ones, by
        changes between two crawls.
    """
    relevant = (table.importance > 0) & (table.change_rate > 0)
    never = relevant & plan.not_crawled
    hardly = np.flatnonzero(relevant & ~never & (table.change_rate >= HARDLY * plan.crawl_rate))
    changes = table.change_rate[hardly] / plan.crawl_rate[hardly]
    first = np.flatnonzero(never)
    first = first[largest(table.importance[first], limit)]
    worst = np.concatenate([first, hardly[largest(changes, limit)]])[:limit]
    return int(never.sum()), len(hardly), int((plan.not_crawled & ~relevant).sum()), worst


def intervals(plan: CrawlPlan) -> Floats:
    """Return the mean days between two crawls (n,); inf for a source never crawled."""
    with np.errstate(divide="ignore", over="ignore"):
        return 1.0 / plan.crawl_rate


def _share(crawl_rate: Floats) -> CrawlShare:
    return CrawlShare(len(crawl_rate), float(crawl_rate.sum()))


def largest(values: Floats, limit: int) -> Rows:
    """Return the rows of the largest values, in descending order; ties in order of row."""
    return np.argsort(-values, kind="stable")[:limit]
