"""The price of a crawl at which sources spend exactly a budget, and the allocation by that price.

**Why prices.** A convex cost Σ_w J_w(ρ_w) is to be minimised under one budget, Σ_w ρ_w = R. At the
minimum, one more crawl per day saves the same at every source that is crawled: that saving is the
Lagrange multiplier λ, the price of a crawl. At a given price the best rate ρ_w(λ) of each source
does not depend on the others, and all together spend S(λ) = Σ_w ρ_w(λ). S decreases with λ; the
optimum in n variables is the solution of one equation in one unknown,

    S(λ) = R.

Hosts with binding capacities are separate budgets, each with a separate price. Therefore all
functions here take columns, with one row for each budget, and search all prices at once.

**Method.** Newton's method in coordinates in which S is nearly linear (the *step*), inside a
bracket that every evaluation shrinks: if a step leaves the bracket, and in every eighth round, the
bracket is halved instead, so that no shape of S can delay the search.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Self, TypeAlias

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.policy import CrawlPlan
from freshet.scheduler.sources import Rows

#: Relative tolerance of a spending. Sums of millions of rates are accurate to 1e-14, so it is
#: always reached unless rates cancel.
TOLERANCE = 1e-13
#: Prices within this factor have at most a few floats between them.
NEIGHBOUR = 1 + 2.0**-49

_ROUNDS = 1000
_HALVED_EVERY = 8
#: Factor by which a price is changed while only one end of its bracket is known.
_STRIDE = 16.0
#: Maximum factor of a step: if nearly all rates are at their bounds, a nearly flat tangent points
#: beyond the range of numbers.
_LEAP = 1e6


@dataclass(frozen=True, slots=True)
class PricedSpending:
    """Crawls per day spent at some prices, one row for each budget.

    Attributes:
        price: λ (H,), cost saved per crawl, above 0.
        total: S(λ) (H,), crawls per day.
        slope: −dS/d ln λ (H,), crawls per day, at least 0.
    """

    price: Floats
    total: Floats
    slope: Floats


#: From the spending now, the previous one (None in the first round) and the budgets to the next
#: prices. A result outside the bracket is ignored.
Step: TypeAlias = Callable[[PricedSpending, PricedSpending | None, Floats], Floats]


def clearing_prices(
    spend: Callable[[Floats], PricedSpending], budget: Floats, start: Floats, step: Step
) -> PricedSpending:
    """Return the spending at the prices that make it ``budget``, to :data:`TOLERANCE`.

    Args:
        spend: evaluates S and its slope; its last call is at the returned prices.
        budget: R (H,), above 0; some price above 0 must spend it.
        start: first prices (H,), above 0.
        step: :func:`smooth_step` or :func:`root_step`.

    Rates that are the difference of close numbers may miss the tolerance at every floating-point
    price. Then the result is the highest price found that spends at least the budget;
    :data:`NEIGHBOUR` times this price spends less.

    Raises:
        ValueError: if a price, or the spending at it, is out of the range of floating-point
            numbers, because products of importances or change rates are too large or too small.

    >>> halved = lambda price: PricedSpending(price, 8 / price, 8 / price)  # S = 8/λ
    >>> clearing_prices(halved, np.array([2.0]), np.array([1.0]), smooth_step).price.tolist()
    [4.0]
    """
    low, high = np.zeros_like(budget), np.full_like(budget, np.inf)
    if not _inside(start, low, high).all():
        raise out_of_range()
    before, now = None, spend(start)
    for count in range(1, _ROUNDS):
        gap = _gap(now, budget)
        settled = np.abs(gap) <= TOLERANCE * budget
        if settled.all():
            return now
        low = np.where(gap > 0, np.maximum(low, now.price), low)
        high = np.where(gap < 0, np.minimum(high, now.price), high)
        halved = _between(low, high, now.price)
        following = halved
        if count % _HALVED_EVERY:
            with np.errstate(all="ignore"):
                wanted = step(now, before, budget)
                wanted = np.clip(wanted, now.price / _LEAP, now.price * _LEAP)
            following = np.where(_inside(wanted, low, high), wanted, halved)
        stays = settled | ~_inside(following, low, high)
        if stays.all():
            if (~settled & (low == 0)).any():
                raise out_of_range()
            return spend(np.where(settled, now.price, low))
        before, now = now, spend(np.where(stays, now.price, following))
    raise out_of_range()


def smooth_step(now: PricedSpending, before: PricedSpending | None, budget: Floats) -> Floats:
    """Step in y = ln S, for spendings that are nearly powers of the price.

    In the first round Newton's line, afterwards the cubic with the values and slopes of both
    rounds. Its error is of the order of the square of both errors' product, so that three rounds
    replace four of Newton's method.
    """
    y = np.log(budget / now.total)
    tangent = -now.total / now.slope
    newton: Floats = now.price * np.exp(tangent * y)
    if before is None:
        return newton
    # x = tangent·y + y²(a + by) through (0, 0) and (y0, x0), with both tangents.
    x0, y0 = np.log(before.price / now.price), np.log(before.total / now.total)
    value = (x0 - tangent * y0) / y0**2
    bend = (-before.total / before.slope - tangent) / y0
    curve = 3 * value - bend + (bend - 2 * value) * y / y0
    cubic = now.price * np.exp(tangent * y + y**2 * curve)
    return np.where(np.abs(y) < np.abs(y0), cubic, newton)


def root_step(now: PricedSpending, _before: PricedSpending | None, budget: Floats) -> Floats:
    """Step in λ^{−1/2} by Newton's line, for spendings that are piecewise linear in it.

    If S is convex in λ^{−1/2}, all steps after the first approach the solution from one side: the
    last kink is found in finitely many steps.
    """
    following: Floats = now.price / (1 + (budget - now.total) / (2 * now.slope)) ** 2
    return following


def out_of_range() -> ValueError:
    """Return the error for products or quotients beyond the floating-point numbers."""
    return ValueError(
        "importance, change_rate: some are too large or too small, compared with each other, "
        "the budget or the capacities; values from 1e-12 to 1e12 are always accepted"
    )


def _gap(now: PricedSpending, budget: Floats) -> Floats:
    gap = now.total - budget
    if not np.isfinite(gap).all():
        raise out_of_range()
    return gap


def _inside(price: Floats, low: Floats, high: Floats) -> Bools:
    inside: Bools = (low < price) & (price < high)
    return inside


def _between(low: Floats, high: Floats, price: Floats) -> Floats:
    """Return the bracket's geometric middle, or a stride from ``price`` if an end is missing."""
    with np.errstate(invalid="ignore"):
        middle = np.sqrt(low) * np.sqrt(high)
    one_sided = np.where(low > 0, price * _STRIDE, price / _STRIDE)
    return np.where((low > 0) & (high < np.inf), middle, one_sided)


