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

**Starvation.** The first crawl of a source saves at most μ/Δ. Sources with μ/Δ ≤ λ are never
crawled: they change too often for their importance. Their harmonic cost is infinite;
:class:`BinaryLambdaCrawlFloor` is the variant without that.

**Notifications** are ignored, as in the paper: every source is crawled by the clock.

Method and cost: :mod:`freshet.scheduler.solve.budget`; Newton's method in λ^{−1/2}, in which Σρ is
convex and piecewise linear, so that it ends after finitely many passes, usually a dozen, O(n) each.
The budget is spent to 1e-13, relative. Edge cases: a source with μ = 0 or Δ = 0 is not crawled; if
capacities bind everywhere, the rest of R is left over and the price is 0.

Reference: Azar, Horvitz, Lubetzky, Peres, Shahaf, "Tractable near-optimal policies for
crawling", PNAS 2018; BLC in Kolobov et al., NeurIPS 2019, section 7. Differs from them in:
Newton's method instead of sorting by μ/Δ; capacities of hosts.
"""

from dataclasses import dataclass

import numpy as np

from freshet.scheduler import arrays
from freshet.scheduler.policy import CrawlPlan
from freshet.scheduler.solve.budget import Hosts, allocate
from freshet.scheduler.solve.demand import BinaryDemand
from freshet.scheduler.sources import SourceTable


@dataclass(frozen=True, slots=True)
class BinaryLambdaCrawl:
    """The optimum of the binary cost among rates of Poisson crawling.

    At a price of 1: √9 − 1 = 2, √16 − 4 = 0 (at the margin), √25 − 1 = 4.

    >>> table = SourceTable.of([9.0, 4.0, 25.0], [1.0, 4.0, 1.0])
    >>> plan = BinaryLambdaCrawl().rates(table, 6.0)
    >>> plan.crawl_rate.tolist(), plan.price
    ([2.0, 0.0, 4.0], 1.0)
    """

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        """Return the optimal plan."""
        return _above_floor(table, budget, share=0.0)


# -- binary lambda crawl floor --
#
# BinaryLambdaCrawl without starvation: the binary optimum with the further constraint ρ_w ≥ εR/n
# for every source, with n the number of sources worth a crawl, and ε the share of the budget R that
# is spread evenly. The solution is ρ(λ) = max(εR/n, √(μΔ/λ) − Δ).
#
# The floor is a bound, not an addition: a source that the optimum crawls more often than εR/n gets
# no extra crawls. (Adding εR/n to the optimum for (1 − ε)R instead costs more: a harmonic cost of
# 1.75 instead of 1.68 of LambdaCrawl's on the surrogate population at R = 0.2 n.)
#
# If a host's capacity is less than the floors of its sources, they share it evenly.
#
# Reference: the non-starving BLC of Kolobov et al., NeurIPS 2019, section 7 (overlined there); the
# authors' experiments have ε = 0.4. Differs from the paper in: the paper does not specify how it
# reserves the floor; capacities of hosts.


@dataclass(frozen=True, slots=True)
class BinaryLambdaCrawlFloor:
    """The optimum of the binary cost among rates above a floor.

    Attributes:
        share: ε, at least 0 and below 1; with 0 it is BinaryLambdaCrawl.

    Raises:
        ValueError: if ``share`` is out of its range.

    Half of a budget of 6 over two sources is a floor of 1.5. The first source gets the floor (√1 −
    1 = 0 at a price of 1), the second gets the rest.

    >>> table = SourceTable.of([1.0, 30.25], [1.0, 1.0])
    >>> plan = BinaryLambdaCrawlFloor(share=0.5).rates(table, 6.0)
    >>> plan.crawl_rate.round(12).tolist(), round(plan.price, 12)  # √30.25 − 1 = 4.5
    ([1.5, 4.5], 1.0)
    """

    share: float = 0.4

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise ValueError(f"share: is {self.share}; accepted is at least 0 and below 1")

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        """Return the optimal plan."""
        return _above_floor(table, budget, self.share)


def _above_floor(table: SourceTable, budget: float, share: float) -> CrawlPlan:
    """Return the optimum with this share spread evenly, less on hosts with a lower capacity."""
    total = arrays.budget("budget", budget)
    mu = arrays.non_negative("importance", table.importance)
    delta = arrays.non_negative("change_rate", table.change_rate, len(table))
    value = (mu > 0) & (delta > 0)
    evenly = share * total / max(int(value.sum()), 1)
    sources = np.bincount(table.host, value, minlength=len(table.host_capacity))
    by_host = np.minimum(evenly, table.host_capacity / np.maximum(sources, 1))
    demand = BinaryDemand(mu, delta, np.where(value, by_host[table.host], 0.0))
    return allocate(demand, total, Hosts(table.host, table.host_capacity))
