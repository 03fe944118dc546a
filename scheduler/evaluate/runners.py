"""The crawls of each kind of policy in a random world, and their initial state.

**Index and interval policies** are served (:mod:`scheduler.evaluate.serving`) the budget's visits
one by one, every 1/R days: to the source with the largest index, or with the earliest due time.
Signals arrive between batches. With a learner, crawled sources get new estimates once an hour,
sources with signals once a day, and all sources when the estimator has revised all estimates.
Servers do not report when a page changed: an interval policy learns whether it did, and when a
crawl last saw a change.

**Rate policies** make no choices while they run: their plan determines when each source is crawled.

    by the clock, Poisson of rate ρ    Poisson(ρ · days) crawls, at uniform times
    by the clock, every 1/ρ days       when its phase, which runs at the rate ρ, passes 1
    on a signal, with probability p    each change with probability p
    on every k-th signal               the change at which k are pending, k = ⌈1/p⌉

A Poisson plan spends its budget in the mean only: its actual crawls are reported. With a learner
this is Algorithm 4 of Kolobov et al. (NeurIPS 2019) with epochs of a day: plan with the estimates,
crawl, learn from the evidence. LLC is lambda_crawl, LLCA lambda_crawl_approx, BLLC
binary_lambda_crawl_floor. Differs from the paper in: all received notifications are counted,
regardless of the crawls.

**Day 0.** A simulation that starts with only fresh copies mostly measures how long they stay fresh.
So every policy starts in its steady state.

    crawled                            age of the copy at a random moment    n, changes since
    by the clock, Poisson of rate ρ    exponential, mean 1/ρ
    by the clock, every 1/ρ days       uniform on (0, 1/ρ)
    on a signal, with probability p    from n                                geometric, (1 − p)ⁿp
    on every k-th signal               from n                                uniform, 0 … k − 1

On signals, the change before the n pending ones triggered the last crawl. The last crawl of a
source that is never crawled is at the beginning of the world's history; so is the last crawl of a
source with n changes that begin before the history.

    ρ, p, k    crawl_rate, crawl_probability, ⌈1/p⌉ of the plan (see freshet.scheduler.costs)

Index policies: scheduler.policies.optimal_intervals crawls a source at the moment at which its
index reaches the price. Its plan is the steady state of greedy_index; ages are uniform from 0 to
the threshold.

Interval policies use neither importance nor budget: the state of a source depends on its change
rate and on its delay after it is due, which is the same for all. So a thousand sources are crawled
for four hundred days, and every source starts with the pace and the age of the one with the nearest
change rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from typing import Final

import numpy as np
from numpy.random import Generator

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.costs import changes_per_crawl
from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.evaluate.changes import ChangeProcess, members
from freshet.scheduler.evaluate.crawl_costs import Crawls, RateLearner, gaps_of
from freshet.scheduler.evaluate.serving import Batch, Progress, best_rows, serve, silent
from freshet.scheduler.evaluate.world import World
from freshet.scheduler.policy import (
    CrawlPlan,
    IndexPolicy,
    IntervalPolicy,
    Pace,
    RatePolicy,
    Revisit,
)
from freshet.scheduler.sources import Rows, SourceTable

#: The share of sources that is chosen with one valuation. The crawl of a source with a signal is
#: delayed by half a batch compared with single choices: here that adds about 0.1 % to the cost of
#: the best index. Due times of interval policies are days ahead.
_BATCH: Final = 1 / 2048
_INTERVAL_BATCH: Final = 1 / 256
#: The shares of sources that are crawled before candidates are renewed, and that are candidates.
_STRETCH: Final = 1 / 128
_CANDIDATES: Final = 1 / 32
_LEAST_CANDIDATES: Final = 64

#: Tolerance of the budget for a sum of rates, for rounding.
_ROUNDING = 1e-6
#: Maximum age of a copy, a century: at rates near 0, larger ages are meaningless.
_OLDEST_DAYS = 36_525.0
#: Nutch, the slower of the two, begins with 30 days and shortens them by a fifth at a time.
_SETTLING_DAYS = 400.0
_SAMPLE = 1_000


class OverBudget(RuntimeError):
    """A policy would crawl more than its budget allows."""


def split(begin: float, end: float, length: float) -> Iterator[tuple[float, float]]:
    """Yield the time from ``begin`` to ``end`` in parts of this length; the last may be shorter.

    >>> list(split(0.0, 2.5, 1.0))
    [(0.0, 1.0), (1.0, 2.0), (2.0, 2.5)]
    """
    # A last part that exists only by rounding belongs to the one before it.
    parts = ceil((end - begin) / length - 1e-6)
    edges = [begin + part * length for part in range(parts)]
    yield from zip(edges, [*edges[1:], end], strict=True)


def ticks(budget: float, begin: float, end: float) -> Floats:
    """Return the days in (begin, end] on which a crawl is due: in the middle of each 1/budget.

    >>> ticks(2.0, 0.0, 1.0).tolist()
    [0.25, 0.75]
    """
    first, after = np.floor(np.array([begin, end]) * budget + 0.5)
    moments: Floats = (np.arange(first, after) + 0.5) / budget
    return moments


class RandomWorld:
    """A random world as an environment of the serving loop.

    Args:
        world: the sources and their changes.
        last_crawl: (n,), each source's last crawl before day 0, in days.
        share: the share of sources that is chosen with one valuation.
        receiver: a ranker that receives the signals.
    """

    def __init__(
        self,
        world: World,
        last_crawl: Floats,
        share: float = _BATCH,
        *,
        receiver: IndexedSources | None = None,
    ) -> None:
        self._days = world.days
        self._size = max(int(len(world) * share), 1)
        # All changes in one ascending column, a range of numbers for each source.
        self._history, self._span = world.history, world.history + world.days + 1.0
        source = np.repeat(np.arange(len(world)), np.diff(world.changes.offsets))
        self._changes = self._key(source, world.changes.at)
        self._last = self._key(np.arange(len(world)), np.maximum(last_crawl, -world.history))
        self._receiver, self._delivered = receiver, 0
        self._signals = world.signals(0.0, world.days)
        self._source: list[Rows] = [np.empty(0, np.intp)]
        self._at: list[Floats] = [np.empty(0)]

    def batches(self, budget: float) -> Iterator[Batch]:
        """Yield the crawls that are due, one every 1/``budget`` days."""
        for begin, end in split(0.0, self._days, 1.0):
            moments = ticks(budget, begin, end)
            for first in range(0, len(moments), self._size):
                yield float(moments[first]), moments[first : first + self._size]

    def advance(self, now: float) -> None:
        """Deliver the signals until now."""
        if self._receiver is not None:
            source, at = self._signals
            first, self._delivered = self._delivered, int(np.searchsorted(at, now, "right"))
            new = slice(first, self._delivered)
            self._receiver.receive(source[new], at[new], now)

    def weighed(self, value: Floats, now: float) -> Floats:
        """Return the values unchanged."""
        return value

    def visit(self, rows: Rows, at: Floats) -> VisitResults:
        """Compare each source with its copy."""
        crawled = self._key(rows, at)
        edges = np.searchsorted(self._changes, [self._last[rows], crawled], "right")
        changed = edges[0] < edges[1]
        gone = np.zeros_like(changed)
        self._last[rows] = crawled
        self._source.append(rows)
        self._at.append(at)
        return VisitResults(rows, at, compared=~gone, changed=changed, gone=gone, moved=changed)

    def crawls(self) -> Crawls:
        """Return all crawls so far."""
        return Crawls(np.concatenate(self._source), np.concatenate(self._at))

    def _key(self, source: Rows, at: Floats) -> Floats:
        """Return numbers that ascend with the source, and within it with the day."""
        key: Floats = source * self._span + (at + self._history)
        return key


class IndexedSources:
    """A ranker for an index policy, with known rates or a learner.

    *Invariant.* At intervals, all sources are valued as of the end of the next interval, and the
    largest values become candidates. An index does not decrease between two events of its source,
    and a source with a signal becomes a candidate. *Consequence.* Until the end of the interval no
    other source outranks the candidates, of which few are crawled, and only candidates are valued.

    Args:
        policy: values the sources.
        table: the sources; its columns are copied.
        budget: R, crawls a day.
        learner: if rates are not known.
    """

    def __init__(
        self,
        policy: IndexPolicy,
        table: SourceTable,
        budget: float,
        learner: RateLearner | None = None,
    ) -> None:
        table = table if learner is None else learner.table
        self._table = table.take(np.arange(len(table)))
        self._index = policy.index
        self._learner = learner
        self._stretch, self._until = _STRETCH * len(table) / budget, -np.inf
        self._candidates, self._worth = np.empty(0, np.intp), np.zeros(len(table))
        self._seen: list[tuple[Rows, Floats, Floats, Bools]] = []
        self._hour, self._day = 1 / 24, 0.0
        self._received = np.zeros(len(table), np.int64)

    def values(self, now: float) -> Floats:
        """Return (n,) the index of each candidate, 0 for all others; valid until the next call."""
        n = len(self._table)
        if now >= self._until:
            self._until = now + self._stretch
            ahead = self._index(self._table, self._until)
            self._candidates = best_rows(ahead, max(int(n * _CANDIDATES), _LEAST_CANDIDATES))
        self._worth.fill(0.0)
        self._worth[self._candidates] = self._index(self._table.take(self._candidates), now)
        return self._worth

    def learn(self, visits: VisitResults) -> None:
        """Record the crawls; learn from them together, once an hour."""
        rows, before = visits.row, self._table.last_crawl[visits.row]
        self._table.last_crawl[rows] = visits.at
        self._table.pending_signals[rows] = 0
        if self._learner is not None:
            self._seen.append((rows, visits.at, visits.at - before, visits.changed))
            if visits.at[-1] >= self._hour:
                self._hour = (np.floor(visits.at[-1] * 24) + 1) / 24
                source, at, span, changed = map(np.concatenate, zip(*self._seen, strict=True))
                self._seen.clear()
                self._learner.see(source, at, span, changed)
                crawled = np.unique(source)
                moved, rate = self._learner.news(crawled)
                self._estimate(moved, rate)
                if moved is not crawled:
                    # All rates have moved, so the candidates may change.
                    self._until = -np.inf

    def receive(self, source: Rows, at: Floats, now: float) -> None:
        """Count the signals since the last crawls; learn from them once a day."""
        pending = source[at > self._table.last_crawl[source]]
        if len(pending):
            np.add.at(self._table.pending_signals, pending, 1)
            # A duplicate is valued twice, with the same result.
            self._candidates = np.append(self._candidates, pending)
        if self._learner is None:
            return
        if now >= self._day + 1:
            end = np.floor(now)
            past = at <= end
            np.add.at(self._received, source[past], 1)
            self._learner.receive(self._received[self._learner.complete], self._day, end)
            self._estimate(*self._learner.news(self._learner.complete))
            self._until = -np.inf
            self._received[:] = 0
            self._day, source = end, source[~past]
        np.add.at(self._received, source, 1)

    def _estimate(self, rows: Rows, rate: Floats) -> None:
        self._table.change_rate[rows] = rate
        # With complete observations, the signals are the changes.
        complete = self._table.complete_observations[rows]
        self._table.signal_rate[rows[complete]] = rate[complete]


class WaitingSources:
    """A ranker for an interval policy: the most overdue source first, no source before it is due.

    Attributes:
        paces: the paces of the n sources.
        last_crawl: (n,), days.
        modified_at: (n,), the days of the last crawls that saw a change; the first capture counts
            as a change.
        due_at: (n,), days.
    """

    def __init__(
        self, policy: IntervalPolicy, paces: list[Pace], last_crawl: Floats, modified_at: Floats
    ) -> None:
        self._policy = policy
        self.paces, self.last_crawl, self.modified_at = paces, last_crawl, modified_at
        self.due_at = np.array([pace.due_at for pace in paces])

    @classmethod
    def begin(cls, policy: IntervalPolicy, last_crawl: Floats) -> WaitingSources:
        """Begin with sources that have been captured once, on these days."""
        captures = (Revisit(day, changed=False) for day in last_crawl.tolist())
        paces = [policy.next_interval(None, capture) for capture in captures]
        return cls(policy, paces, last_crawl.copy(), last_crawl.copy())

    def copied(self, rows: Rows, days: float) -> WaitingSources:
        """Return sources with the state of these rows, ``days`` days later."""
        paces = [replace(pace, due_at=pace.due_at - days) for pace in self.paces]
        return WaitingSources(
            self._policy,
            [paces[row] for row in rows.tolist()],
            self.last_crawl[rows] - days,
            self.modified_at[rows] - days,
        )

    def values(self, now: float) -> Floats:
        """Return the days since each source was due, (n,)."""
        late = now - self.due_at
        # A source that is due at this exact moment has a value above 0.
        return np.where(late >= 0, late + np.finfo(float).tiny, 0.0)

    def learn(self, visits: VisitResults) -> None:
        """Set the next intervals of the crawled sources by the policy."""
        rows = visits.row
        self.last_crawl[rows] = visits.at
        self.modified_at[rows[visits.changed]] = visits.at[visits.changed]
        columns = rows, visits.at, visits.changed, self.modified_at[rows]
        for row, at, changed, modified_at in zip(*map(np.ndarray.tolist, columns), strict=True):
            revisit = Revisit(at, changed, modified_at)
            pace = self.paces[row] = self._policy.next_interval(self.paces[row], revisit)
            self.due_at[row] = pace.due_at


def run_index(
    policy: IndexPolicy,
    world: World,
    start: SourceTable,
    budget: float,
    learner: RateLearner | None = None,
    progress: Progress = silent,
) -> Crawls:
    """Return all crawls by an index policy, from day 0 to the world's last."""
    ranker = IndexedSources(policy, start, budget, learner)
    environment = RandomWorld(world, start.last_crawl, receiver=ranker)
    serve(ranker, environment, budget, progress)
    return environment.crawls()


