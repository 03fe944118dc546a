"""What is kept to compare a page's next text with."""

from dataclasses import replace

from freshet.storage.records import PageHistory
from freshet.storage.tables import observations
from tests.storage.crawl_store import START, CrawlStore, capture, captured, redirected, visit


async def history(store: CrawlStore, path: str) -> PageHistory | None:
    return await observations.load(store.database.reader, await store.page_id(path))


async def test_the_history_of_a_page_has_the_sketch_of_its_last_text(store: CrawlStore) -> None:
    await store.admit("/a")
    due = await store.taken("/a")
    assert await history(store, "/a") is None
    for i, sketch in enumerate((b"first", b"second", None)):
        seen = replace(captured(due, at=START + i), capture=capture(str(i), sketch=sketch))
        await store.apply(seen)
    assert await history(store, "/a") == PageHistory(b"second", None, 0)


async def test_visits_that_found_nothing_different_are_counted_since_the_memory(
    store: CrawlStore,
) -> None:
    await store.admit("/a")
    due = await store.taken("/a")
    await store.apply(replace(captured(due), capture=capture("one", sketch=b"sketch")))
    for hours in range(3):
        await store.apply(visit(due, "unchanged", START + hours))
    await store.apply(visit(due, "failed", START + 4))
    assert await history(store, "/a") == PageHistory(b"sketch", None, 3)
    await store.apply(replace(visit(due, "unchanged", START + 5), memory=b"memory"))
    assert await history(store, "/a") == PageHistory(b"sketch", b"memory", 0)


async def test_a_page_that_moved_is_compared_with_what_it_was(store: CrawlStore) -> None:
    await store.admit("/old", "/new")
    due = await store.taken("/old")
    await store.apply(replace(captured(due), capture=capture("one", sketch=b"sketch")))
    new = await store.page_id("/new")
    assert await observations.predecessor(store.database.reader, new) is None
    await store.apply(redirected(due, "/new", "temporary", START + 1))
    assert await observations.predecessor(store.database.reader, new) is None
    await store.apply(redirected(due, "/new", "permanent", START + 2))
    found = await observations.predecessor(store.database.reader, new)
    assert found is not None
    assert found.sketch == b"sketch"


async def test_a_sample_of_a_host_is_spread_over_its_pages(store: CrawlStore) -> None:
    paths = [f"/{n}" for n in range(10)]
    await store.admit(*paths)
    for path in paths:
        due = await store.taken(path)
        sketch = capture(path, sketch=path.encode())
        await store.apply(replace(captured(due), capture=sketch))
    host_id = await store.value("SELECT id FROM host")
    found = await observations.sample(store.database.reader, host_id, 4)
    assert [history.sketch for history in found] == [b"/2", b"/4", b"/7", b"/9"]
    assert len(await observations.sample(store.database.reader, host_id, 99)) == 10
