"""Functions over arrays: what they accept, and that they do what slow references do."""

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import psi

from freshet.compiled import numeric
from freshet.compiled.numeric import CONSTANTS, Floats, Structure, record
from freshet.scheduler.estimate import site_model
from freshet.scheduler.estimate.site_model import POINTS, RATES, Pages, SiteLearner, unknown_site
from tests.compiled.inner import function, look, read

SEEDS = st.integers(0, 2**32 - 1)
SHARED, REWRITTEN, ALPHA = CONSTANTS["SHARED"], CONSTANTS["REWRITTEN"], 0.2


# -- what is accepted --


def some_pages(n: int = 3) -> Pages:
    return Pages(np.zeros(n, record("page")))


def some_visits(*rows: int) -> NDArray[np.void]:
    visits = np.zeros(len(rows), record("visit"))
    visits["row"], visits["turn"], visits["compared"] = rows, 1.0, True
    return visits


def test_records_are_laid_out_as_in_c() -> None:
    page = record("page")
    assert page.fields is not None
    assert [page.fields[name][1] for name in ("known", "area", "number", "cold")] == [0, 4, 16, 72]
    assert page.itemsize == 80


def test_a_structure_takes_arrays_of_its_types_and_shapes_alone() -> None:
    prior = np.zeros((17, POINTS))
    good = {"facts": np.zeros(1, record("site_facts")), "prior": prior, "plain_prior": prior}
    good |= {name: np.zeros((4, POINTS), np.float32) for name in ("likelihood", "plain_likelihood")}
    rows = np.zeros(4, np.int64)
    made = Structure("site", SimpleNamespace(**good, rows=rows), room=4)
    assert (made.name, made.numbers) == ("site", {"room": 4})
    frozen = rows.copy()
    frozen.flags.writeable = False
    for wrong in (rows[:3], rows.astype(np.int32), np.zeros(8, np.int64)[::2], frozen):
        with pytest.raises(TypeError, match=r"site\.rows"):
            Structure("site", SimpleNamespace(**good, rows=wrong), room=4)


def test_no_structure_goes_to_another_process() -> None:
    with pytest.raises(TypeError, match="addresses are of one process"):
        pickle.dumps(unknown_site().structure)


def test_columns_are_of_their_types_and_of_one_length() -> None:
    worth, host = np.ones(3), np.zeros(3, np.int64)
    assert numeric.two_of_each(worth, host, 1)[0].tolist() == [0]
    wrongs: list[Any] = [np.ones(4), np.ones(3, np.float32), np.ones(6)[::2]]
    for wrong in wrongs:
        with pytest.raises(TypeError, match="two_of_each: "):
            numeric.two_of_each(wrong, host, 1)
    frozen = np.zeros(3, np.bool_)
    frozen.flags.writeable = False
    with pytest.raises(TypeError, match="cannot be written to"):
        numeric.count_pages(frozen, some_visits(0), 0, 1.0)


def test_a_structure_is_not_taken_for_another() -> None:
    site = unknown_site().structure
    with pytest.raises(TypeError, match="site is not"):
        numeric.site_learn(site, site, site_model.stopped().structure, some_visits(0), 0)


@pytest.mark.parametrize("row", [-1, 3, 2**62])
def test_rows_that_there_are_not_change_nothing(row: int) -> None:
    pages, learner = some_pages(), SiteLearner()
    with pytest.raises(IndexError):
        learner.learn(pages, some_visits(0, row))
    there = np.zeros(3, np.bool_)
    with pytest.raises(IndexError):
        numeric.count_pages(there, some_visits(0, row), 0, 1.0)
    assert not pages.page["known"].any()
    assert not there.any()
    with pytest.raises(IndexError):
        numeric.two_of_each(np.ones(1), np.array([row]), 3)


def test_areas_and_room_that_there_are_not_change_nothing() -> None:
    pages, site = some_pages(), unknown_site()
    states = pages.structure, site.structure, site_model.stopped().structure
    with pytest.raises(IndexError):
        numeric.site_learn(*states, some_visits(0), 0)
    pages.page["area"] = 16
    with pytest.raises(IndexError):
        SiteLearner().learn(pages, some_visits(0))
    assert not pages.page["known"].any()
    with pytest.raises(IndexError):
        numeric.clock_sum_from(site_model.stopped().structure, 0, 1)


