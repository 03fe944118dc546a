import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from freshet.scheduler.arrays import Floats
from freshet.scheduler.costs import harmonic_cost, plan_costs
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl
from freshet.scheduler.policies.optimal_intervals import OptimalIntervals
from freshet.scheduler.solve.demand import changes_at
from freshet.scheduler.sources import SourceTable
from scripts.reproductions.relaxed_bound import relaxed_bound
from tests.scheduler.policies.tables import BUDGETS, host_totals, source_tables


def interval_at(mu: Floats, delta: Floats, price: float) -> Floats:
    """The best days T between two crawls at a price."""
    return changes_at(price * delta / mu) / delta


@pytest.mark.parametrize(
    ("mu", "delta", "price"), [(1.0, 1.0, 0.5), (4.0, 0.1, 3.0), (1.0, 9.0, 2.0)]
)
def test_no_other_interval_costs_less_at_the_price(mu: float, delta: float, price: float) -> None:
    (best,) = interval_at(np.array([mu]), np.array([delta]), price).tolist()

    def total(log_days: float) -> float:
        rate = np.exp(-log_days)
        return harmonic_cost([mu], [delta], [rate], crawling="periodic") + price * float(rate)

    found = minimize_scalar(total, bounds=(np.log(best) - 2, np.log(best) + 2), method="bounded")
    assert total(np.log(best)) <= found.fun * (1 + 1e-9)


def test_at_its_interval_the_index_of_a_source_is_the_price() -> None:
    rng = np.random.default_rng(2)
    mu, delta = 10 ** rng.uniform(-1, 1, (2, 30))
    days = interval_at(mu, delta, 0.7)
    index = GreedyIndex().index(SourceTable.of(mu, delta, last_crawl=-days), 0.0)
    np.testing.assert_allclose(index, 0.7, rtol=1e-10)


@given(source_tables(spread=2.0, complete=False), BUDGETS)
def test_the_budget_is_spent_at_one_price(table: SourceTable, budget: float) -> None:
    plan = OptimalIntervals().rates(table, budget)
    assert plan.crawling == "periodic"
    assert plan.crawl_rate.sum() + plan.left_over == pytest.approx(budget, rel=1e-9)
    if plan.price:
        crawled = plan.crawl_rate > 0
        expected = interval_at(table.importance[crawled], table.change_rate[crawled], plan.price)
        np.testing.assert_allclose(1 / plan.crawl_rate[crawled], expected, rtol=1e-9)


@given(source_tables(spread=2.0, hosts=True), BUDGETS)
def test_budget_capacities_and_whole_changes_are_kept(table: SourceTable, budget: float) -> None:
    plan = OptimalIntervals().rates(table, budget)
    assert plan.crawl_rate.sum() <= budget * (1 + 1e-9)
    assert (host_totals(table, plan.crawl_rate) <= table.host_capacity * (1 + 1e-9)).all()
    told = table.complete_observations & (plan.crawl_rate > 0)
    every = 1 / plan.crawl_probability[told]
    np.testing.assert_allclose(every, np.round(every), rtol=1e-9)


@given(source_tables(spread=2.0), BUDGETS)
def test_it_costs_no_less_than_the_bound_and_no_more_than_the_same_rates_at_random(
    table: SourceTable, budget: float
) -> None:
    plan = OptimalIntervals().rates(table, budget)
    cost = float(plan_costs(table, plan).harmonic.sum())
    assert cost >= relaxed_bound(table, budget) * (1 - 1e-9) - 1e-12


def test_among_many_sources_the_bound_is_reached() -> None:
    rng = np.random.default_rng(3)
    table = SourceTable.of(
        *(10 ** rng.uniform(-1, 1, (2, 2_000))), complete_observations=rng.random(2_000) < 0.1
    )
    cost = float(plan_costs(table, OptimalIntervals().rates(table, 400.0)).harmonic.sum())
    bound = relaxed_bound(table, 400.0)
    poisson = float(plan_costs(table, LambdaCrawl().rates(table, 400.0)).harmonic.sum())
    assert bound <= cost <= 1.001 * bound
    assert cost < 0.8 * poisson


@given(st.floats(0.1, 10.0))
def test_importance_has_no_unit(unit: float) -> None:
    mu, delta = np.array([1.0, 5.0]), np.array([2.0, 0.3])
    one, other = (
        OptimalIntervals().rates(SourceTable.of(mu * factor, delta), 1.0).crawl_rate
        for factor in (1.0, unit)
    )
    np.testing.assert_allclose(one, other, rtol=1e-9)
