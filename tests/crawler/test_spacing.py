"""Politeness bounds the crawls of a host."""

from math import inf

from freshet.crawler.capacities import Spacing


def test_a_host_gets_a_crawl_a_delay_and_its_own_delay_if_that_is_longer() -> None:
    assert Spacing(2.0).capacities([None, 1.0, 8.0]).tolist() == [43_200.0, 43_200.0, 10_800.0]


def test_a_given_delay_holds_whatever_was_learnt_of_a_host() -> None:
    fixed = Spacing(2.0, whatever_was_learnt=True)
    assert fixed.capacities([None, 1.0, 8.0]).tolist() == [43_200.0] * 3


def test_connections_multiply_it() -> None:
    assert Spacing(1.0, connections_per_host=3).capacities([None]).tolist() == [259_200.0]


def test_without_a_delay_there_is_no_limit() -> None:
    assert Spacing(0.0).capacities([None, 0.0]).tolist() == [inf, inf]
    assert Spacing(0.0).capacities([]).tolist() == []
