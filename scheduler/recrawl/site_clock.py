"""The clock of one site: how much faster or slower than usual its pages changed, bin by bin. Pure.

The pages of a site change together: when it is edited, rebuilt or moved. So the hazard of page i
at time t is taken to be

    d_i [(1 − b) + b m(t)] + θ_i y(t),        changes a day.

m(t), the *site's clock*, is shared and has the mean 1; y(t), the *cold clock*, is an equal jump
for all pages that hardly ever change (θ_i near 1, and near 0 for the busy ones), as when a site
is rewritten; of each *area* of the site it is another one, a fifth of the evidence for it being
shared by all areas. Both are constant within bins of width w, with priors m ~ Gamma(αw, αw) and
yw ~ Gamma(cw, 1), independent from bin to bin: αw and cw are small, so changes come in bursts.

Looks are intervals (l, t] at whose end a page had changed or not. In an unchanged interval all
that could have happened did not: exposure is added to its bins. In a changed one the expected
number of changes, x/(1 − e^{−x}) for the hazard x accumulated over it, is divided among the page's
own time, its bins of m and its bins of y in proportion to their share in x; among bins by weights
o exp(ψ(a + N))/(a + E), which draw overlapping intervals to common bins (variational Bayes).
A ring of the last changed intervals is divided anew whenever one that overlaps comes.

    b    share of the hazard that keeps the site's time          0.65
    α    strength of the prior of m                              0.2 a day
    c    how often an area is rewritten                          1e-5 a day
    w    bin width, an 80th of the mean time between two looks   days
    o    overlap of an interval with a bin                       days; of the cold clock, bins
    N, E  changes ascribed to a bin, and its exposure;  those of the cold clock likewise

Cost: a look touches the bins of its interval; one that found a change divides some of the ring
anew, a few hundred numpy operations. Memory: 53 numbers a bin, and up to 3 × 640 for each interval
of the ring.

Reference: ours; the weights are those of variational mixtures (C. Bishop, "Pattern Recognition and
Machine Learning", 2006, section 10.2).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from scipy.special import digamma

from scheduler.arguments import Floats
from scheduler.sources import Rows

#: b, the share of a page's hazard that keeps the site's time.
SHARED: Final = 0.65
_ALPHA: Final = 0.2
#: c, a day.
REWRITTEN: Final = 1e-5
#: The areas of a site; the last one is for all pages in none of the others.
AREAS: Final = 16
#: The part of the evidence for the cold clock that counts in all areas.
_POOLED: Final = 0.2
_RING: Final = 300
#: Of an interval so many bins count, the last ones: eight mean times between two looks.
_MOST_BINS: Final = 640
_MOST_CHANGES: Final = 1_000.0
#: What grows with the bins.
_EVIDENCE: Final = (
    "_changes", "_exposure", "_cold_changes", "_cold_exposure", "_all_changes", "_all_exposure",
)  # fmt: skip
_LEAST_LOG: Final = -300.0


@dataclass(slots=True, eq=False)
class Changed:
    """A changed interval from ``begin`` to ``end``: its bins, and the changes ascribed to them."""

    begin: float
    end: float
    bins: slice
    overlap: Floats
    rate: float
    theta: float
    area: int
    shared: Floats
    cold: Floats

    def let_go(self) -> None:
        """Keep what was ascribed, and forget which part: pages may hold intervals for long."""
        self.bins = slice(0, 0)
        self.overlap = self.shared = self.cold = np.zeros(0)


class SiteClock:
    """Bins from day ``at`` on, each ``width`` days; days before it are the first bin's."""

    def __init__(self, at: float, width: float) -> None:
        self.width = width
        self._at = at
        self._prior = _ALPHA * width
        self._cold_prior = REWRITTEN * width
        self._changes, self._exposure = np.zeros(64), np.zeros(64)
        self._cold_changes, self._cold_exposure = np.zeros((64, AREAS)), np.zeros((64, AREAS))
        # Over all areas.
        self._all_changes, self._all_exposure = np.zeros(64), np.zeros(64)
        # At the edges of the bins, as far as there are looks.
        self._shared, self._cold = np.zeros((1, 1)), np.zeros((1, AREAS))
        self._ring: deque[Changed] = deque()

    def shared(self, days: Floats) -> Floats:
        """M(t), the site's time on these days; it passes at the pace 1 where no look has been."""
        return self._read(self._shared, 1.0, days, 0)

    def cold(self, days: Floats, area: Rows | int) -> Floats:
        """Y(t), the sum of the cold clock's jumps up to these days in these areas."""
        return self._read(self._cold, REWRITTEN, days, area)

    def _read(self, edges: Floats, pace: float, days: Floats, column: Rows | int) -> Floats:
        place = (np.maximum(days, self._at) - self._at) / self.width
        last = len(edges) - 1
        inside = np.minimum(place, last)
        before = inside.astype(np.intp)
        after = np.minimum(before + 1, last)
        at_edge = edges[before, column]
        found: Floats = at_edge + (inside - before) * (edges[after, column] - at_edge)
        return found + (place - inside) * self.width * pace

    def look(
        self, begin: float, end: float, rate: float, theta: float, area: int, *, changed: bool
    ) -> tuple[float, Changed | None]:
        """Take in a look; the day from which on the clock may be another one."""
        begin = max(begin, end - _MOST_BINS * self.width, self._at)
        bins, overlap = self._overlap(begin, max(end, begin))
        self._exposure[bins] += SHARED * rate * overlap
        self._cold_exposure[bins, area] += theta * overlap / self.width
        self._all_exposure[bins] += theta * overlap / self.width
        first, found = bins.start, None
        if changed:
            nothing = np.zeros(len(overlap))
            found = Changed(begin, end, bins, overlap, rate, theta, area, nothing, nothing)
            if len(self._ring) == _RING:
                self._ring.popleft().let_go()
            self._ring.append(found)
            others = [each for each in self._ring if each.end >= begin]
            for each in chain(reversed(others), others):
                self._divide(each)
                first = min(first, each.bins.start)
        self._sum_from(first, bins.stop)
        return self._at + first * self.width, found

    def suspected(self, interval: Changed) -> float:
        """What the cold clock says of an interval without its own evidence: θ Σ o y."""
        part = interval.theta * interval.overlap / self.width
        shape, scale = self._cold_evidence(interval, interval.cold, part)
        return float((part * shape / scale).sum())

    def _cold_evidence(
        self, it: Changed, own: Floats | float, part: Floats
    ) -> tuple[Floats, Floats]:
        """Shape and scale of y in the bins and the area of an interval, without its own part."""
        bins, here = it.bins, 1 - _POOLED
        shape = _POOLED * self._all_changes[bins] + here * self._cold_changes[bins, it.area]
        scale = _POOLED * self._all_exposure[bins] + here * self._cold_exposure[bins, it.area]
        return self._cold_prior + np.maximum(shape - own, 0.0), 1.0 + np.maximum(scale - part, 0.0)

    def _overlap(self, begin: float, end: float) -> tuple[slice, Floats]:
        """The bins of an interval, and how many of its days lie in each."""
        first, last = (int((day - self._at) / self.width) for day in (begin, end))
        while last >= len(self._changes):
            self._grow()
        overlap = np.full(last - first + 1, self.width)
        overlap[0] -= begin - (self._at + first * self.width)
        overlap[-1] -= self._at + (last + 1) * self.width - end
        return slice(first, last + 1), np.maximum(overlap, 0.0)

    def _grow(self) -> None:
        for name in (
            "_changes",
            "_exposure",
            "_cold_changes",
            "_cold_exposure",
            "_all_changes",
            "_all_exposure",
        ):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros_like(old)]))

    def _divide(self, it: Changed) -> None:
        """Ascribe the changes of an interval anew, in the light of all the others."""
        bins, own = it.bins, it.overlap
        changes = np.maximum(self._changes[bins] - it.shared, 0.0)
        shape, scale = self._prior + changes, self._prior + self._exposure[bins]
        part = own / self.width
        self._cold_changes[bins, it.area] -= it.cold
        self._all_changes[bins] -= it.cold
        cold_shape, cold_scale = self._cold_evidence(it, 0.0, it.theta * part)
        shared_hazard = it.rate * SHARED * float((own * shape / scale).sum())
        cold_hazard = it.theta * float((part * cold_shape / cold_scale).sum())
        hazard = shared_hazard + cold_hazard + it.rate * (1 - SHARED) * (it.end - it.begin)
        each = min(_MOST_CHANGES, hazard / -np.expm1(-hazard)) / hazard if hazard > 0 else 0.0
        it.shared = each * shared_hazard * _parts(own, shape, scale)
        it.cold = each * cold_hazard * _parts(part, cold_shape, cold_scale)
        self._changes[bins] = changes + it.shared
        self._cold_changes[bins, it.area] += it.cold
        self._all_changes[bins] += it.cold

    def _sum_from(self, first: int, stop: int) -> None:
        """Sum the clocks up anew from a bin on."""
        stop = max(stop, len(self._shared) - 1)
        bins = slice(first, stop)
        pace = (self._prior + self._changes[bins]) / (self._prior + self._exposure[bins])
        changes = _pooled(self._cold_changes[bins], self._all_changes[bins])
        exposure = _pooled(self._cold_exposure[bins], self._all_exposure[bins])
        jump = (self._cold_prior + changes) / (1.0 + exposure)
        self._shared = _continued(self._shared, first, self.width * pace[:, None], self.width)
        self._cold = _continued(self._cold, first, jump, self._cold_prior)


def _pooled(areas: Floats, everywhere: Floats) -> Floats:
    """(bins, areas), each area's evidence with its part of that of all, but for rounding ≥ 0."""
    pooled: Floats = _POOLED * everywhere[:, None] + (1 - _POOLED) * areas
    return np.maximum(pooled, 0.0)


def _parts(overlap: Floats, shape: Floats, scale: Floats) -> Floats:
    """How a change is divided among bins; the shares sum to 1, or to 0 where all vanish."""
    weights = overlap * np.exp(np.maximum(digamma(shape), _LEAST_LOG)) / scale
    total = float(weights.sum())
    parts: Floats = weights / total if total > 0 else np.zeros(len(weights))
    return parts


def _continued(edges: Floats, first: int, steps: Floats, pace: float) -> Floats:
    """The sums at the edges: as they were up to ``first``, by these steps from there."""
    missing = first + 1 - len(edges)
    if missing > 0:
        further = edges[-1] + pace * np.arange(1, missing + 1)[:, None]
        edges = np.concatenate([edges, further])
    return np.concatenate([edges[: first + 1], edges[first] + np.cumsum(steps, axis=0)])
