"""Rankers for policies that work on a table of pages, and the choice of a policy's ranker.

The daemon contains a policy's faults: if it raises, or returns anything but n finite numbers of at
least 0, its last valid values are used.
"""

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from freshet.scheduler import policy
from freshet.scheduler.arrays import Bools, Column, Floats
from freshet.scheduler.costs import changes_per_crawl
from freshet.scheduler.estimate.bayes import EmpiricalBayes
from freshet.scheduler.estimate.complete import CompleteSources
from freshet.scheduler.estimate.evidence import Evidence, SignalBatch, VisitResults
from freshet.scheduler.estimate.sources_trust import Reputation, SignalRates
from freshet.scheduler.policies.greedy_index import GreedyIndex, GreedyIndexBinary, SiteClock
from freshet.scheduler.policies.noisy_signal_index import NoisySignalIndex
from freshet.scheduler.queue.ranker import Beliefs, Ranker
from freshet.scheduler.queue.site_clock_ranker import SiteClockRanker
from freshet.scheduler.sources import Rows, SourceTable

log = logging.getLogger(__name__)

#: The value (n,) of each page of a table on a day.
_Value: TypeAlias = Callable[[SourceTable, float], Floats]

_HALF_LIFE_DAYS: Final = 480.0
_GROWTH_TOGETHER: Final = 4.0
#: Hazard of a page that a complete source calls changed: it has changed with 95 %.
_SURE: Final = 3.0
#: Days by which a signalled page ranks before other pages that are due.
_AT_ONCE: Final = 1.0
#: Maximum share of a plan's budget for polling sources.
_MOST_POLLED: Final = 0.5
#: Maximum value of a page that is not due, compared with one that has been due for a day.
_NOT_DUE: Final = 1e-9
#: Growth of the number of pages at which a plan is computed again.
_GROWN: Final = 1.1
_DAYS: Final = 1.0
#: Relative change of a limit at which a plan is computed again.
_MOVED: Final = 0.2
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_MOST_REPORTED: Final = 100
#: Factor that ranks pages visited since the last valid values after the others.
_AFTER: Final = 1e-6


def ranker_of(specification: str, budget: float, *, archived: bool = False) -> Ranker:
    """Return the ranker of the policy of this name, for ``budget`` visits a day.

    In an evaluation on an archive (``archived``), a policy's faults are not contained, and visits
    are learnt in batches, which takes a tenth of the time. Raises as :func:`policy.load`.
    """
    chosen = policy.load(specification)
    guard = None if archived else specification
    if isinstance(chosen, SiteClock):
        return SiteClockRanker(budget)
    if isinstance(chosen, policy.IndexPolicy):
        asks = isinstance(chosen, GreedyIndex | GreedyIndexBinary | NoisySignalIndex)
        return PolicyRanker(chosen.index, guard=guard, together=archived, asks=asks)
    if isinstance(chosen, policy.RatePolicy):
        return RateRanker(chosen, budget, guard=guard, together=archived)
    return IntervalRanker(chosen, guard=guard, together=archived)


class _Guard:
    """Containment for the faults of a third-party policy; each kind of fault is logged once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._reported: set[str] = set()
        self._good = np.empty(0)

    def visited(self, rows: Rows) -> None:
        """Discard the values of these pages from before their visits."""
        self._good[rows[rows < len(self._good)]] = 0.0

    def values(self, value: _Value, table: SourceTable, now: float) -> Floats:
        """Return the policy's values; after a fault its last valid ones, else importance × age."""
        try:
            found: object = value(table, now)
            fault = _fault(found, len(table))
        except Exception as error:  # noqa: BLE001 - any error of third-party code is reported
            found, fault = None, f"{type(error).__name__}: {error}"
        if fault is None and isinstance(found, np.ndarray):
            self._good = found.copy()
            return found
        self.report(fault or "")
        rest = table.importance * np.maximum(now - table.last_crawl, 0.0)
        known = len(self._good)
        rest[:known] = np.where(self._good > 0, self._good, rest[:known] * _AFTER)
        return rest

    def report(self, fault: str) -> None:
        """Log a fault, unless one of its kind was logged; page numbers do not distinguish kinds."""
        kind = _NUMBER.sub("#", fault)
        if kind not in self._reported and len(self._reported) < _MOST_REPORTED:
            self._reported.add(kind)
            log.error("policy %s: %s; its last valid values are used", self._name, fault)


