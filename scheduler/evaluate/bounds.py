"""Bounds of the costs of visits to archived pages, by what the archive proves and allows.

A gap that contains a change lies in one of three ways between a copy, visited on day s, and day t:
before s, after it, or around it. N(t), the changes since the visit, is bounded at each moment by

    optimistic   the gaps that contain a change, begin at s or later, and have ended by t
    early        the gaps that contain a change, end after s, and have begun by t
    pessimistic  as early, and one more while t or s lies in an open gap, or t in the same gap

A change in the gap happens somewhere in (since, at]. The first two are the minimum and the maximum
of N(t) over all histories that show these captures and no changes except those that the archive
proves, for any visits at these moments. The third allows that a page had another content for the
whole of an open gap, and returned to the former one before its end; a visit in the gap may have
compared with that content. It is the maximum over all histories with only such hidden changes. The
number of unseen changes of a page is unbounded, and so is H(N). If captures extend until the next
ones begin, as in a complete history, the three bounds are equal.

A page without a copy has missed its own appearance: one more change.

Costs are time averages as in :mod:`freshet.scheduler.costs`: H(N) and 1{N > 0} over the time that
counts (:mod:`freshet.scheduler.evaluate.captures`), as sums over each page, in days.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from freshet.compiled import numeric
from freshet.compiled.numeric import Structure
from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.costs import harmonic_number
from freshet.scheduler.evaluate.captures import Timeline
from freshet.scheduler.evaluate.changes import offsets_of

#: Columns of the costs in the result of :func:`bill`.
HARMONIC: Final = slice(0, 3)
BINARY: Final = slice(3, 6)
#: Days that counted, days with a copy, and the sum of the ages of copies, in days².
COUNTED: Final = 6
COPIED: Final = 7
AGE: Final = 8
_COLUMNS: Final = 9


class PageVisits(NamedTuple):
    """k answered visits, grouped by page, in the order of time.

    Attributes:
        offsets: (n + 1,), the first position of each page, and the end of the last.
        at: (k,), days.
        copy: (n,), the day of the visit before all these; −inf: no copy.
    """

    offsets: Ints
    at: Floats
    copy: Floats


@dataclass(frozen=True, slots=True)
class _Sums:
    """Accumulators of costs; cumulative sums of ``steps`` are added to ``bins``."""

    pages: Floats
    bins: Floats
    steps: Floats
    importance: Floats
    harmonic: Floats
    start: Floats


def bill(
    timeline: Timeline, visited: PageVisits, importance: Floats, start: float, end: float
) -> tuple[Floats, Floats]:
    """Return the costs of the copies between two days, by page and by day.

    By page (n, 9), unweighted sums: harmonic cost, optimistic, early and pessimistic; binary cost,
    likewise; days that counted, days with a copy, the integral of the copy's age. By day (d, 9),
    the same columns summed over all pages, weighted with importance; ages are taken in the middle
    of a stretch without events.

    Cost: O(captures + visits), plus the number of visits that share a gap.
    """
    days = int(np.ceil(end - start))
    most = int(np.diff(timeline.offsets).max(initial=0)) + 3
    sums = _Sums(
        pages=np.zeros((timeline.pages, _COLUMNS)),
        # One more bin, for stretches that end with the last day.
        bins=np.zeros((days + 2, _COLUMNS)),
        steps=np.zeros((days + 2, _COLUMNS)),
        importance=importance,
        harmonic=np.asarray(harmonic_number(np.arange(most)), np.float64),
        start=np.array([start], np.float64),
    )
    taken = Structure("bill", sums, count=timeline.pages, days=days + 2, most=most)
    numeric.bounds_bill(_structure(timeline), *visited, taken, end)
    return sums.pages, (sums.bins + np.cumsum(sums.steps, axis=0))[:days]


def _structure(timeline: Timeline) -> Structure:
    """Return the argument of the functions in ``bounds.c``."""
    return Structure("timeline", timeline, pages=timeline.pages, captures=len(timeline.at))


# -- clairvoyant: least cost of visits with knowledge of all captures --
# It is a lower bound of the optimistic costs (:mod:`freshet.scheduler.evaluate.bounds`) of every
# choice of at most F visits from ``start`` to ``end``, with knowledge of the captures, at any
# moments, with the copies of ``start``. A budget paces its visits and a policy learns; both only
# add to the cost. It is not compared with the early and the pessimistic costs, which are larger
# still.
#
# A change may have happened as soon as its gap began, so that a visit right then may see it, and
# the cost of that change ends there; no later visit of the gap is better. So a page's least cost
# with k visits is a choice of k of its m changes, and among all pages
#
#     max over λ ≥ 0 of  Σ μ-weighted min over k (cost(k) + λk) − λF
#
# is at most the least cost: the visits' price λ relaxes their number. The two are equal if some λ
# spends F exactly, and otherwise differ by less than one page's choice.
#
# Method: V(a), the least cost from a visit at change a on, is the minimum over the next visited
# change b of cost(a, b) + λ + V(b); larger b are not tried once an additional visit at a + 1 saves
# more than λ. λ by bisection. Any λ gives a bound, so that no tolerance matters. Cost: O(changes)
# for each λ with ample budgets, up to their square within a page.

_ROUNDS: Final = 50


class _Moments(NamedTuple):
    """Days on which changes of n pages became certain, counted from ``start``.

    Attributes:
        offsets: (n + 1,), the first position of each page, and the end of the last.
        day: (c,).
        since: (c,), when the change could be seen first: the gap's beginning.
        end: (n,), the total of the days that count.
    """

    offsets: Ints
    day: Floats
    since: Floats
    end: Floats


def least_cost(
    timeline: Timeline, copy: Floats, importance: Floats, span: tuple[float, float], visits: int,
    *, harmonic: bool,
) -> float:  # fmt: skip
    """Return a lower bound of the importance-weighted cost of all pages, in days.

    Args:
        timeline: the archive.
        copy: (n,), the days of the visits before ``span``; −inf: no copy.
        importance: (n,), μ.
        span: the days between which costs count.
        visits: F.
        harmonic: True for the harmonic cost, False for the binary cost.
    """
    moments = _moments_of(timeline, copy, *span)
    most = int(np.diff(moments.offsets).max(initial=0))
    heaviest = float((importance * moments.end).max(initial=0.0))
    low, high = 0.0, max(heaviest, np.finfo(float).tiny) * (1 + most)
    best = 0.0
    for round_ in range(_ROUNDS):
        price = 0.0 if round_ == 0 else (low + high) / 2
        cost, taken = numeric.bounds_relaxed(
            moments.offsets,
            day=moments.day,
            since=moments.since,
            end=moments.end,
            importance=importance,
            price=price,
            harmonic=harmonic,
        )
        best = max(best, cost - price * visits)
        if taken > visits:
            low = price
        else:
            high = price
        if price == 0.0 and taken <= visits:
            break
    return best


def _moments_of(timeline: Timeline, copy: Floats, start: float, end: float) -> _Moments:
    """Return the certain changes that a copy misses, and the days that count."""
    span = float(start), float(end)
    number, day, sight, counted = numeric.bounds_list(_structure(timeline), copy, span)
    return _Moments(offsets_of(number), day, sight, counted)
