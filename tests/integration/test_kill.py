"""kill -9 end to end: scripts/bench kill with fewer moments."""

import sys
from pathlib import Path

import pytest

from scripts.benchmarks import alert_kill, command_kill, daemon_kill
from scripts.benchmarks.kill import Load, measure

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs addresses of 127.0.0.0/8")


@pytest.mark.parametrize("kills", [2, pytest.param(6, marks=pytest.mark.long)])
def test_kills_lose_nothing_acknowledged_and_every_page_is_fetched(
    kills: int, tmp_path: Path
) -> None:
    found = measure(Load(trials=kills, pages_per_host=60), tmp_path)
    assert found["kills"] == kills
    assert found["acknowledged"] > 0
    assert found["lost"] == 0
    assert found["problems"] == []
    assert found["pages_missed"] == 0
    assert found["wrong_bodies"] == 0
    asked_again = found["asked_again_in_one_run"]
    assert asked_again["after_commit"] == 0
    assert asked_again["twice_by_one_process"] == 0


@pytest.mark.long
def test_3_kills_of_a_daemon_lose_nothing_and_make_no_burst(tmp_path: Path) -> None:
    found = daemon_kill.measure(3, 1, tmp_path)
    assert found["kills"] == 3
    assert found["acknowledged"] > 0
    assert found["sent"] > 0
    assert (found["acknowledged_lost"], found["lost"], found["problems"]) == (0, 0, [])
    assert found["ahead"] <= 1.0
    for policy in daemon_kill.POLICIES:
        assert found["differences"][policy]["pages"] > 0
        assert found["differences"][policy]["worth"] < 1e-9
        assert found["differences"][policy]["stale"] < 1e-9


@pytest.mark.long
def test_3_kills_of_a_daemon_lose_no_alert_and_tell_none_twice(tmp_path: Path) -> None:
    found = alert_kill.measure(3, 1, tmp_path)
    assert found["kills"] == 3
    assert found["expected"] > 0
    assert found["taken"] > 0
    wrong = (
        "lost", "duplicates", "untrue", "not_withdrawn", "bad_signatures", "altered", "unexplained",
    )  # fmt: skip
    assert {name: found[name] for name in wrong} == dict.fromkeys(wrong, 0)
    assert found["problems"] == []


@pytest.mark.parametrize(
    ("names", "kills"),
    [({"restore", "migration from schema 17"}, 2), pytest.param((), 6, marks=pytest.mark.long)],
)
def test_a_command_that_is_killed_at_a_file_call_goes_on_with_the_same_command(
    names: set[str], kills: int, tmp_path: Path
) -> None:
    found = command_kill.measure(kills, tmp_path, names)
    assert found["kills"] == kills * len(found["commands"]) > 0
    assert [each["wrong"] for each in found["commands"].values() if each["wrong"]] == []
