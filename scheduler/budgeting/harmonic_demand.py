"""How often each source wants to be crawled at a price, for the harmonic cost.

    incomplete observations  ρ(λ) = 2(μΔ/λ)/(Δ + s),  −dρ/d ln λ = (μΔ/λ)/s,  s = √(Δ² + 4μΔ/λ)
    complete observations    r(λ) = min(Δ, μ/λ),      −dr/d ln λ = μ/λ below Δ, 0 at Δ

:mod:`freshet.scheduler.policies.lambda_crawl` derives the rates. The slope of ρ follows from its
equation ρ(Δ + ρ) = μΔ/λ: dρ (Δ + 2ρ) = d(μΔ/λ), and Δ + 2ρ = s.

The sum S(λ) of all rates is nearly a power of λ: each ρ goes from λ^{−1} (rare crawls) to
λ^{−1/2} (frequent ones).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from freshet.scheduler.arguments import Bools, Floats
from freshet.scheduler.budgeting.allocation import allocate
from freshet.scheduler.budgeting.prices import Step, smooth_step
from freshet.scheduler.compiling import compiled
from freshet.scheduler.sources import Rows

#: Rows that are worked on together: their intermediate columns stay in the processor's cache.
_CHUNK = 1 << 15
#: The price of every 32nd source is the first guess, unless there are few.
_SAMPLED = 32
_FEW = 1 << 15
#: Rows that the compiled loop adds up before it adds the sums.
_SUMMED = 1 << 12
#: Makes 0/0, of a source that never changes, 0; it changes no sum with anything above 1e-142².
_NEXT_TO_NOTHING = 1e-300


@dataclass(frozen=True, slots=True)
class HarmonicDemand:
    """The demand of n sources, columns as :func:`scheduler.policies.lambda_crawl.solve` has them.

    ``compiled`` says whether :meth:`spending_at`, where the time goes, is compiled.
    """

    importance: Floats
    change_rate: Floats
    complete: Bools
    compiled: bool = False

    @property
    def step(self) -> Step:
        """Nearly a power of the price."""
        return smooth_step

    def __len__(self) -> int:
        return len(self.importance)

    def rates_at(self, price: float | Floats, rates: Floats, slopes: Floats) -> None:
        """Write ρ(λ) and −dρ/d ln λ, both (n,); ``price`` is λ, one for all or (n,)."""
        for rows in _pieces(len(self)):
            each = price[rows] if isinstance(price, np.ndarray) else price
            self._write(rows, each, rates[rows], slopes[rows])

    def spending_at(self, price: float, rates: Floats) -> tuple[float, float]:
        """Σρ(λ) and its −d/d ln λ; writes ρ(λ) (n,), too."""
        if self.compiled:
            return compiled(spending_loop)(
                self.importance, self.change_rate, self.complete, 1 / price, rates
            )
        total = slope = 0.0
        slopes = np.empty(min(len(self), _CHUNK))
        for rows in _pieces(len(self)):
            part = rates[rows]
            self._write(rows, price, part, slopes[: len(part)])
            total += float(part.sum())
            slope += float(slopes[: len(part)].sum())
        return total, slope

    def limits(self) -> Floats:
        """(n,), Δ of what is worth a crawl on its signals, inf by the clock; else 0."""
        unlimited = np.where(self.complete, self.change_rate, np.inf)
        return np.where((self.importance > 0) & (self.change_rate > 0), unlimited, 0.0)

    def is_limited(self) -> bool:
        """Whether nothing worth a crawl is crawled by the clock."""
        return not any(
            np.any(
                ~self.complete[rows] & (self.importance[rows] > 0) & (self.change_rate[rows] > 0)
            )
            for rows in _pieces(len(self))
        )

    def guess(self, budget: Floats, host: Rows | None) -> Floats:
        """Σμ/R, which is never too low, for ρ ≤ μ/λ; of many sources the price of a sample."""
        if host is not None:
            return np.bincount(host, self.importance, minlength=len(budget)) / budget
        if len(self) > _FEW:
            sample = self.take(slice(None, None, _SAMPLED))
            share = len(sample) / len(self)
            price = allocate(sample, float(budget[0]) * share).price
            if price > 0:
                return np.array([price])
        return np.array([self.importance.sum()]) / budget

    def probabilities(self, rates: Floats) -> Floats:
        """(n,), p: r/Δ on signals; 1 by the clock, and where there are no changes to answer."""
        shares = np.ones(len(self))
        for rows in _pieces(len(self)):
            told = self.complete[rows].nonzero()[0]
            delta = self.change_rate[rows][told]
            shares[rows][told] = np.divide(
                rates[rows][told], delta, out=np.ones(len(told)), where=delta > 0
            )
        return shares

    def take(self, rows: Rows | slice) -> HarmonicDemand:
        """The demand of these sources."""
        return HarmonicDemand(
            np.ascontiguousarray(self.importance[rows]),
            np.ascontiguousarray(self.change_rate[rows]),
            np.ascontiguousarray(self.complete[rows]),
            self.compiled,
        )

    def _write(self, rows: slice, price: float | Floats, rates: Floats, slopes: Floats) -> None:
        """The equations above for some rows, in place: new columns would take half the time."""
        mu, delta, complete = self.importance[rows], self.change_rate[rows], self.complete[rows]
        product, root = slopes, np.empty_like(rates)
        np.multiply(mu, delta, out=product)
        product *= 4 / price
        np.multiply(delta, delta, out=root)
        root += product
        root += _NEXT_TO_NOTHING
        np.sqrt(root, out=root)
        np.add(delta, root, out=rates)
        np.divide(product, rates, out=rates)
        rates *= 0.5
        np.divide(product, root, out=slopes)
        slopes *= 0.25
        told = complete.nonzero()[0]
        if len(told):
            value = mu[told] / (price[told] if isinstance(price, np.ndarray) else price)
            most = delta[told]
            rates[told] = np.minimum(value, most)
            slopes[told] = np.where(value < most, value, 0.0)


def spending_loop(
    mu: Floats, delta: Floats, complete: Bools, per_price: float, rates: Floats
) -> tuple[float, float]:
    """:meth:`HarmonicDemand.spending_at` for the compiler, with one division a source.

    It is given 1/λ: a reciprocal taken here would be turned into a division of each μ.
    """
    total = slope = 0.0
    for start in range(0, len(mu), _SUMMED):
        # Sums of sums round less than one long sum. Slices, for with an index that does not
        # begin at 0 the loop is not turned into vector instructions.
        rows = slice(start, start + _SUMMED)
        some_mu, some_delta, some_complete = mu[rows], delta[rows], complete[rows]
        some_rates = rates[rows]
        part = part_slope = 0.0
        for i in range(len(some_mu)):
            value = some_mu[i] * per_price
            most = some_delta[i]
            product = value * most
            root = sqrt(most * most + 4 * product + _NEXT_TO_NOTHING)
            share = product / (root * (most + root))
            on_signals = value if value < most else 0.0
            rate = min(value, most) if some_complete[i] else 2 * share * root
            some_rates[i] = rate
            part += rate
            part_slope += on_signals if some_complete[i] else share * (most + root)
        total += part
        slope += part_slope
    return total, slope


def _pieces(n: int) -> Iterator[slice]:
    return (slice(start, start + _CHUNK) for start in range(0, n, _CHUNK))
