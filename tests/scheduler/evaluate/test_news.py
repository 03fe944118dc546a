import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.scheduler.ephemeral.sources import EphemeralSources, UtilityLaw
from freshet.scheduler.evaluate.news import (
    CONTENDERS,
    ITEMS,
    NewsUtility,
    budget_a_period,
    load,
    median_age,
    news_sources,
    reap,
)
from scripts.reproductions.whittle_periods import run
from tests.scheduler.ephemeral.tables import TABLE_1, random_sources


def harvest(
    sources: EphemeralSources,
    budget: float,
    periods: int,
    *,
    names: tuple[str, ...] = tuple(CONTENDERS),
    law: UtilityLaw = ITEMS,
    seed: int = 1,
) -> NewsUtility:
    contenders = {name: CONTENDERS[name](sources, budget) for name in names}
    return reap(sources, contenders, budget, periods, np.random.default_rng(seed), law=law)


@pytest.mark.parametrize(
    ("name", "budget", "expected"),
    [("whittle", 1, 260.39), ("whittle", 2, 337.77), ("greedy", 2, 327.45), ("best", 1, 179.79)],
)
@pytest.mark.parametrize("together", [False, True])
def test_the_example_of_four_sources_is_expected_to_give_its_long_run_averages(
    name: str, budget: float, expected: float, together: bool
) -> None:
    law = UtilityLaw("exponential", together=together)
    (reaped,) = harvest(TABLE_1, budget, 420, names=(name,), law=law).policies.values()
    assert reaped.expected == pytest.approx(expected, abs=0.6)
    # 420 periods: a standard error is 0.3 % with items one by one, some 4 % with one draw for all.
    assert reaped.utility == pytest.approx(expected, rel=0.12 if together else 0.01)


def test_in_turn_like_sources_give_what_a_wait_leaves_of_items() -> None:
    like = EphemeralSources.of(np.full(40, 3.0), 2.0, np.log(2))
    turn = harvest(like, 10.0, 400, names=("round_robin",)).policies["round_robin"]
    # Each waits for four periods, that is four half-lives.
    assert turn.expected == pytest.approx(10 * 3 * 2 / np.log(2) * (1 - 2.0**-4))
    assert turn.utility == pytest.approx(turn.expected, rel=0.02)
    assert turn.items == pytest.approx(3 * 40 * 400, rel=0.02)
    assert turn.median_age == pytest.approx(2.0)
    assert (turn.crawls, turn.spent, turn.budget, turn.uncrawled) == (4000, 4000, 4000, 0)


def test_fractions_of_a_crawl_are_carried_over() -> None:
    few = news_sources(7, np.random.default_rng(2))
    budget = budget_a_period(few, 0.5)
    assert budget == pytest.approx(7 * 0.5 / 24)
    for reaped in harvest(few, budget, 48).policies.values():
        assert reaped.crawls == 7
    for reaped in harvest(few, budget, 47).policies.values():
        assert reaped.crawls == 6


def test_expectations_are_level_from_the_first_measured_day_on() -> None:
    many = news_sources(1_500, np.random.default_rng(3))
    budget = budget_a_period(many, 0.2)
    short, long = (
        harvest(many, budget, days * 24, names=("whittle", "static", "greedy")).policies
        for days in (4, 12)
    )
    for name, reaped in short.items():
        assert reaped.expected == pytest.approx(long[name].expected, rel=0.01)


@settings(deadline=None, max_examples=3)
@given(st.integers(0, 1000), st.floats(0.05, 20.0))
def test_no_policy_may_expect_more_than_the_bound_by_more_than_what_waits(
    seed: int, bandwidth: float
) -> None:
    sources = news_sources(30, np.random.default_rng(seed))
    budget = budget_a_period(sources, bandwidth)
    found = harvest(sources, budget, 96)
    assert found.bound <= found.coming
    for reaped in found.policies.values():
        waiting = float(sources.ceiling.sum()) / 4
        assert reaped.expected <= found.bound + waiting + 1e-9
        assert reaped.spent <= reaped.budget * (1 + 1e-9)
        assert reaped.budget - reaped.spent < 1


def test_policies_do_not_depend_on_who_else_is_there_but_for_what_waits_at_the_start() -> None:
    sources = news_sources(200, np.random.default_rng(3))
    alone = harvest(sources, 5.0, 48, names=("whittle",)).policies["whittle"]
    beside = harvest(sources, 5.0, 48, names=("whittle", "greedy")).policies["whittle"]
    again = harvest(sources, 5.0, 48, names=("whittle",)).policies["whittle"]
    assert alone == again
    assert (alone.expected, alone.uncrawled) == (beside.expected, beside.uncrawled)


def test_unequal_costs_are_spent_to_the_least_of_them() -> None:
    cost = np.random.default_rng(1).uniform(0.5, 3.0, 50)
    sources = EphemeralSources.of(np.linspace(1, 9, 50), 1.0, 0.5, cost=cost)
    for reaped in harvest(sources, 7.3, 200).policies.values():
        assert reaped.spent <= reaped.budget + 1e-6
        assert reaped.budget - reaped.spent <= cost.max()


