"""The laws for rate policies that minimise a cost under a budget.

    minimise J(ρ)   subject to   Σρ ≤ R, Σ_{host h} ρ ≤ cap_h, ρ ≥ 0, ρ ≤ Δ on signals

J is convex in the crawl rates, so a plan that cannot be improved by an exchange between two sources
is the optimum; the other laws detect constants with a wrong unit in a formula.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isclose
from typing import TypeAlias

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.conformance.laws import differ
from freshet.scheduler.conformance.samples import planned, shown
from freshet.scheduler.costs import binary_cost, harmonic_cost
from freshet.scheduler.policy import CrawlPlan, RatePolicy
from freshet.scheduler.sources import SourceTable

#: The cost of crawl rates (n,) on the sources of a table, some of which are crawled on signals
#: (n,).
Cost: TypeAlias = Callable[[SourceTable, Floats, Bools], float]

_DAYS_IN_A_WEEK = 7.0


def the_plan_does_not_depend_on_the_unit_of_time(
    policy: RatePolicy, table: SourceTable, budget: float, _cost: Cost
) -> str | None:
    """Check that rates times seven give crawl rates times seven, price by seven."""
    plan = policy.rates(table, budget)
    weekly = policy.rates(_times(table, _DAYS_IN_A_WEEK), 7 * budget)
    return _compared(table, plan, weekly, rate_factor=7, price_factor=1 / 7)


def the_plan_does_not_depend_on_the_unit_of_importance(
    policy: RatePolicy, table: SourceTable, budget: float, _cost: Cost
) -> str | None:
    """Check that importance times three gives the same rates, the price times three."""
    plan = policy.rates(table, budget)
    again = policy.rates(replace(table, importance=3 * table.importance), budget)
    return _compared(table, plan, again, rate_factor=1, price_factor=3)


def the_price_is_the_saving_of_one_more_crawl(
    policy: RatePolicy, table: SourceTable, budget: float, cost: Cost
) -> str | None:
    """Check λ = −dJ/dR by a central difference of the cost."""
    price = policy.rates(table, budget).price
    if price is None:
        return "the plan has no price"
    step = 1e-4 * budget
    plans = [policy.rates(table, budget + change) for change in (-step, step)]
    less, more = (cost(table, plan.crawl_rate, plan.on_signals) for plan in plans)
    saved = (less - more) / (2 * step)
    if not isclose(price, saved, rel_tol=1e-4, abs_tol=1e-9 * less / budget):
        return f"the price is {price:.9g}, one more crawl saves {saved:.9g}"
    return None


def no_other_plan_costs_less(
    policy: RatePolicy, table: SourceTable, budget: float, cost: Cost
) -> str | None:
    """Compare with plans that move crawls between two sources, and with random plans."""
    plan = policy.rates(table, budget)
    best = cost(table, plan.crawl_rate, plan.on_signals)
    shares = np.random.default_rng(len(table)).dirichlet(np.full(len(table), 0.5), 50)
    for rate in (*_exchanges(plan), *(budget * shares)):
        if not _feasible(table, rate, budget):
            continue
        other = cost(table, rate, table.complete_observations)
        if other < best * (1 - 1e-9):
            row = int(np.argmax(rate - plan.crawl_rate))
            return (
                f"it costs {best:.9g}; {shown(table, row)} crawled {rate[row]:.6g} instead of "
                f"{plan.crawl_rate[row]:.6g} times a day, at the expense of others, makes that "
                f"{other:.9g}"
            )
    return None


LAWS: tuple[Callable[[RatePolicy, SourceTable, float, Cost], str | None], ...] = (
    the_plan_does_not_depend_on_the_unit_of_time,
    the_plan_does_not_depend_on_the_unit_of_importance,
    the_price_is_the_saving_of_one_more_crawl,
    no_other_plan_costs_less,
)


def convex(objective: str, seed: int) -> list[tuple[str, SourceTable, float, Cost]]:
    """Return samples with a strictly convex objective (the binary cost on signals is linear)."""
    cost_of = harmonic_cost if objective == "harmonic" else binary_cost

    def cost(table: SourceTable, rate: Floats, on_signals: Bools) -> float:
        return cost_of(table.importance, table.change_rate, rate, complete_observations=on_signals)

    return [
        (name, table, budget, cost)
        for name, table, budget in planned(seed)
        if objective == "harmonic" or not table.complete_observations.any()
    ]


def _compared(
    table: SourceTable, plan: CrawlPlan, new: CrawlPlan, *, rate_factor: float, price_factor: float
) -> str | None:
    rate, expected = new.crawl_rate, rate_factor * plan.crawl_rate
    for row in np.flatnonzero(differ(expected, rate, new.bandwidth))[:1]:
        return f"{shown(table, int(row))} gets {rate[row]:.9g} instead of {expected[row]:.9g}"
    if plan.price is None or new.price is None:
        return "the plan has no price"
    if not isclose(price_factor * plan.price, new.price, rel_tol=1e-6):
        return f"the price is {new.price:.9g} instead of {price_factor * plan.price:.9g}"
    return None


def _times(table: SourceTable, factor: float) -> SourceTable:
    """Return the same sources with another unit of time."""
    return replace(
        table,
        change_rate=factor * table.change_rate,
        signal_rate=factor * table.signal_rate,
        host_capacity=factor * table.host_capacity,
    )


def _exchanges(plan: CrawlPlan) -> Iterator[Floats]:
    """Yield the plan with some crawls, or some left-over budget, moved to another source."""
    rate = plan.crawl_rate
    for receiver in range(len(rate)):
        for share in (0.5, 0.03):
            more = rate.copy()
            more[receiver] += share * plan.left_over
            yield more
            for giver in range(len(rate)):
                moved = rate.copy()
                moved[giver] -= share * rate[giver]
                moved[receiver] += share * rate[giver]
                yield moved


def _feasible(table: SourceTable, rate: Floats, budget: float) -> bool:
    total = np.bincount(table.host, rate, minlength=len(table.host_capacity))
    within = (total <= table.host_capacity * (1 + 1e-12)).all()
    answering = (rate <= table.change_rate)[table.complete_observations].all()
    return bool(within and answering and rate.sum() <= budget * (1 + 1e-12))
