"""The LSH index in the store: who waits, who leads, who leaves."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from freshet.storage.tables import near_duplicates
from freshet.storage.tables.near_duplicates import LeaderChoice, Parameters
from tests.storage.crawl_store import writing
from tests.storage.sketched_store import SketchedStore, sketched_store
from tests.storage.small_store import HOST

PARAMETERS = Parameters(0.9, 9, 14)
AT = 1_000.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SketchedStore]:
    async with sketched_store(tmp_path / "crawl.db") as store:
        with writing(store.database) as connection:
            near_duplicates.begin(connection, PARAMETERS)
        yield store


async def survey(store: SketchedStore, limit: int = 100) -> int:
    with writing(store.database) as connection:
        return near_duplicates.survey(connection, limit)


async def waiting(store: SketchedStore) -> dict[int, bytes]:
    with writing(store.database) as connection:
        return near_duplicates.waiting(connection, 0, 100)


async def place(store: SketchedStore, *placements: LeaderChoice) -> None:
    with writing(store.database) as connection:
        near_duplicates.place(connection, placements, AT)


async def buckets(store: SketchedStore, keys: Iterable[int]) -> dict[int, list[int]]:
    with writing(store.database) as connection:
        return dict(near_duplicates.buckets(connection, list(keys), 3))


async def group(store: SketchedStore, paths: Iterable[str], **columns: object) -> list[int]:
    """Pages of which the first leads and the others are its copies."""
    ids = [store.page(path, b"sketch", **columns) for path in paths]
    await survey(store)
    copies = [LeaderChoice(i, ids[0], 0.95, 0.02) for i in ids[1:]]
    await place(store, LeaderChoice(ids[0], ids[0], keys=(1, -2, 1 << 62)), *copies)
    return ids


async def representative(store: SketchedStore) -> list[str]:
    rows = await store.rows(
        "SELECT url FROM lsh_group JOIN page ON page.id = representative_id ORDER BY url"
    )
    return [url.removeprefix(HOST) for (url,) in rows]


async def test_a_new_index_has_its_parameters_and_nothing_else(store: SketchedStore) -> None:
    await group(store, ["/a", "/b"])
    other = Parameters(0.8, 16, 8)
    with writing(store.database) as connection:
        near_duplicates.begin(connection, other)
    assert await near_duplicates.parameters(store.database.reader) == other
    for table in ("lsh_bucket", "lsh_group", "lsh_page"):
        assert await store.rows(f"SELECT * FROM {table}") == []
    assert await survey(store) == 2


async def test_new_pages_wait_with_their_newest_sketch(store: SketchedStore) -> None:
    page = store.page("/", b"one")
    store.version(page, b"two")
    store.version(page, None, kind="unchanged")
    assert await survey(store) == 3
    assert await waiting(store) == {page: b"two"}
    assert await survey(store) == 0


async def test_observations_are_looked_at_once_and_in_order(store: SketchedStore) -> None:
    pages = [store.page(f"/{n}", b"") for n in range(5)]
    seen = []
    for _ in range(4):
        await survey(store, 2)
        seen.append(sorted(await waiting(store)))
    assert seen == [pages[:2], pages[:4], pages, pages]


@pytest.mark.parametrize(
    "columns",
    [{"role": "sitemap"}, {"text_digest": None}, {"alias_of": 1}, {"last_kind": "gone"},
     {"last_kind": "redirected"}, {"last_kind": "skipped"}],
    ids=str,
)  # fmt: skip
async def test_what_is_no_page_with_a_text_does_not_wait_and_leaves(
    store: SketchedStore, columns: dict[str, object]
) -> None:
    await group(store, ["/first"])
    page = store.page("/", b"")
    store.set(page, **columns)
    await survey(store)
    assert await waiting(store) == {}
    store.set(page, role="page", text_digest=b"t", alias_of=None)
    store.observe(page, "unchanged")
    await survey(store)
    assert await waiting(store) == {page: b""}
    store.observe(page, "unchanged")
    store.set(page, **columns)
    await survey(store)
    assert await waiting(store) == {}
    assert await store.rows("SELECT 1 FROM lsh_page WHERE page_id = ?", page) == []


@pytest.mark.parametrize("kind", ["failed", "refused", "unchanged"])
async def test_a_page_whose_text_stands_keeps_its_place(store: SketchedStore, kind: str) -> None:
    leader, copy = await group(store, ["/a", "/b"])
    store.observe(leader, kind)
    store.observe(copy, kind)
    await survey(store)
    assert await waiting(store) == {}
    assert len(await store.rows("SELECT * FROM duplicate")) == 1


async def test_only_leaders_stand_in_the_buckets(store: SketchedStore) -> None:
    leader, _ = await group(store, ["/a", "/b"])
    assert await buckets(store, [1, -2, 1 << 62, 5]) == {
        1: [leader], -2: [leader], 1 << 62: [leader]
    }  # fmt: skip


async def test_of_a_full_bucket_the_oldest_leaders_are_read(store: SketchedStore) -> None:
    ids = [store.page(f"/{n}", b"") for n in range(5)]
    await survey(store)
    await place(store, *[LeaderChoice(i, i, keys=(3,)) for i in ids])
    assert await buckets(store, [3]) == {3: ids[:3]}


async def test_a_copy_that_changes_leaves_its_group_alone(store: SketchedStore) -> None:
    leader, copy, third = await group(store, ["/a", "/b", "/c"])
    store.version(copy, b"new")
    await survey(store)
    assert await waiting(store) == {copy: b"new"}
    assert await store.rows("SELECT page_id FROM duplicate") == [(third,)]
    assert await buckets(store, [1]) == {1: [leader]}


@pytest.mark.parametrize("kind", ["changed", "gone"])
async def test_a_leader_that_leaves_takes_its_buckets_along_and_its_group_waits(
    store: SketchedStore, kind: str
) -> None:
    leader, *others = await group(store, ["/a", "/b", "/c"])
    if kind == "gone":
        store.observe(leader, "gone")
    else:
        store.version(leader, b"new")
    await survey(store)
    expected = dict.fromkeys(others, b"sketch")
    assert await waiting(store) == ({leader: b"new"} | expected if kind == "changed" else expected)
    assert await store.rows("SELECT * FROM lsh_bucket") == []
    assert await store.rows("SELECT * FROM lsh_group") == []
    assert await store.rows("SELECT * FROM duplicate") == []


async def test_the_sketches_are_those_that_the_pages_were_placed_by(store: SketchedStore) -> None:
    leader, _ = await group(store, ["/a", "/b"])
    store.version(leader, b"not visited")
    with writing(store.database) as connection:
        assert near_duplicates.sketches(connection, [leader]) == {leader: b"sketch"}


@pytest.mark.parametrize(
    ("paths", "best"),
    [(["/long", "/s", "/longer"], "/s"), (["/x", "/y"], "/x"), (["/y?a=1", "/y"], "/y"),
     (["/page", "https://one.example/page"], "https://one.example/page"),
     (["https://one.example/pages", "/page"], "/page")],
)  # fmt: skip
async def test_the_shortest_url_stands_for_a_group_then_https_then_the_oldest(
    store: SketchedStore, paths: list[str], best: str
) -> None:
    await group(store, paths)
    assert await representative(store) == [best]


async def test_the_page_that_others_name_as_canonical_stands_for_them(store: SketchedStore) -> None:
    await group(store, ["/s", "/long", "/longer"], canonical_url=f"{HOST}/longer")
    assert await representative(store) == ["/longer"]


async def test_a_canonical_url_outside_of_the_group_names_nobody(store: SketchedStore) -> None:
    store.page("/", b"")
    await group(store, ["/long", "/s"], canonical_url=f"{HOST}/")
    assert await representative(store) == ["/s"]


async def test_a_canonical_url_that_changes_alone_is_noticed(store: SketchedStore) -> None:
    _, longer = await group(store, ["/s", "/longer"])
    store.set(longer, canonical_url=f"{HOST}/longer")
    store.version(longer, None, kind="unchanged")
    await survey(store)
    assert await representative(store) == ["/longer"]


async def test_a_representative_that_leaves_is_followed_by_the_next(store: SketchedStore) -> None:
    _, short, _ = await group(store, ["/longest", "/s", "/long"])
    store.observe(short, "gone")
    await survey(store)
    assert await representative(store) == ["/long"]
