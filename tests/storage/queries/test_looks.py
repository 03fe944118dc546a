"""Looks are read back as they were made, in the order of time, whatever the rows say."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from freshet.storage.database import reading
from freshet.storage.queries import replay
from freshet.storage.queries.replay import Extent, Look, LookRun
from freshet.storage.records import SeedLine, Validators
from tests.storage.small_store import SmallStore
from tests.storage.versioned_store import html, version, versioned_store

AT = 1_800_000_000.0


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    return versioned_store(tmp_path / "past.db", AT)


async def looks_of(store: SmallStore, run_id: int = 1, after: float = -inf) -> list[Look]:
    async with reading(store.path) as connection:
        return [look async for some in replay.looks(connection, run_id, after) for look in some]


async def extent_of(store: SmallStore) -> Extent:
    async with reading(store.path) as connection:
        return await replay.extent(connection)


async def test_looks_come_in_the_order_in_which_they_ended(store: SmallStore) -> None:
    store.run(AT + 100.0)
    page = store.page("/")
    for second in (3.0, 1.0, 2.0):
        store.observe(page, AT + second, "failed")
    store.observe(page, AT + 101.0, "failed", run_id=2)
    assert [look.at - AT for look in await looks_of(store)] == [1.0, 2.0, 3.0]
    assert [look.at - AT for look in await looks_of(store, after=AT + 2.0)] == [2.0, 3.0]
    assert [look.at - AT for look in await looks_of(store, 2)] == [101.0]


async def test_more_looks_than_are_read_at_once_lose_and_repeat_none(store: SmallStore) -> None:
    page = store.page("/")
    for number in range(1_203):
        store.observe(page, AT + number % 7, "failed", detail=str(number))
    found = await looks_of(store)
    assert sorted(int(look.detail or "") for look in found) == list(range(1_203))
    assert [look.at for look in found] == sorted(look.at for look in found)


async def test_what_was_seen_comes_with_what_is_known_of_it(store: SmallStore) -> None:
    page = store.page("/", etag='"2"', last_modified="then", nofollow=1)
    old = version(store, page, AT + 1.0, html("0"), keep=False)
    store.observe(page, AT + 1.0, "new", version_id=old, status=200)
    now = version(store, page, AT + 3.0, html("1"))
    store.observe(page, AT + 3.0, "changed", version_id=now, status=200)
    store.observe(page, AT + 4.0, "unchanged", rung="304", status=304, version_id=now)
    store.execute("UPDATE page SET version_id = ?", now)
    first, second, third = await looks_of(store)
    assert [look.version and look.version.is_kept for look in (first, second, third)] == [
        False, True, True
    ]  # fmt: skip
    assert first.version is not None
    assert second.version is not None
    assert (first.version.directives, second.version.directives) == ((), ("nofollow",))
    # The page's validators are those of its last answer that had a body.
    assert (first.validators, second.validators) == (Validators(), Validators('"2"', "then"))
    assert (first.page.origin, first.page.host_id) == ("http://one.example", 1)
    assert await extent_of(store) == Extent(3, 0, 1, 0)


async def test_a_capture_that_was_taken_back_is_not_what_has_its_row_by_now(
    store: SmallStore,
) -> None:
    page, other = store.page("/"), store.page("/other")
    back = store.observe(page, AT + 1.0, "new", version_id=1, status=200)
    store.insert(
        "amendment", observation_id=back, kind="failed", reason="soft_404", detail="why", at=AT
    )
    version_id = version(store, other, AT + 2.0, html("words"))
    assert version_id == 1
    store.observe(page, AT + 3.0, "new", version_id=version_id)
    first, second = await looks_of(store)
    assert (first.is_taken_back, first.version, first.reason, first.detail) == (
        True, None, "soft_404", "why"
    )  # fmt: skip
    assert (second.is_taken_back, second.version) == (False, None)
    assert await extent_of(store) == Extent(2, 0, 1, 1)


async def test_rows_that_no_crawl_writes_are_counted(store: SmallStore) -> None:
    page = store.page("/")
    store.observe(page, AT, "failed")
    for at in (inf, -1.0, 1e300):
        store.observe(page, at, "failed")
    store.observe(page, AT, "failed", duration_s=-1.0)
    store.observe(page, AT, "failed", duration_s=inf)
    store.observe(page, AT, "failed", run_id=99)
    store.observe(99, AT, "failed")
    store.observe(page, AT, "invented")
    assert await extent_of(store) == Extent(9, 8, 0, 0)
    # What has no kind is for whoever reads it; nothing else comes.
    assert [look.kind for look in await looks_of(store)] == ["failed", "invented"]


async def test_runs_are_those_that_have_a_time_and_daemons_are_known(store: SmallStore) -> None:
    store.run(AT + 10.0)
    store.run(AT - 10.0)
    store.run(inf)
    store.run(-5.0)
    store.insert(
        "outlook", at=AT + 20.0, run_id=2, began_at=AT, fetches=0, budget=1.0, policy="uniform",
        flowed=0.0, forgone=0.0, watched=0, captured=0, waiting=0, gone=0, daily=0, weekly=0,
        monthly=0, yearly=0, rarer=0, clocked=0.0, next_at=AT,
    )  # fmt: skip
    async with reading(store.path) as connection:
        found = await replay.runs(connection)
    assert found == [
        LookRun(3, AT - 10.0, is_lasting=False),
        LookRun(1, AT, is_lasting=False),
        LookRun(2, AT + 10.0, is_lasting=True),
    ]


async def test_seeds_are_those_that_were_added_by_then(store: SmallStore) -> None:
    for number in range(2):
        store.insert(
            "seed", text=f"{number}", url=f"http://{number}.test/", importance=2.0,
            added_at=AT + number,
        )  # fmt: skip
    async with reading(store.path) as connection:
        assert await replay.seeds(connection, AT + 1.0) == [
            SeedLine("0", "http://0.test/", None, 2.0)
        ]
        assert len(await replay.seeds(connection, inf)) == 2
