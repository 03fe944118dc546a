"""Policies side by side: ordered by a form, judged beside the server, shown with intervals."""

import asyncio
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.crawler.extensions.dashboard.test_pages import shown
from tests.crawler.extensions.dashboard.test_pages_security import PEOPLE, TOKEN, Browser
from tests.storage.small_store import SmallStore

DAY_S = 86_400.0
NO_SITE: Any = None


@pytest.fixture
async def browser(small: SmallStore) -> AsyncIterator[Browser]:
    small.run(0.0)
    small.host()
    lively, still = (small.page(path, checked_at=19 * DAY_S) for path in ("/lively", "/still"))
    for day in range(20):
        small.observe(lively, day * DAY_S, "changed" if day else "new")
        small.observe(still, day * DAY_S, "unchanged" if day else "new")
    async with (
        shown(small.path, operation__token=TOKEN) as url,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as client,
    ):
        yield Browser(url, client, NO_SITE)


async def ended(browser: Browser, cookie: str) -> str:
    """Return the page when the comparison is over."""
    async with asyncio.timeout(60):
        while True:
            _, _, body = await browser.ask("/policies", **PEOPLE, Cookie=cookie)
            if "goes on" not in body:
                return unescape(body)
            assert 'hx-trigger="every 2s"' in body
            assert '<noscript><meta http-equiv="refresh"' in body
            await asyncio.sleep(0.1)


async def test_policies_are_compared_beside_the_server_one_comparison_at_a_time(
    browser: Browser,
) -> None:
    cookie, csrf, _ = await browser.login()
    form = {"csrf": csrf, "policies": "uniform lambda_crawl", "budgets": "1/day"}
    assert (await browser.send("/policies", {**form, "csrf": ""}, Cookie=cookie))[0] == 403
    assert (await browser.send("/policies", form, Cookie=cookie))[0] == 303
    status, body = await browser.send("/policies", form, Cookie=cookie)
    assert (status, "wait until it has ended" in body) == (400, True)
    body = await ended(browser, cookie)
    assert "With 1 visit a day" in body
    head = '<th scope="col" class="number">uniform{}</th>'
    assert all(head.format(each) in body for each in ("", ", low", ", high"))
    assert body.count('class="plot"') == 2
    assert "--policy uniform --policy lambda_crawl --budget 1/day --shown 0.1" in body


async def test_a_comparison_that_fails_says_why(browser: Browser) -> None:
    cookie, csrf, _ = await browser.login()
    form = {"csrf": csrf, "policies": "<b>nonsense"}
    assert (await browser.send("/policies", form, Cookie=cookie))[0] == 303
    _, _, body = await browser.ask("/policies", **PEOPLE, Cookie=cookie)
    assert "<b>nonsense" not in body
    body = await ended(browser, cookie)
    assert "The comparison failed" in body
    assert "nonsense" in body.partition("The comparison failed")[2]
    for wrong in ({"budgets": "much"}, {"seen": "95"}, {"shard": "2"}, {"policies": "a " * 7}):
        assert (await browser.send("/policies", form | wrong, Cookie=cookie))[0] == 400


async def test_who_may_change_nothing_is_shown_the_command(tmp_path: Path) -> None:
    async with shown(tmp_path / "a b.db") as url, aiohttp.ClientSession() as client:
        browser = Browser(url, client, NO_SITE)
        _, _, body = await browser.ask("/policies?policies=uniform&budgets=5/hour")
        command = f"freshet replay '{tmp_path}/a b.db' --policy uniform --budget 5/hour --shown 0.1"
        assert command in unescape(body)
        assert 'method="post"' not in body
        assert (await browser.send("/policies", {"policies": "uniform"}))[0] == 403
