"""What a crawler learns of change rates: from its crawls and signals, nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate.evidence import Estimator, Evidence
from freshet.scheduler.evaluate.judging import Crawls
from freshet.scheduler.evaluate.world import World
from freshet.scheduler.sources import Rows, SourceTable


class Learner:
    """A crawler's beliefs: the sources with estimated rates.

    Attributes:
        table: the sources; its rates are those of the last :meth:`refresh`.
        complete: the rows of the sources of complete observations.

    Args:
        table: the sources; its change rates are not read.
        estimator: which makes rates from evidence.
    """

    def __init__(self, table: SourceTable, estimator: Estimator) -> None:
        self._estimator = estimator
        self.complete = np.flatnonzero(table.complete_observations)
        self._all = np.arange(len(table))
        self._revision = estimator.revision
        self.table = table
        self.refresh()

    def refresh(self) -> None:
        """Estimate all rates anew."""
        rate = self._estimator.change_rate()
        self._revision = self._estimator.revision
        heard = np.where(self.table.complete_observations, rate, self.table.signal_rate)
        self.table = replace(self.table, change_rate=rate, signal_rate=heard)

    def see(self, world: World, crawls: Crawls, last_crawl: Floats) -> None:
        """These crawls were made, and each copy compared with the one before.

        ``last_crawl`` is (n,), each source's last crawl before all of them. What a crawl shows
        of a source of complete observations, its signals have told.
        """
        source, at, before = _gaps(crawls, last_crawl)
        seen = ~self.table.complete_observations[source]
        source, at, before = source[seen], at[seen], before[seen]
        changed = (world.changes.count(source, before, at) > 0).astype(np.int64)
        counted = np.zeros(len(source), np.bool_)
        self._estimator.observe(Evidence(source, at, at - before, changed, counted))

    def hear(self, world: World, begin: float, end: float) -> None:
        """The sources of complete observations told of all their changes in (begin, end]."""
        m = len(self.complete)
        first, last = np.full(m, begin), np.full(m, end)
        changes = world.changes.count(self.complete, first, last)
        counted = np.ones(m, np.bool_)
        self._estimator.observe(Evidence(self.complete, last, last - first, changes, counted))

    def news(self, rows: Rows) -> tuple[Rows, Floats]:
        """The estimates of these rows; of all rows where they may all have moved."""
        rate = self._estimator.change_rate(rows)
        if self._estimator.revision == self._revision:
            return rows, rate
        self._revision = self._estimator.revision
        return self._all, self._estimator.change_rate()


def _gaps(crawls: Crawls, last_crawl: Floats) -> tuple[Rows, Floats, Floats]:
    """Source and day of each crawl, and the day of the source's crawl before; by source."""
    order = np.lexsort((crawls.at, crawls.source))
    source, at = crawls.source[order], crawls.at[order]
    before = np.empty_like(at)
    before[1:] = at[:-1]
    first = np.flatnonzero(np.diff(source, prepend=-1))
    before[first] = last_crawl[source[first]]
    return source, at, before
