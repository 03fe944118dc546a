"""The laws of every index policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from math import inf, isclose, isfinite, nan
from typing import TypeAlias

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.conformance.samples import (
    IndexSample,
    RateSample,
    changed_column,
    extreme,
    planned,
    shown,
    watched,
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

#: A law tries a policy on tables made from a seed; it returns a counter-example, or None.
IndexLaw: TypeAlias = Callable[[IndexPolicy, int], str | None]

#: Vectorised functions may round otherwise at the end of a column than in its middle.
_ROUNDING = 1e-9


def values_are_finite_and_not_negative(policy: IndexPolicy, seed: int) -> str | None:
    """Check for one finite number a source, also at extreme magnitudes."""
    for sample in watched(seed):
        index = np.asarray(policy.index(sample.table, sample.now))
        if index.shape != (len(sample.table),):
            return f"{sample.name}: the index has shape {index.shape}"
        wrong = ~(np.isfinite(index) & (index >= 0))
        if wrong.any():
            return _told(sample, wrong, "is worth {}", index)
    return None


def worth_does_not_fall_while_time_passes(policy: IndexPolicy, seed: int) -> str | None:
    """Check that an index grows or stays between two events."""
    for sample in watched(seed):
        before = policy.index(sample.table, sample.now)
        for later in (1 / 64, 1.0, 10.0, 1000.0):
            after = policy.index(sample.table, sample.now + later)
            fallen = after < before * (1 - _ROUNDING)
            if fallen.any():
                return _told(
                    sample, fallen, f"is worth {{}}, and {{}} {later:g} days later", before, after
                )
            before = after
    return None


def a_source_is_valued_by_its_own_row(policy: IndexPolicy, seed: int) -> str | None:
    """Check that the index of some rows, in any order, is some of the index."""
    for sample in watched(seed):
        n = len(sample.table)
        index = policy.index(sample.table, sample.now)
        for rows in (np.arange(n)[::-1], *np.arange(n)[:, None]):
            alone = policy.index(sample.table.take(rows), sample.now)
            if wrong := _unlike(sample, rows, index[rows], alone):
                return wrong
    return None


def a_source_just_crawled_is_worth_nothing(policy: IndexPolicy, seed: int) -> str | None:
    """Check that at age 0, without pending signals, the index is 0."""
    for sample in watched(seed):
        crawled = replace(
            sample.table,
            last_crawl=np.full(len(sample.table), sample.now),
            pending_signals=np.zeros(len(sample.table), np.int64),
        )
        index = policy.index(crawled, sample.now)
        if index.any():
            return _told(sample, index != 0, "is worth {} right after a crawl", index)
    return None


def what_does_not_matter_or_change_is_worth_nothing(policy: IndexPolicy, seed: int) -> str | None:
    """Check that importance 0 or change rate 0 makes it 0."""
    for sample in watched(seed):
        index = policy.index(sample.table, sample.now)
        idle = (sample.table.importance == 0) | (sample.table.change_rate == 0)
        if index[idle].any():
            return _told(sample, idle & (index != 0), "is worth {}", index)
    return None


def worth_is_in_proportion_to_importance(policy: IndexPolicy, seed: int) -> str | None:
    """Check that three times the importance gives three times the index."""
    for sample in watched(seed):
        index = policy.index(sample.table, sample.now)
        heavier = replace(sample.table, importance=3 * sample.table.importance)
        threefold = policy.index(heavier, sample.now)
        wrong = ~np.isclose(threefold, 3 * index, rtol=_ROUNDING, atol=0)
        if wrong.any():
            return _told(
                sample, wrong, "is worth {}, and {} at three times the importance", index, threefold
            )
    return None


def the_calendar_does_not_matter(policy: IndexPolicy, seed: int) -> str | None:
    """Check that moving all days by 1024 changes no value."""
    for sample in watched(seed)[:-1]:
        index = policy.index(sample.table, sample.now)
        moved = replace(sample.table, last_crawl=sample.table.last_crawl + 1024)
        later = policy.index(moved, sample.now + 1024)
        wrong = ~np.isclose(later, index, rtol=_ROUNDING, atol=0)
        if wrong.any():
            return _told(sample, wrong, "is worth {}, and {} on days 1024 later", index, later)
    return None


def the_same_question_has_the_same_answer(policy: IndexPolicy, seed: int) -> str | None:
    """Check that results repeat and the table is left as it was."""
    for sample in watched(seed):
        before = deepcopy(sample.table)
        first = policy.index(sample.table, sample.now).copy()
        if column := changed_column(before, sample.table):
            return f"{sample.name}: column {column} was changed"
        policy.index(sample.table, sample.now + 1)
        second = policy.index(sample.table, sample.now)
        if (first != second).any():
            return _told(sample, first != second, "is worth {}, then {}", first, second)
    return None


INDEX_LAWS: tuple[IndexLaw, ...] = (
    values_are_finite_and_not_negative,
    worth_does_not_fall_while_time_passes,
    a_source_is_valued_by_its_own_row,
    a_source_just_crawled_is_worth_nothing,
    what_does_not_matter_or_change_is_worth_nothing,
    worth_is_in_proportion_to_importance,
    the_calendar_does_not_matter,
    the_same_question_has_the_same_answer,
)


def _told(sample: IndexSample, wrong: Bools, sentence: str, *columns: Floats) -> str:
    """Describe the first source that breaks a law."""
    row = int(np.argmax(wrong))
    table = sample.table
    figures = sentence.format(*(f"{column[row]:.9g}" for column in columns))
    return (
        f"{sample.name}: {shown(table, row)}, {sample.now - table.last_crawl[row]:.6g} days old, "
        f"{table.pending_signals[row]} signals, {figures}"
    )


def _unlike(sample: IndexSample, rows: Rows, together: Floats, alone: Floats) -> str | None:
    for place in np.flatnonzero(~np.isclose(alone, together, rtol=_ROUNDING, atol=0))[:1]:
        return (
            f"{sample.name}: {shown(sample.table, int(rows[place]))} is worth "
            f"{together[place]:.9g}, and {alone[place]:.9g} at row {place} of {len(rows)}"
        )
    return None


# -- interval laws -----------------------------------------------------------
#
# The laws of every interval policy.
#
# Policies are played from the first capture on: they have to cope with the states that they reach
# themselves. Not demanded is that an unchanged source waits longer than before: a policy may
# synchronise with the time of changes.

#: A law tries a policy on histories made from a seed; it returns a counter-example, or None.
IntervalLaw: TypeAlias = Callable[[IntervalPolicy, int], str | None]

#: Long enough for a factor of 1.2 without a bound to leave the range of a float.
_LONG = 4_000


def intervals_are_positive_and_finite(policy: IntervalPolicy, seed: int) -> str | None:
    """Check intervals after thousands of captures with or without changes."""
    for number, (previous, seen, pace) in enumerate(_played(policy, seed)):
        if not (isfinite(pace.interval) and pace.interval > 0):
            return f"capture {number} of a history, {seen} after {previous}, gives {pace}"
    return None


def the_next_crawl_lies_in_the_future(policy: IntervalPolicy, seed: int) -> str | None:
    """Check that a crawl is due after the capture that set it."""
    for number, (previous, seen, pace) in enumerate(_played(policy, seed)):
        if not (isfinite(pace.due_at) and pace.due_at > seen.at):
            return f"capture {number} of a history, {seen} after {previous}, gives {pace}"
    return None


def a_change_calls_for_no_longer_wait_than_none(policy: IntervalPolicy, seed: int) -> str | None:
    """Check that a change never lengthens the interval."""
    for previous, seen, _ in _played(policy, seed):
        if previous is None:
            continue
        changed = policy.next_interval(previous, Revisit(seen.at, True, seen.modified_at))
        unchanged = policy.next_interval(previous, Revisit(seen.at, False, seen.modified_at))
        if changed.interval > unchanged.interval:
            return (
                f"after {previous}, at day {seen.at:.6g}: {changed.interval:.6g} days with a "
                f"change, {unchanged.interval:.6g} without"
            )
    return None


def the_same_history_has_the_same_intervals(policy: IntervalPolicy, seed: int) -> str | None:
    """Check that intervals depend on the pace alone."""
    once = list(_played(policy, seed))
    for number, (previous, seen, pace) in reversed(list(enumerate(once))):
        again = policy.next_interval(previous, seen)
        if again != pace:
            return f"capture {number}, {seen} after {previous}, gives {pace}, then {again}"
    return None


INTERVAL_LAWS: tuple[IntervalLaw, ...] = (
    intervals_are_positive_and_finite,
    the_next_crawl_lies_in_the_future,
    a_change_calls_for_no_longer_wait_than_none,
    the_same_history_has_the_same_intervals,
)


def _played(policy: IntervalPolicy, seed: int) -> Iterator[tuple[Pace | None, Revisit, Pace]]:
    """Yield state before, visit and state after, along histories of four kinds."""
    rng = np.random.default_rng(seed)
    for chance, captures in ((0.0, _LONG), (1.0, _LONG), (0.3, 300), (0.7, 300)):
        for dated in (False, True):
            pace, at, modified_at = None, 0.0, -400.0
            for changed in rng.random(captures) < chance:
                if changed:
                    modified_at = at
                seen = Revisit(at, bool(changed), modified_at if dated else None)
                following = policy.next_interval(pace, seen)
                yield pace, seen, following
                # Some crawls are late, as they are when a host is busy.
                pace, at = following, max(following.due_at, at) + (0.1 if rng.random() < 0.2 else 0)


# -- rate laws ---------------------------------------------------------------
#
# The laws of every rate policy: what a plan is, whatever it aims at.

#: A law tries a policy on tables made from a seed; it returns a counter-example, or None.
RateLaw: TypeAlias = Callable[[RatePolicy, int], str | None]


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


def the_same_table_has_the_same_plan(policy: RatePolicy, seed: int) -> str | None:
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


RATE_LAWS: tuple[RateLaw, ...] = (
    rates_are_finite_and_not_negative,
    what_is_spent_and_left_over_is_the_budget,
    capacities_of_hosts_are_kept,
    crawls_on_signals_are_a_share_of_the_signals,
    the_order_of_sources_does_not_matter,
    the_same_table_has_the_same_plan,
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
