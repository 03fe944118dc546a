"""Demand functions: the best crawl rate of each source at a price, for the harmonic cost.

    incomplete observations  ρ(λ) = 2(μΔ/λ)/(Δ + s),  −dρ/d ln λ = (μΔ/λ)/s,  s = √(Δ² + 4μΔ/λ)
    complete observations    r(λ) = min(Δ, μ/λ),      −dr/d ln λ = μ/λ below Δ, 0 at Δ

:mod:`freshet.scheduler.policies.lambda_crawl` derives the rates. The slope of ρ follows from its
equation ρ(Δ + ρ) = μΔ/λ: dρ (Δ + 2ρ) = d(μΔ/λ), and Δ + 2ρ = s.

The sum S(λ) of all rates is nearly a power of λ: each ρ goes from λ^{−1} (rare crawls) to
λ^{−1/2} (frequent ones).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from freshet.scheduler.arrays import Bools, Floats, compiled
from freshet.scheduler.policies.greedy_index import stale_share
from freshet.scheduler.solve.budget import Hosts, Step, allocate, root_step, smooth_step
from freshet.scheduler.sources import Rows, SourceTable

#: Rows that are worked on together: their intermediate columns stay in the processor's cache.
_CHUNK = 1 << 15
#: The price of every 32nd source is the first guess, unless there are few.
_SAMPLED = 32
_FEW = 1 << 15
#: Rows that the compiled loop adds up before it adds the sums.
_SUMMED = 1 << 12
#: Makes 0/0, of a source that never changes, 0; it changes no sum with anything above 1e-142².
_NEXT_TO_NOTHING = 1e-300


@dataclass(frozen=True, slots=True)
class HarmonicDemand:
    """The demand of n sources; columns as in :func:`scheduler.policies.lambda_crawl.solve`.

    ``compiled`` says whether :meth:`spending_at`, where the time goes, is compiled.
    """

    importance: Floats
    change_rate: Floats
    complete: Bools
    compiled: bool = False

    @property
    def step(self) -> Step:
        """Return the step for spendings that are nearly powers of the price."""
        return smooth_step

    def __len__(self) -> int:
        return len(self.importance)

    def rates_at(self, price: float | Floats, rates: Floats, slopes: Floats) -> None:
        """Write ρ(λ) and −dρ/d ln λ, both (n,); ``price`` is λ, one for all or (n,)."""
        for rows in _pieces(len(self)):
            each = price[rows] if isinstance(price, np.ndarray) else price
            self._write(rows, each, rates[rows], slopes[rows])

    def spending_at(self, price: float, rates: Floats) -> tuple[float, float]:
        """Return Σρ(λ) and its −d/d ln λ; write ρ(λ) (n,)."""
        if self.compiled:
            return compiled(spending_loop)(
                self.importance, self.change_rate, self.complete, 1 / price, rates
            )
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
        unlimited = np.where(self.complete, self.change_rate, np.inf)
        return np.where((self.importance > 0) & (self.change_rate > 0), unlimited, 0.0)

    def is_limited(self) -> bool:
        """Return whether no source worth a crawl is crawled by the clock."""
        return not any(
            np.any(
                ~self.complete[rows] & (self.importance[rows] > 0) & (self.change_rate[rows] > 0)
            )
            for rows in _pieces(len(self))
        )

    def guess(self, budget: Floats, host: Rows | None) -> Floats:
        """Return Σμ/R, never too low as ρ ≤ μ/λ; of many sources a sample's price."""
        if host is not None:
            return np.bincount(host, self.importance, minlength=len(budget)) / budget
        if len(self) > _FEW:
            sample = self.take(slice(None, None, _SAMPLED))
            share = len(sample) / len(self)
            price = allocate(sample, float(budget[0]) * share).price
            if price > 0:
                return np.array([price])
        return np.array([self.importance.sum()]) / budget

    def probabilities(self, rates: Floats) -> Floats:
        """Return p (n,): r/Δ on signals; 1 by the clock, and without changes."""
        shares = np.ones(len(self))
        for rows in _pieces(len(self)):
            signalled = self.complete[rows].nonzero()[0]
            delta = self.change_rate[rows][signalled]
            shares[rows][signalled] = np.divide(
                rates[rows][signalled], delta, out=np.ones(len(signalled)), where=delta > 0
            )
        return shares

    def take(self, rows: Rows | slice) -> HarmonicDemand:
        """Return the demand of these sources."""
        return HarmonicDemand(
            np.ascontiguousarray(self.importance[rows]),
            np.ascontiguousarray(self.change_rate[rows]),
            np.ascontiguousarray(self.complete[rows]),
            self.compiled,
        )

    def _write(self, rows: slice, price: float | Floats, rates: Floats, slopes: Floats) -> None:
        """Evaluate the equations for some rows in place: new columns take half the time."""
        mu, delta, complete = self.importance[rows], self.change_rate[rows], self.complete[rows]
        product, root = slopes, np.empty_like(rates)
        np.multiply(mu, delta, out=product)
        product *= 4 / price
        np.multiply(delta, delta, out=root)
        root += product
        root += _NEXT_TO_NOTHING
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


