import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.costs import harmonic_cost, plan_costs
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl, LambdaCrawlApprox, solve
from freshet.scheduler.policy import CrawlPlan
from freshet.scheduler.sources import SourceTable
from tests.scheduler.algorithm_3 import algorithm_1, algorithm_2, algorithm_3
from tests.scheduler.policies.tables import BUDGETS, host_totals, source_tables


def solved(table: SourceTable, bandwidth: float) -> CrawlPlan:
    return solve(
        table.importance, table.change_rate, bandwidth,
        complete_observations=table.complete_observations, host=table.host,
        host_capacity=table.host_capacity,
    )  # fmt: skip


def savings(table: SourceTable, rates: Floats) -> Floats:
    """−∂J_h/∂ρ, what one more crawl per day of each source saves, (n,)."""
    mu, delta = table.importance, table.change_rate
    with np.errstate(divide="ignore", invalid="ignore"):
        clock: Floats = mu * delta / (rates * (delta + rates))
        signals: Floats = mu / rates
    return np.where(table.complete_observations, signals, clock)


@given(source_tables(), BUDGETS)
def test_the_plan_meets_the_conditions_of_an_allocate(table: SourceTable, bandwidth: float) -> None:
    """Karush, Kuhn and Tucker: spent, one price for all, at their bounds those worth more."""
    plan = solved(table, bandwidth)
    worth = (table.importance > 0) & (table.change_rate > 0)
    assert not plan.crawl_rate[~worth].any()
    assert plan.crawl_rate.sum() + plan.left_over == pytest.approx(bandwidth, rel=1e-12)
    if plan.left_over:
        assert plan.price == 0
        return
    assert plan.price is not None
    saved = savings(table, plan.crawl_rate)
    bounded = table.complete_observations & (plan.crawl_rate >= table.change_rate)
    np.testing.assert_allclose(saved[worth & ~bounded], plan.price, rtol=1e-12)
    assert (saved[worth & bounded] >= plan.price * (1 - 1e-12)).all()


@given(source_tables(hosts=True), BUDGETS)
def test_no_host_is_over_its_capacity_and_full_hosts_have_prices_of_their_own(
    table: SourceTable, bandwidth: float
) -> None:
    plan = solved(table, bandwidth)
    assert plan.price is not None
    assert plan.host_price is not None
    totals, capacity = host_totals(table, plan.crawl_rate), table.host_capacity
    assert (totals <= capacity * (1 + 1e-9)).all()
    assert (plan.host_price >= plan.price * (1 - 1e-12)).all()
    full = totals >= capacity * (1 - 1e-9)
    np.testing.assert_allclose(plan.host_price[~full], plan.price, rtol=1e-12)
    worth = (table.importance > 0) & (table.change_rate > 0)
    bounded = table.complete_observations & (plan.crawl_rate >= table.change_rate * (1 - 1e-12))
    price = plan.host_price[table.host]
    if plan.left_over > 1e-12 * bandwidth:
        assert (full[table.host] | bounded)[worth].all()
    inner = worth & ~bounded
    np.testing.assert_allclose(savings(table, plan.crawl_rate)[inner], price[inner], rtol=1e-10)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 5.0))
