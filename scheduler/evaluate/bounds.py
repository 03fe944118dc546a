"""Costs of visits to archived pages: bounds by what an archive proves and allows.

A gap that holds a change lies between a copy, visited on day s, and day t in one of three ways:
before s, after it, or around it. N(t), the changes since the visit, is at each moment bounded by

    optimistic   the gaps that hold a change, begin at s or later, and have ended by t
    early        the gaps that hold a change, end after s, and have begun by t
    pessimistic  as early, and one more while t or s lies in an open gap, or t in the same gap

A change in the gap comes somewhere in (since, at]. The first two are the least and the most N(t)
of all histories that show these captures and no changes but those that the archive proves, for
whoever fetched at these moments. The third allows that a page was another one for the whole of an
open gap, and came back before its end; a visit in the gap may have taken that for the page. It is
the most of all histories in which this is all that is hidden: how often a page may have changed
unseen knows no bound, and so neither does H(N). Where captures stand until the next ones begin, as
in a complete history, the three are one.

A page of which there is no copy yet has missed its own appearance: one more change.

Costs are time averages as of :mod:`freshet.scheduler.costs`: H(N) and 1{N > 0} over the time that
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

#: The places of costs in what :func:`bill` returns.
HARMONIC: Final = slice(0, 3)
BINARY: Final = slice(3, 6)
#: Days that counted, days with a copy, and the ages of copies added up, in days².
COUNTED: Final = 6
COPIED: Final = 7
AGE: Final = 8
_COLUMNS: Final = 9


class PageVisits(NamedTuple):
    """k answered visits, those of a page together and in the order of time.

    Attributes:
        offsets: (n + 1,), where those of each page begin, and where the last ones end.
        at: (k,), days.
        copy: (n,), the day of the visit before them all; −inf: there is no copy.
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
    likewise; days that counted, those with a copy, the integral of the copy's age. By day (d, 9),
    the same of all pages, weighted with importance; ages are those of the middle of a stretch in
    which nothing happened.

    Cost: O(captures + visits), and as many more as visits fall into one gap.
    """
    days = int(np.ceil(end - start))
    most = int(np.diff(timeline.offsets).max(initial=0)) + 3
    sums = _Sums(
        pages=np.zeros((timeline.pages, _COLUMNS)),
        # One more, for what ends with the last day.
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
    """Return what the functions of ``bounds.c`` take."""
    return Structure("timeline", timeline, pages=timeline.pages, captures=len(timeline.at))


# -- clairvoyant: least cost of visits for one who knows all captures --------
# *What it bounds.* The optimistic costs (:mod:`freshet.scheduler.evaluate.bounds`) of every choice
# of at most F visits from ``start`` to ``end``, however it was made: by knowing the captures, at
# any moments, with the copies of ``start``. A budget paces its visits and a policy learns; both
# only add to it. It says nothing of the early and the pessimistic figures, which are larger still.
#
# A change may have come as soon as its gap began, so that a visit right then may see it, and the
# cost of what it sees ends there; no later visit of the gap is better. So a page's least cost with
# k visits is a choice of k of its m changes, and among all pages
#
#     max over λ ≥ 0 of  Σ μ-weighted min over k (cost(k) + λk) − λF
#
# is at most the least cost: the visits' price λ relaxes their number. It is reached where some λ
# spends F exactly, and else falls short by less than one page's choice.
#
# Method: V(a), the least from a visit at change a on, is the least over the next change b visited
# of cost(a, b) + λ + V(b); a b is not tried further once a visit at a + 1 beside it is worth more
# than λ. λ by bisection. Any λ is a bound, so that no tolerance matters. Cost: O(changes) each λ
# where budgets are ample, up to their square in a page.

_ROUNDS: Final = 50


class _Moments(NamedTuple):
    """Days on which changes of n pages became certain, counted from ``start``.

    Attributes:
        offsets: (n + 1,), where those of each page begin, and where the last ones end.
        day: (c,).
        since: (c,), when the change could be seen first: the gap's beginning.
        end: (n,), the days that count in all.
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
        copy: (n,), the days of the visits before ``span``; −inf: there is no copy.
        importance: (n,), μ.
        span: the days between which costs count.
        visits: F.
        harmonic: whether the cost is the harmonic one, else the binary one.
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
