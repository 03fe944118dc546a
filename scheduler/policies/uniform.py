"""UniformCrawl: the same rate for every source.

    ρ = R/|W|

    R    budget, crawls per day
    |W|  number of sources worth a crawl: μ > 0 and Δ > 0, which the paper assumes; the others get 0

It does not minimise a cost; crawlers without data on their sources use it. Notifications are
ignored. A host with a capacity below its share spends the capacity, and the rest is divided evenly
among the others (:mod:`freshet.scheduler.solve.budget`); budget that no host can use is left over.

Reference: UniformCrawl (UC) in Kolobov et al., NeurIPS 2019, section 7, after Cho and
Garcia-Molina, "The evolution of the web and implications for an incremental crawler", VLDB 2000.
Differs from the paper in: capacities of hosts; evenly spaced crawls as an option.
"""

from dataclasses import dataclass

import numpy as np

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Floats
from freshet.scheduler.policy import Crawling, CrawlPlan
from freshet.scheduler.solve.budget import in_proportion
from freshet.scheduler.sources import SourceTable


@dataclass(frozen=True, slots=True)
class UniformCrawl:
    """The same rate for all.

    Attributes:
        crawling: ``"poisson"``, at random times, or ``"periodic"``, evenly spaced.

    >>> table = SourceTable.of([5.0, 1.0, 0.0], [1.0, 3.0, 2.0])
    >>> UniformCrawl().rates(table, 4.0).crawl_rate.tolist()
    [2.0, 2.0, 0.0]
    """

    crawling: Crawling = "poisson"

    def __post_init__(self) -> None:
        arrays.one_of("crawling", self.crawling, ("poisson", "periodic"))

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        """Return the plan."""
        bandwidth, n = arrays.budget("budget", budget), len(table)
        delta = arrays.non_negative("change_rate", table.change_rate, n)
        weight = self._weight(np.where(table.importance > 0, delta, 0.0))
        rates, left_over = in_proportion(weight, bandwidth, table.host, table.host_capacity)
        return CrawlPlan(
            rates, np.ones(n), np.zeros(n, np.bool_), bandwidth, left_over, crawling=self.crawling
        )

    def _weight(self, change_rate: Floats) -> Floats:
        return (change_rate > 0).astype(np.float64)


# -- change rate --
#
# ChangeRateCrawl: rates in proportion to change rates, ρ = R Δ/ΣΔ, the sum over sources with μ > 0.
#
# It does not minimise a cost: for equally important sources, overall freshness is highest if
# sources that change often are crawled *less* (Cho and Garcia-Molina 2003). All its sources have
# the same harmonic cost, μ ln(1 + ΣΔ/R). Notifications and capacities are treated as by
# UniformCrawl.
#
# Reference: ChangeRateCrawl (CC) in Kolobov et al., NeurIPS 2019, section 7, after Cho and
# Garcia-Molina, "Effective page refresh policies for web crawlers", TODS 28(4), 2003. Differs from
# the paper in: capacities of hosts; evenly spaced crawls as an option; a source without importance
# is not crawled.


@dataclass(frozen=True, slots=True)
class ChangeRateCrawl(UniformCrawl):
    """Rates in proportion to change rates; ``crawling`` as for :class:`UniformCrawl`.

    >>> table = SourceTable.of([5.0, 1.0, 0.0], [1.0, 3.0, 2.0])
    >>> ChangeRateCrawl().rates(table, 2.0).crawl_rate.tolist()
    [0.5, 1.5, 0.0]
    """

    def _weight(self, change_rate: Floats) -> Floats:
        return change_rate
