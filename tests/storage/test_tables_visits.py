"""One transaction holds observation, frontier, links and seen-set, or nothing of them."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from freshet.storage import writer
from freshet.storage.entries import HostState, Kind, RobotsRecord
from freshet.storage.errors import StoreError
from freshet.storage.records import StoreUpdate
from freshet.storage.tables import frontier, hosts, observations
from tests.storage.crawl_store import (
    START,
    CrawlStore,
    captured,
    crawl_store,
    links,
    targets,
    url_of,
    visit,
)

TABLES = (
    "host", "robots", "page", "frontier", "observation", "version", "body", "link",
    "offsite_link", "trap", "crawl_run",
)  # fmt: skip
ROBOTS = RobotsRecord("allow_all", START)


async def everything(store: CrawlStore) -> dict[str, list[tuple[object, ...]]]:
    return {table: await store.rows(f"SELECT * FROM {table}") for table in TABLES}


async def counts(store: CrawlStore) -> dict[str, int]:
    return {table: len(rows) for table, rows in (await everything(store)).items()}


async def test_a_visit_changes_all_its_tables_at_once(store: CrawlStore) -> None:
    await store.admit("/")
    seen = captured(await store.taken("/"), to=["/a", "/b"], offsite=["https://b.example/"])
    (acknowledged,) = await store.apply(replace(seen, host=HostState(1, "a.example", START, 1.0)))
    assert acknowledged.entry.fetches == 1
    assert (acknowledged.admitted, acknowledged.supplied) == (2, frozenset({1}))
    assert await counts(store) == {
        "host": 1, "robots": 0, "page": 3, "frontier": 2, "observation": 1, "version": 1,
        "body": 1, "link": 2, "offsite_link": 1, "trap": 0, "crawl_run": 1,
    }  # fmt: skip
    assert await store.value("SELECT fetches FROM crawl_run") == 1
    assert await store.due_paths() == ["/a", "/b"]


async def test_an_observation_keeps_all_that_was_seen(store: CrawlStore) -> None:
    await store.admit("/")
    seen = captured(await store.taken("/"))
    observation = replace(
        seen.observation, kind="changed", rung="blocks", reason="r", detail="d",
        resemblance=0.5, resemblance_se=0.04, blocks_added=1, blocks_removed=2,
        duration_s=0.3, size_bytes=4,
    )  # fmt: skip
    await store.apply(replace(seen, observation=observation))
    assert await store.rows(
        "SELECT page_id, run_id, at, kind, rung, status, reason, detail, resemblance, "
        "resemblance_se, blocks_added, blocks_removed, duration_s, size_bytes, version_id "
        "FROM observation"
    ) == [(1, 1, START, "changed", "blocks", 200, "r", "d", 0.5, 0.04, 1, 2, 0.3, 4, 1)]


@pytest.mark.parametrize("kind", ["failed", "gone", "refused", "redirected"])
async def test_only_what_saw_content_refers_to_a_version(store: CrawlStore, kind: Kind) -> None:
    await store.admit("/")
    due = await store.taken("/")
    await store.apply(captured(due))
    await store.apply(visit(due, kind), visit(due, "unchanged"))
    assert await store.rows("SELECT version_id FROM observation") == [(1,), (None,), (1,)]


async def test_a_failure_in_the_middle_leaves_nothing_behind_and_nothing_remembered(
    store: CrawlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.admit("/")
    before = await everything(store)
    seen = captured(await store.taken("/"), to=["/a", "https://new.example/"])

    def disk_full(*_: object) -> None:
        raise sqlite3.OperationalError("disk full")

    for module, step in ((observations, "append"), (frontier, "settle"), (hosts, "save_states")):
        with monkeypatch.context() as patched:
            patched.setattr(module, step, disk_full)
            with pytest.raises(StoreError):
                await store.apply(seen)
        assert await everything(store) == before
    (acknowledged,) = await store.apply(seen)
    assert acknowledged.admitted == 2
    assert acknowledged.supplied == {1, 2}


async def test_a_robots_txt_admits_its_sitemaps(store: CrawlStore) -> None:
    await store.admit("/")
    named = targets("https://cdn.example/map.xml", role="sitemap")
    (acknowledged,) = await store.apply(
        StoreUpdate(START, robots=(1, ROBOTS), fetches=3, targets=named)
    )
    assert (acknowledged.admitted, acknowledged.supplied) == (1, frozenset({2}))
    assert await store.rows("SELECT host_id, standing FROM robots") == [(1, "allow_all")]
    assert await store.value("SELECT fetches FROM crawl_run") == 3
    assert (await store.taken("https://cdn.example/map.xml")).role == "sitemap"


async def test_two_pages_of_a_batch_that_find_one_url_admit_it_once(store: CrawlStore) -> None:
    await store.admit("/a", "/b")
    first, second = await store.taken("/a"), await store.taken("/b")
    acknowledged = await store.apply(captured(first, to=["/new"]), captured(second, to=["/new"]))
    assert [a.admitted for a in acknowledged] == [1, 0]
    assert await store.value("SELECT count(*) FROM link") == 2


async def test_a_url_held_back_stays_open_to_a_better_link(store: CrawlStore) -> None:
    for held_back, admitted in (("nofollow", 0), ("nofollow", 0), (None, 1), (None, 0)):
        found = StoreUpdate(START, targets=targets("/a", "/b", held_back=held_back))
        (acknowledged,) = await store.apply(found)
        assert acknowledged.admitted == 2 * admitted
    assert await store.due_paths() == ["/a", "/b"]


async def test_of_known_and_new_urls_the_new_ones_are_admitted(store: CrawlStore) -> None:
    await store.admit("/a", "/b")
    (acknowledged,) = await store.admit("/b", "/c", "/a")
    assert acknowledged.admitted == 1
    assert sorted(await store.due_paths()) == ["/a", "/b", "/c"]


async def test_what_is_remembered_is_bounded_and_nothing_is_admitted_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_REMEMBERED", 2)
    async with crawl_store(tmp_path / "db") as store:
        paths = [f"/{n}" for n in range(9)]
        for path in paths + paths:
            await store.admit(path)
            assert len(store.tables.settled) <= 3
        assert sorted(await store.due_paths()) == paths


async def test_long_urls_are_not_remembered_and_not_admitted_twice(tmp_path: Path) -> None:
    async with crawl_store(tmp_path / "db") as store:
        long, short = "/" + "x" * 1_900, "/x"
        for _ in range(2):
            await store.admit(long, short)
        assert [url[-2:] for url in store.tables.settled] == [short]
        assert sorted(await store.due_paths()) == [short, long]


async def test_a_page_that_links_to_itself_is_not_due_again(store: CrawlStore) -> None:
    await store.admit("/")
    await store.apply(captured(await store.taken("/"), to=["/"]))
    assert await store.due() == []


async def test_an_entry_without_targets_supplies_nobody(store: CrawlStore) -> None:
    await store.admit("/")
    acknowledged = await store.apply(
        visit(await store.taken("/")),
        StoreUpdate(START, robots=(1, ROBOTS)),
        StoreUpdate(START, targets=targets()),
    )
    assert {(a.admitted, a.supplied) for a in acknowledged} == {(0, frozenset())}


async def test_due_times_are_those_of_the_visit_that_found_the_url(store: CrawlStore) -> None:
    await store.admit("/")
    await store.apply(captured(await store.taken("/"), at=START + 7, to=["/a"]))
    due = await store.taken("/a", START + 7)
    assert (due.due_at, due.url, due.depth) == (START + 7, url_of("/a"), 1)


async def test_links_end_that_the_next_parse_does_not_see_also_those_before_the_first_content(
    store: CrawlStore,
) -> None:
    await store.admit("/", "/a", "/b")
    due = await store.taken("/")
    # A redirect out of scope is a link, and no content.
    left = replace(visit(due, "redirected"), links=links("/away"), offsite=frozenset({0}))
    await store.apply(left)
    await store.apply(captured(due, at=START + 1, to=["/a", "/b"], offsite=["/out", "/off"]))
    await store.apply(captured(due, "more", at=START + 2, to=["/b"], offsite=["/off"]))
    await store.apply(captured(due, "all", at=START + 3, to=["/a"]))
    sql = "SELECT p.url, first_seen_at, l.last_seen_at, gone_at FROM link AS l "
    found = await store.rows(f"{sql} JOIN page AS p ON p.id = dst_id ORDER BY p.url")
    assert found == [
        (url_of("/a"), START + 1, START + 3, None),
        (url_of("/b"), START + 1, START + 2, START + 3),
    ]
    sql = "SELECT url, position, last_seen_at, gone_at FROM offsite_link ORDER BY url"
    assert await store.rows(sql) == [
        (url_of("/away"), 0, START, START + 1),
        (url_of("/off"), 1, START + 2, START + 3),
        (url_of("/out"), 2, START + 1, START + 2),
    ]
