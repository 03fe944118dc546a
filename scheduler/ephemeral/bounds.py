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

from dataclasses import dataclass

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
    """Return the bound and its price by bisection, exact but for rounding.

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
    """Return D(λ), utility per period: at any price at least what a policy can earn."""
    k = crawl_periods(sources, price)
    with np.errstate(invalid="ignore"):
        gain = (sources.utility_after(k) - price * sources.cost) / k
    gain = np.where(np.isinf(k), np.where(sources.decay > 0, 0.0, sources.fresh), gain)
    return price * budget + float(gain.sum())


def spending(sources: EphemeralSources, price: float) -> float:
    """Return the cost per period if each source is crawled optimally at this price."""
    return float((sources.cost / crawl_periods(sources, price)).sum())


def crawl_periods(sources: EphemeralSources, price: float) -> Floats:
    """Return the first k with γ(x_k) ≥ λ (n,); inf for a source not worth the price."""
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