def test_the_cost_is_that_of_the_papers_split_search(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    mu, delta = 10 ** rng.uniform(-1, 2, (2, 30))
    complete = rng.random(30) < 0.4
    bandwidth = 30 * share
    assume(not complete.all() or bandwidth < delta.sum())
    plan = solve(mu, delta, bandwidth, complete_observations=complete)
    split = algorithm_3(mu, delta, complete, bandwidth, tolerance=1e-11)
    table = SourceTable.of(mu, delta, complete_observations=complete)
    cost = float(plan_costs(table, plan).harmonic.sum())
    assert cost == pytest.approx(split.cost, rel=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_with_one_class_only_it_is_algorithm_1_or_algorithm_2(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mu, delta = 10 ** rng.uniform(-1, 1, (2, 12))
    bandwidth = 0.5 * delta.sum()
    clock = solve(mu, delta, bandwidth)
    np.testing.assert_allclose(clock.crawl_rate, algorithm_1(mu, delta, bandwidth), rtol=1e-9)
    told = solve(mu, delta, bandwidth, complete_observations=np.full(12, True))
    expected = algorithm_2(mu, delta, bandwidth)
    np.testing.assert_allclose(told.crawl_probability, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_an_independent_solver_finds_no_better_plan(seed: int) -> None:
    """scipy's SLSQP, which knows nothing of prices, on few sources."""
    rng = np.random.default_rng(seed)
    mu, delta = 10 ** rng.uniform(-0.5, 0.5, (2, 6))
    complete = np.array([True, False] * 3)
    bandwidth = 3.0
    ours = solve(mu, delta, bandwidth, complete_observations=complete).crawl_rate
    theirs = _slsqp(mu, delta, complete, bandwidth)
    best = harmonic_cost(mu, delta, ours, complete_observations=complete)
    assert best <= harmonic_cost(mu, delta, theirs, complete_observations=complete) + 1e-9
    np.testing.assert_allclose(ours, theirs, rtol=2e-3)


def _slsqp(mu: Floats, delta: Floats, complete: Bools, bandwidth: float) -> Floats:
    def cost(log_rates: Floats) -> float:
        return harmonic_cost(mu, delta, np.exp(log_rates), complete_observations=complete)

    most = np.where(complete, np.log(delta), 10.0)
    found = minimize(  # type: ignore[call-overload]  # its stubs lack this kind of constraint
        cost,
        np.minimum(np.full(len(mu), np.log(bandwidth / len(mu))), most),
        method="SLSQP",
        bounds=[(-10.0, float(high)) for high in most],
        constraints={"type": "eq", "fun": lambda x: float(np.exp(x).sum() - bandwidth)},
        options={"ftol": 1e-14, "maxiter": 1_000},
    )
    rates: Floats = np.minimum(np.exp(found.x), np.where(complete, delta, np.inf))
    rates *= min(bandwidth / rates.sum(), 1.0)
    return rates


@given(st.integers(0, 2**32 - 1), st.floats(1e-12, 1e12))
def test_magnitudes_from_1e_minus_12_to_1e12_are_solved_exactly(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    table = SourceTable.of(*(10 ** rng.uniform(-12, 12, (2, 20))))
    plan = solved(table, scale)
    assert plan.crawl_rate.sum() == pytest.approx(scale, rel=1e-12)
    assert plan.price is not None
    np.testing.assert_allclose(savings(table, plan.crawl_rate), plan.price, rtol=1e-10)


def test_what_cannot_be_solved_is_told_in_one_sentence() -> None:
    with pytest.raises(ValueError, match="importance, change_rate: some are too large") as caught:
        solve([1e300, 1.0], [1e300, 1.0], 1.0)
    assert "values from 1e-12 to 1e12 are always accepted" in str(caught.value)


def test_nothing_to_crawl_leaves_the_budget_over() -> None:
    plan = solve([], [], 3.0)
    assert (len(plan.crawl_rate), plan.left_over, plan.price) == (0, 3.0, 0.0)
    plan = solve([0.0, 2.0], [1.0, 0.0], 3.0)
    assert plan.crawl_rate.tolist() == [0.0, 0.0]
    assert plan.not_crawled.all()
    assert plan.left_over == 3


def test_more_budget_than_signals_leaves_the_rest_over() -> None:
    plan = solve([1.0, 2.0], [1.0, 3.0], 10.0, complete_observations=[True, True])
    assert plan.crawl_probability.tolist() == [1.0, 1.0]
    assert (plan.left_over, plan.price) == (6.0, 0.0)


def test_more_budget_than_signals_goes_to_those_without() -> None:
    plan = solve([1.0, 1.0], [1.0, 1.0], 100.0, complete_observations=[True, False])
    assert plan.crawl_rate.tolist() == pytest.approx([1.0, 99.0])
    assert plan.on_signals.tolist() == [True, False]


@given(source_tables(), BUDGETS, st.floats(1e-6, 1e6))
def test_a_guess_of_the_price_changes_nothing_but_rounding(
    table: SourceTable, bandwidth: float, guess: float
) -> None:
    cold = solved(table, bandwidth)
    warm = solve(
        table.importance, table.change_rate, bandwidth,
        complete_observations=table.complete_observations, price=guess,
    )  # fmt: skip
    np.testing.assert_allclose(warm.crawl_rate, cold.crawl_rate, rtol=1e-11)


def test_the_policy_executes_the_same_rates_as_it_is_told() -> None:
    table = SourceTable.of([1.0, 2.0], [1.0, 0.5])
    assert LambdaCrawl().rates(table, 1.0).crawling == "poisson"
    periodic = LambdaCrawl("periodic").rates(table, 1.0)
    assert periodic.crawling == "periodic"
    assert periodic.crawl_rate.tolist() == LambdaCrawl().rates(table, 1.0).crawl_rate.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, -1.0], [1.0, 1.0], 1.0), "importance: row 1 is -1.0; accepted"),
        (([1.0, 1.0], [1.0, np.nan], 1.0), "change_rate: row 1 is nan; accepted"),
        (([1.0, np.inf], [1.0, 1.0], 1.0), "importance: row 1 is inf; accepted"),
        (([1.0], [1.0, 1.0], 1.0), "change_rate: has "),
        (([1.0], [1.0], 0.0), "bandwidth: is 0.0; accepted"),
        (([1.0], [1.0], -2.0), "bandwidth: is -2.0; accepted"),
        (([1.0], [1.0], np.nan), "bandwidth: is nan; accepted"),
    ],
)
def test_bad_numbers_are_refused_by_argument_and_row(
    arguments: tuple[list[float], list[float], float], message: str
) -> None:
    with pytest.raises(ValueError, match=r"accepted|rows") as caught:
        solve(*arguments)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"complete_observations": [1, 0]}, "complete_observations: has dtype"),
        ({"host": [0, 2], "host_capacity": [1.0, 1.0]}, "host: row 1 is 2"),
        ({"host": [0, 1], "host_capacity": [1.0, 0.0]}, "host_capacity: row 1 is 0"),
        ({"host_capacity": [1.0]}, "host: is missing"),
        ({"price": 0.0}, "price: is 0.0"),
    ],
)
def test_bad_options_are_refused_by_name(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve([1.0, 1.0], [1.0, 1.0], 1.0, **options)  # type: ignore[arg-type]


@given(source_tables(spread=2.0), BUDGETS)
def test_without_signals_approximate_rates_go_by_importance_alone(
    table: SourceTable, budget: float
) -> None:
    plan = LambdaCrawlApprox().rates(table, budget)
    clock = ~table.complete_observations & (table.importance > 0) & (table.change_rate > 0)
    per_importance = plan.crawl_rate[clock] / table.importance[clock]
    np.testing.assert_allclose(per_importance, per_importance.max(initial=0.0), rtol=1e-10)
    assert plan.crawl_rate.sum() + plan.left_over == pytest.approx(budget, rel=1e-12)


@given(source_tables(spread=2.0), BUDGETS)
def test_the_approximation_never_costs_less_than_the_optimum(
    table: SourceTable, budget: float
) -> None:
    approximate, best = (
        plan_costs(table, policy.rates(table, budget)).harmonic.sum()
        for policy in (LambdaCrawlApprox(), LambdaCrawl())
    )
    assert approximate >= best * (1 - 1e-12)


def test_the_approximation_is_the_optimum_where_importance_is_as_change_rate() -> None:
    """Prop. 9."""
    rng = np.random.default_rng(1)
    delta = 10 ** rng.uniform(-1, 1, 20)
    complete = rng.random(20) < 0.3
    table = SourceTable.of(3 * delta, delta, complete_observations=complete)
    np.testing.assert_allclose(
        LambdaCrawlApprox().rates(table, 7.0).crawl_rate,
        LambdaCrawl().rates(table, 7.0).crawl_rate,
        rtol=1e-10,
    )


def test_the_approximation_has_no_price() -> None:
    plan = LambdaCrawlApprox("periodic").rates(SourceTable.of([1.0], [1.0]), 1.0)
    assert (plan.price, plan.host_price, plan.crawling) == (None, None, "periodic")


@pytest.mark.parametrize(
    ("importance", "change_rate"),
    [([1e308, 1e308], [1.0, 1.0]), ([1.0, 1.0], [1e308, 1e308]), ([1e-300, 1e-310], [1e200, 1.0])],
)
def test_sums_that_leave_the_range_of_numbers_are_refused_and_not_warned_of(
    importance: list[float], change_rate: list[float]
) -> None:
    with pytest.raises(ValueError, match="importance, change_rate: some are too large"):
        LambdaCrawlApprox().rates(SourceTable.of(importance, change_rate), 1.0)
