import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.estimate.evidence import Evidence
from freshet.scheduler.estimate.poisson import PoissonMle, estimate, estimate_many
from freshet.scheduler.sources import Rows
from tests.scheduler.estimate.pieces import pieces

HISTORY = st.lists(st.tuples(st.floats(1e-4, 1e4), st.booleans()), max_size=12)


def columns(history: list[tuple[float, bool]]) -> tuple[Floats, Bools]:
    return np.array([a for a, _ in history]), np.array([z for _, z in history], np.bool_)


def log_likelihood(
    log_rate: float, intervals: Floats, changed: Bools, counts: int = 0, days: float = 0.0
) -> float:
    """The logarithm of the probability of what was seen, as the text defines it."""
    rate = np.exp(log_rate)
    differed = np.log(-np.expm1(-intervals[changed] * rate)).sum()
    return float(differed - rate * intervals[~changed].sum() + counts * log_rate - rate * days)


def maximiser(
    intervals: Floats, changed: Bools, counts: int = 0, days: float = 0.0, smoothing: float = 0.5
) -> float:
    a = np.append(intervals, [smoothing, smoothing])
    z = np.append(changed, [True, False])
    found = minimize_scalar(
        lambda log_rate: -log_likelihood(log_rate, a, z, counts, days), bounds=(-15, 15),
        method="bounded", options={"xatol": 1e-10},
    )  # fmt: skip
    return float(np.exp(found.x))


def evidence(rng: np.random.Generator, n: int, m: int, counted_share: float = 0.0) -> Evidence:
    source = rng.integers(0, n, m)
    span = rng.exponential(1.0, m)
    changes = rng.poisson(span * 0.7)
    counted = rng.random(m) < counted_share
    return Evidence(
        source, rng.uniform(0, 100, m), span, np.where(counted, changes, changes > 0), counted
    )


def taken(whole: Evidence, rows: slice | Rows) -> Evidence:
    return Evidence(
        whole.source[rows], whole.at[rows], whole.span[rows], whole.changes[rows],
        whole.counted[rows],
    )  # fmt: skip


@given(HISTORY)
def test_the_estimate_maximises_the_likelihood(history: list[tuple[float, bool]]) -> None:
    a, z = columns(history)
    # An optimiser that sees values only knows a maximum to the root of their precision.
    assert estimate(a, z) == pytest.approx(maximiser(a, z), rel=1e-5)


@given(HISTORY, st.sampled_from([0.01, 0.5, 7.0]))
def test_the_estimate_solves_equation_10(history: list[tuple[float, bool]], s: float) -> None:
    a, z = columns(history)
    rate = estimate(a, z, smoothing=s)
    with np.errstate(over="ignore"):
        left = (a[z] / np.expm1(a[z] * rate)).sum() + s / np.expm1(s * rate)
    assert left == pytest.approx(a[~z].sum() + s, rel=1e-9)


@pytest.mark.parametrize(("changed", "crawls"), [(1, 20), (7, 20), (19, 20)])
def test_equal_intervals_have_a_closed_form(changed: int, crawls: int) -> None:
    z = np.arange(crawls) < changed
    # The share of crawls that saw a change is 1 − e^{−aΔ}.
    expected = -math.log(1 - changed / crawls) / 5
    assert estimate(np.full(crawls, 5.0), z, smoothing=0) == pytest.approx(expected, rel=1e-12)


def test_lengths_that_differ_by_ten_orders_of_magnitude_are_no_trouble() -> None:
    a = np.concatenate((np.full(1000, 1e-5), [1e5]))
    z = np.ones(1001, np.bool_)
    rate = estimate(a, z)
    # All but the long interval are as if counted; the long one, overflowing, tells nothing.
    assert rate == pytest.approx(maximiser(a, z), rel=1e-5)
    assert 1900 < rate < 2010


def test_the_plain_maximum_may_be_zero_or_infinite_and_is_said() -> None:
    assert estimate([1.0, 2.0], [True, True], smoothing=0) == math.inf
    assert estimate([1.0, 2.0], [False, False], smoothing=0) == 0


def test_ragged_histories_in_any_order_give_each_source_its_own_estimate() -> None:
    rng = np.random.default_rng(5)
    lengths = np.append(rng.integers(0, 12, 300), [0, 5000])
    source = np.repeat(np.arange(len(lengths)), lengths)
    a = rng.exponential(2.0, len(source))
    z = rng.random(len(source)) < -np.expm1(-a * rng.lognormal(0, 2, len(lengths))[source])
    alone = [estimate(a[source == i], z[source == i]) for i in range(len(lengths))]
    np.testing.assert_allclose(estimate_many(source, a, z, len(lengths)), alone, rtol=1e-12)
    mixed = rng.permutation(len(source))
    again = estimate_many(source[mixed], a[mixed], z[mixed], len(lengths))
    np.testing.assert_allclose(again, alone, rtol=1e-12)


