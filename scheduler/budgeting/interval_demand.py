"""How often each source wants to be crawled by the clock at a price, evenly spaced.

For a source of incomplete observations, crawled every T days, with x = ΔT changes between two
crawls, the harmonic cost and the price of its crawls come to

    J(T) + λ/T = μ [Ein(x) − 1 + (1 − e^{−x})/x] + λΔ/x,

which is least where its derivative in x vanishes:

    x − 1 + e^{−x} = c,   c = λΔ/μ,   ρ(λ) = Δ/x,   −dρ/d ln λ = ρ c/(x (1 − e^{−x}))

(the slope by the implicit equation: dx (1 − e^{−x}) = dc = c d ln λ). :func:`changes_at` solves
the equation. Its solution x = 1 + c + W₀(−e^{−(1+c)}), W₀ the principal branch of Lambert's W,
loses all digits near the branch point c = 0; ours keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freshet.scheduler.arguments import Bools, Floats
from freshet.scheduler.budgeting.prices import Step, smooth_step
from freshet.scheduler.policies.greedy_index import stale_share
from freshet.scheduler.sources import Rows

#: Rows that are worked on together: their intermediate columns stay in the processor's cache.
_INTERVAL_CHUNK = 1 << 14
#: The first guesses are right to 0.014, and each of Halley's steps cubes that.
_STEPS = 2


# A ratio beyond the range of numbers gives a rate that is none, which allocate() refuses.
@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def changes_at(c: Floats) -> Floats:
    """The x ≥ 0 with x − 1 + e^{−x} = c: changes between crawls at a cost ratio c ≥ 0; (n,).

    Method: for c < 1.5 the start of the series √(2c) + c/3 + …, above it 1 + c − e^{−1−c}; then
    two of Halley's steps. Relative error below 1e-13 for all c.

    >>> changes_at(np.array([0.0, 1 / np.e])).round(12).tolist()  # 1 − 1 + e⁻¹
    [0.0, 1.0]
    """
    root = np.sqrt(2 * c)
    x = np.where(c < 1.5, root * (1 + root * (1 / 6 + root / 36)), 1 + c - np.exp(-1 - c))
    for _ in range(_STEPS):
        excess = x * stale_share(x) - c
        slope = -np.expm1(-x)
        # Below 1e-150 the slope is x, and excess/slope 0/0 at 0.
        step = slope - excess * (1 - slope) / (2 * np.maximum(slope, 1e-300))
        x = x - excess / np.maximum(step, 1e-300)
    return x


@dataclass(frozen=True, slots=True)
class IntervalDemand:
    """The demand of n sources by the clock; a :class:`scheduler.budgeting.allocation.Demand`."""

    importance: Floats
    change_rate: Floats

    @property
    def step(self) -> Step:
        """Nearly a power of the price: λ^{−1/2} for frequent crawls, λ^{−1} for rare ones."""
        return smooth_step

    def __len__(self) -> int:
        return len(self.importance)

    @np.errstate(over="ignore", divide="ignore", invalid="ignore")
    def rates_at(self, price: float | Floats, rates: Floats, slopes: Floats) -> None:
        """Write ρ(λ) and −dρ/d ln λ, both (n,); ``price`` is λ above 0, one for all or (n,)."""
        for start in range(0, len(self), _INTERVAL_CHUNK):
            rows = slice(start, start + _INTERVAL_CHUNK)
            each = price[rows] if isinstance(price, np.ndarray) else price
            mu, delta = self.importance[rows], self.change_rate[rows]
            active = (mu > 0) & (delta > 0)
            c = np.divide(each * delta, mu, out=np.ones_like(mu), where=active)
            x = changes_at(c)
            rates[rows] = np.where(active, delta / x, 0.0)
            slopes[rows] = rates[rows] * c / (x * -np.expm1(-x))

    def spending_at(self, price: float, rates: Floats) -> tuple[float, float]:
        """Σρ(λ) and its −d/d ln λ; writes ρ(λ) (n,), too."""
        slopes = np.empty(len(self))
        self.rates_at(price, rates, slopes)
        return float(rates.sum()), float(slopes.sum())

    def limits(self) -> Floats:
        """(n,), inf for what is worth a crawl; else 0."""
        return np.where(self._is_active(), np.inf, 0.0)

    def is_limited(self) -> bool:
        """Whether nothing is worth a crawl."""
        return not self._is_active().any()

    def guess(self, budget: Floats, host: Rows | None) -> Floats:
        """Σμ/R: the price if changes came at once, W = μτ."""
        if host is None:
            return np.array([self.importance[self._is_active()].sum()]) / budget
        active = np.where(self._is_active(), self.importance, 0.0)
        return np.bincount(host, active, minlength=len(budget)) / budget

    def take(self, rows: Rows) -> IntervalDemand:
        """The demand of these sources."""
        return IntervalDemand(self.importance[rows], self.change_rate[rows])

    def _is_active(self) -> Bools:
        active: Bools = (self.importance > 0) & (self.change_rate > 0)
        return active
