"""`freshet gc`, as it is typed."""

import os
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from freshet.crawler.cli import gc
from freshet.storage import maintenance
from freshet.storage.database import held
from tests.console import as_json, freshet, shown
from tests.storage.small_store import SmallStore
from tests.storage.versioned_store import version, versioned_store

T0 = 1_700_000_000.0
collect = partial(freshet, "gc", "--db")


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    """A page with twenty bodies, of which ten are kept."""
    store = versioned_store(tmp_path / "crawl.db", T0)
    page = store.page("/")
    for day in range(20):
        version(store, page, T0 + day, os.urandom(20_000))
    store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return store


def bodies(store: SmallStore) -> int:
    found = as_json("gc", "--db", store.path, "--dry-run")
    return int(found["rows"][0]["rows"])


def test_a_dry_run_tells_of_every_rule_and_does_nothing(store: SmallStore) -> None:
    before = store.path.read_bytes()
    told = shown("gc", "--db", store.path, "--dry-run")
    assert "To be deleted" in told
    assert "newest 10 of a page, 365 d" in told
    assert told.count("for ever") == 6
    assert store.path.read_bytes() == before


def test_rows_go_and_the_file_gets_smaller(store: SmallStore) -> None:
    size = store.path.stat().st_size
    found = as_json("gc", "--db", store.path)
    assert found["rows"][0] == {
        "what": "bodies", "table": "body", "rows": 19,
        "size_bytes": pytest.approx(19 * 20_000, rel=0.01),
    }  # fmt: skip
    assert found["before"]["size_bytes"] == size
    assert store.path.stat().st_size == found["after"]["size_bytes"] < size - 19 * 20_000
    assert bodies(store) == 0


def test_space_may_be_left_in_the_file(store: SmallStore) -> None:
    size = store.path.stat().st_size
    result = collect(store.path, "--no-vacuum")
    assert result.exit_code == 0
    assert store.path.stat().st_size == size
    assert "of it free" in result.stdout


def test_without_room_for_writing_it_anew_the_rows_are_gone_all_the_same(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "SPARE_BYTES", 10**18)
    result = collect(store.path)
    assert result.exit_code == 1
    assert "let new rows fill the free pages" in result.stderr
    assert bodies(store) == 0


def test_little_free_space_is_not_worth_it(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "_VACUUM_FROM", 1.1)
    size = store.path.stat().st_size
    assert collect(store.path).exit_code == 0
    assert store.path.stat().st_size == size


def test_beside_a_daemon_it_says_so_and_looks_only(store: SmallStore) -> None:
    with closing(held(store.path, "daemon")):
        refused = collect(store.path)
        assert refused.exit_code == 1
        assert "a freshet daemon" in refused.stderr
        assert "it deletes the same every day" in refused.stderr
        assert bodies(store) == 19
