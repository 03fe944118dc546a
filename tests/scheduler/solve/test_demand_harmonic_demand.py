import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from freshet.scheduler.arrays import Floats
from freshet.scheduler.solve import demand as demand_solve
from freshet.scheduler.solve.demand import HarmonicDemand

SEEDS = st.integers(0, 2**32 - 1)
EXPONENTS = st.floats(-6, 6)


def some(seed: int, n: int = 12, spread: float = 3.0) -> HarmonicDemand:
    """Sources of both classes, some of them not worth a crawl."""
    rng = np.random.default_rng(seed)
    mu, delta = 10 ** rng.uniform(-spread, spread, (2, n)) * (rng.random((2, n)) > 0.1)
    return HarmonicDemand(mu, delta, rng.random(n) < 0.4)


def at(demand: HarmonicDemand, price: float | Floats) -> tuple[Floats, Floats]:
    rates, slopes = np.empty((2, len(demand)))
    demand.rates_at(price, rates, slopes)
    return rates, slopes


@given(st.floats(-2, 2), st.floats(-2, 2), st.floats(-2, 2))
def test_by_the_clock_no_rate_costs_less_at_the_price(
    mu: float, delta: float, price: float
) -> None:
    """Against scipy's search for the least μ ln((Δ + ρ)/ρ) + λρ."""
    importance, change_rate, each = 10.0**mu, 10.0**delta, 10.0**price

    def cost(log_rate: float) -> float:
        rho = np.exp(log_rate)
        return float(importance * np.log1p(change_rate / rho) + each * rho)

    one = HarmonicDemand(np.array([importance]), np.array([change_rate]), np.array([False]))
    (rate,), _ = at(one, each)
    least = minimize_scalar(cost, bounds=(-14, 14), method="bounded", options={"xatol": 1e-10})
    assert cost(float(np.log(rate))) <= least.fun * (1 + 1e-12)
    assert np.log(rate) == pytest.approx(least.x, abs=1e-5)


def test_on_signals_all_changes_are_answered_that_are_worth_the_price() -> None:
    demand = HarmonicDemand(np.array([6.0, 6.0]), np.array([9.0, 2.0]), np.array([True, True]))
    rates, slopes = at(demand, 2.0)
    assert rates.tolist() == [3.0, 2.0]
    assert slopes.tolist() == [3.0, 0.0]


@given(SEEDS, EXPONENTS)
def test_slopes_are_those_of_the_rates(seed: int, exponent: float) -> None:
    demand, price, step = some(seed), 10.0**exponent, 1e-6
    rates, slopes = at(demand, price)
    dearer, _ = at(demand, price * np.exp(step))
    cheaper, _ = at(demand, price * np.exp(-step))
    # Not where a source has just come to answer all changes: there is a kink.
    all_at = price * demand.change_rate
    smooth = ~demand.on_signals | (np.abs(demand.importance - all_at) >= 1e-5 * all_at)
    expected = (cheaper - dearer) / (2 * step)
    np.testing.assert_allclose(slopes[smooth], expected[smooth], rtol=1e-6, atol=1e-9 * rates.max())


@given(SEEDS, EXPONENTS)
def test_a_dearer_crawl_is_never_taken_more_often(seed: int, exponent: float) -> None:
    demand = some(seed)
    cheap, _ = at(demand, 10.0**exponent)
    dear, _ = at(demand, 1.001 * 10.0**exponent)
    assert (dear <= cheap).all()


@given(SEEDS, EXPONENTS)
def test_the_spending_is_the_sum_of_the_rates(seed: int, exponent: float) -> None:
    demand = some(seed)
    rates, slopes = at(demand, 10.0**exponent)
    written = np.empty(len(demand))
    total, slope = demand.spending_at(10.0**exponent, written)
    np.testing.assert_allclose(written, rates, rtol=1e-14)
    assert total == pytest.approx(rates.sum(), rel=1e-14)
    assert slope == pytest.approx(slopes.sum(), rel=1e-13)


