"""What the store says of pages that are the same."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from freshet.storage.tables import near_duplicates
from freshet.storage.tables.near_duplicates import Duplicate, LeaderChoice, Parameters
from tests.storage.crawl_store import writing
from tests.storage.sketched_store import SketchedStore, sketched_store
from tests.storage.small_store import HOST

AT = 1_000.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SketchedStore]:
    """Two groups, of three pages and of two, and a page by itself."""
    async with sketched_store(tmp_path / "crawl.db") as store:
        for path in ("/leader", "/a", "/copy", "/x", "/other", "/alone"):
            store.page(path, b"")
        with writing(store.database) as connection:
            near_duplicates.begin(connection, Parameters(0.9, 9, 14))
            near_duplicates.survey(connection, 100)
            placements = [
                LeaderChoice(1, 1, keys=(1,)), LeaderChoice(2, 1, 0.9, 0.03),
                LeaderChoice(3, 1, 0.95, 0.02), LeaderChoice(4, 4, keys=(2,)),
                LeaderChoice(5, 4, 1.0, 0.0), LeaderChoice(6, 6, keys=(3,)),
            ]  # fmt: skip
            near_duplicates.place(connection, placements, AT)
        yield store


async def test_the_largest_groups_come_first_with_their_duplicates_by_url(
    store: SketchedStore,
) -> None:
    large = (
        f"{HOST}/a",
        [Duplicate(f"{HOST}/copy", 0.95, 0.02, AT), Duplicate(f"{HOST}/leader", 0.9, 0.03, AT)],
    )
    small = (f"{HOST}/x", [Duplicate(f"{HOST}/other", 1.0, 0.0, AT)])
    found = await near_duplicates.groups(store.database.reader, 10)
    assert list(found.items()) == [large, small]
    assert await near_duplicates.groups(store.database.reader, 1) == dict([large])


async def test_every_duplicate_has_its_representative_and_other_pages_have_none(
    store: SketchedStore,
) -> None:
    found = await near_duplicates.one_of_group(store.database.reader)
    assert found == {1: 2, 3: 2, 5: 4}
    view = await store.rows("SELECT page_id, representative_id FROM duplicate")
    assert dict(view) == found


async def test_importance_can_be_summed_by_page_in_sql(store: SketchedStore) -> None:
    rows = await store.rows(
        "SELECT coalesce(representative_id, page.id), count(*) "
        "FROM page LEFT JOIN duplicate ON page_id = page.id GROUP BY 1 ORDER BY 1"
    )
    assert rows == [(2, 3), (4, 2), (6, 1)]


async def test_the_state_counts_what_is_compared_and_what_is_not_yet(store: SketchedStore) -> None:
    store.observe(1, "gone")
    store.page("/new", b"")
    state = await near_duplicates.state(store.database.reader)
    assert state.parameters == Parameters(0.9, 9, 14)
    assert (state.pages, state.groups, state.duplicates) == (6, 2, 3)
    assert (state.unseen, state.waiting) == (2, 0)
    with writing(store.database) as connection:
        near_duplicates.survey(connection, 100)
    state = await near_duplicates.state(store.database.reader)
    assert (state.unseen, state.waiting, state.groups) == (0, 3, 1)


async def test_a_store_that_was_never_compared_says_so(tmp_path: Path) -> None:
    async with sketched_store(tmp_path / "new.db") as store:
        store.page("/", b"")
        state = await near_duplicates.state(store.database.reader)
        assert (state.parameters, state.pages, state.unseen) == (None, 0, 1)
        assert await near_duplicates.groups(store.database.reader, 9) == {}
        assert await near_duplicates.one_of_group(store.database.reader) == {}
