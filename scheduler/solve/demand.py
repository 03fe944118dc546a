"""Demand functions: the best crawl rate of each source at a price, for the harmonic cost.

    incomplete observations  ρ(λ) = 2(μΔ/λ)/(Δ + s),  −dρ/d ln λ = (μΔ/λ)/s,  s = √(Δ² + 4μΔ/λ)
    complete observations    r(λ) = min(Δ, μ/λ),      −dr/d ln λ = μ/λ below Δ, 0 at Δ

:mod:`freshet.scheduler.policies.lambda_crawl` derives the rates. The slope of ρ follows from its
equation ρ(Δ + ρ) = μΔ/λ: dρ (Δ + 2ρ) = d(μΔ/λ), and Δ + 2ρ = s.

The sum S(λ) of all rates is nearly a power of λ: each ρ ranges from λ^{−1} (rare crawls) to
λ^{−1/2} (frequent ones).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.policies.greedy_index import stale_share
from freshet.scheduler.solve.budget import Demand, Hosts, Step, allocate, root_step
from freshet.scheduler.sources import Rows, SourceTable

#: Rows that are processed together: their intermediate columns stay in the processor's cache.
_CHUNK = 1 << 15
#: The price of a sample of every 32nd source is the first guess, unless there are few sources.
_SAMPLED = 32
_FEW = 1 << 15
#: Makes 0/0, for a source that never changes, 0; it does not affect sums with terms above 1e-142².
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class HarmonicDemand(Demand):
    """The demand by the clock or, where ``on_signals`` (n,), for notified changes."""

    on_signals: Bools

    def rates_at(self, price: float | Floats, rates: Floats, slopes: Floats) -> None:
        """Write ρ(λ) and −dρ/d ln λ, both (n,); ``price`` is λ, one for all or (n,)."""
        for rows in _pieces(len(self)):
            each = price[rows] if isinstance(price, np.ndarray) else price
            self._write(rows, each, rates[rows], slopes[rows])

    def spending_at(self, price: float, rates: Floats) -> tuple[float, float]:
        """Return Σρ(λ) and its −d/d ln λ; write ρ(λ) (n,)."""
        total = slope = 0.0
        slopes = np.empty(min(len(self), _CHUNK))
        for rows in _pieces(len(self)):
            part = rates[rows]
            self._write(rows, price, part, slopes[: len(part)])
            total += float(part.sum())
            slope += float(slopes[: len(part)].sum())
        return total, slope

    def limits(self) -> Floats:
        """Return Δ of sources worth a crawl on signals, inf by the clock, else 0; (n,)."""
        return np.where(self.active, np.where(self.on_signals, self.change_rate, np.inf), 0.0)

    def is_limited(self) -> bool:
        """Return whether every source worth a crawl is crawled on signals."""
        return not any(
            np.any(
                ~self.on_signals[rows] & (self.importance[rows] > 0) & (self.change_rate[rows] > 0)
            )
            for rows in _pieces(len(self))
        )

    def guess(self, budget: Floats, host: Rows | None) -> Floats:
        """Return Σμ/R, never too low as ρ ≤ μ/λ; for many sources, a sample's price."""
        if host is None and len(self) > _FEW:
            sample = self.take(slice(None, None, _SAMPLED))
            share = len(sample) / len(self)
            price = allocate(sample, float(budget[0]) * share).price
            if price:
                return np.array([price])
        return _sums(self.importance, host, budget) / budget

    def probabilities(self, rates: Floats) -> Floats:
        """Return p (n,): r/Δ on signals; 1 by the clock, and without changes."""
        shares = np.ones(len(self))
        for rows in _pieces(len(self)):
            signalled = self.on_signals[rows].nonzero()[0]
            delta = self.change_rate[rows][signalled]
            shares[rows][signalled] = np.divide(
                rates[rows][signalled], delta, out=np.ones(len(signalled)), where=delta > 0
            )
        return shares

    def _write(self, rows: slice, price: float | Floats, rates: Floats, slopes: Floats) -> None:
        """Evaluate the equations for some rows in place, in half the time of new columns."""
        mu, delta, complete = self.importance[rows], self.change_rate[rows], self.on_signals[rows]
        product, root = slopes, np.empty_like(rates)
        np.multiply(mu, delta, out=product)
        product *= 4 / price
        np.multiply(delta, delta, out=root)
        root += product
        root += _TINY
        np.sqrt(root, out=root)
        np.add(delta, root, out=rates)
        np.divide(product, rates, out=rates)
        rates *= 0.5
        np.divide(product, root, out=slopes)
        slopes *= 0.25
        signalled = complete.nonzero()[0]
        if len(signalled):
            value = mu[signalled] / (price[signalled] if isinstance(price, np.ndarray) else price)
            most = delta[signalled]
            rates[signalled] = np.minimum(value, most)
            slopes[signalled] = np.where(value < most, value, 0.0)


