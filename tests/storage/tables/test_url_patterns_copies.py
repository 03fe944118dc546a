"""Patterns that give nothing but copies: the evidence, what it closes, and what opens it."""

import math
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.storage.entries import CopyFinding
from freshet.storage.records import Acknowledged, DueUrl, StoreUpdate
from freshet.storage.tables import url_patterns
from freshet.storage.tables.url_patterns import KIND, CopyRule, is_sampled, sampling
from freshet.storage.writer import VisitTables
from tests.storage.crawl_store import (
    START,
    CrawlStore,
    crawl_store,
    digest,
    targets,
    visit,
    writing,
)

PATTERN = "/list?sort"
RULE = CopyRule(urls=4, share=0.75)
#: Of the pages 3 to 22, where 1 and 2 are the two originals.
PATHS = [f"/list?sort={n}" for n in range(20)]


async def shop(store: CrawlStore) -> None:
    store.tables = VisitTables(store.run_id, RULE)
    await store.admit("/list", "/other")
    await find(store, *PATHS)


async def find(store: CrawlStore, *paths: str, depth: int = 1) -> None:
    found = targets(*paths, depth=depth, pattern=PATTERN)
    await store.apply(StoreUpdate(START, targets=found))


async def read(store: CrawlStore, path: str, original: str | None) -> Acknowledged:
    page_id = await store.page_id(path)
    original_id = None if original is None else await store.page_id(original)
    due = DueUrl(page_id, path, path, 1, START)
    finding = CopyFinding(page_id, PATTERN, original_id)
    (acknowledged,) = await store.apply(replace(visit(due), copies=(finding,)))
    return acknowledged


async def pattern(store: CrawlStore) -> tuple[str | None, int, int, float | None] | None:
    """The pattern, its pages read, the copies among them, and when it was closed."""
    page_id = await store.page_id(PATHS[0])
    found = await url_patterns.pattern_of(store.database.reader, page_id)
    return None if found is None else (found.shape, found.crawled, found.copies, found.closed_at)


async def held(store: CrawlStore) -> set[int]:
    return {r[0] for r in await store.rows("SELECT id FROM page WHERE held_back = ?", KIND)}


async def closed(store: CrawlStore) -> set[int]:
    """A shop whose pattern has proved to be copies; what is held back."""
    await shop(store)
    for path in PATHS[:4]:
        await read(store, path, "/list")
    return await held(store)


async def due_ids(store: CrawlStore) -> set[int]:
    return {due.page_id for due in await store.due()}


def test_what_is_asked_for_all_the_same_is_one_in_twenty() -> None:
    sampled = [n for n in range(20_000) if is_sampled(n)]
    assert len(sampled) == pytest.approx(1_000, rel=0.05)
    assert len({n % 7 for n in sampled}) == 7


def test_the_more_is_held_back_the_fewer_are_sampled() -> None:
    counts = (0, 599, 600, 1_199, 1_200, 5_000)
    assert [sampling(n) for n in counts] == [20, 20, 40, 40, 80, 320]


def test_of_what_has_no_end_ever_fewer_are_asked_for() -> None:
    refused = asked = 0
    for n in range(100_000):
        if is_sampled(n, refused):
            asked += 1
        else:
            refused += 1
    assert asked == pytest.approx(30 + 15 * math.log2(100_000 / 600), rel=0.15)


@pytest.mark.parametrize(
    ("urls", "read", "copied", "closes"),
    [(30, 30, 27, True), (30, 30, 26, False), (30, 29, 29, False), (0, 99, 99, False)],
)
def test_a_pattern_is_closed_by_enough_pages_nearly_all_copies(
    urls: int, read: int, copied: int, closes: bool
) -> None:
    assert CopyRule(urls, 0.9).closes(read, copied) is closes


