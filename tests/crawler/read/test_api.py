"""The routes of /v1: every answer is as it is described, and costs no more than it must."""

import asyncio
import gzip
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from hashlib import blake2b
from math import inf
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote
from xml.etree import ElementTree as ET

import aiohttp
import pytest
import zstandard
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families
from yarl import URL

from freshet.crawler.errors import CrawlError, ParserLost
from freshet.crawler.extensions.identity.agent import WELL_KNOWN
from freshet.crawler.extensions.identity.keys import new_key, write_new
from freshet.crawler.extensions.search import tables as search
from freshet.crawler.extensions.search.building import index_pending
from freshet.crawler.read.api import StoreApi
from freshet.crawler.read.documents import Documents
from freshet.crawler.reduce.parser_process import Parser
from freshet.crawler.service import http
from freshet.crawler.service.http import Health, HttpServer
from freshet.crawler.service.metrics import process_metrics
from freshet.storage import maintenance
from freshet.storage.maintenance import Retention
from freshet.storage.records import Digests
from freshet.storage.tables.runs import SiteSetting, put_site_setting
from tests.crawler.service.described import DESCRIPTION, route_of, undescribed
from tests.integration.quick import quick
from tests.storage.crawl_store import DAY_S, START, CrawlStore, captured, crawl_store, url_of, visit
from tests.storage.small_store import rows
from tests.storage.versioned_store import html

TOKEN = "0123456789abcdef"
FEED = "/v1/changefeed"
SEARCH = "/v1/search"
LINKED = {"presentation__record": True, "presentation__links": True}
Told: TypeAlias = tuple[int, Mapping[str, str], str]
Ask: TypeAlias = Callable[..., Awaitable[Told]]


def page_path(path: str) -> str:
    return f"/v1/pages/{quote(url_of(path), safe='')}"


class Site:
    """A store that is served, and a client that holds all answers against the description."""

    def __init__(self, store: CrawlStore, url: str, client: aiohttp.ClientSession) -> None:
        self.store, self.url, self.client = store, url, client
        self.seen = set[tuple[str, int]]()
        self.used = set[tuple[str, str]]()

    async def ask(self, path: str, method: str = "GET", **headers: str) -> Told:
        target = URL(self.url + path, encoded=True)
        async with self.client.request(
            method, target, headers=headers, allow_redirects=False
        ) as response:
            body = await response.text()
            if method == "GET":
                told = response.status, response.content_type, body
                assert undescribed(target.raw_path, *told) == []
            self.seen.add((route_of(target.raw_path), response.status))
            self.used |= {(route_of(target.raw_path), name) for name in target.query}
            return response.status, response.headers, body

    async def json(self, path: str, **headers: str) -> Any:
        status, _, body = await self.ask(path, **headers)
        assert status == 200, body
        return json.loads(body)

    async def seq(self) -> str:
        return str((await self.json(FEED + "?since=now"))["last_seq"])

    async def shows(self, path: str, body: bytes, *, at: float = START, **what: Any) -> None:
        """Let a page show these bytes."""
        await self.store.admit(path, at=at)
        await self.store.new_run(at, recheck_before=at + 1)
        seen = captured(await self.store.taken(path, at), at=at)
        known = blake2b(body, digest_size=16).digest()
        assert seen.capture is not None
        capture = replace(
            seen.capture, digests=Digests(known, known), size_bytes=len(body), title="T",
            body=zstandard.compress(body), content_type="text/html", **what,
        )  # fmt: skip
        await self.store.apply(replace(seen, capture=capture))

    async def link(self) -> str:
        """Search, and return the link to the first page."""
        return str((await self.json(f"{SEARCH}?q=page"))["results"][0]["open"])

    async def indexes(self) -> None:
        """Make the search index."""
        await self.store.database.write(search.create)
        await index_pending(self.store.database, parser := Parser())
        await parser.close()

    async def loses(self, path: str, at: float = START + 1) -> None:
        await self.store.new_run(at, recheck_before=at + 1)
        await self.store.apply(visit(await self.store.taken(path, at), "gone", at))


