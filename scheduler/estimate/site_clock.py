"""The clock of one site: how much faster or slower than usual its pages changed, bin by bin.

The pages of a site change together: when it is edited, rebuilt or moved. So the hazard of page i
at time t is taken to be

    d_i [(1 − b) + b m(t)] + θ_i y(t),        changes a day.

m(t), the *site's clock*, is shared and has the mean 1; y(t), the *cold clock*, is an equal jump
for all pages that hardly ever change (θ_i near 1, and near 0 for the busy ones), as when a site
is rewritten; each *area* of the site has its own, with a fifth of its evidence shared by all
areas. Both are constant within bins of width w, with priors m ~ Gamma(αw, αw) and
yw ~ Gamma(cw, 1), independent from bin to bin: αw and cw are small, so changes come in bursts.

Visits are the ends of intervals (l, t] in which a page changed or not. An unchanged interval
adds exposure to its bins. In a changed one the expected
number of changes, x/(1 − e^{−x}) for the hazard x accumulated over it, is divided among the page's
own time, its bins of m and its bins of y in proportion to their share in x; among bins by weights
o exp(ψ(a + N))/(a + E), which draw overlapping intervals to common bins (variational Bayes).
The changed intervals of the last time, the *ring*, are divided anew whenever one that overlaps
comes.

    b    share of the hazard that keeps the site's time          0.65
    α    strength of the prior of m                              0.2 a day
    c    how often an area is rewritten                          1e-5 a day
    w    bin width, an 80th of the mean time between two visits  days
    o    overlap of an interval with a bin                       days; of the cold clock, bins
    N, E  changes ascribed to a bin, and its exposure;  those of the cold clock likewise

An interval reaches back over its last 256 bins, and at least 512 bins are kept, so a clock takes
the same memory after years. The owner notes what pages need of bins before they are dropped
(:func:`crowded`, :func:`drop_oldest`).

The functions are compiled, and a clock is a tuple of arrays that they write into. Cost: a visit
touches the bins of its interval, one that found a change divides some of the ring anew.

Reference: ours; the weights are those of variational mixtures (C. Bishop, "Pattern Recognition and
Machine Learning", 2006, section 10.2).
"""

from math import exp, expm1, factorial, log
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arrays import Floats, compiled, part

Evidence = TypeVar("Evidence", float, Floats)

#: b, the share of a page's hazard that keeps the site's time.
SHARED: Final = 0.65
ALPHA: Final = 0.2
#: c, a day.
REWRITTEN: Final = 1e-5
#: Bins of the mean time between two visits.
BINS_A_TURN: Final = 80
#: The part of the evidence for the cold clock that counts in all areas.
_POOLED: Final = 0.2
BINS: Final = 768
_DROPPED: Final = 256
#: The last bins of an interval that count: three mean times between two visits.
REACH: Final = 256
#: Changed intervals that are divided anew, at most.
_RING: Final = 300
_FIRST_RING: Final = 16

_FACTS: Final = np.dtype(
    [
        ("width", np.float64),
        # The days of the first edge that is kept, and of the first of all.
        ("at", np.float64),
        ("begin", np.float64),
        # Bins that the sums at the edges go up to.
        ("summed", np.int64),
        # Numbers of the oldest interval in the ring and of the next.
        ("oldest", np.int64),
        ("next", np.int64),
    ],
    align=True,
)
_INTERVAL: Final = np.dtype(
    [
        ("begin", np.float64),
        ("end", np.float64),
        # Days before the first of its bins, in which it keeps its own time.
        ("before", np.float64),
        ("rate", np.float64),
        ("theta", np.float64),
        ("area", np.int64),
        ("owner", np.int64),
        ("first", np.int64),
        # Its bins; 0 where it was dropped.
        ("bins", np.int64),
    ],
    align=True,
)


class ClockState(NamedTuple):
    """Arrays of a clock; bins go along axis 0, areas along axis 1.

    ``shared`` and ``cold`` are M(t) and Y(t), summed up to the edges of the bins; ``ring`` with
    ``of_shared`` and ``of_cold`` are changed intervals and what was ascribed of them to each bin.
    """

    facts: NDArray[np.void]
    changes: Floats
    exposure: Floats
    cold_changes: Floats
    cold_exposure: Floats
    all_changes: Floats
    all_exposure: Floats
    shared: Floats
    cold: Floats
    ring: NDArray[np.void]
    of_shared: NDArray[np.float32]
    of_cold: NDArray[np.float32]


