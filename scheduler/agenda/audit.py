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
# visited in turn, each every τ days. Histories of the pages are drawn that agree with what was
# found: none of an interval in which a visit found no change, N ≥ 1 changes of one in which it did,
# and of the days since the last visit as many as there happen to be; at the rate of the page, on
# days that are uniform, or on those that a source names which is mostly right. A copy was stale
# from the first change of an interval on. A rotation comes to the page on a day that is uniform on
# (0, τ) after a change; where the next is g days later, and x = min(g, τ), the copy was stale for
# x − x²/2τ of these on average. Several histories give the spread of what is not known (D. Rubin,
# "Multiple Imputation", 1987, eq. 3.1.5); pages change together, so that the spread of what was
# found is that of a ratio of sums over blocks of time.

_BLOCKS: Final = 20
_HISTORIES: Final = 6
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


def rotation_days(pages: ArrayLike, requests: float) -> float:
    """Return the days in which a rotation visits all pages of some hosts: (n,) numbers, above 0.

    It makes so many ``requests`` a day: visits at even times, and each host's robots.txt once a
    day, or at every visit where these are rarer.

    >>> rotation_days([60], 1.0), rotation_days([60, 540], 12.0)
    (120.0, 60.0)
    """
    n = np.sort(np.asarray(pages, np.float64))[::-1]
    turns = np.append(0.0, 1 / n)
    made = np.append(0.0, n.sum() / n + np.minimum(1.0, n / n[:, None]).sum(axis=1))
    if requests > made[-1]:
        return float(n.sum() / (requests - len(n)))
    return float(1 / np.interp(requests, made, turns))


def stale_days(
    page: Ints, at: Floats, changed: Bools, ended: Bools, rate: Floats, told: Floats,
    *, turn: float, until: float,
) -> tuple[Ints, Ints, Floats, Floats]:  # fmt: skip
    """Return for how many days copies were stale in drawn histories until a day.

    The (m,) visits on the days ``at`` are those of some pages, in any order; they ``changed`` or
    ``ended``. ``rate`` is that of the page, a day, 0 if unknown: then it is the mean. ``told``, (n,
    3), are pages, sources, and days on which by these they changed.

    Of each interval with changes, (k,) each, come the number of the history, the visit that it
    begins with, the stale days of the copy, and those of a rotation every ``turn`` days.

    >>> day = np.array([0.0, 0.01, 40.0])
    >>> changed = np.array([False, True, False])
    >>> page, no, rate, none = np.zeros(3, int), np.zeros(3, bool), np.ones(3), np.zeros((0, 3))
    >>> _, _, own, turns = stale_days(page, day, changed, no, rate / 1e6, none, turn=60, until=40)
    >>> bool((own < 0.01).all()), round(float(turns[0]), 1)  # a rotation comes later
    (True, 26.7)
    """
    visit = np.lexsort((at, page))
    page, at, rate = page[visit], at[visit], rate[visit]
    changed, ended = changed[visit], ended[visit]
    last = np.append(np.diff(page) != 0, True)
    end = np.where(last, np.where(ended, at, until), np.append(at[1:], until))
    found = ~last & np.append(changed[1:], False)
    seen = ~last & ~np.append(ended[1:], False)
    mean = (found.sum() + 0.5) / max(float((end - at)[seen].sum()), _LEAST)
    named, named_day = _named(page, at, found, seen, told)
    drawn = found | (last & (end > at))
    drawn[named] = False
    history, of, day = _drawn(np.flatnonzero(drawn), at, end, np.where(rate > 0, rate, mean), found)
    history = np.append(history, np.repeat(np.arange(_HISTORIES), len(named)))
    of = np.append(of, np.tile(named, _HISTORIES))
    day = np.append(day, np.tile(named_day, _HISTORIES))
    order = np.lexsort((day, of, history))
    history, of, day = history[order], of[order], day[order]

    first = np.append(True, (np.diff(of) != 0) | (np.diff(history) != 0))[: len(of)]
    until_next = end[last][np.searchsorted(page[last], page[of])]
    same = (np.diff(page[of]) == 0) & (np.diff(history) == 0)
    until_next[:-1][same] = np.minimum(until_next[:-1], day[1:])[same]
    gap = np.clip(until_next - day, 0.0, turn)
    turns = np.bincount(np.cumsum(first) - 1, gap - gap**2 / (2 * turn))
    return history[first], visit[of[first]], (end[of] - day)[first], np.asarray(turns, np.float64)


