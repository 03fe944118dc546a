"""How a daemon stands: `freshet status` of a store that one keeps fresh."""

import asyncio
import fcntl
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from freshet.storage.shards import Shards
from tests.console import as_json, shown
from tests.storage.small_store import SmallStore, small_store

HOUR_S = 3_600.0


@pytest.fixture
def now() -> float:
    """Noon, some days ago: what is of today is half a day old at most."""
    return 1_800_000_000.0 // 86_400 * 86_400 + 12 * HOUR_S


@pytest.fixture
def store(tmp_path: Path, now: float, monkeypatch: pytest.MonkeyPatch) -> SmallStore:
    """A daemon has run since yesterday at nine, on 2,400 requests a day."""
    monkeypatch.setattr(time, "time", lambda: now)
    store = asyncio.run(small_store(tmp_path / "crawl.db"))
    began = now - 27 * HOUR_S
    store.run(began, fetches=2_650)
    store.host()
    page = store.page("/next")
    for hour in range(28):
        noted(store, began + hour * HOUR_S, began, fetches=98 * hour, flowed=100.0 * hour)
    for minute in range(40):
        seen = store.observe(page, now - 60 * minute, "unchanged" if minute % 4 else "changed")
        store.insert(
            "audit", observation_id=seen, importance=1.0, since=0.0, expected=0.3, hazard=0.36
        )
    store.insert(
        "capped_queue", outlook_at=now, queue="slow.example", most=1_440.0, wanted=2_000.4, pages=31
    )
    return store


def noted(store: SmallStore, at: float, began: float, **columns: object) -> None:
    plain: dict[str, object] = {
        "run_id": 1, "budget": 2_400.0, "policy": "greedy_index", "forgone": 0.0, "watched": 100,
        "captured": 90, "waiting": 7, "gone": 3, "stale": 0.088, "harmonic": 0.11, "price": 0.125,
        "daily": 5, "weekly": 10, "monthly": 40, "yearly": 34, "rarer": 1, "clocked": 0.5,
        "next_at": at + 36, "next_page_id": 1,
    }  # fmt: skip
    store.insert("outlook", at=at, began_at=began, **plain | columns)


