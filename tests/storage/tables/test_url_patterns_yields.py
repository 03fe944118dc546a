"""What patterns of URLs yield, and who stands for those that yield nothing."""

from dataclasses import replace

import pytest

from freshet.storage.entries import CopyFinding, Kind
from freshet.storage.records import DueUrl, Observation, StoreUpdate
from freshet.storage.tables.url_patterns import (
    STRENGTH,
    CopyRule,
    PatternYield,
    representatives,
    yields,
)
from freshet.storage.writer import VisitTables
from tests.storage.crawl_store import START, CrawlStore, targets, visit

PATTERN = "/list?sort"


async def read(store: CrawlStore, path: str, original: str | None, kind: Kind = "new") -> None:
    page_id = await store.page_id(path)
    due = DueUrl(page_id, path, path, 1, START)
    original_id = await store.page_id(original) if original else None
    found = (CopyFinding(page_id, PATTERN, original_id),) if "?" in path else ()
    done = replace(visit(due), copies=found if kind == "new" else ())
    await store.apply(replace(done, observation=Observation(page_id, START, kind)))


async def shop(store: CrawlStore, least: int) -> None:
    store.tables = VisitTables(store.run_id, CopyRule(least, 0.7))
    await store.admit("/list", "/other", "/moved")
    paths = [f"/list?sort={n}" for n in range(6)]
    await store.apply(StoreUpdate(START, targets=targets(*paths, depth=1, pattern=PATTERN)))
    await read(store, "/list", None)
    await read(store, "/other", None, "failed")
    await read(store, "/moved", None, "redirected")
    for n in range(3):
        await read(store, f"/list?sort={n}", "/list")
    await read(store, "/list?sort=3", None)
    await read(store, "/list?sort=4", None, "gone")


async def test_copies_failures_and_what_is_gone_are_read_and_no_pages_of_their_own(
    store: CrawlStore,
) -> None:
    await shop(store, 30)
    found = await yields(store.database.reader, [1, 99])
    assert found == [PatternYield(1, None, 2, 1, 2 / 7), PatternYield(1, PATTERN, 5, 1, 2 / 7)]
    assert await yields(store.database.reader, []) == []


def test_a_yield_is_drawn_to_that_of_its_host_the_more_the_less_was_read() -> None:
    assert PatternYield(1, PATTERN, 0, 0, 0.9).shrunk == pytest.approx(0.9)
    few, many = (
        PatternYield(1, PATTERN, 3, 0, 0.9).shrunk,
        PatternYield(1, PATTERN, 300, 0, 0.9).shrunk,
    )
    assert 0.9 > few > 0.5
    assert 0.1 > many > 0
    assert PatternYield(1, PATTERN, int(STRENGTH), 0, 0.8).shrunk == pytest.approx(0.4)


async def test_for_the_copies_of_a_closed_pattern_the_first_one_stands(store: CrawlStore) -> None:
    await shop(store, 4)
    ids = [await store.page_id(f"/list?sort={n}") for n in range(3)]
    assert await representatives(store.database.reader) == dict.fromkeys(ids, ids[0])


async def test_in_an_open_pattern_every_page_stands_for_itself(store: CrawlStore) -> None:
    await shop(store, 30)
    assert await representatives(store.database.reader) == {}
