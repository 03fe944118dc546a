import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.scheduler.ephemeral.policies import (
    PeriodPolicy,
    at_frequencies,
    best_sources,
    greedy_expected,
    relaxed,
    round_robin,
    static_frequencies,
    whittle_by_age,
)
from freshet.scheduler.ephemeral.sources import EphemeralSources
from scripts.reproductions.whittle_observed import GreedyObserved, WhittleByState
from scripts.reproductions.whittle_periods import run
from tests.scheduler.ephemeral.tables import TABLE_1, sources


def policies(table: EphemeralSources, budget: float) -> dict[str, PeriodPolicy]:
    return {
        "whittle": whittle_by_age(table),
        "by_state": WhittleByState(table),
        "greedy": greedy_expected(table),
        "observed": GreedyObserved(table),
        "round_robin": round_robin,
        "best": best_sources(table),
        "static": at_frequencies(static_frequencies(table, budget)),
    }


@pytest.mark.parametrize(
    ("name", "budget", "mean", "shares"),
    [
        ("whittle", 1, 260.39, [1 / 2, 1 / 2, 0, 0]),
        ("by_state", 1, 260.39, [1 / 2, 1 / 2, 0, 0]),
        ("greedy", 1, 260.39, [1 / 2, 1 / 2, 0, 0]),
        ("round_robin", 1, 208.33, [1 / 4] * 4),
        ("best", 1, 179.79, [1, 0, 0, 0]),
        ("whittle", 2, 337.77, [1, 4 / 7, 2 / 7, 1 / 7]),
        ("by_state", 2, 337.77, [1, 4 / 7, 2 / 7, 1 / 7]),
        ("greedy", 2, 327.45, [1, 1, 0, 0]),
        ("round_robin", 2, 303.63, [1 / 2] * 4),
    ],
)
def test_the_example_of_four_sources_has_its_long_run_averages(
    name: str, budget: int, mean: float, shares: list[float]
) -> None:
    # 84 periods are whole cycles of 2, 4 and 7.
    outcome = run(TABLE_1, policies(TABLE_1, budget)[name], budget, 84, warm_up=200)
    assert outcome.mean == pytest.approx(mean, abs=0.006)
    assert outcome.shares == pytest.approx(shares)
    assert (outcome.spent == budget).all()


def test_two_sources_in_turn_earn_the_closed_form() -> None:
    u, alpha = TABLE_1.fresh[:2], TABLE_1.retention[:2]
    outcome = run(TABLE_1, whittle_by_age(TABLE_1), 1, 50, warm_up=50)
    assert outcome.mean == pytest.approx(float((u * (1 + alpha)).sum()) / 2)


@settings(deadline=None, max_examples=12)
@given(sources(unequal=True), st.floats(0.1, 8))
def test_no_policy_spends_more_than_the_budget_or_earns_more_than_the_relaxed_bound(
    table: EphemeralSources, budget: float
) -> None:
    for policy in policies(table, budget).values():
        outcome = run(table, policy, budget, 60)
        assert (outcome.spent <= budget * (1 + 1e-9)).all()
        # What waits in the end would have been worth something, too: a telescoped Bellman sum.
        waiting = float(table.ceiling.sum()) / 60
        assert outcome.mean <= relaxed(table, budget).bound + waiting + 1e-9


def test_an_unobserved_source_is_judged_by_what_is_expected_of_it() -> None:
    table = EphemeralSources.of([1, 1], [1, 1], [0.5, 0.5])
    # The second source has a burst in each period, which only an observer sees.
    arriving = np.tile([table.fresh[0], 5.0], (40, 1))
    seen = run(table, GreedyObserved(table), 1, 40, arriving=arriving)
    unseen = run(table, GreedyObserved(table), 1, 40, arriving=arriving, observed=False)
    mixed = run(
        table, GreedyObserved(table), 1, 40, arriving=arriving, observed=np.array([True, False])
    )
    assert seen.shares.tolist() == [0, 1]
    assert unseen.shares.tolist() == [0.5, 0.5]
    assert (mixed.crawled == unseen.crawled).all()


def test_a_source_that_is_too_dear_is_never_crawled_and_one_left_over_is() -> None:
    table = EphemeralSources.of([9, 1, 1], 1, 0.5, cost=[5, 2, 1])
    outcome = run(table, whittle_by_age(table), 3, 20)
    assert outcome.shares.tolist() == [0, 1, 1]


def test_a_budget_for_all_crawls_all() -> None:
    outcome = run(TABLE_1, whittle_by_age(TABLE_1), 400, 5)
    assert outcome.crawled.all()
    assert outcome.mean == pytest.approx(TABLE_1.fresh.sum())


@pytest.mark.parametrize("budget", [0.5, 1, 3, 9])
def test_no_items_no_fading_and_hardly_any_are_borne_by_all(budget: float) -> None:
    table = EphemeralSources.of([0.0, 5.0, 5.0, 5.0], [1.0, 1.0, 0.0, 1.0], [0.5, 0.0, 0.5, 1e-16])
    for policy in policies(table, budget).values():
        outcome = run(table, policy, budget, 40)
        assert np.isfinite(outcome.reward).all()
        assert outcome.crawled.sum(axis=1).tolist() == [min(int(budget), 4)] * 40


def test_bad_values_are_refused_in_a_line() -> None:
    policy = round_robin
    with pytest.raises(ValueError, match="budget: is 0; accepted is a finite number above 0"):
        run(TABLE_1, policy, 0, 5)
    with pytest.raises(ValueError, match="periods: are 0 after 3"):
        run(TABLE_1, policy, 1, 0, warm_up=3)
    with pytest.raises(ValueError, match=r"arriving: has shape \(5, 3\); accepted is \(5, 4\)"):
        run(TABLE_1, policy, 1, 5, arriving=np.ones((5, 3)))
    with pytest.raises(ValueError, match="decay: has 2 rows; accepted are 3"):
        EphemeralSources.of([1, 2, 3], 1, [1, 2])
    with pytest.raises(ValueError, match="cost: row 1 is 0"):
        EphemeralSources.of(1, 1, 1, cost=[1, 0])
