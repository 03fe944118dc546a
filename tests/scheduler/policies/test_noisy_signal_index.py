from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.integrate import quad

from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.costs import ein, harmonic_number, noisy_harmonic
from freshet.scheduler.policies import noisy_signal_index
from freshet.scheduler.policies.greedy_index import GreedyIndex, GreedyIndexBinary
from freshet.scheduler.policies.noisy_signal_index import (
    NoisySignalIndex,
    binary_value,
    ein_inverse,
    exact_harmonic_value,
    harmonic_value,
)
from freshet.scheduler.policy import IndexPolicy
from freshet.scheduler.sources import SourceTable
from scripts.benchmarks import scheduler_signals
from tests.scheduler.signal_brute_force import Grid

COSTS = ["harmonic", "binary"]
PLAIN: dict[str, IndexPolicy] = {"harmonic": GreedyIndex(), "binary": GreedyIndexBinary()}


def states(recall: float, precision: float, ages: Floats, signals: Ints) -> SourceTable:
    """Sources of μ = Δ = 1 at day 0: all pairs of an age and a number of signals, row by row."""
    age, k = (each.ravel() for each in np.broadcast_arrays(ages, signals))
    one = np.ones(len(age))
    return SourceTable.of(
        one, one, last_crawl=-age, pending_signals=k, signal_rate=one * recall / precision,
        signal_precision=one * precision,
    )  # fmt: skip


def value(cost: str, recall: float, precision: float, age: float, signals: int = 0) -> float:
    state = states(recall, precision, np.array([age]), np.array([signals]))
    return float(NoisySignalIndex(cost).index(state, 0)[0])


def some(n: int, seed: int) -> SourceTable:
    rng = np.random.default_rng(seed)
    delta, q = rng.lognormal(-1, 2, n), rng.uniform(0.05, 1, n)
    g = rng.uniform(0, 1, n) * delta / q
    age = rng.lognormal(1, 1, n)
    return SourceTable.of(
        rng.lognormal(3, 2, n), delta, last_crawl=-age, pending_signals=rng.poisson(g * age),
        signal_rate=g, signal_precision=q,
    )  # fmt: skip


@pytest.mark.parametrize("cost", COSTS)
def test_a_crawl_in_the_future_counts_as_one_now(cost: str) -> None:
    assert value(cost, 0.6, 0.7, -3, 2) == value(cost, 0.6, 0.7, 0, 2)


@pytest.mark.parametrize("cost", COSTS)
@given(
    recall=st.floats(0.01, 1),
    precision=st.floats(0.01, 1),
    age=st.floats(0, 20),
    signals=st.integers(0, 60),
    later=st.floats(1e-6, 5),
)
def test_time_and_signals_never_lower_the_index(
    cost: str, recall: float, precision: float, age: float, signals: int, later: float
) -> None:
    before = value(cost, recall, precision, age, signals)
    # To the rounding of one sum of a few dozen terms.
    assert value(cost, recall, precision, age + later, signals) >= before * (1 - 1e-12)
    assert value(cost, recall, precision, age, signals + 1) >= before * (1 - 1e-12)


@pytest.mark.parametrize("cost", COSTS)
def test_without_signals_it_is_the_greedy_index(cost: str) -> None:
    silent = SourceTable.of([3, 5, 7], [0.1, 1, 0], last_crawl=[-1, -2, -3])
    worthless = SourceTable.of(
        [3, 5, 7], [0.1, 1, 0], last_crawl=[-1, -2, -3], signal_rate=[9, 9, 9],
        pending_signals=[9, 9, 9],
    )  # fmt: skip
    for table in (silent, worthless):
        index = NoisySignalIndex(cost).index(table, 1.5)
        assert index.tolist() == PLAIN[cost].index(silent, 1.5).tolist()


@pytest.mark.parametrize("cost", COSTS)
def test_the_greedy_index_is_the_limit_of_rare_signals(cost: str) -> None:
    for age in (0.01, 0.3, 3, 30):
        plain = PLAIN[cost].index(SourceTable.of([1], [1], last_crawl=[-age]), 0)[0]
        assert value(cost, 1e-7, 0.5, age) == pytest.approx(plain, rel=1e-5)


