import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.costs import plan_costs
from freshet.scheduler.policies.binary_lambda_crawl import BinaryLambdaCrawl, BinaryLambdaCrawlFloor
from freshet.scheduler.sources import SourceTable
from tests.scheduler.policies.tables import BUDGETS, source_tables

SHARES = st.floats(0.0, 0.95)


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