def _fault(value: object, n: int) -> str | None:
    if not isinstance(value, np.ndarray):
        return f"returns {type(value).__name__}"
    if value.shape != (n,):
        return f"returns {value.shape} values for {n} pages"
    good = np.isfinite(value) & (value >= 0)
    if good.all():
        return None
    row = int(np.argmin(good))
    return f"values page {row} at {value[row]}"


class PolicyRanker:
    """A :class:`~freshet.scheduler.queue.ranker.Ranker` by ``value``, such as a policy's index.

    It learns the change rates of pages, and the reliability of signals, into a table with hosts and
    costs. A page's rate is estimated after each visit; all rates are estimated again when the
    common prior has been fitted again. Rates drift: evidence that is 480 days old has half the
    weight, which worked best on recorded sites.

    Visits are learnt one by one, so that their division into batches has no effect; or
    ``together``, with fewer fits of the prior, in a tenth of the time. Faults of the policy named
    ``guard`` are contained. If the values are in importance times days, they are comparable with
    the value of polling sources: the ranker then polls these (``asks``) as often as that pays.
    """

    def __init__(
        self, value: _Value, *, guard: str | None = None, together: bool = False, asks: bool = False
    ) -> None:
        self._value = value
        self._guard = None if guard is None else _Guard(guard)
        self._together, self._asks = together, asks
        growth = {"growth": _GROWTH_TOGETHER} if together else {}
        self._learner = EmpiricalBayes(0, half_life_days=_HALF_LIFE_DAYS, **growth)
        self._importance = Column[np.float64](np.float64)
        self._last = Column[np.float64](np.float64)
        self._rate = Column[np.float64](np.float64)
        self._visited = Column[np.bool_](np.bool_)
        self._site = Column[np.intp](np.intp)
        self._signals, self._complete = SignalRates(), CompleteSources()
        self._host, self._per_day = np.empty(0, np.intp), np.empty(0)
        self._cost = np.empty(0)

    def add(
        self, site: Rows, area: Rows, importance: Floats, at: Floats, pace: Floats | None = None
    ) -> None:
        """Append rows; their rates are the usual ones of their site."""
        first = len(self._rate)
        self._learner.extend(site)
        self._site.extend(site)
        self._signals.add(site)
        self._complete.add(len(site))
        self._importance.extend(importance)
        self._last.extend(at)
        self._visited.append(len(at))
        self._rate.extend(self._learner.change_rate(np.arange(first, first + len(site))))

    def learn(self, visits: VisitResults) -> None:
        """Learn rates, and the reliability of signals."""
        self._signals.learn(visits)
        if self._guard is not None:
            self._guard.visited(visits.row)
        if self._together:
            self._learn_together(visits)
            return
        last = self._last.rows
        informative = np.zeros(len(visits), np.bool_)
        self._visited.rows[visits.row] = True
        for k in range(len(visits)):
            row, at = int(visits.row[k]), float(visits.at[k])
            span = at - last[row]
            last[row] = max(at, last[row])
            self._complete.now = max(at, self._complete.now)
            informative[k] = visits.compared[k] and span > 0
            announced = self._judge_sources(visits, k, span if informative[k] else 0.0)
            if informative[k]:
                self._learn_one(visits.take(slice(k, k + 1)), span, announced)
        rows = np.unique(visits.row[informative])
        if len(rows):
            self._rate.rows[rows] = self._learner.change_rate(rows)

    def _judge_sources(self, visits: VisitResults, k: int, span: float) -> int:
        """Judge the sources of a page by a visit; return the announced changes, −1 if not all."""
        row = int(visits.row[k])
        if not self._complete.known.rows[row]:
            return -1
        rate = self._rate.rows[row]
        if span and not self._together:
            rate = self._learner.change_rate(visits.row[k : k + 1])[0]
        at, changed = float(visits.at[k]), bool(visits.changed[k])
        return self._complete.learn(row, at, span, float(rate), changed=changed)

    def _learn_one(self, visit: VisitResults, span: float, announced: int) -> None:
        """Learn from a visit: the number of changes in the span, or whether there was any."""
        found = np.array([announced if announced >= 0 else int(visit.changed[0])])
        counted = np.array([announced >= 0])
        self._learner.observe(Evidence(visit.row, visit.at, np.array([span]), found, counted))
        if self._learner.fit_is_due:
            self._rate.rows[:] = self._learner.change_rate()

    def _learn_together(self, visits: VisitResults) -> None:
        last = self._last.rows
        order = np.argsort(visits.row, kind="stable")
        row, at = visits.row[order], visits.at[order]
        before = last[row]
        follows = np.flatnonzero(np.diff(row, prepend=-1) == 0)
        before[follows] = np.maximum(before[follows], at[follows - 1])
        np.maximum.at(last, row, at)
        self._visited.rows[row] = True
        informative = visits.compared[order] & (at > before)
        span, ordered = np.where(informative, at - before, 0.0), visits.take(order)
        self._complete.now = max(self._complete.now, float(at.max(initial=-np.inf)))
        announced = np.full(len(row), -1)
        for k in np.flatnonzero(self._complete.known.rows[row]).tolist():
            announced[k] = self._judge_sources(ordered, k, float(span[k]))
        changes = np.where(announced >= 0, announced, ordered.changed)
        row, at, counted = row[informative], at[informative], announced[informative] >= 0
        self._learner.observe(Evidence(row, at, span[informative], changes[informative], counted))
        if self._learner.fit_is_due:
            self._rate.rows[:] = self._learner.change_rate()
        elif len(row):
            rows = np.unique(row)
            self._rate.rows[rows] = self._learner.change_rate(rows)

    def receive(self, batch: SignalBatch) -> None:
        """Learn from the signals of one source at one time."""
        self._signals.receive(batch.row, batch.until)
        self._complete.receive(batch, self._site.rows[batch.row], self._captured(batch.row))

    def _captured(self, rows: Rows) -> Floats:
        """Return the days (m,) of the last visits, −inf before the first."""
        return np.where(self._visited.rows[rows], self._last.rows[rows], -np.inf)

    def declare(self, rows: Rows, complete: Bools) -> None:
        """Declare for these pages whether their signals announce every change, (m,)."""
        self._complete.declared.rows[rows] = complete

    @property
    def declared(self) -> Bools:
        """Return (n,), the pages declared by :meth:`declare`."""
        return self._complete.declared.rows

    def values(self, now: float) -> Floats:
        """Return (n,), the policy's value of each page."""
        table = self.table()
        if self._guard is None:
            found = self._value(table, now)
        else:
            found = self._guard.values(self._value, table, now)
        if self._asks:
            rows, _, value = self._polls(now)
            found[rows] = np.maximum(found[rows], value)
        return found

    def hosts(self, queue: Rows, per_day: Floats, cost: Floats) -> None:
        """Set the host ``queue[s]`` of each site s, with its limit and the cost of a visit."""
        self._host, self._per_day = queue, per_day
        self._cost = np.ones(len(per_day))
        np.maximum.at(self._cost, queue, cost)

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        """Set the importance of these pages."""
        self._importance.rows[rows] = importance

    def inherit(self, old: int, new: int) -> None:
        """Copy the state of one page to another, visited at the same time."""
        self._learner.inherit(old, new)
        self._signals.inherit(old, new)
        self._complete.inherit(old, new)
        if not self._visited.rows[new]:
            self._last.rows[new] = self._last.rows[old]
        self._rate.rows[new] = self._learner.change_rate(np.array([new]))[0]

    def table(self) -> SourceTable:
        """Return the table of all pages; it is read-only.

        Sites without a known host share one, which has no limit.
        """
        importance, change_rate = self._importance.rows, self._rate.rows
        pending, rate, precision = self._signals.columns(change_rate)
        complete, announced, _ = self._complete.columns(self._hazard(self._complete.now))
        if complete.any():
            pending = np.where(complete, announced, pending)
            rate = np.where(complete, change_rate, rate)
            precision = np.where(complete, 1.0, precision)
        host = np.append(self._host, len(self._per_day))
        return SourceTable(
            importance=importance,
            change_rate=change_rate,
            complete_observations=complete,
            host=host[np.minimum(self._site.rows, len(self._host))],
            host_capacity=np.append(self._per_day, np.inf),
            host_cost=np.append(self._cost, 1.0),
            last_crawl=self._last.rows,
            pending_signals=pending,
            signal_rate=rate,
            signal_precision=precision,
        )

    def reputations(self, site: int) -> list[Reputation]:
        """Return the reputation of each source of a site."""
        return self._complete.reputations(site)

    def credible_interval(self, rows: Rows) -> tuple[Floats, Floats]:
        """Return the bounds (m,) each of the 90 % credible intervals of the pages' rates."""
        return self._learner.credible_interval(rows)

    def beliefs(self, now: float) -> Beliefs:
        """Return the changes at the estimated rates since the last visit to each page.

        For completely observed pages: the announced changes, and the expected unannounced ones.
        """
        hazard = self._hazard(now)
        complete, announced, missed = self._complete.columns(hazard)
        hazard = np.where(complete, _SURE * announced + missed * hazard, hazard)
        claimed = np.where(complete, 1, -1)
        return Beliefs(hazard, self._rate.rows, np.zeros(len(hazard)), claimed)

    def _hazard(self, now: float) -> Floats:
        """Return (n,), the changes expected since the last visits, without signals."""
        return self._rate.rows * np.maximum(now - self._last.rows, 0.0)

    def _polls(self, now: float) -> tuple[Rows, Floats, Floats]:
        """Return the rows of polled pages, A and A τ²/2 (m,): the value of polling now.

        A are the changes a day that their sources announce, weighted with importance; τ the days
        since the last poll.
        """
        rows, gain = self._complete.asked(self._importance.rows * self._rate.rows)
        return rows, gain, gain * np.maximum(now - self._last.rows[rows], 0.0) ** 2 / 2


