"""What a daemon reads of the pages that it keeps."""

from typing import Any

import pytest

from freshet.storage.database import reading
from freshet.storage.queries import columns
from tests.storage.small_store import HOST, SmallStore


def page(site: SmallStore, path: str, first: str, checked_at: float, of: int | None = None) -> int:
    """A page whose first content was judged so; an alias of another one for good."""
    kind = None if of is None else "permanent"
    page_id = site.page(
        path, checked_at=checked_at, version_id=1, alias_of=of, alias_kind=kind, alias_at=99.0
    )
    site.observe(page_id, checked_at - 1, "failed")
    site.observe(page_id, checked_at, first)
    site.observe(page_id, checked_at + 0.5, "unchanged")
    return page_id


async def test_a_move_is_told_where_the_first_copy_was_that_of_the_old_url(
    site: SmallStore,
) -> None:
    new = page(site, "/new", "changed", 30.0)
    latest = page(site, "/b", "unchanged", 20.0, new)
    earlier = page(site, "/a", "new", 10.0, new)
    page(site, "/not-it", "new", 5.0, new)
    front = page(site, "/", "new", 3.0)
    page(site, "/dead", "new", 2.0, front)
    async with reading(site.path) as connection:
        assert await columns.moves(connection) == {latest: new, earlier: new}
        assert await columns.moves(connection, front) == {}
        visits = await columns.visit_columns(connection)
        assert visits.page_id.tolist().count(new) == 6
        assert latest not in visits.page_id


async def test_a_page_that_was_not_asked_for_yet_has_the_place_of_what_leads_to_it(
    site: SmallStore,
) -> None:
    new = site.page("/new", found_at=50.0)
    site.page(
        "/a", found_at=2.0, checked_at=40.0, alias_of=new, alias_kind="permanent", alias_at=50.0
    )
    site.page(
        "/b", found_at=1.0, checked_at=45.0, alias_of=new, alias_kind="temporary", alias_at=50.0
    )
    async with reading(site.path) as connection:
        found = await columns.pages(connection)
    assert found.since.tolist() == [40.0, 40.0, 45.0]
    assert found.found_at.tolist() == [2.0, 2.0, 1.0]
    assert found.captured.tolist() == [False, False, False]
    assert found.alias.tolist() == [False, True, True]
    assert found.permanent.tolist() == [False, True, False]


async def test_urls_that_are_known_have_an_id(site: SmallStore) -> None:
    known = site.page("/known")
    async with reading(site.path) as connection:
        assert await columns.ids(connection, [f"{HOST}/known", f"{HOST}/not"]) == [known]


@pytest.mark.parametrize(
    ("columns_of", "count"),
    [
        ({}, 1),
        ({"last_kind": "unchanged", "checked_at": 1.0}, 1),
        ({"last_kind": "new", "checked_at": 1.0}, 1),
        # It could not be had this time.
        ({"last_kind": "failed", "checked_at": 1.0}, 1),
        ({"last_kind": "refused", "checked_at": 1.0}, 1),
        ({"last_kind": "failed"}, 0),
        ({"last_kind": "refused"}, 0),
        ({"last_kind": "skipped"}, 0),
        ({"last_kind": "redirected"}, 0),
        ({"last_kind": "gone"}, 0),
        ({"last_kind": "gone", "checked_at": 1.0}, 0),
        ({"last_kind": "redirected", "alias_of": 1, "alias_kind": "permanent"}, 0),
        (
            {
                "last_kind": "redirected", "alias_of": 1, "alias_kind": "temporary",
                "checked_at": 1.0,
            },
            0,
        ),
        ({"role": "sitemap"}, 0),
        ({"role": "sitemap", "last_kind": "new", "checked_at": 1.0}, 0),
        ({"role": "feed", "last_kind": "new", "checked_at": 1.0}, 0),
        ({"held_back": "depth"}, 0),
        ({"held_back": "shard"}, 0),
    ],
)  # fmt: skip
async def test_pages_are_what_has_content_or_was_not_requested_yet(
    site: SmallStore, columns_of: dict[str, Any], count: int
) -> None:
    site.page("/other", last_kind="unchanged", checked_at=1.0)
    site.page("/it", **columns_of)
    async with reading(site.path) as connection:
        assert await columns.known(connection) == 1 + count
