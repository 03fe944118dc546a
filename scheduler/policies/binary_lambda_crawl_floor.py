"""BinaryLambdaCrawl that starves no source: the binary optimum above a floor.

    minimise J_b = Σ_w μ Δ/(Δ + ρ)   subject to   Σ_w ρ = R,   ρ_w ≥ εR/n for every source,
    and Σ_{w in h} ρ ≤ cap_h for each host h,

n the number of sources that are worth a crawl, ε the share of the budget R that is spread
evenly; symbols, units and method as in :mod:`freshet.scheduler.policies.binary_lambda_crawl`. The
solution is ρ(λ) = max(εR/n, √(μΔ/λ) − Δ).

The floor is a bound, not an extra: a source that the optimum crawls more often than εR/n gets
nothing on top. (Added on top of the optimum for (1 − ε)R instead, it costs more: a harmonic
cost of 1.75 instead of 1.68 of LambdaCrawl's on the surrogate population at R = 0.2 n.)

Where a host's capacity is less than the floors of its sources, they share it evenly.

Reference: the non-starving BLC of Kolobov et al., NeurIPS 2019, section 7 (overlined there);
the authors' experiments have ε = 0.4. Differs from the paper in: the paper does not say how it
reserves the floor; capacities of hosts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freshet.scheduler import arguments
from freshet.scheduler.arguments import Floats
from freshet.scheduler.policies.binary_lambda_crawl import binary_optimum
from freshet.scheduler.policy import CrawlPlan
from freshet.scheduler.sources import SourceTable


@dataclass(frozen=True, slots=True)
class BinaryLambdaCrawlFloor:
    """The optimum of the binary cost among rates above a floor.

    Attributes:
        share: ε, at least 0 and below 1; with 0 it is BinaryLambdaCrawl.

    Raises:
        ValueError: if ``share`` is out of its range.

    Half of a budget of 6 over two sources is a floor of 1.5. The first is worth no more
    (√1 − 1 = 0 at a price of 1), the second gets the rest.

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
        """The optimal plan.

        Raises:
            ValueError: as for :meth:`BinaryLambdaCrawl.rates`.
        """
        floor = _floor(table, self.share * arguments.budget("budget", budget))
        return binary_optimum(table, budget, floor)


def _floor(table: SourceTable, reserved: float) -> Floats:
    """``reserved`` spread evenly; less where a host's capacity is less than its sources' floors."""
    worth = (table.importance > 0) & (table.change_rate > 0)
    evenly = reserved / max(int(worth.sum()), 1)
    sources = np.bincount(table.host, worth, minlength=len(table.host_capacity))
    by_host = np.minimum(evenly, table.host_capacity / np.maximum(sources, 1))
    return np.where(worth, by_host[table.host], 0.0)
