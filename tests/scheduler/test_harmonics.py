import doctest
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import binom, poisson

from freshet.scheduler import costs
from freshet.scheduler.costs import (
    changed_mean,
    ein,
    ein_integral,
    ein_mean,
    harmonic_number,
    noisy_harmonic,
)

EXACT = 1e-13
EXPONENTS = st.floats(-14, 15)
GAMMA = Decimal("0.57721566490153286060651209008240243104215933593992")


def decimal_ein(m: float) -> Decimal:
    """Ein by its series in 150 digits; beyond 150, where E1 is below 1e-67, by γ + ln m."""
    with localcontext(prec=150):
        x = Decimal(m)
        if x > 150:
            return GAMMA + x.ln()
        total, power = Decimal(0), Decimal(1)
        for k in range(1, 700):
            power *= x / k
            total += (power if k % 2 else -power) / k
        return total


def decimal_means(x: float) -> tuple[Decimal, Decimal]:
    """The means of Ein and of 1 − e^{−s} over (0, x), with digits to spare for subtraction."""
    with localcontext(prec=150):
        changed = 1 - (1 - (-Decimal(x)).exp()) / Decimal(x)
        return decimal_ein(x) - changed, changed


def test_the_examples_in_the_documentation_are_right() -> None:
    assert doctest.testmod(costs).failed == 0


@given(EXPONENTS)
def test_ein_has_thirteen_digits_from_tiny_to_huge(exponent: float) -> None:
    assert ein(10**exponent) == pytest.approx(float(decimal_ein(10**exponent)), rel=EXACT)


@given(EXPONENTS)
def test_the_means_have_thirteen_digits_from_tiny_to_huge(exponent: float) -> None:
    of_ein, changed = decimal_means(10**exponent)
    assert ein_mean(10**exponent) == pytest.approx(float(of_ein), rel=EXACT)
    assert changed_mean(10**exponent) == pytest.approx(float(changed), rel=EXACT)


@pytest.mark.parametrize("x", [0.3, 0.999, 1.001, 7.0])
def test_the_integrals_are_what_quadrature_says(x: float) -> None:
    by_definition, _ = integrate.quad(lambda s: -np.expm1(-s) / s, 0, x)
    area, _ = integrate.quad(ein, 0, x)
    assert ein(x) == pytest.approx(by_definition, rel=1e-10)
    assert ein_integral(x) == pytest.approx(area, rel=1e-10)
    assert ein_mean(x) == pytest.approx(area / x, rel=1e-10)


@pytest.mark.parametrize("m", [0.2, 3.0, 40.0])
def test_ein_is_the_mean_harmonic_number_of_poisson_changes(m: float) -> None:
    n = np.arange(200)
    assert ein(m) == pytest.approx(float(poisson.pmf(n, m) @ harmonic_number(n)), rel=1e-12)


def test_no_changes_cost_nothing_and_endless_ones_endlessly() -> None:
    for function in (ein, ein_mean, ein_integral, harmonic_number):
        assert function(np.array([0.0, np.inf])).tolist() == [0, np.inf]
    assert changed_mean(np.array([0.0, np.inf])).tolist() == [0, 1]


def test_harmonic_numbers_are_sums_of_fractions() -> None:
    exact = list(accumulate((Fraction(1, n) for n in range(1, 300)), initial=Fraction(0)))
    assert harmonic_number(np.arange(300)) == pytest.approx(np.array(exact, float), rel=1e-14)
    assert harmonic_number(2) - 1 == 0.5


def test_large_harmonic_numbers_follow_the_logarithm() -> None:
    assert harmonic_number(1e15) == pytest.approx(float(GAMMA + Decimal("1e15").ln()), rel=EXACT)


@given(st.integers(0, 60), st.floats(0, 1))
def test_without_unannounced_changes_true_signals_are_binomial(k: int, q: float) -> None:
    rest = 1 - Fraction(q)
    exact = sum(((1 - rest**j) / j for j in range(1, k + 1)), Fraction(0))
    assert noisy_harmonic(0.0, k, q) == pytest.approx(float(exact), rel=EXACT, abs=1e-300)


@pytest.mark.parametrize("m", [1e-6, 0.4, 5.0, 30.0])
@pytest.mark.parametrize("k", [1, 6, 90])
@pytest.mark.parametrize("q", [0.05, 0.5, 0.97, 1.0])
def test_noisy_harmonic_is_the_mean_over_both_laws(m: float, k: int, q: float) -> None:
    unannounced, true = np.arange(150)[:, None], np.arange(k + 1)
    both = poisson.pmf(unannounced, m) * binom.pmf(true, k, q)
    exact = float((both * harmonic_number(unannounced + true)).sum())
    assert noisy_harmonic(m, k, q) == pytest.approx(exact, rel=1e-11)


@given(st.floats(-12, 15), st.floats(0, 1))
def test_without_signals_or_with_worthless_ones_noisy_harmonic_is_ein(e: float, q: float) -> None:
    assert noisy_harmonic(10**e, 0, q) == pytest.approx(ein(10**e), rel=EXACT)
    assert noisy_harmonic(10**e, 7, 0.0) == pytest.approx(ein(10**e), rel=EXACT)


def test_a_million_perfect_signals_are_a_million_changes() -> None:
    assert noisy_harmonic(0.0, 10**6, 1.0) == pytest.approx(harmonic_number(10**6), rel=EXACT)


def test_arrays_keep_their_shape_and_numbers_stay_numbers() -> None:
    square = np.full((2, 2), 2.0)
    for function in (ein, ein_mean, ein_integral, changed_mean, harmonic_number):
        assert function(square).shape == (2, 2)
        assert type(function(2.0)) is float
        assert type(function(0.5)) is float
    assert noisy_harmonic(np.ones(3), np.array([0, 1, 2]), 0.5).shape == (3,)
    assert noisy_harmonic(np.zeros(0), np.zeros(0, np.int64), 0.5).shape == (0,)
    assert type(noisy_harmonic(1.0, 1, 0.5)) is float
