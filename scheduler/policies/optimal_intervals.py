"""The optimal plan for crawling at regular times: an interval for each source.

    minimise    Σ_{w in W⁻} μ [Ein(ΔT) − 1 + (1 − e^{−ΔT})/(ΔT)] + Σ_{w in Wᵒ} μ (H(k) − 1)
    subject to  Σ_{W⁻} 1/T + Σ_{Wᵒ} Δ/k = R,   T > 0,   k = 1, 2, 3, …,

and, where hosts have capacities, the same sum over each host's sources is at most cap_h. The
costs are those of :mod:`freshet.scheduler.costs`: sources of incomplete observations (W⁻) are
crawled every T days, those of complete observations (Wᵒ) at every k-th change.

    μ    importance             any              (n,)
    Δ    change_rate            changes per day  (n,)
    R    budget                 crawls per day
    λ    price, plan.price      cost per crawl
    T    interval_at, 1/plan.crawl_rate   days   (n,)
    k    1/plan.crawl_probability        changes (n,)

**Solution.** At a price λ per crawl each source chooses on its own: of W⁻ the T at which its
index reaches λ (:mod:`freshet.scheduler.policies.greedy_index`),

    W(T) = λ   ⇔   x − 1 + e^{−x} = λΔ/μ,   x = ΔT = 1 + c + W₀(−e^{−(1+c)}),   c = λΔ/μ,

of Wᵒ k = ⌈λΔ/μ⌉. The price is the one that spends R. It is the price at which the greedy index
policy crawls in the long run: the two are the same optimum, once as rule, once as plan. A plan
can tell a user that a page is due every 3.2 days.

**Whole numbers.** The rates Δ/k are steps, so in general no price spends R exactly. The k are
chosen first, at the price of all sources together (:mod:`freshet.scheduler.solve.demand`);
the sources of W⁻ share what is left of R, to 1e-13. Where there are none, less than one source's
next step is left over; where the capacities, or k = 1, bind everywhere, more.

**The bound.** No deterministic policy does better than the relaxed problem, in which R must be
kept on average only and k may be mixed: by duality its cost is at least

    g = Σ_w min [cost + λ_h · rate] − λR − Σ_h (λ_h − λ) cap_h      for any λ_h ≥ λ ≥ 0,

with equality at the optimal prices. :func:`relaxed_bound` is g at the prices of the plan.

Method and cost: :mod:`freshet.scheduler.solve.budget`, about 0.2 µs a source and pass; a million
sources take about 2 s, more with capacities. Numerical form:
:mod:`freshet.scheduler.solve.demand`; T is right to 1e-13, relative, at its price. Edge
cases: a source with μ = 0 or Δ = 0 is not worth a crawl: its rate is 0, its interval inf.

Reference: ours. The cost is that of Kolobov et al., NeurIPS 2019, Problem 3. Differs from the
paper in: crawls are at regular times instead of random ones, which at the same rates costs
between ½ of it and a fixed 1 − γ less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.costs import costs_of
from freshet.scheduler.policy import CrawlPlan
from freshet.scheduler.solve.budget import Allocation, Hosts, allocate
from freshet.scheduler.solve.demand import IntervalDemand, Wishes, changes_at, whole_changes
from freshet.scheduler.sources import Rows, SourceTable

#: A sum of rates may miss the budget by rounding only.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class OptimalIntervals:
    """The optimum of the harmonic cost over crawling at regular times."""

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        """Return the plan, ``crawling="periodic"``; its ``price`` is λ.

        Raises:
            ValueError: if the budget is not a number above 0, or if numbers are too large or too
                small to be computed with.

        A source of importance e that changes once a day, alone, is crawled daily at the price
        e · (1 − 1 + e⁻¹) = 1.

        >>> plan = OptimalIntervals().rates(SourceTable.of([np.e], [1.0]), 1.0)
        >>> plan.crawl_rate.round(9).tolist(), round(plan.price, 9)
        ([1.0], 1.0)
        """
        budget = arrays.budget("budget", budget)
        hosts = Hosts(table.host, table.host_capacity)
        chosen = whole_changes(table, budget, hosts)
        on_signals = table.complete_observations
        rates = np.where(on_signals, _worth_it(table) * table.change_rate / chosen.every, 0.0)
        price, host_price = chosen.price, chosen.host_price
        clock = np.flatnonzero(_worth_it(table) & ~on_signals)
        if len(clock):
            shared = _by_clock(table, clock, budget - float(rates.sum()), hosts.sums(rates))
            rates[clock] = shared.rates
            price = shared.price
            host_price[hosts.code[clock]] = shared.host_price[hosts.code[clock]]
        left_over = budget - float(rates.sum())
        return CrawlPlan(
            crawl_rate=rates,
            crawl_probability=np.divide(
                rates,
                table.change_rate,
                out=np.ones(len(table)),
                where=on_signals & (table.change_rate > 0),
            ),
            on_signals=on_signals,
            bandwidth=budget,
            left_over=left_over if left_over > _ROUNDING * budget else 0.0,
            price=price,
            host_price=np.maximum(host_price, price),
            crawling="periodic",
        )


def interval_at(importance: ArrayLike, change_rate: ArrayLike, price: float) -> Floats:
    """Return the best days T between two crawls (n,) at a price per crawl; inf: no crawl.

    For sources of incomplete observations. ``price`` is that of a plan, or the index at which
    an index policy is seen to crawl.

    Raises:
        ValueError: naming the argument, the row and what is accepted.

    >>> interval_at([np.e, 1.0], [1.0, 0.0], 1.0).round(9).tolist()
    [1.0, inf]
    """
    mu = arrays.non_negative("importance", importance)
    delta = arrays.non_negative("change_rate", change_rate, len(mu))
    price = arrays.budget("price", price)
    active = (mu > 0) & (delta > 0)
    x = changes_at(np.divide(price * delta, mu, out=np.zeros(len(mu)), where=active))
    interval: Floats = np.divide(x, delta, out=np.full(len(mu), np.inf), where=active)
    return interval


def relaxed_bound(table: SourceTable, bandwidth: float) -> float:
    """Return a lower bound of the total harmonic cost of policies at ``bandwidth``.

    Raises:
        ValueError: as :meth:`OptimalIntervals.rates` does.

    Alone, the source of the plan above costs e (Ein(1) − 1 + 1 − e⁻¹) = e · 0.796600 − 1.

    >>> round(relaxed_bound(SourceTable.of([np.e], [1.0]), 1.0), 5)
    1.16538
    """
    plan = OptimalIntervals().rates(table, bandwidth)
    price, host_price = plan.price or 0.0, np.asarray(plan.host_price)
    mine = host_price[table.host]
    rates = Wishes(table).rates(mine)
    costs = costs_of(
        table.importance,
        table.change_rate,
        rates,
        complete_observations=table.complete_observations,
        crawling="periodic",
    )
    full = host_price > price
    of_hosts = (host_price[full] - price) * table.host_capacity[full]
    return float((costs.harmonic + mine * rates).sum() - price * bandwidth - of_hosts.sum())


def _by_clock(table: SourceTable, clock: Rows, budget: float, spent: Floats) -> Allocation:
    """Divide the rest of budget and capacities among sources of incomplete observations."""
    demand = IntervalDemand(table.importance[clock], table.change_rate[clock])
    return allocate(demand, budget, Hosts(table.host[clock], table.host_capacity - spent))


def _worth_it(table: SourceTable) -> Bools:
    worth_it: Bools = (table.importance > 0) & (table.change_rate > 0)
    return worth_it