def test_a_site_without_a_clock_has_no_hazards_by_it() -> None:
    pages, learner = some_pages(), SiteLearner()
    learner.learn(pages, some_visits(0))
    with pytest.raises(IndexError):
        learner.write_hazards(pages, 1.0, np.zeros(3), np.zeros(3))


# -- the rows of the grid --


def test_rates_are_even_in_their_logarithm() -> None:
    np.testing.assert_allclose(RATES, np.geomspace(2e-4, 50.0, 48), rtol=1e-13)


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


@pytest.mark.parametrize("x", np.geomspace(1e-2, 1e4, 60))
def test_the_weight_of_evidence_is_exp_psi(x: float) -> None:
    assert function("exp_digamma_of", "d", "d")(x) == pytest.approx(np.exp(psi(x)), rel=2e-4)


# -- the clock, by all bins at once --


class SlowClock:
    """A clock of one area that divides every change among bins at once, without a ring's limits."""

    def __init__(self, bins: int, width: float) -> None:
        self.edges = width * np.arange(bins + 1)
        self.width = width
        self.exposure, self.cold_exposure = np.zeros((2, bins))
        self.seen: list[tuple[float, float, float, float]] = []
        self.given: list[tuple[Floats, Floats]] = []

    def _overlap(self, begin: float, end: float) -> Floats:
        left, right = self.edges[:-1], self.edges[1:]
        days: Floats = np.maximum(np.minimum(end, right) - np.maximum(begin, left), 0.0)
        return days

    def look(self, begin: float, end: float, rate: float, theta: float, changed: bool) -> None:
        days = self._overlap(begin, end)
        self.exposure += SHARED * rate * days
        self.cold_exposure += theta * days / self.width
        if changed:
            self.seen.append((begin, end, rate, theta))
            self.given.append((np.zeros_like(days), np.zeros_like(days)))
            for k in reversed(range(len(self.seen))):
                if self.seen[k][1] >= begin:
                    self._divide(k)

    def _divide(self, k: int) -> None:
        begin, end, rate, theta = self.seen[k]
        days = self._overlap(begin, end)
        others = [each for n, each in enumerate(self.given) if n != k] or [(0 * days, 0 * days)]
        changes, cold = (np.sum(each, axis=0) for each in zip(*others, strict=True))
        a, c = ALPHA * self.width, REWRITTEN * self.width
        each = days / (a + self.exposure)
        own = theta * days / self.width
        cold_each = days / self.width / (1 + np.maximum(self.cold_exposure - own, 0))
        hazard = rate * SHARED * (each * (a + changes)).sum()
        cold_hazard = theta * (cold_each * (c + cold)).sum()
        total = hazard + cold_hazard + rate * (1 - SHARED) * (end - begin)
        found = total / -np.expm1(-total) / total
        shared, jumps = each * np.exp(psi(a + changes)), cold_each * np.exp(psi(c + cold))
        jumps = np.maximum(jumps, cold_each * np.exp(-300.0))
        self.given[k] = (
            found * hazard * shared / shared.sum(), found * cold_hazard * jumps / jumps.sum(),
        )  # fmt: skip

    def shared(self) -> Floats:
        """Return M(t) at the edges."""
        changes = np.sum([shared for shared, _ in self.given], axis=0)
        a = ALPHA * self.width
        pace = (a + changes) / (a + self.exposure)
        return np.append(0.0, np.cumsum(self.width * pace))


@given(SEEDS)
def test_a_clock_goes_as_one_that_looks_at_all_bins(seed: int) -> None:
    rng = np.random.default_rng(seed)
    slow, clock = SlowClock(60, 0.25), site_model.with_larger_ring(site_model.started(0.0, 0.25, 1))
    for end in np.sort(rng.uniform(1.0, 14.9, 20)).tolist():
        begin = max(end - rng.exponential(2.0), 0.0)
        rate, theta, changed = 10 ** rng.uniform(-2, 0), rng.random(), bool(rng.random() < 0.4)
        look(clock, begin, end, rate, theta, 0, changed)
        slow.look(begin, end, rate, theta, changed)
    summed = int(clock.facts["summed"][0])
    found, _ = read(clock, slow.edges[:summed].tolist())
    expected = slow.shared() if slow.given else found
    np.testing.assert_allclose(found, expected[:summed], rtol=2e-3)
