"""Crawl rates in proportion to weights, within the capacities of hosts.

For policies that have a rule instead of an objective; those that minimise a cost keep
capacities by prices (:mod:`freshet.scheduler.budgeting.allocation`).
"""

from __future__ import annotations

import numpy as np

from freshet.scheduler.arguments import Floats
from freshet.scheduler.budgeting.prices import out_of_range
from freshet.scheduler.sources import Rows


# What leaves the range of numbers ends as a factor that is refused.
@np.errstate(over="ignore", invalid="ignore")
def in_proportion(
    weight: Floats, budget: float, host: Rows, host_capacity: Floats
) -> tuple[Floats, float]:
    """Rates ρ_w = θ_h weight_w that spend ``budget``, and what is left over of it.

    All hosts have the same θ but those whose capacity it would break, which spend just that:
    what a full host cannot take goes to the others, in proportion (water-filling),

        Σ_h min(cap_h, θ B_h) = R,   B_h = Σ_{w in h} weight_w.

    Args:
        weight: (n,), at least 0.
        budget: R, crawls per day.
        host: (n,), codes 0 to H − 1.
        host_capacity: cap (H,), crawls per day, above 0; inf: no limit.

    Method: hosts in the order of cap_h/B_h, in which they fill up, O(n + H log H); exact but
    for rounding. If all are full, or nothing has a weight, the rest is left over.

    Raises:
        ValueError: if weights are too large or too small to be computed with.

    >>> full, free = 1.0, np.inf
    >>> host, capacity = np.array([0, 1, 1]), np.array([full, free])
    >>> rates, left_over = in_proportion(np.array([3.0, 1.0, 2.0]), 4.0, host, capacity)
    >>> rates.tolist(), left_over  # in proportion alone host 0 would get 2
    ([1.0, 1.0, 2.0], 0.0)
    """
    demand = np.bincount(host, weight, minlength=len(host_capacity))
    used = np.flatnonzero(demand)
    fills_at = host_capacity[used] / demand[used]
    order = np.argsort(fills_at, kind="stable")
    used, fills_at = used[order], fills_at[order]
    full = np.cumsum(host_capacity[used])
    # Hosts that are not full yet, summed from the end: a difference would lose its digits.
    others = np.cumsum(demand[used][::-1])[::-1]
    level = (budget - np.concatenate(([0.0], full[:-1]))) / others if len(used) else np.empty(0)
    reached = np.flatnonzero(level <= fills_at)
    if not len(reached):
        factor, left_over = fills_at, budget - _last(full)
    else:
        factor, left_over = np.minimum(fills_at, level[reached[0]]), 0.0
    if not (np.isfinite(factor) & (factor >= np.finfo(np.float64).tiny)).all():
        raise out_of_range()
    return _at(weight, host, used, factor, len(host_capacity)), left_over


def _at(weight: Floats, host: Rows, used: Rows, factor: Floats, hosts: int) -> Floats:
    by_host = np.zeros(hosts)
    by_host[used] = factor
    rates: Floats = weight * by_host[host]
    return rates


def _last(full: Floats) -> float:
    return float(full[-1]) if len(full) else 0.0
