"""The laws for all policies, by kind: functions with sentences as names.

A law tests a policy on a sample; it returns a counter-example, or None.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from math import inf, isclose, isfinite, nan
from typing import TypeAlias

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.conformance.samples import (
    NOW,
    RateSample,
    changed_column,
    extreme,
    planned,
    shown,
)
from freshet.scheduler.policy import (
    CrawlPlan,
    IndexPolicy,
    IntervalPolicy,
    Pace,
    RatePolicy,
    Revisit,
)
from freshet.scheduler.sources import Rows, SourceTable

#: Vectorised functions may round differently at the end of a column than in its middle.
_ROUNDING = 1e-9

# -- index laws --------------------------------------------------------------


def values_are_finite_and_not_negative(policy: IndexPolicy, table: SourceTable) -> str | None:
    """Check for one finite number per source, also at extreme magnitudes."""
    index = np.asarray(policy.index(table, NOW))
    if index.shape != (len(table),):
        return f"the index has shape {index.shape}"
    return _violation(table, ~(np.isfinite(index) & (index >= 0)), "has the index {}", index)


def the_index_does_not_decrease_with_time(policy: IndexPolicy, table: SourceTable) -> str | None:
    """Check that an index does not decrease between two events."""
    before = policy.index(table, NOW)
    for later in (1 / 64, 1.0, 10.0, 1000.0):
        after = policy.index(table, NOW + later)
        fallen = after < before * (1 - _ROUNDING)
        sentence = f"has the index {{}}, and {{}} {later:g} days later"
        if wrong := _violation(table, fallen, sentence, before, after):
            return wrong
        before = after
    return None


def the_index_of_a_source_depends_on_its_row_only(
    policy: IndexPolicy, table: SourceTable
) -> str | None:
    """Check that the index of some rows, in any order, equals those rows of the whole index."""
    n = len(table)
    index = policy.index(table, NOW)
    for rows in (np.arange(n)[::-1], *np.arange(n)[:, None]):
        alone = policy.index(table.take(rows), NOW)
        if wrong := _unlike(table, rows, index[rows], alone):
            return wrong
    return None


def the_index_is_zero_right_after_a_crawl(policy: IndexPolicy, table: SourceTable) -> str | None:
    """Check that at age 0, without pending signals, the index is 0."""
    n = len(table)
    crawled = replace(table, last_crawl=np.full(n, NOW), pending_signals=np.zeros(n, np.int64))
    index = policy.index(crawled, NOW)
    return _violation(table, index != 0, "has the index {} right after a crawl", index)


def the_index_is_zero_without_importance_or_changes(
    policy: IndexPolicy, table: SourceTable
) -> str | None:
    """Check that importance 0 or change rate 0 gives index 0."""
    index = policy.index(table, NOW)
    idle = (table.importance == 0) | (table.change_rate == 0)
    return _violation(table, idle & (index != 0), "has the index {}", index)


def the_index_is_proportional_to_importance(policy: IndexPolicy, table: SourceTable) -> str | None:
    """Check that three times the importance gives three times the index."""
    index = policy.index(table, NOW)
    threefold = policy.index(replace(table, importance=3 * table.importance), NOW)
    wrong = ~np.isclose(threefold, 3 * index, rtol=_ROUNDING, atol=0)
    return _violation(
        table, wrong, "has the index {}, and {} at three times the importance", index, threefold
    )


def the_index_does_not_depend_on_the_calendar(
    policy: IndexPolicy, table: SourceTable
) -> str | None:
    """Check that moving all days by 1024 changes no value, if days are exact."""
    if (table.last_crawl * 64 % 1).any():
        return None
    index = policy.index(table, NOW)
    later = policy.index(replace(table, last_crawl=table.last_crawl + 1024), NOW + 1024)
    wrong = ~np.isclose(later, index, rtol=_ROUNDING, atol=0)
    return _violation(table, wrong, "has the index {}, and {} on days 1024 later", index, later)


def the_index_is_deterministic_and_does_not_modify_the_table(
    policy: IndexPolicy, table: SourceTable
) -> str | None:
    """Check that results repeat and the table is not modified."""
    before = deepcopy(table)
    first = policy.index(table, NOW).copy()
    if column := changed_column(before, table):
        return f"column {column} was changed"
    policy.index(table, NOW + 1)
    second = policy.index(table, NOW)
    return _violation(table, first != second, "has the index {}, then {}", first, second)


INDEX_LAWS: tuple[Callable[[IndexPolicy, SourceTable], str | None], ...] = (
    values_are_finite_and_not_negative,
    the_index_does_not_decrease_with_time,
    the_index_of_a_source_depends_on_its_row_only,
    the_index_is_zero_right_after_a_crawl,
    the_index_is_zero_without_importance_or_changes,
    the_index_is_proportional_to_importance,
    the_index_does_not_depend_on_the_calendar,
    the_index_is_deterministic_and_does_not_modify_the_table,
)


def _violation(table: SourceTable, wrong: Bools, sentence: str, *columns: Floats) -> str | None:
    """Describe the first source that breaks a law, if there is one."""
    for row in _first(wrong):
        figures = sentence.format(*(f"{column[row]:.9g}" for column in columns))
        return (
            f"{shown(table, row)}, {NOW - table.last_crawl[row]:.6g} days old, "
            f"{table.pending_signals[row]} signals, {figures}"
        )
    return None


def _unlike(table: SourceTable, rows: Rows, together: Floats, alone: Floats) -> str | None:
    for place in _first(~np.isclose(alone, together, rtol=_ROUNDING, atol=0)):
        return (
            f"{shown(table, int(rows[place]))} has the index {together[place]:.9g}, and "
            f"{alone[place]:.9g} at row {place} of {len(rows)}"
        )
    return None


# -- interval laws --
#
# Policies are run from the first capture on: they must handle the states that they reach. It is not
# required that an unchanged source waits longer than before: a policy may synchronise with the time
# of changes.

#: A history: the state before, the visit and the state after, for each capture in order.
History: TypeAlias = list[tuple[Pace | None, Revisit, Pace]]

#: Long enough for an unbounded factor of 1.2 to overflow a float.
_LONG = 4_000


def intervals_are_positive_and_finite(_policy: IntervalPolicy, history: History) -> str | None:
    """Check intervals after thousands of captures with or without changes."""
    for number, (previous, seen, pace) in enumerate(history):
        if not (isfinite(pace.interval) and pace.interval > 0):
            return f"capture {number}, {seen} after {previous}, gives {pace}"
    return None


def the_next_crawl_is_in_the_future(_policy: IntervalPolicy, history: History) -> str | None:
    """Check that a crawl is due after the capture that set it."""
    for number, (previous, seen, pace) in enumerate(history):
        if not (isfinite(pace.due_at) and pace.due_at > seen.at):
            return f"capture {number}, {seen} after {previous}, gives {pace}"
    return None


def a_change_does_not_lengthen_the_interval(policy: IntervalPolicy, history: History) -> str | None:
    """Check that a change never lengthens the interval."""
    for previous, seen, _ in history[1:]:
        changed = policy.next_interval(previous, replace(seen, changed=True))
        unchanged = policy.next_interval(previous, replace(seen, changed=False))
        if changed.interval > unchanged.interval:
            return (
                f"after {previous}, at day {seen.at:.6g}: {changed.interval:.6g} days with a "
                f"change, {unchanged.interval:.6g} without"
            )
    return None


def the_intervals_are_deterministic(policy: IntervalPolicy, history: History) -> str | None:
    """Check that intervals depend on the pace alone."""
    for number, (previous, seen, pace) in reversed(list(enumerate(history))):
        again = policy.next_interval(previous, seen)
        if again != pace:
            return f"capture {number}, {seen} after {previous}, gives {pace}, then {again}"
    return None


INTERVAL_LAWS: tuple[Callable[[IntervalPolicy, History], str | None], ...] = (
    intervals_are_positive_and_finite,
    the_next_crawl_is_in_the_future,
    a_change_does_not_lengthen_the_interval,
    the_intervals_are_deterministic,
)


def histories(policy: IntervalPolicy, seed: int) -> Iterator[tuple[str, History]]:
    """Yield histories of sources that change never, always or sometimes, with and without dates."""
    rng = np.random.default_rng(seed)
    for chance, captures in ((0.0, _LONG), (1.0, _LONG), (0.3, 300), (0.7, 300)):
        for dated in (False, True):
            changes = rng.random(captures) < chance
            late = np.where(rng.random(captures) < 0.2, 0.1, 0.0)
            name = f"{chance:.0%} changed, {'with' if dated else 'without'} the times of changes"
            yield name, _played(policy, changes, late, dated=dated)


def _played(policy: IntervalPolicy, changes: Bools, late: Floats, *, dated: bool) -> History:
    """Run one history; some crawls are late, as when a host is busy."""
    played: History = []
    pace, at, modified_at = None, 0.0, -400.0
    for changed, delay in zip(changes.tolist(), late.tolist(), strict=True):
        if changed:
            modified_at = at
        seen = Revisit(at, changed, modified_at if dated else None)
        following = policy.next_interval(pace, seen)
        played.append((pace, seen, following))
        pace, at = following, max(following.due_at, at) + delay
    return played


# -- rate laws --
#
# Properties of every plan, regardless of its objective.


def rates_are_finite_and_not_negative(
    policy: RatePolicy, table: SourceTable, budget: float
) -> str | None:
    """Check for one finite number per source, also at extreme magnitudes."""
    rate = np.asarray(policy.rates(table, budget).crawl_rate)
    if rate.shape != (len(table),):
        return f"crawl_rate has shape {rate.shape}"
    for row in _first(~(np.isfinite(rate) & (rate >= 0))):
        return f"{shown(table, row)} gets {rate[row]}"
    return None


def the_spent_and_the_left_over_part_sum_to_the_budget(
    policy: RatePolicy, table: SourceTable, budget: float
) -> str | None:
    """Check Σρ + left_over = bandwidth = budget."""
    plan = policy.rates(table, budget)
    spent = float(plan.crawl_rate.sum())
    whole = isclose(spent + plan.left_over, budget, rel_tol=_ROUNDING)
    if not whole or plan.bandwidth != budget or plan.left_over < 0:
        return (
            f"of a budget of {budget:.6g} it spends {spent:.6g} and leaves over "
            f"{plan.left_over:.6g} of a bandwidth of {plan.bandwidth:.6g}"
        )
    return None


def host_capacities_are_respected(
    policy: RatePolicy, table: SourceTable, budget: float
) -> str | None:
    """Check that the crawl rates of a host's sources are within its capacity."""
    capacity = table.host_capacity
    total = np.bincount(table.host, policy.rates(table, budget).crawl_rate, len(capacity))
    for host in _first(total > capacity * (1 + _ROUNDING)):
        return f"host {host} of capacity {capacity[host]:.6g} gets {total[host]:.6g} crawls per day"
    return None


