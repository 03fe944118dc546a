"""The optimal plan for crawling at regular times: an interval for each source.

    minimise    Σ_{w in W⁻} μ [Ein(ΔT) − 1 + (1 − e^{−ΔT})/(ΔT)] + Σ_{w in Wᵒ} μ (H(k) − 1)
    subject to  Σ_{W⁻} 1/T + Σ_{Wᵒ} Δ/k = R,   T > 0,   k = 1, 2, 3, …,

and, where hosts have capacities, the same sum over each host's sources is at most cap_h. The costs
are from :mod:`freshet.scheduler.costs`: sources with incomplete observations (W⁻) are crawled every
T days, sources with complete observations (Wᵒ) at every k-th change.

    μ    importance             any              (n,)
    Δ    change_rate            changes per day  (n,)
    R    budget                 crawls per day
    λ    price, plan.price      cost per crawl
    T    1/plan.crawl_rate          days             (n,)
    k    1/plan.crawl_probability   changes          (n,)

**Solution.** At a price λ per crawl each source chooses independently: in W⁻ the T at which its
index reaches λ (:mod:`freshet.scheduler.policies.greedy_index`),

    W(T) = λ   ⇔   x − 1 + e^{−x} = λΔ/μ,   x = ΔT = 1 + c + W₀(−e^{−(1+c)}),   c = λΔ/μ,

in Wᵒ k = ⌈λΔ/μ⌉. The price is the one that spends R. It is also the long-run price of the greedy
index policy: the two are the same optimum, as a rule and as a plan. A plan can show a user that a
page is due every 3.2 days.

**Whole numbers.** The rates Δ/k are steps, so in general no price spends R exactly. The k are
chosen first, at the price of all sources together (:mod:`freshet.scheduler.solve.demand`); the
sources in W⁻ share the rest of R, to 1e-13. If W⁻ is empty, less than one source's next step is
left over; more if the capacities, or k = 1, bind everywhere.

Method and cost: :mod:`freshet.scheduler.solve.budget`, about 0.2 µs a source and pass; a million
sources take about 2 s, more with capacities. Numerical form: :mod:`freshet.scheduler.solve.demand`;
T has a relative error of 1e-13 at its price. Edge cases: a source with μ = 0 or Δ = 0 is not
crawled: its rate is 0, its interval inf.

Reference: ours. The cost is from Kolobov et al., NeurIPS 2019, Problem 3. Differs from the paper
in: crawls are at regular times instead of random ones, which at the same rates reduces the cost by
one half (frequent crawls) to a fixed 1 − γ (rare crawls).
"""

from dataclasses import dataclass

import numpy as np

from freshet.scheduler import arrays
from freshet.scheduler.policy import CrawlPlan
from freshet.scheduler.solve.budget import Hosts, allocate
from freshet.scheduler.solve.demand import IntervalDemand, whole_changes
from freshet.scheduler.sources import SourceTable

#: A sum of rates may miss the budget by rounding only.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class OptimalIntervals:
    """The optimum of the harmonic cost over crawling at regular times."""

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        """Return the plan, ``crawling="periodic"``; its ``price`` is λ.

        A source of importance e that changes once a day, alone, is crawled daily at the price
        e · (1 − 1 + e⁻¹) = 1.

        >>> plan = OptimalIntervals().rates(SourceTable.of([np.e], [1.0]), 1.0)
        >>> plan.crawl_rate.round(9).tolist(), round(plan.price, 9)
        ([1.0], 1.0)
        """
        budget = arrays.budget("budget", budget)
        hosts = Hosts(table.host, table.host_capacity)
        every, price, host_price = whole_changes(table, budget, hosts)
        on_signals = table.complete_observations
        demand = IntervalDemand(table.importance, table.change_rate)
        rates = np.where(on_signals & demand.active, table.change_rate / every, 0.0)
        clock = np.flatnonzero(~on_signals & demand.active)
        if len(clock):
            left = Hosts(table.host[clock], table.host_capacity - hosts.sums(rates))
            shared = allocate(demand.take(clock), budget - float(rates.sum()), left)
            rates[clock] = shared.crawl_rate
            price = shared.price or 0.0
            host_price[left.code] = np.asarray(shared.host_price)[left.code]
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
