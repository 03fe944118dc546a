"""Pages and observations come out of the store as columns that fit together."""

from pathlib import Path

import pytest

from freshet.storage import database
from freshet.storage.entries import KINDS, Kind
from freshet.storage.queries import columns
from freshet.storage.queries.columns import KeptPages, PastObservations
from freshet.storage.queries.page import snapshot
from tests.storage.small_store import HOST, SmallStore, small_store


@pytest.fixture
async def store(tmp_path: Path) -> SmallStore:
    store = await small_store(tmp_path / "crawl.db")
    store.run(0.0)
    store.host()
    return store


async def read(store: SmallStore) -> tuple[KeptPages, PastObservations]:
    async with snapshot(store.path) as connection:
        pages = await columns.page_histories(connection)
        return pages, await columns.observations(connection, pages.page_id)


async def test_an_empty_store_gives_columns_of_length_0(store: SmallStore) -> None:
    pages, observed = await read(store)
    assert (len(pages), pages.url, pages.gone, len(observed)) == (0, [], 0, 0)


async def test_kept_are_captured_pages_in_their_own_right(store: SmallStore) -> None:
    page = store.page("/", checked_at=5.0)
    store.page("/never-seen")
    store.page("/sitemap.xml", role="sitemap", checked_at=5.0)
    store.page("/alias", alias_of=page, alias_kind="permanent", checked_at=5.0)
    store.page("/led-out-of-scope", alias_kind="temporary", checked_at=5.0)
    store.page("/held-back", held_back="nofollow", checked_at=5.0)
    failed = store.page("/down-now", checked_at=6.0, last_kind="failed")
    pages, _ = await read(store)
    assert pages.page_id.tolist() == [page, failed]
    assert pages.url == [f"{HOST}/", f"{HOST}/down-now"]
    assert pages.checked_at.tolist() == [5.0, 6.0]


async def test_gone_pages_are_left_out_and_counted(store: SmallStore) -> None:
    store.page("/gone", checked_at=5.0, last_kind="gone")
    store.page("/gone-at-first-sight", last_kind="gone")
    here = store.page("/here", checked_at=5.0, last_kind="unchanged")
    pages, _ = await read(store)
    assert (pages.page_id.tolist(), pages.gone) == ([here], 1)


async def test_hosts_of_a_lane_have_the_delay_of_its_last_exchange(store: SmallStore) -> None:
    store.host("http://two.example", lane="both", delay_s=7.0, last_exchange_at=20.0)
    third = store.host("https://two.example", lane="both", delay_s=1.0, last_exchange_at=10.0)
    store.page("https://two.example/", host=third, checked_at=5.0)
    pages, _ = await read(store)
    assert [(host.origin, host.state and host.state.delay_s) for host in pages.hosts] == [
        (HOST, None), ("http://two.example", 7.0), ("https://two.example", 7.0),
    ]  # fmt: skip
    assert pages.host.tolist() == [2]


async def test_observations_stand_page_by_page_in_the_order_in_which_they_were_made(
    store: SmallStore,
) -> None:
    one, two = store.page("/1", checked_at=9.0), store.page("/2", checked_at=9.0)
    store.observe(two, 10.0, "new")
    store.observe(one, 5.0, "new")
    store.observe(two, 30.0, "changed")
    store.observe(one, 20.0, "unchanged")
    store.observe(one, 20.0, "failed")
    store.observe(one, 12.0, "changed")
    _, observed = await read(store)
    assert observed.page.tolist() == [0, 0, 0, 0, 1, 1]
    assert observed.at.tolist() == [5.0, 20.0, 20.0, 12.0, 10.0, 30.0]
    assert [KINDS[code] for code in observed.kind] == [
        Kind.NEW, Kind.UNCHANGED, Kind.FAILED, Kind.CHANGED, Kind.NEW, Kind.CHANGED,
    ]  # fmt: skip


async def test_observations_of_other_pages_are_left_out(store: SmallStore) -> None:
    gone = store.page("/gone", checked_at=5.0, last_kind="gone")
    page = store.page("/", checked_at=9.0)
    last = store.page("/held-back", held_back="depth")
    for each in (gone, page, last):
        store.observe(each, 1.0, "new")
    _, observed = await read(store)
    assert observed.page.tolist() == [0]


async def test_every_kind_has_its_code(store: SmallStore) -> None:
    page = store.page("/", checked_at=9.0)
    for at, kind in enumerate(Kind):
        store.observe(page, float(at), kind)
    _, observed = await read(store)
    assert [KINDS[code] for code in observed.kind] == list(Kind)


async def test_answers_of_many_pieces_are_whole(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_ROWS_COLUMNS", 2)
    for number in range(5):
        store.observe(store.page(f"/{number}", checked_at=9.0), float(number), "new")
    pages, observed = await read(store)
    assert pages.url == [f"{HOST}/{number}" for number in range(5)]
    assert observed.at.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
