"""Tables version and body: what pages contained, and how long bodies are kept."""

from dataclasses import replace

from freshet.storage import maintenance
from freshet.storage.maintenance import Retention
from tests.storage.crawl_store import DAY_S, START, CrawlStore, capture, captured, digest


async def write(store: CrawlStore, path: str, *texts: str, at: float = START) -> None:
    """Captures of a page, a day apart."""
    await store.admit(path)
    due = await store.taken(path)
    for i, text in enumerate(texts):
        await store.apply(captured(due, text, at=at + i * DAY_S))


async def prune(store: CrawlStore, *, per_page: int = 99, older_than: float = 0.0) -> int:
    keep = Retention(per_page, START - older_than)
    thrown_away = await maintenance.prune(store.database, keep, START)
    assert [each.what for each in thrown_away if each.rows] in ([], ["bodies"])
    return thrown_away[0].rows


async def kept(store: CrawlStore) -> set[str]:
    rows = await store.rows("SELECT digest FROM body")
    return {row[0].rstrip(b"\0").decode() for row in rows}


async def test_each_capture_is_a_version_and_equal_bodies_are_stored_once(
    store: CrawlStore,
) -> None:
    await write(store, "/a", "one", "two", "one")
    await write(store, "/b", "one")
    assert await store.rows("SELECT page_id, body_digest FROM version") == [
        (1, digest("one")), (1, digest("two")), (1, digest("one")), (2, digest("one")),
    ]  # fmt: skip
    assert await store.rows("SELECT digest, stored_at, size_bytes, zstd FROM body") == [
        (digest("one"), START, 3, b"packed"),
        (digest("two"), START + DAY_S, 3, b"packed"),
    ]


async def test_a_version_without_a_body_is_a_version(store: CrawlStore) -> None:
    await store.admit("/a")
    seen = captured(await store.taken("/a"))
    await store.apply(replace(seen, capture=capture("text", body=None)))
    assert await store.value("SELECT count(*) FROM version") == 1
    assert await kept(store) == set()


async def test_bodies_beyond_the_count_are_pruned_and_their_versions_kept(
    store: CrawlStore,
) -> None:
    await write(store, "/a", "one", "two", "three", "four")
    assert await prune(store, per_page=2) == 2
    assert await kept(store) == {"three", "four"}
    assert await store.value("SELECT count(*) FROM version") == 4


async def test_bodies_beyond_the_age_are_pruned_but_the_newest_is_kept(store: CrawlStore) -> None:
    await write(store, "/a", "one", "two", "three")
    await write(store, "/old", "ancient", at=START - 999 * DAY_S)
    await prune(store, older_than=START + DAY_S)
    assert await kept(store) == {"two", "three", "ancient"}


async def test_a_body_that_another_page_needs_survives(store: CrawlStore) -> None:
    await write(store, "/a", "shared", "newer", "newest")
    await write(store, "/b", "shared")
    await prune(store, per_page=1)
    assert await kept(store) == {"shared", "newest"}


async def test_the_newest_body_is_kept_whatever_the_settings(store: CrawlStore) -> None:
    await write(store, "/a", "one", "two")
    await prune(store, per_page=0, older_than=START + 999 * DAY_S)
    assert await kept(store) == {"two"}


async def test_a_content_that_comes_back_after_it_was_pruned_is_stored_again(
    store: CrawlStore,
) -> None:
    await write(store, "/a", "one", "two")
    await prune(store, per_page=1)
    page_a = replace((await store.admit("/b"), await store.taken("/b"))[1], page_id=1)
    await store.apply(captured(page_a, "one", at=START + 9 * DAY_S))
    assert await kept(store) == {"one", "two"}
