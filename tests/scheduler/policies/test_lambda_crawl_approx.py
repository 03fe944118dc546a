import numpy as np
import pytest
from hypothesis import given

from freshet.scheduler.costs import plan_costs
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl, LambdaCrawlApprox
from freshet.scheduler.sources import SourceTable
from tests.scheduler.policies.tables import BUDGETS, source_tables


@given(source_tables(spread=2.0), BUDGETS)
def test_without_signals_rates_go_by_importance_alone(table: SourceTable, budget: float) -> None:
    plan = LambdaCrawlApprox().rates(table, budget)
    clock = ~table.complete_observations & (table.importance > 0) & (table.change_rate > 0)
    per_importance = plan.crawl_rate[clock] / table.importance[clock]
    np.testing.assert_allclose(per_importance, per_importance.max(initial=0.0), rtol=1e-10)
    assert plan.crawl_rate.sum() + plan.left_over == pytest.approx(budget, rel=1e-12)


@given(source_tables(spread=2.0), BUDGETS)
def test_it_never_costs_less_than_the_optimum(table: SourceTable, budget: float) -> None:
    approximate, best = (
        plan_costs(table, policy.rates(table, budget)).harmonic.sum()
        for policy in (LambdaCrawlApprox(), LambdaCrawl())
    )
    assert approximate >= best * (1 - 1e-12)


def test_it_is_the_optimum_where_importance_is_in_proportion_to_change_rate() -> None:
    """Prop. 9."""
    rng = np.random.default_rng(1)
    delta = 10 ** rng.uniform(-1, 1, 20)
    complete = rng.random(20) < 0.3
    table = SourceTable.of(3 * delta, delta, complete_observations=complete)
    np.testing.assert_allclose(
        LambdaCrawlApprox().rates(table, 7.0).crawl_rate,
        LambdaCrawl().rates(table, 7.0).crawl_rate,
        rtol=1e-10,
    )


def test_it_has_no_price() -> None:
    plan = LambdaCrawlApprox("periodic").rates(SourceTable.of([1.0], [1.0]), 1.0)
    assert (plan.price, plan.host_price, plan.crawling) == (None, None, "periodic")


@pytest.mark.parametrize(
    ("importance", "change_rate"),
    [([1e308, 1e308], [1.0, 1.0]), ([1.0, 1.0], [1e308, 1e308]), ([1e-300, 1e-310], [1e200, 1.0])],
)
def test_sums_that_leave_the_range_of_numbers_are_refused_and_not_warned_of(
    importance: list[float], change_rate: list[float]
) -> None:
    with pytest.raises(ValueError, match="importance, change_rate: some are too large"):
        LambdaCrawlApprox().rates(SourceTable.of(importance, change_rate), 1.0)
