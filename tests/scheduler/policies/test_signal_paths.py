import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from freshet.scheduler.costs import ein, harmonic_number
from freshet.scheduler.policies import noisy_signal_index
from freshet.scheduler.policies.noisy_signal_index import binary_worth, ein_inverse, harmonic_worth
from tests.scheduler.signal_brute_force import Grid

SHAPES = [(0.3, 0.5), (0.6, 0.9), (0.9, 0.5), (0.97, 0.8), (0.5, 1.0)]


def harmonic(recall: float, precision: float, level: float) -> float:
    return float(harmonic_worth(np.array([recall]), np.array([precision]), np.array([level]))[0])


def binary(recall: float, precision: float, elapsed: float, signals: int = 0) -> float:
    r, q, s = np.array([[recall], [precision], [elapsed]])
    return float(binary_worth(r, q, s, np.array([signals]))[0])


def at_level(recall: float, level: float) -> float:
    """The age at which a silent source has this binary level."""
    return float(-np.log1p(-level) / (1 - recall))


def last_age(silence: float, signal_rate: float) -> float:
    """No path is left by then, for it stops in silence, or after some forty signals."""
    return 1.01 * min(silence, 40 / signal_rate)


@given(st.floats(1e-12, 40))
def test_the_inverse_of_ein_is_one(level: float) -> None:
    assert ein(ein_inverse(np.array([level])))[0] == pytest.approx(level, rel=1e-12)


def test_the_inverse_of_ein_starts_at_zero() -> None:
    assert ein_inverse(np.zeros(1)).tolist() == [0]


@pytest.mark.parametrize(("recall", "precision"), SHAPES)
@pytest.mark.parametrize("level", [0.2, 0.7, 1.3, 2.0])
def test_no_stopping_rule_earns_more_than_the_harmonic_worth(
    recall: float, precision: float, level: float
) -> None:
    silence = ein_inverse(np.array([level]))[0] / (1 - recall)
    grid = Grid(recall, precision, "harmonic", last_age(silence, recall / precision))
    worth = harmonic(recall, precision, level)
    assert -grid.best(level) == pytest.approx(worth, rel=grid.step * recall / precision)
    assert grid.value(level) == pytest.approx(worth, rel=1e-3 if recall > 0.95 else 2e-5)


@pytest.mark.parametrize(("recall", "precision"), SHAPES)
@pytest.mark.parametrize("level", [0.2, 0.5, 0.8, 0.95])
def test_no_stopping_rule_earns_more_than_the_binary_worth(
    recall: float, precision: float, level: float
) -> None:
    silence = at_level(recall, level)
    grid = Grid(recall, precision, "binary", last_age(silence, recall / precision))
    worth = binary(recall, precision, at_level(recall, level))
    assert -grid.best(level) == pytest.approx(worth, rel=grid.step * recall / precision)
    assert grid.value(level) == pytest.approx(worth, rel=1e-3 if recall > 0.95 else 2e-5)


@given(st.integers(1, 60))
def test_complete_observations_are_worth_their_number(n: int) -> None:
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
    worth = binary(g * q / delta, q, 16 * delta) / delta
    assert worth == pytest.approx(2.34, abs=0.005)
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
        heard = np.exp(k * np.log(g * s) - g * s - np.cumsum(np.log(np.maximum(k, 1))))
        gap = np.exp(-(1 - recall) * s - k * jump) - np.exp(-x)
        return float(heard @ np.maximum(gap, 0))

    exact = quad(uncovered, 0, x / (1 - recall), limit=400, epsabs=1e-8)[0]
    assert binary(recall, precision, x / (1 - recall)) == pytest.approx(exact, rel=1e-4)
    assert x / jump > noisy_signal_index._FOLLOWED


@pytest.mark.parametrize(("recall", "precision"), [*SHAPES, (1.0, 1.0), (1.0, 0.5), (0.5, 1e-6)])
def test_a_source_stale_for_ever_is_worth_one(recall: float, precision: float) -> None:
    assert binary(recall, precision, 1e9, 10**8) == pytest.approx(1, rel=1e-4)