def _pieces(n: int) -> Iterator[slice]:
    return (slice(start, start + _CHUNK) for start in range(0, n, _CHUNK))


def _sums(values: Floats, host: Rows | None, budget: Floats) -> Floats:
    """Return the sums of ``values`` (n,) over each budget's sources, (H,)."""
    if host is None:
        return np.array([values.sum()])
    return np.bincount(host, values, minlength=len(budget)).astype(np.float64, copy=False)


# -- binary demand --
#
# The demand of each source at a price, for the binary cost.
#
#     minimise μΔ/(Δ + ρ) + λρ over ρ ≥ f:   ρ(λ) = max(f, √(μΔ/λ) − Δ)
#
# with f a floor under the rate, 0 in the paper. Below it the slope −dρ/d ln λ is 0, above it
# √(μΔ/λ)/2. In λ^{−1/2} the sum of all rates is convex and piecewise linear, with a kink where a
# source's rate rises above its floor.


@dataclass(frozen=True, slots=True)
class BinaryDemand(Demand):
    """The demand by the clock above a floor.

    Attributes:
        floor: f (n,), crawls per day; 0 for sources not worth a crawl. The floors of a host sum to
            at most its capacity, all floors to less than the budget.
    """

    floor: Floats

    @property
    def step(self) -> Step:
        """Return the step for spendings that are piecewise linear in λ^{−1/2}."""
        return root_step

    def rates_at(self, price: float | Floats, rates: Floats, slopes: Floats) -> None:
        """Write ρ(λ) and −dρ/d ln λ, both (n,); ``price`` is λ, one for all or (n,)."""
        root = np.sqrt(self.importance * self.change_rate / price)
        np.maximum(root - self.change_rate, self.floor, out=rates)
        slopes[:] = np.where(rates > self.floor, root / 2, 0.0)

    def guess(self, budget: Floats, host: Rows | None) -> Floats:
        """Return (Σ√(μΔ)/(R + ΣΔ))², as if no source were below its floor: never too high."""
        roots = np.sqrt(self.importance * self.change_rate)
        changes = np.where(self.active, self.change_rate, 0.0)
        guess: Floats = (_sums(roots, host, budget) / (budget + _sums(changes, host, budget))) ** 2
        return guess


# -- interval demand --
#
# The demand of each source at a price, by the clock and evenly spaced.
#
# For a source with incomplete observations, crawled every T days, with x = ΔT changes between two
# crawls, the harmonic cost plus the price of its crawls is
#
#     J(T) + λ/T = μ [Ein(x) − 1 + (1 − e^{−x})/x] + λΔ/x,
#
# which is minimal where its derivative in x vanishes:
#
#     x − 1 + e^{−x} = c,   c = λΔ/μ,   ρ(λ) = Δ/x,   −dρ/d ln λ = ρ c/(x (1 − e^{−x}))
#
# (the slope by the implicit equation: dx (1 − e^{−x}) = dc = c d ln λ). :func:`changes_at` solves
# the equation. Its solution x = 1 + c + W₀(−e^{−(1+c)}), W₀ the principal branch of Lambert's W,
# loses all digits near the branch point c = 0; :func:`changes_at` preserves them.

