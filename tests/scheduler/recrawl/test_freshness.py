"""Freshness from pages drawn at random."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.recrawl.freshness import staleness

DRAWS = st.lists(
    st.tuples(st.floats(0.01, 100), st.booleans(), st.floats(0, 1)), min_size=1, max_size=40
)


@given(DRAWS)
def test_the_interval_holds_the_estimate_and_lies_between_0_and_1(
    draws: list[tuple[float, bool, float]],
) -> None:
    importance, stale, expected = ([draw[i] for draw in draws] for i in range(3))
    found = staleness(importance, [bool(z) for z in stale], expected)
    assert found is not None
    assert 0 <= found.lower <= found.share + 1e-12
    assert found.share - 1e-12 <= found.upper <= 1
    assert found.upper > found.lower
    assert found.draws == len(draws)


def test_without_draws_there_is_no_estimate() -> None:
    assert staleness([], [], []) is None
    assert staleness([0.0], [True], [0.5]) is None


def test_where_all_draws_agree_something_is_left_in_doubt() -> None:
    found = staleness([1.0] * 50, [False] * 50, [0.0] * 50)
    assert found is not None
    assert (found.share, found.lower) == (0.0, 0.0)
    assert found.upper == pytest.approx(0.071, abs=0.001)


def test_nineteen_of_twenty_intervals_hold_the_truth_whatever_the_importances() -> None:
    rng = np.random.default_rng(5)
    importance = rng.lognormal(0, 1, 2_000)
    stale = rng.random(2_000) < 0.3
    truth = float((importance * stale).sum() / importance.sum())
    held = 0
    for _ in range(400):
        rows = rng.integers(0, 2_000, 200)
        found = staleness(importance[rows], stale[rows].tolist(), np.full(200, 0.3))
        assert found is not None
        held += found.lower <= truth <= found.upper
    assert 0.92 <= held / 400 <= 0.98
