"""Requests to a site are made as its table says, and no others are."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from freshet.config.settings import SiteSettings
from freshet.crawler.access import access_at
from freshet.crawler.fetch.addresses import AddressGuard, CachingResolver, NoSuchHost
from freshet.crawler.fetch.client import Fetcher, FetchLimits, NetworkFetcher, Request
from freshet.crawler.tally import CrawlError
from tests.crawler.fetch.hostile_server import CERTIFICATE, hostile, page, sends
from tests.crawler.proxies import http_proxy, serving, socks_proxy

AGENT = "Freshet/1.0 (+https://example.org/about)"
LOOPBACK = AddressGuard(allow_private=True, loopback_only=True)


def table(match: str, **said: Any) -> SiteSettings:
    return SiteSettings.model_validate({"match": match, **said})


@asynccontextmanager
async def fetching(*tables: SiteSettings) -> AsyncIterator[Fetcher]:
    resolver = CachingResolver(overrides={"a.example": "127.0.0.1", "b.example": "127.0.0.1"})
    fetcher = NetworkFetcher(
        AGENT, FetchLimits(), LOOPBACK, resolver, access_at=access_at(tables, AGENT)
    )
    try:
        yield fetcher
    finally:
        await fetcher.close()
        await resolver.close()


def fields(head: bytes) -> dict[str, str]:
    lines = head.decode().split("\r\n")[1:-2]
    return dict(line.split(": ", 1) for line in lines)


COOKIES = """# Netscape HTTP Cookie File
a.example\tFALSE\t/\tFALSE\t0\tsession\tcookie-of-a
a.example\tFALSE\t/members\tFALSE\t0\tmember\tyes
a.example\tFALSE\t/\tTRUE\t0\tonly_tls\tx
b.example\tFALSE\t/\tFALSE\t0\tother\tcookie-of-b
"""


async def test_a_request_has_what_its_site_wants_and_another_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cookies.txt").write_text(COOKIES)
    monkeypatch.setenv("API_KEY", "key-of-16-letters")
    said = table(
        "http://a.example", headers={"X-Api-Key": "env:API_KEY"}, user="me", password="pass-word",
        user_agent_suffix="(for the archive)", cookies=tmp_path / "cookies.txt",
    )  # fmt: skip
    async with hostile(sends(page())) as server, fetching(said) as fetcher:
        urls = [f"http://{name}:{server.port}/members/" for name in ("a.example", "b.example")]
        results = [await fetcher.fetch(Request(url)) for url in urls]
    own, other = map(fields, server.requests)
    assert own["X-Api-Key"] == "key-of-16-letters"
    assert own["Authorization"] == "Basic bWU6cGFzcy13b3Jk"
    assert own["User-Agent"] == f"{AGENT} (for the archive)"
    assert set(own["Cookie"].split("; ")) == {"session=cookie-of-a", "member=yes"}
    assert other.keys() & {"X-Api-Key", "Authorization", "Cookie"} == set()
    assert other["User-Agent"] == AGENT
    # What an archive gets.
    kept = dict(results[0].request_headers)
    assert [kept[name] for name in ("X-Api-Key", "Authorization", "Cookie")] == ["***"] * 3
    assert kept["User-Agent"] == own["User-Agent"]


def test_what_may_be_secret_is_sent_by_tls_alone(caplog: pytest.LogCaptureFixture) -> None:
    at = access_at([table("*.a.example", bearer="a-bearer-token", proxy="http://p.example")], AGENT)
    safe, unsafe = at("https://www.a.example/x"), at("http://www.a.example/x")
    assert safe is not None
    assert safe.fields == {"Authorization": "Bearer a-bearer-token"}
    with caplog.at_level(logging.WARNING):
        assert unsafe is not None
        assert unsafe.fields == {}
        assert unsafe.proxy == "http://p.example"
    assert "bearer of [[sites]] *.a.example is not sent without TLS" in caplog.text
    for match, url in (
        ("http://a.example", "http://a.example/"),
        ("a.localhost", "http://a.localhost/"),
    ):
        found = access_at([table(match, bearer="a-bearer-token")], AGENT)(url)
        assert found is not None
        assert found.fields
    assert at("https://b.example/") is None


@pytest.mark.parametrize("nearer", ["user", "bearer"])
def test_of_two_ways_to_authenticate_the_nearer_one_counts(nearer: str) -> None:
    other = "bearer" if nearer == "user" else "user"
    tables = [table("*.a.example", **{other: "far"}), table("x.a.example", **{nearer: "near"})]
    found = access_at(tables, AGENT)("https://x.a.example/")
    assert found is not None
    kind = "Bearer near" if nearer == "bearer" else "Basic bmVhcjo="
    assert found.fields == {"Authorization": kind}


async def test_a_private_authority_is_trusted_for_its_site_alone() -> None:
    said = table("localhost", ca_file=CERTIFICATE)
    async with hostile(sends(page()), tls=True) as server, fetching(said) as fetcher:
        own = await fetcher.fetch(Request(f"https://localhost:{server.port}/"))
        other = await fetcher.fetch(Request(f"https://127.0.0.1:{server.port}/"))
    assert (own.outcome, other.reason) == ("fetched", "tls")


async def test_a_client_certificate_is_shown_to_its_site() -> None:
    said = table("127.0.0.1", ca_file=CERTIFICATE, client_certificate=CERTIFICATE)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(CERTIFICATE))
    context.load_cert_chain(CERTIFICATE)
    context.verify_mode = ssl.CERT_REQUIRED
    async with hostile(sends(page()), tls=context) as server:
        async with fetching(said) as fetcher:
            assert (await fetcher.fetch(Request(server.url()))).outcome == "fetched"
        async with fetching(table("127.0.0.1", ca_file=CERTIFICATE)) as fetcher:
            assert (await fetcher.fetch(Request(server.url()))).outcome == "failed"


@pytest.mark.parametrize("tls", [False, True])
async def test_a_site_behind_an_http_proxy_is_reached_by_its_name(tls: bool) -> None:
    async with http_proxy() as (port, heads), hostile(sends(page()), tls=tls) as server:
        proxy = f"http://me:pass-word@127.0.0.1:{port}"
        said = table("localhost", proxy=proxy, ca_file=CERTIFICATE)
        async with fetching(said) as fetcher:
            result = await fetcher.fetch(Request(f"{server.scheme}://localhost:{server.port}/"))
            await fetcher.fetch(Request(f"{server.scheme}://b.example:{server.port}/"))
    assert (result.outcome, result.body) == ("fetched", b"<p>Hello")
    assert len(heads) == 1
    assert b"Proxy-Authorization: Basic bWU6cGFzcy13b3Jk" in heads[0]
    assert heads[0].split()[0] == (b"CONNECT" if tls else b"GET")
    assert "bWU6cGFzcy13b3Jk" not in str(result.request_headers)


async def test_a_site_behind_a_socks_proxy_is_reached_by_its_name() -> None:
    async with (
        socks_proxy() as (port, names),
        hostile(sends(page())) as server,
        fetching(table("site.example", proxy=f"socks5://127.0.0.1:{port}")) as fetcher,
    ):
        result = await fetcher.fetch(Request(f"http://site.example:{server.port}/"))
    assert (result.outcome, names) == ("fetched", [b"site.example"])


async def test_a_socks_proxy_may_be_spelt_as_curl_does() -> None:
    async with (
        socks_proxy() as (port, names),
        hostile(sends(page())) as server,
        fetching(table("site.example", proxy=f"socks5h://127.0.0.1:{port}")) as fetcher,
    ):
        result = await fetcher.fetch(Request(f"http://site.example:{server.port}/"))
    assert (result.outcome, names) == ("fetched", [b"site.example"])


async def test_a_connection_to_a_proxy_that_relays_is_used_once() -> None:
    """Such a proxy may hang up whatever the server's fields say."""
    async with (
        http_proxy() as (port, heads),
        hostile(sends(page())) as server,
        fetching(table("localhost", proxy=f"http://127.0.0.1:{port}")) as fetcher,
    ):
        urls = [f"http://localhost:{server.port}/{n}" for n in "ab"]
        results = [await fetcher.fetch(Request(url)) for url in urls]
    assert [each.outcome for each in results] == ["fetched"] * 2
    assert len(heads) == 2
    assert all(b"Connection: close" in head for head in heads)


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_a_proxy_that_is_away_is_a_failed_connection(scheme: str) -> None:
    async with fetching(table("a.example", proxy=f"{scheme}://127.0.0.1:1")) as fetcher:
        result = await fetcher.fetch(Request("http://a.example/"))
    assert (result.outcome, result.reason) == ("failed", "connect")
    assert "proxy" in (result.detail or "")


