"""What pages would get without limits: the looks of one price that use up the budget."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.agenda import expected
from freshet.scheduler.agenda.expected import wanted
from freshet.scheduler.policies.adaptive_intervals import NutchAdaptive
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl
from freshet.scheduler.sources import SourceTable


def a_page_each(importance: list[float], rate: list[float]) -> SourceTable:
    n = len(importance)
    return SourceTable.of(importance, rate, host=np.arange(n), host_capacity=np.ones(n))


NONE_NEW = np.full(3, np.nan)


@given(
    st.lists(st.floats(0.1, 10), min_size=3, max_size=3),
    st.lists(st.floats(0.01, 10), min_size=3, max_size=3),
    st.floats(0.5, 200),
)
def test_all_pages_are_looked_at_at_one_index_and_spend_the_budget(
    importance: list[float], rate: list[float], budget: float
) -> None:
    looks = wanted(GreedyIndex(), a_page_each(importance, rate), NONE_NEW, budget)
    assert looks.sum() == pytest.approx(budget, rel=1e-3)
    at_look = SourceTable.of(importance, rate, last_crawl=-1 / looks)
    prices = GreedyIndex().index(at_look, 0.0)
    assert prices == pytest.approx(np.full(3, prices.mean()), rel=0.05)


def test_a_rate_policy_wants_what_it_plans_without_limits() -> None:
    table = a_page_each([1.0, 2.0, 3.0], [0.1, 1.0, 5.0])
    plan = LambdaCrawl().rates(SourceTable.of(table.importance, table.change_rate), 6.0)
    found = wanted(LambdaCrawl(), table, NONE_NEW, 6.0)
    assert found == pytest.approx(plan.crawl_rate)
    assert found.max() > table.host_capacity.max()


@pytest.mark.parametrize("policy", [GreedyIndex(), LambdaCrawl()])
def test_new_pages_want_one_look_a_day_and_no_more_than_the_budget_in_all(
    policy: GreedyIndex | LambdaCrawl,
) -> None:
    table = a_page_each([1.0, 1.0, 1.0], [0.01, 1.0, 1.0])
    found = wanted(policy, table, np.array([np.nan, 3.0, 2.0]), 2.5)
    assert found[1:] == pytest.approx([1.0, 1.0])
    assert found.sum() == pytest.approx(2.5, rel=1e-3)
    assert wanted(policy, table, np.ones(3), 1.5).sum() <= 1.5


def test_a_sample_of_many_pages_stands_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    table = SourceTable.of(
        np.ones(4_000), rng.lognormal(-2, 1, 4_000),
        host=rng.integers(0, 4, 4_000), host_capacity=np.ones(4),
    )  # fmt: skip
    none = np.full(4_000, np.nan)
    whole = wanted(GreedyIndex(), table, none, 700.0)
    monkeypatch.setattr(expected, "_SAMPLE", 1_000)
    assert wanted(GreedyIndex(), table, none, 700.0) == pytest.approx(whole, rel=0.1)


def test_where_nothing_changes_or_no_budget_is_known_nothing_is_wanted() -> None:
    assert not wanted(GreedyIndex(), a_page_each([1.0] * 3, [0.0] * 3), NONE_NEW, 5.0).any()
    assert not wanted(NutchAdaptive(), a_page_each([1.0] * 3, [1.0] * 3), NONE_NEW, 5.0).any()