def crawls_on_signals_are_a_share_of_the_signals(
    policy: RatePolicy, table: SourceTable, budget: float
) -> str | None:
    """Check ρ = pΔ, 0 ≤ p ≤ 1 on signals; elsewhere p is 1."""
    plan = policy.rates(table, budget)
    for row in _first(_wrong_shares(table, plan)):
        return (
            f"{shown(table, row)} has crawl rate {plan.crawl_rate[row]:.6g}, probability "
            f"{plan.crawl_probability[row]:.6g}, on signals: {plan.on_signals[row]}"
        )
    return None


def the_plan_does_not_depend_on_the_order_of_sources(
    policy: RatePolicy, table: SourceTable, budget: float
) -> str | None:
    """Check that shuffled sources get the same rates, shuffled."""
    shuffle = np.random.default_rng(len(table)).permutation(len(table))
    rate = policy.rates(table, budget).crawl_rate[shuffle]
    again = policy.rates(table.take(shuffle), budget).crawl_rate
    for row in _first(differ(rate, again, budget)):
        return (
            f"{shown(table, int(shuffle[row]))} gets {rate[row]:.9g}, and in another order "
            f"{again[row]:.9g}"
        )
    return None


def the_plan_is_deterministic(policy: RatePolicy, table: SourceTable, budget: float) -> str | None:
    """Check that plans are not random and do not depend on earlier calls."""
    first = policy.rates(table, budget).crawl_rate
    # Once after another table, and once directly.
    policy.rates(table.take(np.arange(len(table))[::-1]), 2 * budget)
    for _ in range(2):
        again = policy.rates(table, budget).crawl_rate
        for row in _first(first != again):
            return f"{shown(table, row)} gets {first[row]!r}, then {again[row]!r}"
    return None