async def test_a_proxy_without_an_address_says_nothing_of_a_site(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def resolve(*_: object) -> None:
        raise NoSuchHost("no-proxy.example: domain name not found")

    monkeypatch.setattr(CachingResolver, "resolve", resolve)
    async with fetching(table("a.example", proxy="http://no-proxy.example:1")) as fetcher:
        result = await fetcher.fetch(Request("http://a.example/"))
    assert (result.outcome, result.reason) == ("failed", "dns")
    assert result.detail == "the proxy no-proxy.example: domain name not found"


async def test_a_proxy_of_another_kind_is_a_failed_connection() -> None:
    async with (
        socks_proxy() as (port, names),
        fetching(table("a.example", proxy=f"socks4://127.0.0.1:{port}")) as fetcher,
    ):
        result = await fetcher.fetch(Request("http://a.example/"))
    assert (result.outcome, result.reason, names) == ("failed", "connect", [])


@pytest.mark.parametrize("scheme", ["socks4", "socks5"])
@pytest.mark.parametrize(
    "answer",
    [
        b"", b"\0", b"\x05\xff", b"\x00\x5b" + bytes(6), b"\x15\x03\x01\x00\x02\x02\x28",
        b"SSH-2.0-OpenSSH_9.2p1\r\n", b"220 mail.example ESMTP\r\n",
        b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
    ],
)  # fmt: skip
async def test_what_is_no_socks_proxy_is_a_failed_connection(scheme: str, answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)

    async with (
        serving(serve) as port,
        fetching(table("a.example", proxy=f"{scheme}://127.0.0.1:{port}")) as fetcher,
    ):
        result = await fetcher.fetch(Request("https://a.example/"))
    assert (result.outcome, result.reason) == ("failed", "connect")


async def test_no_proxy_leads_to_a_private_address() -> None:
    async with http_proxy() as (port, heads):
        said = table("*.0.0.1", proxy=f"http://127.0.0.1:{port}")
        async with fetching(said) as fetcher:
            result = await fetcher.fetch(Request("http://10.0.0.1/"))
    assert (result.reason, heads) == ("address", [])


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"bearer": "env:NOT_SET"}, "[[sites]] a.example, bearer: environment variable NOT_SET"),
        ({"bearer": "ä-token"}, "bearer: it is not printable ASCII"),
        ({"cookies": "/no/such"}, "cookies: /no/such cannot be read: No such file"),
        ({"cookies": "pyproject.toml"}, "is no cookies.txt of Netscape's form"),
        ({"ca_file": "pyproject.toml"}, "[[sites]] a.example: pyproject.toml"),
        ({"client_certificate": "/no/such"}, "/no/such: No such file"),
        ({"proxy": "ftp://a"}, "proxy: it should begin with one of http://"),
        ({"proxy": "http://"}, "proxy: it should name a host and a port"),
        ({"proxy": "http://a:99999"}, "proxy: it should name a host and a port"),
        ({"proxy": "socks5://a"}, "proxy: it should name a host and a port"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(said: dict[str, Any], words: str) -> None:
    with pytest.raises(CrawlError) as raised:
        access_at([table("a.example", **said)], AGENT)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_a_table_names_is_read_once_and_anew_at_a_reload(tmp_path: Path) -> None:
    token, cookies, pem = tmp_path / "token", tmp_path / "cookies.txt", tmp_path / "loopback.pem"
    token.write_text("the-first-token")
    cookies.write_text(COOKIES)
    pem.write_bytes(CERTIFICATE.read_bytes())
    tables = [
        table("*.a.example", bearer=f"file:{token}", cookies=cookies, client_certificate=pem),
        # A part of these hosts has a key of its own file, which is of no use without the rest.
        table("x.a.example", client_key=pem, ca_file=pem),
    ]
    at = access_at(tables, AGENT)
    token.write_text("the-second-token")
    found = [at(f"https://{n}.a.example/") for n in range(3)]
    for file in (cookies, pem):
        file.unlink()
    found.append(at("https://y.a.example/"))
    own = at("https://x.a.example/")
    for access in found:
        assert access is not None
        assert access.fields == {"Authorization": "Bearer the-first-token"}
    assert len({id(access.cookies) for access in found if access}) == 1
    assert len({id(access.tls) for access in found if access}) == 1
    assert own is not None
    assert found[0] is not None
    assert own.tls is not found[0].tls
    again = access_at([table("*.a.example", bearer=f"file:{token}")], AGENT)("https://a.example/")
    assert again is not None
    assert again.fields == {"Authorization": "Bearer the-second-token"}
