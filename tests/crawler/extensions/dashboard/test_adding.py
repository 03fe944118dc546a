"""Sites are added from the browser: a look, then settings, seeds and the first visits."""

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from freshet.crawler.extensions.dashboard import daemon_child
from freshet.storage.database import held
from tests.crawler.extensions.dashboard.test_settings_file import OWN, Settings, hangups, logged_in
from tests.integration.scripted import Page, scripted

TEXT, XML = {"Content-Type": "text/plain"}, {"Content-Type": "application/xml"}
URLS = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{}</urlset>"
SITE = {
    "/robots.txt": Page("User-agent: *\nDisallow: /private\n", headers=TEXT),
    "/": Page(
        "<title>The shop</title><link rel=alternate type=application/rss+xml href=/feed>"
        "<main><p>Many things are sold here, and each has a page.</p><a href=/a>a</a></main>"
    ),
    "/a": Page("<main><p>One thing that is sold, with its price and its size.</p></main>"),
    "/private": Page("<main><p>Nobody is to read this.</p></main>"),
    "/sitemap.xml": Page(
        URLS.format("<url><loc>{origin:shop}/a</loc></url><url><loc>{origin:shop}/b</loc></url>"),
        headers=XML,
    ),
}


async def looked_at(settings: Settings, urls: str) -> tuple[str, str]:
    """Look at what is typed; return the place of the look, and its page at the end."""
    status, place = await settings.send("/add", urls=urls)
    assert (status, place.startswith("/add?look=")) == (303, True), place
    return place, await settings.until(place, "Not this one")


async def seeds(settings: Settings) -> list[str]:
    return [url for (url,) in await settings.browser.site.store.rows("SELECT url FROM seed")]


async def test_a_look_tells_what_is_there_and_keeps_nothing(tmp_path: Path) -> None:
    async with scripted({"shop": SITE}) as web, logged_in(tmp_path) as settings:
        shop = web.origin("shop")
        _, body = await looked_at(settings, f"{shop}/\n{shop}/private\n{shop}/none")
        for said in (
            "The shop", "allows: no rule matches", "1 link to pages of this host", f"{shop}/feed",
            "names 2 URLs", "robots.txt forbids: ", "http_404",
        ):  # fmt: skip
            assert said in body, said
        assert "/private" not in web.asked("shop")
        assert await seeds(settings) == []
        assert settings.file.read_text() == OWN


async def test_what_was_looked_at_is_added_and_a_running_daemon_told(tmp_path: Path) -> None:
    async with scripted({"shop": SITE}) as web, logged_in(tmp_path, is_written=False) as settings:
        shop = web.origin("shop")
        place, _ = await looked_at(settings, f"{shop}/a")
        form = {"look": place.partition("=")[2], "scope": "list", "every": "2 hours"}
        with hangups() as found, closing(held(tmp_path / "crawl.db", "daemon")):
            assert await settings.send("/add", **form, importance="3", budget="") == (303, place)
            assert found == [signal.SIGHUP]
            assert "First visits" in await settings.page(place)
        assert settings.said["sites"][-1] == {
            "match": f"{shop}/a", "every": "2 hours", "importance": 3.0, "scope": "list"
        }  # fmt: skip
        with closing(sqlite3.connect(tmp_path / "crawl.db")) as db:
            assert db.execute("SELECT url FROM seed").fetchall() == [(f"{shop}/a",)]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"urls": ""}, "type a URL"),
        ({"urls": "https://a b/"}, "line 1"),
        ({"urls": "http://127.0.0.1/", "contact": "me"}, "should be a mail address"),
        ({"urls": "https://example.org/"}, "public host"),
        ({"look": "7", "scope": "host"}, "begin again"),
    ],
)
async def test_what_cannot_be_looked_at_is_refused_in_a_line(
    tmp_path: Path, form: dict[str, str], said: str
) -> None:
    async with logged_in(tmp_path) as settings:
        status, text = await settings.send("/add", **form)
        assert (status, said in text) == (400, True), text


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"scope": "all"}, "accepted are host"),
        ({"scope": "host", "every": "often"}, "a number with its unit"),
        ({"scope": "host", "importance": "-1"}, "greater than or equal to 0"),
        ({"scope": "host", "budget": "much"}, "1000/day or 50/hour"),
    ],
)
async def test_what_cannot_be_added_is_refused_and_nothing_kept(
    tmp_path: Path, form: dict[str, str], said: str
) -> None:
    async with scripted({"shop": SITE}) as web, logged_in(tmp_path) as settings:
        place, _ = await looked_at(settings, web.origin("shop"))
        status, text = await settings.send("/add", look=place.partition("=")[2], **form)
        assert (status, said in text) == (400, True), text
        assert await seeds(settings) == []
        assert settings.file.read_text() == OWN


async def test_a_private_address_needs_the_setting(tmp_path: Path) -> None:
    async with (
        scripted({"shop": SITE}) as web,
        logged_in(tmp_path, network__allow_private_addresses=False) as settings,
    ):
        _, body = await looked_at(settings, web.origin("shop"))
        assert "allow it with network.allow_private_addresses" in body
        assert web.log == []


async def test_the_daemon_is_a_child_which_is_started_and_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_child, "_OF_CONTAINERS", ())
    local = "[network]\nallow_private_addresses = true\n[politeness]\ndelay_s = 0.0\n"
    async with (
        scripted({"shop": SITE}) as web,
        logged_in(tmp_path, local, is_written=False) as settings,
    ):
        place, _ = await looked_at(settings, web.origin("shop"))
        form = {"look": place.partition("=")[2], "scope": "host"}
        assert (await settings.send("/add", **form)) == (303, place)
        await settings.until(place, '<td class="number">2</td>')
        assert "Stop the daemon" in await settings.page("/")
        assert (await settings.send("/daemon", value="start"))[0] == 400
        assert (await settings.send("/daemon", value="stop"))[0] == 303
        body = await settings.until("/", "Start the daemon")
        assert "It keeps pages fresh until" in body
        assert (await settings.send("/daemon", value="stop"))[0] == 400
        assert (await settings.send("/daemon", value="again"))[0] == 400


async def test_elsewhere_than_in_a_shell_the_command_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tmp_path / ".dockerenv"
    engine.touch()
    monkeypatch.setattr(daemon_child, "_OF_CONTAINERS", (engine,))
    async with logged_in(tmp_path, is_written=False) as settings:
        assert f"freshet daemon --db {tmp_path}/crawl.db" in await settings.page("/")
        assert (await settings.send("/daemon", value="start"))[0] == 400
        monkeypatch.setattr(daemon_child, "_OF_CONTAINERS", ())
        monkeypatch.setenv("SYSTEMD_EXEC_PID", str(os.getpid()))
        assert "systemctl start freshet" in await settings.page("/")
