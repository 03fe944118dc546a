"""What a browser changes: it stands in the settings file, and a daemon reads it again."""

import signal
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from freshet.storage.database import answer, held
from freshet.storage.tables import runs
from freshet.storage.tables.runs import SiteSetting
from tests.crawler.extensions.dashboard.test_pages import shown
from tests.crawler.extensions.dashboard.test_pages_security import BEARER, PEOPLE, TOKEN, Browser
from tests.crawler.read.test_api import Site
from tests.storage.crawl_store import START, crawl_store, url_of, writing

OWN = """# our crawler
[daemon]
budget = "100/day" # agreed with the sites

[[sites]]
match = "b.example"
never = true # they asked for it
"""


class Settings:
    """Somebody who has logged in, and the settings file of the server."""

    def __init__(self, browser: Browser, file: Path) -> None:
        self.browser, self.file = browser, file
        self._cookie = self._csrf = ""

    async def login(self) -> None:
        self._cookie, self._csrf, _ = await self.browser.login()

    async def send(self, path: str = "/settings", **form: str) -> tuple[int, str]:
        form = {"csrf": self._csrf, "next": path, **form}
        return await self.browser.send(path, form, Cookie=self._cookie)

    async def page(self, path: str) -> str:
        _, _, body = await self.browser.ask(path, **PEOPLE, Cookie=self._cookie)
        return body

    async def until(self, path: str, said: str) -> str:
        """Load a page again until it has these words; return it."""
        while said not in (body := await self.page(path)):
            pass
        return body

    @property
    def said(self) -> dict[str, Any]:
        return tomllib.loads(self.file.read_text())


@asynccontextmanager
async def logged_in(
    folder: Path, text: str = OWN, *, is_written: bool = True, **given: Any
) -> AsyncIterator[Settings]:
    """Yield somebody with a token, and the settings file with this text.

    Unless the store ``is_written`` by this process, another one may write it.
    """
    path, file = folder / "crawl.db", folder / "freshet.toml"
    file.write_text(text)
    async with AsyncExitStack() as stack:
        async with crawl_store(path) as store:
            # It has the schema now.
            pass
        if is_written:
            store = await stack.enter_async_context(crawl_store(path))
        url = await stack.enter_async_context(
            shown(path, config=file, operation__token=TOKEN, **given)
        )
        client = await stack.enter_async_context(
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        )
        found = Settings(Browser(url, client, Site(store, url, client)), file)
        await found.login()
        yield found


@pytest.fixture
async def settings(tmp_path: Path) -> AsyncIterator[Settings]:
    async with logged_in(tmp_path) as found:
        yield found


async def test_buttons_write_the_settings_file_and_keep_its_comments(settings: Settings) -> None:
    assert (await settings.send(match=url_of("/a"), key="importance", value="3"))[0] == 303
    assert settings.said["sites"] == [
        {"match": "b.example", "never": True}, {"match": url_of("/a"), "importance": 3.0}
    ]  # fmt: skip
    for comment in ("# our crawler", "# agreed with the sites", "# they asked for it"):
        assert comment in settings.file.read_text()
    assert settings.file.with_name("freshet.toml.previous").read_text() == OWN
    for selector in (".ad", "#b"):
        await settings.send(match="b.example", key="ignore", value=selector)
    assert settings.said["sites"][0]["ignore"] == [".ad", "#b"]
    body = await settings.page("/settings")
    assert body.count("Take back</button>") == 3
    for key in ("importance", "ignore"):
        match = url_of("/a") if key == "importance" else "b.example"
        assert (await settings.send(match=match, key=key, value=""))[0] == 303
    assert settings.said == tomllib.loads(OWN)


async def test_a_wish_for_a_visit_is_no_setting(settings: Settings) -> None:
    assert (await settings.send(match=url_of("/a"), key="visit", value="true"))[0] == 303
    assert settings.file.read_text() == OWN
    rows = await settings.browser.site.store.rows("SELECT key FROM site_setting")
    assert rows == [("visit",)]