#: Rows that are processed together: their intermediate columns stay in the processor's cache.
_INTERVAL_CHUNK = 1 << 14
#: The first guesses have an error of 0.014, and each of Halley's steps cubes it.
_STEPS = 2


# A ratio beyond the range of numbers gives a NaN rate, which allocate() refuses.
@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def changes_at(c: Floats) -> Floats:
    """Return x ≥ 0 with x − 1 + e^{−x} = c: changes between crawls at cost ratios c ≥ 0; (n,).

    Method: for c < 1.5 the first terms of the series √(2c) + c/3 + …, above it 1 + c − e^{−1−c};
    then two of Halley's steps. Relative error below 1e-13 for all c.

    >>> changes_at(np.array([0.0, 1 / np.e])).round(12).tolist()  # 1 − 1 + e⁻¹
    [0.0, 1.0]
    """
    root = np.sqrt(2 * c)
    x = np.where(c < 1.5, root * (1 + root * (1 / 6 + root / 36)), 1 + c - np.exp(-1 - c))
    for _ in range(_STEPS):
        excess = x * stale_share(x) - c
        slope = -np.expm1(-x)
        # Below 1e-150 the slope is x, and excess/slope 0/0 at 0.
        step = slope - excess * (1 - slope) / (2 * np.maximum(slope, 1e-300))
        x = x - excess / np.maximum(step, 1e-300)
    return x


class IntervalDemand(Demand):
    """The demand by the clock at even intervals."""

    @np.errstate(over="ignore", divide="ignore", invalid="ignore")
    def rates_at(self, price: float | Floats, rates: Floats, slopes: Floats) -> None:
        """Write ρ(λ) and −dρ/d ln λ, both (n,); ``price`` is λ above 0, one for all or (n,)."""
        for start in range(0, len(self), _INTERVAL_CHUNK):
            rows = slice(start, start + _INTERVAL_CHUNK)
            each = price[rows] if isinstance(price, np.ndarray) else price
            mu, delta = self.importance[rows], self.change_rate[rows]
            active = (mu > 0) & (delta > 0)
            c = np.divide(each * delta, mu, out=np.ones_like(mu), where=active)
            x = changes_at(c)
            rates[rows] = np.where(active, delta / x, 0.0)
            slopes[rows] = rates[rows] * c / (x * -np.expm1(-x))

    def guess(self, budget: Floats, host: Rows | None) -> Floats:
        """Return Σμ/R: the price if changes happened at once, W = μτ."""
        return _sums(np.where(self.active, self.importance, 0.0), host, budget) / budget


# -- every kth --
#
# Crawls at every k-th notified change, with whole numbers k within a budget.
#
# A source with complete observations that is crawled at every k-th change spends Δ/k crawls per
# day. At a price λ it demands the least k ≥ λΔ/μ, and at least 1 (its index μn/Δ reaches λ at n =
# k). That is a step function of λ: no price need spend a budget exactly. So the price is bracketed.
# The sources get their demand at the upper end, which is within the budget. Sources with a smaller
# k at the lower end then get it, in the order of rows, while the budget allows.
#
# Sources with incomplete observations share the budget and take part in the search for the price.

#: The relative width to which a price is known.
_WIDTH = 1e-9
_ROUNDS = 300
#: Factor by which a price is changed while an end of its bracket is not known.
_STRIDE = 8.0


def whole_changes(table: SourceTable, budget: float, hosts: Hosts) -> tuple[Floats, float, Floats]:
    """Choose the k of sources of complete observations: a crawl at every k-th change.

    Returns k (n,), 1 for sources that are not crawled on signals; λ, 0 if a part of the budget
    cannot be used; and the hosts' prices (H,), λ or more where a capacity binds. Cost: a dozen
    passes over all sources, about twice as many with capacities.
    """
    demand = _PricedDemand(table.importance, table.change_rate, table.complete_observations)
    if not (demand.on_signals & demand.active).any():
        return np.ones(len(table)), 0.0, np.zeros(len(hosts.capacity))
    common, low, high = _prices(demand, budget, hosts)
    every, fewer = (demand.every(price[hosts.code]) for price in (high, low))
    spent = hosts.sums(demand.rates(high[hosts.code]))
    left, left_of_host = budget - float(spent.sum()), hosts.capacity - spent
    for row in np.flatnonzero(fewer < every):
        host = hosts.code[row]
        more = table.change_rate[row] / fewer[row] - table.change_rate[row] / every[row]
        if more <= min(left, left_of_host[host]):
            every[row] = fewer[row]
            left -= more
            left_of_host[host] -= more
    return every, common, high


