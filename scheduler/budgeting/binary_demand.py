"""How often each source wants to be crawled at a price, for the binary cost.

    minimise μΔ/(Δ + ρ) + λρ over ρ ≥ f:   ρ(λ) = max(f, √(μΔ/λ) − Δ)

with f a floor under the rate, 0 in the paper. Below it the slope −dρ/d ln λ is 0, above it
√(μΔ/λ)/2. In λ^{−1/2} the sum of all rates is convex and made of straight pieces, with a kink
where a source comes to be worth more than its floor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freshet.scheduler.arguments import Bools, Floats
from freshet.scheduler.budgeting.prices import Step, root_step
from freshet.scheduler.sources import Rows


@dataclass(frozen=True, slots=True)
class BinaryDemand:
    """The demand of n sources crawled by the clock; a :class:`~.allocation.Demand`.

    Attributes:
        importance: μ (n,).
        change_rate: Δ (n,), changes per day.
        floor: f (n,), crawls per day; 0 for what is not worth a crawl. The floors of a host add
            up to its capacity at most, all floors to less than the budget.
    """

    importance: Floats
    change_rate: Floats
    floor: Floats

    @property
    def step(self) -> Step:
        """Straight pieces in λ^{−1/2}."""
        return root_step

    def __len__(self) -> int:
        return len(self.importance)

    def rates_at(self, price: float | Floats, rates: Floats, slopes: Floats) -> None:
        """Write ρ(λ) and −dρ/d ln λ, both (n,); ``price`` is λ, one for all or (n,)."""
        root = np.sqrt(self.importance * self.change_rate / price)
        np.maximum(root - self.change_rate, self.floor, out=rates)
        slopes[:] = np.where(rates > self.floor, root / 2, 0.0)

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
        """(Σ√(μΔ)/(R + ΣΔ))², as if no source were below its floor: never too high."""
        roots = np.sqrt(self.importance * self.change_rate)
        changes = np.where(self._is_active(), self.change_rate, 0.0)
        code = np.zeros(len(self), np.intp) if host is None else host
        all_roots = np.bincount(code, roots, minlength=len(budget))
        all_changes = np.bincount(code, changes, minlength=len(budget))
        guess: Floats = (all_roots / (budget + all_changes)) ** 2
        return guess

    def take(self, rows: Rows) -> BinaryDemand:
        """The demand of these sources."""
        return BinaryDemand(self.importance[rows], self.change_rate[rows], self.floor[rows])

    def _is_active(self) -> Bools:
        active: Bools = (self.importance > 0) & (self.change_rate > 0)
        return active
