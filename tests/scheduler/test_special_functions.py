"""The special functions beside scipy's."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special as reference

from freshet.scheduler.special_functions import beta_hazard, exp1, gammainc, lambert

#: Results as small as these are not told from 0 to all their digits.
TINY = 1e-300
orders = st.one_of(st.integers(1, 70), st.sampled_from([200, 1000]))


@example(1.0)
@example(700.0)
@given(st.floats(1, 700))
def test_the_exponential_integral(x: float) -> None:
    assert exp1(np.array([x]))[0] == pytest.approx(reference.exp1(x), rel=2e-15)


@given(orders, st.floats(-30, 1.5))
def test_the_incomplete_gamma_function_from_far_below_its_order_to_far_above(
    n: int, exponent: float
) -> None:
    x = n * 10.0**exponent
    expected = reference.gammainc(n, x)
    close = pytest.approx(expected, rel=3e-13 if n <= 200 else 3e-12, abs=TINY)
    assert gammainc(n, np.array([x]))[0] == close
    # Many rows are summed in another way than few.
    assert gammainc(n, np.full(20_000, x))[-1] == close


def test_the_ends_of_the_incomplete_gamma_function_and_its_shapes() -> None:
    for n in (1, 2, 65, 5000):
        ends = gammainc(n, np.array([[0.0, 5e-324], [1e300, np.inf]]))
        assert ends[1].tolist() == [1, 1]
        assert ends[0] == pytest.approx([0, 5e-324 if n == 1 else 0])
        assert gammainc(n, np.empty((0, 3))).shape == (0, 3)


@example(5e-324)
@example(0.25**2 / 2)
@given(st.floats(-323, 308).map(lambda exponent: 10.0**exponent))
def test_lambert_solves_its_equation(level: float) -> None:
    y = lambert(np.array([level]))[0]
    if level < 1e-4:
        root = math.sqrt(2 * level)
        assert y == pytest.approx(root + root**2 / 3 + root**3 / 36, rel=1e-9, abs=0)
    else:
        # The slope is y/(1 + y): so far may y be wrong.
        assert y - math.log1p(y) == pytest.approx(level, rel=1e-15, abs=1e-14 * y / (1 / y + 1))


@given(st.floats(1e-3, 30))
def test_lambert_is_the_lower_branch_of_lambert_s_function(level: float) -> None:
    branch = reference.lambertw(-np.exp(-1 - level), -1).real
    # Which loses digits near the branch point, where ours does not.
    assert lambert(np.array([level]))[0] == pytest.approx(-1 - branch, rel=1e-12 / level)


def test_lambert_at_its_ends_for_one_number_and_for_none() -> None:
    assert lambert(np.array([0.0, np.inf])).tolist() == [0, np.inf]
    assert lambert(np.array(1 - np.log(2))) == pytest.approx(1)
    assert lambert(np.empty(0)).shape == (0,)


@given(st.floats(-2, 4), st.floats(-0.3, 4), st.floats(1e-6, 1 - 1e-6))
def test_the_hazard_of_the_beta_law(power_a: float, power_b: float, x: float) -> None:
    a, b = 10.0**power_a, 10.0**power_b
    hazard = beta_hazard(a, b, x, 1 - x)
    assert math.isfinite(hazard)
    tail = reference.betainc(a, b, x)
    # The next function is larger by the density: I_x(a, b + 1) = I_x(a, b) (1 + hazard/b).
    assert reference.betainc(a, b + 1, x) == pytest.approx(
        tail * (1 + hazard / b), rel=1e-11, abs=TINY
    )


@given(st.floats(1e-6, 1e6), st.floats(1e-9, 1 - 1e-9))
def test_the_hazard_where_the_beta_function_is_a_power(a: float, x: float) -> None:
    assert beta_hazard(a, 1.0, x, 1 - x) == pytest.approx(a * (1 - x), rel=1e-12)
    one_minus = -math.expm1(a * math.log1p(-x))
    # Below 1e-3 digits are lost: 1e-9 is the error at 1e-6.
    assert beta_hazard(1.0, a, x, 1 - x) == pytest.approx(
        a * x * math.exp(a * math.log1p(-x)) / one_minus, rel=max(1e-11, 1e-14 / a), abs=TINY
    )
