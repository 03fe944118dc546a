"""What the settings do not keep goes, whatever is learnt from stays."""

import asyncio
import sqlite3
from math import inf

import pytest

from freshet.storage import maintenance
from freshet.storage.database import open_store
from freshet.storage.errors import StoreError
from freshet.storage.maintenance import DeletedRows, Retention
from tests.storage.crawl_store import writing
from tests.storage.small_store import SmallStore, rows

DAY_S = 86_400.0
NOW = 1_000 * DAY_S


@pytest.fixture
def store(small: SmallStore) -> SmallStore:
    small.run(0.0, state="ended", ended_at=1.0)
    small.host()
    return small


async def pruned(store: SmallStore, keep: Retention) -> dict[str, int]:
    """The rows that went, by what they are; they are what was foretold."""
    foretold = await maintenance.doomed(store.path, keep, NOW)
    database = await open_store(store.path)
    try:
        found = await maintenance.prune(database, keep, NOW)
    finally:
        await database.close()
    assert found == foretold
    assert all(each.size_bytes > 0 for each in found if each.rows)
    return {each.what: each.rows for each in found if each.rows}


def kept_for(**ages: float) -> Retention:
    return Retention(10, inf, **ages)


def version(
    store: SmallStore, page: int, at: float, body: bytes, kind: str | None = "changed"
) -> int:
    digest = body.ljust(16, b"\0")
    store.execute("INSERT OR IGNORE INTO body VALUES (?, ?, 5, x'00')", digest, at)
    added = store.insert("version", page_id=page, at=at, body_digest=digest, sketch=b"\1" + body)
    if kind is not None:
        store.observe(page, at, kind, version_id=added)
    return added


async def test_by_default_nothing_but_bodies_goes(store: SmallStore) -> None:
    page = store.page()
    for day in range(20):
        version(store, page, day * DAY_S, b"%d" % day)
        store.observe(page, day * DAY_S, "failed")
    store.link(page, "http://other.example/", 0.0, gone_at=DAY_S)
    assert await pruned(store, Retention(10, inf)) == {"bodies": 10}


async def test_noise_pushes_no_change_out(store: SmallStore) -> None:
    page = store.page()
    for hour in range(30):
        kind = "unchanged" if hour % 10 else "changed"
        version(store, page, hour * 3_600.0, b"%d" % hour, kind)
    assert await pruned(store, Retention(3, inf)) == {"bodies": 26}
    digests = rows(store.path, "SELECT digest FROM body ORDER BY stored_at")
    assert digests == [(body.ljust(16, b"\0"),) for body in (b"0", b"10", b"20", b"29")]


async def test_failures_go_but_for_a_pages_last_visit(store: SmallStore) -> None:
    one, other = store.page("/one"), store.page("/other")
    for kind in ("failed", "refused", "skipped", "redirected"):
        store.observe(one, 0.0, kind)
    store.observe(one, 1.0, "new")
    store.observe(other, 0.0, "failed")
    store.observe(other, 0.5, "failed", detail="the last one")
    store.run(NOW)
    assert await pruned(store, kept_for(failure_age_s=10 * DAY_S)) == {"failures": 5}
    assert rows(store.path, "SELECT page_id, kind FROM observation ORDER BY id") == [
        (one, "new"),
        (other, "failed"),
    ]


async def test_looks_are_never_thrown_away_nor_what_stands_on_them(store: SmallStore) -> None:
    page = store.page()
    for kind in ("new", "unchanged", "changed", "gone"):
        store.observe(page, 0.0, kind)
    failed = store.observe(page, 1.0, "failed")
    store.insert("amendment", observation_id=failed, kind="new", reason="x", at=2.0)
    audited = store.observe(page, 1.5, "failed")
    store.insert("audit", observation_id=audited, importance=1.0, since=0.0, expected=0.5)
    store.observe(page, 2.0, "gone")
    store.run(NOW)
    keep = Retention(1, 0.0, 0.0, 3, 0.0, 0.0)
    assert await pruned(store, keep) == {}


async def test_of_the_last_crawl_all_stays_but_not_of_a_daemon(store: SmallStore) -> None:
    page = store.page()
    run = store.run(1.0)
    store.observe(page, 1.0, "failed", run_id=run)
    store.observe(page, 2.0, "new", run_id=run)
    assert await pruned(store, kept_for(failure_age_s=DAY_S)) == {}
    columns = (
        "at began_at fetches budget policy flowed forgone watched captured waiting gone daily "
        "weekly monthly yearly rarer clocked next_at"
    )
    store.insert("outlook", run_id=run, **dict.fromkeys(columns.split(), 0) | {"policy": "uniform"})
    assert await pruned(store, kept_for(failure_age_s=DAY_S)) == {"failures": 1}


async def test_young_failures_stay(store: SmallStore) -> None:
    page = store.page()
    store.observe(page, NOW - DAY_S, "failed")
    store.observe(page, NOW - DAY_S, "new")
    store.run(NOW)
    assert await pruned(store, kept_for(failure_age_s=2 * DAY_S)) == {}


async def test_afterwards_observations_are_guarded_as_before(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "_BATCH", 2)
    page = store.page()
    for at in range(7):
        store.observe(page, float(at), "failed")
    store.observe(page, 10.0, "new")
    store.run(NOW)
    schema = rows(store.path, "SELECT name, sql FROM sqlite_master ORDER BY name")
    assert await pruned(store, kept_for(failure_age_s=DAY_S)) == {"failures": 7}
    assert rows(store.path, "SELECT name, sql FROM sqlite_master ORDER BY name") == schema
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        store.execute("DELETE FROM observation")


