"""What a daemon expected, from time to time."""

from dataclasses import replace
from pathlib import Path

from freshet.storage.entries import CappedQueue, Outlook
from freshet.storage.records import StoreUpdate
from freshet.storage.tables import runs
from freshet.storage.tables.runs import RunProgress
from tests.storage.crawl_store import DAY_S, START, CrawlStore, crawl_store, targets

VISIT = Outlook(
    at=START, began_at=START - 60, budget=5_000.0, policy="greedy_index", flowed=3.5, forgone=0.5,
    watched=4, captured=2, waiting=1, gone=1, stale=0.25, harmonic=0.3, price=0.125,
    changing=(0, 1, 1, 0, 0), clocked=0.5, next_at=START + 17, next_page_id=None,
    capped=(CappedQueue("a.example", 100.0, 150.0, 7), CappedQueue("b.example", 10.0, 20.0, 3)),
)  # fmt: skip


def note(outlook: Outlook) -> StoreUpdate:
    return StoreUpdate(outlook.at, outlook=outlook)


async def test_an_outlook_is_read_as_it_was_noted(store: CrawlStore) -> None:
    await store.admit("/first")
    noted = replace(VISIT, next_page_id=await store.page_id("/first"))
    await store.apply(note(noted))
    assert await runs.latest_outlook(store.database.reader, store.run_id) == noted
    assert await runs.upcoming(store.database.reader, noted) == "https://a.example/first"
    assert await runs.upcoming(store.database.reader, VISIT) is None
    assert [queue.refused for queue in noted.capped] == [50.0, 10.0]


async def test_the_last_outlook_is_that_of_the_run(store: CrawlStore) -> None:
    await store.apply(note(VISIT), note(replace(VISIT, at=START + 60, price=None, capped=())))
    first = store.run_id
    await store.new_run(START + 100)
    assert await runs.latest_outlook(store.database.reader, store.run_id) is None
    found = await runs.latest_outlook(store.database.reader, first)
    assert found == replace(VISIT, at=START + 60, price=None, capped=())


async def test_an_outlook_counts_the_requests_of_its_batch(store: CrawlStore) -> None:
    await store.apply(StoreUpdate(START, targets=targets("/"), fetches=3), note(VISIT))
    await store.apply(StoreUpdate(START, targets=targets("/"), fetches=2))
    await store.apply(note(replace(VISIT, at=START + 5)))
    assert await runs.spendings(store.database.reader, START) == [
        RunProgress(START, store.run_id, START - 60, 3, 3.5),
        RunProgress(START + 5, store.run_id, START - 60, 5, 3.5),
    ]
    assert len(await runs.spendings(store.database.reader, START + 1)) == 1


async def test_of_days_long_past_the_last_outlook_is_kept(tmp_path: Path) -> None:
    midnight = START // DAY_S * DAY_S
    hours = [midnight + hour * 3_600.0 for hour in range(-30, 30)]
    async with crawl_store(tmp_path / "db") as store:
        await store.apply(*(note(replace(VISIT, at=at)) for at in hours))
        assert await store.value("SELECT count(*) FROM outlook") == 60
        await store.apply(note(replace(VISIT, at=midnight + 32 * DAY_S)))
        left = [row[0] for row in await store.rows("SELECT at FROM outlook ORDER BY at")]
        kept_days = [midnight - 25 * 3_600.0, midnight - 3_600.0, midnight + 23 * 3_600.0]
        assert left == [*kept_days, *hours[-6:], midnight + 32 * DAY_S]
        queues = await store.value("SELECT count(DISTINCT outlook_at) FROM capped_queue")
        assert queues == len(left)
