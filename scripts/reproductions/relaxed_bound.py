"""A lower bound of the harmonic cost of all deterministic policies, for figures to stand beside.

None does better than the relaxed problem of :mod:`freshet.scheduler.policies.optimal_intervals`, in
which the budget R must be kept on average only and k may be mixed: by duality its cost is at least

    g = Σ_w min [cost + λ_h · rate] − λR − Σ_h (λ_h − λ) cap_h      for any λ_h ≥ λ ≥ 0,

with equality at the optimal prices. The bound is g at the prices of the plan.
"""

from __future__ import annotations

import numpy as np

from freshet.scheduler.arrays import Floats
from freshet.scheduler.costs import costs_of
from freshet.scheduler.policies.optimal_intervals import OptimalIntervals
from freshet.scheduler.solve.demand import IntervalDemand
from freshet.scheduler.sources import SourceTable


def relaxed_bound(table: SourceTable, bandwidth: float) -> float:
    """Return a lower bound of the total harmonic cost of policies at ``bandwidth``.

    Raises:
        ValueError: as :meth:`OptimalIntervals.rates` does.

    Alone, a source of importance e that changes once a day costs, crawled daily at the price 1,
    e (Ein(1) − 1 + 1 − e⁻¹) = e · 0.796600 − 1.

    >>> round(relaxed_bound(SourceTable.of([np.e], [1.0]), 1.0), 5)
    1.16538
    """
    plan = OptimalIntervals().rates(table, bandwidth)
    price, host_price = plan.price or 0.0, np.asarray(plan.host_price)
    mine = host_price[table.host]
    rates = _wanted(table, mine)
    costs = costs_of(
        table.importance,
        table.change_rate,
        rates,
        complete_observations=table.complete_observations,
        crawling="periodic",
    )
    full = host_price > price
    of_hosts = (host_price[full] - price) * table.host_capacity[full]
    return float((costs.harmonic + mine * rates).sum() - price * bandwidth - of_hosts.sum())


def _wanted(table: SourceTable, price: Floats) -> Floats:
    """Return each source's best rate (n,) at its price: by the clock, or Δ/⌈λΔ/μ⌉ on signals."""
    demand = IntervalDemand(table.importance, table.change_rate)
    rates, slopes = np.empty((2, len(table)))
    demand.rates_at(price, rates, slopes)
    received = demand.active & table.complete_observations
    ratio = np.divide(
        price * table.change_rate, table.importance, out=np.ones(len(table)), where=received
    )
    return np.where(received, table.change_rate / np.maximum(np.ceil(ratio), 1.0), rates)
