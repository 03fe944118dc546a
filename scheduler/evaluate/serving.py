"""The loop in which policies are served, in a random world and on an archive.

    environment reports new events → ranker values all sources → the best ones are visited → ranker
    learns

Visits are chosen in batches, as a daemon fills its window: one valuation of all sources, and as
many of the largest values as the budget pays for until the next one. A batch of k of n sources
differs from k single choices, because its visits, and signals in the meantime, would have changed
the values. The difference vanishes with k/n, and a batch of one is exact.
"""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

import numpy as np

from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.sources import Rows

#: Called with the day that a run has reached.
Progress: TypeAlias = Callable[[float], None]
#: Called with the name of the work, such as a policy, and the finished share of its run, 0 to 1.
PolicyProgress: TypeAlias = Callable[[str, float], None]
#: The day of a valuation, and the ascending days of the visits that it decides.
Batch: TypeAlias = tuple[float, Floats]


class Valuer(Protocol):
    """The part of a ranker that the loop itself calls."""

    def values(self, now: float) -> Floats:
        """Return the value of a visit to each known source on this day; 0: no visit."""

    def learn(self, visits: VisitResults) -> None:
        """Learn from visits, in the order of time."""


class _Environment(Protocol):
    """The sources of a run, and the results of visits to them.

    If a ranker needs more than visits, the environment calls it.
    """

    def batches(self, budget: float) -> Iterable[Batch]:
        """Yield the batches in the order of time; all their visits use up the budget."""

    def advance(self, now: float) -> None:
        """Report to the ranker the events until now, visits excepted."""

    def weighed(self, value: Floats, now: float) -> Floats:
        """Return the values by which sources are chosen, given the ranker's values."""

    def visit(self, rows: Rows, at: Floats) -> VisitResults:
        """Visit each of these sources once; the ranker has not learnt from it yet."""


def silent(*_progress: object) -> None:
    """Ignore the progress."""


def serve(
    ranker: Valuer, environment: _Environment, budget: float, progress: Progress = silent
) -> None:
    """Spend a budget, in visits a day, by a ranker's values, until the environment ends.

    A visit is omitted if no source has a value above 0; it is not made up for.

    Raises:
        ValueError: if the ranker returns anything but finite numbers of at least 0.
    """
    for now, moments in environment.batches(budget):
        environment.advance(now)
        value = environment.weighed(_refuse_nonsense(ranker.values(now)), now)
        rows = best_rows(value, len(moments))
        if len(rows):
            ranker.learn(environment.visit(rows, moments[: len(rows)]))
        progress(float(moments[-1]) if len(moments) else now)


def best_rows(value: Floats, count: int) -> Rows:
    """Return the rows of the ``count`` largest values above 0, the largest first, ties by row.

    >>> best_rows(np.array([2.0, 0.0, 3.0, 3.0, 1.0]), 3).tolist()
    [2, 3, 0]
    """
    if count == 1 and len(value):
        best = int(np.argmax(value))
        return np.array([best] if value[best] > 0 else [], np.intp)
    some = np.flatnonzero(value > 0)
    if count < len(some):
        bar = np.partition(value[some], len(some) - count)[len(some) - count] if count else np.inf
        above = some[value[some] > bar]
        some = np.concatenate([above, some[value[some] == bar][: count - len(above)]])
    return some[np.lexsort((some, -value[some]))]


def _refuse_nonsense(answer: Floats) -> Floats:
    value = np.asarray(answer, np.float64)
    # In this form, NaN is refused as well.
    if len(value) and not (value.min() >= 0 and value.max() < np.inf):
        raise ValueError("returns values that are not finite numbers of at least 0")
    return value
