"""Claims: kept where they moved, heard by whoever learns, never mixed with observations."""

from dataclasses import replace
from pathlib import Path

import pytest
from aiosqlite import IntegrityError
from hypothesis import given
from hypothesis import strategies as st

from freshet.storage.entries import CLAIM_KINDS, Claim, Claims, HeaderSigns, SourceReport
from freshet.storage.records import Alias, StoreUpdate
from freshet.storage.tables import claims, hosts
from freshet.storage.tables.claims import HeardClaim
from tests.storage.crawl_store import (
    DAY_S,
    SITE,
    START,
    CrawlStore,
    crawl_store,
    targets,
    url_of,
    visit,
    writing,
)

HOUR_S = 3_600.0


def exactly(**at: float) -> tuple[Claim, ...]:
    return tuple(Claim(url_of(f"/{path}"), time, time) for path, time in at.items())


async def poll(store: CrawlStore, said: tuple[Claim, ...], at: float) -> Claims:
    """The sitemap says this; what is heard of it."""
    due = replace(await store.taken("/map"), role="sitemap")
    own = SourceReport("sitemap", 1, due.url, said, page_id=due.page_id)
    (acknowledged,) = await store.apply(
        replace(visit(due, "changed", at), role="sitemap", said=own, retry_at=START)
    )
    return acknowledged.claims


def pinged(claims: tuple[Claim, ...], at: float) -> StoreUpdate:
    return StoreUpdate(at, said=SourceReport("ping", 1, SITE, claims))


def heard(found: Claims) -> list[tuple[int, float, float, float]]:
    columns = found.page_id, found.since, found.until, found.received_at
    return list(zip(*(column.tolist() for column in columns), strict=True))


async def test_a_claim_is_kept_where_it_moved(store: CrawlStore) -> None:
    await store.admit("/map", "/a", "/b")
    a, b = await store.page_id("/a"), await store.page_id("/b")
    first = await poll(store, exactly(a=1.0, b=2.0, unknown=3.0), START)
    assert heard(first) == [(a, 1.0, 1.0, START), (b, 2.0, 2.0, START)]
    again = await poll(store, exactly(a=1.0, b=2.0), START + 1)
    assert heard(again) == []
    moved = await poll(store, exactly(a=1.0, b=9.0), START + 2)
    assert heard(moved) == [(b, 9.0, 9.0, START + 2)]
    # Back to an earlier one is news as well: only the last word counts.
    back = await poll(store, exactly(b=2.0), START + 3)
    assert heard(back) == [(b, 2.0, 2.0, START + 3)]
    everything = await claims.load(store.database.reader)
    assert heard(everything) == heard(first) + heard(moved) + heard(back)
    assert {CLAIM_KINDS[code] for code in everything.kind} == {"sitemap"}


async def test_no_other_table_holds_what_was_claimed(store: CrawlStore) -> None:
    await store.admit("/map", "/a")
    await poll(store, exactly(a=1.0), START)
    assert await store.value("SELECT count(*) FROM observation") == 1
    assert await store.rows("SELECT last_kind FROM page WHERE url LIKE '%/a'") == [(None,)]


async def test_claims_are_never_changed(store: CrawlStore) -> None:
    await store.admit("/map", "/a")
    await poll(store, exactly(a=1.0), START)
    for change in ("UPDATE claim SET since = 0", "DELETE FROM claim"):
        with pytest.raises(IntegrityError, match="append-only"), writing(store.database) as it:
            it.execute(change)


