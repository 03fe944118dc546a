"""On which terms ephemeral sources compete, by the settings."""

import pytest

from freshet.config.loading import ConfigError, load
from freshet.crawler.capacities import costs_of, exchange_of, relative_delays
from freshet.scheduler.agenda.terms import DiscoveryTerms
from freshet.storage.entries import Host, HostState


def host(delay_s: float | None) -> Host:
    state = None if delay_s is None else HostState(1, "a.example", 0.0, delay_s)
    return Host(1, "https://a.example", state)


def test_the_terms_are_those_of_the_settings() -> None:
    said = {
        "ephemeral.half_life_hours": 12.0, "ephemeral.item_worth": 30.0,
        "ephemeral.cost": "delay", "ephemeral.recognise": False, "daemon.new_page_worth": 2.0,
    }  # fmt: skip
    settings, _ = load(None, said)
    assert exchange_of(settings.ephemeral, settings.daemon) == DiscoveryTerms(
        item_worth=30.0, missing=2.0, half_life=0.5, recognise=False, by_delay=True
    )


def test_without_settings_it_is_what_the_code_says() -> None:
    settings, _ = load(None, {})
    assert exchange_of(settings.ephemeral, settings.daemon) == DiscoveryTerms()


def test_a_look_costs_as_many_delays_as_its_host_wants() -> None:
    assert costs_of([host(None), host(1.0), host(10.0), host(2.0)], 2.0).tolist() == [1, 1, 5, 1]
    assert relative_delays([None, 3.0], 0.0).tolist() == pytest.approx([1.0, 30.0])


@pytest.mark.parametrize(
    ("key", "value"),
    [("cost", "seconds"), ("half_life_hours", 0), ("item_worth", "nan"), ("recognize", True)],
)
def test_wrong_settings_are_told_in_one_line(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match="ephemeral") as caught:
        load(None, {f"ephemeral.{key}": value})
    assert "\n" not in str(caught.value)
