"""Policies over periods: a priority for each source in each period T."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Floats
from freshet.scheduler.ephemeral.sources import EphemeralSources
from freshet.scheduler.policies.greedy_index import stale_share
from freshet.scheduler.special_functions import lambert


@dataclass(frozen=True, slots=True)
class PolicyInput:
    """The information of a policy at its decision; all (n,) except ``elapsed``.

    Attributes:
        elapsed: number of periods before this one.
        since_crawl: periods since each source's crawl, at least 1.
        crawls: number of crawls of each source.
        state: its utility if observed, else the one expected since its crawl.
        expected: the utility expected since its crawl.
    """

    elapsed: int
    since_crawl: Floats
    crawls: Floats
    state: Floats
    expected: Floats


#: A policy: in each period a priority for each source (n,), per unit of cost; the highest first.
PeriodPolicy: TypeAlias = Callable[[PolicyInput], Floats]


# -- affordable --
#
# The largest indices that a budget pays for, Σ C_i v_i ≤ M, in decreasing order, ties by row. A
# source that the rest of the budget does not pay for is skipped. If all cost the same, only
# candidates are sorted: O(n) plus the sort of the candidates.

Rows: TypeAlias = NDArray[np.intp]

#: Relative excess of a sum of costs that counts as rounding.
_ROUNDING = 1e-12
#: One row in this many is sampled; a smaller sample is not used.
_STRIDE = 64
_SAMPLE = 64


def affordable(index: Floats, cost: Floats, budget: float) -> Rows:
    """Return the rows to crawl, in increasing order.

    ``index`` (n,) is per unit of ``cost`` (n,), and the budget M of the same unit, at least 0.

    >>> affordable(np.array([1.0, 4.0, 3.0, 2.0]), np.array([1.0, 2.0, 2.0, 1.0]), 3).tolist()
    [1, 3]
    """
    limit = budget * (1 + _ROUNDING)
    if not len(cost) or limit < cost.min():
        return np.empty(0, dtype=np.intp)
    if cost[0] == cost.min() == cost.max():
        return _in_order(largest(index, int(limit / cost[0])), len(index))
    return _in_order(_one_by_one(index, cost, limit), len(index))


def _in_order(rows: Rows, n: int) -> Rows:
    if len(rows) * _STRIDE < n:
        return np.sort(rows)
    chosen = np.zeros(n, np.bool_)
    chosen[rows] = True
    return np.flatnonzero(chosen)


def largest(index: Floats, count: int) -> Rows:
    """Return the rows of the ``count`` largest, unordered; ties are broken by the first row.

    >>> sorted(largest(np.array([5.0, 7.0, 5.0, 5.0]), 2).tolist())
    [0, 1]
    """
    if count >= len(index):
        return np.arange(len(index))
    if count < 1:
        return np.empty(0, dtype=np.intp)
    rows = _likely(index, count)
    if rows is not None:
        return rows[largest(index[rows], count)]
    least = np.partition(index, len(index) - count)[len(index) - count]
    above = np.flatnonzero(index > least)
    equal = np.flatnonzero(index == least)
    return np.concatenate([above, equal[: count - len(above)]])


def _likely(index: Floats, count: int) -> Rows | None:
    """Return all rows above a level estimated from a sample, if those are few and enough."""
    sample = index[::_STRIDE]
    expected = count / _STRIDE
    rank = len(sample) - int(expected + 4 * expected**0.5 + 8)
    if len(sample) < _SAMPLE or rank < len(sample) // 4:
        return None
    rows = np.flatnonzero(index >= np.partition(sample, rank)[rank])
    return rows if count <= len(rows) < len(index) else None


def _one_by_one(index: Floats, cost: Floats, left: float) -> Rows:
    rows = np.argsort(-index, kind="stable")
    cost, taken = cost[rows], [rows[:0]]
    while (paid := cost <= left).any():
        rows, cost = rows[paid], cost[paid]
        spent = np.cumsum(cost)
        # A source that fits alone fits as the first, even if the sum is rounded.
        count = max(1, int(np.searchsorted(spent, left, side="right")))
        taken.append(rows[:count])
        left -= float(spent[count - 1])
        rows, cost = rows[count:], cost[count:]
    return np.concatenate(taken)


def whittle_by_age(sources: EphemeralSources) -> PeriodPolicy:
    """Rank by the exact index of the state expected since the crawl, without observations."""
    return lambda seen: sources.index(seen.since_crawl)


# -- baselines --


def round_robin(seen: PolicyInput) -> Floats:
    """Put the longest-waiting source first."""
    return seen.since_crawl


def greedy_expected(sources: EphemeralSources) -> PeriodPolicy:
    """Rank by utility expected since the crawl, (Λξ̄/μ)(1 − e^{−μ·age}), per cost."""
    return lambda seen: seen.expected / sources.cost


def best_sources(sources: EphemeralSources) -> PeriodPolicy:
    """Rank by u per unit of cost: the income if crawled each period."""
    return lambda _: sources.fresh / sources.cost


def at_frequencies(frequencies: Floats) -> PeriodPolicy:
    """Rank by the number of crawls that a source is behind its frequency per period, (n,)."""
    return lambda seen: frequencies * (seen.elapsed + 1) - seen.crawls


# -- static frequencies --
#
# Optimal constant frequencies (Lefortier et al. 2013, as described in the Whittle papers).
#
# A source that is crawled every I units of time earns (Λξ̄/μ)(1 − e^{−μI})/I. The frequencies f =
# 1/I
#
#     maximise  Σ f (Λξ̄/μ)(1 − e^{−μ/f})    subject to  Σ C f T = M,  f ≤ 1/T
#
# Each term is concave in f. At the price λ per unit of cost, with y = μI and u* = Λξ̄/μ,
#
#     u* [ 1 − (1 + y) e^{−y} ] = λC,   so   1 + y = −W₋₁(−(1 − λC/u*)/e)   (Lambert W)
#
# and a source with u* ≤ λC is never crawled. λ is found by bisection.


def static_frequencies(sources: EphemeralSources, budget: float) -> Floats:
    """Return crawls per period (n,), at most 1 each; Σ C f is at most the budget.

    A source without decay earns the same at any frequency, and gets 0.
    """
    decaying = (sources.decay > 0) & (sources.arrival_rate * sources.mean_utility > 0)
    frequencies = np.zeros(len(sources))
    if not decaying.any():
        return frequencies
    value = np.where(decaying, sources.ceiling, 0.0)
    top = float((value / sources.cost).max())

    def at(price: float) -> Floats:
        wanted = np.zeros(len(sources))
        rows = decaying & (value > price * sources.cost)
        share = price * sources.cost[rows] / value[rows]
        y = lambert(-np.log1p(-share))
        step = sources.decay[rows] * sources.period
        wanted[rows] = step / np.maximum(y, step)
        return wanted

    low, high = least_price(lambda price: float(sources.cost @ at(price)), budget, top)
    few, many = at(high), at(low)
    # A frequency reaches 0 so steeply that floats see a jump: the rest of the budget is used there.
    short, long = budget - float(sources.cost @ few), float(sources.cost @ (many - few))
    return few + min(1.0, short / long) * (many - few) if long > 0 else few


def least_price(spent: Callable[[float], float], budget: float, top: float) -> tuple[float, float]:
    """Return adjacent prices from 0 to ``top``: the lower one spends more than the budget."""
    low, high = 0.0, top
    while low < (middle := (low + high) / 2) < high:
        if spent(middle) > budget:
            low = middle
        else:
            high = middle
    return low, high


# -- bounds --
#
# The relaxed problem: the budget holds on average, at one price; a bound for every policy.
#
# With Σ C_i v_i ≤ M required only on average (equation 5), the dual at the price λ ≥ 0 is
#
#     D(λ) = λM + Σ_i max( 0, max_k (x_{i,k} − λC_i)/k )
#
# since a source that pays λC for each crawl is best crawled every k periods, k the first with
# γ(x_k) ≥ λ, or never if λC ≥ u*. D is convex; its minimum is the maximum that any policy can earn
# per period in the deterministic model, and in the stochastic one without observations.
#
# k in closed form: γ(x_k) = λ is equivalent, with y = kh, h = μT, b = h/(1 − e^{−h}) and c = λC/u*,
# to
#
#     −(b + y) e^{−(b + y)} = −(1 − c) b e^{−b},   so   y = −W₋₁(−(1 − c) b e^{−b}) − b


@dataclass(frozen=True, slots=True)
class _Relaxed:
    """The relaxed optimum: ``bound``, utility per period, and ``price``, λ per unit of cost.

    It is the lowest price at which the budget suffices; D may have the same value up to a higher
    one.
    """

    bound: float
    price: float


def relaxed(sources: EphemeralSources, budget: float) -> _Relaxed:
    """Return the bound and its price by bisection, exact except for rounding.

    A source without decay earns u per period at any frequency, without a price. A budget that is
    not above 0 raises ValueError.
    """
    arrays.budget("budget", budget)
    if sources.cost.sum() <= budget:
        return _Relaxed(float(sources.fresh.sum()), 0.0)
    decaying = sources.decay > 0
    top = float(np.max(sources.ceiling[decaying] / sources.cost[decaying], initial=0.0))
    low, high = least_price(partial(spending, sources), budget, top)
    return _Relaxed(min(dual(sources, budget, low), dual(sources, budget, high)), high)


def dual(sources: EphemeralSources, budget: float, price: float) -> float:
    """Return D(λ), utility per period: at any price at least the income of any policy."""
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
    value = np.where(sources.decay > 0, sources.ceiling, 0.0)
    rows = value > price * sources.cost
    h = sources.decay[rows] * sources.period
    # b − 1, without the rounding of b.
    beyond = h * stale_share(h) / -np.expm1(-h)
    c = price * sources.cost[rows] / value[rows]
    y = lambert(np.maximum(beyond - np.log1p(beyond), 0) - np.log1p(-c)) - beyond
    guess = np.where(rows, 1.0, 0.0)
    guess[rows] = np.maximum(1, np.ceil(y / h))
    k[rows] = guess[rows]
    # The closed form may differ by one because of rounding.
    finite = np.isfinite(k)
    earlier = np.where(finite, np.maximum(k - 1, 1), 1.0)
    k = np.where(finite & (sources.index(earlier) >= price), earlier, k)
    late = finite & (sources.index(np.where(finite, k, 1.0)) < price)
    return np.where(late, k + 1, k)
