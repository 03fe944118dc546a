"""Tables link and offsite_link: between which times a page linked where."""

from dataclasses import replace
from pathlib import Path

import pytest

from freshet.storage.entries import Role
from freshet.storage.records import Digests, Links
from freshet.storage.tables import links as link_tables
from freshet.storage.tables import pages
from tests.storage.crawl_store import (
    SITE,
    START,
    CrawlStore,
    captured,
    crawl_store,
    digest,
    links,
    redirected,
    url_of,
    visit,
)

ELSEWHERE = "https://b.example/"
INSIDE = (
    "SELECT first_seen_at, last_seen_at, gone_at FROM link JOIN page ON id = dst_id WHERE url = ?"
)
OFFSITE = "SELECT first_seen_at, last_seen_at, gone_at FROM offsite_link WHERE url = ?"


async def captures(store: CrawlStore, *contents: tuple[str, ...]) -> None:
    """Captures of /, ten seconds apart, with these links."""
    await store.admit("/")
    due = await store.taken("/")
    for i, paths in enumerate(contents):
        inside = [path for path in paths if "://" not in path]
        offsite = [path for path in paths if "://" in path]
        seen = captured(due, str(i), at=START + 10 * i, to=inside, offsite=offsite)
        await store.apply(seen)
        due = replace(due, digests=Digests(digest(str(i)), None))


@pytest.mark.parametrize(("target", "query"), [("/x", INSIDE), (ELSEWHERE, OFFSITE)])
async def test_a_link_appears_disappears_and_reappears(
    tmp_path: Path, target: str, query: str
) -> None:
    async with crawl_store(tmp_path / "db") as store:
        await captures(store, ("/y", target))
        assert await store.rows(query, url_of(target)) == [(START, START, None)]
    async with crawl_store(tmp_path / "db2") as store:
        await captures(store, ("/y", target), ("/y",), ("/y",))
        assert await store.rows(query, url_of(target)) == [(START, START, START + 10)]
        assert await store.rows(INSIDE, url_of("/y")) == [(START, START + 20, None)]
    async with crawl_store(tmp_path / "db3") as store:
        await captures(store, ("/y", target), ("/y",), ("/y", target))
        assert await store.rows(query, url_of(target)) == [(START, START + 20, None)]


async def test_a_page_that_is_not_parsed_keeps_its_links(store: CrawlStore) -> None:
    await captures(store, ("/x",))
    due = replace(await store.taken("/x"), page_id=await store.page_id("/"))
    await store.apply(visit(due, "unchanged", START + 10))
    await store.apply(visit(due, "failed", START + 20))
    assert await store.rows(INSIDE, url_of("/x")) == [(START, START, None)]


async def test_a_link_says_where_it_stands_and_what_it_is_called(store: CrawlStore) -> None:
    await store.admit("/")
    found = Links(
        (url_of("/a"), ELSEWHERE, url_of("/b")), (url_of("/a"), ELSEWHERE, url_of("/b")),
        ("next", "nofollow", ""), ("A", "Elsewhere", "B"),
    )  # fmt: skip
    seen = captured(await store.taken("/"), to=["/a", "/b"])
    await store.apply(replace(seen, links=found, offsite=frozenset({1})))
    assert await store.rows(
        "SELECT url, l.position, rel, anchor FROM link AS l JOIN page ON id = dst_id"
    ) == [(url_of("/a"), 0, "next", "A"), (url_of("/b"), 2, "", "B")]
    assert await store.rows("SELECT url, position, rel, anchor FROM offsite_link") == [
        (ELSEWHERE, 1, "nofollow", "Elsewhere")
    ]


async def test_a_page_may_link_to_itself_and_to_pages_of_the_same_batch(store: CrawlStore) -> None:
    await store.admit("/", "/a")
    home, other = await store.taken("/"), await store.taken("/a")
    await store.apply(captured(home, to=["/", "/new"]), captured(other, to=["/", "/new"]))
    assert await store.value("SELECT count(*) FROM link") == 4


