import numpy as np
import pytest

from freshet.scheduler import estimate
from freshet.scheduler.evaluate.changes import ChangeTimes
from freshet.scheduler.evaluate.judging import Crawls
from freshet.scheduler.evaluate.learning import Learner
from freshet.scheduler.evaluate.world import World
from freshet.scheduler.sources import SourceTable


def two_sources() -> World:
    """The first is watched by crawls, the second tells of its changes; no rate is known."""
    table = SourceTable.of([1.0, 1.0], [1.0, 1.0], complete_observations=[False, True])
    changes = ChangeTimes(np.array([0, 2, 4]), np.array([0.5, 3.5, 0.2, 0.4]))
    return World(table, changes, 1.0, 4.0).blind()


@pytest.mark.parametrize("name", estimate.ESTIMATORS)
def test_crawls_teach_of_the_first_and_signals_of_the_second(name: str) -> None:
    world = two_sources()
    learner = Learner(world.table, estimate.load(name, world.table.host))
    before = learner.table.change_rate.copy()
    learner.see(world, Crawls(np.array([0, 0]), np.array([1.0, 2.0])), np.array([0.0, 0.0]))
    learner.refresh()
    assert learner.table.change_rate[0] != before[0]
    learner.hear(world, 0.0, 1.0)
    learner.refresh()
    assert learner.table.change_rate[1] > before[1]
    assert learner.table.signal_rate[1] == learner.table.change_rate[1]


def test_what_a_crawl_shows_of_a_source_that_tells_is_not_counted_twice() -> None:
    world = two_sources()
    learner = Learner(world.table, estimate.load("poisson_mle", world.table.host))
    before = learner.table.change_rate.copy()
    learner.see(world, Crawls(np.array([1]), np.array([1.0])), np.array([0.0, 0.0]))
    learner.refresh()
    assert learner.table.change_rate.tolist() == before.tolist()


def test_news_are_of_the_rows_asked_for() -> None:
    world = two_sources()
    learner = Learner(world.table, estimate.load("poisson_mle", world.table.host))
    learner.see(world, Crawls(np.array([0]), np.array([1.0])), np.array([0.0, 0.0]))
    rows, rates = learner.news(np.array([0]))
    assert rows.tolist() == [0]
    assert len(rates) == 1
