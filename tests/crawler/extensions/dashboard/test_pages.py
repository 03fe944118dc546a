"""The pages of the dashboard over HTTP: what they show, and what they must never do."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from html import escape, unescape
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from freshet.config.loading import SettingsSource
from freshet.crawler.extensions.dashboard import pages
from freshet.crawler.extensions.dashboard.pages import Dashboard
from freshet.crawler.read.api import StoreApi
from freshet.crawler.service.http import Health, HttpServer
from freshet.crawler.service.metrics import process_metrics
from freshet.storage.queries import page
from tests.crawler.read.test_api import Site
from tests.integration.quick import QUICK, quick
from tests.storage.crawl_store import START, crawl_store
from tests.storage.small_store import SmallStore
from tests.storage.versioned_store import html

#: The text of a page, which is not HTML there.
HOSTILE = escape("</p><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7 * 7 }}")


@asynccontextmanager
async def shown(
    path: Path, *, port: int = 0, config: Path | None = None, **settings: object
) -> AsyncIterator[str]:
    """Serve the dashboard of a store, which writes into ``config``; yield its address."""
    found, source = quick(**settings), None
    if config is not None:
        named = {name.replace("__", "."): value for name, value in settings.items()}
        source = SettingsSource(config, {**QUICK, **named})
        found, _ = source.read()

    async def health() -> Health:
        return [], {}

    api = StoreApi(path, found, source=source)
    dashboard = Dashboard(api, found)
    server = HttpServer(found.operation, health, process_metrics("1"), pages=dashboard)
    try:
        yield (await server.open("127.0.0.1", port)).rstrip("/")
    finally:
        await server.close()
        await api.close()


class Reader:
    """Somebody with a browser."""

    def __init__(self, url: str, client: aiohttp.ClientSession, site: Site) -> None:
        self.url, self._client, self.site = url, client, site

    async def ask(self, path: str) -> tuple[int, Mapping[str, str], str]:
        wanted = {"Accept": "text/html,*/*;q=0.8"}
        target = URL(self.url + path, encoded=True)
        async with self._client.get(target, headers=wanted) as response:
            return response.status, response.headers, await response.text()

    async def page(self, path: str) -> str:
        status, headers, body = await self.ask(path)
        assert status == 200, body
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert "script-src 'self'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        return body


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    path = tmp_path / "crawl.db"
    async with crawl_store(path) as store, shown(path) as url, aiohttp.ClientSession() as client:
        site = Site(store, url, client)
        await site.shows("/a", html("The first sentence of this page stays.", "Old words here."))
        await site.shows(
            "/a", html("The first sentence of this page stays.", f"New: {HOSTILE}"), at=START + 60
        )
        yield Reader(url, client, site)


async def test_the_overview_tells_what_changed_last(reader: Reader) -> None:
    assert "https://a.example/a" in await reader.page("/")


async def test_what_a_site_wrote_is_shown_and_does_nothing(reader: Reader) -> None:
    for path in ("/", "/changes", "/changes/one?url=https://a.example/a&after=2&before=1"):
        body = await reader.page(path)
        assert "<script>alert" not in body
        assert "<img src=x" not in body
        assert "49" not in body.partition("<main")[2]


async def test_an_error_is_a_page(reader: Reader) -> None:
    status, _, body = await reader.ask("/changes/one?url=https://a.example/none")
    assert (status, "is not known" in body, "<nav" in body) == (404, True, True)
    status, _, body = await reader.ask("/changes/one")
    assert (status, "name the page" in body) == (400, True)
    assert (await reader.ask("/nothing"))[0] == 404


async def test_files_are_our_own(reader: Reader) -> None:
    body = await reader.page("/")
    for name in ("freshet.css", "freshet.js", "vendor/htmx.min.js", "vendor/uPlot.iife.min.js"):
        assert f"/static/{name}" in body
        status, headers, _ = await reader.ask(f"/static/{name}")
        assert (status, "ETag" in headers) == (200, True)
    assert (await reader.ask("/static/../pages.py"))[0] == 404


async def test_events_tell_the_overview_at_once_and_when_the_store_has_changed(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_LIVE_S", 0.01)
    async with reader._client.get(f"{reader.url}/events") as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        assert await response.content.readline() == b"event: overview\n"
        while (line := await response.content.readline()) != b": nothing new\n":
            assert not line.startswith(b"event")
        await reader.site.shows("/b", html("Another page."), at=START + 90)
        while (line := await response.content.readline()) != b"event: overview\n":
            assert line in {b"\n", b": nothing new\n"}


async def test_a_number_is_shown_over_the_versions(reader: Reader) -> None:
    for n, price in enumerate((30, 12)):
        said = f"<main><p>It stays here.<p id=s>Rated 4,5.<p>Only {price} EUR.</main>"
        await reader.site.shows("/p", said.encode(), at=START + 600 + 60 * n)
    body = await reader.page("/page/numbers?url=https://a.example/p")
    assert re.findall(r'<td class="number">(\d+)</td>', body) == ["30", "12"]
    assert "the likeliest price" in body
    body = await reader.page("/page/numbers?url=https://a.example/p&within=%23s")
    assert re.findall(r'<td class="number">([\d.]+)</td>', body) == ["4.5", "4.5"]
    assert "No version has a number" in await reader.page(
        "/page/numbers?url=https://a.example/p&within=%23none"
    )
    assert (await reader.ask("/page/numbers?url=https://a.example/p&within=p["))[0] == 400
    assert "/page/numbers?url=https%3A%2F%2Fa.example%2Fp" in await reader.page(
        "/page?url=https://a.example/p"
    )


async def test_pages_are_listed_by_their_last_result(small: SmallStore) -> None:
    small.run(START)
    small.host()
    for n in range(9):
        result = {1: "changed", 4: "changed", 8: "failed"}.get(n)
        small.page(f"/{n}", last_kind=result, checked_at=START if result else None)
    async with shown(small.path) as url, aiohttp.ClientSession() as client:
        reader = Reader(url, client, None)  # type: ignore[arg-type] # no site is crawled here

        async def listed(query: str) -> list[str]:
            body = await reader.page(f"/pages?{query}")
            return re.findall(r'<a class="url"[^>]*>http://one.example/(\d)<', body)

        for query, found in (
            ("kind=changed", "14"), ("kind=failed&prefix=one.example", "8"), ("kind=gone", ""),
            ("kind=not+visited+yet", "023567"), ("kind=changed&after=http://one.example/1", "4"),
            ("", "012345678"),
        ):  # fmt: skip
            assert "".join(await listed(query)) == found, query
        assert (await reader.ask("/pages?kind=lost"))[0] == 400


async def test_a_search_by_result_is_bounded_and_goes_on(
    small: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "_LOOKED_AT", 4)
    small.run(START)
    small.host()
    for n in range(9):
        small.page(f"/{n}", last_kind="gone" if n == 7 else "new", checked_at=START)
    async with shown(small.path) as url, aiohttp.ClientSession() as client:
        reader, path, seen = Reader(url, client, None), "/pages?kind=gone", 0  # type: ignore[arg-type]
        while "one.example/7</a>" not in (body := await reader.page(path)):
            assert "None of these among those searched." in body
            (found,) = re.findall(r'rel="next" href="([^"]*)"', body)
            path, seen = unescape(found), seen + 1
        assert seen == 1
