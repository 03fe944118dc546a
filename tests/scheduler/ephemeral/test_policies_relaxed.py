import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from freshet.scheduler.ephemeral.policies import crawl_periods, dual, relaxed, spending
from freshet.scheduler.ephemeral.sources import EphemeralSources
from tests.scheduler.ephemeral.tables import TABLE_1, sources


def linear_programme(table: EphemeralSources, budget: float, longest: int) -> float:
    """The share of its time that each source spends at each interval between crawls."""
    k = np.arange(1, longest + 1)
    n = len(table)
    states = np.array([table.utility_after(np.full(n, float(each))) for each in k]).T
    solved = linprog(
        -(states / k).ravel(),
        A_ub=np.vstack([np.repeat(np.eye(n), longest, axis=1), (table.cost[:, None] / k).ravel()]),
        b_ub=np.append(np.ones(n), budget),
    )
    return -float(solved.fun or 0.0)


@settings(deadline=None, max_examples=40)
@given(sources(unequal=True), st.floats(0.05, 1.2))
def test_the_bound_is_that_of_the_linear_programme(table: EphemeralSources, share: float) -> None:
    budget = share * float(table.cost.sum())
    expected = linear_programme(table, budget, 150)
    assert relaxed(table, budget).bound == pytest.approx(expected, rel=1e-6)


@given(sources(unequal=True), st.floats(0.01, 3))
def test_at_a_price_each_source_is_crawled_when_its_index_reaches_it(
    table: EphemeralSources, price: float
) -> None:
    k = crawl_periods(table, price)
    finite = np.isfinite(k)
    rounding = 1e-9
    assert (table.index(k)[finite] >= price * (1 - rounding)).all()
    earlier = finite & (k > 1)
    before = table.index(np.where(earlier, k - 1, 1.0))
    assert (before[earlier] < price * (1 + rounding)).all()
    assert (table.ceiling[~finite] <= price * table.cost[~finite]).all()


@pytest.mark.long
@given(sources(unequal=True), st.floats(0.1, 5), st.floats(0, 4))
def test_the_dual_is_a_bound_at_every_price(
    table: EphemeralSources, budget: float, price: float
) -> None:
    assert dual(table, budget, price) >= relaxed(table, budget).bound * (1 - 1e-12)


def test_less_is_spent_at_higher_prices() -> None:
    spent = [spending(TABLE_1, price) for price in np.linspace(0, 300, 200)]
    assert (np.diff(spent) <= 0).all()
    assert spent[0] == 4


def test_the_bound_of_the_example_is_met_by_the_index_with_one_crawl_a_period() -> None:
    assert relaxed(TABLE_1, 1).bound == pytest.approx(260.39, abs=0.005)


def test_budget_for_all_and_sources_that_never_fade_have_defined_bounds() -> None:
    assert relaxed(TABLE_1, 4).price == 0
    assert relaxed(TABLE_1, 4).bound == pytest.approx(TABLE_1.fresh.sum())
    still = EphemeralSources.of([2, 3], [1, 1], 0)
    assert relaxed(still, 0.5).bound == pytest.approx(5)
    with pytest.raises(ValueError, match="budget: is -1"):
        relaxed(TABLE_1, -1)
