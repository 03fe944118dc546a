"""Lists that were shown become sums, which hold what the rows held."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from freshet.crawler.extensions.readers import tables as openings
from freshet.crawler.extensions.readers.tables import ListCounts, Openings, PromotedPlaces
from freshet.crawler.read.lists import Impression, MadeFor
from freshet.storage.database import reading, write_beside
from freshet.storage.queries import page as page_queries
from tests.storage.small_store import SmallStore, rows, small_store


def views_at(place: int) -> float:
    return 1 / place


def shown(store: SmallStore, *pages: int, made_for: MadeFor = "http", at: float = 5.0) -> list[int]:
    """Show these pages in a list, every third one promoted; return the ids of the rows."""
    listed = [
        Impression.of(page, place, promoted=place % 3 == 0) for place, page in enumerate(pages, 1)
    ]
    write_beside(store.path, lambda db: openings.record(db, made_for, at, listed, views_at))
    return [each.showing_id for each in listed]


def opened(store: SmallStore, showing_id: int, at: float = 6.0) -> tuple[str, bool] | None:
    write_beside(store.path, lambda db: openings.note_opening(db, showing_id, at))

    async def found() -> tuple[str, bool] | None:
        async with reading(store.path) as db:
            return await openings.found(db, showing_id)

    return asyncio.run(found())


async def _read(path: Path) -> tuple[Openings, PromotedPlaces, ListCounts | None]:
    async with reading(path) as db:
        return (
            await openings.openings(db, views_at),
            await openings.promoted_places(db),
            await openings.counts(db),
        )


def read(store: SmallStore) -> tuple[Openings, PromotedPlaces, ListCounts | None]:
    return asyncio.run(_read(store.path))


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    made = asyncio.run(small_store(tmp_path / "s.db"))
    made.host()
    made.run(0.0)
    for i in range(9):
        made.page(f"/{i}")
    return made


def test_a_store_in_which_nothing_was_shown_has_no_openings(store: SmallStore) -> None:
    found, promoted, lists = read(store)
    assert (len(found), len(promoted), lists) == (0, 0, None)


def test_looks_are_those_expected_at_the_places(store: SmallStore) -> None:
    first = shown(store, 3, 1, 2)
    shown(store, 1, 3)
    assert opened(store, first[2]) == ("http://one.example/1", True)
    found, promoted, lists = read(store)
    assert found.page_id.tolist() == [1, 2, 3]
    assert found.url[0] == "http://one.example/0"
    assert found.views == pytest.approx([0.5 + 1, 1 / 3, 1 + 0.5])
    assert found.opens.tolist() == [0, 1, 0]
    assert (promoted.place.tolist(), promoted.opened.tolist()) == ([3], [1])
    assert lists == ListCounts(2, 5, 1, 1)


def test_a_row_is_opened_once_and_an_unknown_one_is_none(store: SmallStore) -> None:
    (showing_id,) = shown(store, 4)
    assert opened(store, showing_id, 7.0) == opened(store, showing_id, 8.0) is not None
    assert rows(store.path, "SELECT opened_at FROM showing") == [(7.0,)]
    assert opened(store, 12) is None


def test_a_list_that_is_there_is_not_noted_again(store: SmallStore) -> None:
    listed = [Impression(77, 1, 1, promoted=False)]
    for expected in (True, False):
        new = write_beside(
            store.path, lambda db: openings.record(db, "file", 1.0, listed, views_at)
        )
        assert new == expected
    assert read(store)[2] == ListCounts(1, 1, 0, 0)


def test_old_lists_become_sums_of_the_same_content(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    ids = [i for _ in range(40) for i in shown(store, *(rng.permutation(9) + 1).tolist())]
    for showing_id in rng.permutation(ids)[:120].tolist():
        opened(store, showing_id)
    before = read(store)
    monkeypatch.setattr(openings, "_MOST", 100)
    monkeypatch.setattr(openings, "_LEFT", 50)
    shown(store, 1)
    after = read(store)
    left = rows(store.path, "SELECT count(*), count(DISTINCT list_id) FROM showing")[0]
    assert left == (5 * 9 + 1 + 9, 7)
    before[0].views[0] += 1
    assert after[0].views == pytest.approx(before[0].views)
    assert after[0].opens.tolist() == before[0].opens.tolist()
    assert after[1].shown.tolist() == before[1].shown.tolist()
    assert after[1].opened.tolist() == before[1].opened.tolist()
    assert after[2] is not None
    assert before[2] is not None
    assert (after[2].lists, after[2].promoted) == (41, before[2].promoted)


def test_the_last_list_is_that_of_its_kind(store: SmallStore) -> None:
    (mine,) = shown(store, 1, made_for="terminal")
    shown(store, 2, made_for="http")

    async def last() -> dict[int, int]:
        async with page_queries.snapshot(store.path) as db:
            return (await openings.last_list(db, "terminal"))[1]

    assert asyncio.run(last()) == {1: mine}