def test_sources_may_have_a_price_each() -> None:
    demand, price = some(5), np.linspace(0.1, 3.0, 12)
    rates, slopes = at(demand, price)
    for row, each in enumerate(price):
        one = demand.take(np.array([row]))
        assert at(one, float(each)) == (rates[row], slopes[row])


def test_pieces_of_a_long_column_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    demand, price = some(6, n=30), np.linspace(0.1, 3.0, 30)
    whole = at(demand, price)
    monkeypatch.setattr(demand_solve, "_CHUNK", 7)
    np.testing.assert_array_equal(at(demand, price), whole)
    rates = np.empty(30)
    assert demand.spending_at(0.4, rates)[0] == pytest.approx(at(demand, 0.4)[0].sum(), rel=1e-14)
    some_told = demand.on_signals & (demand.change_rate > 0)
    expected = np.divide(rates, demand.change_rate, out=np.ones(30), where=some_told)
    assert demand.probabilities(rates).tolist() == expected.tolist()


def test_rare_crawls_keep_their_digits() -> None:
    """ρ = μ/λ − (μ/λ)²/Δ + … for rare crawls; eq. 5 as printed gives 0 here."""
    demand = HarmonicDemand(np.array([1e-6]), np.array([1e12]), np.array([False]))
    (rate,), _ = at(demand, 1.0)
    assert rate == pytest.approx(1e-6, rel=1e-15)


def test_what_is_not_worth_a_crawl_wants_none() -> None:
    columns = np.array([0.0, 1.0, 0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0, 1.0, 0.0])
    demand = HarmonicDemand(*columns, np.array([False, False, False, True, True]))
    for price in (1e-12, 1.0, 1e12):
        rates, slopes = at(demand, price)
        assert not rates.any()
        assert not slopes.any()
        assert demand.spending_at(price, rates) == (0.0, 0.0)
    assert demand.limits().tolist() == [0.0] * 5
    assert demand.is_limited()


def test_only_by_the_clock_there_is_no_limit() -> None:
    demand = HarmonicDemand(np.ones(3), np.array([2.0, 3.0, 0.0]), np.array([True, False, True]))
    assert demand.limits().tolist() == [2.0, np.inf, 0.0]
    assert not demand.is_limited()
    assert demand.take(np.array([0, 2])).is_limited()


@given(SEEDS, EXPONENTS)
def test_the_first_guess_of_few_is_no_lower_than_the_price(seed: int, exponent: float) -> None:
    demand, price = some(seed), 10.0**exponent
    rates, _ = at(demand, price)
    host = np.arange(12) % 3
    spent = np.bincount(host, rates).astype(np.float64)
    assume(spent.all())
    assert (demand.guess(spent, host) >= price * (1 - 1e-12)).all()
    assert demand.guess(rates.sum(keepdims=True), None)[0] >= price * (1 - 1e-12)


def test_the_first_guess_of_many_is_the_price_of_a_sample() -> None:
    demand = some(8, n=100_000, spread=1.0)
    rates, _ = at(demand, 0.3)
    assert demand.guess(rates.sum(keepdims=True), None)[0] == pytest.approx(0.3, rel=0.05)


def test_a_sample_in_which_nothing_costs_anything_leaves_the_plain_guess() -> None:
    mu = np.ones(40_000)
    mu[::32] = 0
    demand = HarmonicDemand(mu, np.ones(40_000), np.zeros(40_000, np.bool_))
    assert demand.guess(np.array([100.0]), None) == mu.sum() / 100


def test_a_probability_is_the_share_of_the_changes_that_are_answered() -> None:
    told = np.array([True, True, True, False])
    demand = HarmonicDemand(np.ones(4), np.array([4.0, 2.0, 0.0, 2.0]), told)
    rates = np.array([1.0, 2.0, 0.0, 0.5])
    assert demand.probabilities(rates).tolist() == [0.25, 1.0, 1.0, 1.0]
