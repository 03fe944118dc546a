"""Pages and observations come out of the store as columns that fit together."""

import pytest

from freshet.storage import database
from freshet.storage.entries import KINDS
from freshet.storage.queries import columns
from freshet.storage.queries.columns import KeptPages, PastObservations
from freshet.storage.queries.page import snapshot
from tests.storage.small_store import HOST, SmallStore


async def read(site: SmallStore) -> tuple[KeptPages, PastObservations]:
    async with snapshot(site.path) as connection:
        pages = await columns.page_histories(connection)
        return pages, await columns.observations(connection, pages.page_id)


async def test_an_empty_store_gives_columns_of_length_0(site: SmallStore) -> None:
    pages, observed = await read(site)
    assert (len(pages), pages.url, pages.gone, len(observed)) == (0, [], 0, 0)


async def test_kept_are_captured_pages_in_their_own_right(site: SmallStore) -> None:
    page = site.page("/", checked_at=5.0)
    site.page("/never-seen")
    site.page("/sitemap.xml", role="sitemap", checked_at=5.0)
    site.page("/alias", alias_of=page, alias_kind="permanent", checked_at=5.0)
    site.page("/led-out-of-scope", alias_kind="temporary", checked_at=5.0)
    site.page("/held-back", held_back="nofollow", checked_at=5.0)
    failed = site.page("/down-now", checked_at=6.0, last_kind="failed")
    pages, _ = await read(site)
    assert pages.page_id.tolist() == [page, failed]
    assert pages.url == [f"{HOST}/", f"{HOST}/down-now"]
    assert pages.checked_at.tolist() == [5.0, 6.0]


async def test_gone_pages_are_left_out_and_counted(site: SmallStore) -> None:
    site.page("/gone", checked_at=5.0, last_kind="gone")
    site.page("/gone-at-first-sight", last_kind="gone")
    here = site.page("/here", checked_at=5.0, last_kind="unchanged")
    pages, _ = await read(site)
    assert (pages.page_id.tolist(), pages.gone) == ([here], 1)


async def test_hosts_of_a_queue_have_the_delay_of_its_last_exchange(site: SmallStore) -> None:
    site.host("http://two.example", queue="both", delay_s=7.0, last_exchange_at=20.0)
    third = site.host("https://two.example", queue="both", delay_s=1.0, last_exchange_at=10.0)
    site.page("https://two.example/", host=third, checked_at=5.0)
    pages, _ = await read(site)
    assert [(host.origin, host.state and host.state.delay_s) for host in pages.hosts] == [
        (HOST, None), ("http://two.example", 7.0), ("https://two.example", 7.0),
    ]  # fmt: skip
    assert pages.host.tolist() == [2]


async def test_observations_stand_page_by_page_in_the_order_in_which_they_were_made(
    site: SmallStore,
) -> None:
    one, two = site.page("/1", checked_at=9.0), site.page("/2", checked_at=9.0)
    site.observe(two, 10.0, "new")
    site.observe(one, 5.0, "new")
    site.observe(two, 30.0, "changed")
    site.observe(one, 20.0, "unchanged")
    site.observe(one, 20.0, "failed")
    site.observe(one, 12.0, "changed")
    _, observed = await read(site)
    assert observed.page.tolist() == [0, 0, 0, 0, 1, 1]
    assert observed.at.tolist() == [5.0, 20.0, 20.0, 12.0, 10.0, 30.0]
    assert [KINDS[code] for code in observed.kind] == [
        "new", "unchanged", "failed", "changed", "new", "changed",
    ]  # fmt: skip


async def test_observations_of_other_pages_are_left_out(site: SmallStore) -> None:
    gone = site.page("/gone", checked_at=5.0, last_kind="gone")
    page = site.page("/", checked_at=9.0)
    last = site.page("/held-back", held_back="depth")
    for each in (gone, page, last):
        site.observe(each, 1.0, "new")
    _, observed = await read(site)
    assert observed.page.tolist() == [0]


async def test_every_kind_has_its_code(site: SmallStore) -> None:
    page = site.page("/", checked_at=9.0)
    for at, kind in enumerate(KINDS):
        site.observe(page, float(at), kind)
    _, observed = await read(site)
    assert [KINDS[code] for code in observed.kind] == list(KINDS)


async def test_answers_of_many_pieces_are_whole(
    site: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_ROWS_COLUMNS", 2)
    for number in range(5):
        site.observe(site.page(f"/{number}", checked_at=9.0), float(number), "new")
    pages, observed = await read(site)
    assert pages.url == [f"{HOST}/{number}" for number in range(5)]
    assert observed.at.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
