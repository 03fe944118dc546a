"""Small archives for the tests of replaying policies."""

from collections.abc import Mapping, Sequence

import numpy as np

from freshet.scheduler.evaluate.captures import Captures
from freshet.scheduler.evaluate.changes import ChangeTimes


def one_page(visits: Mapping[float, int], *, until: Sequence[float] | None = None) -> Captures:
    """The captures of one page of importance 1: contents by day."""
    days = list(visits)
    return Captures.of(
        np.zeros(len(days), np.intp), days, list(visits.values()), until=until, importance=[1.0]
    )


def complete(changes: ChangeTimes, end: float) -> Captures:
    """The complete history of pages that are there from day 0 until the end."""
    n = len(changes)
    page = np.repeat(np.arange(n), np.diff(changes.offsets) + 1)
    at = np.insert(changes.at, changes.offsets[:-1], 0.0)
    until = np.append(at[1:], end)
    until[np.flatnonzero(np.diff(page, append=n))] = end
    content = np.arange(len(at))
    return Captures.of(page, at, content, until=until, importance=np.ones(n))


def sampled(changes: ChangeTimes, days: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Captures:
    """What visits to all pages on these days would have seen of them."""
    n = len(changes)
    page = np.repeat(np.arange(n), len(days))
    at = np.tile(days, n)
    content = changes.count(page, np.full(len(page), -1.0), at)
    return Captures.of(page, at, content, importance=np.ones(n))