def stopped() -> ClockState:
    """Return a clock without bins, for a site that has none yet."""
    return _sized(0, 1, 1)


def started(at: float, width: float, areas: int) -> ClockState:
    """Return a clock of bins from day ``at`` on, each ``width`` days, for this number of areas."""
    clock = _sized(BINS, areas, _FIRST_RING)
    restart(clock, at, width)
    return clock


def with_areas(clock: ClockState, areas: int) -> ClockState:
    """Return the clock with this number of areas; new ones start from all areas' evidence."""
    further = areas - clock.cold.shape[1]

    def widened(columns: Floats) -> Floats:
        return np.pad(columns, ((0, 0), (0, further)))

    grown = clock._replace(
        cold_changes=widened(clock.cold_changes),
        cold_exposure=widened(clock.cold_exposure),
        cold=widened(clock.cold),
    )
    # What was summed up before the first bin that is kept is not known by area.
    grown.cold[0, -further:] = clock.cold[0].min()
    sum_from(grown, 0, int(clock.facts[0]["summed"]))
    return grown


def with_larger_ring(clock: ClockState) -> ClockState:
    """Return the clock with room for more changed intervals."""
    size = min(_RING, 2 * len(clock.ring))
    grown = clock._replace(
        ring=np.zeros(size, _INTERVAL),
        of_shared=np.zeros((size, REACH + 1), np.float32),
        of_cold=np.zeros((size, REACH + 1), np.float32),
    )
    for number in range(int(clock.facts[0]["oldest"]), int(clock.facts[0]["next"])):
        old, new = number % len(clock.ring), number % size
        grown.ring[new] = clock.ring[old]
        grown.of_shared[new], grown.of_cold[new] = clock.of_shared[old], clock.of_cold[old]
    return grown


def _sized(bins: int, areas: int, ring: int) -> ClockState:
    width = REACH + 1 if bins else 1
    return ClockState(
        facts=np.zeros(1, _FACTS),
        changes=np.zeros(bins),
        exposure=np.zeros(bins),
        cold_changes=np.zeros((bins, areas)),
        cold_exposure=np.zeros((bins, areas)),
        all_changes=np.zeros(bins),
        all_exposure=np.zeros(bins),
        shared=np.zeros(bins + 1),
        cold=np.zeros((bins + 1, areas)),
        ring=np.zeros(ring, _INTERVAL),
        of_shared=np.zeros((ring, width), np.float32),
        of_cold=np.zeros((ring, width), np.float32),
    )


@compiled
def restart(clock: ClockState, at: float, width: float) -> None:
    """Begin anew on this day, with bins of this width."""
    facts = clock.facts[0]
    facts.width, facts.at, facts.begin = width, at, at
    facts.summed, facts.oldest, facts.next = 0, 0, 0
    for k in range(BINS):
        _move_bin(clock, k, BINS)
    clock.shared[0] = 0.0
    for area in range(clock.cold.shape[1]):
        clock.cold[0, area] = 0.0


# -- reading ---------------------------------------------------------------------


@part
def shared_at(clock: ClockState, day: float) -> float:
    """Return M(t) on a day that is kept; it passes at the pace 1 after the last visit."""
    facts = clock.facts[0]
    place = max(day - facts.at, 0.0) / facts.width
    if place >= facts.summed:
        return clock.shared[facts.summed] + (place - facts.summed) * facts.width
    first = int(place)
    edge = clock.shared[first]
    return edge + (place - first) * (clock.shared[first + 1] - edge)


@part
def cold_at(clock: ClockState, day: float, area: int) -> float:
    """Return Y(t), the sum of the cold clock's jumps in an area up to a day that is kept."""
    facts = clock.facts[0]
    place = max(day - facts.at, 0.0) / facts.width
    if place >= facts.summed:
        further = (place - facts.summed) * facts.width * REWRITTEN
        return clock.cold[facts.summed, area] + further
    first = int(place)
    edge = clock.cold[first, area]
    return edge + (place - first) * (clock.cold[first + 1, area] - edge)