async def test_what_the_store_kept_moves_into_the_file(settings: Settings) -> None:
    with writing(settings.browser.site.store.database) as db:
        runs.put_site_setting(db, SiteSetting(url_of("/a"), "importance", "2.0", START))
        runs.put_site_setting(db, SiteSetting("b.example", "never", "false", START))
        runs.put_site_setting(db, SiteSetting("b.example", "feed", '"secret"', START))
    await settings.send(match="c.example", key="never", value="true")
    assert settings.said["sites"] == [
        {"match": "b.example", "never": True}, {"match": url_of("/a"), "importance": 2.0},
        {"match": "c.example", "never": True},
    ]  # fmt: skip
    rows = await settings.browser.site.store.rows("SELECT match, key FROM site_setting")
    assert rows == [("b.example", "feed")], "of the same match and key the file wins"


async def test_settings_have_forms_and_origins(settings: Settings) -> None:
    assert (await settings.send(name="daemon.budget", value="500/day"))[0] == 303
    assert settings.said["daemon"] == {"budget": "500/day"}
    assert "# agreed with the sites" in settings.file.read_text()
    for name, value in (("crawl.contact", "me@example.org"), ("daemon.policy", "greedy_index")):
        assert (await settings.send(name=name, value=value))[0] == 303, name
    body = await settings.page("/settings")
    assert 'value="mailto:me@example.org"' in body
    assert f"from: file {settings.file}" in body
    assert TOKEN not in body
    assert (await settings.send(name="daemon.budget", value=""))[0] == 303
    assert settings.said["daemon"] == {"policy": "greedy_index"}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("daemon.budget", "many", "1000/day or 50/hour"),
        ("daemon.policy", "nonesuch", "daemon.policy"),
        ("crawl.contact", "me", "should be a mail address"),
        ("operation.token", "a-new-token-of-24-letters", "cannot be set here"),
        ("politeness.delay_s", "1", "comes from command line"),
    ],
)
async def test_what_cannot_be_set_is_refused_in_a_line(
    settings: Settings, name: str, value: str, said: str
) -> None:
    status, text = await settings.send(name=name, value=value)
    assert (status, said in text) == (400, True), text
    assert settings.file.read_text() == OWN
    assert not settings.file.with_name("freshet.toml.previous").exists()


async def test_without_a_login_nothing_is_written(settings: Settings) -> None:
    form = {"name": "daemon.budget", "value": "500/day"}
    assert (await settings.browser.send("/settings", form))[0] == 303
    assert (await settings.send(name="daemon.budget", value="500/day", csrf="another"))[0] == 403
    assert settings.file.read_text() == OWN


async def test_a_file_that_was_broken_by_hand_is_told_and_not_written(settings: Settings) -> None:
    settings.file.write_text("[daemon\n")
    assert "is not TOML" in await settings.page("/settings")
    status, text = await settings.send(name="daemon.budget", value="500/day")
    assert (status, "is not TOML" in text) == (400, True)
    settings.file.write_text(OWN.replace("100/day", "200/day"))
    body = await settings.page("/settings")
    assert 'value="200/day"' in body
    assert "is not TOML" not in body


@contextmanager
def hangups() -> Iterator[list[int]]:
    """Yield the SIGHUPs that this process has got."""
    found = list[int]()
    before = signal.signal(signal.SIGHUP, lambda number, _: found.append(number))
    try:
        yield found
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_a_running_daemon_reads_the_file_again_and_a_refusal_is_told(tmp_path: Path) -> None:
    path, file = tmp_path / "crawl.db", tmp_path / "freshet.toml"
    async with crawl_store(path):
        pass
    file.write_text(OWN)
    with hangups() as found, closing(held(path, "daemon")) as lock:
        async with (
            shown(path, config=file, operation__token=TOKEN) as url,
            aiohttp.ClientSession(headers=BEARER) as client,
        ):
            form = {"name": "daemon.budget", "value": "7/day"}
            async with client.post(f"{url}/settings", data=form) as response:
                assert response.status == 200
            assert found == [signal.SIGHUP]
            answer(lock, "daemon", "refused: the policy is not there")
            async with client.get(f"{url}/settings", headers=PEOPLE) as response:
                body = await response.text()
            assert "goes on as before. It refused: the policy is not there" in body
