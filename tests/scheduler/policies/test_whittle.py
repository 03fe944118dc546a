from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.policies.whittle import elapsed_at, index, index_after, utility_after

TABLE_1 = (250.0, np.array([1.0, 0.7, 0.2, 0.08]), np.array([0.7, 0.35, 0.7, 0.21]))
decays = st.floats(1e-3, 5)
positive = st.floats(0.01, 100)


def by_definition(k: int, mu: float, period: float = 1.0) -> Decimal:
    """(u/C) Σ_{j<k} (α^j − α^k) for Λξ̄ = C = 1."""
    alpha = (-Decimal(mu) * Decimal(period)).exp()
    total: Decimal = sum((alpha**j - alpha**k for j in range(k)), Decimal(0))
    return (1 - alpha) / Decimal(mu) * total


@given(st.integers(1, 40), st.floats(-18, 2), st.floats(0.1, 10))
def test_the_index_is_right_to_1e_minus_12_for_decays_over_twenty_powers_of_ten(
    k: int, exponent: float, period: float
) -> None:
    mu = 10.0**exponent
    with localcontext(prec=60):
        expected = float(by_definition(k, mu, period))
    assert index(k, 1.0, 1.0, mu, period=period) == pytest.approx(expected, rel=1e-12)


@given(st.integers(1, 30), positive, positive, decays, positive, st.floats(0.1, 3))
def test_theorem_1_as_it_is_printed_gives_the_same(
    k: int, rate: float, utility: float, mu: float, cost: float, period: float
) -> None:
    alpha = np.exp(-mu * period)
    u = rate * utility / mu * (1 - alpha)
    x = u * (1 - alpha**k) / (1 - alpha)
    printed = (k * ((1 - alpha) * x - u) + u * (1 - alpha**k) / (1 - alpha)) / cost
    exact = index(k, rate, utility, mu, cost=cost, period=period)
    assert exact == pytest.approx(printed, rel=1e-9, abs=1e-9 * u * k / cost)
    reached = utility_after(k, rate, utility, mu, period=period)
    assert reached == pytest.approx(x, rel=1e-9)


def test_the_limits_are_those_of_one_period_and_of_no_crawl() -> None:
    rate, utility, mu = TABLE_1
    alpha, ceiling = np.exp(-mu), rate * utility / mu
    u = ceiling * (1 - alpha)
    assert index(1, rate, utility, mu) == pytest.approx(u * (1 - alpha))
    for never in (index(np.inf, *TABLE_1), index(5000, *TABLE_1)):
        assert never == pytest.approx(ceiling)


def test_what_never_fades_loses_nothing_by_waiting() -> None:
    assert index([1, 7, np.inf], 250, 1, 0.0).tolist() == [0, 0, 0]
    assert utility_after([3, np.inf], 2.0, 4.0, 0.0).tolist() == [24, np.inf]


@pytest.mark.parametrize(("rate", "utility"), [(0.0, 1.0), (1.0, 0.0)])
def test_where_nothing_of_worth_appears_no_crawl_is_worth_anything(
    rate: float, utility: float
) -> None:
    assert index([0, 1, 9, np.inf], rate, utility, 0.5).tolist() == [0, 0, 0, 0]
    assert utility_after([4, np.inf], rate, utility, 0.0).tolist() == [0, 0]


def test_a_retention_of_1_minus_1e_minus_16_is_told_from_1() -> None:
    # Nearly nothing fades: the index is u μ (1 + 2 + … + k).
    slow = -np.log1p(-1e-16)
    assert index([1, 2, 10], 250, 1, slow) == pytest.approx(250e-16 * np.array([1, 3, 55]))


def test_extreme_values_give_numbers() -> None:
    extreme = np.array([5e-324, 1e-300, 1e-8, 1.0, 1e8, 1e300])
    k, mu = (grid.ravel() for grid in np.meshgrid([0, 1, 2, 1e6, 1e300], extreme))
    for values in (index(k, 1, 1, mu), utility_after(k, 1, 1, mu)):
        assert np.isfinite(values).all()
        assert (values >= 0).all()


def test_one_source_gives_a_number_and_columns_go_together() -> None:
    assert isinstance(index(1, 250, 1.0, 0.7), float)
    table = index(np.arange(1, 4)[:, None], *TABLE_1)
    assert table.shape == (3, 4)
    assert table[1, 2] == index(2, 250, 0.2, 0.7)
    assert index([], 1, 1, 1).shape == (0,)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"cost": 0.0}, "cost: row 0 is 0.0; accepted is a number above 0"),
        ({"decay": [0.1, -1.0]}, "decay: row 1 is -1.0; accepted is a finite number of at least 0"),
        ({"decay": np.inf}, "decay: row 0 is inf"),
        ({"arrival_rate": np.nan}, "arrival_rate: row 0 is nan"),
        ({"mean_utility": -2.0}, "mean_utility: row 0 is -2.0"),
        ({"period": 0.0}, "period: is 0.0; accepted is a finite number above 0"),
        ({"periods_since_crawl": 1.5}, "periods_since_crawl: row 0 is 1.5; accepted is a whole"),
        ({"periods_since_crawl": -np.inf}, "periods_since_crawl: row 0 is -inf"),
        ({"mean_utility": "much"}, "mean_utility: holds something that is not a number"),
        ({"decay": [1, 1], "cost": [1, 1, 1]}, r"columns: have .* rows; accepted is one per"),
    ],
)
def test_bad_values_are_named_with_their_row(changed: dict[str, object], words: str) -> None:
    good: dict[str, object] = {
        "periods_since_crawl": 1, "arrival_rate": 1.0, "mean_utility": 1.0, "decay": 0.5,
    }  # fmt: skip
    with pytest.raises(ValueError, match=words):
        index(**(good | changed))  # type: ignore[arg-type]


@given(positive, positive, decays, st.floats(1e-3, 1e2))
def test_where_crawls_may_come_at_any_time_the_index_is_that_of_short_periods(
    rate: float, utility: float, mu: float, elapsed: float
) -> None:
    short = index(2.0**20, rate, utility, mu, period=elapsed / 2**20)
    assert index_after(elapsed, rate, utility, mu) == pytest.approx(short, rel=1e-4)


@given(positive, positive, decays, st.floats(1e-6, 0.999))
def test_the_time_at_which_a_look_is_worth_the_price_is_found(
    rate: float, utility: float, mu: float, share: float
) -> None:
    price = float(share * index_after(np.inf, rate, utility, mu, cost=3.0))
    elapsed = elapsed_at(price, rate, utility, mu, cost=3.0)
    assert index_after(elapsed, rate, utility, mu, cost=3.0) == pytest.approx(price, rel=1e-9)


def test_what_is_never_worth_the_price_is_never_crawled() -> None:
    assert elapsed_at(3.0, [6.0, 0.0, 6.0], 1.0, [2.0, 2.0, 0.0]).tolist() == [np.inf] * 3
    assert elapsed_at(0.0, 6.0, 1.0, 2.0) == 0.0
    with pytest.raises(ValueError, match="price"):
        elapsed_at(np.nan, 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="elapsed"):
        index_after(-1.0, 1.0, 1.0, 1.0)
