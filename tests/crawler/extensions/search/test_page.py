"""The search page: marks where words were found, and no more of a page than its text."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.crawler.extensions.dashboard.test_pages import HOSTILE, Reader, shown
from tests.crawler.read.test_api import Site
from tests.storage.crawl_store import crawl_store
from tests.storage.versioned_store import html


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    path = tmp_path / "crawl.db"
    async with crawl_store(path) as store, shown(path) as url, aiohttp.ClientSession() as client:
        yield Reader(url, client, Site(store, url, client))


async def test_words_are_marked_and_what_a_site_wrote_does_nothing(reader: Reader) -> None:
    assert "freshet search --index on" in await reader.page("/search?q=word")
    await reader.site.shows("/a", html(f"A harbour of old: &lt;script&gt;alert(1) {HOSTILE}"))
    await reader.site.indexes()
    body = await reader.page("/search?q=harbour+old")
    assert re.findall("<mark>(.*?)</mark>", body) == ["harbour", "old"]
    assert "&lt;script&gt;alert(1)" in body
    assert "text as of" in body
    assert "<script>alert" not in body
    assert "/page?url=https%3A%2F%2Fa.example%2Fa" in body
    typed = await reader.page("/search?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E+nothing")
    assert ("<script>alert" in typed, "No page holds this" in typed) == (False, True)
    assert "names no word to look for" in await reader.page("/search?q=-harbour")
    assert (await reader.ask("/search?q=harbour&offset=-1"))[0] == 400


async def test_results_are_turned_page_by_page(reader: Reader) -> None:
    for number in range(12):
        await reader.site.shows(f"/{number}", html(f"One harbour, number {number}."))
    await reader.site.indexes()
    first = await reader.page("/search?q=harbour")
    (further,) = re.findall(r'rel="next" href="([^"]+)"', first)
    second = await reader.page(further.replace("&amp;", "&"))
    pages = re.compile(r'class="title" href="([^"]+)"')
    assert (len(pages.findall(first)), len(pages.findall(second))) == (10, 2)
    assert len({*pages.findall(first), *pages.findall(second)}) == 12
    assert 'rel="prev"' in second
    assert 'rel="next"' not in second
