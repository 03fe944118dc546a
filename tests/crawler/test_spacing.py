"""Politeness bounds the crawls of a host."""

from math import inf

from freshet.crawler.capacities import capacities


def test_a_host_gets_a_crawl_a_delay_and_its_own_delay_if_that_is_longer() -> None:
    assert capacities([None, 1.0, 8.0], 2.0).tolist() == [43_200.0, 43_200.0, 10_800.0]


def test_connections_multiply_it() -> None:
    assert capacities([None], 1.0, connections_per_host=3).tolist() == [259_200.0]


def test_without_a_delay_there_is_no_limit() -> None:
    assert capacities([None, 0.0], 0.0).tolist() == [inf, inf]
    assert capacities([], 0.0).tolist() == []
