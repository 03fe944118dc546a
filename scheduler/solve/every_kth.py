"""Crawls at every k-th notified change, k whole numbers that keep to a budget.

A source of complete observations that is crawled at every k-th change spends Δ/k crawls per day.
At a price λ it wants the least k ≥ λΔ/μ, and at least 1 (its index μn/Δ reaches λ at n = k). That
is a step function of λ: no price need spend a budget to the last crawl. So the price is
bracketed; the sources get what they want at the upper end, which keeps to the budget, and those
that want a smaller k at the lower end get it, in the order of rows, as long as it can be paid.

Sources of incomplete observations share the budget and take part in the search for the price.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.solve.budget import Hosts
from freshet.scheduler.solve.demand import IntervalDemand
from freshet.scheduler.sources import Rows, SourceTable

#: The relative width to which a price is known.
_WIDTH = 1e-9
_ROUNDS = 300
#: By how much a price is raised or lowered while an end of its bracket is not known.
_STRIDE = 8.0


@dataclass(frozen=True, slots=True)
class Bracket:
    """Prices (H,): more than the budget is spent at ``low``, no more at ``high``."""

    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True)
class WholeChanges:
    """The steps k of sources crawled at every k-th change, and their prices.

    Attributes:
        every: k (n,); 1 for sources that are not crawled on signals.
        price: λ, the common price; 0 where some of the budget cannot be used.
        host_price: (H,), λ, or more where a capacity binds.
    """

    every: Floats
    price: float
    host_price: Floats


def whole_changes(table: SourceTable, budget: float, hosts: Hosts) -> WholeChanges:
    """Choose the k of sources of complete observations: a crawl at every k-th change.

    Cost: a dozen passes over all sources, about twice as many with capacities.
    """
    wishes = Wishes(table)
    if not wishes.any_on_signals:
        return WholeChanges(np.ones(len(table)), 0.0, np.zeros(len(hosts.capacity)))
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
    return WholeChanges(every, float(common.high[0]), prices.high)


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


def _prices(wishes: Wishes, budget: float, hosts: Hosts) -> tuple[Bracket, Bracket]:
    """Return the common price, and those of the hosts whose capacities bind."""

    def spend(price: Floats) -> Floats:
        wanted = hosts.sums(wishes.rates(np.full(len(wishes), price[0])))
        return np.array([np.minimum(wanted, hosts.capacity).sum()])

    free = np.zeros(1)
    common = Bracket(free, free)
    if spend(free)[0] > budget:
        common = _bracket(spend, np.array([budget]))
    everywhere = np.ones(len(hosts.capacity))
    low, high = common.low * everywhere, common.high * everywhere
    full = hosts.sums(wishes.rates(low[hosts.code])) > hosts.capacity
    if full.any():
        of_full = _full_hosts(wishes, hosts, full)
        low[full], high[full] = of_full.low, of_full.high
    return common, Bracket(low, high)


def _full_hosts(wishes: Wishes, hosts: Hosts, full: Bools) -> Bracket:
    rows = np.flatnonzero(full[hosts.code])
    theirs = Hosts((np.cumsum(full) - 1)[hosts.code[rows]], hosts.capacity[full])
    wanted = wishes.take(rows)
    return _bracket(lambda price: theirs.sums(wanted.rates(price[theirs.code])), theirs.capacity)


def _bracket(spend: Callable[[Floats], Floats], budget: Floats) -> Bracket:
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
    return Bracket(np.exp(low), np.exp(high))


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
