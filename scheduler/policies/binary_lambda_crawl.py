"""BinaryLambdaCrawl (BLC): the crawl rates that minimise the binary cost under a budget.

    minimise J_b = Σ_w μ Δ/(Δ + ρ)   subject to   Σ_w ρ = R,   ρ ≥ 0,
    and, where hosts have capacities, Σ_{w in h} ρ ≤ cap_h for each host h.

    symbol  column of the table   unit             shape
    μ       importance            any              (n,)
    Δ       change_rate           changes per day  (n,)
    cap     host_capacity         crawls per day   (H,)
    R       (budget)              crawls per day

**Solution.** Where one more crawl per day saves λ, −∂J_b/∂ρ = μΔ/(Δ + ρ)² = λ, so

    ρ(λ) = max(0, √(μΔ/λ) − Δ),   λ from Σρ(λ) = R.

**It starves.** The first crawl of a source saves μ/Δ at most. All with μ/Δ ≤ λ are never
crawled: those that change too often for their importance to be kept fresh. Their harmonic cost
is infinite; :mod:`scheduler.policies.binary_lambda_crawl_floor` is the variant without that.

**Notifications** are ignored, as in the paper: every source is crawled by the clock.

Method and cost: :mod:`scheduler.budgeting.allocation`; Newton's method in λ^{−1/2}, in which Σρ is
convex and made of straight pieces, so that it ends after finitely many passes, O(n) each; a dozen
as a rule. The budget is spent to 1e-13, relative. Edge cases: a source with μ = 0 or Δ = 0 is not
crawled; where capacities bind everywhere, the rest of R is left over and the price is 0.

Reference: Azar, Horvitz, Lubetzky, Peres, Shahaf, "Tractable near-optimal policies for
crawling", PNAS 2018; BLC in Kolobov et al., NeurIPS 2019, section 7. Differs from them in:
Newton's method instead of sorting by μ/Δ; capacities of hosts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freshet.scheduler import arguments
from freshet.scheduler.arguments import Floats
from freshet.scheduler.budgeting.allocation import Hosts, allocate
from freshet.scheduler.budgeting.binary_demand import BinaryDemand
from freshet.scheduler.policy import CrawlPlan
from freshet.scheduler.sources import SourceTable


@dataclass(frozen=True, slots=True)
class BinaryLambdaCrawl:
    """The optimum of the binary cost among rates of Poisson crawling.

    At a price of 1: √9 − 1 = 2, √16 − 4 = 0 (just not worth a crawl), √25 − 1 = 4.

    >>> table = SourceTable.of([9.0, 4.0, 25.0], [1.0, 4.0, 1.0])
    >>> plan = BinaryLambdaCrawl().rates(table, 6.0)
    >>> plan.crawl_rate.tolist(), plan.price
    ([2.0, 0.0, 4.0], 1.0)
    """

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        """The optimal plan.

        Raises:
            ValueError: if the budget is no finite number above 0, or a column holds something
                else than finite numbers of at least 0.
        """
        return binary_optimum(table, arguments.budget("budget", budget), np.zeros(len(table)))


def binary_optimum(table: SourceTable, budget: float, floor: Floats) -> CrawlPlan:
    """The optimum among rates of at least ``floor`` (n,), crawls per day.

    Raises:
        ValueError: naming the column and the row.
    """
    n = len(table)
    demand = BinaryDemand(
        arguments.non_negative("importance", table.importance),
        arguments.non_negative("change_rate", table.change_rate, n),
        floor,
    )
    found = allocate(demand, budget, Hosts(table.host, table.host_capacity))
    return CrawlPlan(
        found.rates,
        np.ones(n),
        np.zeros(n, np.bool_),
        budget,
        found.left_over,
        found.price,
        found.host_price,
    )
