"""One source with noisy signals on a fine grid of times: every state, every stopping rule.

Written from the model alone: the costs are sums over the numbers of changes, the rules are
judged by carrying probabilities forward, and the best of all rules is found backward.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import binom, poisson

from freshet.scheduler.arrays import Bools, Floats


@dataclass(frozen=True)
class Grid:
    """States (time, signals), time in 1/Δ from 0 to ``until``; cost in μ."""

    recall: float
    precision: float
    cost: str
    until: float
    steps: int = 2000
    signals: int = 40

    @property
    def step(self) -> float:
        return self.until / self.steps

    @cached_property
    def times(self) -> Floats:
        """The middle of each step."""
        return np.asarray((np.arange(self.steps) + 0.5) * self.step, np.float64)

    @cached_property
    def gap(self) -> Floats:
        """D (time, signals): E C(Poisson(as) + Bin(k, q)), C the harmonic numbers or N > 0."""
        n = np.arange(120)
        if self.cost == "binary":
            price = (n > 0).astype(float)
        else:
            price = np.concatenate([[0.0], np.cumsum(1 / n[1:])])
        unsignalled = np.asarray(poisson.pmf(n[:, None], (1 - self.recall) * self.times))
        k = np.arange(self.signals)
        true = np.asarray(binom.pmf(n[:, None], k, self.precision))
        both = np.array([price[i : i + self.signals] @ true[: self.signals] for i in range(80)])
        return np.asarray(unsignalled[:80].T @ both)

    @property
    def _signal(self) -> float:
        """The probability of a signal in one step."""
        return float(-np.expm1(-self.recall / self.precision * self.step))

    def best(self, level: float) -> float:
        """The least E ∫ (D − level) ds of all stopping rules, by backward induction."""
        later = np.zeros(self.signals)
        for gap in self.gap[::-1]:
            after = (1 - self._signal) * later + self._signal * np.append(later[1:], 0)
            later = np.minimum(0, (gap - level) * self.step + after)
        return float(later[0])

    def value(self, level: float) -> float:
        """∫ E (level − D)⁺ ds: as D rises, a path not above the level has not been before."""
        g = self.recall / self.precision
        received = poisson.pmf(np.arange(self.signals), g * self.times[:, None])
        return float((received * np.maximum(level - self.gap, 0)).sum() * self.step)

    def long_run_cost(self, crawl: Bools, price: float) -> float:
        """Cost per time of crawling in the states ``crawl`` (time, signals), at so much each."""
        alive = np.zeros(self.signals)
        alive[0] = 1
        spent = lasted = 0.0
        for gap, now in zip(self.gap, crawl, strict=True):
            alive[now] = 0
            spent += float(alive @ gap) * self.step
            lasted += float(alive.sum()) * self.step
            alive = (1 - self._signal) * alive + self._signal * np.append(0, alive[:-1])
        assert alive.sum() < 1e-6, "the rule goes on past the grid"
        return (price + spent) / lasted