# -- allocation --
#
#     minimise Σ_w J_w(ρ_w)   subject to   Σ_w ρ_w ≤ R,   Σ_{w in host h} ρ_w ≤ cap_h for each h
#
# with each J_w convex and decreasing. By the Karush–Kuhn–Tucker conditions every host h has a price
# λ_h at which its sources choose their best rates ρ_w(λ_h) independently:
#
#     λ_h = λ   where the capacity does not bind,
#     λ_h > λ   where it does: the price that makes Σ_{w in h} ρ_w(λ_h) = cap_h,
#     λ = 0     where the budget does not bind, and some of it is left over.
#
# **Method.** A host spends min(cap_h, S_h(λ)) at the common price λ, S_h(λ) = Σ_{w in h} ρ_w(λ).
# The sum of these minima decreases with λ: one search finds λ and the full hosts, a second one all
# prices of full hosts at once, in passes over their sources only. A pass is O(n + H); three or four
# are needed without capacities and about a dozen with them.
#
# **Between two floats.** A rate that is the difference of close numbers may jump from one price to
# the next, so that neither spends the budget. A mixture of the rates at both does.
#
# Reference: Kolobov, Peres, Lubetzky, Horvitz, "Optimal Freshness Crawl under Politeness
# Constraints", SIGIR 2019, for the structure with hosts. Differs from it in: any convex costs; the
# hosts' prices are not searched inside the search for λ.


