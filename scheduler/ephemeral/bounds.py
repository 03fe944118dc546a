"""The relaxed problem: the budget kept on average, one price for all; a bound for every policy.

With Σ C_i v_i ≤ M demanded only on average (equation 5), the dual at the price λ ≥ 0 is

    D(λ) = λM + Σ_i max( 0, max_k (x_{i,k} − λC_i)/k )

since a source that pays λC for each crawl is best crawled every k periods, k the first with
γ(x_k) ≥ λ, or never if λC ≥ u*. D is convex; its minimum is the most that any policy can earn per
period in the deterministic model, and in the stochastic one if nothing is observed.

k in closed form: γ(x_k) = λ says, with y = kh, h = μT, b = h/(1 − e^{−h}) and c = λC/u*,

    −(b + y) e^{−(b + y)} = −(1 − c) b e^{−b},   so   y = −W₋₁(−(1 − c) b e^{−b}) − b
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import lambertw

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Floats
from freshet.scheduler.ephemeral.sources import EphemeralSources


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The relaxed optimum: ``bound``, utility per period, and ``price``, λ per unit of cost.

    It is the lowest price at which the budget is enough; D may be as low up to a higher one.
    """

    bound: float
    price: float


def relaxed(sources: EphemeralSources, budget: float) -> Relaxed:
    """The bound and the price that goes with it, exact but for rounding: by bisection.

    A source without decay earns u per period however seldom it is crawled, at no price.

    Raises:
        ValueError: if the budget is not above 0.
    """
    arrays.budget("budget", budget)
    if sources.cost.sum() <= budget:
        return Relaxed(float(sources.fresh.sum()), 0.0)
    fading = sources.decay > 0
    low, high = 0.0, float(np.max(sources.ceiling[fading] / sources.cost[fading], initial=0.0))
    while low < (middle := (low + high) / 2) < high:
        if spending(sources, middle) > budget:
            low = middle
        else:
            high = middle
    return Relaxed(min(dual(sources, budget, low), dual(sources, budget, high)), high)


def dual(sources: EphemeralSources, budget: float, price: float) -> float:
    """D(λ), utility per period: at any price at least what a policy can earn."""
    k = crawl_periods(sources, price)
    with np.errstate(invalid="ignore"):
        gain = (sources.utility_after(k) - price * sources.cost) / k
    gain = np.where(np.isinf(k), np.where(sources.decay > 0, 0.0, sources.fresh), gain)
    return price * budget + float(gain.sum())


def spending(sources: EphemeralSources, price: float) -> float:
    """Cost per period if each source is crawled as is best for it at this price."""
    return float((sources.cost / crawl_periods(sources, price)).sum())


def crawl_periods(sources: EphemeralSources, price: float) -> Floats:
    """(n,), the first k with γ(x_k) ≥ λ; inf for a source that is not worth the price."""
    if price <= 0:
        return np.ones(len(sources))
    k = np.full(len(sources), np.inf)
    worth = np.where(sources.decay > 0, sources.ceiling, 0.0)
    rows = worth > price * sources.cost
    h = sources.decay[rows] * sources.period
    b = h / -np.expm1(-h)
    c = price * sources.cost[rows] / worth[rows]
    # At the branch point, where y is 0, scipy has no value.
    y = np.nan_to_num(-lambertw(-(1 - c) * b * np.exp(-b), -1).real - b)
    guess = np.where(rows, 1.0, 0.0)
    guess[rows] = np.maximum(1, np.ceil(y / h))
    k[rows] = guess[rows]
    return _corrected(sources, k, price)


def _corrected(sources: EphemeralSources, k: Floats, price: float) -> Floats:
    # The closed form may be out by one where rounding decides.
    finite = np.isfinite(k)
    earlier = np.where(finite, np.maximum(k - 1, 1), 1.0)
    k = np.where(finite & (sources.index(earlier) >= price), earlier, k)
    late = finite & (sources.index(np.where(finite, k, 1.0)) < price)
    return np.where(late, k + 1, k)


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


# -- optimum -----------------------------------------------------------------
#
# The best policy of all for a few sources, by dynamic programming: what the index is held to.
#
# The state is how many periods ago each source was crawled; every choice of as many sources as the
# budget pays for is tried. Ages of ``oldest`` periods and more are one. If what is oldest counts
# as u*, the programme promises too much, if as x_oldest, too little: the optimum lies between.
#
#     g = max average of Σ x crawled;   V ← ½ V + ½ max over choices (reward + V after it)
#
# The half keeps an optimal cycle from making V oscillate (Schweitzer's transformation); the least
# and the largest rise of V enclose g in each step (Odoni).

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