def run_intervals(
    waiting: WaitingSources,
    world: World,
    budget: float,
    progress: Progress = silent,
    share: float = _INTERVAL_BATCH,
) -> Crawls:
    """Return all crawls by an interval policy, from day 0 to the world's last."""
    environment = RandomWorld(world, waiting.last_crawl, share)
    serve(waiting, environment, budget, progress)
    return environment.crawls()


def checked(plan: CrawlPlan, budget: float) -> CrawlPlan:
    """Return the plan if it is within the budget.

    Raises:
        OverBudget: if it is not.
    """
    spent = float(plan.crawl_rate.sum())
    # In this form, NaN is refused as well.
    if not spent <= budget * (1 + _ROUNDING):
        raise OverBudget(f"plans {spent:,.6g} crawls a day; its budget is {budget:,.6g}")
    return plan


def run_rates(
    policy: RatePolicy,
    world: World,
    start: tuple[SourceTable, Floats],
    budget: float,
    rng: Generator,
    *,
    learner: RateLearner | None = None,
    progress: Progress = silent,
) -> Crawls:
    """Return all crawls by a rate policy, from day 0 to the world's last.

    Raises:
        OverBudget: if a plan exceeds the budget.
    """
    table, phase = start
    execution = PlanExecution(world, table, phase, rng)
    if learner is None:
        plan = checked(policy.rates(table, budget), budget)
        return execution.crawls(plan, 0.0, world.days)
    done = []
    for begin, end in split(0.0, world.days, 1.0):
        plan = checked(policy.rates(learner.table, budget), budget)
        crawls = execution.learnt_from(learner, plan, begin, end)
        done.append((crawls.source, crawls.at))
        progress(end)
    return Crawls(*map(np.concatenate, zip(*done, strict=True)))