@asynccontextmanager
async def serving(path: Path, **settings: object) -> AsyncIterator[str]:
    """Serve a store; yield its address."""
    found = quick(**settings)

    async def health() -> Health:
        return ([] if path.exists() else ["it is away"]), {"version": "1"}

    api = StoreApi(path, found)
    server = HttpServer(found.operation, health, process_metrics("1"), api.routes)
    try:
        yield (await server.open("127.0.0.1", 0)).rstrip("/")
    finally:
        await server.close()
        await api.close()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A store with three pages, of which one is gone."""
    path = tmp_path / "crawl.db"
    async with (
        crawl_store(path) as store,
        serving(path) as url,
        aiohttp.ClientSession(
            auto_decompress=False, headers={"Accept-Encoding": "identity"}
        ) as client,
    ):
        it = Site(store, url, client)
        await it.shows("/a", html("The first page of all says this in a sentence.", "Second."))
        await it.shows("/b?c=d", html("Another page, which has a query in its URL."))
        await it.shows("/gone", html("This page will not be there for long."))
        await it.loses("/gone")
        yield it


async def test_every_described_route_parameter_and_status_is_as_described(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor = await site.seq()
    a, open_address = page_path("/a"), site.url
    assert "`freshet search --index on`" in (await site.ask(f"{SEARCH}?q=page"))[2]
    await site.indexes()
    feed = SiteSetting("a.example", "feed", "secret", START)
    await site.store.database.write(lambda db: put_site_setting(db, feed))
    for path in (
        "/healthz", "/metrics", "/v1/openapi.json", "/v1/changefeed.atom", "/feeds/secret",
        f"{FEED}?since={cursor}&limit=1&include_docs=false&filter=*a&all=true&heartbeat=100",
        f"{FEED}?since=0&limit=3&include_docs=true&feed=continuous",
        f"{FEED}?feed=longpoll", f"{FEED}?usage=ai-train,search",
        "/v1/pages", "/v1/pages?prefix=h&after=h&limit=1", a,
        f"{a}?format=markdown&version=1", f"{a}?format=text&as_of=2099-01-01", f"{a}?format=html",
        f"{FEED}?chunks=true&chunk_chars=200", f"{a}?chunks=true&chunk_chars=300",
        f"{SEARCH}?q=page+sentence&site=a.example&since=2027-01-01&limit=9&offset=0",
        f"{SEARCH}?q=page&by_importance=true",
    ):  # fmt: skip
        status, headers, _ = await site.ask(path)
        assert status == 200, path
        if etag := headers.get("ETag"):
            assert (await site.ask(path, **{"If-None-Match": etag}))[0] == 304
    for path in (f"{FEED}?since=x", "/v1/pages?limit=0", f"{a}?format=pdf", SEARCH,
            f"{a}?chunks=true&format=text", f"{FEED}?chunk_chars=199",
            f"{FEED}?usage=all",
        ):  # fmt: skip
        assert (await site.ask(path))[0] == 400
    for path in (page_path("/unknown"), f"/o/{7:016x}", "/feeds/another", WELL_KNOWN):
        assert (await site.ask(path))[0] == 404
    async with serving(site.store.database.path, **LINKED) as site.url:
        assert (await site.ask(await site.link()))[0] == 302
    site.url = open_address
    assert (await site.ask(f"{FEED}?since=0123456789abcdef-1"))[0] == 410
    await site.ask("/metrics", Accept="application/openmetrics-text")
    async with serving(site.store.database.path, operation__token=TOKEN) as site.url:
        for path in ("/metrics", "/v1/openapi.json", FEED, f"{FEED}.atom", "/v1/pages", a, SEARCH):
            status, headers, _ = await site.ask(path)
            assert (status, headers["WWW-Authenticate"]) == (401, 'Bearer realm="freshet"')
        assert (await site.ask("/healthz"))[0] == 200
    key = site.store.database.path.with_name("keys.json")
    address = f"https://bot.example{WELL_KNOWN}"
    signs = {"identity__directory": address, "identity__key": str(key)}
    async with serving(site.store.database.path, **signs) as site.url:
        assert (await site.ask(WELL_KNOWN))[0] == 503
        write_new(key, [new_key(START)])
        assert (await site.ask(WELL_KNOWN))[0] == 200
    async with serving(Path("/nowhere/crawl.db"), **LINKED) as site.url:
        link = f"/o/{7:016x}"
        for path in ("/healthz", FEED, f"{FEED}.atom", "/v1/pages", a, f"{SEARCH}?q=page", link,
            "/feeds/secret",
        ):  # fmt: skip
            assert (await site.ask(path))[0] == 503
    site.url = open_address
    paths = DESCRIPTION["paths"].items()
    assert site.seen == {(path, int(s)) for path, told in paths for s in told["get"]["responses"]}
    assert site.used == {
        (path, each["name"])
        for path, told in paths
        for each in told["get"].get("parameters", ())
        if each["in"] == "query"
    }


async def test_a_normal_feed_is_read_to_its_end_by_its_cursors(site: Site) -> None:
    first = await site.json(f"{FEED}?limit=2")
    rest = await site.json(f"{FEED}?since={first['last_seq']}")
    told = [*first["results"], *rest["results"]]
    assert [each["id"] for each in told] == [url_of("/a"), url_of("/b?c=d"), url_of("/gone")]
    assert [each.get("deleted") for each in told] == [None, None, True]
    assert (await site.json(f"{FEED}?since={rest['last_seq']}"))["results"] == []
    matching = await site.json(f"{FEED}?filter=*%3Fc=d&include_docs=true")
    assert [each["doc"]["markdown"] for each in matching["results"]] == [
        "# Heading\n\nAnother page, which has a query in its URL."
    ]


@pytest.mark.parametrize("feed", ["longpoll", "continuous"])
async def test_a_waiting_feed_sends_heartbeats_and_then_the_change(site: Site, feed: str) -> None:
    url = f"{site.url}{FEED}?since=now&feed={feed}&heartbeat=100"
    async with site.client.get(url) as response:
        assert response.status == 200
        assert [await response.content.readline() for _ in range(2)] == [b"\n", b"\n"]
        await site.shows("/new", html("A page that was not there before."))
        lines = list[bytes]()
        while not lines or b"/new" not in lines[-1]:
            lines.append(await response.content.readline())
        if feed == "longpoll":
            told = json.loads(b"".join(lines) + await response.content.read())
            (entry,) = told["results"]
            assert told["last_seq"] == entry["seq"]
        else:
            entry = json.loads(lines[-1])
            await site.shows("/newer", html("One more page that was not there before."))
            while b"/newer" not in lines[-1]:
                lines.append(await response.content.readline())
    assert entry["change"]["kind"] == "new"


async def test_a_continuous_feed_ends_with_its_limit_or_with_an_error(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, body = await site.ask(f"{FEED}?feed=continuous&limit=2")
    assert len(body.splitlines()) == 2

    async def lost(*_: object) -> None:
        raise ParserLost("it ended")

    monkeypatch.setattr(Parser, "document", lost)
    async with site.client.get(f"{site.url}{FEED}?feed=continuous&include_docs=true") as response:
        assert "made now (it ended)" in json.loads(await response.read())["reason"]
    async with site.client.get(f"{site.url}{FEED}?include_docs=true") as response:
        assert (response.status, response.headers["Retry-After"]) == (503, "5")


async def test_a_cursor_older_than_what_is_kept_is_gone_and_says_how_to_start_anew(
    site: Site,
) -> None:
    cursor = await site.seq()
    await site.loses("/a")
    rules = Retention(10, inf, deletion_age_s=30 * DAY_S)
    await maintenance.prune(site.store.database, rules, START + 40 * DAY_S)
    status, _, body = await site.ask(f"{FEED}?since={cursor}")
    assert (status, json.loads(body)["error"]) == (410, "gone")
    assert "empty your copy, and start anew at 0 (since=0)" in json.loads(body)["reason"]
    assert (await site.ask(f"{FEED}?since=0"))[0] == 200


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("sinc=0", "sinc is not a parameter; accepted are since, limit, feed,"),
        ("limit=1&limit=2", "limit is given twice"),
        ("limit=10001", "limit=10001: accepted are whole numbers from 1 to 10000"),
        ("limit=1001&include_docs=true", "limit=1001: at most 1000 with documents"),
        ("limit=1e3", "limit=1e3: accepted are whole numbers"),
        ("feed=eventsource", "accepted are normal, longpoll, continuous"),
        ("include_docs=1", "accepted are true, false"),
        ("since=yesterday", "'yesterday' is no cursor; accepted are 0, now"),
    ],
)
async def test_wrong_parameters_are_refused_with_those_accepted(
    site: Site, query: str, reason: str
) -> None:
    status, _, body = await site.ask(f"{FEED}?{query}")
    assert (status, json.loads(body)["error"]) == (400, "bad_request")
    assert reason in json.loads(body)["reason"]


async def test_a_search_answers_with_pages_snippets_and_what_the_index_lacks(site: Site) -> None:
    await site.indexes()
    await site.shows("/new", html("A page that is not indexed yet."))
    told = await site.json(f"{SEARCH}?q=page+sentence")
    assert (told["query"], told["indexed"], told["not_indexed"]) == ("page sentence", 2, 1)
    first, second = told["results"]
    assert (first["url"], first["is_partial"]) == (url_of("/a"), False)
    assert (second["url"], second["is_partial"]) == (url_of("/b?c=d"), True)
    marked = [first["snippet"][begin:end] for begin, end in first["marks"]]
    assert marked == ["page", "sentence"]
    assert first["changed_at"] == "2027-01-15T08:00:00.000000Z"
    for query, reason in (
        ("q=-page", "'-page': it names no word to look for"),
        ("q=a&since=soon", "changed: soon: not a moment; accepted are 90min"),
        ("q=a&site=%3F", "site:?: not a host such as example.org"),
        ("q=a&limit=0", "limit=0: accepted are whole numbers from 1 to 1000"),
    ):
        status, _, body = await site.ask(f"{SEARCH}?{query}")
        assert (status, reason in body) == (400, True), body


async def test_a_link_notes_the_opening_once_leads_on_and_needs_no_token(site: Site) -> None:
    await site.indexes()
    path = site.store.database.path
    assert "open" not in (await site.json(f"{SEARCH}?q=page"))["results"][0]
    async with serving(path, operation__token=TOKEN, **LINKED) as site.url:
        told = await site.json(f"{SEARCH}?q=page", Authorization=f"Bearer {TOKEN}")
        first, second = told["results"]
        for method, headers, opened in (
            ("HEAD", {}, 0), ("GET", {"Sec-Purpose": "prefetch;prerender"}, 0),
            ("GET", {"Purpose": "prefetch"}, 0), ("GET", {}, 1), ("GET", {}, 1),
        ):  # fmt: skip
            status, answered, body = await site.ask(second["open"], method, **headers)
            assert (status, body, answered["Location"]) == (302, "", second["url"])
            assert (answered["Cache-Control"], answered["Referrer-Policy"]) == (
                "no-store", "no-referrer",
            )  # fmt: skip
            noted = "SELECT place, promoted, opened_at IS NOT NULL FROM showing ORDER BY place"
            assert rows(path, noted) == [(1, 0, 0), (2, 0, opened)]
        for wrong in ("/o/1", f"/o/{'f' * 17}", f"/o/{'0' * 15}G", f"/o/{'f' * 16}"):
            assert (await site.ask(wrong))[0] == 404
        assert first["open"] != second["open"]


# -- pages -------------------------------------------------------------------


async def test_a_page_is_read_by_its_encoded_url_in_every_form(site: Site) -> None:
    told = await site.json(page_path("/b?c=d"))
    assert told["url"] == url_of("/b?c=d")
    _, headers, body = await site.ask(page_path("/b?c=d") + "?format=markdown")
    assert headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert headers["Content-Location"] == page_path("/b?c=d")
    assert body == told["markdown"] + "\n"
    _, headers, body = await site.ask(page_path("/b?c=d") + "?format=html")
    assert ("<p>" in body, "sandbox" in headers["Content-Security-Policy"]) == (True, True)
    # As it is: without a query it cannot be mistaken.
    assert (await site.json(f"/v1/pages/{url_of('/a')}"))["url"] == url_of("/a")
    status, _, body = await site.ask(f"/v1/pages/{url_of('/b')}?c=d")
    assert (status, "c is not a parameter" in body) == (400, True)


async def test_older_versions_are_read_by_number_and_date_while_they_are_kept(site: Site) -> None:
    await site.shows("/a", html("The page says something else now."), at=START + DAY_S)
    old = await site.json(page_path("/a") + "?version=1")
    assert "first page" in old["markdown"]
    assert (await site.json(page_path("/a")))["version"] == 2
    assert (await site.json(page_path("/a") + "?version=-2")) == old
    # START is 2027-01-15.
    assert (await site.json(page_path("/a") + "?as_of=2027-01-15T23:00Z")) == old
    for query, status in (
        ("version=9", 404), ("as_of=1999-01-01", 404), ("as_of=then", 400), ("version=x", 400),
        ("as_of=2027-01-15&version=1", 400), ("as_of=1", 400),
    ):  # fmt: skip
        assert (await site.ask(f"{page_path('/a')}?{query}"))[0] == status, query
    await site.store.database.write(lambda db: db.execute("DELETE FROM body"))
    assert "not kept" in (await site.json(page_path("/a")))["missing"]
    status, _, body = await site.ask(page_path("/a") + "?format=text")
    assert (status, "not kept" in body) == (404, True)


async def test_pages_are_listed_in_order_a_part_at_a_time(site: Site) -> None:
    first = await site.json("/v1/pages?limit=2")
    rest = await site.json(f"/v1/pages?limit=2&after={first['after'].replace('?', '%3F')}")
    assert [each["url"] for each in first["pages"] + rest["pages"]] == [
        url_of("/a"), url_of("/b?c=d"), url_of("/gone"),
    ]  # fmt: skip
    assert rest["after"] is None
    assert [each["has_document"] for each in rest["pages"]] == [False]
    only = await site.json(f"/v1/pages?prefix={url_of('/b')}")
    assert [each["url"] for each in only["pages"]] == [url_of("/b?c=d")]


async def test_what_is_unchanged_is_304_and_a_page_is_not_made(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, headers, _ = await site.ask(page_path("/a"))
    etag = headers["ETag"]

    def unexpected(*_: object) -> None:
        raise AssertionError("a document was made")

    with monkeypatch.context() as patch:
        patch.setattr(Documents, "read", unexpected)
        for given in (etag, f'"x", W/{etag}', "*"):
            status, headers, body = await site.ask(page_path("/a"), **{"If-None-Match": given})
            assert (status, headers["ETag"], body) == (304, etag, "")
    forms = [
        (await site.ask(page_path("/a") + f"?format={f}"))[1]["ETag"] for f in ("text", "html")
    ]
    assert len({etag, *forms}) == 3
    feed = f"{FEED}?since={await site.seq()}"
    news = (await site.ask(feed))[1]["ETag"]
    assert (await site.ask(feed, **{"If-None-Match": news}))[0] == 304
    await site.shows("/a", html("The page says something else now."), at=START + DAY_S)
    for path, known in ((page_path("/a"), etag), (feed, news)):
        assert (await site.ask(path, **{"If-None-Match": known}))[0] == 200


async def test_large_bodies_are_compressed_for_who_takes_it(site: Site) -> None:
    await site.shows("/long", html(*(f"Sentence number {n} of a long page." for n in range(200))))
    path = page_path("/long") + "?format=text"
    _, plain, body = await site.ask(path, **{"Accept-Encoding": "identity"})
    assert ("Content-Encoding" in plain, plain["Vary"]) == (False, "Accept-Encoding")
    assert (await site.ask(path, **{"Accept-Encoding": "br, gzip;q=0"}))[2] == body
    async with site.client.get(
        URL(site.url + path, encoded=True), headers={"Accept-Encoding": "br, gzip"}
    ) as response:
        packed = await response.read()
        assert response.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed).decode() == body
    assert len(packed) < len(body) / 4
    tag = response.headers["ETag"]
    assert tag != plain["ETag"]
    assert (await site.ask(path, **{"If-None-Match": tag}))[0] == 304
    short = (await site.ask(page_path("/a") + "?format=text", **{"Accept-Encoding": "gzip"}))[1]
    assert "Content-Encoding" not in short


@pytest.mark.parametrize("coding", ["identity", "gzip"])
async def test_head_answers_as_get_does_without_a_body(site: Site, coding: str) -> None:
    await site.shows("/long", html(*(f"Sentence number {n} of a long page." for n in range(200))))
    for path in (FEED, "/v1/changefeed.atom", page_path("/a"), page_path("/long"), f"{FEED}?x=1"):
        async with site.client.get(
            URL(site.url + path, encoded=True), headers={"Accept-Encoding": coding}
        ) as response:
            got = response.status, {**response.headers}
        status, headers, body = await site.ask(path, "HEAD", **{"Accept-Encoding": coding})
        for each in ("Date", "Transfer-Encoding", "Content-Length"):
            got[1].pop(each, None)
        assert (status, {k: v for k, v in headers.items() if k in got[1]}, body) == (*got, "")
    # It does not wait for a change.
    assert (await site.ask(f"{FEED}?since=now&feed=continuous", "HEAD"))[0] == 200


async def test_the_atom_feed_has_what_rfc_4287_wants_newest_first(site: Site) -> None:
    await site.shows("/a", html("The page says \x0b something <b>else</b> now."), at=START + DAY_S)
    _, headers, body = await site.ask("/v1/changefeed.atom")
    assert headers["Content-Type"] == "application/atom+xml"
    atom = "{http://www.w3.org/2005/Atom}"
    feed = ET.fromstring(body)
    assert feed.tag == f"{atom}feed"
    entries = feed.findall(f"{atom}entry")
    for each in (feed, *entries):
        for tag in ("id", "title", "updated"):
            (found,) = each.findall(f"{atom}{tag}")
            assert found.text
    ids = [each.findtext(f"{atom}id") or "" for each in (feed, *entries)]
    assert all(re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", each) for each in ids)
    assert len(set(ids)) == 4
    assert feed.findtext(f"{atom}author/{atom}name")
    links = [each.find(f"{atom}link") for each in entries]
    assert [link.attrib["href"] for link in links if link is not None] == [
        url_of("/a"), url_of("/gone"), url_of("/b?c=d"),
    ]  # fmt: skip
    assert [each.findtext(f"{atom}summary") for each in entries] == [
        "Changed: + “The page says something else now.” 1 added, 2 removed", "Gone", "New",
    ]  # fmt: skip
    assert feed.findtext(f"{atom}updated") == entries[0].findtext(f"{atom}updated")


# -- who may ask, how often, how slowly ----------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        f"Bearer {TOKEN[:-1]}F",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        "Bearer é",
    ],
)
async def test_a_token_is_wanted_on_every_route_but_health(tmp_path: Path, header: str) -> None:
    async with serving(tmp_path / "none.db", operation__token=TOKEN) as url:
        async with aiohttp.ClientSession(headers={"Authorization": header}) as client:
            for path in ("/metrics", "/v1/pages", "/none"):
                async with client.get(url + path) as response:
                    assert response.status == 401
                    assert TOKEN not in await response.text()
        async with aiohttp.ClientSession(headers={"Authorization": f"bearer {TOKEN}"}) as client:
            async with client.get(url + "/metrics") as response:
                assert response.status == 200
            async with client.get(url + "/metrics", headers={"Host": "evil.example"}) as response:
                assert response.status == 421


async def test_a_token_may_be_in_the_environment_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_TOKEN", TOKEN)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    for source in ("env:OUR_TOKEN", f"file:{tmp_path}/token"):
        async with serving(tmp_path / "none.db", operation__token=source) as url:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with (
                aiohttp.ClientSession(headers=headers) as client,
                client.get(url + "/metrics") as response,
            ):
                assert response.status == 200
    for wrong, why in (
        ("short", "at least 16 letters"), ("env:NOT_SET", "NOT_SET is not set"),
        ("file:/no/token", "/no/token: No such file"), ("sixteen or more characters", "letters"),
    ):  # fmt: skip
        with pytest.raises(CrawlError, match=why) as raised:
            async with serving(tmp_path / "none.db", operation__token=wrong):
                pass
        assert "short" not in str(raised.value)


async def test_one_request_too_many_is_503_until_another_ends(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_WAITING", 2)
    monkeypatch.setattr(http, "_LASTING", 0)
    path = f"{FEED}?since=now&feed=continuous"
    async with serving(site.store.database.path) as site.url:
        waiting = [await site.client.get(site.url + path) for _ in range(2)]
        assert [each.status for each in waiting] == [200, 200]
        status, headers, _ = await site.ask(path)
        assert (status, headers["Retry-After"]) == (503, "5")
        assert (await site.ask("/v1/pages"))[0] == 503
        for looked_at in ("/healthz", "/metrics"):
            assert (await site.ask(looked_at))[0] == 200
        waiting[0].close()
        while (again := await site.client.get(site.url + path)).status == 503:
            again.close()
        again.close()
        waiting[1].close()


async def test_closing_waits_until_what_lasts_has_ended(site: Site) -> None:
    before = asyncio.all_tasks()
    async with serving(site.store.database.path) as url:
        waiting = await site.client.get(f"{url}{FEED}?since=now&feed=continuous&heartbeat=100")
        assert await waiting.content.readline() == b"\n"
    # Else the loop of a verb would be closed before the connection to its store.
    assert asyncio.all_tasks() == before
    waiting.close()


async def endless(made: list[int], ended: asyncio.Event) -> AsyncGenerator[bytes, None]:
    try:
        while True:
            made.append(2**20)
            yield bytes(2**20)
    finally:
        ended.set()


@pytest.mark.parametrize("vanishes", [True, False])
async def test_a_slow_or_vanished_reader_ends_in_bounded_memory(
    vanishes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_STALLED_S", 60.0 if vanishes else 0.3)
    made, ended = list[int](), asyncio.Event()

    async def route(_request: object) -> http.Answer:
        return http.Answer(endless(made, ended), live=True)

    async def health() -> Health:
        return [], {}

    server = HttpServer(
        quick().operation, health, process_metrics("1"), [web.get("/v1/endless", route)]
    )
    url = await server.open("127.0.0.1", 0)
    port = int(url.rstrip("/").rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**16)
    writer.write(b"GET /v1/endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readexactly(100)
    if vanishes:
        writer.transport.abort()
    await ended.wait()
    # What the sockets of the kernel hold, and a piece of ours.
    assert sum(made) < 32 * 2**20
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
    await server.close()


@pytest.mark.long
async def test_a_mirror_of_documents_holds_the_event_loop_only_for_moments(site: Site) -> None:
    for n in range(60):
        size = 3_000 if n % 20 == 0 else 60
        await site.shows(
            f"/{n}", html(*(f"Sentence {i} of the page {n} is here." for i in range(size)))
        )
    longest, done = 0.0, False

    async def watch() -> None:
        nonlocal longest
        while not done:
            began = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - began)

    watching = asyncio.create_task(watch())
    async with site.client.get(f"{site.url}{FEED}?include_docs=true") as response:
        parts = [part async for part in response.content.iter_any()]
    done = True
    await watching
    assert len(json.loads(b"".join(parts))["results"]) == 63
    assert longest < 0.15


# -- health and metrics --------------------------------------------------------


@pytest.fixture
async def ask(tmp_path: Path) -> AsyncIterator[Ask]:
    """A way to ask a server beside which there is no store yet."""
    async with (
        serving(tmp_path / "crawl.db", operation__host_names=["Freshet"]) as url,
        aiohttp.ClientSession() as client,
    ):

        async def asked(path: str, method: str = "GET", **headers: str) -> Told:
            async with client.request(method, url + path, headers=headers) as response:
                return response.status, response.headers, await response.text()

        yield asked


async def test_health_says_what_is_wrong_and_metrics_have_the_format_that_is_asked_for(
    ask: Ask, tmp_path: Path
) -> None:
    status, _, body = await ask("/healthz")
    assert (status, json.loads(body)["problems"]) == (503, ["it is away"])
    (tmp_path / "crawl.db").touch()
    status, headers, body = await ask("/healthz")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert json.loads(body) == {"status": "ok", "problems": [], "version": "1"}
    _, headers, body = await ask("/metrics")
    assert headers["Content-Type"].startswith("text/plain; version=")
    assert "freshet_build_info" in {family.name for family in text_string_to_metric_families(body)}
    _, headers, body = await ask("/metrics", Accept="application/openmetrics-text")
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    assert body.endswith("# EOF\n")


async def test_foreign_names_and_writing_are_refused_and_other_paths_told(ask: Ask) -> None:
    for host in (
        "127.0.0.1", "127.0.0.1:9464", "localhost:1", "LocalHost", "[::1]:80", "freshet:9464"
    ):  # fmt: skip
        assert (await ask("/metrics", Host=host))[0] == 200, host
    for host in (
        "rebound.example", "rebound.example:9464", "localhost.example", "127.0.0.1.example", ""
    ):  # fmt: skip
        for path in ("/metrics", "/healthz", "/none"):
            status, _, body = await ask(path, Host=host)
            assert (status, "freshet_" in body) == (421, False), host
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "MERGE"):
        for path in ("/metrics", "/none"):
            status, headers, _ = await ask(path, method)
            assert (status, headers["Allow"]) == (405, "GET, HEAD"), method
    status, headers, body = await ask("/metrics", "HEAD")
    assert (status, body, headers["Cache-Control"]) == (200, "", "no-store")
    status, headers, body = await ask("/")
    assert (status, headers["Server"]) == (404, "freshet")
    told = json.loads(body)
    assert told["error"] == "not_found"
    assert told["reason"].startswith("there is no such path; there are /healthz, /metrics, /v1/")


async def test_connections_that_say_nothing_keep_nobody_out(tmp_path: Path) -> None:
    async with serving(tmp_path / "crawl.db") as url, aiohttp.ClientSession() as client:
        port = int(url.rpartition(":")[2])
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(100)]
        async with client.get(f"{url}/metrics") as response:
            assert response.status == 200
        ended = [await asyncio.wait_for(reader.read(), 5) for reader, _ in silent[:36]]
        assert ended == [b""] * 36
        for _, writer in silent:
            writer.close()
