from collections.abc import Callable
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
from freshet.scheduler.arrays import Floats
from freshet.scheduler.costs import (
    binary_cost,
    changed_mean,
    changes_per_crawl,
    costs_of,
    ein,
    ein_mean,
    harmonic_cost,
    harmonic_number,
    noisy_harmonic,
    plan_costs,
)
from freshet.scheduler.policy import Crawling, CrawlPlan
from freshet.scheduler.sources import SourceTable

WAYS: list[Crawling] = ["poisson", "periodic"]
EXPONENTS = st.floats(-12, 12)
SHARES = st.floats(-12, 0)


def observed(changes: Floats, crawls: Floats, end: float) -> tuple[float, float]:
    """Time averages of H(N) and of N > 0 along one path of events."""
    events = np.sort(np.concatenate((changes, crawls, [0.0])))
    lasts = np.append(crawls, 0.0)[np.searchsorted(crawls, events, side="right") - 1]
    n = np.searchsorted(changes, events, "right") - np.searchsorted(changes, lasts, "right")
    harmonic = np.concatenate(([0.0], np.cumsum(1 / np.arange(1.0, n.max() + 1))))
    spans = np.diff(np.append(events, end))
    return float(harmonic[n] @ spans) / end, float((n > 0) @ spans) / end


def simulated(rate: float, crawl_rate: float, complete: bool, crawling: str) -> tuple[float, float]:
    """Both costs by playing every change and every crawl, with importance 1."""
    rng = np.random.default_rng(7)
    end = 200_000 / min(rate, crawl_rate)
    changes = np.sort(rng.uniform(0, end, rng.poisson(rate * end)))
    if complete and crawling == "poisson":
        crawls = changes[rng.random(len(changes)) < crawl_rate / rate]
    elif complete:
        every = int(np.ceil(rate / crawl_rate))
        crawls = changes[every - 1 :: every]
    elif crawling == "poisson":
        crawls = np.sort(rng.uniform(0, end, rng.poisson(crawl_rate * end)))
    else:
        crawls = np.arange(1, int(crawl_rate * end)) / crawl_rate
    return observed(changes, crawls, end)


@pytest.mark.parametrize("crawling", WAYS)
@pytest.mark.parametrize(
    ("complete", "crawl_rate"), [(False, 0.25), (False, 1.5), (True, 0.25), (True, 0.7)]
)
def test_the_closed_forms_are_what_a_simulation_of_events_pays(
    complete: bool, crawl_rate: float, crawling: Crawling
) -> None:
    columns = ([1.0], [1.0], [crawl_rate])
    flags = [complete]
    harmonic, binary = simulated(1.0, crawl_rate, complete, crawling)
    expected = harmonic_cost(*columns, complete_observations=flags, crawling=crawling)
    assert expected == pytest.approx(harmonic, rel=0.01)
    expected = binary_cost(*columns, complete_observations=flags, crawling=crawling)
    assert expected == pytest.approx(binary, rel=0.01)


@given(EXPONENTS, EXPONENTS)
def test_poisson_crawling_costs_ln_1_plus_x_to_twelve_digits(e: float, f: float) -> None:
    rate, crawl_rate = 10**e, 10 ** min(max(f, e - 12), e + 12)
    with localcontext(prec=60):
        x = Decimal(rate) / Decimal(crawl_rate)
        harmonic, binary = float((1 + x).ln()), float(x / (1 + x))
    assert harmonic_cost([1], [rate], [crawl_rate]) == pytest.approx(harmonic, rel=1e-12)
    assert binary_cost([1], [rate], [crawl_rate]) == pytest.approx(binary, rel=1e-12)


@given(EXPONENTS)
def test_periodic_crawling_costs_the_mean_over_the_interval(exponent: float) -> None:
    x = 10**exponent
    with localcontext(prec=120):
        changed = 1 - (1 - (-Decimal(x)).exp()) / Decimal(x)
    binary = binary_cost([1], [x], [1], crawling="periodic")
    harmonic = harmonic_cost([1], [x], [1], crawling="periodic")
    assert binary == pytest.approx(float(changed), rel=1e-12)
    if x < 1e-6:
        assert harmonic == pytest.approx(x / 2 - x * x / 12, rel=1e-12)
    elif x > 1e3:
        assert harmonic == pytest.approx(np.euler_gamma + np.log(x) - 1 + 1 / x, rel=1e-12)
    else:
        # d(xJ)/dx = Ein(x) and dEin/dx = (1 − e^{−x})/x: J is one integral with one weight.
        pieces = np.append(np.geomspace(x * 1e-9, x, 12), 0)
        area = sum(
            integrate.quad(lambda s: -np.expm1(-s) / s * (x - s), low, high, epsrel=1e-13)[0]
            for low, high in zip(np.sort(pieces)[:-1], np.sort(pieces)[1:], strict=True)
        )
        assert harmonic == pytest.approx(area / x, rel=1e-11)