@dataclass(frozen=True, slots=True)
class Demand(ABC):
    """The crawl rates ρ_w(λ) that each of n sources demands at a price; they decrease with λ.

    Attributes:
        importance: μ (n,).
        change_rate: Δ (n,), changes per day.
    """

    importance: Floats
    change_rate: Floats

    @property
    def step(self) -> Step:
        """Return the step, in coordinates in which the spending is nearly linear."""
        return smooth_step

    def __len__(self) -> int:
        return len(self.importance)

    @property
    def on_signals(self) -> Bools:
        """Return True (n,) for the sources that are crawled on their signals."""
        return np.zeros(len(self), np.bool_)

    def probabilities(self, rates: Floats) -> Floats:
        """Return p (n,), the share of notified changes that these rates crawl, else 1."""
        return np.ones(len(self))

    @property
    def active(self) -> Bools:
        """Return True (n,) for the sources that are worth a crawl."""
        active: Bools = (self.importance > 0) & (self.change_rate > 0)
        return active

    @abstractmethod
    def rates_at(self, price: float | Floats, rates: Floats, slopes: Floats) -> None:
        """Write ρ(λ) and −dρ/d ln λ, both (n,); ``price`` is λ, one for all or (n,)."""

    def spending_at(self, price: float, rates: Floats) -> tuple[float, float]:
        """Return Σρ(λ) and its −d/d ln λ; write ρ(λ) (n,)."""
        slopes = np.empty(len(self))
        self.rates_at(price, rates, slopes)
        return float(rates.sum()), float(slopes.sum())

    def limits(self) -> Floats:
        """Return the rates at price 0 (n,); inf for a source without a limit."""
        return np.where(self.active, np.inf, 0.0)

    def is_limited(self) -> bool:
        """Return whether all limits are finite."""
        return not self.active.any()

    @abstractmethod
    def guess(self, budget: Floats, host: Rows | None) -> Floats:
        """Return first prices (H,) for the hosts' budgets (H,); without hosts, for one budget."""

    def take(self, rows: Rows | slice) -> Self:
        """Return the demand of these sources."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(
            self,
            **{
                name: np.ascontiguousarray(column[rows])
                for name, column in columns.items()
                if isinstance(column, np.ndarray)
            },
        )


@dataclass(frozen=True, slots=True)
class Hosts:
    """Sources that share capacities: host codes (n,), and crawls per day (H,), inf: no limit."""

    code: Rows
    capacity: Floats

    def sums(self, values: Floats) -> Floats:
        """Return the sums (H,) of ``values`` (n,) over each host's sources."""
        return np.bincount(self.code, values, minlength=len(self.capacity)).astype(
            np.float64, copy=False
        )

    def among(self, some: Bools) -> tuple[Rows, Hosts]:
        """Return the rows of the sources of some hosts (H,), and these hosts, renumbered."""
        rows = np.flatnonzero(some[self.code])
        return rows, Hosts((np.cumsum(some) - 1)[self.code[rows]], self.capacity[some])


# Overflow gives a spending that is not finite, which is refused.
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def allocate(
    demand: Demand, budget: float, hosts: Hosts | None = None, price: float | None = None
) -> CrawlPlan:
    """Return the optimal plan for ``budget`` (R, crawls per day); ``price`` is a first guess of λ.

    Without ``hosts`` there is one, which has no limit. Budget and capacities are respected to
    1e-13, relative. The result depends on the guess only by rounding.

    Raises:
        ValueError: if numbers are out of the range of the computation.
    """
    start = None if price is None else np.array([price])
    if hosts is None or np.isinf(hosts.capacity).all():
        rates, common, left_over = _without_capacities(demand, budget, start)
        host_price = np.full(1 if hosts is None else len(hosts.capacity), common)
    else:
        rates, common, left_over, host_price = _within_capacities(demand, budget, hosts, start)
    return CrawlPlan(
        rates,
        demand.probabilities(rates),
        demand.on_signals,
        budget,
        left_over=left_over,
        price=common,
        host_price=host_price,
    )