async def test_a_failure_in_between_leaves_the_guard_where_it_was(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = store.page()
    store.observe(page, 0.0, "failed")
    store.observe(page, 1.0, "new")
    store.run(NOW)
    rule = maintenance._RULES[2]
    monkeypatch.setattr(
        maintenance,
        "_RULES",
        (maintenance._Rule(rule.what, rule.table, rule.doomed, "DELETE FRM {}"),),
    )
    with pytest.raises(StoreError):
        await pruned(store, kept_for(failure_age_s=DAY_S))
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        store.execute("DELETE FROM observation")
    assert rows(store.path, "SELECT count(*) FROM observation") == [(2,)]


async def test_sketches_beyond_the_count_go_unless_a_group_stands_on_them(
    store: SmallStore,
) -> None:
    page = store.page()
    versions = [version(store, page, float(at), b"%d" % at) for at in range(6)]
    store.insert("lsh_page", page_id=page, version_id=versions[1])
    assert await pruned(store, kept_for(sketches_per_page=3)) == {"sketches": 2}
    assert rows(store.path, "SELECT id FROM version WHERE sketch IS NOT NULL ORDER BY id") == [
        (versions[1],), *((each,) for each in versions[3:])
    ]  # fmt: skip
    assert await pruned(store, kept_for(sketches_per_page=3)) == {}


async def test_links_that_went_go_and_those_that_stand_stay(store: SmallStore) -> None:
    one, two, three = (store.page(path) for path in ("/1", "/2", "/3"))
    store.link(one, two, 0.0, gone_at=DAY_S)
    store.link(one, three, 0.0)
    store.link(one, "http://a.example/", 0.0, gone_at=DAY_S)
    store.link(one, "http://b.example/", 0.0, gone_at=NOW - DAY_S)
    assert await pruned(store, kept_for(link_age_s=2 * DAY_S)) == {
        "removed links": 1,
        "removed links, off site": 1,
    }
    assert rows(store.path, "SELECT dst_id FROM link") == [(three,)]
    assert rows(store.path, "SELECT url FROM offsite_link") == [("http://b.example/",)]


async def test_the_newest_body_goes_only_of_a_page_that_is_gone_for_long(store: SmallStore) -> None:
    states = [
        ("/long-gone", "gone", DAY_S),
        ("/just-gone", "gone", NOW - DAY_S),
        ("/there", "unchanged", DAY_S),
    ]
    for path, kind, at in states:
        version(store, store.page(path, last_kind=kind, checked_at=at), 0.0, path.encode())
    version(store, store.page("/same", last_kind="unchanged", checked_at=0.0), 0.0, b"shared")
    version(store, store.page("/gone-too", last_kind="gone", checked_at=0.0), 0.0, b"shared")
    assert await pruned(store, kept_for(gone_body_age_s=30 * DAY_S)) == {"bodies": 1}
    assert len(rows(store.path, "SELECT 1 FROM version")) == 5


def message(store: SmallStore, name: str, state: str, settled_at: float | None) -> None:
    """A message with two alerts."""
    number = store.insert(
        "alert_message", key=f"m-{name}", rule="r", made_at=0.0, state=state, since=0.0,
        next_at=0.0, settled_at=settled_at,
    )  # fmt: skip
    for n in range(2):
        seen = store.observe(store.page(f"/{name}/{n}"), 0.0, "changed")
        store.insert(
            "alert", key=f"{name}-{n}", rule="r", observation_id=seen, kind="changed", at=0.0,
            message_id=number,
        )  # fmt: skip


async def test_alerts_go_that_were_sent_long_ago_and_no_others(store: SmallStore) -> None:
    message(store, "old", "sent", NOW - 40 * DAY_S)
    message(store, "young", "sent", NOW - 39 * DAY_S)
    message(store, "given-up", "failed", 0.0)
    message(store, "pending", "pending", None)
    waits = store.observe(store.page("/waits"), 0.0, "changed")
    store.insert("alert", key="waits", rule="r", observation_id=waits, kind="changed", at=0.0)
    assert await pruned(store, kept_for(alert_age_s=39.5 * DAY_S)) == {
        "alerts sent": 2,
        "messages sent": 1,
    }
    assert rows(store.path, "SELECT key FROM alert_message ORDER BY id") == [
        ("m-young",), ("m-given-up",), ("m-pending",)
    ]  # fmt: skip
    assert len(rows(store.path, "SELECT 1 FROM alert")) == 7
    assert rows(store.path, "PRAGMA foreign_key_check") == []


async def test_it_throws_away_beside_transactions_of_others(store: SmallStore) -> None:
    """What it notes for itself goes with no transaction that is rolled back."""
    page = store.page()
    store.observe(page, 0.0, "failed")
    store.observe(page, 1.0, "new")
    store.run(NOW)
    database = await open_store(store.path)

    async def fails() -> None:
        with writing(database) as connection:
            for _ in range(50):
                connection.execute("SELECT 1")
            raise LookupError

    keep = kept_for(failure_age_s=DAY_S)
    results = await asyncio.gather(
        fails(), maintenance.prune(database, keep, NOW), fails(), return_exceptions=True
    )
    await database.close()
    assert [type(result) for result in results] == [LookupError, list, LookupError]
    assert rows(store.path, "SELECT kind FROM observation") == [("new",)]


async def test_nothing_is_left_of_the_work(store: SmallStore) -> None:
    assert await maintenance.doomed(store.path, Retention(10, inf), NOW) == [
        DeletedRows(what, table, 0, 0)
        for what, table in [
            ("bodies", "body"), ("sketches", "version"), ("failures", "observation"),
            ("removed links", "link"), ("removed links, off site", "offsite_link"),
            ("alerts sent", "alert"), ("messages sent", "alert_message"),
            ("reported deletions", "change"),
        ]
    ]  # fmt: skip
    assert rows(store.path, "SELECT name FROM sqlite_temp_master") == []