@given(SHARES, st.booleans())
def test_crawls_on_signals_cost_minus_ln_p_to_twelve_digits(exponent: float, near: bool) -> None:
    rate = 3.7
    crawl_rate = rate * (1 - 10**exponent if near else 10**exponent)
    with localcontext(prec=60):
        p = Decimal(crawl_rate) / Decimal(rate)
        harmonic, binary = float(-p.ln()), float(1 - p)
    flags = [True]
    cost = harmonic_cost([1], [rate], [crawl_rate], complete_observations=flags)
    assert cost == pytest.approx(harmonic, rel=1e-12)
    cost = binary_cost([1], [rate], [crawl_rate], complete_observations=flags)
    assert cost == pytest.approx(binary, rel=1e-12)


@given(st.integers(1, 1000), st.floats(0, 0.999))
def test_every_kth_change_takes_the_next_whole_number(k: int, less: float) -> None:
    # p between 1/k and 1/(k − 1), the latter left out.
    p = 1 / (k - less) if k > 1 else 1.0
    cost = harmonic_cost([2], [5], [5 * p], complete_observations=[True], crawling="periodic")
    assert cost == pytest.approx(2 * sum(1 / j for j in range(2, k + 1)), rel=1e-12, abs=1e-14)


@given(st.floats(1e-3, 1e3), st.integers(1, 10**6))
def test_rounding_does_not_make_a_regular_crawl_wait_for_one_more_change(
    rate: float, k: int
) -> None:
    assert changes_per_crawl(np.array([rate]), np.array([rate / k])).tolist() == [k]


@pytest.mark.parametrize("crawling", WAYS)
@pytest.mark.parametrize("complete", [False, True])
def test_never_crawled_is_endless_harmonically_and_stale_for_sure(
    complete: bool, crawling: Crawling
) -> None:
    importance, change_rate = [3.0, 0.0, 3.0], [2.0, 2.0, 0.0]
    columns = (importance, change_rate, [0.0, 0.0, 0.0])
    flags = [complete] * 3
    found = costs_of(*columns, complete_observations=flags, crawling=crawling).harmonic
    assert found.tolist() == [np.inf, 0, 0]
    found = costs_of(*columns, complete_observations=flags, crawling=crawling).binary
    assert found.tolist() == [3, 0, 0]


@pytest.mark.parametrize("crawling", WAYS)
def test_what_answers_to_every_signal_costs_nothing(crawling: Crawling) -> None:
    rounded = np.array([2.0, 0.0, 0.1 * (1 + 5e-10)])
    found = costs_of(
        [1, 1, 1], [2, 0, 0.1], rounded, complete_observations=[True] * 3, crawling=crawling
    ).harmonic
    assert found.tolist() == [0, 0, 0]


@pytest.mark.parametrize("crawling", WAYS)
@given(x=EXPONENTS)
def test_both_costs_fall_with_the_crawl_rate_and_binary_is_the_smaller(
    crawling: Crawling, x: float
) -> None:
    rates = 10**x * np.array([1.0, 1.01])
    harmonic = costs_of([1, 1], [1, 1], rates, crawling=crawling).harmonic
    binary = costs_of([1, 1], [1, 1], rates, crawling=crawling).binary
    assert harmonic[1] < harmonic[0]
    assert binary[1] <= binary[0]
    assert (binary <= harmonic * (1 + 1e-15)).all()


@given(EXPONENTS)
def test_regular_crawls_cost_between_half_and_all_of_random_ones(exponent: float) -> None:
    x = 10**exponent
    ratio = harmonic_cost([1], [x], [1], crawling="periodic") / harmonic_cost([1], [x], [1])
    assert 0.5 - 1e-12 <= ratio < 1
    ratio = binary_cost([1], [x], [1], crawling="periodic") / binary_cost([1], [x], [1])
    assert 0.5 - 1e-12 <= ratio <= 1


