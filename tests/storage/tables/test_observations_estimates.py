"""Estimates are stored, replaced and read as they were."""

from dataclasses import replace
from functools import partial

import pytest

from freshet.storage.database import open_store
from freshet.storage.records import Estimate, StoreUpdate
from freshet.storage.tables import observations
from freshet.storage.writer import VisitTables
from tests.storage.small_store import SmallStore

FIRST = Estimate(
    page_id=1, at=200.0, visited_at=100.0, rate=0.5, low=0.25, high=1.0, hazard=0.125,
    importance=2.0, clocked=1.0, claimed=False, worth=0.75, urgent=True, reveals=1.5,
    arrival_rate=3.0, half_life_hours=6.0, planned=0.0, not_before=250.0, due_at=300.0,
    paid=0.0625,
)  # fmt: skip
PLAIN = Estimate(2, 200.0, 100.0, 0.5, 0.25, 1.0, 0.125, 1.0)


@pytest.fixture
def store(small: SmallStore) -> SmallStore:
    small.run(0.0)
    small.host(queue="one")
    small.host("http://two.example", queue="two")
    for path, host in (("/a", 1), ("/b", 1), ("http://two.example/", 2)):
        small.page(path, host=host)
    return small


async def test_the_writer_stores_a_batch_and_replaces_what_was_there(store: SmallStore) -> None:
    database = await open_store(store.path)
    for batch in ((FIRST, PLAIN), (replace(FIRST, rate=0.7, claimed=None),)):
        apply = partial(VisitTables(1).apply, entries=[StoreUpdate(200.0, estimates=batch)])
        await database.write(apply)
    assert await observations.of_page(database.reader, 1) == replace(FIRST, rate=0.7, claimed=None)
    assert await observations.of_page(database.reader, 2) == PLAIN
    assert await observations.of_page(database.reader, 3) is None
    await database.close()


async def test_a_price_that_is_not_known_any_more_stays(store: SmallStore) -> None:
    database = await open_store(store.path)
    for estimate in (FIRST, replace(FIRST, at=300.0, paid=None)):
        await database.write(partial(observations.write, estimates=[estimate]))
    assert await observations.of_page(database.reader, 1) == replace(FIRST, at=300.0)
    await database.close()
