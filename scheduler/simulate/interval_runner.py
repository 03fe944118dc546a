"""Crawls by an interval policy: a queue of due times, most overdue first.

The policy knows no budget, so the queue keeps it: every 1/R days the source whose due time is
furthest back is crawled, if any is due; otherwise the crawl is left out. Servers do not say when
a page changed: the policy learns whether it did, and when a crawl last saw a change.
"""

from __future__ import annotations

import heapq
from array import array
from dataclasses import dataclass, replace

import numpy as np

from freshet.scheduler.arguments import Floats
from freshet.scheduler.policy import IntervalPolicy, Pace, Revisit
from freshet.scheduler.simulate.days import Progress, silent, split, ticks
from freshet.scheduler.simulate.judging import Crawls
from freshet.scheduler.simulate.world import World
from freshet.scheduler.sources import Rows


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
