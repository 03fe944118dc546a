"""Table trap: bounded URL patterns, counted per host and shape."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.storage.records import StoreUpdate
from tests.storage.crawl_store import START, CrawlStore, crawl_store, targets

CALENDAR = ("/calendar?month=#", "trap: calendar", 3)


async def find(
    store: CrawlStore, *paths: str, trap: tuple[str, str, int] = CALENDAR
) -> frozenset[int]:
    (acknowledged,) = await store.apply(StoreUpdate(START, targets=targets(*paths, trap=trap)))
    return acknowledged.supplied


async def test_urls_of_a_pattern_are_crawled_up_to_its_cap_in_the_order_of_the_page(
    store: CrawlStore,
) -> None:
    await find(store, "/c?month=1", "/c?month=2")
    await find(store, "/c?month=3", "/c?month=4", "/c?month=5")
    assert await store.due_paths() == ["/c?month=1", "/c?month=2", "/c?month=3"]
    assert await store.rows("SELECT host_id, shape, kind, admitted, refused FROM trap") == [
        (1, *CALENDAR[:2], 3, 2)
    ]
    assert await store.rows(
        "SELECT url FROM page WHERE held_back = 'trap: calendar' ORDER BY id"
    ) == [("https://a.example/c?month=4",), ("https://a.example/c?month=5",)]


async def test_a_url_counts_once_however_often_it_is_found(store: CrawlStore) -> None:
    for _ in range(5):
        await find(store, "/c?month=1", "/c?month=1")
    assert await store.rows("SELECT admitted, refused FROM trap") == [(1, 0)]


async def test_hosts_and_shapes_are_counted_apart(store: CrawlStore) -> None:
    await find(store, *(f"/c?month={i}" for i in range(4)))
    await find(store, *(f"https://b.example/c?month={i}" for i in range(4)))
    await find(store, *(f"/d?month={i}" for i in range(4)), trap=("/d", "trap: calendar", 3))
    assert await store.rows("SELECT admitted, refused FROM trap") == [(3, 1)] * 3


async def test_a_pattern_with_a_cap_of_0_is_refused_as_a_whole(store: CrawlStore) -> None:
    assert await find(store, "/a/a/a/a", trap=("/a/… (repeated)", "trap: path", 0)) == set()
    assert await store.due() == []
    assert await store.rows("SELECT admitted, refused FROM trap") == [(0, 1)]


async def test_counts_survive_a_restart(tmp_path: Path) -> None:
    async with crawl_store(tmp_path / "db") as store:
        await find(store, "/c?month=1", "/c?month=2")
    async with crawl_store(tmp_path / "db") as store:
        await find(store, "/c?month=3", "/c?month=4")
        assert await store.rows("SELECT admitted, refused FROM trap") == [(3, 1)]


async def test_a_nofollow_url_counts_when_a_better_link_lifts_it(store: CrawlStore) -> None:
    held = StoreUpdate(START, targets=targets("/c?month=1", held_back="nofollow"))
    await store.apply(held)
    assert await store.rows("SELECT * FROM trap") == []
    assert await find(store, "/c?month=1") == {1}
    assert await store.rows("SELECT admitted, refused FROM trap") == [(1, 0)]


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers(0, 12), max_size=6), max_size=8), st.integers(0, 5))
async def test_any_order_of_finds_crawls_the_first_distinct_urls_up_to_the_cap(
    tmp_path_factory: pytest.TempPathFactory, finds: list[list[int]], cap: int
) -> None:
    async with crawl_store(tmp_path_factory.mktemp("traps") / "db") as store:
        for months in finds:
            paths = [f"/c?month={month}" for month in months]
            await find(store, *paths, trap=("/c", "trap: calendar", cap))
        distinct = list(dict.fromkeys(month for months in finds for month in months))
        assert await store.due_paths() == [f"/c?month={month}" for month in distinct[:cap]]
        counts = await store.rows("SELECT admitted, refused FROM trap")
        assert counts == ([(len(distinct[:cap]), len(distinct[cap:]))] if distinct else [])
