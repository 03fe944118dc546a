"""`freshet status` is the store on one screen, while a crawl may be writing it."""

from operator import attrgetter
from typing import Any

import pytest

from freshet.config.loading import load
from freshet.crawler.frontier.clock import iso
from freshet.crawler.run.terminal import show_not_crawled
from tests.console import as_json, shown
from tests.storage.small_store import HOST, SmallStore


@pytest.fixture
def busy(small: SmallStore, now: float) -> SmallStore:
    """A store in the middle of its second run, with a host of every sort."""
    small.run(now - 90_000, state="ended", ended_at=now - 80_000, fetches=9)
    run = small.run(now - 600.5, fetches=1_234)
    host = small.host()
    page = small.page("/", checked_at=now - 5)
    small.observe(page, now - 80_001, "new")
    small.observe(page, now - 5, "changed", run_id=run)
    small.due(small.page("/due"), now - 1)
    small.due(small.page("/retry"), now + 500)
    small.due(small.page("/left"), now, deferred="http_503")
    small.page("/kept-out", held_back="nofollow")
    small.host(
        "http://parked.example", parked_until=now + 3_630, parked_reason="http_429", queue="p"
    )
    closed = small.host("http://closed.example")
    small.insert(
        "robots", host_id=closed, standing="unreachable", fetched_at=now - 7_300,
        reason="timeout", body=b"",
    )  # fmt: skip
    small.insert(
        "trap", host_id=host, shape="/cal?d=*", kind="trap: calendar", admitted=400, refused=12
    )
    return small


def status(small: SmallStore) -> str:
    return shown("status", "--db", small.path)


def status_json(small: SmallStore) -> Any:
    return as_json("status", "--db", small.path)


def test_the_last_run_is_told_with_its_observations_and_its_last_sign_of_life(
    busy: SmallStore, now: float
) -> None:
    told = status_json(busy)["last_run"]
    assert told == {
        "run": 2, "state": "running", "started_at": iso(now - 600.5), "ended_at": None,
        "last_observation_at": iso(now - 5), "seconds": 595.5, "fetches": 1_234,
        "observations": {"changed": 1},
    }  # fmt: skip


def test_every_part_of_the_store_is_counted(busy: SmallStore) -> None:
    told = status_json(busy)
    assert told["holdings"]["pages"] == 1
    assert told["holdings"]["urls"] == 5
    assert told["frontier"] == {"due": 1, "waiting": 1, "deferred": 1}
    assert told["busiest"] == [{"origin": HOST, "due": 1}]
    assert told["deferred"] == [{"origin": HOST, "urls": 1, "reason": "http_503"}]
    assert told["held_back"] == {"nofollow": 1}
    assert told["bounded"][0]["refused"] == 12
    assert told["file_bytes"] >= busy.path.stat().st_size


def test_people_see_which_hosts_wait_for_what_and_until_when(busy: SmallStore) -> None:
    lines = status(busy).splitlines()
    parked = next(line for line in lines if line.startswith("http://parked.example"))
    assert "(in 1 h)" in parked
    assert "http_429" in parked
    closed = next(line for line in lines if line.startswith("http://closed.example"))
    assert "(2 h ago)" in closed
    assert "nothing is fetched" in closed
    assert any(f"{HOST}/cal?d=*" in line for line in lines)


def test_an_old_copy_of_robots_in_use_is_no_closed_host(small: SmallStore, now: float) -> None:
    small.insert(
        "robots", host_id=small.host(), standing="parsed", fetched_at=now - 9, stale_since=now,
        reason="http_500", body=b"",
    )  # fmt: skip
    assert "an older copy is used" in status(small)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("ended", "Run 1: ended"),
        ("interrupted", "Run 1: interrupted (the next crawl finishes it)"),
        ("limit", "Run 1: limit reached (the next crawl finishes it)"),
        ("running", "Run 1: running, or killed (the next crawl finishes it)"),
    ],
)
def test_the_state_of_a_run_says_what_the_next_crawl_does(
    small: SmallStore, now: float, state: str, words: str
) -> None:
    small.run(now - 60, state=state)
    assert words in status(small).splitlines()


def test_a_store_without_a_run_says_so(small: SmallStore) -> None:
    assert "no crawl has run yet" in status(small)
    assert status_json(small)["last_run"] is None


@pytest.mark.parametrize(
    ("why", "setting"),
    [
        ("depth", "crawl.max_depth"),
        ("nofollow", "crawl.follow_nofollow"),
        ("extension", "fetch.excluded_extensions"),
        ("trap: session", "traps.max_session_urls"),
        ("trap: calendar", "traps.max_calendar_urls"),
        ("trap: query", "traps.max_query_urls"),
        ("trap: feeds", "signals.max_feeds"),
        ("trap: copies", "traps.min_copy_urls"),
        ("trap: parameter", "traps.min_copy_pairs"),
    ],
)
def test_what_is_not_crawled_is_told_with_the_setting_that_changes_it(
    capsys: pytest.CaptureFixture[str], why: str, setting: str
) -> None:
    show_not_crawled({why: 1_234})
    assert capsys.readouterr().out.splitlines()[-1].split("  ") == [why, "1,234", setting]
    settings, _ = load(None, {})
    attrgetter(setting)(settings)


def test_what_no_setting_changes_is_told_without_one(capsys: pytest.CaptureFixture[str]) -> None:
    show_not_crawled({"forgotten": 2})
    expected = "Known but not crawled why URLs forgotten 2".split()
    assert capsys.readouterr().out.split() == expected
