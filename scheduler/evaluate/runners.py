"""Carries out the plans of a rate policy: draws its crawls, and plans anew each day if it learns.

The crawls of each source, by what the plan says of it:

    by the clock, Poisson of rate ρ    Poisson(ρ · days) many, at uniform times
    by the clock, every 1/ρ days       when its phase, which runs at the rate ρ, passes 1
    on a signal, with probability p    each change with probability p
    on every k-th signal               the change at which k are pending, k = ⌈1/p⌉

A Poisson plan keeps its budget in the mean only: its crawls are reported as they came.

With a learner this is Algorithm 4 of Kolobov et al. (NeurIPS 2019) with epochs of a day: plan
with the estimates, crawl, take the evidence in. LLC is lambda_crawl, LLCA lambda_crawl_approx,
BLLC binary_lambda_crawl_floor. Differs from the paper in: notifications are counted wherever
they are heard, whatever is crawled.
"""

from __future__ import annotations

import heapq
from array import array
from dataclasses import dataclass, replace

import numpy as np

from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.costs import changes_per_crawl
from freshet.scheduler.evaluate.changes import ChangeProcess
from freshet.scheduler.evaluate.judging import Crawls
from freshet.scheduler.evaluate.learning import Learner
from freshet.scheduler.evaluate.world import Progress, World, silent, split, ticks
from freshet.scheduler.index_queue import IndexQueue
from freshet.scheduler.policy import (
    CrawlPlan,
    IndexPolicy,
    IntervalPolicy,
    Pace,
    RatePolicy,
    Revisit,
)
from freshet.scheduler.sources import Rows, SourceTable

# -- interval runner ---------------------------------------------------------
#
# Crawls by an interval policy: a queue of due times, most overdue first.
#
# The policy knows no budget, so the queue keeps it: every 1/R days the source whose due time is
# furthest back is crawled, if any is due; otherwise the crawl is left out. Servers do not say when
# a page changed: the policy learns whether it did, and when a crawl last saw a change.


@dataclass(frozen=True, slots=True)
class Queue:
    """What a crawler with an interval policy keeps of n sources.

    Their paces, the days of their last crawls, and of the last crawls that saw a change (the
    first capture counts as one).
    """

    paces: list[Pace]
    last_crawl: list[float]
    modified_at: list[float]

    @classmethod
    def begin(cls, policy: IntervalPolicy, last_crawl: Floats) -> Queue:
        """All sources have been captured once, on these days."""
        days: list[float] = last_crawl.tolist()
        captures = (Revisit(day, changed=False) for day in days)
        return cls([policy.next_interval(None, capture) for capture in captures], days, days.copy())

    def copied(self, rows: Rows, days: float) -> Queue:
        """A queue of sources that are where these rows were, ``days`` days later."""
        paces = [self.paces[row] for row in rows]
        return Queue(
            [replace(pace, due_at=pace.due_at - days) for pace in paces],
            [self.last_crawl[row] - days for row in rows],
            [self.modified_at[row] - days for row in rows],
        )


def run_intervals(
    policy: IntervalPolicy,
    world: World,
    queue: Queue,
    budget: float,
    progress: Progress = silent,
) -> Crawls:
    """All crawls from day 0 to the world's last; moves the queue on."""
    paces, last_crawl = queue.paces, queue.last_crawl
    due = [(pace.due_at, row) for row, pace in enumerate(paces)]
    heapq.heapify(due)
    source, at = array("q"), array("d")
    for begin, end in split(0.0, world.days, 1.0):
        for now in ticks(budget, begin, end):
            due_at, row = due[0]
            if due_at > now:
                continue
            changed = world.changes.between(row, last_crawl[row], now) > 0
            if changed:
                queue.modified_at[row] = now
            revisit = Revisit(now, changed, queue.modified_at[row])
            paces[row] = policy.next_interval(paces[row], revisit)
            heapq.heapreplace(due, (paces[row].due_at, row))
            last_crawl[row] = now
            source.append(row)
            at.append(now)
        progress(end)
    return Crawls(np.array(source, np.intp), np.array(at, np.float64))


# -- stationary --------------------------------------------------------------
#
# How old the copies are on day 0: as a policy that has always been at work has left them.
#
# A simulation that starts with fresh copies everywhere measures mostly how long they stay fresh.
# So every policy starts in the state to which it tends.
#
#     crawled                            age of the copy at a random moment    n, changes since
#     by the clock, Poisson of rate ρ    exponential, mean 1/ρ
#     by the clock, every 1/ρ days       uniform on (0, 1/ρ)
#     on a signal, with probability p    from n                                geometric, (1 − p)ⁿp
#     on every k-th signal               from n                                uniform, 0 … k − 1
#
# On signals the last crawl answered to the change before the n pending ones. A source that is
# never crawled was last seen when the history of the world begins; so was one whose n changes go
# back further.
#
#     ρ, p, k    crawl_rate, crawl_probability, ⌈1/p⌉ of the plan (see freshet.scheduler.costs)
#
# Index policies: scheduler.policies.optimal_intervals crawls a source at the moment at which its
# index reaches the price. Its plan is where greedy_index tends to, whose ages are uniform from 0
# to the threshold.
#
# Interval policies know neither importance nor budget: the state of a source depends on its change
# rate and on how long it waits in the queue, which is the same for all. So a thousand sources are
# crawled for four hundred days, and every source starts with the pace and the age of the one of
# them that is nearest in change rate.

