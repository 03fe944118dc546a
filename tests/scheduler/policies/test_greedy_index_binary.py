import doctest
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from freshet.scheduler.policies import greedy_index
from freshet.scheduler.policies.greedy_index import GreedyIndexBinary, fresh_share
from freshet.scheduler.sources import SourceTable


def test_the_examples_in_the_documentation_are_right() -> None:
    assert doctest.testmod(greedy_index).failed == 0


@pytest.mark.parametrize(
    ("mu", "delta", "age"), [(1, 1, 1), (3, 0.2, 4), (0.5, 8, 2), (2, 0.01, 1)]
)
def test_the_index_is_the_integral_that_defines_it(mu: float, delta: float, age: float) -> None:
    expected, _ = quad(lambda s: mu * s * delta * np.exp(-delta * s), 0, age)
    table = SourceTable.of([mu], [delta], last_crawl=[10.0])
    assert GreedyIndexBinary().index(table, 10.0 + age)[0] == pytest.approx(expected, rel=1e-9)


@given(st.floats(-12, 12))
def test_the_share_is_right_to_1e_minus_12_over_24_powers_of_ten(exponent: float) -> None:
    x = 10.0**exponent
    with localcontext(prec=60):
        exact = Decimal(x)
        left = (-exact).exp() if x < 1e4 else Decimal(0)
        expected = (1 - left * (1 + exact)) / exact
    assert fresh_share(np.array([x]))[0] == pytest.approx(float(expected), rel=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_the_index_never_falls_while_time_passes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = SourceTable.of(
        *(10 ** rng.uniform(-4, 4, (2, 20))), complete_observations=rng.random(20) < 0.3,
        pending_signals=rng.integers(0, 3, 20),
    )  # fmt: skip
    ages = np.sort(10 ** rng.uniform(-6, 6, 10))
    worth = np.array([GreedyIndexBinary().index(table, float(age)) for age in ages])
    assert (np.diff(worth, axis=0) >= -1e-12 * worth[1:]).all()


def test_complete_observations_are_worth_what_their_pending_changes_are() -> None:
    table = SourceTable.of(
        [3.0, 3.0, 3.0],
        [2.0, 2.0, 0.0],
        complete_observations=[True] * 3,
        pending_signals=[0, 4, 4],
    )
    expected = [0.0, 1.5, 0.0]
    for day in (1.0, 100.0):
        assert GreedyIndexBinary().index(table, day).tolist() == expected


def test_signals_that_are_not_complete_are_ignored() -> None:
    heard = SourceTable.of([1.0], [1.0], pending_signals=[5], signal_rate=[1.0])
    silent = SourceTable.of([1.0], [1.0])
    assert (
        GreedyIndexBinary().index(heard, 1.0).tolist()
        == GreedyIndexBinary().index(silent, 1.0).tolist()
    )


def test_nothing_to_gain_is_worth_nothing() -> None:
    table = SourceTable.of([0.0, 1.0, 1.0], [1.0, 0.0, 1.0], last_crawl=[0.0, 0.0, 9.0])
    assert GreedyIndexBinary().index(table, 5.0).tolist() == [0.0, 0.0, 0.0]