def _named(page: Ints, at: Floats, found: Bools, seen: Bools, told: Floats) -> tuple[Ints, Floats]:
    """Return intervals with changes and the days that are named for these, a row each.

    An interval has the number of the visit that it begins with; (m,) visits are in order. A source
    is believed if of the intervals for which it names a day at least half have changes.
    """
    is_visit = np.arange(len(told) + len(at)) >= len(told)
    order = np.lexsort((is_visit, np.append(told[:, 2], at), np.append(told[:, 0], page)))
    before = np.empty(len(order), np.intp)
    before[order] = np.cumsum(is_visit[order]) - 1
    of = before[: len(told)]
    ok = (of >= 0) & (page[of] == told[:, 0]) & seen[of]
    of, source, day = of[ok], told[ok, 1].astype(np.intp), told[ok, 2]
    pairs = np.unique(np.stack((source, of)), axis=1)
    each, place = np.unique(pairs[0], return_inverse=True)
    right, all_of = np.bincount(place, found[pairs[1]]), np.bincount(place)
    believed = each[2 * (right + 1) >= all_of + 2]
    kept = found[of] & np.isin(source, believed)
    return of[kept], day[kept]


def _drawn(
    drawn: Ints, at: Floats, end: Floats, rate: Floats, found: Bools
) -> tuple[Ints, Ints, Floats]:
    """Return changes of some intervals: the history, the interval and the day of each."""
    rng = np.random.default_rng(0)
    of, history = np.tile(drawn, _HISTORIES), np.repeat(np.arange(_HISTORIES), len(drawn))
    span = end[of] - at[of]
    x = np.clip(rate[of] * span, _LEAST, _MOST_CHANGES)
    # Where no change must have come, the first may come too late.
    first = -np.log1p(rng.random(len(of)) * np.where(found[of], np.expm1(-x), -1.0)) / x
    comes = first < 1
    of, history, span, x, first = of[comes], history[comes], span[comes], x[comes], first[comes]
    more = rng.poisson(x * (1 - first))
    each = np.append(np.arange(len(of)), np.repeat(np.arange(len(of)), more))
    place = np.append(first, 1 - rng.random(int(more.sum())) * (1 - np.repeat(first, more)))
    return history[each], of[each], at[of[each]] + place * span[each]


def beside_rotation(
    history: Ints, at: Floats, own: Floats, turns: Floats, *, changes: int
) -> BesideRotation | None:
    """Return the ratio of the sums of stale days, (k,) each, of intervals that begin ``at`` days.

    None where visits found fewer than :data:`LEAST_CHANGES` ``changes``, or no copy was stale: the
    clock may have been set back.

    >>> rows, days = np.arange(200), np.full(200, 6.0)
    >>> it = beside_rotation(rows % 6, rows * 1.0, days, 2 * days, changes=34)
    >>> assert it is not None
    >>> it.ratio, round(it.lower, 3), round(it.upper, 3)
    (0.5, 0.5, 0.5)
    """
    if changes < LEAST_CHANGES or not np.ptp(at) > 0 or not own.sum() * turns.sum() > 0:
        return None
    ratio = float(own.sum() / turns.sum())
    block = np.minimum(_BLOCKS * (at - at.min()) / np.ptp(at), _BLOCKS - 1).astype(np.intp)
    shape = _HISTORIES, _BLOCKS
    cell = np.bincount(history * _BLOCKS + block, own - ratio * turns, _HISTORIES * _BLOCKS)
    found, unknown = cell.reshape(shape), cell.reshape(shape).sum(axis=1)
    error = float((found**2).sum(axis=1).mean()) * _BLOCKS / (_BLOCKS - 1)
    error += float(unknown.var(ddof=1)) * (1 + 1 / _HISTORIES)
    factor = exp(_Z * sqrt(error) * _HISTORIES / float(turns.sum()) / ratio)
    return BesideRotation(ratio, ratio / factor, ratio * factor, changes)