async def test_only_the_links_of_the_parsed_page_are_retired(store: CrawlStore) -> None:
    await store.admit("/", "/a")
    home, other = await store.taken("/"), await store.taken("/a")
    await store.apply(captured(home, to=["/x"]), captured(other, to=["/x"]))
    await store.apply(captured(home, "2", at=START + 10))
    assert await store.rows("SELECT src_id, gone_at FROM link ORDER BY src_id") == [
        (home.page_id, START + 10),
        (other.page_id, None),
    ]


async def test_the_link_of_an_offsite_redirect_goes_with_the_redirect(store: CrawlStore) -> None:
    await store.admit("/")
    due = await store.taken("/")
    away = replace(visit(due, "redirected"), links=links(ELSEWHERE), offsite=frozenset({0}))
    await store.apply(away)
    await store.apply(captured(due, at=START + 10, to=["/x"]))
    assert await store.rows(OFFSITE, ELSEWHERE) == [(START, START, START + 10)]


async def test_a_clock_that_was_set_back_does_not_keep_links_alive(store: CrawlStore) -> None:
    await captures(store, ("/x",))
    due = replace(await store.taken("/x"), page_id=await store.page_id("/"))
    await store.apply(captured(due, "earlier", at=START - 3600))
    assert await store.rows(INSIDE, url_of("/x")) == [(START, START, START - 3600)]


async def test_a_link_to_an_alias_leads_on_to_the_page(store: CrawlStore) -> None:
    await captures(store, ("/old",))
    await store.apply(redirected(await store.taken("/old"), "/new"))
    assert await store.rows(
        "SELECT a.page_url FROM link JOIN page AS p ON p.id = dst_id "
        "JOIN alias AS a ON a.url = p.url"
    ) == [(url_of("/new"),)]


async def test_what_a_page_lists_out_of_scope_is_found_by_origin(store: CrawlStore) -> None:
    stranger = "https://a.example.net/"
    await captures(store, (ELSEWHERE, stranger, f"{ELSEWHERE}gone"), (ELSEWHERE, stranger))
    reader = store.database.reader
    listed = await link_tables.offsite_at(reader, f"{SITE}/", "https://b.example")
    assert listed == [(ELSEWHERE, 0)]
    assert await link_tables.offsite_at(reader, f"{SITE}/", SITE) == []


async def test_what_a_redirect_leads_to_lists_for_it_as_well(store: CrawlStore) -> None:
    await captures(store, (ELSEWHERE,))
    await store.admit("/old")
    await store.apply(redirected(await store.taken("/old"), "/"))
    listed = await link_tables.offsite_at(store.database.reader, url_of("/old"), ELSEWHERE[:-1])
    assert listed == [(ELSEWHERE, 0)]


async def test_the_sources_of_a_sitemap_are_redirects_and_indexes(store: CrawlStore) -> None:
    """Not the pages that link to it, nor indexes that do no longer."""
    for path in ("/index", "/was", "/page", "/s", "/t", "/old"):
        await store.admit(path)
    for path, to in (("/index", "/old"), ("/was", "/old"), ("/page", "/s")):
        role: Role = "page" if path == "/page" else "sitemap"
        due = await store.taken(path)
        await store.apply(replace(captured(due, to=[to]), role=role))
    due = replace(due, page_id=await store.page_id("/was"))
    await store.apply(replace(captured(due, "anew", at=START + 10, to=["/page"]), role="sitemap"))
    await store.apply(redirected(await store.taken("/old"), "/t"))
    await store.apply(redirected(await store.taken("/t"), "/s"))
    found = await pages.sources(store.database.reader, await store.page_id("/s"))
    assert {each.url for each in found} == {url_of(path) for path in ("/t", "/old", "/index")}
    assert {(each.is_seed, each.robots) for each in found} == {(False, b"")}
