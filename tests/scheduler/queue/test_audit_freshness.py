"""Freshness from pages drawn at random."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.costs import ein, harmonic_number
from freshet.scheduler.queue.audit import MeasuredMean, staleness

DRAWS = st.lists(
    st.tuples(st.floats(0.01, 100), st.booleans(), st.floats(0, 50)), min_size=1, max_size=40
)
NOTHING_TOLD = np.zeros((0, 3))


@given(DRAWS)
def test_the_intervals_hold_the_estimates_and_are_never_empty(
    draws: list[tuple[float, bool, float]],
) -> None:
    importance, stale, hazard = ([draw[i] for draw in draws] for i in range(3))
    found = staleness(importance, [bool(z) for z in stale], hazard)
    assert found is not None
    for it in (found.binary, found.harmonic):
        assert 0 <= it.lower <= it.mean + 1e-9
        assert it.mean - 1e-9 <= it.upper
        assert it.upper > it.lower
    assert found.binary.upper <= 1
    assert found.harmonic.mean >= found.binary.mean - 1e-9
    assert found.draws == len(draws)


def test_without_draws_there_is_no_estimate() -> None:
    assert staleness([], [], []) is None
    assert staleness([0.0], [True], [0.5]) is None


def test_where_all_draws_agree_something_is_left_in_doubt() -> None:
    found = staleness([1.0] * 50, [False] * 50, [0.0] * 50)
    assert found is not None
    for it in (found.binary, found.harmonic):
        assert (it.mean, it.lower) == (0.0, 0.0)
        assert it.upper == pytest.approx(0.071, abs=0.001)


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
        held += found.binary.lower <= truth <= found.binary.upper
    assert 0.92 <= held / 400 <= 0.98


@pytest.mark.parametrize("draws", [60, 400])
def test_of_poisson_pages_the_harmonic_estimate_is_unbiased_and_its_interval_true(
    draws: int,
) -> None:
    rng = np.random.default_rng(6)
    importance = rng.lognormal(0, 0.5, 3_000)
    hazard = np.minimum(rng.lognormal(-1.5, 1.8, 3_000), 300.0)
    truth = float((importance * np.asarray(ein(hazard))).sum() / importance.sum())
    found: list[MeasuredMean] = []
    costs = []
    for _ in range(600):
        rows = rng.integers(0, 3_000, draws)
        changes = rng.poisson(hazard[rows])
        costs.append(float(np.average(harmonic_number(changes), weights=importance[rows])))
        it = staleness(importance[rows], (changes > 0).tolist(), hazard[rows])
        assert it is not None
        found.append(it.harmonic)
    means = np.array([it.mean for it in found])
    assert np.mean(costs) == pytest.approx(truth, rel=0.03)
    assert means.mean() == pytest.approx(truth, abs=3.5 * means.std() / 600**0.5)
    assert np.mean([it.expected for it in found]) == pytest.approx(truth, rel=0.03)
    held = np.mean([it.lower <= truth <= it.upper for it in found])
    assert 0.92 <= held <= 0.98


def test_a_model_that_sees_no_changes_still_has_its_stale_pages_counted() -> None:
    found = staleness([1.0] * 200, [True] * 60 + [False] * 140, [1e-9] * 200)
    assert found is not None
    assert found.binary.mean == pytest.approx(0.3)
    assert found.harmonic.mean == pytest.approx(0.3)
    assert found.binary.expected < 1e-8
