"""Crawls by an index policy: every 1/R days the source that is worth most at that moment.

Signals are heard when they come, between the crawls. A crawl that no source is worth is left
out, and not made up for.

With a learner the sources that were crawled get new estimates once an hour, as in a crawler that
takes its observations in together; those that signal, once a day; and all, when the estimator
has changed its mind about all.
"""

from __future__ import annotations

from array import array
from dataclasses import replace

import numpy as np

from freshet.scheduler.arguments import Floats
from freshet.scheduler.index_queue import IndexQueue
from freshet.scheduler.policy import IndexPolicy
from freshet.scheduler.simulate.days import Progress, silent, split, ticks
from freshet.scheduler.simulate.judging import Crawls
from freshet.scheduler.simulate.learning import Learner
from freshet.scheduler.simulate.world import World
from freshet.scheduler.sources import Rows, SourceTable

_HOUR = 1 / 24


def run_index(
    policy: IndexPolicy,
    world: World,
    start: SourceTable,
    budget: float,
    learner: Learner | None = None,
    progress: Progress = silent,
) -> Crawls:
    """All crawls from day 0 to the world's last: at most one each 1/``budget`` days."""
    crawler = _Crawler(policy, start if learner is None else learner.table)
    for begin, end in split(0.0, world.days, 1.0):
        crawler.expect(*world.signals(begin, end))
        for since, until in split(begin, end, _HOUR):
            last_crawl = crawler.queue.table.last_crawl.copy()
            crawls = crawler.crawl(ticks(budget, since, until))
            crawler.hear(until)
            if learner is not None:
                learner.see(world, crawls, last_crawl)
                crawler.queue.learnt(*learner.news(np.unique(crawls.source)), until)
        if learner is not None:
            learner.hear(world, begin, end)
            crawler.queue.learnt(*learner.news(learner.complete), end)
        progress(end)
    return crawler.crawls()


class _Crawler:
    """A queue, the signals that are to come, and the crawls that were made."""

    def __init__(self, policy: IndexPolicy, table: SourceTable) -> None:
        self.queue = IndexQueue(policy, _own_columns(table), 0.0)
        self._source, self._at = array("q"), array("d")
        self.expect(np.zeros(0, np.intp), np.zeros(0))

    def expect(self, source: Rows, at: Floats) -> None:
        """The signals to come, in the order of time."""
        self._signals: list[int] = source.tolist()
        self._when: list[float] = [*at.tolist(), np.inf]
        self._heard = 0

    def hear(self, now: float) -> None:
        """Take in the signals that have come by now."""
        while self._when[self._heard] <= now:
            self.queue.signalled(self._signals[self._heard], self._when[self._heard])
            self._heard += 1

    def crawl(self, moments: list[float]) -> Crawls:
        """Crawl what is worth most at each of these moments."""
        before = len(self._at)
        for now in moments:
            self.hear(now)
            row = self.queue.best(now)
            if row is not None:
                self.queue.crawled(row, now)
                self._source.append(row)
                self._at.append(now)
        return self.crawls(before)

    def crawls(self, first: int = 0) -> Crawls:
        """The crawls so far, from the ``first`` on."""
        return Crawls(np.array(self._source[first:], np.intp), np.array(self._at[first:]))


def _own_columns(table: SourceTable) -> SourceTable:
    """The table with copies of the columns that the queue writes to."""
    return replace(
        table,
        change_rate=table.change_rate.copy(),
        signal_rate=table.signal_rate.copy(),
        last_crawl=table.last_crawl.copy(),
        pending_signals=table.pending_signals.copy(),
    )
