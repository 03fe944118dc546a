"""What the store keeps of pages that were no content, and of hosts of which many are."""

import re
from dataclasses import replace

import pytest

from freshet.crawler.extensions.alerts.recording import AlertRecorder
from freshet.crawler.extensions.alerts.tables import REJECTED, AlertFilter
from freshet.storage.records import Rejected, Validators, Visit
from freshet.storage.tables import hosts
from tests.storage.crawl_store import DAY_S, START, CrawlStore, captured, visit

RULE = AlertFilter("all", frozenset({REJECTED}), re.compile(".*"))


async def take(store: CrawlStore, path: str, at: float, kind: str | None = "soft_404") -> Visit:
    """Visit a page that is no content, or is content if ``kind`` is None."""
    due = await store.taken(path, at)
    if kind is None:
        seen = captured(due, f"text of {path}", at=at)
    else:
        failed = visit(due, "failed", at)
        reason = replace(failed.observation, reason=kind)
        since = due.rejected.since if due.rejected is not None else at
        seen = replace(
            failed, observation=reason, validators=Validators('"w"'),
            rejected=Rejected(b"digest", kind, since),
        )  # fmt: skip
    await store.apply(seen)
    return seen


async def crawled(store: CrawlStore, rejected: int, pages: int, kind: str = "soft_404") -> None:
    """Visit pages of a host, the first of which are no content."""
    paths = [f"/p{n}" for n in range(pages)]
    await store.admit(*paths)
    for n, path in enumerate(paths):
        await take(store, path, START + n, kind if n < rejected else None)


async def alerts_of(store: CrawlStore) -> list[str]:
    return [row[0] for row in await store.rows("SELECT kind FROM alert ORDER BY id")]


async def test_a_page_that_was_no_content_is_due_with_its_validators(store: CrawlStore) -> None:
    await store.admit("/a")
    seen = await take(store, "/a", START)
    await store.new_run(START + DAY_S)
    due = await store.taken("/a", START + DAY_S)
    assert (due.rejected, due.validators, due.digests) == (seen.rejected, Validators('"w"'), None)


async def test_a_page_that_is_content_again_is_not_rejected(store: CrawlStore) -> None:
    await store.admit("/a")
    await take(store, "/a", START)
    await store.new_run(START + DAY_S)
    await take(store, "/a", START + DAY_S, None)
    await store.new_run(START + 2 * DAY_S)
    assert (await store.taken("/a", START + 2 * DAY_S)).rejected is None


async def test_a_failure_to_fetch_leaves_what_is_known_of_the_page(store: CrawlStore) -> None:
    await store.admit("/a")
    seen = await take(store, "/a", START)
    await store.new_run(START + DAY_S)
    due = await store.taken("/a", START + DAY_S)
    await store.apply(visit(due, "failed", START + DAY_S))
    await store.new_run(START + 2 * DAY_S)
    assert (await store.taken("/a", START + 2 * DAY_S)).rejected == seen.rejected


async def test_runs_ask_for_a_block_page_that_stays_the_same_ever_more_rarely(
    store: CrawlStore,
) -> None:
    await store.admit("/a")
    await take(store, "/a", START)
    asked = []
    for day in range(1, 40):
        at = START + day * DAY_S
        await store.new_run(at)
        if "/a" in await store.due_paths(at):
            asked.append(day)
            await take(store, "/a", at)
    assert asked[:5] == [1, 2, 4, 8, 15]


async def test_runs_ask_for_a_page_that_needs_javascript_each_time(store: CrawlStore) -> None:
    await store.admit("/a")
    for day in range(6):
        at = START + day * DAY_S
        await store.new_run(at)
        assert await store.due_paths(at) == ["/a"]
        await take(store, "/a", at, "needs_javascript")


@pytest.mark.parametrize(
    ("rejected", "pages", "reported"),
    [
        (0, 5, False), (1, 1, False), (1, 5, False), (1, 20, False), (2, 2, False), (2, 10, False),
        (3, 3, True), (3, 10, True), (3, 60, True), (3, 99, True), (3, 100, False),
        (4, 120, True), (4, 134, False),
    ],
)  # fmt: skip
async def test_a_host_is_reported_from_three_pages_and_three_percent_on(
    store: CrawlStore, rejected: int, pages: int, reported: bool
) -> None:
    store.tables.recorders = [AlertRecorder((RULE,))]
    await crawled(store, 0, pages - rejected)
    paths = [f"/r{n}" for n in range(rejected)]
    await store.admit(*paths)
    for path in paths:
        await take(store, path, START + 200)
    found = await hosts.rejecting(store.database.reader)
    assert [(each.rejected, each.pages, each.mostly) for each in found] == (
        [(rejected, pages, "soft_404")] if reported else []
    )
    assert await alerts_of(store) == [REJECTED] * reported


async def test_pages_that_need_javascript_are_reported_by_themselves(store: CrawlStore) -> None:
    await crawled(store, 4, 6, "needs_javascript")
    assert await hosts.rejecting(store.database.reader) == []


async def test_of_one_host_there_is_one_alert_a_month(store: CrawlStore) -> None:
    store.tables.recorders = [AlertRecorder((RULE,))]
    await crawled(store, 5, 8)
    assert await alerts_of(store) == [REJECTED]
    for path, day in (("/p0", 10), ("/p1", 45), ("/p2", 50)):
        await store.new_run(START + day * DAY_S)
        store.tables.recorders = [AlertRecorder((RULE,))]
        await take(store, path, START + day * DAY_S)
    assert await alerts_of(store) == [REJECTED] * 2


async def test_a_rule_for_other_pages_or_kinds_gets_no_alert(store: CrawlStore) -> None:
    store.tables.recorders = [
        AlertRecorder(
            (
                AlertFilter("elsewhere", frozenset({REJECTED}), re.compile("https://other/.*")),
                AlertFilter("changes", frozenset({"changed"}), re.compile(".*")),
            )
        )
    ]
    await crawled(store, 5, 8)
    assert await alerts_of(store) == []


async def test_a_host_is_described_in_words(store: CrawlStore) -> None:
    await crawled(store, 5, 8)
    (found,) = await hosts.rejecting(store.database.reader)
    assert found.words == (f"5 of 8 pages of {found.origin} (62 %) are no content, mostly soft_404")