def test_complete_observations_are_worth_their_changes() -> None:
    complete = SourceTable.of(
        [6, 6], [2, 2], complete_observations=[True, True], pending_signals=[0, 5]
    )
    assert NoisySignalIndex().index(complete, 9).tolist() == [0, 15]
    assert [value("harmonic", 1, 1, 9, n) for n in (0, 1, 5, 10_000)] == [0, 1, 5, 10_000]
    # The binary worth is all or nothing.
    assert [value("binary", 1, 1, 9, n) for n in (0, 1, 5)] == [0, 1, 1]


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("signals", [1, 2, 5])
def test_nearly_faultless_signals_are_nearly_complete_observations(cost: str, signals: int) -> None:
    nearly = value(cost, 1 - 1e-6, 1 - 1e-6, 2.0, signals)
    assert nearly == pytest.approx(signals if cost == "harmonic" else 1, rel=5e-3)


def test_it_is_the_exact_worth_of_the_state() -> None:
    recall, precision, age, signals = 0.6, 0.7, 1.5, 2
    r, q = np.array([[recall], [precision]])
    n = np.arange(60)
    # E H(N) from the generating function of N = Poisson(0.6) + Bin(2, 0.7).
    poisson = np.exp(-0.6) * np.cumprod(np.concatenate([[1.0], 0.6 / n[1:]]))
    law = np.convolve(poisson, [0.09, 0.42, 0.49])
    level = law[:60] @ np.concatenate([[0.0], np.cumsum(1 / n[1:])])
    exact = exact_harmonic_value(r, q, np.array([level]))[0]
    assert value("harmonic", recall, precision, age, signals) == pytest.approx(exact, rel=1e-3)
    sum_of_paths = binary_value(r, q, np.array([age]), np.array([signals]))[0]
    assert value("binary", recall, precision, age, signals) == sum_of_paths


@pytest.mark.parametrize("cost", COSTS)
def test_at_a_fixed_price_no_rule_costs_less_than_crawling_when_the_index_reaches_it(
    cost: str,
) -> None:
    recall, precision, price = 0.6, 0.7, 0.25
    grid = Grid(recall, precision, cost, until=10.0, steps=1000)
    times, signals = grid.times[:, None], np.arange(grid.signals)
    index = NoisySignalIndex(cost).index(states(recall, precision, times, signals), 0)
    crawl = index.reshape(grid.gap.shape) >= price
    least = grid.long_run_cost(crawl, price)
    # What is right at this price is to crawl when the long-run cost is reached.
    assert grid.gap[crawl].min() == pytest.approx(least, rel=2e-2)
    others = [grid.gap >= least * factor for factor in (0.5, 0.8, 0.9, 1.1, 1.2, 1.6)]
    others += [(times >= age) & (signals >= 0) for age in np.linspace(0.3, 3, 28)]
    others += [(signals >= k) | (times >= age) for k in (1, 2, 3) for age in (0.5, 1, 2, 4)]
    assert min(grid.long_run_cost(rule, price) for rule in others) > least


@pytest.mark.parametrize("cost", COSTS)
def test_units_of_importance_and_time_do_not_matter(cost: str) -> None:
    table = some(50, 1)
    heavier = SourceTable.of(
        table.importance * 4, table.change_rate / 8, last_crawl=table.last_crawl * 8,
        pending_signals=table.pending_signals, signal_rate=table.signal_rate / 8,
        signal_precision=table.signal_precision,
    )  # fmt: skip
    index = NoisySignalIndex(cost).index
    assert index(heavier, 0) == pytest.approx(32 * index(table, 0), rel=1e-9)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("precision", [1e-12, 1e-8, 1e-3, 0.5, 1 - 1e-15, 1.0])
@pytest.mark.parametrize("recall", [1e-12, 0.5, 1 - 1e-15, 1.0])
def test_extreme_sources_have_finite_worths(cost: str, precision: float, recall: float) -> None:
    ages, counts = np.meshgrid([0, 1e-9, 1, 1e3, 1e12], [0, 1, 100, 10**9])
    n = ages.size
    for delta in (1e-9, 1.0, 1e9):
        table = SourceTable.of(
            np.ones(n), np.full(n, delta), last_crawl=-ages.ravel() / delta,
            pending_signals=counts.ravel(), signal_rate=np.full(n, recall * delta / precision),
            signal_precision=np.full(n, precision),
        )  # fmt: skip
        index = NoisySignalIndex(cost).index(table, 0) * delta
        assert np.isfinite(index).all()
        assert (index >= 0).all()
        assert (np.diff(index.reshape(ages.shape), axis=1) >= -1e-9 * index.max()).all()


