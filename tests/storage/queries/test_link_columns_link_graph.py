"""Pages and links as columns: what counts for how much a page is linked."""

import asyncio

from freshet.storage.database import reading
from freshet.storage.queries import link_columns
from tests.storage.small_store import SmallStore


def read(site: SmallStore) -> tuple[dict[int, int], set[tuple[int, int]], int]:
    """Depths by page, links as pairs of page ids, and how many rows these took."""

    async def both() -> tuple[dict[int, int], set[tuple[int, int]], int]:
        async with reading(site.path) as connection:
            pages = await link_columns.pages(connection)
            source, target = await link_columns.links(connection, pages)
            ids = pages.page_id
            pairs = set(zip(ids[source].tolist(), ids[target].tolist(), strict=True))
            return dict(zip(ids.tolist(), pages.depth.tolist(), strict=True)), pairs, len(source)

    return asyncio.run(both())


def test_links_stand_between_pages_in_their_own_right(site: SmallStore) -> None:
    home, news = site.page("/"), site.page("/news", depth=1)
    feed = site.page("/feed", role="feed", depth=1)
    trap = site.page("/trap", depth=1, held_back="trap: query")
    for src, dst in ((home, news), (news, home), (feed, news), (home, feed), (home, trap)):
        site.link(src, dst, 1.0)
    assert read(site) == ({home: 0, news: 1}, {(home, news), (news, home)}, 2)


def test_what_leads_to_an_alias_leads_to_its_page(site: SmallStore) -> None:
    home, new = site.page("/"), site.page("/new", depth=4)
    old = site.page("/old", depth=2, alias_of=new, alias_kind="permanent", alias_at=1.0)
    now = site.page("/now", depth=1, alias_of=new, alias_kind="temporary", alias_at=1.0)
    site.link(home, old, 1.0)
    site.link(home, now, 1.0)
    site.link(old, home, 1.0)  # what it said before it moved
    assert read(site) == ({home: 0, new: 2}, {(home, new)}, 2)


def test_what_is_gone_or_not_to_be_followed_counts_for_nothing(site: SmallStore) -> None:
    home, page = site.page("/"), site.page("/page", depth=1)
    dead = site.page("/dead", depth=1, last_kind="gone")
    shy = site.page("/shy", depth=1, nofollow=1)
    site.link(home, page, 1.0, rel="nofollow ugc")
    site.link(home, dead, 1.0, rel="nofollower")
    site.link(page, home, 1.0, gone_at=2.0)
    site.link(dead, home, 1.0)
    site.link(shy, home, 1.0)
    assert read(site)[1] == {(home, dead)}


def test_an_empty_store_has_no_graph(site: SmallStore) -> None:
    assert read(site) == ({}, set(), 0)
    held = site.page("/held", held_back="depth")
    site.link(held, held, 1.0)
    assert read(site) == ({}, set(), 0)
