"""LambdaCrawl: the crawl rates that minimise the harmonic cost under a budget, exactly.

**Problem 3.** Sources with changes that only a crawl reveals (incomplete observations, W⁻) get a
Poisson rate ρ. For sources that announce every change (complete observations, Wᵒ) a share p of the
notified changes is crawled at once, at a rate r = pΔ:

    minimise    J_h = Σ_{w in W⁻} μ ln((Δ + ρ)/ρ) − Σ_{w in Wᵒ} μ ln p
    subject to  Σ_{W⁻} ρ + Σ_{Wᵒ} r = R,   ρ > 0,   0 < p ≤ 1,

and, where hosts have capacities, Σ_{w in h} (ρ or r) ≤ cap_h for each host h.

    symbol  argument               unit             shape
    μ       importance             any              (n,), at least 0
    Δ       change_rate            changes per day  (n,), at least 0
    R       bandwidth              crawls per day   above 0
    Wᵒ      complete_observations  truth            (n,); left out: no source
    h       host                   code             (n,); left out: one host
    cap     host_capacity          crawls per day   (H,), by code, above 0; left out: no limits
    λ       price                  cost per crawl   above 0; first guess, left out: found

**Solution.** One price λ holds for both classes (:mod:`freshet.scheduler.solve.budget` has the
theory). If one more crawl per day saves λ, −∂J_h/∂ρ = λ, then

    W⁻:  μΔ/(ρ(Δ + ρ)) = λ,  so  ρ(λ) = (−Δ + √(Δ² + 4μΔ/λ))/2      (eq. 5)
    Wᵒ:  μ/r = λ, r ≤ Δ,     so  r(λ) = min(Δ, μ/λ),  p(λ) = r/Δ    (Prop. 5 and its bounds)

and λ is the solution of Σρ(λ) + Σr(λ) = R. With Wᵒ empty this is Algorithm 1. With W⁻ empty it
gives the result of Algorithm 2, which determines in rounds, one set at a time, which p are 1. With
both classes it gives the result of Algorithm 3; the split of R between the classes is the two sums
at λ.

**Method and cost.** Newton's method on ln Σ against ln λ, started at the solution for a regular
sample of the sources: three or four passes, O(n) each; the last one writes the rates. The budget is
spent to 1e-13, relative; each rate has the error of a few roundings at its λ.

**Edge cases.** A source with μ = 0 or Δ = 0 is not crawled: its rate is 0. If the capacities, or Δ
in Wᵒ, bind everywhere, the rest of R is left over and the price is 0.

**Numerical form.** ρ = 2(μΔ/λ)/(Δ + √(Δ² + 4μΔ/λ)): eq. 5 is a difference of close numbers if ρ is
small compared with Δ, and so loses all digits for the sources that are crawled the least.

Reference: Kolobov, Peres, Lu, Horvitz, "Staying up to Date with Online Content Changes Using
Reinforcement Learning for Scheduling", NeurIPS 2019, Problems 1–3, Prop. 2, 5 and 6, Algorithms
1–3. Differs from the paper in: one multiplier instead of the search over splits; Newton's
method instead of bisection; μ and Δ may be 0; capacities of hosts.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.policy import Crawling, CrawlPlan
from freshet.scheduler.solve.budget import Hosts, allocate, out_of_range
from freshet.scheduler.solve.demand import HarmonicDemand
from freshet.scheduler.sources import SourceTable, hosts_of


@dataclass(frozen=True, slots=True)
class LambdaCrawl:
    """The optimum of the harmonic cost.

    Attributes:
        crawling: ``"poisson"``, as in the paper, for which the rates are the optimum, or
            ``"periodic"``, the same rates evenly spaced, which costs less.
    """

    crawling: Crawling = "poisson"

    def __post_init__(self) -> None:
        arrays.one_of("crawling", self.crawling, ("poisson", "periodic"))

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        """Return :func:`solve` for a table."""
        return _solved(table, table.change_rate, budget, self.crawling)


def _solved(
    table: SourceTable, change_rate: Floats, budget: float, crawling: Crawling
) -> CrawlPlan:
    plan = solve(
        table.importance,
        change_rate,
        arrays.budget("budget", budget),
        complete_observations=table.complete_observations,
        host=table.host,
        host_capacity=table.host_capacity,
    )
    return replace(plan, crawling=crawling)


def solve(
    importance: ArrayLike,
    change_rate: ArrayLike,
    bandwidth: float,
    *,
    complete_observations: ArrayLike | None = None,
    host: ArrayLike | None = None,
    host_capacity: ArrayLike | None = None,
    price: float | None = None,
) -> CrawlPlan:
    """Return the optimal plan; the module describes arguments and method.

    ``price`` is the start of the search for λ, such as the price of the last plan.

    Raises:
        ValueError: naming the argument, the row and the accepted values.

    Two sources of equal importance, one crawled by the clock, one on its signals, at a price of 1:
    ρ(1 + ρ) = 6·1/1, so ρ = 2, and r = min(9, 6/1) = 6.

    >>> plan = solve([6.0, 6.0], [1.0, 9.0], 8.0, complete_observations=[False, True])
    >>> plan.crawl_rate.round(9).tolist(), plan.crawl_probability.round(9).tolist()
    ([2.0, 6.0], [1.0, 0.666666667])
    >>> round(plan.price, 9), plan.left_over
    (1.0, 0.0)
    """
    mu = arrays.non_negative("importance", importance)
    n = len(mu)
    delta = arrays.non_negative("change_rate", change_rate, n)
    complete = (
        np.zeros(n, np.bool_)
        if complete_observations is None
        else arrays.flags("complete_observations", complete_observations, n)
    )
    hosts = Hosts(*hosts_of(host, host_capacity, n))
    return allocate(
        HarmonicDemand(mu, delta, complete),
        arrays.budget("bandwidth", bandwidth),
        hosts,
        None if price is None else arrays.budget("price", price),
    )


# -- lambda crawl approx --
#
# LambdaCrawlApprox: LambdaCrawl without the change rates of each source.
#
# **Prop. 9.** If μ/Δ is the same for all sources with incomplete observations (W⁻), their optimal
# rates under the harmonic cost do not depend on change rates at all:
#
#     ρ = R⁻ μ/Σμ,   R⁻ the part of the budget R for W⁻, the sum over W⁻.
#
# This policy uses these rates even if the condition does not hold: it costs more than LambdaCrawl
# (on the surrogate population at R = 0.2 n about 1.44 times as much), but there is less to learn.
#
# **The split of R.** Sources with complete observations (Wᵒ) are crawled as by LambdaCrawl, r(λ) =
# min(Δ, μ/λ). For the rest the policy follows the proposition: change rates in proportion to
# importance that have the same sum,
#
#     Δ̂ = μ ΣΔ/Σμ   for each source in W⁻,
#
# and solves Problem 3 with these. All ρ are then in proportion to μ, one price λ splits the budget,
# and the policy only needs the total change rate ΣΔ of W⁻. Capacities of hosts, the left-over
# budget, and sources that are not worth a crawl are handled by that solution.
#
# The plan has no price: the saving of one more crawl depends on the change rates. Symbols, method,
# cost and edge cases are LambdaCrawl's; exact if Prop. 9 holds.
#
# Reference: Kolobov et al., NeurIPS 2019, Prop. 9 and section 7 (LCA). Differs from the paper in:
# the split, which the paper does not specify. The best split (found by search, with all change
# rates) would cost about 1.41 of LambdaCrawl there.


@dataclass(frozen=True, slots=True)
class LambdaCrawlApprox(LambdaCrawl):
    """Rates in proportion to importance, with the optimum for complete observations.

    >>> table = SourceTable.of([1.0, 3.0], [2.0, 0.1])
    >>> LambdaCrawlApprox().rates(table, 8.0).crawl_rate.round(12).tolist()
    [2.0, 6.0]
    """

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        """Return the plan."""
        mu = arrays.non_negative("importance", table.importance)
        delta = arrays.non_negative("change_rate", table.change_rate, len(mu))
        alike = _in_proportion_to_importance(mu, delta, table.complete_observations)
        plan = _solved(table, alike, budget, self.crawling)
        return replace(plan, price=None, host_price=None)


@np.errstate(over="ignore", invalid="ignore")
def _in_proportion_to_importance(mu: Floats, delta: Floats, complete: Bools) -> Floats:
    """Return Δ for complete observations; for the others Δ̂, or 0 if not worth a crawl."""
    value = ~complete & (mu > 0) & (delta > 0)
    total = mu[value].sum()
    per_importance = delta[value].sum() / total if total else 0.0
    theirs = np.where(value, mu * per_importance, np.where(complete, delta, 0.0))
    if not (np.isfinite(theirs).all() and (theirs[value] > 0).all()):
        raise out_of_range()
    return theirs
