"""What others would look at next: rivals of the daemon on recorded sites.

All are given as many visits as the daemon. Where a rival says of a page only when it is due, the
page due longest goes first, and the one that is due next where none is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

import numpy as np

from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate.evidence import Evidence, SignalBatch, VisitResults
from freshet.scheduler.estimate.poisson import PoissonMle
from freshet.scheduler.policies.adaptive_intervals import NutchAdaptive, StormCrawlerAdaptive
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl
from freshet.scheduler.policy import IntervalPolicy, Pace, Revisit
from freshet.scheduler.queue.ranker import Beliefs, Ranker
from freshet.scheduler.queue.rankers import PolicyRanker, ranker_of
from freshet.scheduler.sources import Rows, SourceTable

#: Days from one plan of the published LambdaCrawl to the next.
_EPOCH_DAYS = 1.0


class Rival(NamedTuple):
    """A policy by name, made from the number of pages to come, a seed, and the visits a day."""

    what: str
    make: Callable[[int, int, float], Ranker]


RIVALS: Mapping[str, Rival] = {
    "nutch_adaptive": Rival(
        "Nutch's AdaptiveFetchSchedule with its defaults, earliest due first",
        lambda _pages, _seed, _rate: ByPace(NutchAdaptive()),
    ),
    "stormcrawler_adaptive": Rival(
        "StormCrawler's AdaptiveScheduler with its defaults, earliest due first",
        lambda _pages, _seed, _rate: ByPace(StormCrawlerAdaptive()),
    ),
    "lambda_crawl_published": Rival(
        "LambdaCrawl's rates at Poisson crawl times, planned daily with maximum-likelihood "
        "rates (Kolobov et al. 2019, Algorithm 4 and eq. 10), earliest due first",
        lambda pages, seed, rate: Published(pages, rate, seed=seed),
    ),
    "lambda_crawl": Rival(
        "the daemon's own policy lambda_crawl: the same rates at Poisson crawl times, with its "
        "empirical-Bayes rates",
        lambda _pages, _seed, rate: ranker_of("lambda_crawl", rate),
    ),
    "greedy_index_without_clock": Rival(
        "the greedy index on each page's own empirical-Bayes rate, without the site's clock",
        lambda _pages, _seed, _rate: PolicyRanker(GreedyIndex().index),
    ),
}


class _Rival:
    """What they have in common: they learn visit by visit, and nothing here audits."""

    def learn(self, visits: VisitResults) -> None:
        """Take in each visit; what was not compared is the page's first, or its end."""
        for k in range(len(visits)):
            row = int(visits.row[k])
            if visits.compared[k]:
                self.visited(row, float(visits.at[k]), changed=bool(visits.changed[k]))
            elif visits.gone[k]:
                self.gone(row)

    def visited(self, row: int, at: float, *, changed: bool) -> None:
        """Learn from a visit."""
        raise NotImplementedError

    def gone(self, row: int) -> None:
        """Do nothing more: the caller looks at no page that is gone."""
        return

    def beliefs(self, now: float) -> Beliefs:
        """Refuse: nothing is audited."""
        raise NotImplementedError

    def receive(self, said: SignalBatch) -> None:
        """Ignore change signals."""

    def credible_interval(self, rows: Rows) -> tuple[Floats, Floats]:
        """Refuse: nobody reads estimates."""
        raise NotImplementedError

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        """Refuse: all weigh the same."""
        raise NotImplementedError

    def inherit(self, old: int, new: int) -> None:
        """Refuse: no page moves."""
        raise NotImplementedError


class ByPace(_Rival):
    """An interval policy as a ranker: the earliest due first.

    No server says here when a page changed; the last visit that saw a change stands for it.
    """

    def __init__(self, policy: IntervalPolicy) -> None:
        self._policy = policy
        self._paces: list[Pace] = []
        self._modified_at: list[float] = []
        self._due = np.empty(0)

    def add(
        self, site: Rows, area: Rows, importance: Floats, at: Floats, pace: Floats | None = None
    ) -> None:
        """Append rows, captured on these days."""
        days = at.tolist()
        paces = [self._policy.next_interval(None, Revisit(day, changed=False)) for day in days]
        self._paces += paces
        self._modified_at += days
        self._due = np.append(self._due, [pace.due_at for pace in paces])

    def visited(self, row: int, at: float, *, changed: bool) -> None:
        """Set the page's next interval."""
        if changed:
            self._modified_at[row] = at
        revisit = Revisit(at, changed, self._modified_at[row])
        pace = self._paces[row] = self._policy.next_interval(self._paces[row], revisit)
        self._due[row] = pace.due_at

    def values(self, now: float) -> Floats:
        """(n,), the days since each page was due; below 0 before."""
        late: Floats = now - self._due
        return late


class Published(_Rival):
    """LambdaCrawl with unknown rates, executed as the paper has it.

    A page's crawls are a Poisson process of the rate of the plan in force: the next one comes
    when the integral of that rate since the last visit reaches an exponentially distributed draw.
    """

    def __init__(self, pages: int, rate: float, seed: int) -> None:
        self._rng = Random(seed)
        self._learner = PoissonMle(pages)
        self._last, self._draw = np.empty(0), np.empty(0)
        self._passed, self._rate = np.empty(0), np.empty(0)
        self._gone = np.empty(0, np.bool_)
        self._budget = rate
        self._at = self._planned_at = -np.inf

    def add(
        self, site: Rows, area: Rows, importance: Floats, at: Floats, pace: Floats | None = None
    ) -> None:
        """Append rows, captured on these days; they are in the next plan."""
        draws = [self._rng.expovariate(1.0) for _ in at]
        self._last, self._draw = np.append(self._last, at), np.append(self._draw, draws)
        self._passed = np.append(self._passed, np.zeros(len(at)))
        self._rate = np.append(self._rate, np.zeros(len(at)))
        self._gone = np.append(self._gone, np.zeros(len(at), np.bool_))
        self._planned_at = -np.inf

    def visited(self, row: int, at: float, *, changed: bool) -> None:
        """Keep the interval, and draw the next."""
        span = np.array([at - self._last[row]])
        rows, none = np.array([row], np.intp), np.zeros(1, np.bool_)
        if span[0] > 0:
            found = np.array([int(changed)])
            self._learner.observe(Evidence(rows, np.array([at]), span, found, none))
        self._last[row], self._passed[row] = at, 0.0
        self._draw[row] = self._rng.expovariate(1.0)

    def values(self, now: float) -> Floats:
        """(n,), the days since each page was due; below 0 before."""
        if now >= self._planned_at + _EPOCH_DAYS:
            self._plan(now)
        begin = np.maximum(self._last, self._at)
        self._passed += self._rate * np.maximum(now - begin, 0.0)
        self._at = now
        late: Floats = (self._passed - self._draw) / np.maximum(self._rate, 1e-12)
        return late

    def gone(self, row: int) -> None:
        """Leave it out of the next plan."""
        self._gone[row] = True

    def _plan(self, now: float) -> None:
        learnt = self._learner.change_rate(np.arange(len(self._last)))
        table = SourceTable.of(np.where(self._gone, 0.0, 1.0), learnt)
        self._rate = LambdaCrawl().rates(table, self._budget).crawl_rate
        self._planned_at = now
