"""The laws of every interval policy.

Policies are played from the first capture on: they have to cope with the states that they reach
themselves. Not demanded is that an unchanged source waits longer than before: a policy may
synchronise with the time of changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from typing import TypeAlias

import numpy as np

from freshet.scheduler.policy import IntervalPolicy, Pace, Revisit

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


LAWS: tuple[IntervalLaw, ...] = (
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
