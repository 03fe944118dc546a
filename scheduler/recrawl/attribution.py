"""How looks at the pages of a site become evidence for its clock.

Exposure is added to the bins of every interval between two looks; the changes of an interval are
divided among them, as :mod:`freshet.scheduler.recrawl.site_clock` has it.

The functions are compiled. Cost: a look touches the bins of its interval, one that found a change
divides some of the ring anew.
"""

from __future__ import annotations

from math import exp, expm1, factorial, log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arguments import Floats
from freshet.scheduler.compiling import part
from freshet.scheduler.recrawl.site_clock import (
    ALPHA,
    REACH,
    REWRITTEN,
    SHARED,
    Clock,
    cold_at,
    overlap,
    pooled,
    ring_is_full,
)

#: So many intervals are divided anew at each look that found a change, the newest of the ring.
_AT_ONCE: Final = 100
_MOST_CHANGES: Final = 1_000.0
#: What is that small counts, but for no more than this.
_LEAST_LOG: Final = -300.0
_LEAST_WEIGHT: Final = exp(_LEAST_LOG)
_LOG_2: Final = log(2)
_LOG2_E: Final = 1 / log(2)
#: Of the exponential function, the highest power first.
_SERIES: Final[Floats] = np.array([1 / factorial(n) for n in range(13, -1, -1)])


@part
def suspected(clock: Clock, number: int) -> float:
    """What the cold clock says of a changed interval without its own evidence: θ Σ o y."""
    if number < clock.facts[0].oldest:
        return 0.0
    slot = number % len(clock.ring)
    it = clock.ring[slot]
    total = it.theta * (
        cold_at(clock, it.begin, it.area) - cold_at(clock, it.begin - it.before, it.area)
    )
    for j in range(it.bins):
        part = overlap(clock, it.begin, it.end, it.first + j) / clock.facts[0].width
        shape, scale = _cold_evidence(clock, slot, j, clock.of_cold[slot, j], it.theta * part)
        total += it.theta * part * shape / scale
    return total


@part
def expose(clock: Clock, begin: float, end: float, rate: float, theta: float, area: int) -> int:
    """Take in that a page was looked at after this interval; its first bin."""
    facts = clock.facts[0]
    begin = max(begin, end - REACH * facts.width, facts.at)
    first = int((begin - facts.at) / facts.width)
    last = int((end - facts.at) / facts.width)
    for k in range(first, last + 1):
        days = overlap(clock, begin, end, k)
        clock.exposure[k] += SHARED * rate * days
        clock.cold_exposure[k, area] += theta * days / facts.width
        clock.all_exposure[k] += theta * days / facts.width
    return first


@part
def ascribe(
    clock: Clock, begin: float, end: float, rate: float, theta: float, area: int, owner: int
) -> int:
    """Divide the changes of an interval, and anew those it overlaps; the first bin touched.

    It has been exposed. Its number is then the last one, and ``owner`` whose it is.
    """
    facts = clock.facts[0]
    began, begin = begin, max(begin, end - REACH * facts.width, facts.at)
    if ring_is_full(clock):
        facts.oldest += 1
    slot = facts.next % len(clock.ring)
    facts.next += 1
    it = clock.ring[slot]
    it.begin, it.end, it.rate, it.theta = begin, end, rate, theta
    it.before, it.area, it.owner = begin - began, area, owner
    it.first = int((begin - facts.at) / facts.width)
    it.bins = int((end - facts.at) / facts.width) + 1 - it.first
    for j in range(it.bins):
        clock.of_shared[slot, j] = clock.of_cold[slot, j] = 0.0
    lowest = it.first
    oldest = max(facts.oldest, facts.next - _AT_ONCE)
    ring = clock.ring
    for number in range(facts.next - 1, oldest - 1, -1):
        other = ring[number % len(ring)]
        if other.bins > 0 and other.end >= begin:
            _divide(clock, number % len(ring))
            lowest = min(lowest, other.first)
    return lowest