async def test_a_pattern_of_copies_is_closed_and_its_urls_leave_the_frontier(
    store: CrawlStore,
) -> None:
    await shop(store)
    for path in PATHS[:3]:
        told = await read(store, path, "/list")
        assert told.withdrawn == ()
    told = await read(store, PATHS[3], "/list")
    ((host_id, withdrawn),) = told.withdrawn
    rest = {await store.page_id(path) for path in PATHS[4:]}
    assert (host_id, withdrawn) == (1, frozenset(i for i in rest if not is_sampled(i)))
    assert await held(store) == withdrawn
    assert not withdrawn & await due_ids(store)
    assert await pattern(store) == (PATTERN, 4, 4, START)
    assert await store.value("SELECT refused FROM trap") == len(withdrawn)


async def test_of_a_closed_pattern_new_urls_are_held_but_for_a_sample_and_what_was_named(
    store: CrawlStore,
) -> None:
    before = await closed(store)
    new = [f"/list?sort=new{n}" for n in range(100)]
    await find(store, *new)
    ids = {await store.page_id(path) for path in new}
    assert await held(store) - before == {i for i in ids if not is_sampled(i)}
    assert len(ids & await due_ids(store)) == len([i for i in ids if is_sampled(i)]) > 0
    await find(store, "/list?sort=named", depth=0)
    assert await store.page_id("/list?sort=named") in await due_ids(store)


async def test_pages_that_turn_out_to_differ_open_it_again(store: CrawlStore) -> None:
    withdrawn = await closed(store)
    await read(store, PATHS[0], None)
    assert await held(store) == withdrawn
    told = await read(store, PATHS[1], None)
    assert (set(told.supplied), told.admitted) == ({1}, len(withdrawn))
    assert await held(store) == set()
    assert withdrawn <= await due_ids(store)
    assert await pattern(store) == (PATTERN, 4, 2, None)
    assert await store.value("SELECT refused FROM trap") == 0


async def test_a_copy_that_changes_before_its_original_is_asked_stays_one(
    store: CrawlStore,
) -> None:
    await shop(store)
    await read(store, PATHS[0], "/list")
    await store.apply(visit(await store.taken("/list")))
    await store.new_run(START + 10)
    await read(store, PATHS[0], None)
    assert await pattern(store) == (PATTERN, 1, 1, None)
    original = await store.taken("/list", START + 10)
    await store.apply(visit(original, at=START + 11))
    await read(store, PATHS[0], None)
    assert await pattern(store) == (PATTERN, 1, 0, None)


async def read_barren(store: CrawlStore, path: str, *found: str, pattern: str | None) -> None:
    page_id = await store.page_id(path)
    finding = CopyFinding(page_id, PATTERN, await store.page_id("/list"), is_barren=True)
    due = DueUrl(page_id, path, path, 1, START)
    led_to = targets(*found, depth=2, pattern=pattern)
    await store.apply(replace(visit(due), copies=(finding,), targets=led_to))


async def test_a_barren_page_is_a_copy_unless_it_leads_to_new_pages(store: CrawlStore) -> None:
    await shop(store)
    await read_barren(store, PATHS[0], pattern=None)
    assert await pattern(store) == (PATTERN, 1, 1, None)
    await read_barren(store, PATHS[1], "/ware/1", pattern=None)
    assert await pattern(store) == (PATTERN, 2, 1, None)
    # It is known by now, and says no more for a page that leads there, too.
    await read_barren(store, PATHS[2], "/ware/1", pattern=None)
    assert await pattern(store) == (PATTERN, 3, 2, None)
    await read_barren(store, PATHS[3], "/list?sort=more", pattern=PATTERN)
    await read_barren(store, PATHS[4], "/list?sort=more&size=1", pattern="/list?size&sort")
    assert (await pattern(store)) == (PATTERN, 5, 4, START)


