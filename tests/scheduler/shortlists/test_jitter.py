import doctest

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.shortlists import jitter


def test_the_example_in_the_documentation_is_right() -> None:
    assert doctest.testmod(jitter).failed == 0


@given(st.floats(0.0, 0.99), st.integers(0, 2**63), st.integers(0, 2**31), st.floats(-1e4, 1e4))
def test_one_factor_is_the_same_as_many(
    amount: float, seed: int, row: int, last_crawl: float
) -> None:
    one = jitter.factor(amount, seed, row, last_crawl)
    (same,) = jitter.factors(amount, seed, np.array([row]), np.array([last_crawl]))
    assert one == same
    assert 1 - amount <= one <= 1 + amount


def test_factors_are_uniform_and_change_with_seed_row_and_crawl() -> None:
    rows = np.arange(20_000)
    found = jitter.factors(0.5, 1, rows, np.zeros(len(rows)))
    counts, _ = np.histogram(found, bins=10, range=(0.5, 1.5))
    assert counts.min() > 1_800
    assert (found != jitter.factors(0.5, 2, rows, np.zeros(len(rows)))).mean() > 0.99
    later = jitter.factors(0.5, 1, rows, np.full(len(rows), 1.5))
    assert abs(np.corrcoef(found, later)[0, 1]) < 0.03