#: No copy is older than a century: beyond that a rate of almost 0 gives ages without meaning.
_OLDEST_DAYS = 36_525.0
#: Nutch, the slower of the two, begins with 30 days and shortens them by a fifth at a time.
_SETTLING_DAYS = 400.0
_SAMPLE = 1_000


@dataclass(frozen=True, slots=True)
class Start:
    """Day 0: last crawls and pending signals, and how far each source's period has run, 0 to 1."""

    table: SourceTable
    phase: Floats


def under_plan(world: World, plan: CrawlPlan, rng: np.random.Generator) -> Start:
    """Day 0 of a crawler that has always followed this plan."""
    n = len(world)
    phase = rng.random(n)
    periods = phase if plan.crawling == "periodic" else rng.exponential(size=n)
    age = np.full(n, world.history)
    with np.errstate(over="ignore"):
        np.divide(periods, plan.crawl_rate, out=age, where=plan.crawl_rate > 0)
    last_crawl = -np.minimum(age, _OLDEST_DAYS)
    heard = np.flatnonzero(plan.on_signals)
    last_crawl[heard] = world.past_change(heard, _pending(plan, heard, phase[heard], rng))
    return Start(left_at(world, last_crawl), phase)


def round_robin(world: World, budget: float, rng: np.random.Generator) -> Start:
    """Day 0 of a crawler that has always visited all sources in turn, with this budget.

    No copy is older than the history: a learner compares it with what its first crawl finds.
    """
    phase = rng.random(len(world))
    age = np.minimum(phase * len(world) / budget, world.history)
    return Start(left_at(world, -age), phase)