def test_the_median_of_a_mixture_is_that_of_its_draws() -> None:
    items = np.array([0, 400, 100, 0, 0, 0, 0, 0, 500])
    rng = np.random.default_rng(1)
    draws = np.concatenate([rng.uniform(0, k, 1000 * count) for k, count in enumerate(items)])
    assert median_age(items) == pytest.approx(np.median(draws), rel=0.01)
    assert median_age(np.zeros(4, np.int64)) is None


def test_progress_rises_to_the_end() -> None:
    told: list[float] = []
    contenders = {"best": CONTENDERS["best"](TABLE_1, 1.0)}
    reap(TABLE_1, contenders, 1, 6, np.random.default_rng(1), law=ITEMS, progress=told.append)
    assert told == sorted(told)
    # Four days are four periods here, and unmeasured.
    assert (len(told), told[-1]) == (10, 1.0)


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, 24.001, float("nan")])
def test_no_crawl_and_more_than_one_a_period_are_refused(bandwidth: float) -> None:
    sources = news_sources(3, np.random.default_rng(1))
    with pytest.raises(ValueError, match=r"bandwidth: is .* accepted are crawls per source"):
        budget_a_period(sources, bandwidth)
    assert budget_a_period(sources, 24.0) == 3


def test_bad_values_are_refused_in_a_line() -> None:
    with pytest.raises(ValueError, match="budget: is 0; accepted is a finite number above 0"):
        reap(TABLE_1, {}, 0, 5, np.random.default_rng(1), law=ITEMS)
    with pytest.raises(ValueError, match="periods: are 0; accepted is at least 1"):
        reap(TABLE_1, {}, 1, 0, np.random.default_rng(1), law=ITEMS)
    lasting = EphemeralSources.of([1.0, 1.0], 1.0, [1.0, 0.0])
    with pytest.raises(ValueError, match=r"decay: row 1 is 0.0; accepted is a number above 0"):
        reap(lasting, {}, 1, 5, np.random.default_rng(1), law=ITEMS)


MANY = random_sources(300, np.random.default_rng(5))


@pytest.mark.parametrize("name", CONTENDERS)
def test_a_policy_ends_at_its_pace(name: str) -> None:
    policy, pace = load(name)(MANY, 30.0)
    shares = run(MANY, policy, 30.0, 500, warm_up=300).shares
    assert pace.sum() == pytest.approx(30, abs=1)
    # One price for all leaves whoever is at it to chance; others keep to their pace.
    off = np.abs(shares - pace)
    assert (off > 0.01).mean() < 0.1
    assert off.sum() / 30 < 0.03


def test_the_example_of_four_sources_has_the_paces_that_can_be_derived() -> None:
    best, turn, greedy = (
        load(name)(TABLE_1, 2.0)[1].tolist() for name in ("best", "round_robin", "greedy")
    )
    assert best == [1, 1, 0, 0]
    assert turn == [0.5] * 4
    assert greedy == [1, 1, 0, 0]


def test_a_budget_for_all_crawls_all_and_sources_without_items_are_no_fault() -> None:
    for make in CONTENDERS.values():
        assert make(TABLE_1, 4.0)[1].tolist() == pytest.approx([1, 1, 1, 1])
        idle = EphemeralSources.of([0.0, 0.0], 1.0, 1.0)
        _, pace = make(idle, 1.0)
        assert ((pace >= 0) & (pace <= 1)).all()


def test_an_unknown_name_is_refused_in_a_line() -> None:
    with pytest.raises(ValueError, match="policy: is 'oracle'; accepted are whittle, static"):
        load("oracle")


SOURCES = news_sources(200_000, np.random.default_rng(1))


def test_sources_publish_as_the_feeds_that_were_watched_for_eight_months() -> None:
    a_feed_and_day = 10_794_285 / 8_155 / (365.25 * 8 / 12)
    assert SOURCES.arrival_rate.mean() == pytest.approx(a_feed_and_day, rel=0.03)
    busiest = np.sort(SOURCES.arrival_rate)[-int(0.17 * len(SOURCES)) :]
    assert busiest.sum() / SOURCES.arrival_rate.sum() == pytest.approx(0.97, abs=0.002)
    assert SOURCES.arrival_rate.max() == 1_000


def test_items_fade_within_hours_to_days_and_are_worth_one_on_average() -> None:
    hours = 24 * np.log(2) / SOURCES.decay
    assert hours.mean() == pytest.approx(36, rel=0.02)
    assert np.median(hours) == pytest.approx(24, rel=0.02)
    assert (hours.min(), hours.max()) == pytest.approx((1, 24 * 14))
    assert SOURCES.mean_utility.mean() == pytest.approx(1, rel=0.02)
    assert ITEMS.draws(100_000, np.random.default_rng(1)).mean() == pytest.approx(1, rel=0.02)


def test_rates_half_lives_and_utilities_are_independent() -> None:
    columns = np.log([SOURCES.arrival_rate, SOURCES.decay, SOURCES.mean_utility])
    assert np.abs(np.corrcoef(columns) - np.eye(3)).max() < 0.01


def test_the_same_seed_gives_the_same_sources_and_there_may_be_one() -> None:
    one, same = (news_sources(1, np.random.default_rng(4)) for _ in range(2))
    assert (one.arrival_rate, one.decay) == (same.arrival_rate, same.decay)
    assert len(one) == 1
    assert one.cost.tolist() == [1.0]
