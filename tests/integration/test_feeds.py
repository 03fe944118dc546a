"""Feed readers learn what changed, at addresses that `freshet feeds` makes and revokes."""

import json
from typing import Any

import aiohttp
import feedparser
import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run.crawl import CrawlOrder, crawl
from tests.crawler.read.test_api import serving
from tests.integration.quick import quick, unwatched
from tests.integration.scripted import Page
from tests.integration.test_changefeed import EDITED, Site, page, site

__all__ = ["site"]

TOKEN = "0123456789abcdef0123"


async def made(site: Site, *words: str) -> str:
    """Make a feed; return its path."""
    result = await site.typed("feeds", *words)
    assert result.exit_code == 0, result.output
    return "/feeds/" + result.stderr.strip().rpartition("/feeds/")[2]


async def read(base: str, path: str, **headers: str) -> tuple[int, Any, str]:
    """Ask as a feed reader does, without a token; return what feedparser reads."""
    async with aiohttp.ClientSession() as client, client.get(base + path, headers=headers) as told:
        kind = {"content-type": told.headers["Content-Type"]}
        found = feedparser.parse(await told.read(), response_headers=kind)
        return told.status, found, told.headers.get("ETag", "")


async def edited(site: Site) -> None:
    site.pages["/edited"] = EDITED
    del site.pages["/leaving"]
    await site.crawl()


def kinds(site: Site, found: Any) -> dict[str, str]:
    assert not found.bozo, found.bozo_exception
    return {
        it.link.removeprefix(site.url("")): it.summary.partition(":")[0] for it in found.entries
    }


async def test_a_feed_of_a_site_has_the_words_that_changed(site: Site) -> None:
    host = site.url("").partition("://")[2]
    path = await made(site, host)
    await edited(site)
    async with serving(site.db, operation__token=TOKEN) as base:
        status, found, etag = await read(base, path)
        assert (status, found.version, found.feed.title) == (200, "atom10", f"Changes in {host}")
        assert kinds(site, found) == {
            "/": "New", "/kept": "New", "/old": "New", "/edited": "Changed", "/leaving": "Gone",
        }  # fmt: skip
        (change,) = (it for it in found.entries if it.summary.startswith("Changed"))
        assert "A new sentence stands here" in change.summary
        assert "<ins> A new sentence stands here, and it matters.</ins>" in change.content[0].value
        assert change.title == "edited"
        assert change.updated_parsed
        assert len({it.id for it in found.entries}) == 5
        # A reader that has it all gets nothing again.
        assert (await read(base, path, **{"If-None-Match": etag}))[0] == 304
        site.pages["/kept"] = page("kept", "A further one.")
        await site.crawl()
        assert (await read(base, path, **{"If-None-Match": etag}))[0] == 200
        # The whole feed needs the token.
        assert (await read(base, "/v1/changefeed.atom"))[0] == 401
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        _, whole, _ = await read(base, "/v1/changefeed.atom", **bearer)
        assert len(whole.entries) == 5


async def test_a_feed_of_a_part_of_a_site(site: Site) -> None:
    host = site.url("").partition("://")[2]
    path = await made(site, f"{host}/e*")
    await edited(site)
    async with serving(site.db) as base:
        assert kinds(site, (await read(base, path))[1]) == {"/edited": "Changed"}


async def test_an_address_is_secret_and_is_gone_when_it_is_revoked(site: Site) -> None:
    first, other = await made(site, "a.localhost"), await made(site, "other.example")
    assert first == await made(site, "a.localhost")
    assert first != other
    assert len(first) > len("/feeds/") + 30
    listed = json.loads((await site.typed("feeds", "--json")).stdout)["feeds"]
    assert [it["of"] for it in listed] == ["a.localhost", "other.example"]
    async with serving(site.db, operation__token=TOKEN) as base:
        assert (await read(base, first))[0] == 200
        assert (await site.typed("feeds", "a.localhost", "--revoke")).exit_code == 0
        assert (await read(base, first))[0] == 404
        assert (await read(base, other))[0] == 200
        assert (await read(base, "/feeds/"))[0] == 404
        # Made again, it is another one.
        assert await made(site, "a.localhost") != first


async def test_a_feed_of_an_alert_rule_has_what_the_rule_told(site: Site) -> None:
    path = await made(site, "--rule", "mine")
    rule = {"name": "mine", "match": "*/edited", "kinds": ["changed"], "url": "log:"}
    seeds = seeds_from_arguments([site.url("")]).seeds
    site.pages["/edited"], site.pages["/kept"] = EDITED, page("kept", "A further sentence.")
    await crawl(quick(alerts__rules=[rule]), CrawlOrder(site.db, seeds), watch=unwatched)
    async with serving(site.db) as base:
        _, found, _ = await read(base, path)
        assert kinds(site, found) == {"/edited": "Changed"}
        assert "A new sentence" in found.entries[0].content[0].value


async def test_what_a_page_says_does_nothing_in_a_reader(site: Site) -> None:
    words = "The page said &lt;script&gt;alert(1)&lt;/script&gt; \x0b and went on for long."
    site.pages["/edited"] = Page(str(EDITED.body).replace("A new sentence", words))
    path = await made(site, site.url("").partition("://")[2])
    await site.crawl()
    async with serving(site.db) as base, aiohttp.ClientSession() as client:
        async with client.get(base + path) as told:
            body = await told.text()
        assert kinds(site, (await read(base, path))[1])["/edited"] == "Changed"
        # Escaped twice: once for the HTML, and once as HTML in XML.
        assert "&amp;lt;script&amp;gt;" in body


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["x.example", "--rule", "y"], 2, "not both"),
        (["x.example", "--revoke"], 2, "x.example: it has no feed"),
        (["http://x y/"], 2, "http://x y/: "),
    ],
)
async def test_what_cannot_be_made_is_told_in_one_line(
    site: Site, words: list[str], code: int, message: str
) -> None:
    told = await site.typed("feeds", *words)
    assert (told.exit_code, told.stderr.count("\n")) == (code, 1), told.output
    assert message in told.stderr
