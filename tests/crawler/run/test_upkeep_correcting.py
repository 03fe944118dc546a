"""The last word on a run."""

from collections.abc import Sequence
from dataclasses import replace

from freshet.crawler.compare.history import PageMemory, PendingDifference, PlacedBlock
from freshet.crawler.reduce.sketch import sketch
from freshet.crawler.run.upkeep import correct
from tests.storage.crawl_store import START, CrawlStore, capture, captured


async def changed(store: CrawlStore, paths: Sequence[str], at: float = START + 10) -> None:
    """Pages that were new and then changed at one place, all in the same way."""
    delta = PendingDifference(
        at, "changed", (PlacedBlock(9, 0, -1, 1),), (PlacedBlock(9, 0, -1, 2),)
    )
    memory = PageMemory(1, deltas=(delta,)).to_bytes()
    await store.admit(*paths)
    for path in paths:
        due = await store.taken(path)
        kept = capture(path, sketch=sketch([path]).to_bytes())
        await store.apply(replace(captured(due), capture=kept))
        again = captured(due, path, at=at)
        seen = replace(again.observation, kind="changed", rung="blocks")
        kept = capture(path + "2", sketch=sketch([path + "2"]).to_bytes())
        await store.apply(replace(again, observation=seen, capture=kept, memory=memory))


async def kinds(store: CrawlStore) -> list[str]:
    rows = await store.rows("SELECT kind FROM finding WHERE at > ? ORDER BY id", START)
    return [row[0] for row in rows]


async def test_what_many_pages_have_in_common_is_amended_when_the_run_is_over(
    store: CrawlStore,
) -> None:
    await changed(store, ["/a", "/b", "/c"])
    found = await correct(store.database, store.run_id, START, START + 99)
    assert len(found) == 3
    assert await kinds(store) == ["unchanged"] * 3
    assert await store.rows("SELECT DISTINCT rung, at FROM amendment") == [("frame", START + 99)]


async def test_what_few_pages_have_in_common_stays_as_it_was(store: CrawlStore) -> None:
    await changed(store, ["/a", "/b"])
    assert await correct(store.database, store.run_id, START, START + 99) == []
    assert await kinds(store) == ["changed"] * 2


async def test_correcting_twice_is_correcting_once(store: CrawlStore) -> None:
    await changed(store, ["/a", "/b", "/c"])
    for _ in range(2):
        await correct(store.database, store.run_id, START, START + 99)
    assert await kinds(store) == ["unchanged"] * 3
    assert await store.value("SELECT count(*) FROM amendment") == 3


async def test_differences_of_an_earlier_run_are_left_alone(store: CrawlStore) -> None:
    await changed(store, ["/a", "/b", "/c"])
    assert await correct(store.database, store.run_id, START + 50, START + 99) == []
