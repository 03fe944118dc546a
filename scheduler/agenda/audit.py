"""Freshness of the copies, estimated from random audit samples.

Each page is as likely to be drawn as the next, whatever is thought of it; so a mean over the draws,
weighted with importance μ, estimates that over all pages,

    m = Σ μ y / Σ μ.

*Binary.* y = z, whether a visit found the page changed: m is the binary cost as a share of the
whole importance, whatever the model of changes is worth.

*Harmonic.* A visit tells that a page has changed, not how often. What is measured is z; how much it
counts is taken from the model that the daemon had at the draw,

    y = z · E[H(N) | N ≥ 1] = z · Ein(x)/(1 − e^{−x}),

x the changes expected since the visit before. Where changes are Poisson at the rates that the
daemon has learnt, E y = Ein(x) = E H(N), the harmonic cost, without bias. Otherwise how many pages
are stale is still measured, and how often each of these has changed is still the model's.

The standard error is that of a ratio of sums (W. Cochran, "Sampling Techniques", 3rd ed. 1977, eq.
2.45),

    SE² = k/(k−1) · Σ μ² (y − m)² / (Σ μ)²

The interval is Wilson's for the share p = m/g of draws that all count g = Σμy²/Σμy, and the
effective number p(1−p)/(SE/g)² of them, so that it neither falls below 0 nor vanishes where all
draws agree: there (Σμ)²/Σμ² of them count. With y = z it is Wilson's own, and ends at 1.
"""

from dataclasses import dataclass
from math import exp, sqrt
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.costs import ein
from freshet.scheduler.sources import Rows

#: Of the normal distribution 95 % lies within this number of standard deviations.
_Z: Final = 1.959964
#: Below it E[H(N) | N ≥ 1] is 1.
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
    # Where no draw is stale, those would count that were the likeliest to be.
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


# -- beside a rotation --------------------------------------------------------
#
# What visits found says also how long the copies would have been stale had the same pages been
# visited in turn, each every τ days. Between two visits that found a page changed there were N ≥ 1
# changes, drawn from the Poisson distribution at the page's own rate (J. Cho and H. Garcia-Molina,
# "Estimating frequency of change", 2003: ln((k + ½)/(k − c + ½)) for c changes in k intervals), on
# days that are uniform. The copy was stale from the first on. A rotation comes to the page on a day
# that is uniform on (0, τ) after a change; where the next is g days later, and x = min(g, τ), the
# copy was stale for x − x²/2τ of these on average. Audits see to it that no page is left out. Pages
# change together, so that the interval is that of a ratio of sums over blocks of time.

_BLOCKS: Final = 20
_MOST_CHANGES: Final = 1_000.0
LEAST_CHANGES: Final = 10


@dataclass(frozen=True, slots=True)
class BesideRotation:
    """For how long copies were stale, as a share of what a rotation would have left them so.

    ``ratio`` with its 95 % interval, by ``changes`` that visits found.
    """

    ratio: float
    lower: float
    upper: float
    changes: int


def stale_days(
    page: Ints, at: Floats, changed: Bools, ended: Bools, turn: float
) -> tuple[Rows, Floats, Floats]:
    """Return the k visits that found a change, and for how many days a copy was stale; (k,) each.

    The (m,) visits on the days ``at`` are those of some pages, in any order; they ``changed`` or
    ``ended``. The last (k,) are the stale days of a rotation every ``turn`` days.

    >>> day = np.array([0.0, 0.01, 40.0])
    >>> _, own, turns = stale_days(
    ...     np.zeros(3, np.intp), day, np.array([False, True, False]), np.zeros(3, bool), 60.0
    ... )
    >>> bool(0 < own[0] < 0.01), round(float(turns[0]), 1)  # 40 days until the end of the record
    (True, 26.7)
    """
    place_of = np.lexsort((at, page))
    page, at = page[place_of], at[place_of]
    changed, ended = changed[place_of], ended[place_of]
    later = np.flatnonzero(np.diff(page) == 0) + 1
    span, found = at[later] - at[later - 1], changed[later]
    _, of = np.unique(page[later], return_inverse=True)
    k, c, days = np.bincount(of), np.bincount(of, found), np.bincount(of, span)
    rate = np.log((k + 0.5) / (k - c + 0.5)) * k / np.maximum(days, _LEAST)

    rng = np.random.default_rng(0)
    visit, x = later[found], np.minimum((rate[of] * span)[found], _MOST_CHANGES)
    # The first of the changes takes what is left of the distribution of its time.
    first = -np.log1p(rng.random(len(visit)) * np.expm1(-x)) / np.maximum(x, _LEAST)
    more = rng.poisson(x * (1 - first))
    each = np.append(np.arange(len(visit)), np.repeat(np.arange(len(visit)), more))
    place = np.append(first, 1 - rng.random(int(more.sum())) * (1 - np.repeat(first, more)))
    day = at[visit - 1][each] + place * span[found][each]

    gone = np.flatnonzero(ended)
    owner, day = np.append(page[visit][each], page[gone]), np.append(day, at[gone])
    of_visit = np.append(each, np.full(len(gone), -1))
    order = np.lexsort((day, owner))
    owner, day, of_visit = owner[order], day[order], of_visit[order]
    until = np.append(day[1:], 0.0)
    until[np.append(np.diff(owner) != 0, True)] = at.max(initial=0.0)
    gap = np.minimum(np.maximum(until - day, 0.0), turn)
    counts = of_visit >= 0
    left = (gap - gap**2 / (2 * turn))[counts]
    turns: Floats = np.bincount(of_visit[counts], left, minlength=len(visit)).astype(np.float64)
    return place_of[visit], span[found] * (1 - first), turns


def beside_rotation(at: Floats, own: Floats, turns: Floats) -> BesideRotation | None:
    """Return the ratio of the sums of stale days, (k,) each, of changes on these days.

    None where there are fewer than :data:`LEAST_CHANGES`.

    >>> found = beside_rotation(np.arange(100.0), np.full(100, 6.0), np.full(100, 12.0))
    >>> assert found is not None
    >>> found.ratio, round(found.lower, 3), round(found.upper, 3)
    (0.5, 0.5, 0.5)
    """
    if len(at) < LEAST_CHANGES or not np.ptp(at) > 0:
        return None
    ratio = float(own.sum() / turns.sum())
    block = np.minimum(_BLOCKS * (at - at.min()) / np.ptp(at), _BLOCKS - 1).astype(np.intp)
    error = float((np.bincount(block, own - ratio * turns) ** 2).sum())
    spread = sqrt(error * _BLOCKS / (_BLOCKS - 1)) / float(turns.sum()) / ratio
    factor = exp(_Z * spread)
    return BesideRotation(ratio, ratio / factor, ratio * factor, len(at))