def _without_capacities(
    demand: Demand, budget: float, start: Floats | None
) -> tuple[Floats, float, float]:
    """Return the rates, λ, and the left-over budget."""
    if demand.is_limited():
        limits = demand.limits()
        usable = float(limits.sum())
        if usable <= budget:
            return limits, 0.0, budget - usable
    rates = np.empty(len(demand))

    def spend(price: Floats) -> PricedSpending:
        total, slope = demand.spending_at(float(price[0]), rates)
        return PricedSpending(price, np.array([total]), np.array([slope]))

    whole = np.array([budget])
    start = demand.guess(whole, None) if start is None else start
    found = clearing_prices(spend, whole, start, demand.step)
    price = float(found.price[0])
    if _overspent(found.total, whole).any():
        fewer = np.empty_like(rates)
        dearer, _ = demand.spending_at(price * NEIGHBOUR, fewer)
        _mix(rates, fewer, _share(found.total, np.array([dearer]), whole))
    return rates, price, 0.0


def _within_capacities(
    demand: Demand, budget: float, hosts: Hosts, start: Floats | None
) -> tuple[Floats, float, float, Floats]:
    """Return the rates, λ, the left-over budget, and the hosts' prices."""
    limits = demand.limits()
    usable = hosts.sums(limits)
    left_over = budget - float(np.minimum(usable, hosts.capacity).sum())
    if left_over >= 0:
        rates, price, to_spend = limits, 0.0, np.minimum(usable, hosts.capacity)
        full = usable > hosts.capacity
    else:
        rates, price, to_spend, full = _common_price(demand, budget, hosts, start)
    host_price = np.full(len(hosts.capacity), price)
    if full.any():
        _fill(demand, Hosts(hosts.code, to_spend), full, rates, host_price)
    return rates, price, max(left_over, 0.0), host_price


def _common_price(
    demand: Demand, budget: float, hosts: Hosts, start: Floats | None
) -> tuple[Floats, float, Floats, Bools]:
    """Return rates, λ, each host's spending, and a mask of the full hosts.

    The rates of sources on full hosts are not final.
    """
    wanted, slopes = np.empty(len(demand)), np.empty(len(demand))

    def spend(price: Floats) -> PricedSpending:
        demand.rates_at(float(price[0]), wanted, slopes)
        totals = hosts.sums(wanted)
        full = totals > hosts.capacity
        total = np.minimum(totals, hosts.capacity).sum()
        slope = np.where(full, 0.0, hosts.sums(slopes)).sum()
        return PricedSpending(price, np.array([total]), np.array([slope]))

    whole = np.array([budget])
    start = demand.guess(whole, None) if start is None else start
    found = clearing_prices(spend, whole, start, demand.step)
    rates, totals = wanted, hosts.sums(wanted)
    full, to_spend = totals > hosts.capacity, np.minimum(totals, hosts.capacity)
    if _overspent(found.total, whole).any():
        rates = wanted.copy()
        share = _share(found.total, spend(found.price * NEIGHBOUR).total, whole)
        _mix(rates, wanted, share)
        _mix(to_spend, np.minimum(hosts.sums(wanted), hosts.capacity), share)
    return rates, float(found.price[0]), to_spend, full


def _fill(demand: Demand, hosts: Hosts, full: Bools, rates: Floats, host_price: Floats) -> None:
    """Divide the capacity of full hosts among their sources; write rates and prices."""
    rows, theirs = hosts.among(full)
    wanted = _HostDemand(demand.take(rows), theirs)
    start = wanted.demand.guess(theirs.capacity, theirs.code)
    found = clearing_prices(wanted.spending_at, theirs.capacity, start, demand.step)
    rates[rows] = wanted.rates
    overspent = _overspent(found.total, theirs.capacity)
    if overspent.any():
        dearer = wanted.spending_at(np.where(overspent, found.price * NEIGHBOUR, found.price))
        more = rates[rows]
        share = _share(found.total, dearer.total, theirs.capacity)
        _mix(more, wanted.rates, share[theirs.code])
        rates[rows] = more
    host_price[full] = found.price


