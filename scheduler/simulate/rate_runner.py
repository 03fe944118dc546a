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

import numpy as np

from freshet.scheduler.arguments import Floats, Ints
from freshet.scheduler.freshness import changes_per_crawl
from freshet.scheduler.policy import CrawlPlan, RatePolicy
from freshet.scheduler.simulate.days import Progress, silent, split
from freshet.scheduler.simulate.judging import Crawls
from freshet.scheduler.simulate.learning import Learner
from freshet.scheduler.simulate.stationary import Start
from freshet.scheduler.simulate.world import World
from freshet.scheduler.sources import Rows

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