class PlanExecution:
    """The crawls of consecutive plans.

    Attributes:
        last_crawl: (n,), each source's last crawl, in days.
    """

    def __init__(self, world: World, table: SourceTable, phase: Floats, rng: Generator) -> None:
        self._world, self._rng = world, rng
        self._phase = phase.copy()
        self._pending = table.pending_signals.copy()
        self.last_crawl = table.last_crawl.copy()

    def crawls(self, plan: CrawlPlan, begin: float, end: float) -> Crawls:
        """Return the crawls of (begin, end], by source, then by time."""
        rate = np.where(plan.on_signals, 0.0, plan.crawl_rate)
        by_clock = self._periodic if plan.crawling == "periodic" else self._poisson
        source, at = by_clock(rate, begin, end)
        answering, when = self._on_signals(plan, begin, end)
        source, at = np.concatenate([source, answering]), np.concatenate([at, when])
        order = np.lexsort((at, source))
        source, at = source[order], at[order]
        # Times of one source ascend, and of equal rows the last assignment counts.
        self.last_crawl[source] = at
        return Crawls(source, at)

    def learnt_from(
        self, learner: RateLearner, plan: CrawlPlan, begin: float, end: float
    ) -> Crawls:
        """Return the same crawls, after a learner has learnt from them and from the signals."""
        last_crawl, changes = self.last_crawl.copy(), self._world.changes
        crawls = self.crawls(plan, begin, end)
        source, at, before = gaps_of(crawls, last_crawl)
        learner.see(source, at, at - before, changes.count(source, before, at) > 0)
        edges = np.full((2, len(learner.complete)), [[begin], [end]])
        learner.receive(changes.count(learner.complete, *edges), begin, end)
        learner.refresh()
        return crawls

    def _poisson(self, rate: Floats, begin: float, end: float) -> tuple[Rows, Floats]:
        source = np.repeat(np.arange(len(rate)), self._rng.poisson(rate * (end - begin)))
        # random() can return 0 but not 1: so the end of the interval is included.
        return source, end - (end - begin) * self._rng.random(len(source))

    def _periodic(self, rate: Floats, begin: float, end: float) -> tuple[Rows, Floats]:
        reached = self._phase + rate * (end - begin)
        number = np.floor(reached).astype(np.intp)
        source = np.repeat(np.arange(len(rate)), number)
        nth = members(np.ones_like(number), number)
        at = begin + (nth - self._phase[source]) / rate[source]
        self._phase = reached - number
        return source, np.minimum(at, end)

    def _on_signals(self, plan: CrawlPlan, begin: float, end: float) -> tuple[Rows, Floats]:
        rows = np.flatnonzero(plan.on_signals)
        source, at = self._world.changes_of(rows, begin, end)
        p = np.where(plan.crawl_rate > 0, plan.crawl_probability, 0.0)
        if plan.crawling == "poisson":
            kept = self._rng.random(len(source)) < p[source]
            return source[kept], at[kept]
        number = np.bincount(source, minlength=len(plan))
        # Each change is its source's nth in this interval.
        nth = members(np.ones(len(rows), np.int64), number[rows])
        k = changes_per_crawl(np.ones(len(p)), p)
        first = np.maximum(k - self._pending, 1.0)[source]
        with np.errstate(invalid="ignore"):
            answered = (nth >= first) & (np.mod(nth - first, k[source]) == 0)
        self._pending += number
        chosen = np.flatnonzero(answered)
        # The last assignment counts: later changes are pending.
        self._pending[source[chosen]] = number[source[chosen]] - nth[chosen]
        return source[chosen], at[chosen]


