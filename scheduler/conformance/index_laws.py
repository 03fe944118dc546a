"""The laws of every index policy."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.conformance.samples import IndexSample, changed_column, shown, watched
from freshet.scheduler.policy import IndexPolicy
from freshet.scheduler.sources import Rows

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


LAWS: tuple[IndexLaw, ...] = (
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