def test_more_sources_than_are_solved_at_a_time_are_all_solved() -> None:
    n = 10_000
    rng = np.random.default_rng(6)
    source = np.repeat(np.arange(n), 3)
    a = rng.exponential(1.0, 3 * n)
    z = rng.random(3 * n) < 0.5
    rates = estimate_many(source, a, z, n)
    for i in (0, 4095, 4096, 8191, 8192, n - 1):
        assert rates[i] == pytest.approx(estimate(a[source == i], z[source == i]), rel=1e-12)


def test_the_estimate_converges_to_the_rate_at_irregular_crawls() -> None:
    rng = np.random.default_rng(7)
    for rate in (0.05, 0.5, 3.0):
        a = rng.gamma(0.5, 2.0, 100_000)
        z = rng.random(len(a)) < -np.expm1(-a * rate)
        assert estimate(a, z) == pytest.approx(rate, rel=0.03)


@pytest.mark.parametrize(
    ("intervals", "changed", "smoothing", "message"),
    [
        ([1.0, 0.0], [True, True], 0.5, "intervals: row 1 is 0.0; accepted is a number above 0"),
        ([1.0, math.nan], [True, True], 0.5, "intervals: row 1 is nan; accepted is a number abo"),
        ([math.inf], [True], 0.5, "intervals: row 0 is inf; accepted is a finite number"),
        ([1.0], [True, False], 0.5, "changed: has 2 rows; accepted are 1"),
        ([1.0], [1], 0.5, "changed: has dtype int64; accepted are truth values (bool)"),
        ([1.0], [True], -1.0, "smoothing: row 0 is -1.0; accepted is a finite number of at leas"),
        ([], [], 0.0, "intervals: source 0 has none; accepted is at least one without smoothing"),
    ],
)
def test_bad_input_is_told(
    intervals: list[float], changed: list[bool], smoothing: float, message: str
) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        estimate(intervals, changed, smoothing=smoothing)


def test_counted_changes_are_changed_intervals_of_no_length() -> None:
    learner = PoissonMle(1)
    learner.observe(pieces([0, 0, 0], [1, 3, 9], [1, 2, 6], [1, 0, 0]))
    learner.observe(pieces([0, 0], [10, 12], [1, 2], [4, 0], counted=[True, True]))
    expected = maximiser(np.array([1.0, 2.0, 6.0]), np.array([True, False, False]), 4, 3.0)
    assert learner.change_rate()[0] == pytest.approx(expected, rel=1e-5)


def test_sources_of_complete_observations_have_the_estimate_of_algorithm_4() -> None:
    """(U + ½)/(S + ½): above 0 without a change, and in the end the rate."""
    rng = np.random.default_rng(1)
    changes = rng.poisson(0.3 * 1e6)
    learner = PoissonMle(4)
    learner.observe(
        pieces(
            [1, 1, 2, 3], [4, 6, 9.5, 1e6], [4, 2, 9.5, 1e6], [3, 0, 0, changes], counted=[True] * 4
        )
    )
    found = learner.change_rate().tolist()
    assert found[:3] == pytest.approx([math.log(2) / 0.5, 3.5 / 6.5, 0.05])
    assert found[3] == pytest.approx(0.3, rel=0.01)


def test_neither_order_nor_batches_of_evidence_matter() -> None:
    rng = np.random.default_rng(8)
    whole = evidence(rng, 40, 2_000, counted_share=0.2)
    at_once, in_parts = PoissonMle(40), PoissonMle(40)
    at_once.observe(whole)
    mixed = taken(whole, rng.permutation(len(whole)))
    for first in range(0, len(mixed), 7):
        in_parts.observe(taken(mixed, slice(first, first + 7)))
    np.testing.assert_allclose(in_parts.change_rate(), at_once.change_rate(), rtol=1e-12)


def test_some_rows_are_estimated_as_all_are() -> None:
    learner = PoissonMle(40)
    learner.observe(evidence(np.random.default_rng(9), 40, 500, counted_share=0.2))
    rows = np.array([31, 2, 2, 17])
    np.testing.assert_allclose(learner.change_rate(rows), learner.change_rate()[rows], rtol=1e-12)


def test_estimates_move_by_evidence_only() -> None:
    learner = PoissonMle(1)
    learner.observe(pieces([0], [15.0], [10.0], [0]))
    assert learner.revision == 0
