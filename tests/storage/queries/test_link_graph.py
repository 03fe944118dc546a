"""Pages and links as columns: what counts for how much a page is linked."""

import asyncio
from pathlib import Path

import pytest

from freshet.storage.database import reading
from freshet.storage.queries import link_columns
from tests.storage.small_store import SmallStore, small_store


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    store = asyncio.run(small_store(tmp_path / "crawl.db"))
    store.run(0.0)
    store.host()
    return store


def read(store: SmallStore) -> tuple[dict[int, int], set[tuple[int, int]], int]:
    """Depths by page, links as pairs of page ids, and how many rows these took."""

    async def both() -> tuple[dict[int, int], set[tuple[int, int]], int]:
        async with reading(store.path) as connection:
            pages = await link_columns.pages(connection)
            source, target = await link_columns.links(connection, pages)
            ids = pages.page_id
            pairs = set(zip(ids[source].tolist(), ids[target].tolist(), strict=True))
            return dict(zip(ids.tolist(), pages.depth.tolist(), strict=True)), pairs, len(source)

    return asyncio.run(both())


def test_links_stand_between_pages_in_their_own_right(store: SmallStore) -> None:
    home, news = store.page("/"), store.page("/news", depth=1)
    feed = store.page("/feed", role="feed", depth=1)
    trap = store.page("/trap", depth=1, held_back="trap: query")
    for src, dst in ((home, news), (news, home), (feed, news), (home, feed), (home, trap)):
        store.link(src, dst, 1.0)
    assert read(store) == ({home: 0, news: 1}, {(home, news), (news, home)}, 2)


def test_what_leads_to_an_alias_leads_to_its_page(store: SmallStore) -> None:
    home, new = store.page("/"), store.page("/new", depth=4)
    old = store.page("/old", depth=2, alias_of=new, alias_kind="permanent", alias_at=1.0)
    now = store.page("/now", depth=1, alias_of=new, alias_kind="temporary", alias_at=1.0)
    store.link(home, old, 1.0)
    store.link(home, now, 1.0)
    store.link(old, home, 1.0)  # what it said before it moved
    assert read(store) == ({home: 0, new: 2}, {(home, new)}, 2)


def test_what_is_gone_or_not_to_be_followed_counts_for_nothing(store: SmallStore) -> None:
    home, page = store.page("/"), store.page("/page", depth=1)
    dead = store.page("/dead", depth=1, last_kind="gone")
    shy = store.page("/shy", depth=1, nofollow=1)
    store.link(home, page, 1.0, rel="nofollow ugc")
    store.link(home, dead, 1.0, rel="nofollower")
    store.link(page, home, 1.0, gone_at=2.0)
    store.link(dead, home, 1.0)
    store.link(shy, home, 1.0)
    assert read(store)[1] == {(home, dead)}


def test_an_empty_store_has_no_graph(store: SmallStore) -> None:
    assert read(store) == ({}, set(), 0)
    held = store.page("/held", held_back="depth")
    store.link(held, held, 1.0)
    assert read(store) == ({}, set(), 0)