def the_plan_does_not_modify_the_table(
    policy: RatePolicy, table: SourceTable, budget: float
) -> str | None:
    """Check that a plan does not write to a column of the table."""
    before = deepcopy(table)
    policy.rates(table, budget)
    column = changed_column(before, table)
    return f"column {column} was changed" if column else None


def an_invalid_budget_is_refused(
    policy: RatePolicy, table: SourceTable, _budget: float
) -> str | None:
    """Check that 0, negative numbers, NaN and infinity raise ValueError."""
    for wrong in (0.0, -1.0, nan, inf):
        try:
            policy.rates(table, wrong)
        except ValueError:
            continue
        return f"a budget of {wrong} is accepted"
    return None


def _all(seed: int) -> list[RateSample]:
    return [*planned(seed), *extreme(seed)]


#: Each law with the tables that it is tested on.
RATE_LAWS: Mapping[
    Callable[[RatePolicy, SourceTable, float], str | None], Callable[[int], list[RateSample]]
] = {
    rates_are_finite_and_not_negative: _all,
    the_spent_and_the_left_over_part_sum_to_the_budget: _all,
    host_capacities_are_respected: _all,
    crawls_on_signals_are_a_share_of_the_signals: _all,
    the_plan_does_not_depend_on_the_order_of_sources: planned,
    the_plan_is_deterministic: planned,
    the_plan_does_not_modify_the_table: planned,
    an_invalid_budget_is_refused: planned,
}


def differ(one: Floats, other: Floats, budget: float) -> Bools:
    """Return where rates differ by more than rounding, on the scale of the budget."""
    far: Bools = ~np.isclose(one, other, rtol=1e-6, atol=1e-9 * budget)
    return far


def _wrong_shares(table: SourceTable, plan: CrawlPlan) -> Bools:
    p, on_signals = plan.crawl_probability, plan.on_signals
    possible = (p >= 0) & (p <= 1) & (table.complete_observations | ~on_signals)
    share = np.isclose(plan.crawl_rate, p * table.change_rate, rtol=_ROUNDING, atol=0)
    wrong: Bools = ~(possible & np.where(on_signals, share, p == 1))
    return wrong


def _first(where: Bools) -> list[int]:
    """Return the first row with a true value, if there is one."""
    return [int(row) for row in np.flatnonzero(where)[:1]]
