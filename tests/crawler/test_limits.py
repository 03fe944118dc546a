"""What politeness leaves each lane."""

import pytest

from freshet.crawler.capacities import limits_of
from freshet.storage.entries import Host, HostState


def host(host_id: int, lane: str | None = None, delay_s: float = 1.0) -> Host:
    state = None if lane is None else HostState(host_id, lane, 0.0, delay_s)
    return Host(host_id, f"https://{host_id}.example", state)


def test_hosts_of_a_lane_share_its_limit_which_counts_pauses_and_exchanges() -> None:
    hosts = [host(4, "shared", 9.0), host(2), host(7, "shared", 9.0), host(9, "fast", 0.1)]
    found = limits_of(hosts, {4: 0.5, 7: 1.5, 9: 0.6}, 1.0)
    assert found.keys == ["shared", "https://2.example", "fast"]
    assert found.lane.tolist() == [0, 1, 0, 2]
    assert found.per_day == pytest.approx([86_400 / 10, 86_400, 86_400 / 1.6])


def test_of_no_hosts_there_are_no_limits() -> None:
    found = limits_of([], {}, 1.0)
    assert (found.keys, len(found.lane), len(found.per_day)) == ([], 0, 0)
