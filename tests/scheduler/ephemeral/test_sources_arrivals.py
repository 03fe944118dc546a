import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gamma, poisson

from freshet.scheduler.ephemeral.sources import PRIOR_DAYS, PRIOR_ITEMS, Arrivals

LONG = 1e12


def by_quadrature(known: Arrivals, count: int, elapsed: float) -> tuple[float, float]:
    """The mean and the deviation of Λ given that at least so many came, on a grid."""
    shape, scale = PRIOR_ITEMS + known.items, 1 / (PRIOR_DAYS + known.days)
    # In log Λ, where no shape has a pole.
    top = max(float(gamma.ppf(1 - 1e-12, shape, scale=scale)), (count + 60) / elapsed) * 3
    rates = np.exp(np.linspace(math.log(top) - 40, math.log(top), 20_001))
    weights = rates * gamma.pdf(rates, shape, scale=scale) * poisson.sf(count - 1, rates * elapsed)
    weights /= weights.sum()
    mean = float(weights @ rates)
    return mean, float(weights @ (rates - mean) ** 2) ** 0.5


@settings(deadline=None, max_examples=25)
@given(
    st.floats(0, 300), st.floats(0, 30), st.integers(1, 80), st.floats(0.01, 20),
)  # fmt: skip
def test_a_full_page_gives_the_moments_of_the_censored_posterior(
    items: float, days: float, count: int, elapsed: float
) -> None:
    known = Arrivals(items, days)
    after = known.after(count, elapsed, at_least=True, half_life=LONG)
    mean, deviation = by_quadrature(known, count, elapsed)
    assert after.rate == pytest.approx(mean, rel=1e-5)
    found = math.sqrt(PRIOR_ITEMS + after.items) / (PRIOR_DAYS + after.days)
    assert found == pytest.approx(deviation, rel=1e-3)


@given(st.floats(0, 1e4), st.floats(0, 100), st.integers(0, 300), st.floats(0.01, 100))
def test_a_full_page_lets_one_expect_more_than_one_that_showed_the_end(
    items: float, days: float, count: int, elapsed: float
) -> None:
    known = Arrivals(items, days)
    open_, closed = (
        known.after(count, elapsed, at_least=each, half_life=LONG) for each in (True, False)
    )
    assert open_.rate >= closed.rate * (1 - 1e-12)
    # It never teaches that a source is slower, nor more than if all had been seen.
    assert open_.rate >= known.rate * (1 - 1e-9)
    assert open_.days <= closed.days * (1 + 1e-12)


def test_a_full_page_far_above_what_was_expected_counts_as_it_is() -> None:
    # The tail is below 1e-290: two and a half thousand items where half a one was expected. How
    # many more there may be is a matter of the prior: N − c is geometric, as P(N = n) falls by
    # q(n + a)/(n + 1) from one n to the next.
    after = Arrivals().after(2500, 0.05, at_least=True, half_life=LONG)
    n = np.arange(2500, 5000)
    q, a = 0.05 / (PRIOR_DAYS + 0.05), PRIOR_ITEMS
    law = np.cumprod(np.concatenate([[1.0], q * (n[:-1] + a) / (n[:-1] + 1)]))
    expected = a + float(law @ n / law.sum())
    assert after.rate == pytest.approx(expected / (PRIOR_DAYS + 0.05), rel=1e-6)


def test_the_two_ways_of_a_full_page_meet() -> None:
    counts = range(930, 990)
    rates = [Arrivals().after(each, 0.05, at_least=True).rate for each in counts]
    steps = np.diff(rates)
    assert min(steps) > 0
    assert max(steps) / min(steps) < 1.01


def test_nothing_known_is_the_prior_and_an_empty_page_teaches_nothing() -> None:
    assert Arrivals().rate == PRIOR_ITEMS / PRIOR_DAYS
    assert Arrivals().after(0, 3.0, at_least=True) == Arrivals()
    known = Arrivals(12.0, 3.0)
    assert known.after(0, 2.0, at_least=True) == known.decayed(2.0)


@given(st.floats(0.1, 200), st.floats(0.01, 60), st.floats(0.01, 60))
def test_what_is_learnt_does_not_depend_on_how_a_stretch_is_cut(
    rate: float, first: float, second: float
) -> None:
    cut = Arrivals(5.0, 1.0).after(rate * first, first).after(rate * second, second)
    whole = Arrivals(5.0, 1.0).after(rate * (first + second), first + second)
    assert (cut.items, cut.days) == pytest.approx((whole.items, whole.days))


def test_what_is_old_weighs_half_after_a_half_life_and_the_sums_stay_bounded() -> None:
    assert Arrivals(8.0, 4.0).decayed(6.0, half_life=6.0) == Arrivals(4.0, 2.0)
    known = Arrivals()
    for _ in range(400):
        known = known.after(3, 1.0, half_life=10.0)
    # The integral of 2^{−s/10} over all the past.
    assert known.days == pytest.approx(10 / math.log(2))
    assert known.rate == pytest.approx(3.0, rel=0.05)


def test_the_estimate_comes_to_the_rate_of_a_poisson_process_also_where_pages_are_short() -> None:
    rng = np.random.default_rng(3)
    known = censored = Arrivals()
    for count in rng.poisson(20.0, 300):
        known = known.after(int(count), 1.0, half_life=LONG)
        full = bool(count >= 22)
        censored = censored.after(min(int(count), 22), 1.0, at_least=full, half_life=LONG)
    assert known.rate == pytest.approx(20, abs=3 * (20 / 300) ** 0.5)
    # A third of the pages were full.
    assert censored.rate == pytest.approx(20, abs=4 * (20 / 300) ** 0.5)
    assert censored.days < known.days


def test_it_is_two_plain_numbers() -> None:
    after = Arrivals().after(7, 0.5, at_least=True)
    assert (type(after.items), type(after.days)) == (float, float)
    assert pickle.loads(pickle.dumps(after)) == after


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_bad_numbers_are_refused(bad: float) -> None:
    known = Arrivals()
    with pytest.raises(ValueError, match=r"count: is .*; accepted is a finite number of"):
        known.after(bad, 1.0)
    for elapsed in (bad, 0.0):
        with pytest.raises(ValueError, match=r"elapsed: is .*; accepted is a finite number"):
            known.after(3, elapsed)
    for half_life in (bad, 0.0):
        with pytest.raises(ValueError, match="half_life: is "):
            known.after(3, 1.0, half_life=half_life)
    with pytest.raises(ValueError, match="items: is "):
        Arrivals(bad, 1.0)
    with pytest.raises(ValueError, match="days: is "):
        Arrivals(1.0, bad)


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e12), st.booleans())
def test_extreme_stretches_and_counts_are_borne(count: float, elapsed: float, full: bool) -> None:
    after = Arrivals(3.0, 1.0).after(count, elapsed, at_least=full)
    assert math.isfinite(after.rate)
    assert after.rate > 0