async def test_new_pages_of_a_pattern_that_gave_pages_are_worth_leading_to(
    store: CrawlStore,
) -> None:
    await shop(store)
    product = "/product?id"
    await store.apply(StoreUpdate(START, targets=targets("/product?id=1", pattern=product)))
    page_id = await store.page_id("/product?id=1")
    own = CopyFinding(page_id, product, None)
    due = DueUrl(page_id, "/product?id=1", "/product?id=1", 1, START)
    await store.apply(replace(visit(due), copies=(own,)))
    await read_barren(store, PATHS[0], "/product?id=2", pattern=product)
    assert await pattern(store) == (PATTERN, 1, 0, None)


async def test_a_page_stays_in_the_pattern_in_which_it_was_counted(store: CrawlStore) -> None:
    await shop(store)
    await read(store, PATHS[0], "/list")
    page_id = await store.page_id(PATHS[0])
    due = DueUrl(page_id, PATHS[0], PATHS[0], 1, START)
    elsewhere = CopyFinding(page_id, "/… (recurring values)", None)
    await store.apply(replace(visit(due), copies=(elsewhere,)))
    rows = await store.rows("SELECT shape, admitted, copies FROM trap")
    assert [tuple(row) for row in rows] == [(PATTERN, 1, 0)]


async def test_what_was_learnt_survives_a_restart(tmp_path: Path) -> None:
    async with crawl_store(tmp_path / "db") as store:
        withdrawn = await closed(store)
    async with crawl_store(tmp_path / "db") as store:
        assert await held(store) == withdrawn
        await find(store, "/list?sort=again0", "/list?sort=again1")
        assert len(await held(store) - withdrawn) == 2


async def test_another_rule_closes_and_opens_what_it_says(store: CrawlStore) -> None:
    withdrawn = await closed(store)
    for rule, expected in ((CopyRule(0), set()), (RULE, withdrawn), (CopyRule(5), set())):
        with writing(store.database) as connection:
            url_patterns.reconsider(connection, rule, START)
        assert await held(store) == expected


async def test_the_texts_of_a_host_are_those_of_its_first_pages(store: CrawlStore) -> None:
    await shop(store)
    for path in ("/list", "/other", PATHS[0]):
        page_id = await store.page_id(path)
        with writing(store.database) as connection:
            connection.execute(
                "UPDATE page SET text_digest = ?, last_kind = 'new' WHERE id = ?",
                (digest("t"), page_id),
            )
            connection.execute(
                "INSERT INTO version (page_id, at, body_digest, sketch) VALUES (?, 0, ?, ?)",
                (page_id, digest("b"), path.encode()),
            )
    found = await url_patterns.texts(store.database.reader, 1, 2)
    assert [(page_id, sketch) for page_id, _url, sketch in found] == [(1, b"/list"), (2, b"/other")]


_STEPS = st.lists(
    st.tuples(st.integers(0, 11), st.sampled_from(["/list", "/other", None])), max_size=25
)


@settings(max_examples=40)
@given(_STEPS, st.integers(1, 6), st.floats(0.3, 1.0))
async def test_after_any_history_counts_and_doors_are_as_the_pages_say(
    steps: Sequence[tuple[int, str | None]], least: int, share: float
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with crawl_store(Path(directory) / "db") as store:
            await shop(store)
            rule = CopyRule(least, share)
            store.tables = VisitTables(store.run_id, rule)
            for number, original in steps:
                await read(store, PATHS[number], original)
            found = await pattern(store)
            says = dict(steps)
            expected = [original is not None for original in says.values()]
            if not steps:
                assert found is None
                return
            assert found is not None
            _, pages_read, copies, closed_at = found
            assert (pages_read, copies) == (len(expected), sum(expected))
            assert (closed_at is not None) is rule.closes(pages_read, copies)
            never_asked = {
                r[0] for r in await store.rows("SELECT id FROM page WHERE last_at IS NULL")
            }
            rest = {i for i in never_asked if i > 2}
            shut = {i for i in rest if not is_sampled(i)} if closed_at else set()
            assert await held(store) == shut
            assert rest - shut <= await due_ids(store)
            assert await store.value("SELECT refused FROM trap") == len(shut)