def under_plan(world: World, plan: CrawlPlan, rng: Generator) -> tuple[SourceTable, Floats]:
    """Return day 0 of a crawler that has always followed this plan.

    Returns the sources with last crawls and pending signals, and the elapsed share of each period,
    0 to 1.
    """
    n = len(world)
    phase = rng.random(n)
    periods = phase if plan.crawling == "periodic" else rng.exponential(size=n)
    age = np.full(n, world.history)
    with np.errstate(over="ignore"):
        np.divide(periods, plan.crawl_rate, out=age, where=plan.crawl_rate > 0)
    last_crawl = -np.minimum(age, _OLDEST_DAYS)
    signalled = np.flatnonzero(plan.on_signals)
    pending = _pending(plan, signalled, phase[signalled], rng)
    last_crawl[signalled] = world.past_change(signalled, pending)
    return left_at(world, last_crawl), phase


def round_robin(world: World, budget: float, rng: Generator) -> tuple[SourceTable, Floats]:
    """Return day 0, as above, of a crawler that has always used a round-robin schedule.

    No copy is older than the history: a learner compares it with the result of the first crawl.
    """
    phase = rng.random(len(world))
    age = np.minimum(phase * len(world) / budget, world.history)
    return left_at(world, -age), phase


def settled(
    policy: IntervalPolicy, world: World, process: ChangeProcess, budget: float, rng: Generator
) -> WaitingSources:
    """Return day 0 of a crawler that has long followed an interval policy with this budget."""
    n = len(world)
    order = np.argsort(world.table.change_rate, kind="stable")
    m = min(n, _SAMPLE)
    sample = order[(2 * np.arange(m) + 1) * n // (2 * m)]
    some = World.draw(world.table.take(sample), process, world.history, _SETTLING_DAYS, rng)
    share = budget * m / n
    start, _ = round_robin(some, share, rng)
    waiting = WaitingSources.begin(policy, start.last_crawl)
    run_intervals(waiting, some, share, share=1 / m)
    nearest = np.empty(n, np.intp)
    nearest[order] = np.arange(n) * m // n
    return waiting.copied(nearest, _SETTLING_DAYS)


def left_at(world: World, last_crawl: Floats) -> SourceTable:
    """Return the sources, last crawled on these days; their signals since then are pending."""
    table = world.table
    pending = np.zeros(len(table), np.int64)
    rows = np.flatnonzero(table.complete_observations)
    pending[rows] = world.changes.count(rows, last_crawl[rows], np.zeros(len(rows)))
    return replace(table, last_crawl=last_crawl, pending_signals=pending)


def _pending(plan: CrawlPlan, signalled: Rows, phase: Floats, rng: Generator) -> Floats:
    """Return n, the changes since the last crawl; inf if no change ever triggers a crawl."""
    p = plan.crawl_probability[signalled]
    crawled = plan.crawl_rate[signalled] > 0
    if plan.crawling == "periodic":
        pending = np.floor(phase * changes_per_crawl(np.ones(len(p)), p))
    else:
        pending = rng.geometric(np.where(crawled, p, 1.0)) - 1.0
    return np.where(crawled, pending, np.inf)
