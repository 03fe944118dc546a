import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.arrays import Floats
from freshet.scheduler.solve.budget import (
    PricedSpending,
    Step,
    clearing_prices,
    root_step,
    smooth_step,
)

MAGNITUDES = st.floats(-12, 12).map(lambda exponent: 10.0**exponent)


def power(price: Floats) -> PricedSpending:
    """S = 5 λ^{−0.7}."""
    total = 5 * price**-0.7
    return PricedSpending(price, total, 0.7 * total)


def kinked(price: Floats) -> PricedSpending:
    """S = max(0, 3 λ^{−1/2} − 1) + max(0, λ^{−1/2} − 2)."""
    root = price**-0.5
    total = np.maximum(3 * root - 1, 0) + np.maximum(root - 2, 0)
    return PricedSpending(price, total, (3 * root * (3 * root > 1) + root * (root > 2)) / 2)


@given(MAGNITUDES, MAGNITUDES)
def test_a_power_is_solved_from_any_start(budget: float, start: float) -> None:
    found = clearing_prices(power, np.array([budget]), np.array([start]), smooth_step)
    assert found.total[0] == pytest.approx(budget, rel=1e-13)
    assert found.price[0] == pytest.approx((5 / budget) ** (1 / 0.7), rel=1e-12)


@pytest.mark.parametrize("step", [smooth_step, root_step])
@given(MAGNITUDES, MAGNITUDES)
def test_kinks_are_solved_from_any_start_by_either_step(
    step: Step, budget: float, start: float
) -> None:
    found = clearing_prices(kinked, np.array([budget]), np.array([start]), step)
    root = (budget + 1) / 3 if budget < 5 else (budget + 3) / 4
    assert found.price[0] == pytest.approx(root**-2, rel=1e-9)


def test_all_budgets_are_searched_at_once() -> None:
    budget = np.array([1e-6, 1.0, 7.0, 1e6])
    found = clearing_prices(power, budget, np.ones(4), smooth_step)
    np.testing.assert_allclose(found.total, budget, rtol=1e-13)


def test_the_last_call_is_at_the_prices_found() -> None:
    asked: list[Floats] = []

    def spend(price: Floats) -> PricedSpending:
        asked.append(price)
        return power(price)

    found = clearing_prices(spend, np.array([2.0, 300.0]), np.ones(2), smooth_step)
    assert asked[-1] is found.price


def test_a_price_that_was_found_is_not_moved_while_others_are_searched() -> None:
    asked: list[Floats] = []

    def spend(price: Floats) -> PricedSpending:
        asked.append(price)
        return kinked(price)

    # At a price of 1 the first spends its budget; the second is far from it.
    clearing_prices(spend, np.array([2.0, 1e9]), np.ones(2), smooth_step)
    assert len(asked) > 2
    assert {float(price[0]) for price in asked} == {1.0}


def test_a_third_evaluation_meets_the_budget_where_the_second_is_near() -> None:
    asked = []

    def mixed(price: Floats) -> PricedSpending:
        asked.append(price)
        root, inverse = price**-0.5, 1 / price
        return PricedSpending(price, 2 * root + 3 * inverse, root + 3 * inverse)

    # The start is 5 % from the price 1; Newton's steps alone would need one more.
    found = clearing_prices(mixed, np.array([5.0]), np.array([1.05]), smooth_step)
    assert found.price[0] == pytest.approx(1, rel=1e-13)
    assert len(asked) == 3


def test_between_two_floats_no_less_than_the_budget_is_spent() -> None:
    def one_source(price: Floats) -> PricedSpending:
        root = np.sqrt(1e20 / price)
        return PricedSpending(price, np.maximum(root - 1e10, 0), root / 2 * (root > 1e10))

    # The spending jumps by 1e-6 from one float to the next.
    found = clearing_prices(one_source, np.array([1e-9]), np.array([0.5]), root_step)
    assert 1e-9 <= found.total[0] < 1e-5


def test_a_wrong_slope_only_makes_it_slower() -> None:
    def misled(price: Floats) -> PricedSpending:
        right = power(price)
        return PricedSpending(price, right.total, 1e-3 * right.slope)

    found = clearing_prices(misled, np.array([40.0]), np.array([1e5]), smooth_step)
    assert found.total[0] == pytest.approx(40, rel=1e-13)


def test_a_flat_tangent_does_not_lead_out_of_the_range_of_numbers() -> None:
    asked: list[float] = []

    def nearly_bounded(price: Floats) -> PricedSpending:
        asked.append(float(price[0]))
        return PricedSpending(price, 1 + 1e-9 / price, 1e-9 / price)

    found = clearing_prices(nearly_bounded, np.array([2.0]), np.array([1.0]), smooth_step)
    assert found.price[0] == pytest.approx(1e-9, rel=1e-12)
    assert min(asked) > 1e-20


@pytest.mark.parametrize("start", [0.0, np.inf, np.nan])
def test_a_first_price_that_is_out_of_range_is_refused(start: float) -> None:
    with pytest.raises(ValueError, match="some are too large or too small"):
        clearing_prices(power, np.array([1.0]), np.array([start]), smooth_step)


def test_a_budget_that_is_spent_at_no_price_is_refused() -> None:
    def at_most_one(price: Floats) -> PricedSpending:
        return PricedSpending(price, np.exp(-price), price * np.exp(-price))

    with pytest.raises(ValueError, match="some are too large or too small"):
        clearing_prices(at_most_one, np.array([2.0]), np.array([1.0]), smooth_step)


def test_numbers_that_cannot_be_computed_with_are_refused() -> None:
    with (
        pytest.raises(ValueError, match="importance, change_rate: some are too large or too small"),
        np.errstate(over="ignore"),
    ):
        clearing_prices(
            lambda price: PricedSpending(price, price * 1e300 * 1e300, price), np.array([1.0]),
            np.array([1.0]), smooth_step,
        )  # fmt: skip
