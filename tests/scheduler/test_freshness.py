import doctest
from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from freshet.scheduler import costs as costs_scheduler
from freshet.scheduler.arrays import Floats
from freshet.scheduler.costs import (
    binary_cost,
    binary_costs,
    binary_marginals,
    changes_per_crawl,
    harmonic_cost,
    harmonic_costs,
    harmonic_marginals,
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


def test_the_examples_in_the_documentation_are_right() -> None:
    assert doctest.testmod(costs_scheduler).failed == 0


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
    costs = harmonic_costs(*columns, complete_observations=flags, crawling=crawling)
    assert costs.tolist() == [np.inf, 0, 0]
    costs = binary_costs(*columns, complete_observations=flags, crawling=crawling)
    assert costs.tolist() == [3, 0, 0]


@pytest.mark.parametrize("crawling", WAYS)
def test_what_answers_to_every_signal_costs_nothing(crawling: Crawling) -> None:
    rounded = np.array([2.0, 0.0, 0.1 * (1 + 5e-10)])
    costs = harmonic_costs(
        [1, 1, 1], [2, 0, 0.1], rounded, complete_observations=[True] * 3, crawling=crawling
    )
    assert costs.tolist() == [0, 0, 0]


@pytest.mark.parametrize("crawling", WAYS)
@given(x=EXPONENTS)
def test_both_costs_fall_with_the_crawl_rate_and_binary_is_the_smaller(
    crawling: Crawling, x: float
) -> None:
    rates = 10**x * np.array([1.0, 1.01])
    harmonic = harmonic_costs([1, 1], [1, 1], rates, crawling=crawling)
    binary = binary_costs([1, 1], [1, 1], rates, crawling=crawling)
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


Column = Callable[..., Floats]


@pytest.mark.parametrize(
    ("costs", "marginals"), [(harmonic_costs, harmonic_marginals), (binary_costs, binary_marginals)]
)
@pytest.mark.parametrize("crawling", WAYS)
def test_marginals_are_the_slopes_of_the_costs(
    costs: Column, marginals: Column, crawling: Crawling
) -> None:
    rng = np.random.default_rng(3)
    importance, change_rate = rng.uniform(1, 9, 200), 10 ** rng.uniform(-1.5, 1.5, 200)
    complete = np.zeros(200, np.bool_) if crawling == "periodic" else rng.random(200) < 0.5
    crawl_rate = np.where(complete, 0.9 * rng.random(200) * change_rate, rng.uniform(0.1, 3, 200))

    def at(rate: Floats) -> Floats:
        return costs(
            importance, change_rate, rate, complete_observations=complete, crawling=crawling
        )

    step = 1e-4 * crawl_rate
    # Of fourth order, so that the truncation is far below the rounding.
    slope = (8 * (at(crawl_rate + step) - at(crawl_rate - step))) - (
        at(crawl_rate + 2 * step) - at(crawl_rate - 2 * step)
    )
    saved = marginals(
        importance, change_rate, crawl_rate, complete_observations=complete, crawling=crawling
    )
    assert saved == pytest.approx(-slope / (12 * step), rel=1e-6)


@pytest.mark.parametrize("crawling", WAYS)
def test_the_first_crawl_is_worth_everything_harmonically(crawling: Crawling) -> None:
    columns = ([6.0, 0.0, 6.0], [2.0, 2.0, 0.0], [0.0, 0.0, 0.0])
    assert harmonic_marginals(*columns, crawling=crawling).tolist() == [np.inf, 0, 0]
    assert binary_marginals(*columns, crawling=crawling).tolist() == [3, 0, 0]


def test_a_cost_in_steps_has_no_marginal() -> None:
    for marginals in (harmonic_marginals, binary_marginals):
        with pytest.raises(ValueError, match="complete_observations: row 1 is True; accepted is"):
            marginals(
                [1, 1], [1, 1], [1, 1], complete_observations=[False, True], crawling="periodic"
            )


@pytest.mark.parametrize("crawling", WAYS)
def test_many_sources_cost_the_sum_of_each(crawling: Crawling) -> None:
    rng = np.random.default_rng(5)
    n = 2 * costs_scheduler._ROWS + 17
    importance, change_rate = rng.lognormal(size=(2, n))
    complete = rng.random(n) < 0.3
    crawl_rate = np.where(complete, change_rate * rng.random(n), rng.lognormal(size=n))
    columns = (importance, change_rate, crawl_rate)
    for total, each in ((harmonic_cost, harmonic_costs), (binary_cost, binary_costs)):
        costs = each(*columns, complete_observations=complete, crawling=crawling)
        alone = [
            total([mu], [delta], [rho], complete_observations=[flag], crawling=crawling)
            for mu, delta, rho, flag in zip(*columns, complete, strict=True)
            if mu > 5
        ]
        assert costs[importance > 5].tolist() == alone
        summed = total(*columns, complete_observations=complete, crawling=crawling)
        assert summed == pytest.approx(float(costs.sum()), rel=1e-12)


def test_a_plan_is_judged_as_it_is_carried_out() -> None:
    # The second source tells of its changes, but this plan crawls it by the clock.
    table = SourceTable.of([1, 2, 3], [1, 1, 4], complete_observations=[False, True, True])
    plan = CrawlPlan(
        np.array([1.0, 3.0, 2.0]),
        np.array([1.0, 1.0, 0.5]),
        np.array([False, False, True]),
        6.0,
    )
    costs = plan_costs(table, plan)
    assert costs.harmonic == pytest.approx([np.log(2), 2 * np.log(4 / 3), 3 * np.log(2)])
    assert costs.binary == pytest.approx([0.5, 0.5, 1.5])


def test_no_sources_cost_nothing() -> None:
    assert harmonic_cost([], [], []) == 0
    assert binary_costs([], [], [], crawling="periodic").tolist() == []


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
    functions: list[Callable[..., object]] = [harmonic_cost, binary_costs, harmonic_marginals]
    for function in functions:
        with pytest.raises(ValueError, match=message):
            function(*columns, **options)