async def test_sources_tell_what_they_have_said(store: CrawlStore) -> None:
    await store.admit("/map", "/a", "/b")
    await poll(store, exactly(a=1.0, b=2.0), START)
    await poll(store, exactly(a=5.0, b=2.0), START + DAY_S)
    seen = replace(
        visit(await store.taken("/a"), at=START + DAY_S + 1),
        said=SourceReport("last_modified", 1, None, exactly(a=4.0), rejected=2),
    )
    await store.apply(seen)
    header, sitemap = await claims.sources(store.database.reader)
    assert (header.kind, header.url, header.polls, header.rejected) == (
        "last_modified", SITE, None, 2,
    )  # fmt: skip
    assert (sitemap.kind, sitemap.url, sitemap.host) == (
        "sitemap", url_of("/map"), SITE,
    )  # fmt: skip
    assert (sitemap.polls, sitemap.polled_at) == (2, START + DAY_S)
    assert (sitemap.entries, sitemap.moved) == (2, 1)
    assert await claims.sources(store.database.reader, 99) == []


async def test_a_source_that_says_nothing_new_is_known_all_the_same(store: CrawlStore) -> None:
    await store.admit("/map")
    assert heard(await poll(store, (), START)) == []
    (source,) = await claims.sources(store.database.reader)
    assert (source.polls, source.entries, source.said_at) == (1, 0, None)


async def test_sources_of_one_page_do_not_speak_for_each_other(store: CrawlStore) -> None:
    await store.admit("/map", "/a")
    await poll(store, exactly(a=1.0), START)
    ping = pinged(exactly(a=1.0), START + 1)
    (acknowledged,) = await store.apply(ping)
    assert len(acknowledged.claims) == 1
    assert CLAIM_KINDS[acknowledged.claims.kind[0]] == "ping"


async def test_an_announcement_may_bring_new_pages(store: CrawlStore) -> None:
    await store.admit("/")
    said = SourceReport("websub", 1, url_of("/feed"), exactly(new=START))
    news = StoreUpdate(START, targets=targets("/new"), said=said)
    (acknowledged,) = await store.apply(news)
    page_id = await store.page_id("/new")
    assert acknowledged.pages == (page_id,)
    assert heard(acknowledged.claims) == [(page_id, START, START, START)]
    assert "/new" in await store.due_paths()


async def test_a_claim_on_a_url_that_moved_for_good_is_one_on_its_target(store: CrawlStore) -> None:
    await store.admit("/map", "/old", "/new")
    old, new = await store.page_id("/old"), await store.page_id("/new")
    first = await poll(store, exactly(old=1.0), START)
    assert first.page_id.tolist() == [old]
    moved = visit(await store.taken("/old"), "redirected")
    await store.apply(replace(moved, alias=Alias(url_of("/new"), "permanent")))
    assert (await claims.load(store.database.reader)).page_id.tolist() == [new]
    assert (await poll(store, exactly(old=2.0), START + 1)).page_id.tolist() == [new]


async def test_claims_are_heard_by_our_clock_and_never_of_the_future(store: CrawlStore) -> None:
    await store.admit("/map", "/a", "/b")
    hour_fast = HeaderSigns(skew_s=HOUR_S)
    due = await store.taken("/a")
    await store.apply(replace(visit(due), signs=hour_fast, retry_at=START))
    said = (
        Claim(url_of("/a"), START + HOUR_S - 60, START + HOUR_S - 60),
        Claim(url_of("/b"), START, START + DAY_S),
    )
    times = [each[1:] for each in heard(await poll(store, said, START))]
    assert times == [(START - 60, START - 60, START), (START - HOUR_S, START, START)]
    # The record is what was said, so that the same words are no news by another skew.
    await store.apply(replace(visit(due), signs=HeaderSigns(skew_s=0.0), retry_at=START))
    assert heard(await poll(store, said, START + 1)) == []
    assert await store.value("SELECT max(until) FROM claim") == START + DAY_S
    # What is pushed is timed by us.
    await store.apply(replace(visit(due), signs=hour_fast, retry_at=START))
    ping = pinged(exactly(a=START), START)
    (acknowledged,) = await store.apply(ping)
    assert acknowledged.claims.since.tolist() == [START]


