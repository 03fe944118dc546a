from dataclasses import dataclass, field

import numpy as np

from freshet.scheduler.evaluate import runners
from freshet.scheduler.evaluate.changes import ChangeTimes
from freshet.scheduler.evaluate.runners import Queue
from freshet.scheduler.evaluate.world import World
from freshet.scheduler.policy import Pace, Revisit
from freshet.scheduler.sources import SourceTable


@dataclass(slots=True)
class Every:
    """Comes back after so many days, and notes what it is told."""

    days: float
    told: list[Revisit] = field(default_factory=list)

    def next_interval(self, _previous: Pace | None, observation: Revisit) -> Pace:
        self.told.append(observation)
        return Pace(self.days, observation.at + self.days)


def world(days: float = 4.0) -> World:
    table = SourceTable.of([1.0, 1.0], [1.0, 1.0])
    return World(table, ChangeTimes(np.array([0, 1, 1]), np.array([1.2])), 5.0, days)


def test_sources_are_crawled_when_they_are_due_and_the_budget_allows() -> None:
    queue = Queue.begin(Every(1.0), np.array([-1.0, -0.5]))
    crawls = runners.run_intervals(Every(1.0), world(), queue, 4.0)
    assert crawls.source.tolist()[:4] == [0, 1, 0, 1]
    assert crawls.at.tolist()[:4] == [0.125, 0.625, 1.125, 1.625]


def test_the_most_overdue_goes_first_when_the_budget_is_short() -> None:
    queue = Queue.begin(Every(0.1), np.array([-1.0, -2.0]))
    crawls = runners.run_intervals(Every(0.1), world(), queue, 1.0)
    assert crawls.source.tolist() == [1, 0, 1, 0]


def test_nothing_due_is_no_crawl() -> None:
    queue = Queue.begin(Every(3.0), np.array([-1.0, -1.0]))
    assert len(runners.run_intervals(Every(3.0), world(), queue, 10.0)) == 2


def test_the_policy_learns_whether_and_when_a_crawl_saw_a_change() -> None:
    policy = Every(1.0)
    queue = Queue.begin(policy, np.array([-1.0, -1.0]))
    policy.told.clear()
    runners.run_intervals(policy, world(), queue, 2.0)
    of_first = policy.told[::2]
    assert [revisit.changed for revisit in of_first] == [False, True, False, False]
    assert [revisit.modified_at for revisit in of_first] == [-1.0, 1.25, 1.25, 1.25]


def test_a_copied_queue_stands_some_days_later() -> None:
    queue = Queue.begin(Every(3.0), np.array([0.0, 1.0]))
    copied = queue.copied(np.array([1, 1, 0]), 2.0)
    assert copied.last_crawl == [-1.0, -1.0, -2.0]
    assert [pace.due_at for pace in copied.paces] == [2.0, 2.0, 1.0]
    assert copied.modified_at == copied.last_crawl
