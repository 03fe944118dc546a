"""The division of a budget among sources that know what they want at a price.

    minimise Σ_w J_w(ρ_w)   subject to   Σ_w ρ_w ≤ R,   Σ_{w in host h} ρ_w ≤ cap_h for each h

with each J_w convex and falling. By the Karush–Kuhn–Tucker conditions every host h has a price
λ_h at which its sources choose their best rates ρ_w(λ_h) on their own:

    λ_h = λ   where the capacity does not bind,
    λ_h > λ   where it does: the price that makes Σ_{w in h} ρ_w(λ_h) = cap_h,
    λ = 0     where the budget does not bind, and some of it is left over.

**Method.** A host spends min(cap_h, S_h(λ)) at the common price λ, S_h(λ) = Σ_{w in h} ρ_w(λ). The
sum of these minima falls while λ rises, so one search (:mod:`scheduler.budgeting.prices`) finds λ;
with it stands which hosts are full. A second search finds all their prices at once, in passes over
their sources only. Each evaluation is one pass over the sources, O(n + H); there are three or four
without capacities and about a dozen with them.

**Between two floats.** A rate that is the difference of close numbers jumps from one price to the
next, and so the budget may be spent at neither. A mixture of the rates at both spends it: only
what jumps differs between them, and it is right to rounding of the numbers it is a difference of.

Reference: Kolobov, Peres, Lubetzky, Horvitz, "Optimal Freshness Crawl under Politeness
Constraints", SIGIR 2019, for the structure with hosts. Differs from it in: it works for any
convex costs, and the hosts' prices are not searched inside the search for λ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from freshet.scheduler.arguments import Bools, Floats
from freshet.scheduler.budgeting.prices import (
    NEIGHBOUR,
    TOLERANCE,
    Spending,
    Step,
    clearing_prices,
    out_of_range,
)
from freshet.scheduler.sources import Rows


class Demand(Protocol):
    """What each of n sources wants to be crawled at a price: ρ_w(λ), falling in λ."""

    @property
    def step(self) -> Step:
        """The coordinates in which the spending is nearly a straight line."""
        ...

    def __len__(self) -> int: ...

    def rates_at(self, price: float | Floats, rates: Floats, slopes: Floats) -> None:
        """Write ρ(λ) and −dρ/d ln λ, both (n,); ``price`` is λ, one for all or (n,)."""
        ...

    def spending_at(self, price: float, rates: Floats) -> tuple[float, float]:
        """Σρ(λ) and its −d/d ln λ; writes ρ(λ) (n,), too."""
        ...

    def limits(self) -> Floats:
        """(n,), the rates at price 0: what a source can use; inf where that has no limit."""
        ...

    def is_limited(self) -> bool:
        """Whether all limits are finite."""
        ...

    def guess(self, budget: Floats, host: Rows | None) -> Floats:
        """First prices (H,) for the budgets (H,) of hosts; without hosts for one budget."""
        ...

    def take(self, rows: Rows) -> Self:
        """The demand of these sources."""
        ...


@dataclass(frozen=True, slots=True)
class Hosts:
    """Which sources share a capacity: codes (n,), and crawls per day (H,), inf: no limit."""

    code: Rows
    capacity: Floats

    def sums(self, values: Floats) -> Floats:
        """(H,), the sums over each host's sources of ``values`` (n,)."""
        return np.bincount(self.code, values, minlength=len(self.capacity)).astype(
            np.float64, copy=False
        )


@dataclass(frozen=True, slots=True)
class Allocation:
    """Rates (n,), the common price λ, the hosts' prices (H,), and what is left of the budget."""

    rates: Floats
    price: float
    host_price: Floats
    left_over: float


# What leaves the range of numbers ends as a spending that is not finite, which is refused.
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def allocate(
    demand: Demand, budget: float, hosts: Hosts | None = None, price: float | None = None
) -> Allocation:
    """The optimum for ``budget`` (R, crawls per day); ``price`` is a first guess of λ.

    Without ``hosts`` there is one, which has no limit.
    Budget and capacities are kept to 1e-13, relative. The result does not depend on the guess
    but for rounding.

    Raises:
        ValueError: if numbers are too large or too small to be computed with.
    """
    start = None if price is None else np.array([price])
    if hosts is None:
        return _without_capacities(demand, budget, 1, start)
    if np.isinf(hosts.capacity).all():
        return _without_capacities(demand, budget, len(hosts.capacity), start)
    return _within_capacities(demand, budget, hosts, start)