def spending_loop(
    mu: Floats, delta: Floats, complete: Bools, per_price: float, rates: Floats
) -> tuple[float, float]:
    """Compute :meth:`HarmonicDemand.spending_at`, compiled, with one division a source.

    It is given 1/λ: a reciprocal taken here would be turned into a division of each μ.
    """
    total = slope = 0.0
    for start in range(0, len(mu), _SUMMED):
        # Sums of sums round less than one long sum. Slices, for with an index that does not
        # begin at 0 the loop is not turned into vector instructions.
        rows = slice(start, start + _SUMMED)
        some_mu, some_delta, some_complete = mu[rows], delta[rows], complete[rows]
        some_rates = rates[rows]
        part = part_slope = 0.0
        for i in range(len(some_mu)):
            value = some_mu[i] * per_price
            most = some_delta[i]
            product = value * most
            root = sqrt(most * most + 4 * product + _NEXT_TO_NOTHING)
            share = product / (root * (most + root))
            on_signals = value if value < most else 0.0
            rate = min(value, most) if some_complete[i] else 2 * share * root
            some_rates[i] = rate
            part += rate
            part_slope += on_signals if some_complete[i] else share * (most + root)
        total += part
        slope += part_slope
    return total, slope


def _pieces(n: int) -> Iterator[slice]:
    return (slice(start, start + _CHUNK) for start in range(0, n, _CHUNK))


# -- binary demand -----------------------------------------------------------
#
# How often each source wants to be crawled at a price, for the binary cost.
#
#     minimise μΔ/(Δ + ρ) + λρ over ρ ≥ f:   ρ(λ) = max(f, √(μΔ/λ) − Δ)
#
# with f a floor under the rate, 0 in the paper. Below it the slope −dρ/d ln λ is 0, above it
# √(μΔ/λ)/2. In λ^{−1/2} the sum of all rates is convex and made of straight pieces, with a kink
# where a source comes to be worth more than its floor.


@dataclass(frozen=True, slots=True)
class BinaryDemand:
    """The :class:`~freshet.scheduler.solve.budget.Demand` of n sources by the clock.

    Attributes:
        importance: μ (n,).
        change_rate: Δ (n,), changes per day.
        floor: f (n,), crawls per day; 0 for what is not worth a crawl. The floors of a host add
            up to its capacity at most, all floors to less than the budget.
    """

    importance: Floats
    change_rate: Floats
    floor: Floats

    @property
    def step(self) -> Step:
        """Return the step for straight pieces in λ^{−1/2}."""
        return root_step

    def __len__(self) -> int:
        return len(self.importance)

    def rates_at(self, price: float | Floats, rates: Floats, slopes: Floats) -> None:
        """Write ρ(λ) and −dρ/d ln λ, both (n,); ``price`` is λ, one for all or (n,)."""
        root = np.sqrt(self.importance * self.change_rate / price)
        np.maximum(root - self.change_rate, self.floor, out=rates)
        slopes[:] = np.where(rates > self.floor, root / 2, 0.0)

    def spending_at(self, price: float, rates: Floats) -> tuple[float, float]:
        """Return Σρ(λ) and its −d/d ln λ; write ρ(λ) (n,)."""
        slopes = np.empty(len(self))
        self.rates_at(price, rates, slopes)
        return float(rates.sum()), float(slopes.sum())

    def limits(self) -> Floats:
        """Return inf for sources worth a crawl, else 0; (n,)."""
        return np.where(self._is_active(), np.inf, 0.0)

    def is_limited(self) -> bool:
        """Return whether no source is worth a crawl."""
        return not self._is_active().any()

    def guess(self, budget: Floats, host: Rows | None) -> Floats:
        """Return (Σ√(μΔ)/(R + ΣΔ))², as if no source were below its floor: never too high."""
        roots = np.sqrt(self.importance * self.change_rate)
        changes = np.where(self._is_active(), self.change_rate, 0.0)
        code = np.zeros(len(self), np.intp) if host is None else host
        all_roots = np.bincount(code, roots, minlength=len(budget))
        all_changes = np.bincount(code, changes, minlength=len(budget))
        guess: Floats = (all_roots / (budget + all_changes)) ** 2
        return guess

    def take(self, rows: Rows) -> BinaryDemand:
        """Return the demand of these sources."""
        return BinaryDemand(self.importance[rows], self.change_rate[rows], self.floor[rows])

    def _is_active(self) -> Bools:
        active: Bools = (self.importance > 0) & (self.change_rate > 0)
        return active


