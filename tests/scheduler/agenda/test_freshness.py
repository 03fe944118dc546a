"""Freshness from pages drawn at random."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.agenda.audit import (
    MeasuredMean,
    beside_rotation,
    rotation_days,
    stale_days,
    staleness,
)
from freshet.scheduler.arrays import Floats as FloatArray
from freshet.scheduler.costs import ein, harmonic_number

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


@pytest.mark.parametrize(("often", "known"), [(1.0, True), (4.0, True), (1.0, False)])
def test_the_estimate_beside_a_rotation_holds_the_truth(often: float, known: bool) -> None:
    """Two kinds of pages: a tenth changes weekly; it is visited ``often`` as often as the rest."""
    rng, days, n = np.random.default_rng(7), 720.0, 400
    rate = np.where(np.arange(n) < n // 10, 1 / 7, 1 / 300)
    weight = np.where(rate > 0.1, often, 1.0)
    every = 60 * weight.mean() / weight
    pages, at, changed = [], [], []
    truth = turns = 0.0

    def stale(visits: FloatArray, changes: FloatArray) -> float:
        after = np.searchsorted(visits, changes)
        first = np.unique(after, return_index=True)[1]
        return float((np.append(visits, days)[after[first]] - changes[first]).sum())

    for page in range(n):
        changes = np.sort(rng.uniform(0, days, rng.poisson(rate[page] * days)))
        visits = np.arange(rng.uniform(0, every[page]), days, every[page])
        pages += [page] * len(visits)
        at += visits.tolist()
        changed += [False, *(np.diff(np.searchsorted(changes, visits)) > 0).tolist()]
        truth += stale(visits, changes)
        turns += stale(np.arange(rng.uniform(0, 60), days, 60), changes)
    day, seen = np.array(at), np.array(changed)
    none = np.zeros(len(day), np.bool_)
    rates = rate[pages] if known else np.zeros(len(pages))
    history, visit, own, left = stale_days(
        np.array(pages), day, seen, none, rates, NOTHING_TOLD, turn=60, until=days
    )
    found = beside_rotation(history, day[visit], own, left, changes=int(seen.sum()))
    assert found is not None
    assert found.lower < truth / turns < found.upper
    assert found.upper / found.lower < 1.5


def test_where_no_copy_was_stale_there_is_no_share_of_a_rotation() -> None:
    rows, at, none, some = np.arange(30), np.linspace(0, 9, 30), np.zeros(30), np.ones(30)
    for own, turns in ((none, some), (some, none), (none, none)):
        assert beside_rotation(rows % 6, at, own, turns, changes=30) is None


def test_a_source_that_is_mostly_right_names_the_days_of_changes_and_a_liar_does_not() -> None:
    # 20 pages, visited every 30 days; each fourth visit finds a change of 10 days before.
    page, at = np.repeat(np.arange(20), 13), np.tile(30.0 * np.arange(13), 20)
    changed = np.tile(np.arange(13) % 4 == 3, 20)
    none, rate = np.zeros(len(at), np.bool_), np.full(len(at), 1e-7)
    true_days = np.column_stack((page, np.full(260, 1), at - 10))[changed]
    lies = np.column_stack((page, np.full(260, 2), at - 1))[at > 0]
    for told in (true_days, np.concatenate((lies, true_days))):
        history, _, own, _ = stale_days(page, at, changed, none, rate, told, turn=60, until=360)
        assert own == pytest.approx(10)
        assert len(np.unique(history)) * 60 == len(own)
    _, _, own, _ = stale_days(page, at, changed, none, rate, lies, turn=60, until=360)
    assert own.mean() == pytest.approx(15, rel=0.1)


@given(st.lists(st.integers(1, 1_000), min_size=1, max_size=8), st.floats(0.01, 1e4))
def test_a_rotation_makes_as_many_requests_as_it_may(pages: list[int], requests: float) -> None:
    a_day = np.array(pages) / rotation_days(pages, requests)
    assert (a_day + np.minimum(1, a_day)).sum() == pytest.approx(requests)
