"""One budget, at one price, for refreshing copies and for ephemeral sources.

At the price λ of a crawl, an ephemeral source is crawled every τ(λ), when its Whittle index has
reached λ: γ(τ) = λ. All other sources share the rest of the budget R by a rate policy, and their
last crawl saves p(R − Σ 1/τ). At the optimum no crawl has a higher value elsewhere:

    λ = p(R − Σ_i 1/τ_i(λ))

The demand of the ephemeral sources decreases with λ, and the price of the others increases with
that demand: one root, found by regula falsi in about ten plans. A source with crawls that are never
worth the price, λC ≥ u*, is refreshed like any other page.

    w Λ ξ̄   income   new items, in days of a stale copy times importance, per day   (k,)
    μ       decay    per day                                                           (k,)
    C       cost     of a crawl, a weight; the budget counts crawls                    (k,)
    R       budget   crawls per day                                                    one number
    λ       price    of a crawl, days of a stale copy times importance                 one number

Capacities of hosts apply to the crawls of both kinds.

Reference: Avrachenkov and Borkar 2018, Theorem 1, for T → 0; Kolobov et al. 2019, Problem 3, for p.
The common budget is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.ephemeral.policies import least_price
from freshet.scheduler.policies import whittle
from freshet.scheduler.policy import CrawlPlan
from freshet.scheduler.sources import Rows, SourceTable

#: The plan for a table and a budget; and the price of a crawl, for policies without prices.
PlanOf: TypeAlias = Callable[[SourceTable, float], CrawlPlan]
PriceOf: TypeAlias = Callable[[SourceTable, float], float]

#: Tolerance of the division of the budget, as a share of it.
_PRECISION: Final = 1e-4
#: Maximum crawls a day of one source, at a price of 0: one every ten seconds.
_MOST: Final = 8_640.0
#: Share of a host's capacity that ephemeral sources leave to the others.
_LEAST: Final = 1e-6


@dataclass(frozen=True, slots=True)
class DecayingSources:
    """The k ephemeral sources of a table; every column has length k.

    Attributes:
        row: of the table, ascending.
        income: importance Λ ξ̄ in the unit of the price, per day.
        decay: μ, per day.
        cost: C of a crawl.
    """

    row: Rows
    income: Floats
    decay: Floats
    cost: Floats

    def take(self, rows: Bools) -> DecayingSources:
        """Return some of the sources."""
        return DecayingSources(self.row[rows], self.income[rows], self.decay[rows], self.cost[rows])

    def intervals(self, price: float) -> Floats:
        """Return τ (k,) in days; inf where no crawl is ever worth the price."""
        found: Floats = np.asarray(
            whittle.elapsed_at(price, self.income, 1.0, self.decay, cost=self.cost)
        )
        return found


@dataclass(frozen=True, slots=True)
class JointPlan:
    """The division of a budget.

    Attributes:
        plan: for all rows; ephemeral sources are crawled at 1/τ.
        price: λ.
        decaying: the rows that are crawled as ephemeral sources, ascending.
    """

    plan: CrawlPlan
    price: float
    decaying: Rows


def joint_plan(
    table: SourceTable, budget: float, decaying: DecayingSources, plan_of: PlanOf, price_of: PriceOf
) -> JointPlan:
    """Return the plan at which a crawl has the same value everywhere.

    ``plan_of`` divides the rest among all other rows, ``price_of`` returns the saving of its last
    crawl; both may raise PolicyError. A budget that is not above 0 raises ValueError.
    """
    spent, price = _spent(table, budget, decaying, price_of)
    value = decaying.take(np.isfinite(decaying.intervals(price)))
    if len(value.row) < len(decaying.row):
        spent, price = _spent(table, budget, value, price_of)
    rate = _within_hosts(table, value.row, _rates(value, price))
    others = _others(table, value.row)
    used = np.bincount(table.host[value.row], rate, minlength=len(table.host_capacity))
    capacity = np.maximum(table.host_capacity - used, table.host_capacity * _LEAST)
    rest = plan_of(replace(table.take(others), host_capacity=capacity), budget - spent)
    return JointPlan(_joined(rest, others, value.row, rate, budget), price, value.row)


def _rates(decaying: DecayingSources, price: float) -> Floats:
    """Return crawls a day (k,)."""
    with np.errstate(divide="ignore"):
        return np.minimum(1 / decaying.intervals(price), _MOST)


def _spent(
    table: SourceTable, budget: float, decaying: DecayingSources, price_of: PriceOf
) -> tuple[float, float]:
    """Return crawls a day for the ephemeral sources, and the price."""
    others = table.take(_others(table, decaying.row))

    def price(spent: float) -> float:
        return price_of(others, budget - spent) if len(others) else 0.0

    def excess(spent: float) -> float:
        return float(_rates(decaying, price(spent)).sum()) - spent

    most = budget * (1 - _PRECISION)
    few, many = (0.0, excess(0.0)), (most, excess(most))
    if many[1] >= 0:
        # The others leave them the budget: then their own demand sets the price.
        return most, _own_price(decaying, most)
    spent = _root(excess, few, many, budget * _PRECISION)
    return spent, price(spent)


def _root(
    excess: Callable[[float], float],
    low: tuple[float, float],
    high: tuple[float, float],
    precision: float,
) -> float:
    """Return the root of ``excess``, to ``precision``; its slope is at most −1.

    ``low`` and ``high`` are points with their excess, at least 0 and below 0. By regula falsi, with
    half the excess of an end that stays (the Illinois method).
    """
    stayed = 0
    while True:
        middle = low[0] + (high[0] - low[0]) * low[1] / (low[1] - high[1])
        left = excess(middle)
        if abs(left) <= precision or high[0] - low[0] <= precision:
            return middle
        if left > 0:
            low, high = (middle, left), (high[0], high[1] / (2 if stayed > 0 else 1))
            stayed = 1
        else:
            low, high = (low[0], low[1] / (2 if stayed < 0 else 1)), (middle, left)
            stayed = -1


def _own_price(decaying: DecayingSources, budget: float) -> float:
    top = float(np.max(decaying.income / (decaying.decay * decaying.cost), initial=0.0))
    return least_price(lambda price: float(_rates(decaying, price).sum()), budget, top)[1]


def _others(table: SourceTable, rows: Rows) -> Bools:
    others = np.ones(len(table), np.bool_)
    others[rows] = False
    return others


def _within_hosts(table: SourceTable, rows: Rows, rate: Floats) -> Floats:
    """Return the rates, reduced where a host's capacity is less."""
    hosts = table.host[rows]
    wanted = np.bincount(hosts, rate, minlength=len(table.host_capacity))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(wanted > 0, np.minimum(table.host_capacity / wanted, 1.0), 1.0)
    return rate * share[hosts]


def _joined(rest: CrawlPlan, others: Bools, rows: Rows, rate: Floats, budget: float) -> CrawlPlan:
    crawl_rate, probability = np.zeros(len(others)), np.ones(len(others))
    on_signals = np.zeros(len(others), np.bool_)
    crawl_rate[others], crawl_rate[rows] = rest.crawl_rate, rate
    probability[others], on_signals[others] = rest.crawl_probability, rest.on_signals
    return replace(
        rest,
        crawl_rate=crawl_rate,
        crawl_probability=probability,
        on_signals=on_signals,
        bandwidth=budget,
    )
