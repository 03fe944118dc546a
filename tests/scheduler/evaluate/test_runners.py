"""Policies run in random worlds as their kinds demand, from the state to which they tend."""

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler import estimate
from freshet.scheduler.evaluate import runners
from freshet.scheduler.evaluate.changes import ChangeTimes, poisson
from freshet.scheduler.evaluate.crawl_costs import Crawls, RateLearner
from freshet.scheduler.evaluate.runners import (
    OverBudget,
    WaitingSources,
    run_index,
    run_intervals,
    run_rates,
    split,
    ticks,
)
from freshet.scheduler.evaluate.world import World
from freshet.scheduler.policies.adaptive_intervals import NutchAdaptive
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl
from freshet.scheduler.policies.optimal_intervals import OptimalIntervals
from freshet.scheduler.policies.uniform import UniformCrawl
from freshet.scheduler.policy import CrawlPlan, Pace, Revisit
from freshet.scheduler.sources import SourceTable


def signalling(n: int = 120, days: float = 6.0) -> World:
    rng = np.random.default_rng(1)
    table = SourceTable.of(
        10 ** rng.uniform(-1, 1, n), 10 ** rng.uniform(-1, 0.5, n),
        complete_observations=rng.random(n) < 0.3,
    )  # fmt: skip
    return World.draw(table, poisson, 60.0, days, rng)


def test_there_is_one_crawl_every_budgeth_of_a_day() -> None:
    world = signalling()
    start, _ = runners.round_robin(world, 24.0, np.random.default_rng(2))
    crawls = run_index(GreedyIndex(), world, start, 24.0)
    np.testing.assert_allclose(np.diff(crawls.at), 1 / 24.0)
    assert len(crawls) == 24 * 6


def test_each_crawl_is_of_the_largest_index_with_the_signals_heard_until_then() -> None:
    world = signalling(n=40, days=3.0)
    start, _ = runners.round_robin(world, 10.0, np.random.default_rng(2))
    crawls = run_index(GreedyIndex(), world, start, 10.0)
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
    world = signalling()
    start, _ = runners.round_robin(world, 24.0, np.random.default_rng(2))
    before = start.last_crawl.copy()
    run_index(GreedyIndex(), world, start, 24.0)
    assert start.last_crawl.tolist() == before.tolist()


def test_a_learner_sees_crawls_and_signals_only() -> None:
    """The world has no rates to look up: they are NaN."""
    world = signalling(n=200, days=8.0).blind()
    start, _ = runners.round_robin(world, 60.0, np.random.default_rng(2))
    learner = RateLearner(start, estimate.load("empirical_bayes", start.host))
    crawls = run_index(GreedyIndex(), world, start, 60.0, learner)
    assert len(crawls) == 60 * 8
    learner.refresh()
    assert np.isfinite(learner.table.change_rate).all()


@dataclass(slots=True)
class Every:
    """Comes back after so many days, and notes what it is told."""

    days: float
    told: list[Revisit] = field(default_factory=list)

    def next_interval(self, _previous: Pace | None, observation: Revisit) -> Pace:
        self.told.append(observation)
        return Pace(self.days, observation.at + self.days)


def two_sources(days: float = 4.0) -> World:
    table = SourceTable.of([1.0, 1.0], [1.0, 1.0])
    return World(table, ChangeTimes(np.array([0, 1, 1]), np.array([1.2])), 5.0, days)


def test_sources_are_crawled_when_they_are_due_and_the_budget_allows() -> None:
    waiting = WaitingSources.begin(Every(1.0), np.array([-1.0, -0.5]))
    crawls = run_intervals(waiting, two_sources(), 4.0)
    assert crawls.source.tolist()[:4] == [0, 1, 0, 1]
    assert crawls.at.tolist()[:4] == [0.125, 0.625, 1.125, 1.625]


def test_the_most_overdue_goes_first_when_the_budget_is_short() -> None:
    waiting = WaitingSources.begin(Every(0.1), np.array([-1.0, -2.0]))
    crawls = run_intervals(waiting, two_sources(), 1.0)
    assert crawls.source.tolist() == [1, 0, 1, 0]


def test_nothing_due_is_no_crawl() -> None:
    waiting = WaitingSources.begin(Every(3.0), np.array([-1.0, -1.0]))
    assert len(run_intervals(waiting, two_sources(), 10.0)) == 2