class _HostDemand:
    """The demand of hosts' sources, with a separate price for each host.

    Only hosts with a new price since the last call are computed: after a few rounds, most prices
    are final.
    """

    def __init__(self, demand: Demand, hosts: Hosts) -> None:
        self.demand = demand
        self.rates = np.empty(len(demand))
        self._hosts = hosts
        self._last = PricedSpending(*np.full((3, len(hosts.capacity)), np.nan))

    def spending_at(self, price: Floats) -> PricedSpending:
        """Return S_h(λ_h) of each host; write ``rates``."""
        moved = price != self._last.price
        rows = np.flatnonzero(moved[self._hosts.code])
        demand = self.demand.take(rows)
        theirs = Hosts(self._hosts.code[rows], self._hosts.capacity)
        rates, slopes = np.empty(len(rows)), np.empty(len(rows))
        demand.rates_at(price[theirs.code], rates, slopes)
        self.rates[rows] = rates
        total = np.where(moved, theirs.sums(rates), self._last.total)
        slope = np.where(moved, theirs.sums(slopes), self._last.slope)
        self._last = PricedSpending(price, total, slope)
        return self._last


def _overspent(total: Floats, budget: Floats) -> Bools:
    overspent: Bools = total > budget * (1 + TOLERANCE)
    return overspent


def _share(total: Floats, dearer: Floats, budget: Floats) -> Floats:
    """Return the share of the rates that sum to ``total`` in the mixture that spends ``budget``.

    The other rates sum to ``dearer``. Where no mixture is needed, the share is 1.
    """
    share: Floats = np.where(_overspent(total, budget), (budget - dearer) / (total - dearer), 1.0)
    if not ((share >= np.finfo(np.float64).tiny) & (share <= 1)).all():
        raise out_of_range()
    return share


def _mix(rates: Floats, dearer: Floats, share: Floats) -> None:
    """Turn ``rates`` into the mixture."""
    rates -= dearer
    rates *= share
    rates += dearer


# -- capacities --
#
# Crawl rates in proportion to weights, within the capacities of hosts.
#
# For policies that have a rule instead of an objective; policies that minimise a cost respect
# capacities by prices (:mod:`freshet.scheduler.solve.budget`).


# Overflow gives a factor that is refused.
@np.errstate(over="ignore", invalid="ignore")
def in_proportion(
    weight: Floats, budget: float, host: Rows, host_capacity: Floats
) -> tuple[Floats, float]:
    """Return rates ρ_w = θ_h weight_w that spend ``budget``, and the unspent rest.

    All hosts have the same θ, except hosts that would exceed their capacity: they spend the
    capacity, and the rest is divided among the others, in proportion (water-filling),

        Σ_h min(cap_h, θ B_h) = R,   B_h = Σ_{w in h} weight_w.

    Args:
        weight: (n,), at least 0.
        budget: R, crawls per day.
        host: (n,), codes 0 to H − 1.
        host_capacity: cap (H,), crawls per day, above 0; inf: no limit.

    Method: hosts in the order of cap_h/B_h, in which they fill up, O(n + H log H); exact except for
    rounding. If all are full, or all weights are 0, the rest is left over.

    Raises:
        ValueError: if weights are out of the range of the computation.

    >>> full, free = 1.0, np.inf
    >>> host, capacity = np.array([0, 1, 1]), np.array([full, free])
    >>> rates, left_over = in_proportion(np.array([3.0, 1.0, 2.0]), 4.0, host, capacity)
    >>> rates.tolist(), left_over  # in proportion alone host 0 would get 2
    ([1.0, 1.0, 2.0], 0.0)
    """
    demand = np.bincount(host, weight, minlength=len(host_capacity))
    used = np.flatnonzero(demand)
    fills_at = host_capacity[used] / demand[used]
    order = np.argsort(fills_at, kind="stable")
    used, fills_at = used[order], fills_at[order]
    full = np.cumsum(host_capacity[used])
    # Hosts that are not full yet, summed from the end: a difference would lose its digits.
    others = np.cumsum(demand[used][::-1])[::-1]
    level = (budget - np.concatenate(([0.0], full[:-1]))) / others if len(used) else np.empty(0)
    reached = np.flatnonzero(level <= fills_at)
    if not len(reached):
        factor, left_over = fills_at, budget - float(full[-1:].sum())
    else:
        factor, left_over = np.minimum(fills_at, level[reached[0]]), 0.0
    if not (np.isfinite(factor) & (factor >= np.finfo(np.float64).tiny)).all():
        raise out_of_range()
    by_host = np.zeros(len(host_capacity))
    by_host[used] = factor
    return weight * by_host[host], left_over
