"""What would be paid if it were known which signals are true, but the rates had to be learnt.

The learning is the daemon's (:mod:`scheduler.queue.site_clock_ranker`), host by host, without the
daemon: no robots.txt, no polls, no window, and no page waits for its first visit.
"""

from __future__ import annotations

import numpy as np

from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.evaluate.crawl_costs import Crawls
from freshet.scheduler.queue.site_clock_ranker import SiteClockRanker
from freshet.scheduler.sources import Rows
from scripts.benchmarks.signals_reference import Stage
from scripts.benchmarks.signals_web import Hosts

#: VisitResults between two valuings.
_BATCH = 10


def learning(stage: Stage, hosts: Hosts, budget: float) -> Crawls:
    """The crawls of one who hears true signals at once, for nothing; the rest is learnt."""
    crawler = _Learning(stage, hosts, budget)
    for first in range(0, int(stage.days * budget), _BATCH):
        at = np.asarray((first + 0.5 + np.arange(_BATCH)) / budget, np.float64)
        crawler.visit(crawler.worthiest(first / budget), at)
    return Crawls(np.concatenate(crawler.rows), np.concatenate(crawler.days))


class _Learning:
    def __init__(self, stage: Stage, hosts: Hosts, budget: float) -> None:
        n = len(stage.table)
        self._stage = stage
        self._told = np.flatnonzero(stage.table.complete_observations)
        self._last = np.full(n, -1.0)
        self._ranker = SiteClockRanker(budget)
        area, importance = np.zeros(n, np.intp), stage.table.importance
        self._ranker.add(hosts.of, area, importance, np.zeros(n))
        self.rows: list[Rows] = []
        self.days: list[Floats] = []

    def worthiest(self, now: float) -> Rows:
        """The rows to look at next: as the daemon has it, but where signals are true by these."""
        importance = self._stage.table.importance
        worth = self._ranker.values(now)
        told, count = self._told, self._stage.changes.count
        start, until = np.zeros(len(told)), np.full(len(told), now)
        # As if one change had been heard in a day before the first.
        rate = (count(told, start, until) + 1.0) / (now + 1.0)
        pending = count(told, np.maximum(self._last[told], 0.0), until)
        worth[told] = importance[told] * pending / rate
        new = self._last < 0
        worth[new] = importance[new] * max(now, 1 / 86_400)
        best = np.argpartition(-worth, _BATCH)[:_BATCH]
        return best[np.argsort(-worth[best], kind="stable")]

    def visit(self, rows: Rows, at: Floats) -> None:
        """Look at these pages."""
        compared = self._last[rows] >= 0
        found = self._stage.changes.count(rows, self._last[rows], at) > 0
        none, changed = np.zeros(len(rows), np.bool_), compared & found
        self._ranker.learn(VisitResults(rows, at, compared, changed, none, changed))
        self._last[rows] = at
        self.rows.append(rows)
        self.days.append(at)
