"""`freshet changes` lists what changed, newest first, each in one line."""

from functools import partial
from pathlib import Path

import pytest

from tests.console import as_json, freshet, unix
from tests.storage.small_store import HOST, SmallStore
from tests.storage.versioned_store import html, version, versioned_store

changes = partial(freshet, "changes", "--db")


@pytest.fixture
def store(tmp_path: Path, now: float) -> SmallStore:
    """A price that rose an hour ago, a text whose bytes are gone, a page that went twice."""
    store = versioned_store(tmp_path / "crawl.db", now - 900_000)
    price = store.page("/price", title="Offers")
    version(store, price, now - 90_000, html("It costs 10.99 today."), kind="new")
    noise = html("It costs 10.99 today.").replace(b"<title>T", b"<title>New")
    version(store, price, now - 80_000, noise, kind="unchanged")
    after = version(store, price, now - 3_600, html("It costs 11.49 today."), kind=None)
    store.observe(
        price, now - 3_600, "changed", rung="blocks", resemblance=0.9, blocks_added=1,
        blocks_removed=1, version_id=after,
    )  # fmt: skip
    text = store.page("/text")
    version(store, text, now - 800_000, html("one"), keep=False, kind="new")
    other = version(store, text, now - 200_000, html("two"), kind=None)
    store.observe(
        text, now - 200_000, "changed", blocks_added=2, blocks_removed=1, version_id=other
    )
    gone = store.page("/gone")
    store.observe(gone, now - 5_000, "new")
    store.observe(gone, now - 4_000, "gone")
    store.observe(gone, now - 3_000, "gone")
    return store


def test_the_newest_come_first_with_what_they_come_to(store: SmallStore) -> None:
    lines = changes(store.path).stdout.splitlines()
    first, second = lines[-2:]
    assert f"{HOST}/price" in first
    assert "“It costs 10.99 → 11.49 today.”" in first
    assert f"{HOST}/text" in second
    assert "2 blocks added, 1 removed" in second


def test_since_leaves_older_ones_out(store: SmallStore) -> None:
    assert f"{HOST}/text" not in changes(store.path, "--since", "1d").stdout
    assert changes(store.path, "--since", "30min").stdout.startswith("Nothing changed since")


def test_a_very_long_time_is_the_whole_history(store: SmallStore) -> None:
    assert f"{HOST}/text" in changes(store.path, "--since", "99999999999999d").stdout


def test_json_has_times_urls_and_summaries(store: SmallStore, now: float) -> None:
    told = as_json("changes", "--db", store.path, "--limit", "1")
    assert told["total"] == 2
    (change,) = told["changes"]
    assert unix(change["at"]) == pytest.approx(now - 3_600)
    assert (change["url"], change["kind"]) == (f"{HOST}/price", "changed")
    assert change["summary"] == "“It costs 10.99 → 11.49 today.”"


def test_all_tells_of_what_appeared_and_went_each_once(store: SmallStore) -> None:
    told = as_json("changes", "--db", store.path, "--all", "--since", "2w")
    kinds = [change["kind"] for change in told["changes"]]
    assert kinds == ["changed", "gone", "new", "unchanged", "new", "changed", "new"]


def test_a_limit_says_what_it_leaves_out(store: SmallStore) -> None:
    assert "… and 1 older; --limit shows more" in changes(store.path, "--limit", "1").stdout


@pytest.mark.parametrize("text", ["soon", "2 moons", "-1d"])
def test_a_time_that_is_none_is_wrong_usage(store: SmallStore, text: str) -> None:
    result = changes(store.path, f"--since={text}")
    assert result.exit_code == 2
    assert "accepted are 90min, 12h, 2d, 1w or 2026-03-31T12:00" in result.stderr