@part
def _divide(clock: Clock, slot: int) -> None:
    """Ascribe the changes of an interval anew, in the light of all the others."""
    it, width = clock.ring[slot], clock.facts[0].width
    first, stop, area, theta = it.first, it.first + it.bins, it.area, it.theta
    changes, all_changes = clock.changes[first:stop], clock.all_changes[first:stop]
    cold_changes = clock.cold_changes[first:stop, area]
    of_shared, of_cold = clock.of_shared[slot, : it.bins], clock.of_cold[slot, : it.bins]
    _take_back(changes, of_shared)
    _take_back(all_changes, of_cold)
    _take_back(cold_changes, of_cold)
    days = _overlaps(clock, it.begin, it.end, first, it.bins)
    prior = ALPHA * width
    hazard, weights = _weighed(days, prior + changes, prior + clock.exposure[first:stop])
    parts = days / width
    others = pooled(clock.all_exposure[first:stop], clock.cold_exposure[first:stop, area])
    cold_hazard, cold_weights = _weighed(
        parts,
        REWRITTEN * width + pooled(all_changes, cold_changes),
        1.0 + np.maximum(others - theta * parts, 0.0),
    )
    hazard, cold_hazard = it.rate * SHARED * hazard, theta * cold_hazard
    own_hazard = it.rate * (it.before + (1 - SHARED) * (it.end - it.begin))
    each = _changes_for_each(hazard + cold_hazard + own_hazard)
    _ascribe_to(of_shared, weights, each * hazard)
    _ascribe_to(of_cold, cold_weights, each * cold_hazard)
    changes += of_shared
    all_changes += of_cold
    cold_changes += of_cold


@part
def _changes_for_each(hazard: float) -> float:
    """How many changes are expected of a changed interval, over its hazard."""
    return min(_MOST_CHANGES, hazard / -expm1(-hazard)) / hazard if hazard > 0 else 0.0


@part
def _take_back(changes: Floats, own: NDArray[np.float32]) -> None:
    """Take what an interval ascribed to its bins out of the sums."""
    for j in range(len(own)):
        changes[j] = max(changes[j] - own[j], 0.0)


@part
def _ascribe_to(own: NDArray[np.float32], weights: Floats, changes: float) -> None:
    """Divide so many changes among bins."""
    total = weights.sum()
    each = changes / total if total > 0 else 0.0
    for j in range(len(own)):
        own[j] = each * weights[j]


@part
def _overlaps(clock: Clock, begin: float, end: float, first: int, bins: int) -> Floats:
    """(bins,), the days of an interval that lie in each of its bins."""
    days = np.empty(bins)
    for j in range(bins):
        days[j] = overlap(clock, begin, end, first + j)
    return days


@part
def _weighed(exposed: Floats, shape: Floats, scale: Floats) -> tuple[float, Floats]:
    """The hazard of these bins at the rate 1, and (bins,) what each weighs.

    Nothing is called in the loop that the processor could not do for several bins at once.
    """
    hazard, weights = 0.0, np.empty(len(exposed))
    for j in range(len(exposed)):
        share = exposed[j] / scale[j]
        hazard += share * shape[j]
        weights[j] = share * exp_digamma(shape[j])
    return hazard, weights


@part
def _cold_evidence(clock: Clock, slot: int, j: int, own: float, part: float) -> tuple[float, float]:
    """Shape and scale of y in a bin and the area of an interval, without its own part."""
    it = clock.ring[slot]
    k = it.first + j
    shape = pooled(clock.all_changes[k], clock.cold_changes[k, it.area])
    scale = pooled(clock.all_exposure[k], clock.cold_exposure[k, it.area])
    prior = REWRITTEN * clock.facts[0].width
    return prior + max(shape - own, 0.0), 1.0 + max(scale - part, 0.0)


@part
def exp_digamma(x: float) -> float:
    """exp(ψ(x)) for x > 0, to 1e-4: ψ by recurrence, and exp(ψ(y + ½)) = y + 1/(24y) − …."""
    near = min(max(x, -1 / _LEAST_LOG), 8.0)
    recurred = _exp(-((3 * near + 6) * near + 2) / (near * (near + 1) * (near + 2)))
    y = x + 2.5 if x <= 8 else x - 0.5
    found = (y + 1 / (24 * y)) * (recurred if x <= 8 else 1.0)
    return _LEAST_WEIGHT if x * _LEAST_LOG > -1 else found


@part
def _exp(x: float) -> float:
    """eˣ for −700 < x ≤ 0, to 1e-13 of it: 2ᵏ by its bits, and the series of the rest."""
    k = np.int64(x * _LOG2_E - 0.5)
    rest = x - k * _LOG_2
    series = _SERIES[0]
    for n in range(1, len(_SERIES)):
        series = series * rest + _SERIES[n]
    return series * np.int64((k + 1023) << 52).view(np.float64)
