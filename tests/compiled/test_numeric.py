"""Functions over arrays: what they accept, and that they do what slow references do."""

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from freshet.compiled import numeric
from freshet.compiled.numeric import Structure, record
from freshet.scheduler.estimate.site_model import (
    GENERAL_PRIOR,
    POINTS,
    RATES,
    Fit,
    Pages,
    SiteLearner,
)
from tests.compiled.inner import function

SEEDS = st.integers(0, 2**32 - 1)


# -- what is accepted --


def some_pages(n: int = 3) -> Pages:
    return Pages(np.zeros(n, record("page")))


def some_visits(*rows: int) -> NDArray[np.void]:
    visits = np.zeros(len(rows), record("visit"))
    visits["row"], visits["compared"] = rows, True
    return visits


def some_beliefs(n: int = 3) -> NDArray[np.float32]:
    return np.tile(GENERAL_PRIOR, (n, 1)).astype(np.float32)


def test_records_are_laid_out_as_in_c() -> None:
    page = record("page")
    assert page.fields is not None
    assert [page.fields[name][1] for name in ("known", "area", "place", "before")] == [0, 2, 8, 32]
    assert page.itemsize == 40


def test_a_structure_takes_arrays_of_its_types_and_shapes_alone() -> None:
    good = {"prior": np.zeros(POINTS)}
    passed = np.zeros((2, 4))
    made = Structure("fit", SimpleNamespace(**good, passed=passed), areas=2, edges=4)
    assert (made.name, made.numbers) == ("fit", {"areas": 2, "edges": 4})
    frozen = passed.copy()
    frozen.flags.writeable = False
    for wrong in (passed[:1], passed.astype(np.float32), np.zeros((2, 8))[:, ::2], frozen):
        with pytest.raises(TypeError, match=r"fit\.passed"):
            Structure("fit", SimpleNamespace(**good, passed=wrong), areas=2, edges=4)


def test_no_structure_goes_to_another_process() -> None:
    with pytest.raises(TypeError, match="addresses are of one process"):
        pickle.dumps(SiteLearner().site.structure)


def test_columns_are_of_their_types_and_of_one_length() -> None:
    worth, host = np.ones(3), np.zeros(3, np.int64)
    assert numeric.two_of_each(worth, host, 1)[0].tolist() == [0]
    wrongs: list[Any] = [np.ones(4), np.ones(3, np.float32), np.ones(6)[::2]]
    for wrong in wrongs:
        with pytest.raises(TypeError, match="two_of_each: "):
            numeric.two_of_each(wrong, host, 1)
    frozen = np.zeros(1, record("visit"))
    frozen.flags.writeable = False
    site = SiteLearner().site.structure
    with pytest.raises(TypeError, match="cannot be written to"):
        numeric.site_note(some_pages().structure, site, frozen, 0)


def test_a_structure_is_not_taken_for_another() -> None:
    site = SiteLearner().site.structure
    with pytest.raises(TypeError, match="site is not"):
        numeric.site_note(site, site, some_visits(0), 0)


@pytest.mark.parametrize("row", [-1, 3, 2**62])
def test_rows_that_there_are_not_change_nothing(row: int) -> None:
    pages, learner = some_pages(), SiteLearner()
    with pytest.raises(IndexError):
        learner.learn(pages, some_visits(0, row), some_beliefs())
    assert not pages.page["known"].any()
    with pytest.raises(IndexError):
        numeric.two_of_each(np.ones(1), np.array([row]), 3)


@pytest.mark.parametrize(
    ("member", "value"), [("session", 9), ("session", -1), ("area", -1)], ids=str
)
def test_pages_that_a_site_cannot_have_change_nothing(member: str, value: int) -> None:
    pages, learner, belief = some_pages(), SiteLearner(), some_beliefs()
    for day in (0.0, 2.0, 4.0):
        visits = some_visits(0, 1)
        visits["at"] = day
        learner.learn(pages, visits, belief)
    before = belief.copy()
    pages.page[member][1] = value
    states = pages.structure, learner.site.structure, learner.fit.structure
    since = np.zeros(3)
    with pytest.raises(IndexError):
        numeric.site_fit(*states, belief)
    with pytest.raises(IndexError):
        numeric.site_readings(*states, belief=belief, now=5.0, only=-1, since=since)
    with pytest.raises(IndexError):
        numeric.site_fold(*states, 1)
    with pytest.raises(IndexError):
        numeric.site_readings(*states, belief=belief, now=5.0, only=2, since=since)
    assert np.array_equal(belief, before)
    assert not since.any()


