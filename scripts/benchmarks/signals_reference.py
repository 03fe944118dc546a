"""What an index policy would pay that knows the rates, and which signals are true."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from freshet.scheduler.arrays import Floats
from freshet.scheduler.evaluate.changes import ChangeTimes
from freshet.scheduler.evaluate.crawl_costs import Crawls, expected_costs
from freshet.scheduler.evaluate.runners import IndexedSources, RandomWorld
from freshet.scheduler.evaluate.serving import serve
from freshet.scheduler.evaluate.world import World
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
        signalled = self.table.complete_observations
        return expected_costs(
            table, within, start, end, changes=self.changes, signalled=signalled
        ).harmonic

    def changed(self) -> tuple[Rows, Floats]:
        """Source and day of each change that is signalled, source after source."""
        source = np.repeat(np.arange(len(self.table)), np.diff(self.changes.offsets))
        told = self.table.complete_observations[source]
        return source[told], self.changes.at[told]


def received_at(changed: Floats, polled: Floats) -> Floats:
    """(m,), the days of the first poll (ascending) after each change; inf: there is none."""
    return np.append(polled, inf)[np.searchsorted(polled, changed)]


class _Delayed(RandomWorld):
    """A world whose signals are heard some time after the changes that they tell of."""

    def __init__(self, stage: Stage, ranker: IndexedSources, signalled: Floats | None) -> None:
        super().__init__(World(stage.table, stage.changes, 0.0, stage.days), stage.table.last_crawl)
        source, changed = stage.changed()
        at = changed if signalled is None else signalled
        order = np.argsort(at, kind="stable")
        self._news, self._changed, self._news_at = source[order], changed[order], at[order]
        self._place, self._ranker = 0, ranker

    def advance(self, now: float) -> None:
        first, self._place = self._place, int(np.searchsorted(self._news_at, now, "right"))
        place = slice(first, self._place)
        self._ranker.receive(self._news[place], self._changed[place], now)


def informed(stage: Stage, budget: float, signalled: Floats | None = None) -> Crawls:
    """The crawls of the greedy index from day 0 on, all copies being new then.

    Each signalled change is heard on a day (m,), at once without them; if its page has been
    crawled in between it tells nothing.
    """
    ranker = IndexedSources(GreedyIndex(), stage.table, budget)
    environment = _Delayed(stage, ranker, signalled)
    serve(ranker, environment, budget)
    return environment.crawls()


def uninformed(stage: Stage, budget: float) -> Crawls:
    """The same without signals."""
    return informed(replace(stage, table=stage.silent()), budget)