def settled(
    policy: IntervalPolicy,
    world: World,
    process: ChangeProcess,
    budget: float,
    rng: np.random.Generator,
) -> Queue:
    """Day 0 of a crawler that has long followed an interval policy with this budget."""
    n = len(world)
    order = np.argsort(world.table.change_rate, kind="stable")
    m = min(n, _SAMPLE)
    sample = order[(2 * np.arange(m) + 1) * n // (2 * m)]
    some = World.draw(world.table.take(sample), process, world.history, _SETTLING_DAYS, rng)
    share = budget * m / n
    queue = Queue.begin(policy, round_robin(some, share, rng).table.last_crawl)
    run_intervals(policy, some, queue, share)
    nearest = np.empty(n, np.intp)
    nearest[order] = np.arange(n) * m // n
    return queue.copied(nearest, _SETTLING_DAYS)


def left_at(world: World, last_crawl: Floats) -> SourceTable:
    """The sources, last crawled on these days; their signals since then are pending."""
    table = world.table
    pending = np.zeros(len(table), np.int64)
    rows = np.flatnonzero(table.complete_observations)
    pending[rows] = world.changes.count(rows, last_crawl[rows], np.zeros(len(rows)))
    return replace(table, last_crawl=last_crawl, pending_signals=pending)


def _pending(plan: CrawlPlan, heard: Rows, phase: Floats, rng: np.random.Generator) -> Floats:
    """n, the changes since the last crawl; inf where no change is ever answered."""
    p = plan.crawl_probability[heard]
    crawled = plan.crawl_rate[heard] > 0
    if plan.crawling == "periodic":
        pending = np.floor(phase * changes_per_crawl(np.ones(len(p)), p))
    else:
        pending = rng.geometric(np.where(crawled, p, 1.0)) - 1.0
    return np.where(crawled, pending, np.inf)


#: What a sum of rates may exceed its budget by, for rounding.
_ROUNDING = 1e-6


class OverBudget(RuntimeError):
    """A policy would crawl more than its budget allows."""


def checked(plan: CrawlPlan, budget: float) -> CrawlPlan:
    """The plan, if it keeps the budget.

    Raises:
        OverBudget: if it does not.
    """
    spent = float(plan.crawl_rate.sum())
    # Written so that NaN is refused, too.
    if not spent <= budget * (1 + _ROUNDING):
        raise OverBudget(f"plans {spent:,.6g} crawls a day; its budget is {budget:,.6g}")
    return plan


def run_rates(
    policy: RatePolicy,
    world: World,
    start: Start,
    budget: float,
    rng: np.random.Generator,
    *,
    learner: Learner | None = None,
    progress: Progress = silent,
) -> Crawls:
    """All crawls from day 0 to the world's last.

    Raises:
        OverBudget: if a plan exceeds the budget.
    """
    execution = Execution(world, start, rng)
    if learner is None:
        plan = checked(policy.rates(start.table, budget), budget)
        return execution.crawls(plan, 0.0, world.days)
    done = []
    for begin, end in split(0.0, world.days, 1.0):
        plan = checked(policy.rates(learner.table, budget), budget)
        last_crawl = execution.last_crawl.copy()
        crawls = execution.crawls(plan, begin, end)
        learner.see(world, crawls, last_crawl)
        learner.hear(world, begin, end)
        learner.refresh()
        done.append(crawls)
        progress(end)
    return Crawls(
        np.concatenate([crawls.source for crawls in done]),
        np.concatenate([crawls.at for crawls in done]),
    )


class Execution:
    """The crawls of plans that follow one another.

    Attributes:
        last_crawl: (n,), each source's last crawl, in days.
    """

    def __init__(self, world: World, start: Start, rng: np.random.Generator) -> None:
        self._world = world
        self._rng = rng
        self._phase = start.phase.copy()
        self._pending = start.table.pending_signals.copy()
        self.last_crawl = start.table.last_crawl.copy()

    def crawls(self, plan: CrawlPlan, begin: float, end: float) -> Crawls:
        """The crawls of (begin, end], by source, then by time."""
        rate = np.where(plan.on_signals, 0.0, plan.crawl_rate)
        by_clock = self._periodic if plan.crawling == "periodic" else self._poisson
        source, at = by_clock(rate, begin, end)
        answering, when = self._on_signals(plan, begin, end)
        source, at = np.concatenate([source, answering]), np.concatenate([at, when])
        order = np.lexsort((at, source))
        source, at = source[order], at[order]
        # Times of one source ascend, and the last of equal rows is the one that stays.
        self.last_crawl[source] = at
        return Crawls(source, at)

    def _poisson(self, rate: Floats, begin: float, end: float) -> tuple[Rows, Floats]:
        number = self._rng.poisson(rate * (end - begin))
        source = np.repeat(np.arange(len(rate)), number)
        # Of random() 0 is a value and 1 is none: so the day's end belongs to it.
        return source, end - (end - begin) * self._rng.random(len(source))

    def _periodic(self, rate: Floats, begin: float, end: float) -> tuple[Rows, Floats]:
        reached = self._phase + rate * (end - begin)
        number = np.floor(reached).astype(np.intp)
        source = np.repeat(np.arange(len(rate)), number)
        nth = _ordinals(number)
        at = begin + (nth - self._phase[source]) / rate[source]
        self._phase = reached - number
        return source, np.minimum(at, end)

    def _on_signals(self, plan: CrawlPlan, begin: float, end: float) -> tuple[Rows, Floats]:
        rows = np.flatnonzero(plan.on_signals)
        source, at = self._world.changes_of(rows, begin, end)
        if plan.crawling == "poisson":
            crawled = plan.crawl_rate > 0
            p = np.where(crawled, plan.crawl_probability, 0.0)
            kept = self._rng.random(len(source)) < p[source]
            return source[kept], at[kept]
        number = np.bincount(source, minlength=len(plan))
        answered = self._every_kth(plan, source, _ordinals(number[rows]))
        return source[answered], at[answered]

    def _every_kth(self, plan: CrawlPlan, source: Rows, nth: Ints) -> Rows:
        """Which of the changes are answered, when each is its source's ``nth`` of these days."""
        p = np.where(plan.crawl_rate > 0, plan.crawl_probability, 0.0)
        k = changes_per_crawl(np.ones(len(p)), p)
        first = np.maximum(k - self._pending, 1.0)[source]
        with np.errstate(invalid="ignore"):
            answered = (nth >= first) & (np.mod(nth - first, k[source]) == 0)
        since = np.zeros(len(plan), np.int64)
        np.add.at(since, source, 1)
        self._pending += since
        chosen = np.flatnonzero(answered)
        # The last one stays: what came after it is pending.
        self._pending[source[chosen]] = since[source[chosen]] - nth[chosen]
        return chosen


def _ordinals(number: Ints | Rows) -> Ints:
    """1, 2, … number[0], 1, 2, … number[1], and so on."""
    starts = np.cumsum(number) - number
    return np.arange(1, int(number.sum()) + 1) - np.repeat(starts, number)


# -- index runner ------------------------------------------------------------
#
# Crawls by an index policy: every 1/R days the source that is worth most at that moment.
#
# Signals are heard when they come, between the crawls. A crawl that no source is worth is left
# out, and not made up for.
#
# With a learner the sources that were crawled get new estimates once an hour, as in a crawler that
# takes its observations in together; those that signal, once a day; and all, when the estimator
# has changed its mind about all.

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
