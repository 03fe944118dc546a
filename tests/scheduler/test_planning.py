"""What a plan comes to is told by rows, shares and costs that add up."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler import PolicyError, planning
from freshet.scheduler.costs import binary_cost, harmonic_cost
from freshet.scheduler.planning import HARDLY, CrawlShare
from freshet.scheduler.policies.lambda_crawl import solve
from freshet.scheduler.policy import CrawlPlan
from freshet.scheduler.sources import SourceTable


def plan(*crawl_rate: float, on_signals: tuple[int, ...] = ()) -> CrawlPlan:
    rate = np.array(crawl_rate)
    signals = np.zeros(len(rate), np.bool_)
    signals[list(on_signals)] = True
    return CrawlPlan(rate, np.ones(len(rate)), signals, bandwidth=float(rate.sum()))


def table(n: int, **columns: object) -> SourceTable:
    plain: dict[str, object] = {"importance": np.ones(n), "change_rate": np.ones(n)}
    return SourceTable.of(**plain | columns)  # type: ignore[arg-type]


@pytest.fixture
def mixed() -> SourceTable:
    rng = np.random.default_rng(1)
    return SourceTable.of(
        rng.lognormal(1, 1, 60), rng.lognormal(-1, 1, 60),
        complete_observations=np.arange(60) % 5 == 0, host=np.arange(60) % 3,
        host_capacity=[2.0, inf, 1e6],
    )  # fmt: skip


def test_the_split_by_class_is_that_of_the_crawl_rates() -> None:
    sources = table(4, complete_observations=[False, True, True, False])
    assert planning.class_shares(sources, plan(1.0, 0.5, 0.25, 3.0)) == (
        CrawlShare(2, 4.0),
        CrawlShare(2, 0.75),
    )


def test_the_split_by_host_names_the_hosts_that_are_at_their_capacity() -> None:
    sources = table(5, host=[0, 0, 1, 1, 3], host_capacity=[2.0, 9.0, 1.0, inf])
    of_host, rate, capped = planning.host_shares(
        sources, plan(0.5, 1.5 * (1 - 1e-12), 3.0, 4.0, 50.0)
    )
    assert of_host.tolist() == [2, 2, 0, 1]
    assert rate.tolist() == pytest.approx([2.0, 7.0, 0.0, 50.0])
    assert capped.tolist() == [True, False, False, False]
    assert planning.largest(rate, 2).tolist() == [3, 1]


def test_the_most_crawled_come_first_and_equal_ones_in_their_order() -> None:
    assert planning.most_crawled(plan(1.0, 0.0, 3.0, 1.0, 0.0), 9).tolist() == [2, 0, 3]
    assert planning.most_crawled(plan(1.0, 0.0, 3.0, 1.0, 0.0), 2).tolist() == [2, 0]


def test_starved_are_those_that_matter_and_are_never_or_hardly_crawled() -> None:
    sources = table(
        8,
        importance=[1.0, 5.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        change_rate=[1.0, 1.0, 1.0, 0.0, HARDLY, 9 * HARDLY, 0.5 * HARDLY, 1e-9],
    )
    *counts, worst = planning.starvation(sources, plan(0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1e-3), 10)
    assert counts == [2, 2, 2]
    assert worst.tolist() == [1, 0, 5, 4]


def test_a_plan_that_neglects_nothing_starves_nothing() -> None:
    *counts, worst = planning.starvation(table(2), plan(1.0, 1.0), 10)
    assert (counts, worst.size) == ([0, 0, 0], 0)


def test_an_interval_is_the_inverse_of_a_rate_and_endless_without_crawls() -> None:
    assert planning.intervals(plan(0.5, 0.0, 4.0)).tolist() == [2.0, inf, 0.25]


def test_each_policy_is_told_with_its_costs_and_its_crawls(mixed: SourceTable) -> None:
    (found,) = planning.compare(mixed, 10.0, ["lambda_crawl"])
    best = solve(
        mixed.importance, mixed.change_rate, 10.0,
        complete_observations=mixed.complete_observations, host=mixed.host,
        host_capacity=mixed.host_capacity,
    )  # fmt: skip
    columns = (mixed.importance, mixed.change_rate, best.crawl_rate)
    complete = mixed.complete_observations
    assert found.policy == "lambda_crawl"
    assert (found.harmonic_cost, found.binary_cost, found.crawl_rate) == pytest.approx(
        (
            harmonic_cost(*columns, complete_observations=complete),
            binary_cost(*columns, complete_observations=complete),
            10.0 - best.left_over,
        )
    )


def test_no_policy_beats_the_optimal_ones_at_what_they_are_optimal_for(mixed: SourceTable) -> None:
    found = {each.policy: each for each in planning.compare(mixed, 5.0)}
    assert set(found) == set(planning.COMPARED)
    at_random = (
        "lambda_crawl_approx", "binary_lambda_crawl", "binary_lambda_crawl_floor", "uniform",
        "change_rate",
    )  # fmt: skip
    least = found["lambda_crawl"].harmonic_cost
    assert all(found[name].harmonic_cost >= least * (1 - 1e-9) for name in at_random)
    assert all(each.crawl_rate <= 5.0 * (1 + 1e-9) for each in found.values())


@given(st.integers(0, 3), st.floats(0.1, 100.0))
def test_few_sources_or_none_have_a_plan_that_is_told_without_fail(n: int, budget: float) -> None:
    sources = table(n)
    made = planning.rate_plan("lambda_crawl", sources, budget)
    assert planning.most_crawled(made, 2).size == min(n, 2)
    assert planning.starvation(sources, made, 2)[0] == 0
    assert sum(share.sources for share in planning.class_shares(sources, made)) == n


def test_a_policy_without_rates_is_refused_with_those_that_have_some() -> None:
    with pytest.raises(PolicyError, match=r"greedy_index: has no crawl rates .*lambda_crawl"):
        planning.rate_plan("greedy_index", table(1), 1.0)
    with pytest.raises(PolicyError, match="'worst' is not known"):
        planning.rate_plan("worst", table(1), 1.0)


def test_what_a_policy_refuses_is_told_with_its_name() -> None:
    with pytest.raises(PolicyError, match=r"^policy uniform: budget: is 0\.0; accepted is"):
        planning.rate_plan("uniform", table(1), 0.0)
