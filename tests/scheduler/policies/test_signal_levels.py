import numpy as np
import pytest

from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.costs import noisy_harmonic
from freshet.scheduler.policies.noisy_signal_index import harmonic_worth, worth


def states(n: int, recall: Floats, seed: int) -> tuple[Floats, Floats, Floats, Ints]:
    rng = np.random.default_rng(seed)
    precision = rng.uniform(0.02, 1, n)
    elapsed = rng.lognormal(0, 1.3, n)
    return recall, precision, elapsed, rng.poisson(recall / precision * elapsed)


def error(recall: Floats, precision: Floats, elapsed: Floats, signals: Ints) -> Floats:
    level = noisy_harmonic((1 - recall) * elapsed, signals, precision)
    exact = harmonic_worth(recall, precision, level)
    some = exact > 0
    return np.abs(worth(recall, precision, elapsed, signals)[some] / exact[some] - 1)


def test_the_fast_form_is_the_exact_sum_to_a_quarter_of_a_per_cent() -> None:
    errors = error(*states(2000, np.random.default_rng(1).uniform(0.001, 0.95, 2000), 2))
    assert errors.max() < 2.5e-3
    assert np.median(errors) < 1e-4


@pytest.mark.parametrize("recall", [0.97, 0.999, 1 - 1e-9, 1.0])
def test_the_fast_form_is_nearly_as_good_where_almost_every_change_is_told_of(
    recall: float,
) -> None:
    assert error(*states(500, np.full(500, recall), 3)).max() < 5e-3


@pytest.mark.parametrize("recall", [0.01, 0.5, 0.9, 0.999])
def test_up_to_the_first_signal_it_is_exact(recall: float) -> None:
    precision = np.linspace(0.05, 1, 20)
    elapsed = np.geomspace(1e-3, 0.99, 20) * precision / (1 - recall)
    errors = error(np.full(20, recall), precision, elapsed, np.zeros(20, np.int64))
    assert errors.max() < 1e-9


def test_complete_observations_are_worth_their_number() -> None:
    one = np.ones(4)
    signals = np.array([0, 1, 7, 10_000])
    assert worth(one, one, one, signals).tolist() == signals.tolist()


def test_the_table_rises_nowhere_less_than_the_index_must() -> None:
    """On every cell of the table, at its corners and between them, W rises with the level."""
    rng = np.random.default_rng(4)
    recall, precision = rng.uniform(0.01, 1, 60), rng.uniform(0.02, 1, 60)
    recall[:10] = 1 - 1e-6
    for r, q in zip(recall, precision, strict=True):
        elapsed = np.geomspace(1e-4, 60, 1500) / (1 - r)
        columns = np.full(1500, r), np.full(1500, q), elapsed, np.zeros(1500, np.int64)
        assert (np.diff(worth(*columns)) > 0).all()
