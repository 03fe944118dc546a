from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.solve.demand import IntervalDemand, changes_at


def left_side(x: float) -> Decimal:
    """x − 1 + e^{−x} in sixty digits."""
    with localcontext(prec=60):
        value = Decimal(x)
        return value - 1 + (-value).exp()


@given(st.floats(-14, 14))
def test_the_equation_holds_to_a_relative_1e_minus_12(exponent: float) -> None:
    """The slope of the left side makes a relative error of x at most twice as large."""
    c = 10.0**exponent
    (x,) = changes_at(np.array([c])).tolist()
    assert float(left_side(x) / Decimal(c)) == pytest.approx(1, rel=2e-12)


def test_no_cost_is_no_waiting() -> None:
    assert changes_at(np.zeros(1)).tolist() == [0.0]


@given(st.integers(0, 2**32 - 1), st.floats(-6, 6))
def test_slopes_are_those_of_the_rates(seed: int, exponent: float) -> None:
    rng = np.random.default_rng(seed)
    demand = IntervalDemand(*(10 ** rng.uniform(-2, 2, (2, 8))))
    rates, slopes, other, unused = np.empty((4, 8))
    price, step = 10.0**exponent, 1e-6
    demand.rates_at(price, rates, slopes)
    demand.rates_at(price * np.exp(step), other, unused)
    np.testing.assert_allclose(slopes, (rates - other) / step, rtol=1e-4, atol=1e-12)


def test_what_is_not_worth_a_crawl_wants_none() -> None:
    demand = IntervalDemand(np.array([0.0, 1.0, 1.0]), np.array([1.0, 0.0, 1.0]))
    rates = np.empty(3)
    total, _ = demand.spending_at(1.0, rates)
    assert rates[:2].tolist() == [0.0, 0.0]
    assert total == rates[2]
    assert demand.limits().tolist() == [0.0, 0.0, np.inf]
    assert not demand.is_limited()
    assert demand.take(np.array([0, 1])).is_limited()


@pytest.mark.parametrize("price", [1e-300, 1.0, 1e300])
def test_ratios_beyond_the_range_of_numbers_are_not_warned_of(price: float) -> None:
    mu, delta = np.array([1e-300, 1e300, price]), np.array([1e300, 1e-300, 1.0])
    rates, slopes = np.empty((2, 3))
    IntervalDemand(mu, delta).rates_at(price, rates, slopes)
    assert 1 / rates[2] == pytest.approx(changes_at(np.ones(1))[0], rel=1e-13)


def test_the_equation_is_solved_without_a_warning_at_the_end_of_the_range_of_numbers() -> None:
    assert changes_at(np.array([1e308, 1e-308])).tolist() == pytest.approx(
        [1e308, 1.4142135623730951e-154]
    )
