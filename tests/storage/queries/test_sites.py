"""Figures of sites: counted as visits are written, corrected with verdicts, gone with the host."""

from dataclasses import replace

import pytest

from freshet.storage import maintenance
from freshet.storage.entries import Amendment, HostState, RobotsRecord, SiteOutlook
from freshet.storage.forgetting import forget, forgettable
from freshet.storage.maintenance import Retention
from freshet.storage.queries import overview, sites
from freshet.storage.queries.sites import ORDERS, SiteVisits
from freshet.storage.records import StoreUpdate, Visit
from tests.storage.crawl_store import DAY_S, SITE, START, CrawlStore, captured, visit

LATER = START + DAY_S
DAY, NEXT = int(START // DAY_S), int(LATER // DAY_S)
OTHER = "https://b.example"
NOTHING = SiteVisits(*[0] * 10)
PATHS = ("/a", "/b", f"{OTHER}/c")


def with_host(seen: Visit) -> Visit:
    at = seen.observation.at
    return replace(seen, host=HostState(seen.due.host_id, seen.due.url.split("/")[2], at, 1.0))


async def visited(store: CrawlStore) -> None:
    """Capture two pages of a site and one of another; a day later one changes and one is gone."""
    await store.admit(*PATHS)
    due = [await store.taken(path) for path in PATHS]
    await store.apply(*(with_host(captured(it, f"{n}", at=START + n)) for n, it in enumerate(due)))
    await store.new_run(LATER)
    again = [await store.taken(path, LATER) for path in PATHS]
    change = captured(again[0], "else", at=LATER)
    change = replace(change, observation=replace(change.observation, rung="blocks"))
    gone = [visit(again[2], "gone", LATER + n) for n in (1, 2)]
    await store.apply(*map(with_host, (change, *gone)))


async def test_visits_are_counted_by_site_and_day(store: CrawlStore) -> None:
    await visited(store)
    reader, one = store.database.reader, replace(NOTHING, requests=1, new=1)
    assert await sites.totals(reader, DAY) == {
        DAY: replace(NOTHING, requests=3, new=3),
        NEXT: replace(NOTHING, requests=3, changed=1, gone=2),
    }  # fmt: skip
    assert await sites.totals(reader, NEXT, 2) == {NEXT: replace(NOTHING, requests=2, gone=2)}
    both = await sites.sites(reader, DAY)
    assert [(it.origin, it.visits) for it in both] == [
        (SITE, replace(NOTHING, requests=3, new=2, changed=1)),
        (OTHER, replace(one, requests=3, gone=2)),
    ]
    assert sites.merged([{1: one}, {1: one, 0: one}]) == {
        0: one, 1: replace(NOTHING, requests=2, new=2)
    }  # fmt: skip


async def test_requests_for_robots_txt_are_counted_beside_all(store: CrawlStore) -> None:
    await store.admit("/a")
    state, record = HostState(1, "a.example", START, 1.0), RobotsRecord("allow_all", START)
    await store.apply(StoreUpdate(START, robots=(1, record), host=state, fetches=2))
    found = await sites.totals(store.database.reader, 0)
    assert found == {DAY: replace(NOTHING, requests=2, robots=1)}


async def test_a_corrected_verdict_is_counted_as_it_is_seen_today(store: CrawlStore) -> None:
    await visited(store)
    reader = store.database.reader
    assert await overview.since(reader, START + 9, 9) == (
        [it for _, it in (await overview.changes_page(reader, 1, kinds=["changed"])).changes], 1
    )  # fmt: skip
    for kind, rung in (("unchanged", "frame"), ("changed", "blocks"), ("unchanged", "frame")):
        seen = visit(await store.taken("/b", LATER), at=LATER + 9)
        amendment = Amendment(LATER, kind, rung, "template")  # type: ignore[arg-type]
        due = replace(seen.due, page_id=await store.page_id("/a"))
        await store.apply(replace(seen, due=due, amendments=(amendment,)))
        ((seen_today),) = await store.rows("SELECT kind FROM finding WHERE id = 4")
        ((listed),) = await store.rows("SELECT kind FROM site_change WHERE observation_id = 4")
        assert listed == seen_today == (kind,)
        counted = await store.value(
            "SELECT changed FROM site_day WHERE day = ? AND host_id = 1", NEXT
        )
        assert counted == (kind == "changed")


async def test_pages_of_sites_and_of_changes_follow_one_another(store: CrawlStore) -> None:
    await visited(store)
    reader = store.database.reader
    expected = [
        SiteOutlook(n, LATER, 2, 0, 1, stale, 5.0, None, capped=False)
        for n, stale in ((1, 0.25), (2, 0.5))
    ]
    await store.apply(StoreUpdate(LATER, sites=expected))
    for order in ORDERS:
        (first,) = await sites.sites(reader, DAY, order, limit=1)
        (second,) = await sites.sites(reader, DAY, order, after=(first.value, first.origin))
        assert {first.outlook, second.outlook} == set(expected)
        assert (-first.value, first.origin) < (-second.value, second.origin)
    assert [it.origin for it in await sites.sites(reader, DAY, "stale")] == [OTHER, SITE]
    assert [it.host_id for it in await sites.sites(reader, DAY, only=OTHER)] == [2]
    every = await overview.changes_page(reader, 9)
    assert [it.kind for _, it in every.changes] == ["gone", "changed", "new", "new", "new"]
    assert (every.looked, every.before) == (5, None)
    found, before = list[object](), None
    while (page := await overview.changes_page(reader, 2, before=before)).before:
        found, before = [*found, *page.changes], page.before
    assert [*found, *page.changes] == every.changes


async def test_changes_are_found_by_site_kind_and_word(
    store: CrawlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await visited(store)
    reader = store.database.reader
    mine = await overview.changes_page(reader, 9, host_ids=[1], kinds=["new"])
    assert [it.url for _, it in mine.changes] == [f"{SITE}/b", f"{SITE}/a"]
    named = await overview.changes_page(reader, 9, words=["B.Example", "c"])
    assert [it.kind for _, it in named.changes] == ["gone", "new"]
    monkeypatch.setattr(overview, "_LOOKED", 2)
    part = await overview.changes_page(reader, 9, words=["c", "b."])
    assert (len(part.changes), part.looked, part.before) == (1, 2, (LATER, 4))
    assert (
        len((await overview.changes_page(reader, 9, words=["c"], before=part.before)).changes) == 1
    )


async def test_changes_by_hour_of_the_week(store: CrawlStore) -> None:
    await visited(store)
    found = await sites.changes_by_hour(store.database.reader, 1)
    # 16 January 2027, 08:00, is a Saturday.
    assert found is not None
    assert {hour: n for hour, n in enumerate(found) if n} == {5 * 24 + 8: 1}
    assert await sites.changes_by_hour(store.database.reader, 2) is None


async def test_figures_go_with_the_last_page_of_a_host_and_with_time(store: CrawlStore) -> None:
    await visited(store)
    pages = await forgettable(store.database.reader, prefixes=[OTHER, f"{SITE}/b"])
    await forget(store.database, pages, LATER, refused=True)
    assert await store.rows("SELECT DISTINCT host_id FROM site_day") == [(1,)]
    assert await store.rows("SELECT observation_id FROM site_change ORDER BY 1") == [(1,), (4,)]
    await maintenance.prune(store.database, Retention(9, 9e9), START + 90 * DAY_S)
    assert await store.value("SELECT count(*) FROM site_day") == 2
    await maintenance.prune(store.database, Retention(9, 9e9), START + 91 * DAY_S)
    assert await store.rows("SELECT day FROM site_day") == [(NEXT,)]
