"""How old the copies are on day 0: as a policy that has always been at work has left them.

A simulation that starts with fresh copies everywhere measures mostly how long they stay fresh.
So every policy starts in the state to which it tends.

    crawled                            age of the copy at a random moment    n, changes since
    by the clock, Poisson of rate ρ    exponential, mean 1/ρ
    by the clock, every 1/ρ days       uniform on (0, 1/ρ)
    on a signal, with probability p    from n                                geometric, (1 − p)ⁿp
    on every k-th signal               from n                                uniform, 0 … k − 1

On signals the last crawl answered to the change before the n pending ones. A source that is
never crawled was last seen when the history of the world begins; so was one whose n changes go
back further.

    ρ, p, k    crawl_rate, crawl_probability, ⌈1/p⌉ of the plan (see freshet.scheduler.freshness)

Index policies: scheduler.policies.optimal_intervals crawls a source at the moment at which its
index reaches the price. Its plan is where greedy_index tends to, whose ages are uniform from 0
to the threshold.

Interval policies know neither importance nor budget: the state of a source depends on its change
rate and on how long it waits in the queue, which is the same for all. So a thousand sources are
crawled for four hundred days, and every source starts with the pace and the age of the one of
them that is nearest in change rate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from freshet.scheduler.arguments import Floats
from freshet.scheduler.freshness import changes_per_crawl
from freshet.scheduler.policy import CrawlPlan, IntervalPolicy
from freshet.scheduler.simulate import interval_runner
from freshet.scheduler.simulate.changes import ChangeProcess
from freshet.scheduler.simulate.interval_runner import Queue
from freshet.scheduler.simulate.world import World
from freshet.scheduler.sources import Rows, SourceTable

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
    interval_runner.run_intervals(policy, some, queue, share)
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
