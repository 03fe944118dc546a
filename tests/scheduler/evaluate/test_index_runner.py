import numpy as np
import pytest

from freshet.scheduler import estimate
from freshet.scheduler.evaluate import runners
from freshet.scheduler.evaluate.changes import Poisson
from freshet.scheduler.evaluate.learning import Learner
from freshet.scheduler.evaluate.world import World
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.sources import SourceTable


def drawn(n: int = 120, days: float = 6.0) -> World:
    rng = np.random.default_rng(1)
    table = SourceTable.of(
        10 ** rng.uniform(-1, 1, n), 10 ** rng.uniform(-1, 0.5, n),
        complete_observations=rng.random(n) < 0.3,
    )  # fmt: skip
    return World.draw(table, Poisson(), 60.0, days, rng)


def test_there_is_one_crawl_every_budgeth_of_a_day() -> None:
    world = drawn()
    start = runners.round_robin(world, 24.0, np.random.default_rng(2)).table
    crawls = runners.run_index(GreedyIndex(), world, start, 24.0)
    np.testing.assert_allclose(np.diff(crawls.at), 1 / 24.0)
    assert len(crawls) == 24 * 6


def test_each_crawl_is_of_the_largest_index_with_the_signals_heard_until_then() -> None:
    world = drawn(n=40, days=3.0)
    start = runners.round_robin(world, 10.0, np.random.default_rng(2)).table
    crawls = runners.run_index(GreedyIndex(), world, start, 10.0)
    last_crawl, told = start.last_crawl.copy(), world.table.complete_observations
    for source, at in zip(crawls.source.tolist(), crawls.at.tolist(), strict=True):
        pending = world.changes.count(np.arange(40), last_crawl, np.full(40, at))
        table = SourceTable.of(
            world.table.importance, world.table.change_rate, complete_observations=told,
            last_crawl=last_crawl, pending_signals=np.where(told, pending, 0),
        )  # fmt: skip
        assert source == int(np.argmax(GreedyIndex().index(table, at)))
        last_crawl[source] = at


def test_what_was_given_is_left_as_it_was() -> None:
    world = drawn()
    start = runners.round_robin(world, 24.0, np.random.default_rng(2)).table
    before = start.last_crawl.copy()
    runners.run_index(GreedyIndex(), world, start, 24.0)
    assert start.last_crawl.tolist() == before.tolist()


def test_a_learner_sees_crawls_and_signals_only() -> None:
    """The world has no rates to look up: they are NaN."""
    world = drawn(n=200, days=8.0).blind()
    start = runners.round_robin(world, 60.0, np.random.default_rng(2)).table
    learner = Learner(start, estimate.load("empirical_bayes", start.host))
    crawls = runners.run_index(GreedyIndex(), world, start, 60.0, learner)
    assert len(crawls) == 60 * 8
    learner.refresh()
    assert np.isfinite(learner.table.change_rate).all()


def test_progress_is_told_day_by_day() -> None:
    days: list[float] = []
    world = drawn(days=2.5)
    start = runners.round_robin(world, 24.0, np.random.default_rng(2)).table
    runners.run_index(GreedyIndex(), world, start, 24.0, progress=days.append)
    assert days == pytest.approx([1.0, 2.0, 2.5])
