import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from freshet.scheduler.costs import binary_cost, plan_costs
from freshet.scheduler.policies.binary_lambda_crawl import BinaryLambdaCrawl, BinaryLambdaCrawlFloor
from freshet.scheduler.sources import SourceTable
from tests.scheduler.policies.tables import BUDGETS, source_tables

SHARES = st.floats(0.0, 0.95)


@given(source_tables(), BUDGETS)
def test_the_plan_meets_the_conditions_of_an_optimum(table: SourceTable, budget: float) -> None:
    plan = BinaryLambdaCrawl().rates(table, budget)
    mu, delta, rate = table.importance, table.change_rate, plan.crawl_rate
    worth = (mu > 0) & (delta > 0)
    assert rate.sum() + plan.left_over == pytest.approx(budget, rel=1e-12)
    if not worth.any():
        assert plan.left_over == budget
        return
    assert plan.price is not None
    saved = np.zeros(len(table))
    saved[worth] = mu[worth] * delta[worth] / (delta[worth] + rate[worth]) ** 2
    np.testing.assert_allclose(saved[rate > 0], plan.price, rtol=1e-9)
    assert (saved[rate == 0] <= plan.price * (1 + 1e-9)).all()


def test_an_independent_solver_finds_no_better_plan() -> None:
    rng = np.random.default_rng(4)
    mu, delta = 10 ** rng.uniform(-1, 1, (2, 6))
    ours = BinaryLambdaCrawl().rates(SourceTable.of(mu, delta), 2.0).crawl_rate
    found = minimize(  # type: ignore[call-overload]  # its stubs lack this kind of constraint
        lambda rates: binary_cost(mu, delta, rates),
        np.full(6, 1 / 3),
        method="SLSQP",
        bounds=[(0.0, 2.0)] * 6,
        constraints={"type": "eq", "fun": lambda rates: rates.sum() - 2.0},
        options={"ftol": 1e-14, "maxiter": 1_000},
    )
    assert binary_cost(mu, delta, ours) <= found.fun + 1e-9
    np.testing.assert_allclose(ours, found.x, atol=1e-3)


def test_what_changes_too_often_for_its_importance_starves() -> None:
    plan = BinaryLambdaCrawl().rates(SourceTable.of([1.0, 1.0], [0.1, 100.0]), 1.0)
    assert plan.crawl_rate.tolist() == pytest.approx([1.0, 0.0])
    assert plan.not_crawled.tolist() == [False, True]


def test_notifications_are_ignored() -> None:
    told = SourceTable.of([1.0, 2.0], [1.0, 0.5], complete_observations=[True, False])
    untold = SourceTable.of([1.0, 2.0], [1.0, 0.5])
    plans = [BinaryLambdaCrawl().rates(table, 1.0) for table in (told, untold)]
    assert plans[0].crawl_rate.tolist() == plans[1].crawl_rate.tolist()
    assert not plans[0].on_signals.any()


@given(source_tables(), BUDGETS, SHARES)
def test_nobody_worth_a_crawl_is_below_the_floor(
    table: SourceTable, budget: float, share: float
) -> None:
    plan = BinaryLambdaCrawlFloor(share).rates(table, budget)
    worth = (table.importance > 0) & (table.change_rate > 0)
    floor = share * budget / max(worth.sum(), 1)
    assert (plan.crawl_rate[worth] >= floor * (1 - 1e-12)).all()
    assert not plan.crawl_rate[~worth].any()
    assert plan.crawl_rate.sum() + plan.left_over == pytest.approx(budget, rel=1e-12)


@given(source_tables(), BUDGETS, SHARES)
def test_above_the_floor_all_save_the_price_and_at_it_less(
    table: SourceTable, budget: float, share: float
) -> None:
    plan = BinaryLambdaCrawlFloor(share).rates(table, budget)
    worth = (table.importance > 0) & (table.change_rate > 0)
    if not worth.any():
        return
    assert plan.price is not None
    mu, delta, rate = table.importance[worth], table.change_rate[worth], plan.crawl_rate[worth]
    saved = mu * delta / (delta + rate) ** 2
    above = rate > share * budget / worth.sum() * (1 + 1e-9)
    np.testing.assert_allclose(saved[above], plan.price, rtol=1e-6)
    assert (saved[~above] <= plan.price * (1 + 1e-6)).all()


@given(source_tables(), BUDGETS)
def test_a_share_of_nothing_is_the_optimum_itself(table: SourceTable, budget: float) -> None:
    np.testing.assert_allclose(
        BinaryLambdaCrawlFloor(0.0).rates(table, budget).crawl_rate,
        BinaryLambdaCrawl().rates(table, budget).crawl_rate,
    )


def test_the_floor_is_a_bound_and_not_an_extra() -> None:
    """Half of the budget spread evenly leaves a rate that is above it as it was."""
    table = SourceTable.of([4.0, 4.0], [1.0, 1.0])
    plan = BinaryLambdaCrawlFloor(0.5).rates(table, 2.0)
    assert plan.crawl_rate.tolist() == pytest.approx([1.0, 1.0])


def test_with_a_floor_the_harmonic_cost_is_finite() -> None:
    table = SourceTable.of([1.0, 1.0], [0.1, 100.0])
    starving, fed = (
        plan_costs(table, policy.rates(table, 1.0)).harmonic.sum()
        for policy in (BinaryLambdaCrawl(), BinaryLambdaCrawlFloor())
    )
    assert np.isinf(starving)
    assert np.isfinite(fed)


@pytest.mark.parametrize("share", [-0.1, 1.0, np.nan])
def test_a_share_out_of_range_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"share: is .*; accepted is at least 0 and below 1"):
        BinaryLambdaCrawlFloor(share)