async def test_what_each_source_said_last_can_be_told(store: CrawlStore) -> None:
    await store.admit("/map", "/a")
    for at in (1.0, 2.0):
        await poll(store, exactly(a=at), START + at)
    await store.apply(pinged(exactly(a=9.0), START + 9))
    told = await claims.last_words(store.database.reader, await store.page_id("/a"), 5)
    assert told == [
        HeardClaim("ping", SITE, 9.0, 9.0, START + 9),
        HeardClaim("sitemap", url_of("/map"), 2.0, 2.0, START + 2),
    ]


async def test_many_claims_at_once_are_all_kept(tmp_path: Path) -> None:
    paths = [f"p{i}" for i in range(12_000)]
    async with crawl_store(tmp_path / "db") as store:
        await store.admit("/map", *(f"/{path}" for path in paths))
        said = exactly(**dict.fromkeys(paths, 1.0))
        assert len(await poll(store, said, START)) == len(paths)
        changed = exactly(**dict.fromkeys(paths, 1.0) | {"p7": 2.0, "p11999": 2.0})
        assert len(await poll(store, changed, START + 1)) == 2


async def test_a_batch_is_heard_once(store: CrawlStore) -> None:
    await store.admit("/a", "/b")
    first, second = (pinged(exactly(a=at, b=1.0), START + at) for at in (1.0, 2.0))
    one, other = await store.apply(first, second)
    assert len(one.claims) == 0
    assert other.claims.since.tolist() == [2.0, 1.0]


async def test_a_batch_that_fails_keeps_no_claim(store: CrawlStore) -> None:
    await store.admit("/map", "/a")
    ping = pinged(exactly(a=1.0), START)
    bad = pinged((object(),), START)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        await store.apply(ping, bad)
    assert len(await claims.load(store.database.reader)) == 0


@pytest.mark.parametrize(("since", "until"), [(2.0, 1.0), (0.0, float("inf")), (float("nan"), 1.0)])
def test_a_claim_is_of_some_time(since: float, until: float) -> None:
    with pytest.raises(ValueError, match="no time"):
        Claim(SITE, since, until)


async def test_what_headers_show_is_counted(store: CrawlStore) -> None:
    await store.admit("/a")
    signs = [
        HeaderSigns(3.0, True, None, None), HeaderSigns(4.0, False, True, True),
        HeaderSigns(None, None, True, False), HeaderSigns(None, None, False, True),
        HeaderSigns(5.0, None, False, False),
    ]  # fmt: skip
    due = await store.taken("/a")
    await store.apply(
        *(replace(visit(due), signs=each, wish_s=60.0, retry_at=START) for each in signs)
    )
    await store.apply(replace(visit(due, "failed"), retry_at=START))
    (found,) = await hosts.load_signals(store.database.reader)
    assert found == hosts.HostSignals(SITE, 3, 5.0, 1, 1, 2, 1, 1)
    assert await store.value("SELECT wish_s FROM page") == 60.0


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), max_size=3), max_size=5))
def test_what_is_heard_leads_from_what_is_known_to_what_was_said(
    polls: list[dict[str, int]],
) -> None:
    """Whoever hears all claims knows the last word of the source on every page."""
    from asyncio import run
    from tempfile import TemporaryDirectory

    async def told() -> None:
        with TemporaryDirectory() as directory:
            async with crawl_store(Path(directory) / "db") as store:
                await store.admit("/map", "/a", "/b", "/c")
                names = {await store.page_id(f"/{name}"): name for name in "abc"}
                said: dict[str, float] = {}
                known: dict[str, float] = {}
                for number, each in enumerate(polls):
                    new = await poll(
                        store, exactly(**{k: float(v) for k, v in each.items()}), START + number
                    )
                    said.update(each)
                    for page_id, since, _, _ in heard(new):
                        assert known.get(names[page_id]) != since
                        known[names[page_id]] = since
                    assert known == said

    run(told())
