from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.policies.greedy_index import GreedyIndex, GreedyIndexBinary
from freshet.scheduler.policies.noisy_signal_index import (
    NoisySignalIndex,
    binary_worth,
    harmonic_worth,
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
    assert [value("harmonic", 1, 1, 9, n) for n in (0, 1, 5)] == [0, 1, 5]


def test_the_binary_worth_of_a_notified_source_is_all_or_nothing() -> None:
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
    exact = harmonic_worth(r, q, np.array([level]))[0]
    assert value("harmonic", recall, precision, age, signals) == pytest.approx(exact, rel=1e-3)
    sum_of_paths = binary_worth(r, q, np.array([age]), np.array([signals]))[0]
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


def test_it_pays_less_than_ignoring_the_signals_and_than_believing_them() -> None:
    compared: Any = scheduler_signals.figures(quick=True)["cost_over_noisy_signal_index"]
    assert {row["cost"] for row in compared} == set(COSTS)
    for row in compared:
        assert min(row["ratio"]["ignoring"], row["ratio"]["believing"]) > 1
