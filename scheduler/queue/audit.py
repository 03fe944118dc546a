"""Freshness of the copies, estimated from random audit samples.

All pages are equally likely to be drawn, regardless of their estimates. So a mean over the draws,
weighted with importance μ, estimates the mean over all pages,

    m = Σ μ y / Σ μ.

*Binary.* y = z, whether a visit found the page changed: m is the binary cost as a share of the
whole importance. It does not depend on the model of changes.

*Harmonic.* A visit shows that a page has changed, not how often. z is measured; its weight follows
from the model that the daemon had at the draw,

    y = z · E[H(N) | N ≥ 1] = z · Ein(x)/(1 − e^{−x}),

with x the changes expected since the previous visit. If changes are Poisson at the rates that the
daemon has learnt, E y = Ein(x) = E H(N), the harmonic cost, without bias. Otherwise the number of
stale pages is still measured, and the number of changes of each is the model's.

The standard error is the one for a ratio of sums (W. Cochran, "Sampling Techniques", 3rd ed. 1977,
eq. 2.45),

    SE² = k/(k−1) · Σ μ² (y − m)² / (Σ μ)²

The interval is Wilson's for a share p = m/g of draws of equal weight g = Σμy²/Σμy, with the
effective number of draws p(1−p)/(SE/g)². It does not extend below 0. It does not vanish if all
draws agree: then the effective number is (Σμ)²/Σμ². With y = z it is Wilson's interval, with upper
bound at most 1.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler.arrays import Floats
from freshet.scheduler.costs import ein

#: 95 % of the normal distribution lies within this number of standard deviations.
_Z: Final = 1.959964
#: Below this hazard, E[H(N) | N ≥ 1] is 1.
_LEAST: Final = 1e-12


@dataclass(frozen=True, slots=True)
class MeasuredMean:
    """A mean with its 95 % interval; ``expected`` is the model's value at the draws."""

    mean: float
    lower: float
    upper: float
    expected: float


@dataclass(frozen=True, slots=True)
class Staleness:
    """The estimated costs of staleness per importance, from ``draws``.

    ``binary`` is the share of importance whose copy is stale, ``harmonic`` the mean of H(N).
    """

    binary: MeasuredMean
    harmonic: MeasuredMean
    draws: int


def staleness(importance: ArrayLike, stale: ArrayLike, hazard: ArrayLike) -> Staleness | None:
    """Return the estimates from k draws; None without draws, or without importance.

    ``hazard`` is x, the changes expected since the last visit before each draw.

    >>> found = staleness([1.0] * 100, [True] * 10 + [False] * 90, [0.1] * 100)
    >>> assert found is not None
    >>> it = found.binary
    >>> round(it.mean, 2), round(it.lower, 3), round(it.upper, 3), round(it.expected, 3)
    (0.1, 0.055, 0.175, 0.095)
    >>> round(found.harmonic.mean, 4)  # 0.1 · Ein(0.1)/(1 − e^{−0.1})
    0.1025
    """
    mu, z = np.asarray(importance, np.float64), np.asarray(stale, np.float64)
    x = np.maximum(np.asarray(hazard, np.float64), _LEAST)
    if not mu.sum() > 0:
        return None
    expected = -np.expm1(-x)
    counts = np.asarray(ein(x)) / expected
    return Staleness(
        _estimate(mu, z, np.ones(len(mu)), expected),
        _estimate(mu, z, counts, counts * expected),
        len(mu),
    )


def _estimate(mu: Floats, z: Floats, counts: Floats, expected: Floats) -> MeasuredMean:
    """Return the mean of z · counts, weighted with importance."""
    total = float(mu.sum())
    y = z * counts
    mean = float((mu * y).sum()) / total
    foreseen = float((mu * expected).sum()) / total
    # If no draw is stale, the draws most likely to be stale set the scale.
    weight = mu * y if mean > 0 else mu * expected
    scale = float((weight * counts).sum() / weight.sum()) if weight.any() else 1.0
    share = min(mean / scale, 1.0)
    among = total**2 / float((mu**2).sum())
    spread = float((mu**2 * (y - mean) ** 2).sum()) / total**2
    if 0 < share < 1 and len(mu) > 1 and spread > 0:
        spread *= len(mu) / (len(mu) - 1) / scale**2
        among = min(among, share * (1 - share) / spread)
    lower, upper = wilson(share, among)
    return MeasuredMean(mean, scale * lower, scale * upper, foreseen)


def wilson(share: float, draws: float) -> tuple[float, float]:
    """Return the 95 % interval of a share of draws (E. Wilson, "Probable inference …", 1927)."""
    weight = _Z**2 / draws
    middle = (share + weight / 2) / (1 + weight)
    half = _Z / (1 + weight) * sqrt(share * (1 - share) / draws + weight / (4 * draws))
    return max(0.0, middle - half), min(1.0, middle + half)