# -- interval demand ---------------------------------------------------------
#
# How often each source wants to be crawled by the clock at a price, evenly spaced.
#
# For a source of incomplete observations, crawled every T days, with x = ΔT changes between two
# crawls, the harmonic cost and the price of its crawls come to
#
#     J(T) + λ/T = μ [Ein(x) − 1 + (1 − e^{−x})/x] + λΔ/x,
#
# which is least where its derivative in x vanishes:
#
#     x − 1 + e^{−x} = c,   c = λΔ/μ,   ρ(λ) = Δ/x,   −dρ/d ln λ = ρ c/(x (1 − e^{−x}))
#
# (the slope by the implicit equation: dx (1 − e^{−x}) = dc = c d ln λ). :func:`changes_at` solves
# the equation. Its solution x = 1 + c + W₀(−e^{−(1+c)}), W₀ the principal branch of Lambert's W,
# loses all digits near the branch point c = 0; ours keeps them.

#: Rows that are worked on together: their intermediate columns stay in the processor's cache.
_INTERVAL_CHUNK = 1 << 14
#: The first guesses are right to 0.014, and each of Halley's steps cubes that.
_STEPS = 2


# A ratio beyond the range of numbers gives a rate that is none, which allocate() refuses.
@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def changes_at(c: Floats) -> Floats:
    """Return x ≥ 0 with x − 1 + e^{−x} = c: changes between crawls at cost ratios c ≥ 0; (n,).

    Method: for c < 1.5 the start of the series √(2c) + c/3 + …, above it 1 + c − e^{−1−c}; then
    two of Halley's steps. Relative error below 1e-13 for all c.

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


@dataclass(frozen=True, slots=True)
class IntervalDemand:
    """The :class:`~freshet.scheduler.solve.budget.Demand` of n sources at even intervals."""

    importance: Floats
    change_rate: Floats

    @property
    def step(self) -> Step:
        """Return the step for λ^{−1/2} (frequent crawls) to λ^{−1} (rare ones)."""
        return smooth_step

    def __len__(self) -> int:
        return len(self.importance)

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

    def spending_at(self, price: float, rates: Floats) -> tuple[float, float]:
        """Return Σρ(λ) and its −d/d ln λ; write ρ(λ) (n,)."""
        slopes = np.empty(len(self))
        self.rates_at(price, rates, slopes)
        return float(rates.sum()), float(slopes.sum())

    def limits(self) -> Floats:
        """Return inf for sources worth a crawl, else 0; (n,)."""
        return np.where(self._is_active(), np.inf, 0.0)

    def is_limited(self) -> bool:
        """Return whether no source is worth a crawl."""
        return not self._is_active().any()

    def guess(self, budget: Floats, host: Rows | None) -> Floats:
        """Return Σμ/R: the price if changes came at once, W = μτ."""
        if host is None:
            return np.array([self.importance[self._is_active()].sum()]) / budget
        active = np.where(self._is_active(), self.importance, 0.0)
        return np.bincount(host, active, minlength=len(budget)) / budget

    def take(self, rows: Rows) -> IntervalDemand:
        """Return the demand of these sources."""
        return IntervalDemand(self.importance[rows], self.change_rate[rows])

    def _is_active(self) -> Bools:
        active: Bools = (self.importance > 0) & (self.change_rate > 0)
        return active


# -- every kth ---------------------------------------------------------------
#
# Crawls at every k-th notified change, k whole numbers that keep to a budget.
#
# A source of complete observations that is crawled at every k-th change spends Δ/k crawls per day.
# At a price λ it wants the least k ≥ λΔ/μ, and at least 1 (its index μn/Δ reaches λ at n = k).
# That is a step function of λ: no price need spend a budget to the last crawl. So the price is
# bracketed; the sources get what they want at the upper end, which keeps to the budget, and those
# that want a smaller k at the lower end get it, in the order of rows, as long as it can be paid.
#
# Sources of incomplete observations share the budget and take part in the search for the price.

#: The relative width to which a price is known.
_WIDTH = 1e-9
_ROUNDS = 300
#: By how much a price is raised or lowered while an end of its bracket is not known.
_STRIDE = 8.0


@dataclass(frozen=True, slots=True)
class _Bracket:
    """Prices (H,): more than the budget is spent at ``low``, no more at ``high``."""

    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True)
class _WholeChanges:
    """The steps k of sources crawled at every k-th change, and their prices.

    Attributes:
        every: k (n,); 1 for sources that are not crawled on signals.
        price: λ, the common price; 0 where some of the budget cannot be used.
        host_price: (H,), λ, or more where a capacity binds.
    """

    every: Floats
    price: float
    host_price: Floats


def whole_changes(table: SourceTable, budget: float, hosts: Hosts) -> _WholeChanges:
    """Choose the k of sources of complete observations: a crawl at every k-th change.

    Cost: a dozen passes over all sources, about twice as many with capacities.
    """
    wishes = Wishes(table)
    if not wishes.any_on_signals:
        return _WholeChanges(np.ones(len(table)), 0.0, np.zeros(len(hosts.capacity)))
    common, prices = _prices(wishes, budget, hosts)
    every, fewer = (wishes.every(price[hosts.code]) for price in (prices.high, prices.low))
    spent = hosts.sums(wishes.rates(prices.high[hosts.code]))
    left, left_of_host = budget - float(spent.sum()), hosts.capacity - spent
    for row in np.flatnonzero(fewer < every):
        host = hosts.code[row]
        more = table.change_rate[row] / fewer[row] - table.change_rate[row] / every[row]
        if more <= min(left, left_of_host[host]):
            every[row] = fewer[row]
            left -= more
            left_of_host[host] -= more
    return _WholeChanges(every, float(common.high[0]), prices.high)


class Wishes:
    """The demand of each source of a table at a price of its own, by the clock or on signals."""

    def __init__(self, table: SourceTable) -> None:
        self._active = (table.importance > 0) & (table.change_rate > 0)
        self._on_signals = self._active & table.complete_observations
        self._table = table
        self._clock = np.flatnonzero(self._active & ~table.complete_observations)
        self._by_clock = IntervalDemand(table.importance, table.change_rate).take(self._clock)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def any_on_signals(self) -> bool:
        """Return whether any source is worth a crawl on its signals."""
        return bool(self._on_signals.any())

    def every(self, price: Floats) -> Floats:
        """Return k (n,); 1 for sources that are not crawled on signals."""
        mu, delta = self._table.importance, self._table.change_rate
        ratio = np.divide(price * delta, mu, out=np.ones_like(mu), where=self._on_signals)
        return np.maximum(np.ceil(ratio), 1.0)

    def rates(self, price: Floats) -> Floats:
        """Return crawls per day (n,); inf by the clock at a price of 0."""
        rates = np.where(self._on_signals, self._table.change_rate / self.every(price), 0.0)
        mine = price[self._clock]
        if (mine > 0).all():
            by_clock = np.empty(len(self._clock))
            self._by_clock.rates_at(mine, by_clock, np.empty_like(by_clock))
            rates[self._clock] = by_clock
        else:
            rates[self._clock] = np.inf
        return rates

    def take(self, rows: Rows) -> Wishes:
        """Return the wishes of these sources."""
        return Wishes(self._table.take(rows))


def _prices(wishes: Wishes, budget: float, hosts: Hosts) -> tuple[_Bracket, _Bracket]:
    """Return the common price, and those of the hosts whose capacities bind."""

    def spend(price: Floats) -> Floats:
        wanted = hosts.sums(wishes.rates(np.full(len(wishes), price[0])))
        return np.array([np.minimum(wanted, hosts.capacity).sum()])

    free = np.zeros(1)
    common = _Bracket(free, free)
    if spend(free)[0] > budget:
        common = _bracket(spend, np.array([budget]))
    everywhere = np.ones(len(hosts.capacity))
    low, high = common.low * everywhere, common.high * everywhere
    full = hosts.sums(wishes.rates(low[hosts.code])) > hosts.capacity
    if full.any():
        of_full = _full_hosts(wishes, hosts, full)
        low[full], high[full] = of_full.low, of_full.high
    return common, _Bracket(low, high)


def _full_hosts(wishes: Wishes, hosts: Hosts, full: Bools) -> _Bracket:
    rows = np.flatnonzero(full[hosts.code])
    theirs = Hosts((np.cumsum(full) - 1)[hosts.code[rows]], hosts.capacity[full])
    wanted = wishes.take(rows)
    return _bracket(lambda price: theirs.sums(wanted.rates(price[theirs.code])), theirs.capacity)


def _bracket(spend: Callable[[Floats], Floats], budget: Floats) -> _Bracket:
    """Return brackets of relative width 1e-9, one for each budget.

    Method: the line through both ends in ln λ and ln S, which is nearly straight between its
    steps; every third round the middle, so that no step can hold up the search. An end that
    stays twice counts half (the Illinois method).
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
    return _Bracket(np.exp(low), np.exp(high))


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
    raise ValueError("importance, change_rate: too large or too small to be computed with")


def _height(spend: Callable[[Floats], Floats], budget: Floats, price: Floats) -> Floats:
    return np.log(spend(np.exp(price)) / budget)
