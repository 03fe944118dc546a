"""The laws of every rate policy: what a plan is, whatever it aims at."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from math import inf, isclose, nan
from typing import TypeAlias

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.conformance.samples import (
    RateSample,
    changed_column,
    extreme,
    planned,
    shown,
)
from freshet.scheduler.policy import CrawlPlan, RatePolicy
from freshet.scheduler.sources import SourceTable

#: A law tries a policy on tables made from a seed; it returns a counter-example, or None.
RateLaw: TypeAlias = Callable[[RatePolicy, int], str | None]

#: A sum of rates may miss the budget by rounding only.
_ROUNDING = 1e-9


def rates_are_finite_and_not_negative(policy: RatePolicy, seed: int) -> str | None:
    """Check for one finite number a source, also at extreme magnitudes."""
    for sample in _all(seed):
        plan = policy.rates(sample.table, sample.budget)
        rate = np.asarray(plan.crawl_rate)
        if rate.shape != (len(sample.table),):
            return f"{sample.name}: crawl_rate has shape {rate.shape}"
        if row := _first(~(np.isfinite(rate) & (rate >= 0))):
            return f"{sample.name}: {shown(sample.table, row[0])} gets {rate[row[0]]}"
    return None


def what_is_spent_and_left_over_is_the_budget(policy: RatePolicy, seed: int) -> str | None:
    """Check Σρ + left_over = bandwidth = budget."""
    for sample in _all(seed):
        plan = policy.rates(sample.table, sample.budget)
        spent = float(plan.crawl_rate.sum())
        whole = isclose(spent + plan.left_over, sample.budget, rel_tol=_ROUNDING)
        if not whole or plan.bandwidth != sample.budget or plan.left_over < 0:
            return (
                f"{sample.name}: of a budget of {sample.budget:.6g} it spends {spent:.6g} and "
                f"leaves over {plan.left_over:.6g} of a bandwidth of {plan.bandwidth:.6g}"
            )
    return None


def capacities_of_hosts_are_kept(policy: RatePolicy, seed: int) -> str | None:
    """Check that the crawl rates of a host's sources keep to its capacity."""
    for sample in _all(seed):
        plan = policy.rates(sample.table, sample.budget)
        capacity = sample.table.host_capacity
        total = np.bincount(sample.table.host, plan.crawl_rate, minlength=len(capacity))
        if host := _first(total > capacity * (1 + _ROUNDING)):
            return (
                f"{sample.name}: host {host[0]} of capacity {capacity[host[0]]:.6g} gets "
                f"{total[host[0]]:.6g} crawls per day"
            )
    return None


def crawls_on_signals_are_a_share_of_the_signals(policy: RatePolicy, seed: int) -> str | None:
    """Check ρ = pΔ, 0 ≤ p ≤ 1 on signals; elsewhere p is 1."""
    for sample in _all(seed):
        plan, table = policy.rates(sample.table, sample.budget), sample.table
        if row := _first(_wrong_shares(table, plan)):
            return (
                f"{sample.name}: {shown(table, row[0])} has crawl rate "
                f"{plan.crawl_rate[row[0]]:.6g}, probability {plan.crawl_probability[row[0]]:.6g}, "
                f"on signals: {plan.on_signals[row[0]]}"
            )
    return None


def the_order_of_sources_does_not_matter(policy: RatePolicy, seed: int) -> str | None:
    """Check that shuffled sources get the same rates, shuffled."""
    order = np.random.default_rng(seed)
    for sample in planned(seed):
        shuffle = order.permutation(len(sample.table))
        rate = policy.rates(sample.table, sample.budget).crawl_rate[shuffle]
        again = policy.rates(sample.table.take(shuffle), sample.budget).crawl_rate
        if row := _first(differ(rate, again, sample.budget)):
            return (
                f"{sample.name}: {shown(sample.table, int(shuffle[row[0]]))} gets "
                f"{rate[row[0]]:.9g}, and in another order {again[row[0]]:.9g}"
            )
    return None


def the_same_question_has_the_same_answer(policy: RatePolicy, seed: int) -> str | None:
    """Check that nothing is random and nothing is remembered."""
    samples = planned(seed)
    once = [policy.rates(sample.table, sample.budget).crawl_rate for sample in samples]
    for sample, first in zip(samples, once, strict=True):
        # Once more after the others, and once more at once.
        for _ in range(2):
            again = policy.rates(sample.table, sample.budget).crawl_rate
            if row := _first(first != again):
                return (
                    f"{sample.name}: {shown(sample.table, row[0])} gets {first[row[0]]!r}, "
                    f"then {again[row[0]]!r}"
                )
    return None


def the_table_is_left_as_it_was(policy: RatePolicy, seed: int) -> str | None:
    """Check that a plan writes to no column of the table."""
    for sample in planned(seed):
        before = deepcopy(sample.table)
        policy.rates(sample.table, sample.budget)
        if column := changed_column(before, sample.table):
            return f"{sample.name}: column {column} was changed"
    return None


def a_budget_that_is_none_is_refused(policy: RatePolicy, seed: int) -> str | None:
    """Check that 0, negative numbers, NaN and infinity raise ValueError."""
    table = planned(seed)[1].table
    for budget in (0.0, -1.0, nan, inf):
        try:
            policy.rates(table, budget)
        except ValueError:
            continue
        return f"a budget of {budget} is accepted"
    return None


LAWS: tuple[RateLaw, ...] = (
    rates_are_finite_and_not_negative,
    what_is_spent_and_left_over_is_the_budget,
    capacities_of_hosts_are_kept,
    crawls_on_signals_are_a_share_of_the_signals,
    the_order_of_sources_does_not_matter,
    the_same_question_has_the_same_answer,
    the_table_is_left_as_it_was,
    a_budget_that_is_none_is_refused,
)


def differ(one: Floats, other: Floats, budget: float) -> Bools:
    """Return where rates differ by more than rounding, on the scale of the budget."""
    far: Bools = ~np.isclose(one, other, rtol=1e-6, atol=1e-9 * budget)
    return far


def _all(seed: int) -> list[RateSample]:
    return [*planned(seed), *extreme(seed)]


def _wrong_shares(table: SourceTable, plan: CrawlPlan) -> Bools:
    p, on_signals = plan.crawl_probability, plan.on_signals
    possible = (p >= 0) & (p <= 1) & (table.complete_observations | ~on_signals)
    share = np.isclose(plan.crawl_rate, p * table.change_rate, rtol=_ROUNDING, atol=0)
    wrong: Bools = ~(possible & np.where(on_signals, share, p == 1))
    return wrong


def _first(where: Bools) -> list[int]:
    """Return the first row where something holds, if there is one."""
    return [int(row) for row in np.flatnonzero(where)[:1]]
