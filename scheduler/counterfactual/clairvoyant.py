"""The least that looks at archived pages can cost, for one who knows all captures.

*What it bounds.* The optimistic costs (:mod:`scheduler.counterfactual.bounds`) of every choice of
at most F looks from ``start`` to ``end``, however it was made: by knowing the captures, at any
moments, with the copies of ``start``. A budget paces its looks and a policy learns; both only
add to it. It says nothing of the early and the pessimistic figures, which are larger still.

A change may have come as soon as its gap began, so that a look right then may see it, and the cost
of what it sees ends there; no later look of the gap is better. So a page's least cost with k looks
is a choice of k of its m changes, and among all pages

    max over λ ≥ 0 of  Σ μ-weighted min over k (cost(k) + λk) − λF

is at most the least cost: the looks' price λ relaxes their number. It is reached where some λ
spends F exactly, and else falls short by less than one page's choice.

Method: V(a), the least from a look at change a on, is the least over the next change b looked at
of cost(a, b) + λ + V(b); a b is not tried further once a look at a + 1 beside it is worth more
than λ. λ by bisection. Any λ is a bound, so that no tolerance matters. Cost: O(changes) each λ
where budgets are ample, up to their square in a page.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from freshet.scheduler.arguments import Bools, Floats, Ints
from freshet.scheduler.compiling import compiled, part
from freshet.scheduler.counterfactual.timeline import Timeline
from freshet.scheduler.simulate.ragged import offsets_of

_ROUNDS: Final = 50


class Moments(NamedTuple):
    """When changes of n pages became certain, in days of their own that count from ``start``.

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
    timeline: Timeline, copy: Floats, importance: Floats, span: tuple[float, float], looks: int,
    *, harmonic: bool,
) -> float:  # fmt: skip
    """A lower bound of the importance-weighted cost of all pages, in days.

    Args:
        timeline: the archive.
        copy: (n,), the days of the looks before ``span``; −inf: there is no copy.
        importance: (n,), μ.
        span: the days between which costs count.
        looks: F.
        harmonic: whether the cost is the harmonic one, else the binary one.
    """
    moments = moments_of(timeline, copy, *span)
    most = int(np.diff(moments.offsets).max(initial=0))
    heaviest = float((importance * moments.end).max(initial=0.0))
    low, high = 0.0, max(heaviest, np.finfo(float).tiny) * (1 + most)
    best = 0.0
    for round_ in range(_ROUNDS):
        price = 0.0 if round_ == 0 else (low + high) / 2
        cost, taken = _relaxed(moments, importance, price, harmonic)
        best = max(best, cost - price * looks)
        if taken > looks:
            low = price
        else:
            high = price
        if price == 0.0 and taken <= looks:
            break
    return best


def moments_of(timeline: Timeline, copy: Floats, start: float, end: float) -> Moments:
    """The changes that a copy misses for certain, and the days that count."""
    counted = np.zeros(len(timeline))
    number = np.zeros(len(timeline), np.int64)
    day, sight = np.empty(len(timeline.at)), np.empty(len(timeline.at))
    _list(
        (timeline.offsets, timeline.since, timeline.at, timeline.until),
        (timeline.appears, timeline.changed, timeline.counts, timeline.gap_counts),
        copy, (float(start), float(end)), (day, sight), number, counted,
    )  # fmt: skip
    total = int(number.sum())
    return Moments(offsets_of(number), day[:total], sight[:total], counted)


@compiled
def _list(
    columns: tuple[Ints, Floats, Floats, Floats], flags: tuple[Bools, Bools, Bools, Bools],
    copy: Floats, span: tuple[float, float], moments: tuple[Floats, Floats], number: Ints,
    counted: Floats,
) -> None:  # fmt: skip
    offsets, since, at, until = columns
    appears, changed, counts, gap_counts = flags
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
    moments: Moments, importance: Floats, price: float, harmonic: bool
) -> tuple[float, int]:
    """The sum over the pages of what they cost with their looks at this price; the looks."""
    total, looks = 0.0, 0
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
                    (day, since), moments.end[page], a, price / weight, harmonic, value, number
                )
            total += weight * value[0]
            looks += number[0]
    return total, looks


@part
def _choose(
    moments: tuple[Floats, Floats], end: float, a: int, price: float, harmonic: bool,
    value: Floats, number: Ints,
) -> tuple[float, int]:  # fmt: skip
    """The least cost from where all changes before the a-th are seen, and its looks."""
    day, since = moments
    best, looks = np.inf, 0
    # What it cost until here, by how much it grows in a day, what a look at a would have spared.
    cost, missed, spared = 0.0, 0.0, 0.0
    for b in range(a, len(day)):
        if price + cost + value[b + 1] < best:
            best, looks = price + cost + value[b + 1], 1 + number[b + 1]
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
            return best, looks
    return (cost, 0) if cost < best else (best, looks)
