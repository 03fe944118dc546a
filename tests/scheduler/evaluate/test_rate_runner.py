from dataclasses import dataclass, replace

import numpy as np
import pytest

from freshet.scheduler.evaluate import runners
from freshet.scheduler.evaluate.changes import Poisson
from freshet.scheduler.evaluate.judging import Crawls
from freshet.scheduler.evaluate.runners import OverBudget
from freshet.scheduler.evaluate.world import World
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl
from freshet.scheduler.policies.optimal_intervals import OptimalIntervals
from freshet.scheduler.policies.uniform import UniformCrawl
from freshet.scheduler.policy import CrawlPlan
from freshet.scheduler.sources import SourceTable


@dataclass(frozen=True, slots=True)
class Spendthrift:
    """Plans a tenth more than it may."""

    def rates(self, table: SourceTable, budget: float) -> CrawlPlan:
        plan = UniformCrawl().rates(table, budget)
        return replace(plan, crawl_rate=1.1 * plan.crawl_rate)


def drawn(*, complete: bool = False, n: int = 400, days: float = 20.0) -> World:
    table = SourceTable.of(
        np.linspace(1, 9, n), np.linspace(0.1, 3, n), complete_observations=np.full(n, complete)
    )
    return World.draw(table, Poisson(), 60.0, days, np.random.default_rng(1))


def run(
    policy: LambdaCrawl | OptimalIntervals | UniformCrawl | Spendthrift, world: World, budget: float
) -> tuple[CrawlPlan, Crawls]:
    rng = np.random.default_rng(2)
    plan = policy.rates(world.table, budget)
    start = runners.under_plan(world, plan, rng)
    return plan, runners.run_rates(policy, world, start, budget, rng)


def test_poisson_crawls_come_at_their_rates_and_at_random() -> None:
    world = drawn(days=400.0)
    plan, crawls = run(LambdaCrawl(), world, 100.0)
    counts = np.bincount(crawls.source, minlength=len(world))
    expected = plan.crawl_rate * 400
    assert (np.abs(counts - expected) < 6 * np.sqrt(expected)).all()
    assert len(crawls) == pytest.approx(40_000, rel=0.03)


def test_periodic_crawls_keep_their_intervals() -> None:
    world = drawn()
    plan, crawls = run(UniformCrawl("periodic"), world, 100.0)
    assert len(crawls) == pytest.approx(2_000, abs=400)
    gaps = np.diff(crawls.at)[np.diff(crawls.source) == 0]
    np.testing.assert_allclose(gaps, 1 / plan.crawl_rate[0], rtol=1e-9)


def test_every_kth_change_is_answered_at_its_moment() -> None:
    world = drawn(complete=True, n=200, days=50.0)
    plan, crawls = run(OptimalIntervals(), world, 60.0)
    for row in (50, 120, 199):
        every = round(1 / plan.crawl_probability[row])
        mine = crawls.at[crawls.source == row]
        _, changes = world.changes_of(np.array([row]), 0.0, 50.0)
        places = np.searchsorted(changes, mine)
        assert changes[places].tolist() == mine.tolist()
        assert (np.diff(places) == every).all()


def test_signals_are_answered_with_their_probability() -> None:
    world = drawn(complete=True, days=200.0)
    plan, crawls = run(LambdaCrawl(), world, 100.0)
    _, signals = world.signals(0.0, 200.0)
    assert np.isin(crawls.at, signals).all()
    assert len(crawls) == pytest.approx(20_000, rel=0.05)
    assert plan.left_over == 0


def test_a_plan_over_its_budget_is_caught() -> None:
    with pytest.raises(OverBudget, match=r"plans 110 crawls a day; its budget is 100"):
        run(Spendthrift(), drawn(), 100.0)


def test_a_plan_of_no_numbers_is_caught() -> None:
    plan = UniformCrawl().rates(SourceTable.of([1.0], [1.0]), 1.0)
    with pytest.raises(OverBudget):
        runners.checked(replace(plan, crawl_rate=np.array([np.nan])), 1.0)