@contextmanager
def kept(store: SmallStore) -> Iterator[None]:
    """A daemon holds the store."""
    with store.path.with_name("crawl.db.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(b"4711 daemon")
        lock.flush()
        yield


def status(store: SmallStore, *options: str) -> str:
    return shown("status", "--db", store.path, *options)


def status_json(store: SmallStore) -> Any:
    return as_json("status", "--db", store.path)["daemon"]


def test_what_was_spent_is_counted_up_to_now_against_what_the_budget_gave(
    store: SmallStore,
) -> None:
    # 12 and 24 hours before: 15 and 3 hours after the beginning.
    found = status_json(store)
    assert found["today"] == {"requests": 2_650 - 98 * 15, "flowed": 1_200.0}
    assert found["day"] == {"requests": 2_650 - 98 * 3, "flowed": 2_400.0}
    assert found["process"] is None
    with kept(store):
        assert status_json(store)["process"] == 4_711


def test_a_running_daemon_has_been_given_more_since_its_last_outlook(
    store: SmallStore, now: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: now + HOUR_S / 2)
    assert status_json(store)["today"]["flowed"] == 1_200.0
    with kept(store):
        assert status_json(store)["today"]["flowed"] == pytest.approx(1_250.0)


def test_freshness_is_told_as_expected_and_as_measured(store: SmallStore) -> None:
    found = status_json(store)
    assert found["snapshot"]["stale"] == 0.088
    assert found["measured"]["draws"] == 40
    assert found["measured"]["binary"]["mean"] == pytest.approx(0.25)
    assert found["measured"]["binary"]["mean"] < found["measured"]["harmonic"]["mean"] < 0.32
    assert found["snapshot"]["capped"] == [
        {"queue": "slow.example", "most": 1_440.0, "wanted": 2_000.4, "pages": 31,
         "refused": pytest.approx(560.4)}
    ]  # fmt: skip


def test_a_person_sees_all_of_it_on_one_screen(store: SmallStore) -> None:
    with kept(store):
        lines = status(store).splitlines()
    screen = lines[: lines.index("Run 1: running") - 1]
    assert len(screen) <= 24
    assert max(map(len, screen[1:])) <= 80  # the first is the path of the file
    text = "\n".join(screen)
    for words in (
        "Daemon: running (process 4711)",
        "2,400 requests a day by greedy_index, one every 36 s",
        "1,180 of 1,200 today (98.3 %), 2,356 of 2,400 in 24 h (98.2 %)",
        "100: 90 captured, 7 new waiting, 3 gone",
        "75.0 % (40 spot checks in 7 d; 60 to 86 %), 91.2 % expected",
        "0.11 expected, 0.273 measured (",
        "50.0 % of pages are scheduled by their site's rhythm",
        "http://one.example/next at ",
        "monthly           40  ████████████████████████████████████████",
        "slow.example    1,440      2,000      560     31",
    ):
        assert words in text, words


def test_what_nobody_could_be_asked_is_told(store: SmallStore, now: float) -> None:
    noted(store, now + 1, now - 27 * HOUR_S, fetches=2_650, flowed=2_800.0, forgone=148.2)
    assert "148 in 27 h: no host could take them" in status(store)


def test_a_killed_daemon_does_not_look_as_if_it_ran(store: SmallStore) -> None:
    text = status(store)
    assert "Daemon: not running" in text
    assert "Run 1: killed (the same command continues)" in text
    assert "next" not in text.partition("Pages change")[0].replace("/next", "")


def test_a_crawl_is_no_daemon(tmp_path: Path) -> None:
    store = asyncio.run(small_store(tmp_path / "other.db"))
    store.run(time.time() - 5)
    assert status_json(store) is None
    assert "Daemon" not in status(store)


def test_the_daemons_of_shards_are_told_as_one(store: SmallStore, tmp_path: Path) -> None:
    made = Shards(tmp_path / "shards", 2)
    made.write()
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for path in made.paths():
        path.write_bytes(store.path.read_bytes())
    other = SmallStore(made.path(1))
    other.execute(
        "UPDATE outlook SET captured = 10, stale = 0.5, price = 0.25, clocked = 0, next_at = at + 9"
    )
    other.execute("DELETE FROM audit WHERE observation_id % 2 = 0")
    other.execute("UPDATE capped_queue SET queue = 'slower.example', most = 1")
    told, whole = as_json("status", "--db", made.folder), as_json("status", "--db", store.path)
    it, one = told["daemon"], whole["daemon"]
    assert it["today"] == {name: 2 * value for name, value in one["today"].items()}
    assert it["snapshot"]["budget"] == 4_800
    assert it["snapshot"]["captured"] == 100
    assert it["snapshot"]["changing"] == [2 * count for count in one["snapshot"]["changing"]]
    # Means over the captured pages.
    assert it["snapshot"]["stale"] == pytest.approx(0.9 * 0.088 + 0.1 * 0.5)
    assert it["snapshot"]["clocked"] == pytest.approx(0.45)
    assert [queue["queue"] for queue in it["snapshot"]["capped"]] == [
        "slower.example", "slow.example",
    ]  # fmt: skip
    # Of 40 audits of 90 pages one in four found a change, of 20 audits of 10 pages one in two.
    assert it["measured"]["draws"] == 60
    assert it["measured"]["binary"]["mean"] == pytest.approx(0.9 * 0.25 + 0.1 * 0.5)
    assert [each["price"] for each in told["shards"]] == [0.125, 0.25]
    text = " ".join(shown("status", "--db", made.folder).split())
    assert "0 of 2 shards running" in text
    assert "0.125 to 0.25: pages worth less" in text
