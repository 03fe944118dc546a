"""What a page elsewhere cannot write, and how often anybody may guess the token."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from tests.crawler.read.test_api import LINKED, SEARCH, TOKEN, Site, serving
from tests.crawler.read.test_api import site as served
from tests.storage.small_store import rows

site = served
BEARER = {"Authorization": f"Bearer {TOKEN}"}
WRONG = {"Authorization": "Bearer 0123456789abcdeX"}

#: Headers of a request that a page of another origin makes a browser send.
OTHERS: Mapping[str, Mapping[str, str]] = {
    "image": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image"},
    "frame": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    "script": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "script"},
    "another port": {"Sec-Fetch-Site": "same-site"},
    "a word to come": {"Sec-Fetch-Site": "somewhere"},
    "empty": {"Sec-Fetch-Site": ""},
    "fetch": {"Origin": "https://evil.example"},
    "sandbox": {"Origin": "null"},
    "file": {"Origin": "file://"},
    "older browser": {"Referer": "http://evil.example/page"},
    "other port, older browser": {"Referer": "http://127.0.0.1:1/"},
    "both": {"Origin": "https://evil.example", "Referer": "https://evil.example/"},
}
OWN: Mapping[str, Mapping[str, str]] = {
    "program": {},
    "typed": {"Sec-Fetch-Site": "none"},
    "own page": {"Sec-Fetch-Site": "same-origin"},
    "own page, older browser": {"Referer": "HOST/search", "Origin": "HOST"},
}


async def asks(site: Site, path: str, headers: Mapping[str, str]) -> int:
    given = {name: value.replace("HOST", site.url) for name, value in headers.items()}
    return (await site.ask(path, **given))[0]


@pytest.mark.parametrize("headers", [*OTHERS.values(), *OWN.values()], ids=[*OTHERS, *OWN])
async def test_a_get_that_another_origin_sends_writes_nothing(
    site: Site, headers: Mapping[str, str]
) -> None:
    path, is_own = site.store.database.path, headers in OWN.values()
    await site.indexes()
    async with serving(path, search__remember=True, **LINKED) as site.url:
        assert await asks(site, f"{SEARCH}?q=page", headers) == 200
        assert rows(path, "SELECT count(*) FROM search_asked") == [(int(is_own),)]
        assert (rows(path, "SELECT count(*) FROM showing") > [(0,)]) is is_own
        link = await site.link()
        assert await asks(site, link, headers) == 302
        opened = "SELECT count(*) FROM showing WHERE opened_at IS NOT NULL"
        assert rows(path, opened) == [(int(is_own),)]
        # A link in a mail that somebody has followed.
        await asks(site, link, {**headers, "Sec-Fetch-User": "?1"})
        assert rows(path, opened) == [(1,)]


@pytest.fixture
async def guarded(site: Site) -> AsyncIterator[Site]:
    path: Path = site.store.database.path
    async with serving(
        path, operation__token=TOKEN, operation__trusted_proxies=["127.0.0.1/32", "10.0.0.0/8"]
    ) as site.url:
        yield site


@pytest.mark.parametrize("path", ["/metrics", "/v1/pages", "/v1/changefeed", "/v1/openapi.json"])
async def test_wrong_tokens_in_a_header_are_counted_as_those_of_the_login(
    site: Site, path: str
) -> None:
    async with serving(site.store.database.path, operation__token=TOKEN) as site.url:
        async with site.client.get(site.url + path) as response:
            assert response.status == 401
        statuses, later = list[int](), None
        for headers in [WRONG] * 7 + [BEARER]:
            async with site.client.get(site.url + path, headers=headers) as response:
                statuses.append(response.status)
                later = response.headers.get("Retry-After")
        assert statuses == [401] * 5 + [429] * 3
        assert later == "5"
        async with site.client.get(f"{site.url}/healthz", headers=WRONG) as response:
            assert response.status == 200


@pytest.mark.parametrize(
    ("wrong", "right", "status"),
    [
        # By who the proxy says.
        ("192.0.2.1", "192.0.2.2", 200),
        ("192.0.2.1", "192.0.2.1", 429),
        ("192.0.2.1:4711", "192.0.2.1:4712", 429),
        ("::ffff:192.0.2.1", "192.0.2.1", 429),
        # What the client itself has put there is not believed.
        ("192.0.2.9, 192.0.2.1", "192.0.2.8, 192.0.2.1", 429),
        ("192.0.2.1", "192.0.2.1, 192.0.2.2", 200),
        # Behind two proxies that are ours.
        ("192.0.2.1, 10.0.0.1", "192.0.2.2, 10.0.0.1", 200),
        ("192.0.2.1, 10.0.0.1", "192.0.2.1, 10.0.0.2", 429),
        # One client has a whole network of IPv6.
        ("2001:db8::1", "2001:db8::2", 429),
        ("[2001:db8::1]:99", "2001:db8::2", 429),
        ("2001:db8::1", "2001:db8:0:1::1", 200),
        ("", "", 429),
        ("nonsense", "192.0.2.2", 200),
    ],
)
async def test_behind_a_proxy_each_client_has_tries_of_its_own(
    guarded: Site, wrong: str, right: str, status: int
) -> None:
    async def ask(headers: Mapping[str, str], client: str) -> int:
        given = {**headers, "X-Forwarded-For": client}
        async with guarded.client.get(f"{guarded.url}/metrics", headers=given) as response:
            return response.status

    assert [await ask(WRONG, wrong) for _ in range(6)] == [401] * 5 + [429]
    assert await ask(BEARER, right) == status


async def test_no_client_names_itself_where_no_proxy_is_trusted(site: Site) -> None:
    async with serving(site.store.database.path, operation__token=TOKEN) as site.url:
        statuses = []
        for number in range(7):
            headers = {**WRONG, "X-Forwarded-For": f"192.0.2.{number}"}
            async with site.client.get(f"{site.url}/metrics", headers=headers) as response:
                statuses.append(response.status)
        assert statuses == [401] * 5 + [429] * 2
