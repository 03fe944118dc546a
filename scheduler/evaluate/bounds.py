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

from typing import Final, NamedTuple

import numpy as np

from freshet.scheduler.arrays import Floats, Ints, compiled, part
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


class _Sums(NamedTuple):
    """Accumulators of costs; cumulative sums of ``steps`` are added to ``bins``."""

    pages: Floats
    bins: Floats
    steps: Floats
    importance: Floats
    harmonic: Floats
    start: float


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
        start=float(start),
    )
    _sweep(timeline, visited, sums, float(end))
    return sums.pages, (sums.bins + np.cumsum(sums.steps, axis=0))[:days]


@compiled
def _sweep(known: Timeline, visited: PageVisits, sums: _Sums, end: float) -> None:
    """Go through each page's visits, and from each to the next through the captures."""
    for page in range(len(known.offsets) - 1):
        place, stop = known.offsets[page], known.offsets[page + 1]
        last = visited.offsets[page + 1]
        for k in range(visited.offsets[page] - 1, last):
            visit = visited.copy[page] if k < visited.offsets[page] else visited.at[k]
            until = min(visited.at[k + 1], end) if k + 1 < last else end
            while place < stop and known.at[place] <= visit and known.until[place] <= visit:
                place += 1
            _interval(known=known, sums=sums, page=page, first=place, visit=visit, end=until)


@part
def _interval(
    known: Timeline, sums: _Sums, page: int, first: int, visit: float, end: float
) -> None:
    """Add the cost of a copy from its visit to the next one."""
    certain, possible, hidden = 0, 0, 0
    for k in range(first, known.offsets[page + 1]):
        since, at = known.since[k], known.at[k]
        if since >= end:
            break
        missed = at > visit and (known.changed[k] or (known.appears[k] and visit == -np.inf))
        unsure = known.gap_counts[k] and not known.changed[k] and since < at
        if unsure and since < visit < at:
            hidden = 1
        if missed:
            possible += 1
        if known.gap_counts[k]:
            begin, until = max(since, visit), min(at, end)
            counts = (certain, possible, possible + (1 if unsure else hidden))
            _add(sums=sums, page=page, begin=begin, end=until, visit=visit, missed=counts)
        if missed and since >= visit:
            certain += 1
        if known.counts[k]:
            begin, until = max(at, visit), min(known.until[k], end)
            counts = (certain, possible, possible + hidden)
            _add(sums=sums, page=page, begin=begin, end=until, visit=visit, missed=counts)


@part
def _add(
    sums: _Sums, page: int, begin: float, end: float, visit: float, missed: tuple[int, int, int]
) -> None:
    """Add a stretch of time in which only the age of the copy grows."""
    begin = max(begin, sums.start) - sums.start
    end = end - sums.start
    if end <= begin:
        return
    copied = visit > -np.inf
    age = (begin + end) / 2 + sums.start - visit if copied else 0.0
    weight = sums.importance[page]
    for column in range(9):
        if column < 3:
            value = sums.harmonic[missed[column]]
        elif column < 6:
            value = 1.0 if missed[column - 3] > 0 else 0.0
        else:
            value = (1.0, 1.0 if copied else 0.0, age)[column - 6]
        sums.pages[page, column] += value * (end - begin)
        first, last = int(begin), int(end)
        if first == last:
            sums.bins[first, column] += weight * value * (end - begin)
        else:
            sums.bins[first, column] += weight * value * (first + 1 - begin)
            sums.bins[last, column] += weight * value * (end - last)
            sums.steps[first + 1, column] += weight * value
            sums.steps[last, column] -= weight * value


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
        cost, taken = _relaxed(moments, importance, price, harmonic)
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
    counted, number = np.zeros(timeline.pages), np.zeros(timeline.pages, np.int64)
    day, sight = np.empty(len(timeline.at)), np.empty(len(timeline.at))
    span = float(start), float(end)
    _list(timeline, copy, span, (day, sight), number=number, counted=counted)
    total = int(number.sum())
    return _Moments(offsets_of(number), day[:total], sight[:total], counted)


@compiled
def _list(
    known: Timeline, copy: Floats, span: tuple[float, float], moments: tuple[Floats, Floats],
    number: Ints, counted: Floats,
) -> None:  # fmt: skip
    offsets, since, at, until, appears, changed, counts, gap_counts = known
    start, end = span
    day, sight = moments
    total = 0
    for page in range(len(copy)):
        for k in range(offsets[page], offsets[page + 1]):
            if since[k] >= end:
                break
            sight[total] = counted[page]
            if gap_counts[k]:
                counted[page] += max(min(at[k], end) - max(since[k], start), 0.0)
            missed = changed[k] or (appears[k] and copy[page] == -np.inf)
            if missed and since[k] >= copy[page] and copy[page] < at[k] < end:
                day[total] = counted[page]
                total += 1
                number[page] += 1
            if counts[k]:
                counted[page] += max(min(until[k], end) - max(at[k], start), 0.0)


@compiled
def _relaxed(
    moments: _Moments, importance: Floats, price: float, harmonic: bool
) -> tuple[float, int]:
    """Return the cost of all pages with their visits at this price, and the visits."""
    total, visits = 0.0, 0
    most = 0
    for page in range(len(importance)):
        most = max(most, moments.offsets[page + 1] - moments.offsets[page])
    value, number = np.empty(most + 1), np.empty(most + 1, np.int64)
    for page in range(len(importance)):
        first, stop = moments.offsets[page], moments.offsets[page + 1]
        weight = importance[page]
        if stop > first and weight > 0:
            day, since = moments.day[first:stop], moments.since[first:stop]
            for a in range(stop - first, -1, -1):
                value[a], number[a] = _choose(
                    moments=(day, since),
                    end=moments.end[page],
                    a=a,
                    price=price / weight,
                    harmonic=harmonic,
                    value=value,
                    number=number,
                )
            total += weight * value[0]
            visits += number[0]
    return total, visits


@part
def _choose(
    moments: tuple[Floats, Floats], end: float, a: int, price: float, harmonic: bool,
    value: Floats, number: Ints,
) -> tuple[float, int]:  # fmt: skip
    """Return the least cost after all changes before the a-th are seen, and its visits."""
    day, since = moments
    best, visits = np.inf, 0
    # What it cost until here, by how much it grows in a day, what a visit at a would have spared.
    cost, missed, spared = 0.0, 0.0, 0.0
    for b in range(a, len(day)):
        if price + cost + value[b + 1] < best:
            best, visits = price + cost + value[b + 1], 1 + number[b + 1]
        cost += missed * (day[b] - since[b])
        if b > a and harmonic:
            spared += (day[b] - since[b]) / (b - a)
        elif b == a + 1:
            spared += day[b] - since[b]
        missed += 1.0 / (b - a + 1) if harmonic or b == a else 0.0
        until = since[b + 1] if b + 1 < len(day) else end
        cost += missed * (until - day[b])
        if harmonic or b == a:
            spared += (until - day[b]) / (b - a + 1)
        if spared > price:
            return best, visits
    return (cost, 0) if cost < best else (best, visits)
