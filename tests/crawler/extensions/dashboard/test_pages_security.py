"""The dashboard's doors: who is let in, what changes something, and what sites cannot do."""

import logging
import re
from collections.abc import AsyncIterator, Mapping
from functools import partial
from html import escape, unescape
from pathlib import Path
from urllib.parse import quote, urlencode

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from selectolax.lexbor import LexborHTMLParser
from yarl import URL

from freshet.crawler.errors import Refused
from freshet.crawler.extensions.dashboard import pages
from freshet.crawler.service.logins import Logins, hashed
from freshet.storage.tables import runs
from freshet.storage.tables.runs import SiteSetting
from tests.crawler.extensions.dashboard.test_pages import shown
from tests.crawler.read.test_api import Site
from tests.storage.crawl_store import START, crawl_store, url_of, writing
from tests.storage.versioned_store import html

TOKEN = "a-token-of-24-characters"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
PEOPLE = {"Accept": "text/html,*/*;q=0.8"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Browser:
    """A browser without a cookie jar: what is sent is what a test says."""

    def __init__(self, url: str, client: aiohttp.ClientSession, site: Site) -> None:
        self.url, self._client, self.site = url, client, site

    async def ask(
        self, path: str, method: str = "GET", body: object = None, **headers: str
    ) -> tuple[int, Mapping[str, str], str]:
        async with self._client.request(
            method, URL(self.url + path, encoded=True), allow_redirects=False,
            data=urlencode(body) if isinstance(body, dict) else body,
            headers={**(FORM if body is not None else {}), **headers},
        ) as response:  # fmt: skip
            return response.status, response.headers, await response.text()

    async def send(self, path: str, body: object, **headers: str) -> tuple[int, str]:
        given = {**PEOPLE, "Origin": self.url, **headers}
        status, got, text = await self.ask(path, "POST", body, **given)
        return status, got.get("Location") or text

    async def login(self, **headers: str) -> tuple[str, str, str]:
        """Return the session's cookie, what its forms hold, and the whole Set-Cookie."""
        given = {"Origin": self.url, **headers}
        status, got, _ = await self.ask("/login", "POST", {"token": TOKEN}, **given)
        assert status == 303
        cookie = got["Set-Cookie"].partition(";")[0]
        _, _, page = await self.ask("/", **PEOPLE, Cookie=cookie)
        (csrf,) = set(re.findall(r'name="csrf" value="(\w{64})"', page))
        return cookie, csrf, got["Set-Cookie"]


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    path, sites = tmp_path / "crawl.db", [{"match": "b.example", "never": True}]
    async with (
        crawl_store(path) as store,
        shown(path, operation__token=TOKEN, sites=sites) as url,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as client,
    ):
        yield Browser(url, client, Site(store, url, client))


async def test_a_browser_is_led_to_the_login_and_a_program_told_what_is_wanted(
    browser: Browser,
) -> None:
    status, headers, _ = await browser.ask("/changes?a=b&c=d", **PEOPLE)
    assert (status, headers["Location"]) == (303, "/login?next=%2Fchanges%3Fa%3Db%26c%3Dd")
    _, headers, _ = await browser.ask("/", **{"HX-Request": "true"})
    assert headers["HX-Redirect"] == "/login?next=%2F"
    at = {"Referer": f"{browser.url}/page?url=a", "Origin": browser.url}
    _, place = await browser.send("/settings", {"csrf": "of-a-login-that-ended"}, **at)
    assert place == "/login?next=%2Fpage%3Furl%3Da&lost="
    assert "what was sent last was not done" in (await browser.ask(place, **PEOPLE))[2]
    stolen = {"Cookie": f"freshet={TOKEN}; __Host-freshet={TOKEN}"}
    for path in ("/changes", "/settings", "/events", "/v1/pages", "/metrics"):
        for sent in ({}, stolen, {"Authorization": f"Basic {TOKEN}"}):
            assert (await browser.ask(f"{path}?token={TOKEN}", **sent))[0] == 401, path
    for path in ("/login", "/static/freshet.css", "/healthz"):
        assert (await browser.ask(path))[0] == 200, path
    assert (await browser.ask("/v1/pages", **BEARER))[0] == 200


async def test_the_token_is_a_password_and_the_cookie_a_session(
    browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    status, body = await browser.send("/login", {"token": "a-token-of-24-character?"})
    assert (status, 'name="token"' in body, "Wrong token" in body) == (403, True, True)
    cookie, csrf, said = await browser.login()
    assert len(cookie.removeprefix("freshet=")) == 43
    how = {"Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=43200"}
    assert set(said.split("; ")[1:]) == how
    _, _, by_tls = await browser.login(
        **{"Origin": "https://freshet.example", "Sec-Fetch-Site": "same-origin"}
    )
    assert (by_tls[:15], by_tls[-8:]) == ("__Host-freshet=", "; Secure")
    for wanted, place in (("/changes?a=b", "/changes?a=b"), ("//evil.example", "/")):
        _, at = await browser.send(f"/login?{urlencode({'next': wanted})}", {"token": TOKEN})
        assert at == place
    tried = [await browser.send("/login", {"token": wrong}) for wrong in (*"abcd", TOKEN)]
    assert ([it[0] for it in tried], "too many attempts" in tried[4][1]) == (
        [403] * 4 + [429],
        True,
    )
    assert (await browser.ask("/v1/pages", Cookie=cookie))[0] == 200
    assert await browser.send("/logout", {"csrf": csrf}, Cookie=cookie) == (303, "/login")
    assert (await browser.ask("/v1/pages", Cookie=cookie))[0] == 401
    assert TOKEN not in caplog.text


async def test_only_a_form_of_this_session_from_this_server_counts(browser: Browser) -> None:
    cookie, csrf, _ = await browser.login()
    _, other, _ = await browser.login()
    for body in ({}, {"csrf": ""}, {"csrf": other}, {"csrf": csrf[:-1]}, {"csrf": "ä"}):
        status, text = await browser.send("/logout", body, Cookie=cookie)
        assert (status, "not of your session" in text) == (403, True), body
    wrong = ("null", "https://evil.example", browser.url + ".evil.example", "http://127.0.0.1:1")
    headers = [{"Origin": each} for each in wrong]
    headers += [{"Sec-Fetch-Site": each} for each in ("cross-site", "same-site", "none", "")]
    for each in headers:
        status, text = await browser.send("/logout", {"csrf": csrf}, Cookie=cookie, **each)
        assert (status, "only a page of this server" in text) == (403, True), each
    rebound = await browser.send("/logout", {"csrf": csrf}, Cookie=cookie, Host="evil.example")
    assert rebound[0] == 421
    assert await browser.send("/logout", {"csrf": csrf}) == (303, "/login?next=%2F&lost=")
    assert (await browser.ask("/v1/pages", Cookie=cookie))[0] == 200, "nothing was done"


async def test_what_is_no_form_is_refused(browser: Browser) -> None:
    for path in ("/", "/changes", "/v1/pages", "/static/freshet.css"):
        status, headers, _ = await browser.ask(path, "POST", {}, **BEARER)
        assert (status, headers["Allow"]) == (405, "GET, HEAD"), path
    many = "&".join(f"a{n}=1" for n in range(200))
    for body, kind, status in (
        (b"a=" + b"x" * 2**16, FORM, 413), (b"\xff", FORM, 400), (many, FORM, 400),
        (b"{}", {"Content-Type": "application/json"}, 415), (b"a=b", FORM, 303),
    ):  # fmt: skip
        assert (await browser.ask("/logout", "POST", body, **BEARER, **kind))[0] == status
    status, headers, _ = await browser.ask("/none", **PEOPLE, **BEARER)
    assert (status, headers["Content-Type"]) == (404, "text/html; charset=utf-8")


def test_logins_age_are_few_and_tries_come_back() -> None:
    now = [0.0]
    logins = Logins(TOKEN, now=lambda: now[0])

    def begin() -> web.Request:
        asking = make_mocked_request("POST", "/login")
        logins.login(asking, {"token": TOKEN}, answer := web.Response())
        (cookie,) = answer.cookies.values()
        return make_mocked_request("GET", "/", headers={"Cookie": f"{cookie.key}={cookie.value}"})

    first, *_ = (begin() for _ in range(9))
    for _ in range(5):
        with pytest.raises(Refused, match="Wrong token"):
            logins.login(make_mocked_request("POST", "/login"), {}, web.Response())
    with pytest.raises(Refused, match="too many"):
        begin()
    now[0] = 10.0
    second = begin()
    now[0] = 43_201.0
    assert (logins.mark(first), len(logins.mark(second))) == ("", 64)
    for now[0] in range(50_000, 50_000 + 256 * 10, 10):
        assert logins.mark(begin())
    assert logins.mark(second) == ""


def test_a_key_counts_for_one_login_and_for_ten_minutes() -> None:
    now = [0.0]
    logins = Logins(hashed(TOKEN), now=lambda: now[0])
    asking = make_mocked_request("POST", "/login")
    first, second = logins.key_for_one(), logins.key_for_one()
    for given in (first, "", hashed(TOKEN)):
        with pytest.raises(Refused, match="Wrong token"):
            logins.login(asking, {"token": given}, web.Response())
    for given in (second, TOKEN):
        logins.login(asking, {"token": given}, web.Response())
    third, now[0] = logins.key_for_one(), 600.0
    for given in (second, third):
        with pytest.raises(Refused, match="Wrong token"):
            logins.login(asking, {"token": given}, web.Response())


async def test_without_a_token_each_page_says_how_to_get_buttons(tmp_path: Path) -> None:
    async with shown(tmp_path / "crawl.db") as url, aiohttp.ClientSession(headers=PEOPLE) as client:
        for path, said in (
            ("/login", "freshet serve --login"),
            ("/settings", "How to get buttons"),
        ):
            async with client.get(url + path) as response:
                assert said in await response.text()


async def test_settings_are_kept_shown_and_taken_back(browser: Browser) -> None:
    cookie, csrf, _ = await browser.login()

    async def put(match: str, key: str, value: str) -> tuple[int, str]:
        form = {"csrf": csrf, "match": match, "key": key, "value": value, "next": "/settings"}
        return await browser.send("/settings", form, Cookie=cookie)

    for match, key, value in (
        (url_of("/a"), "importance", "3"), (url_of("/a"), "visit", "1"),
        ("a.example", "ignore", ".ad"), ("a.example", "ignore", "#b"),
        ("c.example", "never", "true"), ("c.example", "never", ""),
    ):  # fmt: skip
        assert await put(match, key, value) == (303, "/settings")
    for match, key, value in (
        ("b.example", "never", "false"), ("a b", "never", "true"), ("a.example", "proxy", "x"),
        ("a.example", "importance", "inf"), ("a.example", "ignore", "a["), ("", "visit", "1"),
    ):  # fmt: skip
        assert (await put(match, key, value))[0] == 400, (match, key, value)
    found = await browser.site.store.rows("SELECT match, key, value FROM site_setting")
    assert found == [
        ("a.example", "ignore", '[".ad", "#b"]'),
        (url_of("/a"), "importance", "3.0"),
        (url_of("/a"), "visit", "1"),
    ]
    _, _, body = await browser.ask("/settings", Cookie=cookie)
    assert body.count("Take back</button>") == 3
    # The same on the view of the page, of its site, and on the overview.
    await browser.site.shows("/a", b"<main><p>Words", at=START)
    with writing(browser.site.store.database) as db:
        db.execute("UPDATE host SET exchanges = 2")
    await put(url_of("/a"), "never", "true")
    _, _, body = await browser.ask(f"/page?url={url_of('/a')}", Cookie=cookie)
    assert body.count("Take back: ") == 3
    _, _, body = await browser.ask("/site?origin=https://a.example", Cookie=cookie)
    rows = re.findall(r"<tr><td>([^<]*)</td><td>(\w+)</td><td>([^<]*)</td><td>a browser", body)
    assert {(key, unescape(value)) for _, key, value in rows} == {
        ("ignore", '[".ad", "#b"]'), ("importance", "3.0"), ("never", "true")
    }  # fmt: skip
    _, _, body = await browser.ask("/", Cookie=cookie)
    assert "until taken back</a></td><td>paused</td>" in body


async def test_a_block_is_ignored_by_its_button_until_that_is_taken_back(browser: Browser) -> None:
    page = "<title>T</title><main><h1>Head</h1><p>It stays.<p>So does this.{}<p>The end.</main>"
    for n, more in ((11, ""), (12, "<p>Brand new")):
        words = f"<p id=seen>Seen by {n}</p><div><p>{n} in stock</p></div>{more}"
        await browser.site.shows("/a", page.format(words).encode(), at=START + n)
    cookie, csrf, _ = await browser.login()

    async def blocks(**headers: str) -> dict[str, dict[str, str]]:
        """Return the form of each block that differs, by its text."""
        one = f"/changes/one?url={url_of('/a')}&before=1&after=2"
        _, _, body = await browser.ask(one, **PEOPLE, **headers or {"Cookie": cookie})
        forms = re.findall(r'<form class="ignore".*?</form>', body)
        fields = [dict(re.findall(r'name="(\w+)" value="([^"]*)"', each)) for each in forms]
        return {unescape(each["block"]): each for each in fields}

    ignore = partial(browser.send, "/settings", Cookie=cookie)
    first = await blocks()
    assert list(first) == ["Seen by 12", "12 in stock", "Brand new"]
    assert {each["csrf"] for each in first.values()} == {csrf}
    assert await blocks(**BEARER) == {}
    assert await ignore(first["Seen by 12"]) == (303, "/settings")
    # From the page as it was, whose blocks had other numbers.
    assert (await ignore(first["12 in stock"]))[0] == 303
    assert list(await blocks()) == ["Brand new"]
    assert "no CSS selector takes this" in (await ignore(first["Brand new"]))[1]
    assert "does not differ any more" in (await ignore(first["12 in stock"]))[1]
    assert await browser.site.store.rows("SELECT match, value FROM site_setting") == [
        ("a.example", '["#seen"]'), (url_of("/a"), '["#seen", "body > main > div > p"]')
    ]  # fmt: skip
    # Another program changes them: the next difference shows it.
    with writing(browser.site.store.database) as db:
        runs.put_site_setting(db, SiteSetting(url_of("/a"), "ignore", "", START))
    assert list(await blocks()) == ["12 in stock", "Brand new"]


HOSTILE = (
    "</p></td></script></style></title></textarea><script>alert(1)</script>",
    "\" onmouseover=\"alert(2)\" x='' style=\"x:expression(3)",
    "' autofocus onfocus='alert(4)",
    "<img src=x onerror=alert(5)><svg/onload=alert(6)><iframe srcdoc='<script>7</script>'>",
    "javascript:alert(8)", "{{ 7777 * 7 }}{% include 'base.html' %}",
    "]]>-->\0\u2028\u202e&lt;b&gt;",
)  # fmt: skip


def harmless(page: str) -> bool:
    """Return whether a page has no script, style, handler, frame or link but harmless ones."""
    for node in LexborHTMLParser(page).css("*"):
        given = {name: value or "" for name, value in node.attributes.items()}
        leads = [given[name] for name in ("href", "src", "action", "hx-get") if name in given]
        if (
            not all(re.match(r"/(?!/)|#|https?://", each) for each in leads)
            or any(name.startswith("on") or name in {"style", "srcdoc"} for name in given)
            or (node.tag == "script" and not given.get("src", "").startswith("/static/"))
            or (node.tag == "iframe" and "sandbox" not in given)
            or node.tag in {"style", "object", "embed"}
        ):
            return False
    return "54439" not in page


async def test_whatever_a_site_says_is_text(browser: Browser) -> None:
    cookie, _, _ = await browser.login()
    store, asked = browser.site.store, []
    for n, text in enumerate(HOSTILE):
        for at in (START, START + 60):
            said = html("This stays as it is.", escape(f"{at} {text}"))
            await browser.site.shows(f"/{n}", said, at=at)
        with writing(store.database) as db:
            url = f"https://h{n}.example/{text}"
            db.execute(
                "UPDATE page SET title = ?, url = ? WHERE url = ?", (text, url, url_of(f"/{n}"))
            )
            db.execute("INSERT INTO host (id, origin) VALUES (?, ?)", (100 + n, text))
            db.execute(
                "INSERT INTO robots VALUES (?, 'unreachable', ?, NULL, ?, ?)",
                (100 + n, START, text, text.encode()),
            )
            runs.put_site_setting(db, SiteSetting(f"{url}{n}", "ignore", f'["{text}"]', START))
        asked += [{"url": url, "after": "2"}, {"url": text, "next": text, "q": text}]
    for path in pages._PAGES:
        for query in ({}, dict(zip(HOSTILE, HOSTILE, strict=True)), *asked):
            to = f"{path}?{urlencode(query, errors='replace')}"
            _, headers, body = await browser.ask(to, **PEOPLE, Cookie=cookie)
            assert harmless(body), (to, body)
            assert "script-src 'self'; style-src 'self'" in headers["Content-Security-Policy"]
    for text in HOSTILE:
        _, _, body = await browser.ask(f"/{quote(text)}", **PEOPLE, Cookie=cookie)
        assert harmless(body), text
