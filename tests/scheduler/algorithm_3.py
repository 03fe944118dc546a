"""LambdaCrawl as the paper prints it, Algorithms 1 to 3: the cross-check of our solver.

The search for the split of the budget (golden section) runs to a tolerance at which the cost
moves by rounding only; it is some hundred times slower than one search for one price.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from freshet.scheduler.arrays import Bools, Floats

_GOLDEN = (sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class Split:
    """The optimum of Problem 3: rates (n,), and their harmonic cost."""

    rates: Floats
    cost: float


def algorithm_3(
    mu: Floats, delta: Floats, complete: Bools, bandwidth: float, tolerance: float = 1e-9
) -> Split:
    """The best split of the bandwidth, to ``tolerance`` of it; μ and Δ above 0."""
    if not complete.any() or complete.all():
        return _evaluated(mu, delta, complete, bandwidth, bandwidth if complete.all() else 0.0)
    low, high = 0.0, min(bandwidth, float(delta[complete].sum()))
    width = _GOLDEN * (high - low)
    left, right = (_evaluated(mu, delta, complete, bandwidth, r) for r in (high - width, width))
    while high - low > tolerance * bandwidth:
        if left.cost < right.cost:
            high, right = low + width, left
            width = _GOLDEN * (high - low)
            left = _evaluated(mu, delta, complete, bandwidth, high - width)
        else:
            low, left = high - width, right
            width = _GOLDEN * (high - low)
            right = _evaluated(mu, delta, complete, bandwidth, low + width)
    return min(left, right, key=lambda split: split.cost)


def algorithm_2(mu: Floats, delta: Floats, bandwidth: float) -> Floats:
    """p of complete observations: Prop. 5 again and again, without those that reach p = 1."""
    p = np.zeros(len(mu))
    remaining = np.full(len(mu), True)
    while remaining.any():
        relaxed = bandwidth * mu / (delta * mu[remaining].sum())
        violated = remaining & (relaxed >= 1)
        if not violated.any():
            p[remaining] = relaxed[remaining]
            return p
        p[violated] = 1
        bandwidth -= float(delta[violated].sum())
        remaining &= ~violated
    return p


def algorithm_1(mu: Floats, delta: Floats, bandwidth: float) -> Floats:
    """ρ of incomplete observations: bisection on ln λ between the paper's bounds."""
    n, r = len(mu), bandwidth
    low = np.log(n**2 * mu.min() * delta.min() / (n * delta.max() * r + r**2))
    high = np.log(n**2 * mu.max() * delta.max() / (n * delta.min() * r + r**2))
    while high - low > 1e-14 * max(abs(low), abs(high), 1.0):
        middle = (low + high) / 2
        spends_more = _eq_5(mu, delta, np.exp(middle)).sum() > bandwidth
        low, high = (middle, high) if spends_more else (low, middle)
    return _eq_5(mu, delta, np.exp((low + high) / 2))


def _eq_5(mu: Floats, delta: Floats, price: float) -> Floats:
    rho: Floats = (-delta + np.sqrt(delta**2 + 4 * mu * delta / price)) / 2
    return rho


def _evaluated(
    mu: Floats, delta: Floats, complete: Bools, bandwidth: float, for_complete: float
) -> Split:
    rates = np.empty(len(mu))
    told, untold = complete, ~complete
    if told.any():
        rates[told] = delta[told] * algorithm_2(mu[told], delta[told], for_complete)
    if untold.any():
        rates[untold] = algorithm_1(mu[untold], delta[untold], bandwidth - for_complete)
    share = np.where(complete, rates / delta, rates / (delta + rates))
    return Split(rates, float(-(mu * np.log(share)).sum()))