@part
def pace_before(clock: ClockState, end: float) -> float:
    """Return the factor that keeps rates in days: the mean pace one interval before is 1."""
    facts = clock.facts[0]
    turn = BINS_A_TURN * facts.width
    day = max(end - turn, facts.at)
    settled = day - facts.begin
    return (settled + 2 * turn) / (shared_at(clock, day) + 2 * turn)


# -- taking in -------------------------------------------------------------------


@part
def crowded(clock: ClockState, day: float) -> bool:
    """Return whether the oldest bins must be dropped before a visit on this day."""
    return (day - clock.facts[0].at) / clock.facts[0].width >= BINS


@part
def dropped_before(clock: ClockState) -> float:
    """Return the day before which nothing is known after :func:`drop_oldest`."""
    return clock.facts[0].at + _DROPPED * clock.facts[0].width


@part
def drop_oldest(clock: ClockState) -> None:
    """Drop the oldest bins, and the intervals that reach into them."""
    facts = clock.facts[0]
    if facts.summed < BINS:
        sum_from(clock, facts.summed, BINS)
    kept = BINS - _DROPPED
    for k in range(BINS):
        _move_bin(clock, k, k + _DROPPED)
    for k in range(kept + 1):
        clock.shared[k] = clock.shared[k + _DROPPED]
        for area in range(clock.cold.shape[1]):
            clock.cold[k, area] = clock.cold[k + _DROPPED, area]
    facts.at += _DROPPED * facts.width
    facts.summed = kept
    for number in range(facts.oldest, facts.next):
        it = clock.ring[number % len(clock.ring)]
        it.first -= _DROPPED
        if it.first < 0:
            it.bins = 0


@part
def _move_bin(clock: ClockState, to: int, source: int) -> None:
    """Fill a bin with another's content, or with zeros past the last one."""
    for bins in (clock.changes, clock.exposure, clock.all_changes, clock.all_exposure):
        bins[to] = bins[source] if source < BINS else 0.0
    for columns in (clock.cold_changes, clock.cold_exposure):
        for area in range(columns.shape[1]):
            columns[to, area] = columns[source, area] if source < BINS else 0.0


@part
def ring_is_full(clock: ClockState) -> bool:
    """Return whether the next changed interval takes the place of the oldest one."""
    facts = clock.facts[0]
    while facts.oldest < facts.next and clock.ring[facts.oldest % len(clock.ring)].bins == 0:
        facts.oldest += 1
    return facts.next - facts.oldest == len(clock.ring)


@part
def ring_can_grow(clock: ClockState) -> bool:
    """Return whether a larger ring is allowed."""
    return len(clock.ring) < _RING


@compiled
def sum_from(clock: ClockState, first: int, stop: int) -> None:
    """Sum the clocks up anew, from bin ``first`` up to ``stop`` or as far as they were summed."""
    facts = clock.facts[0]
    prior, cold_prior = ALPHA * facts.width, REWRITTEN * facts.width
    first = min(first, facts.summed)
    stop = max(stop, facts.summed)
    for k in range(first, stop):
        pace = (prior + clock.changes[k]) / (prior + clock.exposure[k])
        clock.shared[k + 1] = clock.shared[k] + facts.width * pace
        for area in range(clock.cold.shape[1]):
            shape = pooled(clock.all_changes[k], clock.cold_changes[k, area])
            scale = pooled(clock.all_exposure[k], clock.cold_exposure[k, area])
            clock.cold[k + 1, area] = clock.cold[k, area] + (cold_prior + shape) / (1 + scale)
    facts.summed = stop


@part
def pooled(everywhere: Evidence, here: Evidence) -> Evidence:
    """Return an area's evidence mixed with that of all areas."""
    return _POOLED * everywhere + (1 - _POOLED) * here


@part
def overlap(clock: ClockState, begin: float, end: float, k: int) -> float:
    """Return the days of an interval that lie in a bin."""
    facts = clock.facts[0]
    left = facts.at + k * facts.width
    return max(0.0, min(end, left + facts.width) - max(begin, left))


# -- attribution --