def test_another_cost_is_refused() -> None:
    with pytest.raises(ValueError, match="cost: is 'cubic'; accepted are harmonic, binary"):
        NoisySignalIndex("cubic")


@pytest.mark.long
def test_it_pays_less_than_ignoring_the_signals_and_than_believing_them() -> None:
    compared: Any = scheduler_signals.figures(quick=True)["cost_over_noisy_signal_index"]
    assert {row["cost"] for row in compared} == set(COSTS)
    for row in compared:
        assert min(row["ratio"]["ignoring"], row["ratio"]["believing"]) > 1


def paths(n: int, recall: Floats, seed: int) -> tuple[Floats, Floats, Floats, Ints]:
    rng = np.random.default_rng(seed)
    precision = rng.uniform(0.02, 1, n)
    elapsed = rng.lognormal(0, 1.3, n)
    return recall, precision, elapsed, rng.poisson(recall / precision * elapsed)


def error(recall: Floats, precision: Floats, elapsed: Floats, signals: Ints) -> Floats:
    level = noisy_harmonic((1 - recall) * elapsed, signals, precision)
    exact = exact_harmonic_value(recall, precision, level)
    some = exact > 0
    return np.abs(harmonic_value(recall, precision, elapsed, signals)[some] / exact[some] - 1)


def test_the_fast_form_is_the_exact_sum_to_a_quarter_of_a_per_cent() -> None:
    errors = error(*paths(2000, np.random.default_rng(1).uniform(0.001, 0.95, 2000), 2))
    assert errors.max() < 2.5e-3
    assert np.median(errors) < 1e-4


@pytest.mark.parametrize("recall", [0.97, 0.999, 1 - 1e-9, 1.0])
def test_the_fast_form_is_nearly_as_good_where_almost_every_change_is_told_of(
    recall: float,
) -> None:
    assert error(*paths(500, np.full(500, recall), 3)).max() < 5e-3


@pytest.mark.parametrize("recall", [0.01, 0.5, 0.9, 0.999])
def test_up_to_the_first_signal_it_is_exact(recall: float) -> None:
    precision = np.linspace(0.05, 1, 20)
    elapsed = np.geomspace(1e-3, 0.99, 20) * precision / (1 - recall)
    errors = error(np.full(20, recall), precision, elapsed, np.zeros(20, np.int64))
    assert errors.max() < 1e-9


def test_the_table_rises_nowhere_less_than_the_index_must() -> None:
    """On every cell of the table, at its corners and between them, W rises with the level."""
    rng = np.random.default_rng(4)
    recall, precision = rng.uniform(0.01, 1, 60), rng.uniform(0.02, 1, 60)
    recall[:10] = 1 - 1e-6
    for r, q in zip(recall, precision, strict=True):
        elapsed = np.geomspace(1e-4, 60, 1500) / (1 - r)
        columns = np.full(1500, r), np.full(1500, q), elapsed, np.zeros(1500, np.int64)
        assert (np.diff(harmonic_value(*columns)) > 0).all()


SHAPES = [(0.3, 0.5), (0.6, 0.9), (0.9, 0.5), (0.97, 0.8), (0.5, 1.0)]


def harmonic(recall: float, precision: float, level: float) -> float:
    return float(
        exact_harmonic_value(np.array([recall]), np.array([precision]), np.array([level]))[0]
    )


def binary(recall: float, precision: float, elapsed: float, signals: int = 0) -> float:
    r, q, s = np.array([[recall], [precision], [elapsed]])
    return float(binary_value(r, q, s, np.array([signals]))[0])


def at_level(recall: float, level: float) -> float:
    """The age at which a silent source has this binary level."""
    return float(-np.log1p(-level) / (1 - recall))


def last_age(silence: float, signal_rate: float) -> float:
    """No path is left by then, for it stops in silence, or after some forty signals."""
    return 1.01 * min(silence, 40 / signal_rate)


@example(0.0)
@given(st.floats(1e-12, 40))
def test_the_inverse_of_ein_is_one(level: float) -> None:
    assert ein(ein_inverse(np.array([level])))[0] == pytest.approx(level, rel=1e-12)


