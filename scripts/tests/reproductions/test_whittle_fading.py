import doctest
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from freshet.scheduler.arrays import Floats
from scripts.reproductions import whittle_fading as fading
from scripts.reproductions.whittle_fading import PRIOR_CLICKS, Fading, Worth, exposure


def test_the_examples_in_the_documentation_are_right() -> None:
    assert doctest.testmod(fading).failed == 0


def clicks(mu: float, windows: Floats, rng: np.random.Generator) -> Floats:
    """An age beyond the window's begin for each, by the inverse of the distribution function."""
    drawn: Floats = -np.log1p(rng.random(len(windows)) * np.expm1(-mu * windows)) / mu
    return np.minimum(drawn, windows)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.floats(-2, 2), st.floats(-2, 2), st.floats(0, 50))
def test_clicks_move_the_mode_to_the_maximum_of_the_posterior(
    seed: int, exponent: float, prior: float, known: float
) -> None:
    rng = np.random.default_rng(seed)
    mu = 10.0**exponent
    windows = rng.exponential(1.5 / mu, int(rng.integers(1, 30)))
    ages = clicks(mu, windows, rng)
    before = Fading(10.0**prior, known)
    after = before.after(ages + 2.0, since=2.0, until=windows + 2.0)

    def less(log_decay: float) -> float:
        decay = math.exp(log_decay)
        truncated = -np.log(-np.expm1(-decay * windows)).sum()
        held = (PRIOR_CLICKS + known) * (log_decay - decay / before.decay)
        seen = len(ages) * log_decay - decay * ages.sum() + truncated
        return -float(held + seen)

    middle = math.log(after.decay)
    found = minimize_scalar(less, bounds=(middle - 3, middle + 3), options={"xatol": 1e-8})
    assert middle == pytest.approx(found.x, abs=1e-5)
    step = 1e-4
    curvature = (less(middle + step) - 2 * less(middle) + less(middle - step)) / step**2
    # The information is that expected of the clicks, which is that observed: they are one family.
    assert PRIOR_CLICKS + after.clicks == pytest.approx(curvature, rel=1e-3)


def test_without_clicks_it_is_the_configured_half_life_to_the_last_bit() -> None:
    for half_life in (0.3, 1.0, 7.0, 1e-5):
        start = Fading.of(half_life)
        assert start.decay == math.log(2) / half_life
        assert start.after([]) == start


def test_clicks_that_are_not_cut_off_are_the_conjugate_case() -> None:
    rng = np.random.default_rng(2)
    ages = rng.exponential(3.0, 40)
    once = Fading(0.7, 5.0).after(ages)
    assert once.decay == pytest.approx((7 + 40) / (7 / 0.7 + ages.sum()))
    assert once.clicks == pytest.approx(45)
    one_by_one = Fading(0.7, 5.0)
    for age in ages:
        one_by_one = one_by_one.after(age)
    assert one_by_one.decay == pytest.approx(once.decay)


@pytest.mark.parametrize("half_life", [0.2, 1.0, 20.0])
def test_what_is_learnt_in_turn_comes_to_the_truth_though_windows_are_short(
    half_life: float,
) -> None:
    rng = np.random.default_rng(5)
    known = Fading.of(half_life)
    for _ in range(200):
        windows = rng.uniform(0.2, 2.0, 50)
        since = rng.uniform(0, 1, 50)
        known = known.after(since + clicks(0.6, windows, rng), since=since, until=since + windows)
    spread = 0.6 / known.clicks**0.5
    assert spread < 0.6 / 20
    assert known.decay == pytest.approx(0.6, abs=4 * spread)
    # A click in a window of one half-life or two tells little: h²/12 of one that is not cut off.
    assert known.clicks < 0.1 * 200 * 50


def test_what_an_item_is_worth_is_its_clicks_by_the_share_that_was_watched() -> None:
    rng = np.random.default_rng(6)
    mu, xi = 0.5, 3.0
    since, window = rng.uniform(0, 2, 4000), rng.uniform(0.1, 4, 4000)
    number = rng.poisson(xi * (np.exp(-mu * since) - np.exp(-mu * (since + window))))
    watched = exposure(mu, since, since + window)
    known = Worth.of(1.0).after(float(number.sum()), watched)
    assert known.mean == pytest.approx(xi, abs=4 * (xi / watched) ** 0.5)
    assert known.deviation == pytest.approx((xi / watched) ** 0.5, rel=0.05)
    assert exposure(mu, 0.0, np.inf) == 1.0


def test_without_clicks_an_item_is_worth_what_was_said_or_one() -> None:
    assert Worth.of().mean == 1.0
    assert Worth.of(0.3).after(0, 0.0).mean == pytest.approx(0.3)
    assert Worth.of(0.0).mean == 0.0


def test_the_deviation_is_that_of_the_logarithm() -> None:
    # Nine clicks with the prior's.
    assert Fading(0.5, 7.0).deviation == pytest.approx(1 / 3)


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1.0, 1e9, 1e150])
def test_any_unit_of_time_will_do(scale: float) -> None:
    windows = np.array([1.0, 0.5, 1e-4, 3.0, 2000.0])
    ages = windows * 0.3
    one, other = (
        Fading(1 / unit).after(ages * unit, until=windows * unit) for unit in (1.0, scale)
    )
    assert other.decay * scale == pytest.approx(one.decay)
    assert other.clicks == pytest.approx(one.clicks)


def test_bad_numbers_are_refused() -> None:
    known = Fading.of(1.0)
    for bad in (math.nan, math.inf, 0.0, -1.0):
        with pytest.raises(ValueError, match="half_life: is "):
            Fading.of(bad)
        with pytest.raises(ValueError, match="decay: is "):
            exposure(bad, 0.0, 1.0)
    with pytest.raises(ValueError, match="ages: row 1 is nan"):
        known.after([1.0, math.nan])
    with pytest.raises(ValueError, match="until: row 0 is nan"):
        known.after([1.0], until=math.nan)
    with pytest.raises(ValueError, match=r"ages: row 1 is 0\.5; accepted is from since, 1\.0, to"):
        known.after([1.0, 0.5], since=1.0)
    with pytest.raises(ValueError, match="ages: row 0 is 3"):
        known.after([3.0], until=2.0)
    with pytest.raises(ValueError, match=r"until: row 1 is 0\.5; accepted is from since, 1\.0"):
        exposure(1.0, [0.0, 1.0], 0.5)
    with pytest.raises(ValueError, match="since: has 2 rows; accepted are 1"):
        known.after([1.0], since=[0.0, 1.0])
    with pytest.raises(ValueError, match="clicks: is -1"):
        Worth.of().after(-1, 1.0)
    with pytest.raises(ValueError, match="exposure: is nan"):
        Worth.of().after(1, math.nan)
    with pytest.raises(ValueError, match="worth: is inf"):
        Worth.of(math.inf)
