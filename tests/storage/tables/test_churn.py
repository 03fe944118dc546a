"""What visits show of links that come and go is stored beside them, and undone with them."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from freshet.storage.entries import Retraction
from freshet.storage.queries import columns, link_columns
from freshet.storage.records import Churn, DueUrl, Targets
from tests.storage.crawl_store import (
    DAY_S,
    START,
    CrawlStore,
    captured,
    crawl_store,
    doubtful,
    targets,
    visit,
)

FRONT = ("/about", "/1", "/2")


class Front:
    """A front page that is visited again and again."""

    due: DueUrl

    def __init__(self, store: CrawlStore) -> None:
        self.store = store

    async def shows(self, day: float, *paths: str) -> Churn | None:
        """What a visit says of churn."""
        if day == 0:
            self.due = await self.store.taken("/")
        visit = captured(self.due, f"text of {day}", at=START + day * DAY_S, to=paths)
        (found,) = await self.store.apply(doubtful(visit))
        return found.churn


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Front]:
    async with crawl_store(tmp_path / "db") as store:
        await store.admit("/", "/old", "/new")
        yield Front(store)


async def test_a_first_look_says_nothing_of_churn(front: Front) -> None:
    assert await front.shows(0, *FRONT) is None
    assert await front.store.value("SELECT count(*) FROM churn") == 0


async def test_what_appears_drops_off_and_stays_is_counted(front: Front) -> None:
    await front.shows(0, *FRONT)
    first = await front.shows(1, "/about", "/2", "/3")
    second = await front.shows(2, "/about", "/3", "/4", "/5")
    assert first == Churn(START, appeared=1, dropped=1, stayed=0)
    assert second == Churn(START + DAY_S, appeared=2, dropped=1, stayed=1)
    assert await front.shows(3, "/about", "/4", "/5") is None
    stored = await link_columns.churn(front.store.database.reader)
    assert stored.page_id.tolist() == [1, 1]
    assert stored.at.tolist() == [START + DAY_S, START + 2 * DAY_S]
    assert stored.since.tolist() == [START, START + DAY_S]
    assert stored.appeared.tolist() == [1, 2]
    assert (stored.dropped.tolist(), stored.stayed.tolist()) == ([1, 1], [0, 1])


async def test_a_page_that_was_known_is_not_new_where_it_is_listed_anew(front: Front) -> None:
    await front.shows(0, *FRONT)
    assert await front.shows(1, *FRONT, "/old") is None


async def test_what_others_showed_since_the_last_look_is_new_here_too(front: Front) -> None:
    await front.shows(0, *FRONT)
    await front.store.admit("/news", at=START + 0.5 * DAY_S)
    assert await front.shows(1, *FRONT, "/news") == Churn(START, appeared=1, dropped=0, stayed=0)


@pytest.mark.parametrize("what", [targets("/new", role="feed"), targets("/new", held_back="depth")])
async def test_feeds_and_what_is_held_back_are_no_items(front: Front, what: Targets) -> None:
    await front.shows(0, *FRONT)
    visit = captured(front.due, "other", at=START + DAY_S, to=(*FRONT, "/new"))
    (found,) = await front.store.apply(replace(visit, targets=what))
    assert found.churn is None


async def test_what_a_wall_showed_is_undone(front: Front) -> None:
    await front.shows(0, *FRONT)
    assert await front.shows(1, "/login", "/1") is not None
    block_page = Retraction(1, START + DAY_S, "login", "a wall")
    other = captured(await front.store.taken("/old"), at=START + 2 * DAY_S)
    await front.store.apply(replace(other, retractions=(block_page,)))
    assert await front.store.value("SELECT count(*) FROM churn") == 0


async def test_a_dead_link_that_a_page_is_given_later_is_due_again(front: Front) -> None:
    store = front.store
    await front.shows(0, "/early")
    dead = [await store.taken(path) for path in ("/old", "/new", "/early")]
    new = dead[1].page_id
    await store.apply(*(visit(due, "gone", START + 0.5 * DAY_S) for due in dead))

    async def shown(day: float, *paths: str) -> tuple[tuple[int, ...], list[bool]]:
        seen = captured(front.due, f"text of {day}", at=START + day * DAY_S, to=paths)
        changed = replace(seen, observation=replace(seen.observation, kind="changed"))
        (found,) = await store.apply(changed)
        watched = await columns.pages(store.database.reader, [due.page_id for due in dead])
        return found.pages, watched.gone.tolist()

    # The link to the old one was rather there already when that was tried.
    assert await shown(0.9, "/early", "/old") == ((), [True, True, True])
    assert await shown(2, "/early", "/new") == ((new,), [True, False, True])
    await store.apply(visit(dead[1], "gone", START + 2.5 * DAY_S))
    assert await shown(3, "/early", "/new") == ((), [True, True, True])
