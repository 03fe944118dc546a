"""The best policy of all for a few sources, by dynamic programming: what the index is held to.

The state is how many periods ago each source was crawled; every choice of as many sources as the
budget pays for is tried. Ages of ``oldest`` periods and more are one. If what is oldest counts as
u*, the programme promises too much, if as x_oldest, too little: the optimum lies between.

    g = max average of Σ x crawled;   V ← ½ V + ½ max over choices (reward + V after it)

The half keeps an optimal cycle from making V oscillate (Schweitzer's transformation); the least
and the largest rise of V enclose g in each step (Odoni).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from freshet.scheduler.arguments import Floats
from freshet.scheduler.ephemeral.ephemeral_sources import EphemeralSources

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
    return Optimum(
        _average(worth, count, tolerance)[0],
        _average(promised, count, tolerance)[1],
    )


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
