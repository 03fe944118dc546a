"""Change rates as a crawler learns them: from its crawls and signals only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.estimate.evidence import Estimator, Evidence
from freshet.scheduler.evaluate.judging import Crawls
from freshet.scheduler.sources import Rows, SourceTable


class RateLearner:
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

    def see(self, source: Rows, at: Floats, span: Floats, changed: Bools) -> None:
        """Learn from crawls that compared each copy with one that was ``span`` days older.

        Of a source of complete observations a crawl shows only what its signals have told.
        """
        seen = ~self.table.complete_observations[source]
        source, counted = source[seen], np.zeros(int(seen.sum()), np.bool_)
        found = changed[seen].astype(np.int64)
        self._estimator.observe(Evidence(source, at[seen], span[seen], found, counted))

    def hear(self, changes: Ints, begin: float, end: float) -> None:
        """Learn how often each source of :attr:`complete` has changed in (begin, end]."""
        m = len(self.complete)
        last, span = np.full(m, end), np.full(m, end - begin)
        self._estimator.observe(Evidence(self.complete, last, span, changes, np.ones(m, np.bool_)))

    def news(self, rows: Rows) -> tuple[Rows, Floats]:
        """Return the estimates of these rows, or of all rows if all may have moved."""
        rate = self._estimator.change_rate(rows)
        if self._estimator.revision == self._revision:
            return rows, rate
        self._revision = self._estimator.revision
        return self._all, self._estimator.change_rate()


def gaps_of(crawls: Crawls, last_crawl: Floats) -> tuple[Rows, Floats, Floats]:
    """Return source and day of each crawl, and the day of the source's crawl before; by source."""
    order = np.lexsort((crawls.at, crawls.source))
    source, at = crawls.source[order], crawls.at[order]
    before = np.empty_like(at)
    before[1:] = at[:-1]
    first = np.flatnonzero(np.diff(source, prepend=-1))
    before[first] = last_crawl[source[first]]
    return source, at, before
