"""`freshet replay STORE --db NEW`: what it takes in, what it leaves alone, and what it says."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard
from typer.testing import CliRunner, Result

from freshet.crawler.cli.main import app
from tests.crawler.archive.archives import gzipped
from tests.crawler.archive.archives import page as captured
from tests.storage.small_store import HOST, SmallStore, small_store
from tests.storage.versioned_store import html, version, versioned_store

AT = 1_790_000_000.0
DAY_S = 86_400.0
WORDS = (
    "The mill at the river has been closed since the flood of the spring.",
    "Its wheel was taken to the museum of the town, where it is shown.",
    "Nobody knows yet who is going to pay for the repair of the weir.",
)


def replay(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["replay", *map(str, arguments)])


def kinds(db: Path) -> list[tuple[str, float, str]]:
    with closing(sqlite3.connect(db)) as store:
        return store.execute(
            "SELECT p.url, o.at, o.kind FROM observation AS o JOIN page AS p ON p.id = o.page_id "
            "ORDER BY o.at, p.url"
        ).fetchall()


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    """Three looks at a page, the first of which has lost its body, and one at what is not there."""
    past = versioned_store(tmp_path / "past.db", AT)
    past.insert("seed", text=HOST, url=f"{HOST}/", importance=2.0, added_at=AT)
    page = past.page("/")
    for day, words in enumerate((WORDS[:1], WORDS[:2], WORDS)):
        at = AT + day * DAY_S
        seen = version(past, page, at, html(*words), keep=day > 0)
        kind = "changed" if day else "new"
        past.observe(page, at, kind, rung="blocks", status=200, version_id=seen)
    past.observe(past.page("/lost"), AT + 1.0, "gone", status=404, reason="http_404")
    return past


def test_what_is_kept_is_taken_in_and_what_is_not_is_told(
    store: SmallStore, tmp_path: Path
) -> None:
    db = tmp_path / "new.db"
    result = replay(store.path, "--db", db, "--json")
    assert result.exit_code == 0, result.output
    found: Any = json.loads(result.stdout)
    assert found["looks"] == 4
    assert found["looks_without_bodies"] == 1
    assert (found["looks_taken_back"], found["looks_odd"], found["looks_with_damaged_bodies"]) == (
        0,
        0,
        0,
    )
    assert len(found["runs"]) == 1
    assert [(url, round(at - AT), kind) for url, at, kind in kinds(db)] == [
        (f"{HOST}/lost", 1, "gone"),
        (f"{HOST}/", DAY_S, "new"),
        (f"{HOST}/", 2 * DAY_S, "changed"),
    ]
    again = replay(store.path, "--db", db)
    assert again.exit_code == 0
    assert "1 of 4 looks saw content whose bodies are not kept" in again.stderr.splitlines()[-1]
    assert len(kinds(db)) == 3


def test_what_was_replayed_can_be_asked_at_once(store: SmallStore, tmp_path: Path) -> None:
    result = replay(store.path, "--db", tmp_path / "new.db", "--policy", "uniform", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["captures"] == 2


def test_a_store_that_grew_is_gone_on_with(store: SmallStore, tmp_path: Path) -> None:
    db = tmp_path / "new.db"
    assert replay(store.path, "--db", db).exit_code == 0
    store.run(AT + 9 * DAY_S)
    store.observe(2, AT + 9 * DAY_S + 1.0, "gone", run_id=2, status=404, reason="http_404")
    assert replay(store.path, "--db", db).exit_code == 0
    assert len(kinds(db)) == 4


def test_a_page_to_which_nothing_leads_any_more_stands_where_it_stood(
    store: SmallStore, tmp_path: Path
) -> None:
    feed = store.page("/feed", role="feed", depth=4)
    store.observe(feed, AT + 9.0, "failed", status=500, reason="http_500")
    db = tmp_path / "new.db"
    assert replay(store.path, "--db", db).exit_code == 0
    with closing(sqlite3.connect(db)) as made:
        found = made.execute("SELECT role, depth FROM page WHERE url LIKE '%/feed'").fetchall()
    assert found == [("feed", 4)]


def test_damage_and_odd_rows_cost_what_they_hit(store: SmallStore, tmp_path: Path) -> None:
    newest = "(SELECT body_digest FROM version ORDER BY id DESC LIMIT 1)"
    store.execute(f"UPDATE body SET zstd = x'00' WHERE digest = {newest}")
    page = store.page("/more")
    changed = version(store, page, AT + 2.0, html(*WORDS[1:]))
    store.observe(page, AT + 2.0, "new", status=200, version_id=changed)
    # It says that it needs more memory than there is.
    boundless = zstandard.ZstdCompressor(write_content_size=False).compress(b"x")
    store.execute(
        "UPDATE body SET zstd = ?, size_bytes = ? WHERE stored_at = ?", boundless, 2**62, AT + 2.0
    )
    other = version(store, store.page("/other"), AT + 3.0, html(*WORDS[2:]))
    store.observe(4, AT + 3.0, "new", status=200, version_id=other)
    store.execute(
        "UPDATE body SET (zstd, size_bytes) = (SELECT zstd, size_bytes FROM body WHERE stored_at "
        "= ?) WHERE stored_at = ?", AT + DAY_S, AT + 3.0
    )  # fmt: skip
    store.observe(page, AT + 4.0, "invented")
    store.observe(page, 1e300, "failed")
    store.observe(page, AT + 5.0, "redirected", status=301, reason="permanent", detail="http://[")
    store.observe(page, AT + 6.0, "redirected", status=-7)
    store.insert("robots", host_id=1, standing="odd", fetched_at=AT, body=b"")
    store.observe(store.page("http://["), AT + 7.0, "failed")
    store.observe(store.page("ftp://one.example/"), AT + 7.0, "failed")
    store.observe(store.page("/odd", host=store.host("x")), AT + 7.0, "failed", status=500)
    for url, fallback in (("http://[", None), ("x", None), (f"{HOST}/seed", "about:x")):
        store.insert(
            "seed", text=url, url=url, fallback_url=fallback, importance=1.0, added_at=AT - 1.0
        )
    db = tmp_path / "new.db"
    result = replay(store.path, "--db", db, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["looks_with_damaged_bodies"], found["looks_odd"]) == (3, 2)
    assert found["first_damages"][0].startswith(f"{HOST}/more: ")
    assert {url for url, _, _ in kinds(db)} == {
        f"{HOST}/{end}" for end in ("", "lost", "more", "odd")
    }


def test_what_no_replay_of_this_store_made_is_left_as_it_is(
    store: SmallStore, tmp_path: Path
) -> None:
    made, other = tmp_path / "made.db", tmp_path / "other.db"
    copy, linked, text = tmp_path / "copy.db", tmp_path / "link.db", tmp_path / "text"
    assert replay(store.path, "--db", made).exit_code == 0
    shutil.copy(store.path, copy)
    os.link(store.path, linked)
    text.write_text("no store")
    second = asyncio.run(small_store(other))
    second.run(AT)
    # A crawl that went on with what a replay had made.
    crawled = tmp_path / "crawled.db"
    shutil.copy(made, crawled)
    SmallStore(crawled).run(AT + 20 * DAY_S)
    for db, word in (
        (store.path, "itself or a copy"),
        (copy, "itself or a copy"),
        (linked, "itself or a copy"),
        (other, f"no replay of {store.path} made it"),
        (crawled, f"no replay of {store.path} made it"),
        (text, "not a Freshet store"),
        (tmp_path, "folder"),
    ):
        before = db.read_bytes() if db.is_file() else b""
        result = replay(store.path, "--db", db)
        assert result.exit_code == 1
        assert word in result.stderr
        assert result.stderr.count("\n") == 1
        assert before == (db.read_bytes() if db.is_file() else b"")
    result = replay(other, "--db", made)
    assert result.exit_code == 1
    assert f"no replay of {other} made it" in result.stderr


def test_one_store_is_replayed_and_alone(store: SmallStore, tmp_path: Path) -> None:
    past, db = tmp_path / "past.warc.gz", tmp_path / "new.db"
    past.write_bytes(gzipped(captured(1)))
    for paths in ((store.path, past), (past, store.path), (store.path, store.path)):
        for more in (("--db", db), ()):
            result = replay(*paths, *more)
            assert result.exit_code == 2
            assert "one is asked or replayed alone" in result.stderr
            assert result.stderr.count("\n") == 1
    assert not db.exists()


def test_a_store_without_a_look_leaves_nothing_behind(tmp_path: Path) -> None:
    empty = asyncio.run(small_store(tmp_path / "empty.db"))
    begun = versioned_store(tmp_path / "begun.db", AT)
    foreign = tmp_path / "foreign.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE x (y)")
    db = tmp_path / "new.db"
    for path in (empty.path, begun.path, foreign):
        result = replay(path, "--db", db)
        assert result.exit_code == 1
        assert result.stderr.count("\n") == 1
        assert not db.exists()
