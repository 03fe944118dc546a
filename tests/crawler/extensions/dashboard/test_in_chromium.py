"""The dashboard in a real Chromium, as people use it: mouse, keyboard, telephone, no JavaScript."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.crawler.extensions.dashboard.test_pages import HOSTILE, shown
from tests.crawler.extensions.dashboard.test_pages_security import TOKEN
from tests.crawler.read.test_api import Site
from tests.storage.crawl_store import START, crawl_store, url_of, writing
from tests.storage.versioned_store import html

playwright = pytest.importorskip("playwright.async_api", reason="the extra browser is missing")
axe = pytest.importorskip("axe_playwright_python.async_playwright", reason="axe is missing")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

OLD = "The first sentence of this page stays as it is, and says something of use."
PAGE = url_of("/a")
PAGES = (
    "/", "/changes", f"/changes/one?url={PAGE}&before=1&after=2", f"/page?url={PAGE}", "/sites",
    f"/page/text?url={PAGE}&version=1", "/pages", "/site?origin=https://a.example", "/policies",
    "/search?q=words", "/settings",
)  # fmt: skip


@asynccontextmanager
async def chromium() -> AsyncIterator[Any]:
    """Yield a browser; as root it has no sandbox, and sees but this machine."""
    flags = ["--no-sandbox"] if os.getuid() == 0 else []
    async with playwright.async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        await browser.close()


@asynccontextmanager
async def changed(path: Path, *, port: int = 0, **settings: Any) -> AsyncIterator[str]:
    """Yield the address of the dashboard of a store with a page that changed."""
    async with (
        crawl_store(path) as store,
        shown(path, port=port, **settings) as url,
        aiohttp.ClientSession() as client,
    ):
        site = Site(store, url, client)
        await site.shows("/a", html(OLD, "Old words stand here."))
        await site.shows("/a", html(OLD, "New words stand here.", HOSTILE), at=START + 60)
        with writing(store.database) as db:
            db.execute("UPDATE host SET exchanges = 2")
        yield url


@pytest.fixture
async def address(tmp_path: Path) -> AsyncIterator[str]:
    async with changed(tmp_path / "crawl.db") as url:
        yield url


@pytest.mark.long
async def test_who_logs_in_sets_and_takes_back_by_buttons(tmp_path: Path) -> None:
    async with changed(tmp_path / "crawl.db", operation__token=TOKEN) as url, chromium() as browser:
        page = await browser.new_page()
        await page.goto(f"{url}/changes?kind=changed")
        await page.fill("input[name=token]", "another-token-than-it-is")
        await page.keyboard.press("Enter")
        await page.get_by_text("Wrong token").wait_for()
        await page.fill("input[name=token]", TOKEN)
        await page.keyboard.press("Enter")
        await page.locator(".changes a.url").first.click()
        assert page.url.endswith("/page?url=https%3A%2F%2Fa.example%2Fa")
        await page.get_by_label("Importance").fill("5")
        await page.get_by_role("button", name="Set", exact=True).click()
        await page.get_by_role("button", name="Pause this page").click()
        here = page.get_by_role("list", name="What is set").get_by_role("listitem")
        assert await here.count() == 2
        assert await page.get_by_role("spinbutton").input_value() == "5"
        assert await page.get_by_role("button", name="Visit now").count() == 0
        await page.context.clear_cookies()
        await page.get_by_role("button", name="Set", exact=True).click()
        await page.get_by_text("what was sent last was not done").wait_for()
        await page.fill("input[name=token]", TOKEN)
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Take back: importance").click()
        await here.get_by_text("importance").wait_for(state="detached")
        assert page.url.endswith("/page?url=https%3A%2F%2Fa.example%2Fa")
        await page.get_by_role("link", name="Settings").click()
        assert await page.get_by_role("button", name="Take back").count() == 1
        await page.goto(f"{url}/changes/one?url={PAGE}&before=1&after=2")
        assert (await axe.Axe().run(page)).violations_count == 0
        await page.get_by_role("button", name="Ignore this block: New").press("Enter")
        await page.get_by_role("listitem").get_by_text("nth-of-type").wait_for()
        await page.get_by_role("button", name="Log out").click()
        await page.goto(f"{url}/settings")
        assert "/login" in page.url


@pytest.mark.long
async def test_an_overview_says_when_its_server_is_gone(tmp_path: Path) -> None:
    async with chromium() as browser:
        page = await browser.new_page()
        async with changed(tmp_path / "crawl.db", operation__token=TOKEN) as url:
            await page.goto(url)
            await page.fill("input[name=token]", TOKEN)
            await page.keyboard.press("Enter")
            await page.get_by_role("link", name="Load it again").wait_for(state="hidden")
        await page.get_by_role("link", name="Load it again").wait_for()
        port = int(url.rpartition(":")[2])
        async with changed(tmp_path / "again.db", port=port, operation__token=TOKEN):
            await page.wait_for_url(f"{url}/login?next=%2F")


async def test_a_reader_finds_what_changed(address: str) -> None:
    said: list[str] = []
    async with chromium() as browser:
        page = await browser.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        await page.goto(address)
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        assert page.url.endswith("#main")
        await page.get_by_role("link", name="Changes", exact=True).click()
        await page.locator("a.title").first.click()
        assert await page.locator("ins").first.inner_text()
        assert "alert(1)" in await page.locator("main").inner_text()
    assert said == []


@pytest.mark.long
async def test_every_page_is_accessible_fits_a_telephone_and_needs_no_script(address: str) -> None:
    async with chromium() as browser:
        for scheme, width, scripts in (("light", 1200, True), ("dark", 360, False)):
            context = await browser.new_context(
                viewport={"width": width, "height": 800}, color_scheme=scheme,
                java_script_enabled=scripts,
            )  # fmt: skip
            page = await context.new_page()
            for path in PAGES:
                answer = await page.goto(address + path)
                assert answer.ok or path.startswith("/search"), path
                assert await page.locator("main").inner_text(), path
                wide = await page.locator("html").evaluate("it => it.scrollWidth")
                assert wide <= width, path
                if scripts:
                    found = await axe.Axe().run(page)
                    assert found.violations_count == 0, found.generate_report()