def test_the_policy_learns_whether_and_when_a_crawl_saw_a_change() -> None:
    policy = Every(1.0)
    waiting = WaitingSources.begin(policy, np.array([-1.0, -1.0]))
    policy.told.clear()
    run_intervals(waiting, two_sources(), 2.0)
    of_first = policy.told[::2]
    assert [revisit.changed for revisit in of_first] == [False, True, False, False]
    assert [revisit.modified_at for revisit in of_first] == [-1.0, 1.25, 1.25, 1.25]


def test_copied_sources_stand_some_days_later() -> None:
    waiting = WaitingSources.begin(Every(3.0), np.array([0.0, 1.0]))
    copied = waiting.copied(np.array([1, 1, 0]), 2.0)
    assert copied.last_crawl.tolist() == [-1.0, -1.0, -2.0]
    assert [pace.due_at for pace in copied.paces] == [2.0, 2.0, 1.0]
    assert copied.modified_at.tolist() == copied.last_crawl.tolist()


@dataclass(frozen=True, slots=True)
class Spendthrift:
    """Plans a tenth more than it may."""

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        plan = UniformCrawl().rates(table, budget)
        return replace(plan, crawl_rate=1.1 * plan.crawl_rate)


def sources(*, complete: bool = False, n: int = 400, days: float = 20.0) -> World:
    table = SourceTable.of(
        np.linspace(1, 9, n), np.linspace(0.1, 3, n), complete_observations=np.full(n, complete)
    )
    return World.draw(table, poisson, 60.0, days, np.random.default_rng(1))


def carried_out(
    policy: LambdaCrawl | OptimalIntervals | UniformCrawl | Spendthrift, world: World, budget: float
) -> tuple[CrawlPlan, Crawls]:
    rng = np.random.default_rng(2)
    plan = policy.rates(world.table, budget)
    start = runners.under_plan(world, plan, rng)
    return plan, run_rates(policy, world, start, budget, rng)


def test_poisson_crawls_come_at_their_rates_and_at_random() -> None:
    world = sources(days=400.0)
    plan, crawls = carried_out(LambdaCrawl(), world, 100.0)
    counts = np.bincount(crawls.source, minlength=len(world))
    expected = plan.crawl_rate * 400
    assert (np.abs(counts - expected) < 6 * np.sqrt(expected)).all()
    assert len(crawls) == pytest.approx(40_000, rel=0.03)


def test_periodic_crawls_keep_their_intervals() -> None:
    world = sources()
    plan, crawls = carried_out(UniformCrawl("periodic"), world, 100.0)
    assert len(crawls) == pytest.approx(2_000, abs=400)
    gaps = np.diff(crawls.at)[np.diff(crawls.source) == 0]
    np.testing.assert_allclose(gaps, 1 / plan.crawl_rate[0], rtol=1e-9)


def test_every_kth_change_is_answered_at_its_moment() -> None:
    world = sources(complete=True, n=200, days=50.0)
    plan, crawls = carried_out(OptimalIntervals(), world, 60.0)
    for row in (50, 120, 199):
        every = round(1 / plan.crawl_probability[row])
        mine = crawls.at[crawls.source == row]
        _, changes = world.changes_of(np.array([row]), 0.0, 50.0)
        places = np.searchsorted(changes, mine)
        assert changes[places].tolist() == mine.tolist()
        assert (np.diff(places) == every).all()


def test_signals_are_answered_with_their_probability() -> None:
    world = sources(complete=True, days=200.0)
    plan, crawls = carried_out(LambdaCrawl(), world, 100.0)
    _, signals = world.signals(0.0, 200.0)
    assert np.isin(crawls.at, signals).all()
    assert len(crawls) == pytest.approx(20_000, rel=0.05)
    assert plan.left_over == 0


def test_a_plan_over_its_budget_is_caught() -> None:
    with pytest.raises(OverBudget, match=r"plans 110 crawls a day; its budget is 100"):
        carried_out(Spendthrift(), sources(), 100.0)


def test_a_plan_of_no_numbers_is_caught() -> None:
    plan = UniformCrawl().rates(SourceTable.of([1.0], [1.0]), 1.0)
    with pytest.raises(OverBudget):
        runners.checked(replace(plan, crawl_rate=np.array([np.nan])), 1.0)


def drawn(n: int = 4_000, *, complete: bool = False) -> World:
    table = SourceTable.of(np.ones(n), np.full(n, 0.5), complete_observations=np.full(n, complete))
    return World.draw(table, poisson, 60.0, 5.0, np.random.default_rng(1))


def test_under_poisson_crawling_ages_are_exponential() -> None:
    world = drawn()
    plan = LambdaCrawl().rates(world.table, 1_000.0)
    age = -runners.under_plan(world, plan, np.random.default_rng(2))[0].last_crawl
    assert age.mean() == pytest.approx(4.0, rel=0.05)
    assert age.std() == pytest.approx(4.0, rel=0.05)


