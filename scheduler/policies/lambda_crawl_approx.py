"""LambdaCrawlApprox: LambdaCrawl without the change rates of each source.

**Prop. 9.** If μ/Δ is the same for all sources of incomplete observations (W⁻), their optimal
rates under the harmonic cost do not depend on change rates at all:

    ρ = R⁻ μ/Σμ,   R⁻ the part of the budget R that W⁻ gets, the sum over W⁻.

This policy uses these rates whether the condition holds or not: it costs more than LambdaCrawl
(on the surrogate population at R = 0.2 n about 1.44 times as much), but there is less to learn.

**The split of R.** Sources of complete observations (Wᵒ) are crawled as LambdaCrawl does,
r(λ) = min(Δ, μ/λ). For the rest the policy keeps to the proposition: change rates in proportion
to importance that have the same sum,

    Δ̂ = μ ΣΔ/Σμ   for each source in W⁻,

and solves Problem 3 with these. All ρ are then in proportion to μ, one price λ splits the
budget, and the only thing it needs to know of W⁻ is its total change rate ΣΔ. Capacities of
hosts, what is left over, and sources that are not worth a crawl come with that solve.

    symbol  column of the table    unit             shape
    μ       importance             any              (n,)
    Δ       change_rate            changes per day  (n,)
    Wᵒ      complete_observations  truth            (n,)
    R       (budget)               crawls per day

The plan has no price: what one more crawl would save depends on the change rates.

Method, cost and edge cases: :mod:`scheduler.policies.lambda_crawl`; exact where Prop. 9 holds.

Reference: Kolobov et al., NeurIPS 2019, Prop. 9 and section 7 (LCA). Differs from the paper in:
the split, about which it says nothing. The best split (found by search, with all change rates)
would cost about 1.41 of LambdaCrawl there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from freshet.scheduler import arguments
from freshet.scheduler.arguments import Bools, Floats
from freshet.scheduler.budgeting.prices import out_of_range
from freshet.scheduler.policies.lambda_crawl import solve
from freshet.scheduler.policy import Crawling, CrawlPlan
from freshet.scheduler.sources import SourceTable


@dataclass(frozen=True, slots=True)
class LambdaCrawlApprox:
    """Rates in proportion to importance, beside the optimum for complete observations.

    Attributes:
        crawling: ``"poisson"``, as the paper has it, or ``"periodic"``, the same rates evenly
            spaced.

    >>> table = SourceTable.of([1.0, 3.0], [2.0, 0.1])
    >>> LambdaCrawlApprox().rates(table, 8.0).crawl_rate.round(12).tolist()
    [2.0, 6.0]
    """

    crawling: Crawling = "poisson"

    def __post_init__(self) -> None:
        arguments.one_of("crawling", self.crawling, ("poisson", "periodic"))

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        """The plan.

        Raises:
            ValueError: as :func:`freshet.scheduler.policies.lambda_crawl.solve` does.
        """
        mu = arguments.non_negative("importance", table.importance)
        delta = arguments.non_negative("change_rate", table.change_rate, len(mu))
        complete = table.complete_observations
        plan = solve(
            mu,
            _in_proportion_to_importance(mu, delta, complete),
            arguments.budget("budget", budget),
            complete_observations=complete,
            host=table.host,
            host_capacity=table.host_capacity,
        )
        return replace(plan, price=None, host_price=None, crawling=self.crawling)


@np.errstate(over="ignore", invalid="ignore")
def _in_proportion_to_importance(mu: Floats, delta: Floats, complete: Bools) -> Floats:
    """Δ of complete observations; of the others Δ̂ where they are worth a crawl, else 0."""
    worth = ~complete & (mu > 0) & (delta > 0)
    total = mu[worth].sum()
    per_importance = delta[worth].sum() / total if total else 0.0
    theirs = np.where(worth, mu * per_importance, np.where(complete, delta, 0.0))
    if not (np.isfinite(theirs).all() and (theirs[worth] > 0).all()):
        raise out_of_range()
    return theirs