def test_a_fit_with_more_areas_than_there_can_be_is_refused() -> None:
    pages, learner, belief = some_pages(), SiteLearner(), some_beliefs()
    learner.learn(pages, some_visits(0, 1), belief)
    learner.fit = Fit(np.zeros(POINTS), np.zeros((18, 1)))
    with pytest.raises(IndexError):
        learner.write_days(pages, belief, 1.0, np.zeros(3))


# -- the rows of the grid --


def test_rates_are_even_in_their_logarithm() -> None:
    np.testing.assert_allclose(RATES, np.geomspace(1 / 20_000, 50.0, 40), rtol=1e-13)
    assert GENERAL_PRIOR.sum() == pytest.approx(1)


@given(SEEDS, st.booleans())
def test_a_row_drifts_learns_and_is_read_as_numpy_would(seed: int, changed: bool) -> None:
    rng = np.random.default_rng(seed)
    sums, prior = rng.normal(0, 3, POINTS).astype(np.float32), rng.dirichlet(np.ones(POINTS))
    days, own, cold = 10 ** rng.uniform(-3, 3, 3)
    posterior = prior * np.exp(sums - sums.max())
    posterior /= posterior.sum()
    kept = np.exp(-days / 1_500)
    posterior = kept * posterior + (1 - kept) * prior
    hazard = RATES * own
    posterior *= np.maximum(-np.expm1(-hazard - cold), 1e-12) if changed else np.exp(-hazard)
    expected = np.exp((posterior * np.log(RATES)).sum() / posterior.sum())
    found = function("row", "ppdddb", "d")(
        sums.ctypes.data, prior.ctypes.data, *(days, own, cold), changed
    )
    assert found == pytest.approx(expected, rel=2e-4)


@pytest.mark.parametrize("days", np.geomspace(2e-6, 1e5, 40))
@pytest.mark.parametrize("changed", [True, False])
def test_days_are_learnt_and_foretold_as_numpy_would(days: float, changed: bool) -> None:
    rng = np.random.default_rng(int(days * 1e6))
    sums, prior = rng.normal(0, 3, POINTS).astype(np.float32), rng.dirichlet(np.ones(POINTS))
    belief, stale = np.empty(POINTS, np.float32), np.empty(1)
    expected = prior * np.exp(sums - sums.max())
    expected /= expected.sum()
    kept = function("prospect", "pppdp", "d")(
        sums.ctypes.data, prior.ctypes.data, belief.ctypes.data, days, stale.ctypes.data
    )
    np.testing.assert_allclose(belief, expected, rtol=1e-4, atol=1e-9)
    x = RATES * days
    assert kept == pytest.approx((expected * np.exp(-x)).sum(), rel=3e-3, abs=1e-12)
    short = np.where(x < 1e-3, x**2 / 2, x + np.expm1(-x))
    assert stale[0] == pytest.approx((expected * short / RATES).sum(), rel=2e-3)
    after = sums.copy()
    function("days_of", "pdb")(after.ctypes.data, days, changed)
    likely = np.log(np.maximum(-np.expm1(-x), 1e-12)) if changed else -x
    np.testing.assert_allclose(after, sums + likely, rtol=1e-3, atol=3e-3)


@given(SEEDS, st.integers(1, 40), st.integers(1, 9))
def test_a_prior_is_fitted_by_expectation_and_maximisation(
    seed: int, count: int, steps: int
) -> None:
    rng = np.random.default_rng(seed)
    sums = rng.normal(0, 4, (50, POINTS)).astype(np.float32)
    rows, parent = rng.permutation(50)[:count], rng.dirichlet(np.ones(POINTS))
    expected, found = parent, np.empty(POINTS)
    likelihood = np.exp(sums[rows].astype(np.float64))
    for _ in range(steps):
        shares = likelihood * expected
        shares /= shares.sum(axis=1, keepdims=True)
        expected = (shares.sum(axis=0) + 10 * parent) / (count + 10)
    function("fit_rows", "ppippi", "b")(
        sums.ctypes.data, rows.ctypes.data, count, found.ctypes.data, parent.ctypes.data, steps
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found.sum() == pytest.approx(1)
