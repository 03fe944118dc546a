"""How looks at the pages of a site become evidence for its clock. Pure.

Exposure is added to the bins of every interval between two looks; the changes of an interval are
divided among them, as :mod:`scheduler.recrawl.site_clock` has it.

The functions are compiled. Cost: a look touches the bins of its interval, one that found a change
divides some of the ring anew.
"""

from __future__ import annotations

from math import exp, expm1
from typing import Final

import numpy as np

from scheduler.compiling import part
from scheduler.recrawl.site_clock import (
    ALPHA,
    BINS,
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
    for number in range(facts.next - 1, oldest - 1, -1):
        lowest = min(lowest, _divide_if(clock, number % len(clock.ring), begin))
    return lowest


@part
def _divide_if(clock: Clock, slot: int, begin: float) -> int:
    """Divide an interval that ends after ``begin`` anew; its first bin, or beyond all."""
    it = clock.ring[slot]
    if it.bins == 0 or it.end < begin:
        return BINS
    _divide(clock, slot)
    return it.first


@part
def _divide(clock: Clock, slot: int) -> None:
    """Ascribe the changes of an interval anew, in the light of all the others."""
    it, width = clock.ring[slot], clock.facts[0].width
    prior = ALPHA * width
    weights, cold_weights = np.empty(it.bins), np.empty(it.bins)
    shared_hazard = cold_hazard = total = cold_total = 0.0
    for j in range(it.bins):
        k = it.first + j
        days = overlap(clock, it.begin, it.end, k)
        _take_back(clock, slot, j)
        shape, scale = prior + clock.changes[k], prior + clock.exposure[k]
        shared_hazard += it.rate * SHARED * days * shape / scale
        weights[j] = days * exp_digamma(shape) / scale
        total += weights[j]
        part = days / width
        shape, scale = _cold_evidence(clock, slot, j, 0.0, it.theta * part)
        cold_hazard += it.theta * part * shape / scale
        cold_weights[j] = part * exp_digamma(shape) / scale
        cold_total += cold_weights[j]
    own_hazard = it.rate * (it.before + (1 - SHARED) * (it.end - it.begin))
    hazard = shared_hazard + cold_hazard + own_hazard
    each = min(_MOST_CHANGES, hazard / -expm1(-hazard)) / hazard if hazard > 0 else 0.0
    to_shared = each * shared_hazard / total if total > 0 else 0.0
    to_cold = each * cold_hazard / cold_total if cold_total > 0 else 0.0
    for j in range(it.bins):
        clock.of_shared[slot, j] = to_shared * weights[j]
        clock.of_cold[slot, j] = to_cold * cold_weights[j]
        k = it.first + j
        clock.changes[k] += clock.of_shared[slot, j]
        clock.cold_changes[k, it.area] += clock.of_cold[slot, j]
        clock.all_changes[k] += clock.of_cold[slot, j]


@part
def _take_back(clock: Clock, slot: int, j: int) -> None:
    """Take what an interval ascribed to its so-manieth bin out of the sums."""
    it = clock.ring[slot]
    k = it.first + j
    clock.changes[k] = max(clock.changes[k] - clock.of_shared[slot, j], 0.0)
    own = clock.of_cold[slot, j]
    clock.cold_changes[k, it.area] = max(clock.cold_changes[k, it.area] - own, 0.0)
    clock.all_changes[k] = max(clock.all_changes[k] - own, 0.0)


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
    if x * _LEAST_LOG > -1:
        return _LEAST_WEIGHT
    if x > 8:
        y = x - 0.5
        return y + 1 / (24 * y)
    y = x + 2.5
    return (y + 1 / (24 * y)) * exp(-(1 / x + 1 / (x + 1) + 1 / (x + 2)))
