"""Table seed: the site list, and where each seed's scope stands."""

from dataclasses import replace

from freshet.storage.records import StoredSeed, StoreUpdate
from freshet.storage.tables import runs
from tests.storage.crawl_store import START, CrawlStore, redirected, targets, url_of, writing

LINES = [
    StoredSeed("a.example", "https://a.example", "http://a.example", 1.0),
    StoredSeed("https://a.example/", "https://a.example/", None, 2.0),
    StoredSeed("https://b.example/x", "https://b.example/x", None, 0.5),
]


async def add(store: CrawlStore, lines: list[StoredSeed]) -> None:
    with writing(store.database) as connection:
        runs.add(connection, lines, START)


async def test_seeds_come_back_in_the_order_of_the_list(store: CrawlStore) -> None:
    await add(store, LINES)
    assert await runs.load(store.database.reader) == [
        replace(each, seed_id=i) for i, each in enumerate(LINES, start=1)
    ]


async def test_a_line_that_is_given_again_takes_its_new_importance(store: CrawlStore) -> None:
    await add(store, LINES)
    await add(store, [replace(LINES[2], importance=7.0, half_life_hours=2.5)])
    found = await runs.load(store.database.reader)
    assert [s.importance for s in found] == [1.0, 2.0, 7.0]
    assert [s.half_life_hours for s in found] == [None, None, 2.5]


async def test_a_settled_seed_stands_at_its_page(store: CrawlStore) -> None:
    await add(store, LINES)
    await store.apply(StoreUpdate(START, targets=targets("/"), seeds=((1, url_of("/")),)))
    first, second, _ = await runs.load(store.database.reader)
    assert (first.root_url, first.page_id) == (url_of("/"), 1)
    assert second.root_url is None
    assert (await store.taken("/")).seed_id == 1


async def test_all_seeds_of_a_page_move_with_its_redirect(store: CrawlStore) -> None:
    await add(store, LINES)
    settled = ((1, url_of("/")), (2, url_of("/")), (3, "https://b.example/x"))
    await store.apply(
        StoreUpdate(START, targets=targets("/", "https://b.example/x"), seeds=settled)
    )
    moved = redirected(await store.taken("/"), "https://new.example/")
    await store.apply(replace(moved, new_root="https://new.example/"))
    assert [(s.root_url, s.page_id) for s in await runs.load(store.database.reader)] == [
        ("https://new.example/", 3), ("https://new.example/", 3), ("https://b.example/x", 2),
    ]  # fmt: skip
