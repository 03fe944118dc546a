"""Captures that prove to be block pages count as the failures that they are, whoever asks."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from freshet.storage.entries import KINDS, Retraction
from freshet.storage.queries import columns, overview, page
from freshet.storage.records import Acknowledged, DueUrl, Validators, Visit
from freshet.storage.tables import near_duplicates, observations
from freshet.storage.tables.near_duplicates import LeaderChoice, Parameters
from tests.storage import crawl_store
from tests.storage.crawl_store import (
    DAY_S,
    START,
    CrawlStore,
    capture,
    digest,
    doubtful,
    visit,
    writing,
)

WHY = "the host shows it for a URL that cannot exist"
LATER = START + DAY_S


def captured(due: DueUrl, text: str, *, at: float = START, to: Sequence[str] = ()) -> Visit:
    """A visit that saw new content which may be none."""
    return doubtful(crawl_store.captured(due, text, at=at, to=to))


def taken_back(by: DueUrl, page_id: int, at: float | None, now: float) -> Visit:
    """A visit that failed, and proves what another was."""
    failed = visit(by, "failed", now)
    return replace(failed, retractions=(Retraction(page_id, at, "soft_404", WHY),))


def changed(due: DueUrl, text: str, at: float) -> Visit:
    found = captured(due, text, at=at, to=["/wall-link", "/kept"])
    observation = replace(
        found.observation, rung="blocks", resemblance=0.1, blocks_added=3, size_bytes=77
    )
    return replace(
        found, observation=observation,
        capture=replace(capture(text, sketch=b"sketch of " + text.encode()), title=text),
        validators=Validators("etag", None), memory=b"memory",
    )  # fmt: skip


async def new_block_page(store: CrawlStore) -> tuple[DueUrl, DueUrl]:
    """Two pages in the frontier; the first is then visited and taken for content."""
    await store.admit("/a", "/b")
    first, second = await store.taken("/a"), await store.taken("/b")
    await store.apply(captured(first, "wall", at=START + 1, to=["/c"]))
    return first, second


async def walled_later(store: CrawlStore) -> tuple[DueUrl, DueUrl]:
    """The first page had content, with links, and shows at a later run what is a block page."""
    await store.admit("/a", "/b")
    due = await store.taken("/a")
    content = captured(due, "content", to=["/kept", "/content-link"])
    await store.apply(
        replace(content, capture=replace(capture("content", sketch=b"sketch"), title="Content"))
    )
    await store.new_run(LATER)
    first, second = await store.taken("/a", LATER), await store.taken("/b", LATER)
    await store.apply(changed(first, "wall", LATER + 1))
    return first, second


async def test_a_first_capture_that_was_a_wall_leaves_a_page_without_content(
    store: CrawlStore,
) -> None:
    first, second = await new_block_page(store)
    (told,) = await store.apply(taken_back(second, first.page_id, START + 1, START + 2))
    assert told.retracted == (("new", "soft_404"),)
    reader = store.database.reader
    (seen,) = await page.observations(reader, first.page_id, 9)
    assert (seen.kind, seen.rung, seen.reason, seen.detail, seen.status) == (
        "failed", None, "soft_404", WHY, 200,
    )  # fmt: skip
    assert await store.rows("SELECT kind, version_id FROM observation LIMIT 1") == [("new", 1)]
    assert await store.rows(
        "SELECT last_kind, checked_at, body_digest, text_digest, version_id FROM page WHERE id = ?",
        first.page_id,
    ) == [("failed", None, None, None, None)]
    assert await page.versions(reader, first.page_id) == []
    assert await page.good_capture(reader, first.page_id) is None
    assert await store.value("SELECT count(*) FROM link") == 0
    assert await overview.appeared(reader, store.run_id) == []
    assert await overview.kinds(reader, store.run_id) == {"failed": 2}
    assert not len(await columns.page_histories(reader))
    await store.new_run(LATER)
    assert (await store.taken("/a", LATER)).digests is None


async def test_a_wall_after_content_leaves_the_content_to_compare_with(store: CrawlStore) -> None:
    first, second = await walled_later(store)
    (told,) = await store.apply(taken_back(second, first.page_id, LATER + 1, LATER + 2))
    assert told.retracted == (("changed", "soft_404"),)
    reader = store.database.reader
    assert await overview.since(reader, 0.0, 9) == ([], 0)
    assert [v.version_id for v in await page.versions(reader, first.page_id)] == [1]
    history = await observations.load(reader, first.page_id)
    assert history is not None
    assert (history.sketch, history.memory, history.still) == (b"sketch", None, 0)
    assert await store.rows(
        "SELECT resemblance, blocks_added, version_id, first_kind, size_bytes FROM finding "
        "WHERE kind = 'failed' AND page_id = ?",
        first.page_id,
    ) == [(None, None, None, "changed", 77)]
    assert await store.rows(
        "SELECT last_kind, checked_at, version_id, title, etag FROM page WHERE id = ?",
        first.page_id,
    ) == [("failed", START, 1, None, None)]
    kept = await columns.page_histories(reader)
    observed = await columns.observations(reader, kept.page_id)
    assert [KINDS[kind] for kind in observed.kind] == ["new", "failed"]
    assert np.array_equal(observed.at, [START, LATER + 1])


async def test_after_a_wall_the_page_is_read_again_although_its_bytes_are_those_of_before(
    store: CrawlStore,
) -> None:
    first, second = await walled_later(store)
    await store.apply(taken_back(second, first.page_id, LATER + 1, LATER + 2))
    await store.new_run(LATER + DAY_S)
    due = await store.taken("/a", LATER + DAY_S)
    assert due.digests is not None
    assert due.digests.body not in {digest("content"), digest("wall")}
    assert due.digests.text == digest("text of content")
    assert due.validators == Validators()


async def test_the_links_of_a_wall_are_undone(store: CrawlStore) -> None:
    first, second = await walled_later(store)
    sql = "SELECT p.url, l.gone_at FROM link AS l JOIN page AS p ON p.id = l.dst_id ORDER BY url"
    before = {(url.rpartition("/")[2], gone) for url, gone in await store.rows(sql)}
    assert ("content-link", LATER + 1) in before
    await store.apply(taken_back(second, first.page_id, LATER + 1, LATER + 2))
    after = {(url.rpartition("/")[2], gone) for url, gone in await store.rows(sql)}
    assert after == {("kept", None), ("content-link", None)}


async def test_all_visits_that_saw_the_same_wall_are_failures(store: CrawlStore) -> None:
    first, second = await walled_later(store)
    same = doubtful(visit(first, "unchanged", LATER + 2))
    await store.apply(replace(same, observation=replace(same.observation, rung="304")))
    later = taken_back(first, first.page_id, None, LATER + 3)
    (told,) = await store.apply(later)
    assert told.retracted == ()
    kinds = "SELECT kind FROM finding WHERE page_id = ? ORDER BY id"
    assert await store.rows(kinds, first.page_id) == [
        ("new",), ("failed",), ("failed",), ("failed",),
    ]  # fmt: skip
    assert await store.value("SELECT checked_at FROM page WHERE id = ?", first.page_id) == START
    assert second.page_id != first.page_id


async def test_a_flip_back_to_a_wall_leaves_what_stood_between(store: CrawlStore) -> None:
    first, _ = await walled_later(store)
    flipped = captured(first, "content again", at=LATER + 2)
    await store.apply(
        replace(flipped, observation=replace(flipped.observation, kind="unchanged", rung="flip"))
    )
    await store.apply(taken_back(first, first.page_id, None, LATER + 3))
    kinds = "SELECT kind FROM finding WHERE page_id = ? ORDER BY id"
    assert await store.rows(kinds, first.page_id) == [
        ("new",), ("changed",), ("failed",), ("failed",),
    ]  # fmt: skip


@pytest.mark.parametrize("together", [True, False])
async def test_a_retraction_that_overtakes_its_visit_waits_for_it(
    store: CrawlStore, together: bool
) -> None:
    await store.admit("/a", "/b")
    first, second = await store.taken("/a"), await store.taken("/b")
    early = taken_back(second, first.page_id, START + 1, START + 2)
    seen = captured(first, "wall", at=START + 1)
    told: list[Acknowledged] = []
    for batch in [[early, seen]] if together else [[early], [seen]]:
        told += await store.apply(*batch)
    assert [each.retracted for each in told if each.retracted] == [(("new", "soft_404"),)]
    assert await store.rows("SELECT kind FROM finding") == [("failed",), ("failed",)]
    assert await store.value("SELECT count(*) FROM version") == 0


async def test_what_is_no_page_s_last_capture_is_not_taken_back(store: CrawlStore) -> None:
    first, second = await walled_later(store)
    (told,) = await store.apply(taken_back(second, first.page_id, START, LATER + 2))
    assert told.retracted == ()
    assert await store.value("SELECT count(*) FROM amendment") == 0
    assert await store.value("SELECT count(*) FROM version") == 2


async def test_copies_of_a_wall_are_no_duplicates(store: CrawlStore) -> None:
    await store.admit("/a", "/b", "/c")
    pages = [await store.taken(path) for path in ("/a", "/b", "/c")]
    await store.apply(
        *[
            replace(captured(due, "wall", at=START + n), capture=capture("wall", sketch=b"s"))
            for n, due in enumerate(pages[:2])
        ]
    )
    leader, copy = pages[0].page_id, pages[1].page_id
    with writing(store.database) as connection:
        near_duplicates.begin(connection, Parameters(0.9, 9, 14))
        near_duplicates.survey(connection, 99)
        found = [LeaderChoice(leader, leader, keys=(7,)), LeaderChoice(copy, leader, 1.0, 0.0)]
        near_duplicates.place(connection, found, START + 5)
    assert await store.value("SELECT count(*) FROM duplicate") == 1
    await store.apply(taken_back(pages[2], leader, START, START + 9))
    assert await store.rows("SELECT page_id, leader_id FROM lsh_page") == [(copy, None)]
    assert await store.value("SELECT count(*) FROM lsh_bucket") == 0
    assert await store.value("SELECT count(*) FROM duplicate") == 0


async def seen_for_days(store: CrawlStore, days: int) -> DueUrl:
    """A page whose content was seen first at the start, and again on so many days."""
    await store.admit("/a", "/b")
    due = await store.taken("/a")
    await store.apply(captured(due, "notice", at=START, to=["/kept"]))
    for day in range(1, days):
        same = doubtful(visit(due, "unchanged", START + day * DAY_S))
        await store.apply(replace(same, observation=replace(same.observation, rung="304")))
    return due


async def kinds_of(store: CrawlStore, page_id: int) -> list[str]:
    sql = "SELECT kind FROM finding WHERE page_id = ? ORDER BY id"
    return [row[0] for row in await store.rows(sql, page_id)]


@pytest.mark.parametrize("days", [1, 2, 3, 4, 5, 8, 13, 21])
@pytest.mark.parametrize("by_own", [True, False])
async def test_a_retraction_takes_back_three_captures_at_most(
    store: CrawlStore, days: int, by_own: bool
) -> None:
    due = await seen_for_days(store, days)
    last, now = START + (days - 1) * DAY_S, START + days * DAY_S
    by = due if by_own else await store.taken("/b")
    await store.apply(taken_back(by, due.page_id, None if by_own else last, now))
    wrong = min(days, 3)
    kinds = ["new", *["unchanged"] * (days - 1)][: days - wrong] + ["failed"] * wrong
    assert await kinds_of(store, due.page_id) == kinds + ["failed"] * by_own


@pytest.mark.parametrize("days", [1, 2, 3, 4, 5, 8, 13, 21])
@pytest.mark.parametrize("doubted_from", [1, 2, 30])
async def test_text_that_was_delivered_as_content_stays(
    store: CrawlStore, days: int, doubted_from: int
) -> None:
    await store.admit("/a")
    due = await store.taken("/a")
    await store.apply(crawl_store.captured(due, "notice"))
    for day in range(1, days):
        same = visit(due, "unchanged", START + day * DAY_S)
        same = replace(same, observation=replace(same.observation, rung="text"))
        await store.apply(doubtful(same) if day >= doubted_from else same)
    await store.apply(taken_back(due, due.page_id, None, START + days * DAY_S))
    kinds = ["new", *["unchanged"] * (days - 1), "failed"]
    assert await kinds_of(store, due.page_id) == kinds


async def back(store: CrawlStore, last: str, days: int = 1) -> DueUrl:
    """A page that showed a doubtful text between content and what it shows at last."""
    await store.admit("/a")
    due = await store.taken("/a")
    await store.apply(crawl_store.captured(due, "content"))
    due = replace(due, digests=capture("content").digests)
    await store.apply(captured(due, "wall", at=START + 1))
    for day in range(1, days):
        same = doubtful(visit(due, "unchanged", START + day * DAY_S))
        await store.apply(replace(same, observation=replace(same.observation, rung="text")))
    retraction = Retraction(due.page_id, None, "soft_404", WHY, returns=True)
    found = crawl_store.captured(due, last, at=START + days * DAY_S)
    await store.apply(replace(found, retractions=(retraction,)))
    return due


@pytest.mark.parametrize("days", [1, 2, 3, 4, 5, 8, 13, 21, 34, 55])
async def test_a_return_takes_back_three_doubtful_captures_at_most(
    store: CrawlStore, days: int
) -> None:
    due = await back(store, "content", days)
    kinds = ["new", "changed", *["unchanged"] * (days - 1), "changed"]
    wrong = min(days, 3)
    kinds[-1 - wrong : -1] = ["failed"] * wrong
    assert await kinds_of(store, due.page_id) == kinds
    texts = await store.rows("SELECT text_digest FROM version ORDER BY id")
    wall = [capture("wall").digests.text] if days > 3 else []
    content = capture("content").digests.text
    assert [row[0] for row in texts] == [content, *wall, content]
    state = "SELECT last_kind, text_digest, doubtful_as FROM page WHERE id = ?"
    assert await store.rows(state, due.page_id) == [("changed", content, None)]


@pytest.mark.parametrize("last", ["other", "wall at noon", "contents", ""])
async def test_another_text_is_no_return(store: CrawlStore, last: str) -> None:
    due = await back(store, last)
    assert await kinds_of(store, due.page_id) == ["new", "changed", "changed"]


async def test_a_page_with_captures_that_stand_keeps_its_version_title_and_links(
    store: CrawlStore,
) -> None:
    due = await seen_for_days(store, 5)
    before = await store.rows(
        "SELECT version_id, title, text_digest FROM page WHERE url LIKE '%/a'"
    )
    await store.apply(taken_back(due, due.page_id, None, START + 5 * DAY_S))
    after = await store.rows("SELECT version_id, title, text_digest FROM page WHERE url LIKE '%/a'")
    assert after == before
    assert await store.value("SELECT count(*) FROM version") == 1
    assert await store.value("SELECT count(*) FROM link WHERE gone_at IS NULL") == 1
    checked = await store.value("SELECT checked_at FROM page WHERE id = ?", due.page_id)
    assert checked == START + DAY_S


async def test_several_retractions_of_one_visit_take_back_three_captures_in_all(
    store: CrawlStore,
) -> None:
    names = [f"/{n}" for n in range(6)]
    await store.admit(*names, "/b")
    for n, name in enumerate(names):
        await store.apply(captured(await store.taken(name), "wall", at=START + n))
    pages = [(await store.page_id(name), START + n) for n, name in enumerate(names)]
    failed = visit(await store.taken("/b"), "failed", START + 9)
    retractions = tuple(Retraction(page_id, at, "soft_404", WHY) for page_id, at in pages)
    (told,) = await store.apply(replace(failed, retractions=retractions))
    assert len(told.retracted) == 3
    assert await store.value("SELECT count(*) FROM finding WHERE kind = 'new'") == 3
