"""Table page: the seen-set, what visits leave on a page, and aliases."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.storage.entries import Kind
from freshet.storage.records import Alias, StoreUpdate, Validators, Visit
from freshet.storage.tables import pages
from freshet.storage.writer import VisitTables
from tests.storage.crawl_store import (
    DAY_S,
    START,
    CrawlStore,
    capture,
    captured,
    crawl_store,
    digest,
    redirected,
    targets,
    url_of,
    visit,
)

LATER = START + 7 * DAY_S


async def test_a_url_is_admitted_once_however_often_it_is_found(store: CrawlStore) -> None:
    (first,) = await store.admit("/a", "/b", "/a")
    (second,) = await store.admit("/a", "/c")
    assert (first.admitted, second.admitted) == (2, 1)
    assert first.supplied == {1}
    assert await store.due_paths() == ["/a", "/b", "/c"]


async def test_a_page_that_was_crawled_is_not_due_again_when_it_is_linked(
    store: CrawlStore,
) -> None:
    await store.admit("/a")
    await store.apply(captured(await store.taken("/a")))
    (again,) = await store.admit("/a")
    assert (again.admitted, again.supplied) == (0, frozenset())
    assert await store.due() == []


async def test_a_held_back_url_is_known_but_not_due(store: CrawlStore) -> None:
    found = StoreUpdate(START, targets=targets("/a", held_back="nofollow"))
    (acknowledged,) = await store.apply(found)
    assert acknowledged.admitted == 0
    assert await store.value("SELECT held_back FROM page") == "nofollow"
    assert await store.due() == []


@pytest.mark.parametrize("why", ["nofollow", "depth"])
async def test_a_better_link_lifts_what_was_held_back_and_tells_the_depth(
    store: CrawlStore, why: str
) -> None:
    await store.apply(StoreUpdate(START, targets=targets("/a", depth=9, held_back=why)))
    (again,) = await store.apply(StoreUpdate(START, targets=targets("/a", depth=2)))
    assert again.admitted == 1
    (due,) = await store.due()
    assert (due.url, due.depth) == (url_of("/a"), 2)
    assert (await store.admit("/a"))[0].admitted == 0


@pytest.mark.parametrize("why", ["extension", "trap: calendar"])
async def test_other_reasons_are_not_lifted(store: CrawlStore, why: str) -> None:
    await store.apply(StoreUpdate(START, targets=targets("/a", held_back=why)))
    assert (await store.admit("/a"))[0].admitted == 0


async def test_a_worse_link_does_not_hold_a_page_back(store: CrawlStore) -> None:
    await store.admit("/a")
    await store.apply(StoreUpdate(START, targets=targets("/a", held_back="nofollow")))
    assert await store.due_paths() == ["/a"]


async def test_a_capture_replaces_what_the_page_says_of_itself(store: CrawlStore) -> None:
    await store.admit("/a")
    seen = replace(
        captured(await store.taken("/a"), "one"), validators=Validators('"1"'), role="feed"
    )
    seen = replace(seen, capture=replace(capture("one"), title="One", noindex=True))
    await store.apply(seen)
    assert await store.rows(
        "SELECT last_kind, last_at, checked_at, status, role, etag, title, noindex, "
        "version_id, body_digest FROM page"
    ) == [("new", START, START, 200, "feed", '"1"', "One", 1, 1, digest("one"))]


async def test_a_failure_erases_nothing_that_is_known_of_the_content(store: CrawlStore) -> None:
    await store.admit("/a")
    seen = replace(captured(await store.taken("/a"), "one"), validators=Validators('"1"'))
    await store.apply(seen)
    await store.new_run(LATER)
    due = await store.taken("/a", LATER)
    failed = visit(due, "failed", LATER)
    await store.apply(
        replace(failed, observation=replace(failed.observation, status=None, reason="dns"))
    )
    assert await store.rows(
        "SELECT last_kind, last_at, checked_at, etag, body_digest, text_digest FROM page"
    ) == [("failed", LATER, START, '"1"', digest("one"), digest("text of one"))]


async def test_an_unchanged_page_stays_with_its_version(store: CrawlStore) -> None:
    await store.admit("/a")
    await store.apply(captured(await store.taken("/a"), "one"))
    await store.new_run(LATER)
    due = await store.taken("/a", LATER)
    await store.apply(visit(due, "unchanged", LATER))
    assert await store.rows("SELECT kind, version_id FROM observation") == [
        ("new", 1),
        ("unchanged", 1),
    ]
    await store.apply(captured(due, "two", at=LATER + 1))
    assert await store.rows("SELECT version_id, checked_at FROM page") == [(2, LATER + 1)]


# -- aliases -------------------------------------------------------------------------


async def aliases(store: CrawlStore) -> dict[str, str]:
    rows = await store.rows("SELECT url, page_url FROM alias")
    return {url.rpartition("/")[2]: page_url.rpartition("/")[2] for url, page_url in rows}


async def test_a_redirecting_url_is_an_alias_of_its_target(store: CrawlStore) -> None:
    await store.admit("/old")
    await store.apply(redirected(await store.taken("/old"), "/new"))
    assert await store.rows("SELECT url, page_url, kind, at FROM alias") == [
        (url_of("/old"), url_of("/new"), "permanent", START)
    ]
    assert await store.due_paths() == ["/new"]


@pytest.mark.parametrize("order", ["abc", "acb", "bac", "bca", "cab", "cba"])
async def test_a_chain_is_resolved_to_its_final_page_in_any_order(
    tmp_path: Path, order: str
) -> None:
    steps = {"a": "b", "b": "c", "c": "d"}
    async with crawl_store(tmp_path / "db") as store:
        await store.admit("/a", "/b", "/c", "/d")
        for name in order:
            await store.apply(redirected(await store.taken(f"/{name}"), f"/{steps[name]}"))
        assert await aliases(store) == {"a": "d", "b": "d", "c": "d"}


@pytest.mark.parametrize("order", ["abc", "acb", "bac", "bca", "cab", "cba"])
async def test_of_a_loop_no_alias_is_left(tmp_path: Path, order: str) -> None:
    steps = {"a": "b", "b": "c", "c": "a"}
    async with crawl_store(tmp_path / "db") as store:
        await store.admit("/a", "/b", "/c", "/before")
        await store.apply(redirected(await store.taken("/before"), "/a"))
        visits = [redirected(await store.taken(f"/{name}"), f"/{steps[name]}") for name in order]
        await store.apply(*visits)
        assert await aliases(store) == {}
        assert await store.value("SELECT count(*) FROM page WHERE alias_kind NOT NULL") == 4


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12))
async def test_no_page_is_ever_an_alias_of_an_alias(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]]
) -> None:
    async with crawl_store(tmp_path_factory.mktemp("aliases") / "db") as store:
        await store.admit(*(f"/{i}" for i in range(5)))
        dues = await store.due()
        for source, target in steps:
            seen = visit(dues[source])
            await store.apply(seen if source == target else redirected(dues[source], f"/{target}"))
        assert (
            await store.value(
                "SELECT count(*) FROM page AS a JOIN page AS b ON b.id = a.alias_of "
                "WHERE b.alias_of NOT NULL OR a.id = b.id"
            )
            == 0
        )
        final = {row[0] for row in await store.rows("SELECT alias_of FROM page") if row[0]}
        assert all(map(store.tables.may_be_final, final))
        store.tables = VisitTables(store.run_id)
        await store.apply(StoreUpdate(START))
        # A new process reads them, and no others.
        assert final == {due.page_id for due in dues if store.tables.may_be_final(due.page_id)}


@pytest.mark.parametrize(
    ("kind", "left"),
    [("unchanged", {}), ("new", {}), ("gone", {}), ("skipped", {}),
     ("redirected", {}), ("failed", {"old": "new"}), ("refused", {"old": "new"})],
)  # fmt: skip
async def test_an_alias_lasts_until_the_url_leads_elsewhere(
    store: CrawlStore, kind: Kind, left: dict[str, str]
) -> None:
    await store.admit("/old")
    due = await store.taken("/old")
    await store.apply(redirected(due, "/new"))
    await store.apply(visit(due, kind, LATER))
    assert await aliases(store) == left


async def test_the_page_behind_an_alias_is_told_for_this_run(store: CrawlStore) -> None:
    await store.admit("/old", "/new")
    await store.apply(redirected(await store.taken("/old"), "/new"))
    reader, new = store.database.reader, await store.page_id("/new")
    assert await pages.alias_target(reader, url_of("/old")) == new
    assert await pages.alias_target(reader, url_of("/new")) == new
    assert await pages.alias_target(reader, url_of("/unknown")) is None
    assert await pages.alias_target(reader, url_of("/old"), START) == new
    old = await store.page_id("/old")
    assert await pages.alias_target(reader, url_of("/old"), LATER) == old
    await store.new_run(LATER)
    assert await pages.alias_target(reader, url_of("/old")) == await store.page_id("/old")


async def turned_round(store: CrawlStore) -> Visit:
    """/old led to /new for good; in a new run, /new leads back to /old."""
    await store.admit("/old")
    await store.apply(redirected(await store.taken("/old"), "/new"))
    await store.apply(captured(await store.taken("/new")))
    await store.new_run(LATER, recheck_before=START)
    return redirected(await store.taken("/new", LATER), "/old", at=LATER)


async def test_a_permanent_redirect_that_was_turned_round_makes_its_page_due(
    store: CrawlStore,
) -> None:
    back = await turned_round(store)
    assert await store.due_paths(LATER) == ["/new"]
    (acknowledged,) = await store.apply(back)
    assert (acknowledged.admitted, acknowledged.supplied) == (1, frozenset({1}))
    assert await store.due_paths(LATER) == ["/old"]
    await store.apply(captured(await store.taken("/old", LATER), at=LATER))
    again = replace(back, alias=Alias(url_of("/old"), "permanent"))
    (acknowledged,) = await store.apply(again)
    assert acknowledged.admitted == 0
    assert await aliases(store) == {"new": "old"}


async def test_two_pages_that_lead_to_each_other_are_asked_once_a_run(store: CrawlStore) -> None:
    back = await turned_round(store)
    await store.apply(back)
    await store.apply(redirected(await store.taken("/old", LATER), "/new", at=LATER))
    assert await store.due_paths(LATER) == []
