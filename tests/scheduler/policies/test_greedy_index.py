from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from freshet.scheduler.arrays import Floats
from freshet.scheduler.policies.greedy_index import (
    GreedyIndex,
    GreedyIndexBinary,
    fresh_share,
    stale_share,
)
from freshet.scheduler.sources import SourceTable

Policy = type[GreedyIndex] | type[GreedyIndexBinary]
both = pytest.mark.parametrize("policy", [GreedyIndex, GreedyIndexBinary])


@both
@pytest.mark.parametrize(
    ("mu", "delta", "age"), [(1, 1, 1), (3, 0.2, 4), (0.5, 8, 2), (2, 0.01, 1)]
)
def test_the_index_is_the_integral_that_defines_it(
    policy: Policy, mu: float, delta: float, age: float
) -> None:
    def gain(s: float) -> float:
        fresh = float(np.exp(-delta * s))
        return mu * (1 - fresh) if policy is GreedyIndex else mu * s * delta * fresh

    expected, _ = quad(gain, 0, age)
    table = SourceTable.of([mu], [delta], last_crawl=[10.0])
    assert policy().index(table, 10.0 + age)[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("share", [stale_share, fresh_share])
@given(st.floats(-12, 12))
def test_the_share_is_right_to_1e_minus_12_over_24_powers_of_ten(
    share: Callable[[Floats], Floats], exponent: float
) -> None:
    x = 10.0**exponent
    with localcontext(prec=60):
        exact = Decimal(x)
        left = (-exact).exp() if x < 1e4 else Decimal(0)
        stale, fresh = 1 - (1 - left) / exact, (1 - left * (1 + exact)) / exact
    expected = stale if share is stale_share else fresh
    assert share(np.array([x]))[0] == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize(("policy", "four"), [(GreedyIndex, 6.0), (GreedyIndexBinary, 1.5)])
def test_complete_observations_are_worth_what_their_pending_changes_are(
    policy: Policy, four: float
) -> None:
    table = SourceTable.of(
        [3.0, 3.0, 3.0], [2.0, 2.0, 0.0], complete_observations=[True] * 3,
        pending_signals=[0, 4, 4],
    )  # fmt: skip
    for day in (1.0, 100.0):
        assert policy().index(table, day).tolist() == [0.0, four, 0.0]


@both
def test_signals_that_are_not_complete_are_ignored(policy: Policy) -> None:
    received = SourceTable.of([1.0], [1.0], pending_signals=[5], signal_rate=[1.0])
    silent = SourceTable.of([1.0], [1.0])
    assert policy().index(received, 1.0).tolist() == policy().index(silent, 1.0).tolist()


MANY = 30_000


def mixed(n: int) -> SourceTable:
    """All magnitudes, some zeros, some pending signals."""
    rng = np.random.default_rng(1)
    return SourceTable.of(
        *(10 ** rng.uniform(-9, 9, (2, n)) * (rng.random((2, n)) > 0.02)),
        complete_observations=rng.random(n) < 0.2,
        pending_signals=rng.integers(0, 4, n),
        last_crawl=-(10 ** rng.uniform(-6, 3, n)),
    )