@dataclass(frozen=True, slots=True)
class _PricedDemand(IntervalDemand):
    """The demand at a price for each source, by the clock or at every k-th change."""

    on_signals: Bools

    def every(self, price: Floats) -> Floats:
        """Return k (n,); 1 for sources that are not crawled on signals."""
        some = self.on_signals & self.active
        ratio = np.divide(
            price * self.change_rate, self.importance, out=np.ones(len(self)), where=some
        )
        return np.maximum(np.ceil(ratio), 1.0)

    def rates(self, price: Floats) -> Floats:
        """Return crawls per day (n,); inf by the clock at a price of 0."""
        rates, slopes = np.empty((2, len(self)))
        self.rates_at(price, rates, slopes)
        some = self.on_signals & self.active
        return np.where(some, self.change_rate / self.every(price), rates)


def _prices(demand: _PricedDemand, budget: float, hosts: Hosts) -> tuple[float, Floats, Floats]:
    """Return the upper end of the common price, and both ends of each host's, (H,)."""

    def spend(price: Floats) -> Floats:
        wanted = hosts.sums(demand.rates(np.full(len(demand), price[0])))
        return np.array([np.minimum(wanted, hosts.capacity).sum()])

    first = last = np.zeros(1)
    if spend(first)[0] > budget:
        first, last = _bracket(spend, np.array([budget]))
    low, high = (np.repeat(end, len(hosts.capacity)) for end in (first, last))
    full = hosts.sums(demand.rates(low[hosts.code])) > hosts.capacity
    if full.any():
        rows, theirs = hosts.among(full)
        wanted = demand.take(rows)
        low[full], high[full] = _bracket(
            lambda price: theirs.sums(wanted.rates(price[theirs.code])), theirs.capacity
        )
    return float(last[0]), low, high


def _bracket(spend: Callable[[Floats], Floats], budget: Floats) -> tuple[Floats, Floats]:
    """Return two prices (H,) for each budget, 1e-9 apart: only the first exceeds the budget.

    Method: the secant in ln λ and ln S, which is nearly linear between its steps; every third round
    the middle, so that steps cannot delay the search. An end that stays twice counts half (the
    Illinois method).
    """
    low, above = _end(spend, budget, lower=True)
    high, below = _end(spend, budget, lower=False)
    for count in range(_ROUNDS):
        width = high - low
        if (width <= _WIDTH).all():
            break
        share = np.clip(above / (above - below), 0.02, 0.98) if count % 3 < 2 else 0.5
        middle = low + width * share
        height = _height(spend, budget, middle)
        more = height > 0
        low, high = np.where(more, middle, low), np.where(more, high, middle)
        above = np.where(more, height, above / 2)
        below = np.where(more, below / 2, height)
    return np.exp(low), np.exp(high)


def _end(
    spend: Callable[[Floats], Floats], budget: Floats, *, lower: bool
) -> tuple[Floats, Floats]:
    """Return logarithms of prices on one side of the budget, and ln(spending/budget) there."""
    price = np.zeros_like(budget)
    stride = -np.log(_STRIDE) if lower else np.log(_STRIDE)
    for _ in range(_ROUNDS):
        height = _height(spend, budget, price)
        wrong = (height <= 0) if lower else (height > 0)
        if not wrong.any():
            return price, height
        price = np.where(wrong, price + stride, price)
    raise ValueError("importance, change_rate: some are too large or too small")


def _height(spend: Callable[[Floats], Floats], budget: Floats, price: Floats) -> Floats:
    return np.log(spend(np.exp(price)) / budget)
