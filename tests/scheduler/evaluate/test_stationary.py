"""Day 0 is a day like any other under the policy."""

import numpy as np
import pytest

from freshet.scheduler.evaluate import runners
from freshet.scheduler.evaluate.changes import Poisson
from freshet.scheduler.evaluate.world import World
from freshet.scheduler.policies.adaptive_intervals import NutchAdaptive
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl
from freshet.scheduler.policies.optimal_intervals import OptimalIntervals
from freshet.scheduler.sources import SourceTable


def drawn(n: int = 4_000, *, complete: bool = False) -> World:
    table = SourceTable.of(np.ones(n), np.full(n, 0.5), complete_observations=np.full(n, complete))
    return World.draw(table, Poisson(), 60.0, 5.0, np.random.default_rng(1))


def test_under_poisson_crawling_ages_are_exponential() -> None:
    world = drawn()
    plan = LambdaCrawl().rates(world.table, 1_000.0)
    age = -runners.under_plan(world, plan, np.random.default_rng(2)).table.last_crawl
    assert age.mean() == pytest.approx(4.0, rel=0.05)
    assert age.std() == pytest.approx(4.0, rel=0.05)


def test_under_periodic_crawling_ages_are_uniform_up_to_the_interval() -> None:
    world = drawn()
    plan = OptimalIntervals().rates(world.table, 1_000.0)
    start = runners.under_plan(world, plan, np.random.default_rng(2))
    age = -start.table.last_crawl
    assert age.max() <= 4.0
    counts, _ = np.histogram(age, bins=8, range=(0, 4))
    assert counts.min() > 400
    np.testing.assert_allclose(age, start.phase * 4.0)


def test_pending_changes_are_geometric_where_each_is_answered_by_chance() -> None:
    world = drawn(complete=True)
    plan = LambdaCrawl().rates(world.table, 1_000.0)
    start = runners.under_plan(world, plan, np.random.default_rng(2)).table
    p = plan.crawl_probability[0]
    assert p == pytest.approx(0.5)
    assert (start.pending_signals == 0).mean() == pytest.approx(p, abs=0.03)
    assert start.pending_signals.mean() == pytest.approx((1 - p) / p, abs=0.06)


def test_pending_changes_are_uniform_below_the_threshold_where_every_kth_is_answered() -> None:
    world = drawn(complete=True)
    plan = OptimalIntervals().rates(world.table, 500.0)
    start = runners.under_plan(world, plan, np.random.default_rng(2)).table
    assert np.unique(start.pending_signals).tolist() == [0, 1, 2, 3]


def test_sources_never_crawled_are_as_old_as_the_history() -> None:
    table = SourceTable.of([1.0, 0.0], [1.0, 1.0])
    world = World.draw(table, Poisson(), 30.0, 5.0, np.random.default_rng(1))
    plan = LambdaCrawl().rates(table, 1.0)
    start = runners.under_plan(world, plan, np.random.default_rng(2)).table
    assert start.last_crawl[1] == -30


def test_a_round_robin_has_visited_each_source_within_one_round() -> None:
    world = drawn()
    age = -runners.round_robin(world, 1_000.0, np.random.default_rng(2)).table.last_crawl
    assert age.max() <= 4.0
    assert age.mean() == pytest.approx(2.0, rel=0.05)


def test_an_interval_policy_starts_with_paces_that_it_has_come_to() -> None:
    world = drawn(300)
    queue = runners.settled(NutchAdaptive(), world, Poisson(), 60.0, np.random.default_rng(3))
    assert len(queue.paces) == len(queue.last_crawl) == len(queue.modified_at) == 300
    assert max(queue.last_crawl) <= 0
    assert all(
        seen <= crawl for seen, crawl in zip(queue.modified_at, queue.last_crawl, strict=True)
    )
    assert np.median([pace.interval for pace in queue.paces]) < 30


def test_what_a_learner_first_compares_its_crawls_with_is_within_the_history() -> None:
    world = drawn()
    start = runners.round_robin(world, 1.0, np.random.default_rng(2)).table
    assert start.last_crawl.min() == -60