@pytest.mark.parametrize(("recall", "precision"), SHAPES)
@pytest.mark.parametrize(
    ("cost", "level"),
    [("harmonic", 0.2), ("harmonic", 0.7), ("harmonic", 1.3), ("harmonic", 2.0),
     ("binary", 0.2), ("binary", 0.5), ("binary", 0.8), ("binary", 0.95)],
)  # fmt: skip
def test_no_stopping_rule_earns_more_than_the_worth(
    recall: float, precision: float, cost: str, level: float
) -> None:
    if cost == "harmonic":
        silence = ein_inverse(np.array([level]))[0] / (1 - recall)
        harmonic_value = harmonic(recall, precision, level)
    else:
        silence = at_level(recall, level)
        harmonic_value = binary(recall, precision, silence)
    grid = Grid(recall, precision, cost, last_age(silence, recall / precision))
    assert -grid.best(level) == pytest.approx(harmonic_value, rel=grid.step * recall / precision)
    assert grid.value(level) == pytest.approx(harmonic_value, rel=1e-3 if recall > 0.95 else 2e-5)


@given(st.integers(1, 60))
def test_the_sum_of_complete_observations_is_their_number(n: int) -> None:
    assert harmonic(1, 1, harmonic_number(n)) == pytest.approx(n, rel=1e-9)


@given(st.floats(1e-6, 30), st.floats(1e-3, 1))
def test_without_recall_the_worth_is_that_of_the_clock(x: float, precision: float) -> None:
    clock = quad(lambda s: -np.expm1(-s), 0, x, epsrel=1e-12)[0]
    assert harmonic(1e-12, precision, ein(x)) == pytest.approx(clock, rel=1e-7)
    stale = quad(lambda s: s * np.exp(-s), 0, x, epsrel=1e-12)[0]
    assert binary(1e-12, precision, x) == pytest.approx(stale, rel=1e-7)


@given(st.floats(1e-6, 0.999), st.floats(0.01, 1))
def test_up_to_one_signal_the_worth_is_that_of_silence(recall: float, precision: float) -> None:
    a, g = 1 - recall, recall / precision
    level = 0.99 * precision
    m = ein_inverse(np.array([level]))[0]
    # By parts: the level rises by dD while e^{−gs} of the paths are silent.
    silent = quad(
        lambda u: -np.expm1(-g / a * m * u) * -np.expm1(-m * u) / u, 0, 1, points=[min(a / g, 0.5)]
    )[0]
    assert harmonic(recall, precision, level) == pytest.approx(silent / g, rel=1e-6)


def test_the_binary_worth_of_a_printed_example() -> None:
    a, g, q = 0.1, 0.2, 0.8
    delta = a + g * q
    harmonic_value = binary(g * q / delta, q, 16 * delta) / delta
    assert harmonic_value == pytest.approx(2.34, abs=0.005)
    assert (1 - np.exp(-1.6) * 2.6) / a == pytest.approx(4.75, abs=0.005)


def test_signals_count_for_the_binary_worth_as_effective_age() -> None:
    recall, precision = 0.6, 0.7
    as_old = np.log(1 / 0.3) / 0.4
    assert binary(recall, precision, 0.5, 2) == pytest.approx(
        binary(recall, precision, 0.5 + 2 * as_old), rel=1e-12
    )


@pytest.mark.parametrize("recall", [0.1, 0.6, 0.95])
@pytest.mark.parametrize("precision", [0.01, 0.02, 0.03])
def test_many_signals_of_little_worth_are_a_fluid(recall: float, precision: float) -> None:
    x = 2.5
    g, jump = recall / precision, -np.log1p(-precision)

    def uncovered(s: float) -> float:
        k = np.arange(2000)
        received = np.exp(k * np.log(g * s) - g * s - np.cumsum(np.log(np.maximum(k, 1))))
        gap = np.exp(-(1 - recall) * s - k * jump) - np.exp(-x)
        return float(received @ np.maximum(gap, 0))

    exact = quad(uncovered, 0, x / (1 - recall), limit=400, epsabs=1e-8)[0]
    assert binary(recall, precision, x / (1 - recall)) == pytest.approx(exact, rel=1e-4)
    assert x / jump > noisy_signal_index._FOLLOWED


@pytest.mark.parametrize(("recall", "precision"), [*SHAPES, (1.0, 1.0), (1.0, 0.5), (0.5, 1e-6)])
def test_a_source_stale_for_ever_is_worth_one(recall: float, precision: float) -> None:
    assert binary(recall, precision, 1e9, 10**8) == pytest.approx(1, rel=1e-4)
