"""The laws of rate policies that minimise a cost under a budget.

    minimise J(ρ)   subject to   Σρ ≤ R, Σ_{host h} ρ ≤ cap_h, ρ ≥ 0, ρ ≤ Δ on signals

J is convex in the crawl rates, so a plan that no exchange between two sources improves is the
optimum; the other laws catch constants that got into a formula with the wrong unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isclose
from typing import TypeAlias

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.conformance.laws import differ
from freshet.scheduler.conformance.samples import RateSample, planned, shown
from freshet.scheduler.costs import binary_cost, harmonic_cost
from freshet.scheduler.policy import CrawlPlan, RatePolicy
from freshet.scheduler.sources import SourceTable

#: A law for a policy that minimises the named cost, on tables made from a seed.
OptimalLaw: TypeAlias = Callable[[RatePolicy, str, int], str | None]

_DAYS_IN_A_WEEK = 7.0
_COSTS = {"harmonic": harmonic_cost, "binary": binary_cost}


def in_weeks_the_plan_is_the_same(policy: RatePolicy, objective: str, seed: int) -> str | None:
    """Check that rates times seven give crawl rates times seven, price by seven."""
    for sample in _samples(objective, seed):
        plan = policy.rates(sample.table, sample.budget)
        weekly = policy.rates(_times(sample.table, _DAYS_IN_A_WEEK), 7 * sample.budget)
        if wrong := _compared(sample, plan, weekly, rate_factor=7, price_factor=1 / 7):
            return wrong
    return None


def importance_has_no_unit(policy: RatePolicy, objective: str, seed: int) -> str | None:
    """Check that importance times three gives the same rates, the price times three."""
    for sample in _samples(objective, seed):
        plan = policy.rates(sample.table, sample.budget)
        heavier = replace(sample.table, importance=3 * sample.table.importance)
        again = policy.rates(heavier, sample.budget)
        if wrong := _compared(sample, plan, again, rate_factor=1, price_factor=3):
            return wrong
    return None


def the_price_is_what_one_more_crawl_saves(
    policy: RatePolicy, objective: str, seed: int
) -> str | None:
    """Check λ = −dJ/dR by a central difference of the cost."""
    for sample in _samples(objective, seed):
        price = policy.rates(sample.table, sample.budget).price
        if price is None:
            return f"{sample.name}: the plan has no price"
        step = 1e-4 * sample.budget
        less, more = (
            _cost(objective, sample.table, policy.rates(sample.table, sample.budget + change))
            for change in (-step, step)
        )
        saved = (less - more) / (2 * step)
        if not isclose(price, saved, rel_tol=1e-4, abs_tol=1e-9 * less / sample.budget):
            return f"{sample.name}: the price is {price:.9g}, one more crawl saves {saved:.9g}"
    return None


def no_other_plan_costs_less(policy: RatePolicy, objective: str, seed: int) -> str | None:
    """Check against plans that move crawls between two sources, and random ones."""
    rng = np.random.default_rng(seed)
    for sample in _samples(objective, seed):
        table = sample.table
        plan = policy.rates(table, sample.budget)
        cost = _cost(objective, table, plan)
        shares = rng.dirichlet(np.full(len(table), 0.5), 50)
        others = [*_exchanges(plan), *(sample.budget * shares)]
        for rate in others:
            if not _feasible(table, rate, sample.budget):
                continue
            other = _cost_of(objective, table, rate, table.complete_observations)
            if other < cost * (1 - 1e-9):
                row = int(np.argmax(rate - plan.crawl_rate))
                return (
                    f"{sample.name}: it costs {cost:.9g}; {shown(table, row)} crawled "
                    f"{rate[row]:.6g} instead of {plan.crawl_rate[row]:.6g} times a day, at the "
                    f"expense of others, makes that {other:.9g}"
                )
    return None


LAWS: tuple[OptimalLaw, ...] = (
    in_weeks_the_plan_is_the_same,
    importance_has_no_unit,
    the_price_is_what_one_more_crawl_saves,
    no_other_plan_costs_less,
)


def _samples(objective: str, seed: int) -> list[RateSample]:
    """Return samples whose objective is strictly convex (binary cost on signals is linear)."""
    return [
        sample
        for sample in planned(seed)
        if objective == "harmonic" or not sample.table.complete_observations.any()
    ]


def _compared(
    sample: RateSample,
    plan: CrawlPlan,
    again: CrawlPlan,
    *,
    rate_factor: float,
    price_factor: float,
) -> str | None:
    expected = rate_factor * plan.crawl_rate
    for row in np.flatnonzero(differ(expected, again.crawl_rate, rate_factor * sample.budget))[:1]:
        return (
            f"{sample.name}: {shown(sample.table, int(row))} gets {again.crawl_rate[row]:.9g} "
            f"instead of {expected[row]:.9g}"
        )
    if plan.price is None or again.price is None:
        return f"{sample.name}: the plan has no price"
    if not isclose(price_factor * plan.price, again.price, rel_tol=1e-6):
        return (
            f"{sample.name}: the price is {again.price:.9g} "
            f"instead of {price_factor * plan.price:.9g}"
        )
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
    """Yield the plan with some crawls, or some left over, given to another source."""
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


def _cost(objective: str, table: SourceTable, plan: CrawlPlan) -> float:
    return _cost_of(objective, table, plan.crawl_rate, plan.on_signals)


def _cost_of(objective: str, table: SourceTable, rate: Floats, on_signals: Bools) -> float:
    return _COSTS[objective](
        table.importance, table.change_rate, rate, complete_observations=on_signals
    )
