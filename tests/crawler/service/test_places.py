"""Readers that wait keep nobody out: neither requests for work nor who looks after the daemon."""

import asyncio
import resource
from collections import Counter
from pathlib import Path

import aiohttp
import pytest

from freshet.crawler.read.library import Library
from tests.crawler.read.test_api import FEED, Site, serving
from tests.crawler.read.test_api import site as served
from tests.storage.versioned_store import html
from tests.variants import first

site = served
PATHS = (
    "/v1/pages", "/v1/changefeed", "/v1/changefeed?since=now", "/v1/changefeed.atom",
    "/v1/openapi.json", "/healthz", "/metrics",
)  # fmt: skip
WAITING = (
    f"{FEED}?since=now&feed=continuous",
    f"{FEED}?since=now&feed=longpoll",
    f"{FEED}?feed=longpoll&since=now&include_docs=true",
    f"{FEED}?since=now&feed=continuous&heartbeat=60000",
)


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


async def waits(site: Site, client: aiohttp.ClientSession, count: int) -> list[asyncio.Task[bytes]]:
    """Begin so many readers, which wait for the first line of a change."""

    async def read(number: int) -> bytes:
        async with client.get(site.url + WAITING[number % len(WAITING)]) as response:
            assert response.status == 200
            ready.release()
            while not (line := await response.content.readline()).strip().startswith(b'{"seq'):
                assert line
            return line

    ready, tasks = asyncio.Semaphore(0), []
    for number in range(count):
        tasks.append(asyncio.create_task(read(number)))
        if number % 40 == 39 or number == count - 1:
            for _ in range(len(tasks) - number // 40 * 40):
                await ready.acquire()
    return tasks


@pytest.mark.parametrize("count", first(1, [200, 1, 64, 1_000]))
async def test_readers_that_wait_keep_nobody_out_and_are_all_told(
    site: Site, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Counter[str]()
    look = Library.commits

    async def commits(self: Library) -> object:
        looks["commits"] += 1
        return await look(self)

    connector = aiohttp.TCPConnector(limit=0)
    async with (
        serving(site.store.database.path) as site.url,
        aiohttp.ClientSession(connector=connector) as client,
    ):
        before = resident_bytes()
        tasks = await waits(site, client, count)
        # Both ends of each connection are in this process.
        assert resident_bytes() - before < 20e6 + 120e3 * count
        monkeypatch.setattr(Library, "commits", commits)
        for path in PATHS * 3:
            async with client.get(site.url + path) as response:
                assert response.status == 200, path
        waited = looks["commits"]
        await asyncio.sleep(0)
        assert waited < 60, "one look is for all"
        await site.shows("/new", html("A page that was not there before."))
        lines = await asyncio.gather(*tasks)
    assert len(lines) == count
    assert all(b"/new" in line for line in lines)


async def test_readers_may_take_half_of_the_open_files(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freshet.crawler.service.http.open_files", lambda: 6)
    async with serving(site.store.database.path) as site.url, aiohttp.ClientSession() as client:
        tasks = await waits(site, client, 3)
        async with client.get(site.url + WAITING[0]) as response:
            assert (response.status, response.headers["Retry-After"]) == (503, "5")
            assert "3 readers wait" in await response.text()
        async with client.get(f"{site.url}/healthz") as response:
            assert response.status == 200
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
