"""What is known better of earlier observations."""

from dataclasses import replace

from freshet.storage.entries import Amendment
from freshet.storage.queries import overview
from freshet.storage.tables import observations
from tests.storage.crawl_store import (
    START,
    CrawlStore,
    capture,
    captured,
    digest,
    redirected,
    visit,
    writing,
)

FRAME = Amendment(START + 1, "unchanged", "frame", "on many pages")


async def changed_once(store: CrawlStore) -> int:
    """A page that was new, then changed at ``START + 1``."""
    await store.admit("/a")
    due = await store.taken("/a")
    await store.apply(captured(due, "one"))
    changed = captured(due, "two", at=START + 1)
    observation = replace(changed.observation, kind="changed", rung="blocks")
    await store.apply(replace(changed, observation=observation, memory=b"memory"))
    return due.page_id


async def test_an_amended_observation_is_found_otherwise_and_stands_as_it_was(
    store: CrawlStore,
) -> None:
    page_id = await changed_once(store)
    with writing(store.database) as connection:
        observations.amend(connection, page_id, FRAME, START + 9)
    assert await store.rows("SELECT kind FROM observation ORDER BY id") == [("new",), ("changed",)]
    assert await store.rows("SELECT kind, rung, reason, first_kind FROM finding ORDER BY id") == [
        ("new", None, None, "new"),
        ("unchanged", "frame", "on many pages", "changed"),
    ]
    assert await store.value("SELECT last_kind FROM page") == "unchanged"
    assert await overview.changed(store.database.reader, store.run_id) == []


async def test_the_last_amendment_counts(store: CrawlStore) -> None:
    page_id = await changed_once(store)
    back = Amendment(START + 1, "changed", "blocks", "alone")
    with writing(store.database) as connection:
        observations.amend(connection, page_id, FRAME, START + 8)
        observations.amend(connection, page_id, back, START + 9)
    assert await store.rows("SELECT kind, reason, at FROM amendment") == [
        ("changed", "alone", START + 9)
    ]


async def test_an_amendment_comes_with_the_visit_that_led_to_it(store: CrawlStore) -> None:
    await changed_once(store)
    due = await store.taken("/a") if await store.due() else None
    if due is None:
        await store.new_run(START + 5)
        due = await store.taken("/a", START + 5)
    later = replace(visit(due, "unchanged", START + 6), amendments=(FRAME,))
    await store.apply(later)
    kinds = "SELECT kind FROM finding ORDER BY id"
    assert await store.rows(kinds) == [("new",), ("unchanged",), ("unchanged",)]
    assert await store.value("SELECT at FROM amendment") == START + 6


async def test_hosts_with_open_verdicts_are_those_that_a_runs_end_looks_at(
    store: CrawlStore,
) -> None:
    page_id = await changed_once(store)
    ((host_id,),) = await store.rows("SELECT id FROM host")
    reader = store.database.reader
    assert await observations.open_hosts(reader, store.run_id, 0.0) == [(host_id, 1)]
    found = await observations.open_memories(reader, store.run_id, host_id)
    assert found == [(page_id, digest("text of two"), b"memory")]
    assert await observations.open_hosts(reader, store.run_id + 1, 0.0) == []


async def test_a_new_page_to_which_an_older_one_redirects_for_good_has_moved(
    store: CrawlStore,
) -> None:
    await store.admit("/old", "/new", "/other")
    old, new = await store.taken("/old"), await store.taken("/new")
    await store.apply(replace(captured(old), capture=capture("one", sketch=b"old")))
    await store.new_run(START + 5)
    await store.apply(
        replace(captured(new, at=START + 6), capture=capture("two", sketch=b"new")),
        captured(await store.taken("/other", START + 5), at=START + 6),
    )
    reader = store.database.reader
    assert await observations.moves(reader, store.run_id) == []
    await store.apply(redirected(old, "/new", at=START + 7))
    assert await observations.moves(reader, store.run_id) == [
        (new.page_id, START + 6, b"old", b"new")
    ]
    it_moved = Amendment(START + 6, "changed", "blocks", "it stood elsewhere")
    with writing(store.database) as connection:
        observations.amend(connection, new.page_id, it_moved, START + 8)
    assert await observations.moves(reader, store.run_id) == []
