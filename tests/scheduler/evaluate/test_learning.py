import numpy as np
import pytest

from freshet.scheduler import estimate
from freshet.scheduler.evaluate.judging import Crawls, RateLearner, gaps_of
from freshet.scheduler.sources import SourceTable


def learner_of(name: str) -> RateLearner:
    """The first of two sources is watched by crawls, the second tells of its changes."""
    table = SourceTable.of([1.0, 1.0], [1.0, 1.0], complete_observations=[False, True])
    return RateLearner(table, estimate.load(name, table.host))


def see(learner: RateLearner, row: int, *days: float) -> None:
    """Each of these crawls, day after day, finds a change."""
    crawls = Crawls(np.full(len(days), row), np.array(days))
    source, at, before = gaps_of(crawls, np.zeros(2))
    learner.see(source, at, at - before, np.ones(len(days), np.bool_))


@pytest.mark.parametrize("name", estimate.ESTIMATORS)
def test_crawls_teach_of_the_first_and_signals_of_the_second(name: str) -> None:
    learner = learner_of(name)
    before = learner.table.change_rate.copy()
    see(learner, 0, 1.0, 2.0)
    learner.refresh()
    assert learner.table.change_rate[0] != before[0]
    learner.hear(np.array([2]), 0.0, 1.0)
    learner.refresh()
    assert learner.table.change_rate[1] > before[1]
    assert learner.table.signal_rate[1] == learner.table.change_rate[1]


def test_what_a_crawl_shows_of_a_source_that_tells_is_not_counted_twice() -> None:
    learner = learner_of("poisson_mle")
    before = learner.table.change_rate.copy()
    see(learner, 1, 1.0)
    learner.refresh()
    assert learner.table.change_rate.tolist() == before.tolist()


def test_news_are_of_the_rows_asked_for() -> None:
    learner = learner_of("poisson_mle")
    see(learner, 0, 1.0)
    rows, rates = learner.news(np.array([0]))
    assert rows.tolist() == [0]
    assert len(rates) == 1


def test_the_gap_of_a_first_crawl_begins_with_the_copy_before() -> None:
    source, at, before = gaps_of(
        Crawls(np.array([1, 0, 1]), np.array([3.0, 2.0, 1.0])), np.array([0.5, -1.0])
    )
    assert (source.tolist(), at.tolist()) == ([0, 1, 1], [2.0, 1.0, 3.0])
    assert before.tolist() == [0.5, -1.0, 1.0]
