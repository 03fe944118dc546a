"""Costs of crawls, given their times.

A source's crawls divide time into gaps. In a gap N, the number of changes since the crawl at its
beginning, starts from 0 and only grows. Over the measured days, (start, end], a source costs

    harmonic  μ/(end − start) · Σ over its gaps ∫ H(N(t)) dt
    binary    μ/(end − start) · Σ over its gaps ∫ 1{N(t) > 0} dt

or the expectation of these, if the crawler receives no signals from a source between its crawls and
its changes are Poisson. Then N is Poisson(Δa) at the age a of the copy, and a gap costs, from age a
to age b,

    harmonic  ∫ Ein(Δa) da = b·Ēin(Δb) − a·Ēin(Δa),   Ēin(x) the mean of Ein over (0, x)
    binary    ∫ 1 − e^{−Δa} da                        likewise

Sums of these expectations have the same mean as realised costs, even if the crawler learns from its
crawls: the length of a gap depends on the state at its beginning, and on other sources. They lack
the noise of the changes: a measured day is as precise as a month of realised changes.

Every function takes
    table: importance μ (n,); change_rate Δ (n,), the true rates; last_crawl (n,), the day of each
        source's last crawl before ``crawls``, at most ``start``.
    crawls: any number for each source, in any order. Crawls before ``start`` only make the copy
        younger, crawls after ``end`` do not count.
    start, end: the measured days.
    changes: all changes from each source's last_crawl on.

and raises ValueError, naming the argument and the row. All costs are finite: a source that is
never crawled has aged since its last crawl. Relative error 1e-15, times age/(end − start) where
the copy is older than the measured days. One sort of the m crawls, O((n + m) log m) in all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import TypeAlias

import numpy as np

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.costs import Costs, changed_mean, ein_mean, stale_days
from freshet.scheduler.estimate import Estimator
from freshet.scheduler.estimate.evidence import Evidence
from freshet.scheduler.evaluate.captures import refuse
from freshet.scheduler.evaluate.changes import ChangeTimes
from freshet.scheduler.sources import Rows, SourceTable

#: ∫ H(N) dt and ∫ 1{N > 0} dt of every gap, in days.
_Integrals: TypeAlias = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True)
class Crawls:
    """m crawls: row of the source, and day."""

    source: Rows
    at: Floats

    def __len__(self) -> int:
        return len(self.source)

    def within(self, start: float, end: float) -> int:
        """Count the crawls in (start, end]."""
        return int(((self.at > start) & (self.at <= end)).sum())


def expected_costs(
    table: SourceTable,
    crawls: Crawls,
    start: float,
    end: float,
    *,
    changes: ChangeTimes,
    signalled: Bools,
) -> Costs:
    """Return the expected costs of Poisson changes, given the times of crawls and signals, (n,).

    Sources that are ``signalled`` (n,) announce each change; their costs are known, as in
    :func:`realised_costs`. For the others, ``changes`` are not read.

    >>> table = SourceTable.of([6.0], [1.0])
    >>> nothing = ChangeTimes(np.array([0, 0]), np.array([]))
    >>> daily = Crawls(np.array([0, 0]), np.array([1.0, 2.0]))
    >>> expected_costs(table, daily, 0, 3, changes=nothing, signalled=np.array([False]))
    Costs(harmonic=array([2.57232095]), binary=array([2.20727665]))

    which is 6 (0.7966 − 1/e) and 6/e, the closed forms of freshet.scheduler.costs.
    """
    _check(table, crawls, start, end, changes)
    has_signals = arrays.flags("signalled", signalled, len(table))
    gaps = _gaps(table, crawls, start, end)
    known = has_signals[gaps.source]
    harmonic, binary = np.empty(len(gaps)), np.empty(len(gaps))
    harmonic[known], binary[known] = _on_path(changes, gaps.take(known))
    unknown = gaps.take(~known)
    rate = table.change_rate[unknown.source]
    young, old = unknown.begin - unknown.crawled, unknown.end - unknown.crawled
    harmonic[~known] = old * ein_mean(rate * old) - young * ein_mean(rate * young)
    binary[~known] = old * changed_mean(rate * old) - young * changed_mean(rate * young)
    return _averaged(table, gaps, (harmonic, binary), end - start)


def realised_costs(
    table: SourceTable, crawls: Crawls, start: float, end: float, *, changes: ChangeTimes
) -> Costs:
    """Return the realised costs, (n,), for any process of changes.

    The j-th change since a crawl adds 1/j to H(N) until the next crawl. A crawl at the exact moment
    of a change has seen it.

    >>> table = SourceTable.of([6.0], [1.0])
    >>> changes = ChangeTimes(np.array([0, 3]), np.array([1.0, 2.0, 2.5]))
    >>> crawl = Crawls(np.array([0]), np.array([2.5]))
    >>> realised_costs(table, crawl, 0, 3, changes=changes)  # 6 (1.5 + 0.5/2)/3 and 6 · 1.5/3
    Costs(harmonic=array([3.5]), binary=array([3.]))
    """
    _check(table, crawls, start, end, changes)
    gaps = _gaps(table, crawls, start, end)
    return _averaged(table, gaps, _on_path(changes, gaps), end - start)


@dataclass(frozen=True, slots=True)
class _Gaps:
    """The times from crawl to crawl that reach into the measured days.

    A gap of ``source`` (g,) begins with the crawl of day ``crawled`` (g,); ``begin`` and ``end``
    (g,) delimit its measured part.
    """

    source: Rows
    crawled: Floats
    begin: Floats
    end: Floats

    def __len__(self) -> int:
        return len(self.source)

    def take(self, which: Bools) -> _Gaps:
        return _Gaps(self.source[which], self.crawled[which], self.begin[which], self.end[which])


def _gaps(table: SourceTable, crawls: Crawls, start: float, end: float) -> _Gaps:
    source = np.concatenate([np.arange(len(table)), crawls.source])
    crawled = np.concatenate([table.last_crawl, crawls.at])
    order = np.lexsort((crawled, source))
    source, crawled = source[order], crawled[order]
    until = np.full(len(source), end, np.float64)
    same = source[1:] == source[:-1]
    until[:-1][same] = np.minimum(crawled[1:][same], end)
    begin = np.maximum(crawled, start)
    return _Gaps(source, crawled, begin, until).take(begin < until)


def _on_path(changes: ChangeTimes, gaps: _Gaps) -> _Integrals:
    first, last = changes.stretches(gaps.source, gaps.crawled, gaps.end)
    return stale_days(changes.at, first, last - first, gaps.begin, gaps.end)


def _averaged(table: SourceTable, gaps: _Gaps, integrals: _Integrals, days: float) -> Costs:
    weight = table.importance / days
    harmonic, binary = (np.bincount(gaps.source, each, len(table)) for each in integrals)
    return Costs(weight * harmonic, weight * binary)


def _check(
    table: SourceTable, crawls: Crawls, start: float, end: float, changes: ChangeTimes
) -> None:
    n = len(table)
    if not (isfinite(start) and isfinite(end) and start < end):
        raise ValueError(f"start, end: are {start} and {end}; accepted are days, the first earlier")
    if len(changes) != n:
        raise ValueError(f"changes: has {len(changes)} sources; accepted are {n}")
    at = arrays.finite("crawls.at", crawls.at)
    source = arrays.codes("crawls.source", crawls.source, len(at), n)
    refuse(table.last_crawl > start, "last_crawl", table.last_crawl, f"at most {start}")
    refuse(at < table.last_crawl[source], "crawls.at", at, "its source's last_crawl or later")


# -- learning --
# Change rates as a crawler learns them, from its crawls and signals only.


class RateLearner:
    """A crawler's estimates: the sources with estimated rates.

    Attributes:
        table: the sources, with the rates of the last :meth:`refresh`.
        complete: the rows of the sources with complete observations.

    Args:
        table: the sources; its change rates are not read.
        estimator: estimates rates from evidence.
    """

    def __init__(self, table: SourceTable, estimator: Estimator) -> None:
        self._estimator = estimator
        self.complete = np.flatnonzero(table.complete_observations)
        self._all = np.arange(len(table))
        self._revision = estimator.revision
        self.table = table
        self.refresh()

    def refresh(self) -> None:
        """Estimate all rates again."""
        rate = self._estimator.change_rate()
        self._revision = self._estimator.revision
        signalled = np.where(self.table.complete_observations, rate, self.table.signal_rate)
        self.table = replace(self.table, change_rate=rate, signal_rate=signalled)

    def see(self, source: Rows, at: Floats, span: Floats, changed: Bools) -> None:
        """Learn from crawls that compared each copy with one that was ``span`` days older.

        For a source with complete observations, a crawl adds nothing to its signals.
        """
        seen = ~self.table.complete_observations[source]
        source, counted = source[seen], np.zeros(int(seen.sum()), np.bool_)
        found = changed[seen].astype(np.int64)
        self._estimator.observe(Evidence(source, at[seen], span[seen], found, counted))

    def receive(self, changes: Ints, begin: float, end: float) -> None:
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
    """Return source, day and day of the source's previous crawl for each crawl; by source."""
    order = np.lexsort((crawls.at, crawls.source))
    source, at = crawls.source[order], crawls.at[order]
    before = np.empty_like(at)
    before[1:] = at[:-1]
    first = np.flatnonzero(np.diff(source, prepend=-1))
    before[first] = last_crawl[source[first]]
    return source, at, before
