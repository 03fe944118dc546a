"""What an index policy would pay that knows the rates, and which signals are true."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from freshet.scheduler.arrays import Floats
from freshet.scheduler.evaluate.changes import ChangeTimes
from freshet.scheduler.evaluate.judging import Crawls, expected_costs
from freshet.scheduler.evaluate.world import ticks
from freshet.scheduler.index_queue import IndexQueue
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.sources import Rows, SourceTable


@dataclass(frozen=True, slots=True)
class Stage:
    """What all runs share; the sources of complete observations are those that signal truly."""

    table: SourceTable
    changes: ChangeTimes
    days: float

    def silent(self) -> SourceTable:
        """The same sources without any signal."""
        return SourceTable.of(self.table.importance, self.table.change_rate)

    def costs(self, crawls: Crawls, start: float, end: float) -> Floats:
        """(n,), harmonic: those of the sources that signal as they came about, others expected."""
        table = self.silent()
        before = crawls.at <= start
        np.maximum.at(table.last_crawl, crawls.source[before], crawls.at[before])
        within = Crawls(crawls.source[~before], crawls.at[~before])
        heard = self.table.complete_observations
        return expected_costs(table, within, start, end, changes=self.changes, heard=heard).harmonic

    def changed(self) -> tuple[Rows, Floats]:
        """Source and day of each change that is signalled, source after source."""
        source = np.repeat(np.arange(len(self.table)), np.diff(self.changes.offsets))
        told = self.table.complete_observations[source]
        return source[told], self.changes.at[told]


def heard_at(changed: Floats, polled: Floats) -> Floats:
    """(m,), the days of the first poll (ascending) after each change; inf: there is none."""
    return np.append(polled, inf)[np.searchsorted(polled, changed)]


def informed(stage: Stage, budget: float, heard: Floats | None = None) -> Crawls:
    """The crawls of the greedy index from day 0 on, all copies being new then.

    Each signalled change is heard on a day (m,), at once without them; if its page has been
    crawled in between it tells nothing.
    """
    source, changed = stage.changed()
    at = changed if heard is None else heard
    order = np.argsort(at, kind="stable")
    news = list(zip(at[order].tolist(), source[order].tolist(), changed[order].tolist(),
                    strict=True))  # fmt: skip
    queue = IndexQueue(GreedyIndex(), _own(stage.table), 0.0)
    crawled, days, place = [], [], 0
    for now in ticks(budget, 0.0, stage.days):
        while place < len(news) and news[place][0] <= now:
            day, row, since = news[place]
            if since > queue.table.last_crawl[row]:
                queue.signalled(row, day)
            place += 1
        best = queue.best(now)
        if best is not None:
            queue.crawled(best, now)
            crawled.append(best)
            days.append(now)
    return Crawls(np.array(crawled, np.intp), np.array(days))


def uninformed(stage: Stage, budget: float) -> Crawls:
    """The same without signals."""
    return informed(replace(stage, table=stage.silent()), budget)


def _own(table: SourceTable) -> SourceTable:
    return table.take(np.arange(len(table)))
