"""What politeness leaves each host and queue, and on which terms ephemeral sources compete."""

from collections.abc import Sequence
from math import inf

import pytest

from freshet.config import ConfigError
from freshet.config.loading import load
from freshet.config.settings import Settings
from freshet.crawler.run.capacities import (
    capacities,
    costs_of,
    exchange_of,
    limits_of,
    relative_delays,
)
from freshet.scheduler.queue.page_rules import DiscoveryTerms
from freshet.storage.entries import Host, HostState


def host(host_id: int, queue: str | None = None, delay_s: float = 1.0) -> Host:
    state = None if queue is None else HostState(host_id, queue, 0.0, delay_s)
    return Host(host_id, f"https://{host_id}.example", state)


def test_a_host_gets_a_crawl_a_delay_and_its_own_delay_if_that_is_longer() -> None:
    assert capacities([None, 1.0, 8.0], 2.0).tolist() == [43_200.0, 43_200.0, 10_800.0]


def test_connections_multiply_it() -> None:
    assert capacities([None], 1.0, connections_per_host=3).tolist() == [259_200.0]


def test_without_a_delay_there_is_no_limit() -> None:
    assert capacities([None, 0.0], 0.0).tolist() == [inf, inf]
    assert capacities([], 0.0).tolist() == []


def test_hosts_of_a_queue_share_its_limit_which_counts_pauses_and_exchanges() -> None:
    hosts = [host(4, "shared", 9.0), host(2), host(7, "shared", 9.0), host(9, "fast", 0.1)]
    found = limits_of(hosts, {4: 0.5, 7: 1.5, 9: 0.6}, 1.0)
    assert found.keys == ["shared", "https://2.example", "fast"]
    assert found.queue.tolist() == [0, 1, 0, 2]
    assert found.per_day == pytest.approx([86_400 / 10, 86_400, 86_400 / 1.6])


def test_of_no_hosts_there_are_no_limits() -> None:
    found = limits_of([], {}, 1.0)
    assert (found.keys, len(found.queue), len(found.per_day)) == ([], 0, 0)


def test_the_terms_are_those_of_the_settings() -> None:
    said = {
        "ephemeral.half_life_hours": 12.0, "ephemeral.item_value": 30.0,
        "ephemeral.cost": "delay", "ephemeral.recognise": False, "daemon.new_page_value": 2.0,
    }  # fmt: skip
    settings, _ = load(None, said)
    assert exchange_of(settings.ephemeral, settings.daemon) == DiscoveryTerms(
        item_worth=30.0, missing=2.0, half_life=0.5, recognise=False, by_delay=True
    )


def test_without_settings_it_is_what_the_code_says() -> None:
    settings, _ = load(None, {})
    assert exchange_of(settings.ephemeral, settings.daemon) == DiscoveryTerms()


def test_a_look_costs_as_many_delays_as_its_host_wants() -> None:
    hosts = [host(1), *(host(1, "a", delay_s) for delay_s in (1.0, 10.0, 2.0))]
    settings, _ = load(None, {"politeness.delay_s": 2.0})
    assert costs_of(hosts, settings).tolist() == [1, 1, 5, 1]
    assert relative_delays([None, 3.0], 0.0).tolist() == pytest.approx([1.0, 30.0])


def test_another_package_says_what_visits_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    def dear(origins: Sequence[str], settings: Settings) -> list[float]:
        return [settings.crawl.max_depth if "2" in each else 1.0 for each in origins]

    monkeypatch.setattr(
        "freshet.crawler.run.capacities.loaded", {"freshet.visit_costs": {"dear": dear}}.get
    )
    settings, _ = load(None, {"crawl.max_depth": 3, "politeness.delay_s": 2.0})
    hosts = [host(1, "a", 10.0), host(2, "b", 10.0)]
    assert costs_of(hosts, settings).tolist() == [5, 15]


@pytest.mark.parametrize(
    ("key", "value"),
    [("cost", "seconds"), ("half_life_hours", 0), ("item_value", "nan"), ("recognize", True)],
)
def test_wrong_settings_are_told_in_one_line(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match="ephemeral") as caught:
        load(None, {f"ephemeral.{key}": value})
    assert "\n" not in str(caught.value)
