import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from freshet.scheduler.arrays import Floats
from freshet.scheduler.solve.demand import BinaryDemand

SEEDS = st.integers(0, 2**32 - 1)
EXPONENTS = st.floats(-6, 6)


def some(seed: int, n: int = 12, *, floors: bool = False) -> BinaryDemand:
    """Sources of many magnitudes, some of them not worth a crawl."""
    rng = np.random.default_rng(seed)
    mu, delta = 10 ** rng.uniform(-3, 3, (2, n)) * (rng.random((2, n)) > 0.1)
    floor = np.where((mu > 0) & (delta > 0), rng.uniform(0, 1, n), 0.0) * floors
    return BinaryDemand(mu, delta, floor)


def at(demand: BinaryDemand, price: float | Floats) -> tuple[Floats, Floats]:
    rates, slopes = np.empty((2, len(demand)))
    demand.rates_at(price, rates, slopes)
    return rates, slopes


@given(st.floats(-2, 2), st.floats(-2, 2), st.floats(-2, 2), st.sampled_from([0.0, 0.01, 1.0]))
def test_no_rate_above_the_floor_costs_less_at_the_price(
    mu: float, delta: float, price: float, floor: float
) -> None:
    """Against scipy's search for the least μΔ/(Δ + ρ) + λρ."""
    importance, change_rate, each = 10.0**mu, 10.0**delta, 10.0**price

    def cost(above: float) -> float:
        rate = floor + above
        return float(importance * change_rate / (change_rate + rate) + each * rate)

    one = BinaryDemand(np.array([importance]), np.array([change_rate]), np.array([floor]))
    (rate,), _ = at(one, each)
    assert rate >= floor
    least = minimize_scalar(cost, bounds=(0, 2e2), method="bounded", options={"xatol": 1e-10})
    assert cost(rate - floor) <= float(least.fun) * (1 + 1e-12)


def test_what_saves_less_than_the_price_starves_or_stays_at_its_floor() -> None:
    # The first crawl saves μ/Δ: 4, 1 (just not worth it) and 1/4.
    columns = np.array([4.0, 1.0, 1.0]), np.array([1.0, 1.0, 4.0])
    assert at(BinaryDemand(*columns, np.zeros(3)), 1.0)[0].tolist() == [1.0, 0.0, 0.0]
    rates, slopes = at(BinaryDemand(*columns, np.full(3, 0.5)), 1.0)
    assert rates.tolist() == [1.0, 0.5, 0.5]
    assert slopes.tolist() == [1.0, 0.0, 0.0]


@given(SEEDS, EXPONENTS, st.booleans())
def test_slopes_are_those_of_the_rates(seed: int, exponent: float, floors: bool) -> None:
    demand, price, step = some(seed, floors=floors), 10.0**exponent, 1e-6
    rates, slopes = at(demand, price)
    dearer, _ = at(demand, price * np.exp(step))
    cheaper, _ = at(demand, price * np.exp(-step))
    # Not where a source has just come to be worth more than its floor: there is a kink.
    smooth = (dearer > demand.floor) | (cheaper <= demand.floor)
    expected = (cheaper - dearer) / (2 * step)
    np.testing.assert_allclose(
        slopes[smooth], expected[smooth], rtol=1e-6, atol=1e-8 * (rates + demand.change_rate).max()
    )


@given(SEEDS, EXPONENTS, st.booleans())
def test_the_spending_is_the_sum_of_the_rates(seed: int, exponent: float, floors: bool) -> None:
    demand, written = some(seed, floors=floors), np.empty(12)
    rates, slopes = at(demand, 10.0**exponent)
    assert demand.spending_at(10.0**exponent, written) == (rates.sum(), slopes.sum())
    np.testing.assert_array_equal(written, rates)


@given(SEEDS, EXPONENTS)
def test_the_first_guess_is_never_too_high(seed: int, exponent: float) -> None:
    demand = some(seed)
    host, budget = np.arange(12) % 3, np.full(3, 10.0**exponent)
    for row, price in enumerate(demand.guess(budget, host)):
        theirs = demand.take(np.flatnonzero(host == row))
        if not theirs.is_limited():
            assert at(theirs, float(price))[0].sum() >= budget[row] * (1 - 1e-9) - 1e-9
            alone = theirs.guess(budget[row : row + 1], None)
            assert alone == pytest.approx(price, rel=1e-12)


def test_sources_may_have_a_price_each() -> None:
    demand, price = some(5), np.linspace(0.1, 3.0, 12)
    rates, slopes = at(demand, price)
    for row, each in enumerate(price):
        assert at(demand.take(np.array([row])), float(each)) == (rates[row], slopes[row])


def test_what_is_not_worth_a_crawl_wants_none() -> None:
    demand = BinaryDemand(np.array([0.0, 1.0, 1.0]), np.array([1.0, 0.0, 1.0]), np.zeros(3))
    for price in (1e-12, 1.0):
        assert at(demand, price)[0][:2].tolist() == [0.0, 0.0]
    assert demand.limits().tolist() == [0.0, 0.0, np.inf]
    assert not demand.is_limited()
    assert demand.take(np.array([0, 1])).is_limited()
