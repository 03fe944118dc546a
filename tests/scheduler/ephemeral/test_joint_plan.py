"""One budget for copies and for what fades, at one price."""

import numpy as np
import pytest

from freshet.scheduler.costs import harmonic_cost
from freshet.scheduler.ephemeral.joint_plan import DecayingSources, JointPlan, joint_plan
from freshet.scheduler.planning import rate_plan
from freshet.scheduler.policies import whittle
from freshet.scheduler.policy import CrawlPlan
from freshet.scheduler.sources import SourceTable

RNG = np.random.default_rng(1)
TABLE = SourceTable.of(RNG.uniform(0.5, 2, 30), np.exp(RNG.normal(-2, 1, 30)))
FADING = DecayingSources(
    np.array([3, 10, 20]), np.array([200.0, 20.0, 1e-4]), np.array([3.0, 0.5, 9.0]), np.ones(3)
)


def plan_of(table: SourceTable, budget: float) -> CrawlPlan:
    return rate_plan("lambda_crawl", table, budget)


def price_of(table: SourceTable, budget: float) -> float:
    price = plan_of(table, budget).price
    assert price is not None
    return price


def planned(
    table: SourceTable = TABLE, budget: float = 30.0, decaying: DecayingSources = FADING
) -> JointPlan:
    return joint_plan(table, budget, decaying, plan_of, price_of)


def test_the_budget_is_spent_and_no_crawl_is_worth_more_elsewhere() -> None:
    found = planned()
    assert found.plan.crawl_rate.sum() == pytest.approx(30.0, rel=1e-3)
    assert found.decaying.tolist() == [3, 10]
    assert found.plan.price == pytest.approx(found.price, rel=1e-2)
    index = whittle.index_after(
        1 / found.plan.crawl_rate[[3, 10]], FADING.income[:2], 1.0, FADING.decay[:2]
    )
    assert index == pytest.approx(found.price, rel=1e-6)


def gain(rate: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """What the plan reaps less what it costs, per day, on the rows that fade and the others."""
    decaying = FADING.take(np.array([True, True, False]))
    interval = 1 / rate[decaying.row]
    reaped = decaying.income / decaying.decay * -np.expm1(-decaying.decay * interval) / interval
    kept = np.ones(len(rate), np.bool_)
    kept[decaying.row] = False
    cost = harmonic_cost(TABLE.importance[kept], TABLE.change_rate[kept], rate[kept])
    return float(reaped.sum()) - float(cost)


def test_no_other_division_of_the_budget_gains_more() -> None:
    best = planned().plan.crawl_rate
    rng = np.random.default_rng(2)
    for _ in range(200):
        other = best * np.exp(rng.normal(0, 0.2, len(best)))
        assert gain(other * best.sum() / other.sum()) <= gain(best) * (1 + 1e-5)


def test_a_host_s_capacity_counts_crawls_of_both_kinds() -> None:
    table = SourceTable.of(
        TABLE.importance, TABLE.change_rate, host=np.arange(30) // 10,
        host_capacity=[2.0, np.inf, np.inf],
    )  # fmt: skip
    rate = planned(table).plan.crawl_rate
    assert rate[:10].sum() <= 2.0 * (1 + 1e-5)
    assert rate[3] > 1.9


def test_where_nothing_else_is_crawled_the_sources_set_the_price() -> None:
    decaying = DecayingSources(np.array([0, 1]), np.full(2, 50.0), np.full(2, 2.0), np.ones(2))
    found = planned(SourceTable.of(np.ones(2), np.ones(2)), 10.0, decaying)
    assert found.plan.crawl_rate == pytest.approx([5.0, 5.0], rel=1e-3)


def test_without_sources_that_fade_it_is_the_policy_s_plan() -> None:
    none = FADING.take(np.zeros(3, np.bool_))
    assert planned(decaying=none).plan.crawl_rate == pytest.approx(plan_of(TABLE, 30.0).crawl_rate)
