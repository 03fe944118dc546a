"""Chance that repeats itself: generators named by keys, and Poisson arrivals.

Every part of the web draws from a generator of its own, named by the seed and the part.
Consequence: what one page does never depends on which other pages exist or were asked for.
"""

from __future__ import annotations

from random import Random

DAY_S = 86_400.0


def generator(*key: object) -> Random:
    """The generator of that name; the same key gives the same numbers on every machine."""
    return Random("/".join(map(str, key)))


def poisson_times(
    rng: Random, rate_per_day: float, start_at: float, end_at: float
) -> tuple[float, ...]:
    """Arrivals of a Poisson process in (start_at, end_at), rising, in whole Unix seconds.

    Whole seconds because Last-Modified knows no others: two arrivals in one second are
    merged, so that a date tells the versions of a page apart.
    """
    rate = rate_per_day / DAY_S
    if rate <= 0:
        return ()
    times: dict[float, None] = {}
    at = start_at + rng.expovariate(rate)
    while at < end_at:
        if at // 1 > start_at:
            times[at // 1] = None
        at += rng.expovariate(rate)
    return tuple(times)