#: The newest intervals of the ring that are divided anew at each visit that found a change.
_AT_ONCE: Final = 100
_MOST_CHANGES: Final = 1_000.0
#: Smaller values count as this one.
_LEAST_LOG: Final = -300.0
_LEAST_WEIGHT: Final = exp(_LEAST_LOG)
_LOG_2: Final = log(2)
_LOG2_E: Final = 1 / log(2)
#: Of the exponential function, the highest power first.
_SERIES: Final[Floats] = np.array([1 / factorial(n) for n in range(13, -1, -1)])


@part
def suspected(clock: ClockState, number: int) -> float:
    """Return the cold hazard θ Σ o y of a changed interval without its own evidence."""
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
def expose(
    clock: ClockState, begin: float, end: float, rate: float, theta: float, area: int
) -> int:
    """Add the exposure of an interval between two visits; return its first bin."""
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
    clock: ClockState, begin: float, end: float, rate: float, theta: float, area: int, owner: int
) -> int:
    """Divide the changes of an interval, and of those it overlaps, among bins; return the first.

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
def _divide(clock: ClockState, slot: int) -> None:
    """Divide the changes of an interval among its bins anew, given all the others."""
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
    """Return the expected changes of a changed interval over its hazard."""
    return min(_MOST_CHANGES, hazard / -expm1(-hazard)) / hazard if hazard > 0 else 0.0


@part
def _take_back(changes: Floats, own: NDArray[np.float32]) -> None:
    """Subtract an interval's own changes from the sums."""
    for j in range(len(own)):
        changes[j] = max(changes[j] - own[j], 0.0)


@part
def _ascribe_to(own: NDArray[np.float32], weights: Floats, changes: float) -> None:
    """Divide these changes among bins."""
    total = weights.sum()
    each = changes / total if total > 0 else 0.0
    for j in range(len(own)):
        own[j] = each * weights[j]


@part
def _overlaps(clock: ClockState, begin: float, end: float, first: int, bins: int) -> Floats:
    """Return the days (bins,) of an interval that lie in each of its bins."""
    days = np.empty(bins)
    for j in range(bins):
        days[j] = overlap(clock, begin, end, first + j)
    return days


@part
def _weighed(exposed: Floats, shape: Floats, scale: Floats) -> tuple[float, Floats]:
    """Return the hazard of these bins at the rate 1, and the weight (bins,) of each.

    Nothing is called in the loop that the processor could not do for several bins at once.
    """
    hazard, weights = 0.0, np.empty(len(exposed))
    for j in range(len(exposed)):
        share = exposed[j] / scale[j]
        hazard += share * shape[j]
        weights[j] = share * exp_digamma(shape[j])
    return hazard, weights


@part
def _cold_evidence(
    clock: ClockState, slot: int, j: int, own: float, part: float
) -> tuple[float, float]:
    """Return shape and scale of y in a bin and an interval's area, without its own part."""
    it = clock.ring[slot]
    k = it.first + j
    shape = pooled(clock.all_changes[k], clock.cold_changes[k, it.area])
    scale = pooled(clock.all_exposure[k], clock.cold_exposure[k, it.area])
    prior = REWRITTEN * clock.facts[0].width
    return prior + max(shape - own, 0.0), 1.0 + max(scale - part, 0.0)


@part
def exp_digamma(x: float) -> float:
    """Return exp(ψ(x)), x > 0, to 1e-4: by recurrence and exp(ψ(y + ½)) = y + 1/(24y) − …."""
    near = min(max(x, -1 / _LEAST_LOG), 8.0)
    recurred = _exp(-((3 * near + 6) * near + 2) / (near * (near + 1) * (near + 2)))
    y = x + 2.5 if x <= 8 else x - 0.5
    found = (y + 1 / (24 * y)) * (recurred if x <= 8 else 1.0)
    return _LEAST_WEIGHT if x * _LEAST_LOG > -1 else found


@part
def _exp(x: float) -> float:
    """Return eˣ for −700 < x ≤ 0, to 1e-13 of it: 2ᵏ by its bits, and the series of the rest."""
    k = np.int64(x * _LOG2_E - 0.5)
    rest = x - k * _LOG_2
    series = _SERIES[0]
    for n in range(1, len(_SERIES)):
        series = series * rest + _SERIES[n]
    return series * np.int64((k + 1023) << 52).view(np.float64)