def test_under_periodic_crawling_ages_are_uniform_up_to_the_interval() -> None:
    world = drawn()
    plan = OptimalIntervals().rates(world.table, 1_000.0)
    start, phase = runners.under_plan(world, plan, np.random.default_rng(2))
    age = -start.last_crawl
    assert age.max() <= 4.0
    counts, _ = np.histogram(age, bins=8, range=(0, 4))
    assert counts.min() > 400
    np.testing.assert_allclose(age, phase * 4.0)


def test_pending_changes_are_geometric_where_each_is_answered_by_chance() -> None:
    world = drawn(complete=True)
    plan = LambdaCrawl().rates(world.table, 1_000.0)
    start, _ = runners.under_plan(world, plan, np.random.default_rng(2))
    p = plan.crawl_probability[0]
    assert p == pytest.approx(0.5)
    assert (start.pending_signals == 0).mean() == pytest.approx(p, abs=0.03)
    assert start.pending_signals.mean() == pytest.approx((1 - p) / p, abs=0.06)


def test_pending_changes_are_uniform_below_the_threshold_where_every_kth_is_answered() -> None:
    world = drawn(complete=True)
    plan = OptimalIntervals().rates(world.table, 500.0)
    start, _ = runners.under_plan(world, plan, np.random.default_rng(2))
    assert np.unique(start.pending_signals).tolist() == [0, 1, 2, 3]


def test_sources_never_crawled_are_as_old_as_the_history() -> None:
    table = SourceTable.of([1.0, 0.0], [1.0, 1.0])
    world = World.draw(table, poisson, 30.0, 5.0, np.random.default_rng(1))
    plan = LambdaCrawl().rates(table, 1.0)
    start, _ = runners.under_plan(world, plan, np.random.default_rng(2))
    assert start.last_crawl[1] == -30


def test_a_round_robin_has_visited_each_source_within_one_round() -> None:
    world = drawn()
    age = -runners.round_robin(world, 1_000.0, np.random.default_rng(2))[0].last_crawl
    assert age.max() <= 4.0
    assert age.mean() == pytest.approx(2.0, rel=0.05)


def test_an_interval_policy_starts_with_paces_that_it_has_come_to() -> None:
    world = drawn(300)
    queue = runners.settled(NutchAdaptive(), world, poisson, 60.0, np.random.default_rng(3))
    assert len(queue.paces) == len(queue.last_crawl) == len(queue.modified_at) == 300
    assert max(queue.last_crawl) <= 0
    assert all(
        seen <= crawl for seen, crawl in zip(queue.modified_at, queue.last_crawl, strict=True)
    )
    assert np.median([pace.interval for pace in queue.paces]) < 30


def test_what_a_learner_first_compares_its_crawls_with_is_within_the_history() -> None:
    world = drawn()
    start, _ = runners.round_robin(world, 1.0, np.random.default_rng(2))
    assert start.last_crawl.min() == -60


@given(st.floats(0.0, 50.0), st.floats(0.1, 50.0), st.floats(0.05, 3.0))
def test_parts_follow_one_another_and_are_never_longer_than_asked(
    begin: float, length: float, part: float
) -> None:
    parts = list(split(begin, begin + length, part))
    assert parts[0][0] == begin
    assert parts[-1][1] == begin + length
    assert all(one[1] == other[0] for one, other in pairwise(parts))
    assert all(end - start <= part * (1 + 1e-5) for start, end in parts)


@given(st.floats(0.5, 500.0), st.integers(1, 40))
def test_every_moment_of_a_crawl_falls_into_one_part_only(budget: float, whole: int) -> None:
    together = ticks(budget, 0.0, float(whole))
    pieces = [moment for part in split(0.0, float(whole), 1.0) for moment in ticks(budget, *part)]
    assert pieces == pytest.approx(together)
    assert len(together) == pytest.approx(budget * whole, abs=1)


def test_an_interval_policy_sees_what_changed_since_the_last_crawl_of_each_source() -> None:
    """RandomWorld's one column of all changes says the same as the changes of each source."""
    world = signalling(n=60, days=8.0)
    last_crawl = -60 * np.random.default_rng(4).random(60)
    environment = runners.RandomWorld(world, last_crawl)
    for day in range(1, 8):
        rows, at = np.arange(60), np.full(60, float(day))
        visits = environment.visit(rows, at)
        changed = world.changes.count(rows, last_crawl, at) > 0
        assert visits.changed.tolist() == changed.tolist()
        last_crawl = at
