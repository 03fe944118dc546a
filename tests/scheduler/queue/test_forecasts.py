"""What is expected of all pages that are kept fresh, and what they would get without limits."""

from math import exp, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.scheduler.costs import ein
from freshet.scheduler.policies.adaptive_intervals import NutchAdaptive
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.policies.lambda_crawl import LambdaCrawl
from freshet.scheduler.queue import forecasts
from freshet.scheduler.queue.forecasts import PageTableCopy, forecast, price, sources, wanted
from freshet.scheduler.queue.pages import PageTable
from freshet.scheduler.queue.ranker import Beliefs
from freshet.scheduler.sources import SourceTable

#: Two captured pages, one that is gone, one new, one that failed, and one that was withdrawn.
URL = "http://a.example/"
PAGES = PageTable()
PAGES.add(
    np.arange(6), urls=[URL] * 6, host=np.array([0, 1, 0, 1, 1, 1]),
    importance=np.array([3.0, 1.0, 9.0, 2.0, 9.0, 9.0]),
    since=np.array([8.0, 9.0, 9.0, 7.0, 9.0, 9.0]),
    captured=np.array([1, 1, 1, 0, 0, 0], np.bool_), gone=np.array([0, 0, 2, 0, 0, 0]),
    not_before=np.array([-inf, 11.0, -inf, -inf, 10.5, inf]),
)  # fmt: skip
BELIEFS = Beliefs(
    np.array([0.5, 2.0, 1.0, 0.1, 0.1, 0.1]),
    np.array([0.25, 1.0, 5.0, 0.1, 0.1, 0.1]),
    np.array([1.0, 0.0, 1.0, 1.0, 1.0, 1.0]),
)


def test_costs_are_means_over_the_captured_pages_by_importance() -> None:
    found = forecast(PageTableCopy.of(PAGES), BELIEFS)
    assert found.stale == pytest.approx(1 - (3 * exp(-0.5) + exp(-2.0)) / 4)
    assert found.harmonic == pytest.approx((3 * ein(0.5) + ein(2.0)) / 4)
    assert found.clocked == 0.5


def test_every_page_counts_where_it_belongs() -> None:
    found = forecast(PageTableCopy.of(PAGES), BELIEFS)
    assert (found.watched, found.captured, found.waiting, found.gone) == (6, 2, 1, 1)
    assert found.changing == (1, 1, 0, 0, 0)


def test_of_no_pages_nothing_is_expected() -> None:
    found = forecast(PageTableCopy.of(PageTable()), Beliefs(*(np.zeros(0),) * 3))
    assert (found.stale, found.harmonic, found.changing) == (None, None, (0,) * 5)


def test_the_price_is_what_hardly_a_free_visit_was_worth_less_than() -> None:
    assert price([inf, 1e200, *np.linspace(0.1, 1.1, 101)]) == pytest.approx(0.2)
    assert price([inf, 1e201]) is None


def test_what_hosts_are_asked_for_comes_from_the_captured_and_the_new() -> None:
    table, waited = sources(PageTableCopy.of(PAGES), BELIEFS, np.array([5.0, 7.0]), 10.0)
    assert table.importance.tolist() == [3.0, 1.0, 2.0]
    assert table.host.tolist() == [0, 1, 1]
    assert table.host_capacity.tolist() == [5.0, 7.0]
    assert np.array_equal(waited, [np.nan, np.nan, 3.0], equal_nan=True)
    alone, _ = sources(PageTableCopy.of(PAGES), BELIEFS, np.array([5.0]), 10.0)
    assert alone.importance.tolist() == [3.0]


def test_hosts_are_told_apart() -> None:
    captured, waiting, gone, stale = PageTableCopy.of(PAGES).by_host(BELIEFS.hazard, 3)
    assert (captured.tolist(), waiting.tolist(), gone.tolist()) == ([1, 1, 0], [0, 1, 0], [1, 0, 0])
    assert stale == pytest.approx([1 - exp(-0.5), 1 - exp(-2.0), np.nan], nan_ok=True)


def test_of_many_pages_a_sample_stands_for_those_of_its_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = np.repeat([0, 1], [101, 2])
    table = SourceTable.of(np.ones(103), np.ones(103), host=host, host_capacity=np.ones(2))
    monkeypatch.setattr(forecasts, "_SAMPLE", 11)
    found = wanted(GreedyIndex(), table, np.full(103, np.nan), 103.0)
    assert found[0] == pytest.approx(101, rel=0.1)
    assert np.isnan(found[1])


def test_a_census_stays_as_it_was() -> None:
    pages = PageTable()
    pages.add(
        np.arange(2), urls=[URL] * 2, captured=np.array([True, False]), not_before=np.full(2, -inf),
    )  # fmt: skip
    census = PageTableCopy.of(pages)
    pages["captured"][:] = True
    pages.add(np.arange(2, 3), urls=[URL])
    assert (len(census), census.held.tolist()) == (2, [True, False])
    assert census.waiting.tolist() == [False, True]


# -- demand ---------


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
    visits = wanted(GreedyIndex(), a_page_each(importance, rate), NONE_NEW, budget)
    assert visits.sum() == pytest.approx(budget, rel=1e-3)
    at_look = SourceTable.of(importance, rate, last_crawl=-1 / visits)
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
    monkeypatch.setattr(forecasts, "_SAMPLE", 1_000)
    assert wanted(GreedyIndex(), table, none, 700.0) == pytest.approx(whole, rel=0.1)


def test_where_nothing_changes_or_no_budget_is_known_nothing_is_wanted() -> None:
    assert not wanted(GreedyIndex(), a_page_each([1.0] * 3, [0.0] * 3), NONE_NEW, 5.0).any()
    assert not wanted(NutchAdaptive(), a_page_each([1.0] * 3, [1.0] * 3), NONE_NEW, 5.0).any()
