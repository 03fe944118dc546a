"""Requests to a site are made as its table says, and no others are."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from freshet.config.settings import SiteSettings
from freshet.crawler.errors import CrawlError, NoSuchHost
from freshet.crawler.fetch.addresses import AddressGuard, CachingResolver
from freshet.crawler.fetch.client import Fetcher, FetchLimits, NetworkFetcher, Request
from freshet.crawler.fetch.transport import Access
from freshet.crawler.run.access import access_at
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
    said = {
        "headers": {"X-Api-Key": "env:API_KEY"}, "user": "me", "password": "pass-word",
        "user_agent_suffix": "(for the archive)", "cookies": tmp_path / "cookies.txt",
    }  # fmt: skip
    async with (
        hostile(sends(page())) as server,
        fetching(table(f"http://a.example:{server.port}", **said)) as fetcher,
    ):
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
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(CERTIFICATE))
    context.load_cert_chain(CERTIFICATE)
    context.verify_mode = ssl.CERT_REQUIRED
    async with hostile(sends(page()), tls=context) as server:
        shown = {"ca_file": CERTIFICATE, "client_certificate": CERTIFICATE}
        async with fetching(table(server.netloc, **shown)) as fetcher:
            assert (await fetcher.fetch(Request(server.url()))).outcome == "fetched"
        async with fetching(table("127.0.0.1", ca_file=CERTIFICATE)) as fetcher:
            assert (await fetcher.fetch(Request(server.url()))).outcome == "failed"
        # To the default port only, and not to a page of another origin.
        async with fetching(table("127.0.0.1", **shown)) as fetcher:
            assert (await fetcher.fetch(Request(server.url()))).outcome == "failed"
        async with fetching(table(server.netloc, **shown)) as fetcher:
            wanted = Request(server.url(), is_anonymous=True)
            assert (await fetcher.fetch(wanted)).outcome == "failed"


PLAIN, SAFE = "http://a.example", "https://a.example"


@pytest.mark.parametrize(
    ("match", "others", "own"),
    [
        ("a.example", [f"{SAFE}:8443", f"{SAFE}:80", f"{SAFE}:444", PLAIN, f"{PLAIN}:443",
                       f"{SAFE}.:8443", f"{SAFE}.evil.example", "https://b.example:8443",
                       "https://me:x@a.example:8443", "https://a.example@b.example",
                       "https://a.example:443@b.example"], SAFE),
        ("www.a.example", [f"{SAFE}:8443", "https://www.a.example:444"], SAFE),
        ("A.example", ["https://A.EXAMPLE:8443"], "https://A.EXAMPLE"),
        ("*.a.example", [f"{SAFE}:8443", "https://x.a.example:81", "https://x.y.a.example:444"],
         "https://x.a.example"),
        ("https://a.example", [f"{SAFE}:8443"], SAFE),
        ("https://*.a.example", ["https://x.a.example:8443"], "https://x.a.example"),
        ("http://a.example", [f"{PLAIN}:8080", f"{PLAIN}:443", f"{PLAIN}:81", SAFE], PLAIN),
        ("http://*.a.example", ["http://x.a.example:8080"], "http://x.a.example"),
        ("a.example:8443", [SAFE, f"{SAFE}:8444", f"{PLAIN}:8443"], f"{SAFE}:8443"),
        ("a.example:443", [f"{SAFE}:8443", f"{PLAIN}:443"], SAFE),
        ("http://a.example:8080", [PLAIN, f"{SAFE}:8080"], f"{PLAIN}:8080"),
        ("*.a.example:8443", ["https://x.a.example", "https://x.a.example:1"],
         "https://x.a.example:8443"),
        ("[2001:db8::1]", ["https://[2001:db8::1]:8443", "http://[2001:db8::1]"],
         "https://[2001:db8::1]"),
        ("[2001:db8::1]:8443", ["https://[2001:db8::1]"], "https://[2001:db8::1]:8443"),
        ("192.0.2.1", ["https://192.0.2.1:8443", "https://3221225985:444"], "https://192.0.2.1"),
        ("localhost", ["http://localhost:8080", "https://localhost:8443"], "http://localhost"),
        ("127.0.0.1", ["http://127.0.0.1:8080", "http://127.1:81"], "https://127.0.0.1"),
        ("localhost:8080", ["http://localhost"], "http://localhost:8080"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["headers", "user", "bearer", "cookies", "client_certificate"])
def test_secrets_are_sent_to_the_port_that_is_named_or_else_to_that_of_the_scheme(
    match: str, others: list[str], own: str, kind: str, tmp_path: Path
) -> None:
    (tmp_path / "cookies.txt").write_text(COOKIES)
    value = {
        "headers": {"X-Key": "a-key-of-tests"}, "user": "me", "bearer": "a-bearer-token",
        "cookies": tmp_path / "cookies.txt", "client_certificate": CERTIFICATE,
    }[kind]  # fmt: skip
    at = access_at([table(match, **{kind: value}, user_agent_suffix="(us)")], AGENT)

    def is_sent(url: str) -> bool:
        found = at(f"{url}/page?x=1")
        if found is None:
            return False
        # What is no secret is sent as ever.
        assert found.fields["User-Agent"].endswith("(us)")
        assert found.public == Access({"User-Agent": f"{AGENT} (us)"})
        return found != replace(found.public, public=found.public)

    assert [url for url in others if is_sent(url)] == []
    assert is_sent(own)


def test_a_table_for_another_port_does_not_hide_the_one_that_names_it() -> None:
    tables = [table("a.example", user="me", password="near"), table("a.example:81", bearer="far")]
    at = access_at([*tables, table("*.example:82", user="you", password="far")], AGENT)
    found = [at(f"{SAFE}{port}/") for port in ("", ":81", ":82", ":83")]
    sent = [None if it is None else it.fields["Authorization"] for it in found]
    assert sent == ["Basic bWU6bmVhcg==", "Bearer far", "Basic eW91OmZhcg==", None]


def test_half_of_a_pair_is_not_sent(caplog: pytest.LogCaptureFixture) -> None:
    tables = [
        table("a.example:81", user="me", client_certificate=CERTIFICATE),
        table("*.a.example", password="pass-word", client_key=CERTIFICATE),
    ]
    at = access_at(tables, AGENT)
    with caplog.at_level(logging.WARNING):
        assert at(f"{SAFE}:81/") is None
    assert "password of [[sites]] *.a.example is not sent to another port" in caplog.text


@pytest.mark.parametrize("port", ["named", "default"])
async def test_a_redirect_and_a_link_to_another_port_get_no_secrets(port: str) -> None:
    """As in Scrapy's advisory GHSA-4qqq-9vqf-3h3f."""
    async with hostile(sends(page())) as own, hostile(sends(page())) as other:
        match = f"localhost:{own.port}" if port == "named" else "localhost"
        async with fetching(table(match, bearer="a-bearer-token")) as fetcher:
            for server in (own, other):
                await fetcher.fetch(Request(f"http://localhost:{server.port}/"))
    sent = ["Authorization" in fields(each.requests[0]) for each in (own, other)]
    assert sent == [port == "named", False]


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
        ({"cookies": "/no/such"}, "cookies: /no/such: No such file or directory; check"),
        ({"cookies": "pyproject.toml"}, "is not a cookies.txt of Netscape's form"),
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