def _without_capacities(
    demand: Demand, budget: float, hosts: int, start: Floats | None
) -> Allocation:
    if demand.is_limited():
        limits = demand.limits()
        usable = float(limits.sum())
        if usable <= budget:
            return Allocation(limits, 0.0, np.zeros(hosts), budget - usable)
    rates = np.empty(len(demand))

    def spend(price: Floats) -> Spending:
        total, slope = demand.spending_at(float(price[0]), rates)
        return Spending(price, np.array([total]), np.array([slope]))

    whole = np.array([budget])
    start = demand.guess(whole, None) if start is None else start
    found = clearing_prices(spend, whole, start, demand.step)
    price = float(found.price[0])
    if _overspent(found.total, whole).any():
        fewer = np.empty_like(rates)
        dearer, _ = demand.spending_at(price * NEIGHBOUR, fewer)
        _mix(rates, fewer, _share(found.total, np.array([dearer]), whole))
    return Allocation(rates, price, np.full(hosts, price), 0.0)


def _within_capacities(
    demand: Demand, budget: float, hosts: Hosts, start: Floats | None
) -> Allocation:
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
    return Allocation(rates, price, host_price, max(left_over, 0.0))


def _common_price(
    demand: Demand, budget: float, hosts: Hosts, start: Floats | None
) -> tuple[Floats, float, Floats, Bools]:
    """What the sources want at λ, λ, what each host is to spend, and which hosts are full.

    The rates of sources of full hosts are not theirs yet.
    """
    wanted, slopes = np.empty(len(demand)), np.empty(len(demand))

    def spend(price: Floats) -> Spending:
        demand.rates_at(float(price[0]), wanted, slopes)
        totals = hosts.sums(wanted)
        full = totals > hosts.capacity
        total = np.minimum(totals, hosts.capacity).sum()
        slope = np.where(full, 0.0, hosts.sums(slopes)).sum()
        return Spending(price, np.array([total]), np.array([slope]))

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
    """Let the sources of full hosts spend their host's capacity; into rates and prices."""
    rows = np.flatnonzero(full[hosts.code])
    number = np.cumsum(full) - 1
    theirs = Hosts(number[hosts.code[rows]], hosts.capacity[full])
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
    """What the sources of hosts want, each host at a price of its own.

    Only hosts whose price has moved since the last call are computed: after a few rounds most
    have found theirs.
    """

    def __init__(self, demand: Demand, hosts: Hosts) -> None:
        self.demand = demand
        self.rates = np.empty(len(demand))
        self._hosts = hosts
        self._last = Spending(*np.full((3, len(hosts.capacity)), np.nan))

    def spending_at(self, price: Floats) -> Spending:
        """S_h(λ_h) of each host; the rates stand in ``rates``."""
        moved = price != self._last.price
        rows = np.flatnonzero(moved[self._hosts.code])
        demand = self.demand.take(rows)
        theirs = Hosts(self._hosts.code[rows], self._hosts.capacity)
        rates, slopes = np.empty(len(rows)), np.empty(len(rows))
        demand.rates_at(price[theirs.code], rates, slopes)
        self.rates[rows] = rates
        total = np.where(moved, theirs.sums(rates), self._last.total)
        slope = np.where(moved, theirs.sums(slopes), self._last.slope)
        self._last = Spending(price, total, slope)
        return self._last


def _overspent(total: Floats, budget: Floats) -> Bools:
    overspent: Bools = total > budget * (1 + TOLERANCE)
    return overspent


def _share(total: Floats, dearer: Floats, budget: Floats) -> Floats:
    """The share of the rates that sum to ``total`` in the mixture that spends ``budget``.

    The other rates sum to ``dearer``. Where no mixture is needed the share is 1.
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