class RateRanker(PolicyRanker):
    """A ranker by a plan of crawl rates, renewed as rates change.

    The time to the next visit has the mean 1/ρ: constant if the plan is evenly spaced,
    exponentially distributed if at Poisson times. The draw is a function of the page and the day of
    its last visit; it is not stored: with the same visits, the same pages are due.

    A completely observed page is due after as many announced changes as the plan has per visit. A
    source is polled when the value of that, A τ²/2, reaches the price of the plan.

    The value of a page is its importance times the days for which it has been due. If no page is
    due, the pages closest to it rank first: the whole budget is spent. The plan respects the limits
    of the hosts, and assigns the rest to pages of other hosts.
    """

    def __init__(
        self,
        rate_policy: policy.RatePolicy,
        budget: float,
        *,
        guard: str | None = None,
        together: bool = False,
    ) -> None:
        super().__init__(self._lateness, guard=guard, together=together)
        self._policy = rate_policy
        self._budget = budget
        self._plan: policy.CrawlPlan | None = None
        self._planned_at = -np.inf

    def hosts(self, queue: Rows, per_day: Floats, cost: Floats) -> None:
        """Apply these limits from the next plan on; compute it at once if they moved."""
        if not np.array_equal(queue, self._host) or not np.allclose(
            per_day, self._per_day, rtol=_MOVED, atol=0
        ):
            self._plan = None
        super().hosts(queue, per_day, cost)

    def beliefs(self, now: float) -> Beliefs:
        """Return the beliefs from the learnt rates, and the planned visits."""
        found = super().beliefs(now)
        planned = np.zeros(len(found.rate))
        if self._plan is not None:
            planned[: len(self._plan)] = self._plan.crawl_rate
        return replace(found, planned=planned)

    def _lateness(self, table: SourceTable, now: float) -> Floats:
        """Return (n,), importance times the days since a visit was due."""
        plan = self._current(table, now)
        rate, signals = np.zeros(len(table)), np.zeros(len(table), np.bool_)
        rate[: len(plan)] = plan.crawl_rate
        signals[: len(plan)] = plan.on_signals
        wait = self._draws(table.last_crawl) if plan.crawling == "poisson" else np.ones(len(rate))
        planned = rate > 0
        late = np.full(len(rate), -1.0)
        age = now - table.last_crawl[planned]
        late[planned] = age - wait[planned] / rate[planned]
        answers = np.flatnonzero(planned & signals & table.complete_observations)
        late[answers] = np.where(
            table.pending_signals[answers] >= self._answered(plan, answers, wait),
            now - self._complete.pending_since()[answers] + _AT_ONCE,
            np.minimum(late[answers], 0.0),
        )
        due = table.importance * late
        soon = np.exp(np.minimum(late[planned] * rate[planned], 0.0))
        not_due = np.zeros(len(rate))
        not_due[planned] = _NOT_DUE * soon
        found = np.where(late > 0, _NOT_DUE + due, not_due)
        if plan.price:
            rows, _, value = self._polls(now)
            found[rows] = np.where(value >= plan.price, value, found[rows])
        return found

    @staticmethod
    def _answered(plan: policy.CrawlPlan, rows: Rows, wait: Floats) -> Floats:
        """Return the number (m,) of the signal after the last visit that triggers the next one."""
        p = np.minimum(plan.crawl_probability[rows], 1.0)
        if plan.crawling == "periodic":
            return changes_per_crawl(np.ones(len(p)), p)
        with np.errstate(divide="ignore"):
            return 1.0 + np.floor(wait[rows] / -np.log1p(-p))

    def _current(self, table: SourceTable, now: float) -> policy.CrawlPlan:
        """Return the plan, computed again each day, or after many new pages."""
        plan = self._plan
        if plan is None or now >= self._planned_at + _DAYS or len(table) > _GROWN * len(plan):
            budget = self._budget
            if plan is not None and plan.price:
                polls = float(np.sqrt(self._polls(now)[1] / (2 * plan.price)).sum())
                budget -= min(polls, _MOST_POLLED * budget)
            plan = self._plan = self._policy.rates(table, budget)
            self._planned_at = now
        return plan

    @staticmethod
    def _draws(last: Floats) -> Floats:
        """Return (n,), exponentially distributed with mean 1, by the page and its last visit."""
        mixed = last.view(np.uint64) ^ np.arange(len(last), dtype=np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        share = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return -np.log1p(-share)


class IntervalRanker(PolicyRanker):
    """A ranker by an interval policy: the most overdue page first, regardless of importance.

    Before it is due, the value of a page is 0. Servers do not report when a page changed: the
    policy learns when a visit last saw a change. Rates are learnt as well, for forecasts.
    """

    def __init__(
        self,
        interval_policy: policy.IntervalPolicy,
        *,
        guard: str | None = None,
        together: bool = False,
    ) -> None:
        super().__init__(self._overdue, guard=guard, together=together)
        self._policy = interval_policy
        self._paces: list[policy.Pace | None] = []
        self._due = Column[np.float64](np.float64)
        self._modified = Column[np.float64](np.float64)

    def add(
        self, site: Rows, area: Rows, importance: Floats, at: Floats, pace: Floats | None = None
    ) -> None:
        """Append rows, which have no pace before the first visit."""
        super().add(site, area, importance, at, pace)
        self._paces += [None] * len(at)
        self._due.extend(np.full(len(at), np.inf))
        self._modified.extend(at)

    def learn(self, visits: VisitResults) -> None:
        """Set the paces of the visited pages."""
        super().learn(visits)
        rows, days, changed = visits.row.tolist(), visits.at.tolist(), visits.changed.tolist()
        for row, at, is_changed in zip(rows, days, changed, strict=True):
            if is_changed or self._paces[row] is None:
                self._modified.rows[row] = at
            self._set(row, self._paces[row], at, changed=is_changed)

    def restart(self) -> None:
        """Treat the last visit of each page as its first: another policy made the earlier ones."""
        last = self.table().last_crawl.tolist()
        for row in (row for row, pace in enumerate(self._paces) if pace is not None):
            self._modified.rows[row] = last[row]
            self._set(row, None, last[row], changed=False)

    def _set(self, row: int, before: policy.Pace | None, at: float, *, changed: bool) -> None:
        visit = policy.Revisit(at, changed, float(self._modified.rows[row]))
        try:
            pace = self._policy.next_interval(before, visit)
        except Exception as error:
            if self._guard is None:
                raise
            self._guard.report(f"{type(error).__name__}: {error}")
            self._due.rows[row] = at
        else:
            self._paces[row] = pace
            self._due.rows[row] = pace.due_at

    def due(self, now: float) -> Bools:
        """Return (n,), whether each page is due; a page before its first visit is not."""
        due: Bools = self._due.rows <= now
        return due

    def _overdue(self, _table: SourceTable, now: float) -> Floats:
        """Return (n,), days overdue."""
        return np.maximum(now - self._due.rows, 0.0)

    def inherit(self, old: int, new: int) -> None:
        """Copy a page's pace."""
        super().inherit(old, new)
        if self._paces[new] is None:
            self._paces[new] = self._paces[old]
            self._due.rows[new] = self._due.rows[old]
            self._modified.rows[new] = self._modified.rows[old]
