"""How fresh a copy is, estimated from pages drawn at random. Pure.

Each page is as likely to be drawn as the next, whatever is thought of it; so the share

    s = Σ μ z / Σ μ

of the drawn that had changed (z), weighted with importance μ, estimates the binary cost as a
share of the whole importance, whatever the model of changes is worth. Its standard error is that
of a ratio of sums (W. Cochran, "Sampling Techniques", 3rd ed. 1977, eq. 2.45),

    SE² = m/(m−1) · Σ μ² (z − s)² / (Σ μ)²

The interval is Wilson's for the effective number of draws s(1−s)/SE², so that it neither leaves
0 to 1 nor vanishes where all draws agree: there m' = (Σμ)²/Σμ² of them count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

#: Of the normal distribution 95 % lies within so many standard deviations.
_Z: Final = 1.959964


@dataclass(frozen=True, slots=True)
class Staleness:
    """The estimated share of importance whose copy is stale, with its 95 % interval.

    ``expected`` is what the model took it for at the same draws; ``draws`` how many there were.
    """

    share: float
    lower: float
    upper: float
    expected: float
    draws: int


def staleness(
    importance: ArrayLike, stale: Sequence[bool], expected: ArrayLike
) -> Staleness | None:
    """The estimate from m draws; None where there is none, or none of importance.

    >>> found = staleness([1.0] * 100, [True] * 10 + [False] * 90, [0.1] * 100)
    >>> assert found is not None
    >>> round(found.share, 2), round(found.lower, 3), round(found.upper, 3)
    (0.1, 0.055, 0.175)
    """
    mu, z = np.asarray(importance, np.float64), np.asarray(stale, np.float64)
    total = float(mu.sum())
    if total <= 0:
        return None
    share = float((mu * z).sum() / total)
    among = total**2 / float((mu**2).sum())
    if 0 < share < 1 and len(mu) > 1:
        spread = float((mu**2 * (z - share) ** 2).sum()) / total**2 * len(mu) / (len(mu) - 1)
        among = min(among, share * (1 - share) / spread)
    lower, upper = _wilson(share, among)
    foreseen = float((mu * np.asarray(expected, np.float64)).sum() / total)
    return Staleness(share, lower, upper, foreseen, len(mu))


def _wilson(share: float, draws: float) -> tuple[float, float]:
    """E. Wilson, "Probable inference …", JASA 1927."""
    weight = _Z**2 / draws
    middle = (share + weight / 2) / (1 + weight)
    half = _Z / (1 + weight) * sqrt(share * (1 - share) / draws + weight / (4 * draws))
    return max(0.0, middle - half), min(1.0, middle + half)
