"""The optimum for a few sources by dynamic programming, and the price by online dual descent.

The state is how many periods ago each source was crawled; every choice of as many sources as the
budget pays for is tried. Ages of ``oldest`` periods and more are one. If what is oldest counts as
u*, the programme promises too much, if as x_oldest, too little: the optimum lies between.

    g = max average of Σ x crawled;   V ← ½ V + ½ max over choices (reward + V after it)

The half keeps an optimal cycle from making V oscillate (Schweitzer's transformation); the least
and the largest rise of V enclose g in each step (Odoni).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Floats
from freshet.scheduler.ephemeral.sources import EphemeralSources

_STEPS = 20_000


@dataclass(frozen=True, slots=True)
class Optimum:
    """Utility per period of the best policy: it is at least ``low`` and at most ``high``."""

    low: float
    high: float


def optimum(
    sources: EphemeralSources, count: int, oldest: int, *, tolerance: float = 1e-4
) -> Optimum:
    """The optimum with ``count`` crawls a period, of sources that cost the same.

    Time and memory grow as ``oldest`` to the number of sources. ``tolerance`` is relative.

    Raises:
        ValueError: if ``count`` is not from 1 to the number of sources, ``oldest`` is not at
            least 2, or the programme does not converge.
    """
    if not 1 <= count <= len(sources):
        raise ValueError(f"count: is {count}; accepted is from 1 to {len(sources)}, all sources")
    if oldest < 2:
        raise ValueError(f"oldest: is {oldest}; accepted is a whole number of at least 2")
    ages = np.arange(1.0, oldest + 1)
    worth = np.array([sources.utility_after(np.full(len(sources), age)) for age in ages]).T
    promised = worth.copy()
    promised[:, -1] = sources.ceiling
    return Optimum(_average(worth, count, tolerance)[0], _average(promised, count, tolerance)[1])


def _average(worth: Floats, count: int, tolerance: float) -> tuple[float, float]:
    """Bounds of the best average; ``worth`` is (n, oldest), what a crawl earns by age − 1."""
    n, oldest = worth.shape
    choices = list(combinations(range(n), count))
    value = np.zeros((oldest,) * n)
    for _ in range(_STEPS):
        best = np.full_like(value, -np.inf)
        for choice in choices:
            np.maximum(best, _chosen(value, worth, choice), out=best)
        rise = best - value
        low, high = float(rise.min()), float(rise.max())
        if high - low <= tolerance * high:
            return low, high
        value = (value + best) / 2
        value -= value.flat[0]
    raise ValueError("optimum: does not converge; accepted are sources that fade")


def _chosen(value: Floats, worth: Floats, choice: tuple[int, ...]) -> Floats:
    """Reward and what follows if ``choice`` is crawled, for every state; broadcast."""
    n, oldest = worth.shape
    reward: Floats = np.zeros((1,) * n)
    after = value
    older = np.minimum(np.arange(oldest) + 1, oldest - 1)
    for axis in range(n):
        if axis in choice:
            after = after.take([0], axis=axis)
            shape = [oldest if other == axis else 1 for other in range(n)]
            reward = reward + worth[axis].reshape(shape)
        else:
            after = after.take(older, axis=axis)
    return reward + after


def descend(
    sources: EphemeralSources,
    budget: float,
    periods: int,
    *,
    step: Callable[[int], float] = lambda t: (t + 1) ** -0.6,
) -> Floats:
    """(periods,), the price by online dual descent: λ rises while too much is spent.

    Every period the sources with γ ≥ λ are crawled, and λ ← max(0, λ + a(t) (ΣC v − M) s) with
    steps a(t), Σa = ∞, Σa² < ∞, and s the mean of u/C over M, which makes a(t) a pure number.

    Raises:
        ValueError: if the budget is not above 0.
    """
    arrays.budget("budget", budget)
    scale = float((sources.fresh / sources.cost).mean()) / budget
    ages = np.ones(len(sources))
    prices = np.empty(periods)
    price = 0.0
    for t in range(periods):
        crawled = sources.index(ages) >= price
        price = max(0.0, price + step(t) * scale * (float(sources.cost[crawled].sum()) - budget))
        ages = np.where(crawled, 1.0, ages + 1)
        prices[t] = price
    return prices


def replicated(sources: EphemeralSources, times: int) -> EphemeralSources:
    """Return each source so many times, the copies of the table one after the other."""
    return EphemeralSources(
        np.tile(sources.arrival_rate, times),
        np.tile(sources.mean_utility, times),
        np.tile(sources.decay, times),
        np.tile(sources.cost, times),
        sources.period,
    )
