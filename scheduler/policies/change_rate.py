"""ChangeRateCrawl: what changes twice as often is crawled twice as often.

    ρ = R Δ/ΣΔ

    R  budget, crawls per day
    Δ  change rate (n,), changes per day; the sum is over the sources with μ > 0

It minimises no cost: for sources as important as each other the freshest copy of the whole is
had by crawling those that change often *less* (Cho and Garcia-Molina 2003). All its sources have
the same harmonic cost, μ ln(1 + ΣΔ/R). Notifications are ignored. A host whose capacity is less
than its share spends just that, and the rest goes to the others in proportion
(:mod:`freshet.scheduler.budgeting.capacities`); what nobody can take is left over.

Reference: ChangeRateCrawl (CC) in Kolobov et al., NeurIPS 2019, section 7, after Cho and
Garcia-Molina, "Effective page refresh policies for web crawlers", TODS 28(4), 2003. Differs from
the paper in: capacities of hosts; evenly spaced crawls as an option; a source without importance
is not crawled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freshet.scheduler import arguments
from freshet.scheduler.budgeting.capacities import in_proportion
from freshet.scheduler.policy import Crawling, CrawlPlan
from freshet.scheduler.sources import SourceTable


@dataclass(frozen=True, slots=True)
class ChangeRateCrawl:
    """Rates in proportion to change rates.

    Attributes:
        crawling: ``"poisson"``, at random times, or ``"periodic"``, evenly spaced.

    >>> table = SourceTable.of([5.0, 1.0, 0.0], [1.0, 3.0, 2.0])
    >>> ChangeRateCrawl().rates(table, 2.0).crawl_rate.tolist()
    [0.5, 1.5, 0.0]
    """

    crawling: Crawling = "poisson"

    def __post_init__(self) -> None:
        arguments.one_of("crawling", self.crawling, ("poisson", "periodic"))

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        """The plan.

        Raises:
            ValueError: if the budget is no finite number above 0, or a change rate something
                else than a finite number of at least 0.
        """
        bandwidth = arguments.budget("budget", budget)
        n = len(table)
        delta = arguments.non_negative("change_rate", table.change_rate, n)
        weight = np.where(table.importance > 0, delta, 0.0)
        rates, left_over = in_proportion(weight, bandwidth, table.host, table.host_capacity)
        return CrawlPlan(
            rates, np.ones(n), np.zeros(n, np.bool_), bandwidth, left_over, crawling=self.crawling
        )
