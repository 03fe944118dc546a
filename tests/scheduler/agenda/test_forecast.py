"""What is expected of all pages that are kept fresh."""

from math import exp, inf

import numpy as np
import pytest

from freshet.scheduler.agenda.expected import Census, forecast, price, sources
from freshet.scheduler.agenda.pages import Watchlist
from freshet.scheduler.agenda.ranker import Beliefs
from freshet.scheduler.costs import ein

#: Two captured pages, one that is gone, one new, one that failed, and one that was withdrawn.
PAGES = Watchlist()
PAGES.add(
    np.arange(6), host=np.array([0, 1, 0, 1, 1, 1]),
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
    found = forecast(Census.of(PAGES), BELIEFS)
    assert found.stale == pytest.approx(1 - (3 * exp(-0.5) + exp(-2.0)) / 4)
    assert found.harmonic == pytest.approx((3 * ein(0.5) + ein(2.0)) / 4)
    assert found.clocked == 0.5


def test_every_page_counts_where_it_belongs() -> None:
    found = forecast(Census.of(PAGES), BELIEFS)
    assert (found.watched, found.captured, found.waiting, found.gone) == (6, 2, 1, 1)
    assert found.changing == (1, 1, 0, 0, 0)


def test_of_no_pages_nothing_is_expected() -> None:
    found = forecast(Census.of(Watchlist()), Beliefs(*(np.zeros(0),) * 3))
    assert (found.stale, found.harmonic, found.changing) == (None, None, (0,) * 5)


def test_the_price_is_the_median_of_what_was_paid_freely() -> None:
    assert price([0.1, inf, 0.3, 1e200, 0.2]) == 0.2
    assert price([inf, 1e201]) is None


def test_what_hosts_are_asked_for_comes_from_the_captured_and_the_new() -> None:
    table, waited = sources(Census.of(PAGES), BELIEFS, np.array([1, 0]), np.array([5.0, 7.0]), 10.0)
    assert table.importance.tolist() == [3.0, 1.0, 2.0]
    assert table.host.tolist() == [1, 0, 0]
    assert table.host_capacity.tolist() == [5.0, 7.0]
    assert np.array_equal(waited, [np.nan, np.nan, 3.0], equal_nan=True)
    alone, _ = sources(Census.of(PAGES), BELIEFS, np.array([0]), np.array([5.0]), 10.0)
    assert alone.importance.tolist() == [3.0]


def test_a_census_stays_as_it_was() -> None:
    pages = Watchlist()
    pages.add(np.arange(2), captured=np.array([True, False]), not_before=np.full(2, -inf))
    census = Census.of(pages)
    pages["captured"][:] = True
    pages.add(np.arange(2, 3))
    assert (len(census), census.held.tolist()) == (2, [True, False])
    assert census.waiting.tolist() == [False, True]
