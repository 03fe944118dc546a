"""What the store counts of a page's responses: 304s in a row, and those without any text."""

from dataclasses import replace

import pytest

from freshet.storage.entries import Host, Kind, Repeats
from freshet.storage.queries import overview, page
from freshet.storage.records import Rejected, StoreUpdate, Visit
from freshet.storage.tables import changefeed, hosts
from tests.storage.crawl_store import DAY_S, SITE, START, CrawlStore, captured, url_of, visit

Answer = tuple[Kind, int, str | None]
LOST: Answer = ("failed", 200, "empty")
STUB: Answer = ("failed", 200, "stub")
BINARY: Answer = ("failed", 200, "binary")
SAME: Answer = ("unchanged", 200, None)
UNMODIFIED: Answer = ("unchanged", 304, None)
ERROR: Answer = ("failed", 500, "http_500")
GONE: Answer = ("gone", 404, "http_404")
SKIPPED: Answer = ("skipped", 204, "http_204")


async def seen(store: CrawlStore, *answers: Answer, days: float = 2.0) -> None:
    """Visit a page that had content at START, every few days."""
    await store.admit("/a")
    await store.apply(captured(await store.taken("/a"), "text", at=START))
    for n, (kind, status, reason) in enumerate(answers, 1):
        at = START + n * days * DAY_S
        await store.new_run(at)
        # A page that is gone is asked for ever more rarely.
        entry = visit(await store.taken("/a", at), kind, at)
        told = replace(entry.observation, status=status, reason=reason)
        await store.apply(replace(entry, observation=told))


async def marked(store: CrawlStore) -> float | None:
    known = await page.find(store.database.reader, [url_of("/a")])
    assert known is not None
    return known.no_content_since


MARKED = {
    "five": (LOST,) * 5,
    "many": (LOST,) * 9,
    "of several kinds": (LOST, STUB, BINARY, LOST, STUB),
    "errors between": (LOST, ERROR, LOST, LOST, ERROR, LOST, LOST),
    "a 204 between": (LOST, SKIPPED, LOST, LOST, LOST, LOST),
    "after content": (SAME, LOST, LOST, LOST, LOST, LOST),
}
NOT_MARKED: dict[str, tuple[Answer, ...]] = {
    "none": (SAME,) * 5,
    "one": (LOST,),
    "four": (LOST,) * 4,
    "content between": (LOST, LOST, LOST, LOST, SAME, LOST),
    "a 304 between": (LOST, LOST, LOST, UNMODIFIED, LOST, LOST),
    "errors only": (ERROR,) * 8,
    "content again": (*(LOST,) * 6, SAME),
    "gone": (*(LOST,) * 6, GONE),
}


@pytest.mark.parametrize("answers", MARKED.values(), ids=MARKED)
async def test_after_five_visits_over_a_week_a_page_is_without_content(
    store: CrawlStore, answers: tuple[Answer, ...]
) -> None:
    await seen(store, *answers)
    first = START + (1 + answers.index(LOST)) * 2 * DAY_S
    assert await marked(store) == first
    reader = store.database.reader
    assert await overview.without_content(reader) == [(SITE, 1)]
    # It keeps its document, and nothing is told as a change.
    (told,), _ = await changefeed.changes(reader, await changefeed.position(reader, "0"), 9)
    assert (told.kind, told.at, told.no_content_since) == ("new", START, first)
    assert told.version_id is not None


@pytest.mark.parametrize("answers", NOT_MARKED.values(), ids=NOT_MARKED)
async def test_fewer_visits_or_content_between_do_not_mark_it(
    store: CrawlStore, answers: tuple[Answer, ...]
) -> None:
    await seen(store, *answers)
    assert await marked(store) is None
    assert await overview.without_content(store.database.reader) == []


@pytest.mark.parametrize("days", [0.1, 0.5, 1.0, 1.7])
async def test_five_visits_within_a_week_do_not_mark_it(store: CrawlStore, days: float) -> None:
    await seen(store, *(LOST,) * 5, days=days)
    assert await marked(store) is None


@pytest.mark.parametrize("late", [ERROR, SKIPPED, ("failed", 503, "http_503")])
async def test_a_late_error_is_none_of_the_five_visits(store: CrawlStore, late: Answer) -> None:
    await seen(store, *(LOST,) * 9, *(late,) * 75, days=0.1)
    assert await marked(store) is None
    assert await overview.without_content(store.database.reader) == []
    at = START + 8.5 * DAY_S
    await store.new_run(at)
    entry = visit(await store.taken("/a", at), "failed", at)
    await store.apply(replace(entry, observation=replace(entry.observation, reason="empty")))
    assert await marked(store) == START + 0.1 * DAY_S


@pytest.mark.parametrize(
    ("answers", "count", "read"),
    [
        ((), 0, 0), ((SAME,), 0, 1), ((UNMODIFIED,), 1, 0), ((UNMODIFIED,) * 4, 4, 0),
        ((UNMODIFIED, SAME), 0, 2), ((UNMODIFIED, ERROR, UNMODIFIED), 2, 0),
        ((UNMODIFIED, LOST, UNMODIFIED), 2, 0), ((SAME, UNMODIFIED, SAME, UNMODIFIED), 1, 3),
        ((ERROR, ERROR), 0, 0), ((("failed", 304, "soft_404"),) * 2, 2, 0),
    ],
)  # fmt: skip
async def test_304s_in_a_row_and_the_last_read_are_counted(
    store: CrawlStore, answers: tuple[Answer, ...], count: int, read: int
) -> None:
    await seen(store, *answers)
    at = START + 90 * DAY_S
    await store.new_run(at)
    due = await store.taken("/a", at)
    assert (due.not_modified, due.read_at) == (count, START + read * 2 * DAY_S)


async def test_a_block_page_was_read(store: CrawlStore) -> None:
    await seen(store, UNMODIFIED)
    at = START + 9 * DAY_S
    await store.new_run(at)
    entry = visit(await store.taken("/a", at), "failed", at)
    await store.apply(replace(entry, rejected=Rejected(b"digest", "soft_404", at)))
    await store.new_run(at + 9 * DAY_S)
    due = await store.taken("/a", at + 9 * DAY_S)
    assert (due.not_modified, due.read_at) == (0, at)


async def test_what_repeats_have_shown_of_page_and_host_is_kept(store: CrawlStore) -> None:
    await store.admit("/a")
    due = await store.taken("/a")
    (host,) = await hosts.load(store.database.reader, [due.host_id])
    assert (due.plain_at, host.repeats) == (None, None)
    known = Repeats(3, 1, START)
    entry: Visit = replace(captured(due), plain_at=START, repeats=(due.host_id, known))
    await store.apply(entry)
    await store.new_run(START + DAY_S)
    due = await store.taken("/a", START + DAY_S)
    assert (due.plain_at, due.repeat_of) == (START, None)
    found: list[Host] = await hosts.load(store.database.reader, [due.host_id])
    assert found[0].repeats == known
    assert (await hosts.politeness(store.database.reader))[0].repeats == known
    later = Repeats(0, 2, START + DAY_S)
    await store.apply(captured(due), StoreUpdate(START + DAY_S, repeats=(due.host_id, later)))
    (host,) = await hosts.load(store.database.reader, [due.host_id])
    assert host.repeats == later
    await store.new_run(START + 2 * DAY_S)
    assert (await store.taken("/a", START + 2 * DAY_S)).plain_at == START