@pytest.mark.parametrize("crawling", WAYS)
def test_many_sources_cost_the_sum_of_each(crawling: Crawling) -> None:
    rng = np.random.default_rng(5)
    n = 2 * costs._ROWS + 17
    importance, change_rate = rng.lognormal(size=(2, n))
    complete = rng.random(n) < 0.3
    crawl_rate = np.where(complete, change_rate * rng.random(n), rng.lognormal(size=n))
    columns = (importance, change_rate, crawl_rate)
    both = costs_of(*columns, complete_observations=complete, crawling=crawling)
    for total, each in ((harmonic_cost, both.harmonic), (binary_cost, both.binary)):
        alone = [
            total([mu], [delta], [rho], complete_observations=[flag], crawling=crawling)
            for mu, delta, rho, flag in zip(*columns, complete, strict=True)
            if mu > 5
        ]
        assert each[importance > 5].tolist() == alone
        summed = total(*columns, complete_observations=complete, crawling=crawling)
        assert summed == pytest.approx(float(each.sum()), rel=1e-12)


def test_a_plan_is_judged_as_it_is_carried_out() -> None:
    # The second source tells of its changes, but this plan crawls it by the clock.
    table = SourceTable.of([1, 2, 3], [1, 1, 4], complete_observations=[False, True, True])
    plan = CrawlPlan(
        np.array([1.0, 3.0, 2.0]), np.array([1.0, 1.0, 0.5]), np.array([False, False, True]), 6.0,
    )  # fmt: skip
    found = plan_costs(table, plan)
    assert found.harmonic == pytest.approx([np.log(2), 2 * np.log(4 / 3), 3 * np.log(2)])
    assert found.binary == pytest.approx([0.5, 0.5, 1.5])


def test_no_sources_cost_nothing() -> None:
    assert harmonic_cost([], [], []) == 0
    assert costs_of([], [], [], crawling="periodic").binary.tolist() == []


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (([1, -1], [1, 1], [1, 1]), {}, "importance: row 1 is -1.0"),
        (([1], [np.inf], [1]), {}, "change_rate: row 0 is inf"),
        (([1], [1], [np.nan]), {}, "crawl_rate: row 0 is nan"),
        (([1, 1], [1, 1], [1]), {}, "crawl_rate: has 1 rows; accepted are 2"),
        (([1], [1], [1]), {"complete_observations": [1]}, "complete_observations: has dtype int64"),
        (([1], [1], [1]), {"crawling": "daily"}, "crawling: is 'daily'; accepted are poisson, per"),
        (
            ([1, 1], [1, 1], [2, 1.1]),
            {"complete_observations": [False, True]},
            r"crawl_rate: row 1 is 1.1; accepted is at most its change_rate \(1.0\)",
        ),
    ],
)
def test_a_bad_value_is_named_with_its_row(
    columns: tuple[list[float], ...], options: dict[str, object], message: str
) -> None:
    functions: list[Callable[..., object]] = [harmonic_cost, binary_cost, costs_of]
    for function in functions:
        with pytest.raises(ValueError, match=message):
            function(*columns, **options)


EXACT = 1e-13
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


@given(st.floats(-14, 15))
def test_ein_has_thirteen_digits_from_tiny_to_huge(exponent: float) -> None:
    assert ein(10**exponent) == pytest.approx(float(decimal_ein(10**exponent)), rel=EXACT)


@given(st.floats(-14, 15))
def test_the_means_have_thirteen_digits_from_tiny_to_huge(exponent: float) -> None:
    of_ein, changed = decimal_means(10**exponent)
    assert ein_mean(10**exponent) == pytest.approx(float(of_ein), rel=EXACT)
    assert changed_mean(10**exponent) == pytest.approx(float(changed), rel=EXACT)


def test_no_changes_cost_nothing_and_endless_ones_endlessly() -> None:
    for function in (ein, ein_mean, harmonic_number):
        assert function(np.array([0.0, np.inf])).tolist() == [0, np.inf]
    assert changed_mean(np.array([0.0, np.inf])).tolist() == [0, 1]


def test_harmonic_numbers_are_sums_of_fractions() -> None:
    exact = list(accumulate((Fraction(1, n) for n in range(1, 300)), initial=Fraction(0)))
    assert harmonic_number(np.arange(300)) == pytest.approx(np.array(exact, float), rel=1e-14)
    assert harmonic_number(2) - 1 == 0.5
    # Large ones follow the logarithm.
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
    for function in (ein, ein_mean, changed_mean, harmonic_number):
        assert function(square).shape == (2, 2)
        assert type(function(2.0)) is float
        assert type(function(0.5)) is float
    assert noisy_harmonic(np.ones(3), np.array([0, 1, 2]), 0.5).shape == (3,)
    assert noisy_harmonic(np.zeros(0), np.zeros(0, np.int64), 0.5).shape == (0,)
    assert type(noisy_harmonic(1.0, 1, 0.5)) is float
