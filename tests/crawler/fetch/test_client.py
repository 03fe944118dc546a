import asyncio
import gzip
import logging
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import get_args

import brotli
import pytest
import uvloop
import zstandard
from aiohttp.abc import ResolveResult

from freshet.crawler.errors import NotMade
from freshet.crawler.fetch import transport
from freshet.crawler.fetch.addresses import AddressGuard, CachingResolver, DnsLimits
from freshet.crawler.fetch.body import BodyPace, BodyRules, HeldBytes, Intake
from freshet.crawler.fetch.client import (
    Accept,
    Fetcher,
    FetchLimits,
    NetworkFetcher,
    OursOrTheirs,
    Request,
)
from freshet.crawler.fetch.masking import MASK
from freshet.storage.entries import Outcome
from freshet.storage.records import FetchResult, Validators
from tests.crawler.fetch.dns_server import SERVFAIL, name_server
from tests.crawler.fetch.hostile_server import (
    CERTIFICATE,
    Answer,
    HostileServer,
    closes,
    hostile,
    page,
    repeats,
    resets,
    sends,
)

MIB = 1024 * 1024
AGENT = "Freshet/1.0 (+https://example.org/about)"
HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
LIMITS = FetchLimits(max_body_bytes=MIB)
LOOPBACK = AddressGuard(allow_private=True, loopback_only=True)


@asynccontextmanager
async def fetching(
    limits: FetchLimits = LIMITS,
    guard: AddressGuard = LOOPBACK,
    resolver: CachingResolver | None = None,
    tls: ssl.SSLContext | None = None,
    accept_language: str = "",
) -> AsyncIterator[Fetcher]:
    resolver = resolver or CachingResolver()
    fetcher = NetworkFetcher(
        AGENT, limits, guard, resolver, accept_language=accept_language, tls=tls
    )
    try:
        yield fetcher
    finally:
        await fetcher.close()
        await resolver.close()


async def exchange(
    answer: Answer,
    accept: Accept = "page",
    validators: Validators | None = None,
    limits: FetchLimits = LIMITS,
    *,
    is_any_type: bool = False,
) -> tuple[FetchResult, HostileServer]:
    async with hostile(answer) as server, fetching(limits) as fetcher:
        request = Request(server.url(), accept, validators, is_any_type=is_any_type)
        return await fetcher.fetch(request), server


async def reason_of(answer: Answer, limits: FetchLimits = LIMITS) -> str | None:
    """The reason of a failure; whatever the server does, it is asked once."""
    result, server = await exchange(answer, limits=limits)
    assert result.outcome == "failed"
    assert result.detail
    assert len(server.requests) == 1
    return result.reason


async def test_a_page_is_fetched_with_all_that_an_archive_needs() -> None:
    head = b"HTTP/1.1 200 OK\r\nX-First: 1\r\ncontent-TYPE: text/html\r\nX-First: \xe9\r\n"
    result, server = await exchange(sends(head + b"Content-Length: 5\r\n\r\nHello"))
    assert (result.outcome, result.status, result.reason) == ("fetched", 200, None)
    assert result.url == server.url()
    assert result.body == result.wire_body == b"Hello"
    assert result.headers == (
        (b"X-First", b"1"), (b"content-TYPE", b"text/html"), (b"X-First", b"\xe9"),
        (b"Content-Length", b"5"),
    )  # fmt: skip
    assert result.peer == "127.0.0.1"
    assert result.duration_s >= 0
    assert dict(result.request_headers)["User-Agent"] == AGENT


async def test_a_cookie_is_sent_and_not_noted() -> None:
    async with hostile(sends(page())) as server, fetching() as f:
        result = await f.fetch(Request(server.url(), headers=(("Cookie", "a=secret"),)))
    assert b"\r\nCookie: a=secret\r\n" in server.requests[0]
    assert dict(result.request_headers)["Cookie"] == MASK


async def test_a_request_says_who_asks_and_what_is_understood() -> None:
    async with hostile(sends(page())) as server, fetching(accept_language="en, de;q=0.5") as f:
        await f.fetch(Request(server.url("/a%2Fb/~x?q=%7e&r#part")))
    line, *headers = server.requests[0].decode().split("\r\n")
    assert line == "GET /a%2Fb/~x?q=%7e&r HTTP/1.1"
    assert f"User-Agent: {AGENT}" in headers
    assert "Accept-Encoding: gzip, deflate, br, zstd" in headers
    assert "Accept-Language: en, de;q=0.5" in headers
    assert f"Host: {server.netloc}" in headers
    assert not any(name.startswith(("If-", "Cookie", "Referer")) for name in headers)


async def test_no_language_is_asked_for_unless_one_is_set() -> None:
    _, server = await exchange(sends(page()))
    assert b"accept-language" not in server.requests[0].lower()


async def test_both_validators_are_sent_and_not_modified_is_believed() -> None:
    known = Validators('W/"a-1"', "Sun, 06 Nov 1994 08:49:37 GMT")
    result, server = await exchange(
        sends(b'HTTP/1.1 304 Not Modified\r\nETag: W/"a-1"\r\n\r\n'), validators=known
    )
    assert result.outcome == "not_modified"
    assert b'If-None-Match: W/"a-1"\r\n' in server.requests[0]
    assert b"If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n" in server.requests[0]


async def test_requests_to_one_host_do_not_take_each_others_fields() -> None:
    async with hostile(sends(page())) as server, fetching() as f:
        wanted = [
            Request(server.url("/1"), validators=Validators('"a"', None)),
            Request(server.url("/2"), "sitemap"),
            Request(server.url("/3"), validators=Validators(None, "Sun, 06 Nov 1994 08:49:37 GMT")),
            Request(server.url("/4"), headers=(("Accept-Language", "fi"),)),
            Request(server.url("/5"), validators=Validators('"b"', None)),
            Request(server.url("/6")),
        ]
        results = [await f.fetch(each) for each in wanted]
    sent = [request.decode().split("\r\n")[1:] for request in server.requests]
    for result, fields in zip(results, sent, strict=True):
        assert [f"{name}: {value}" for name, value in result.request_headers] == fields[:-2]
    own = [[field for field in fields if field.startswith(("If-", "Accept-L"))] for fields in sent]
    assert own == [
        ['If-None-Match: "a"'], [], ["If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"],
        ["Accept-Language: fi"], ['If-None-Match: "b"'], [],
    ]  # fmt: skip
    assert ["Accept: application/xml, text/xml" in "\n".join(fields) for fields in sent] == [
        False, True, False, False, False, False
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "outcome"),
    [("404 Not Found", "gone"), ("410 Gone", "gone"),
     ("403 Forbidden", "failed"), ("500 Oops", "failed")],
)  # fmt: skip
async def test_an_error_is_recorded_with_its_status_and_without_its_body(
    status: str, outcome: Outcome
) -> None:
    result, _ = await exchange(sends(page(b"Sorry", status=status)))
    assert (result.outcome, result.reason) == (outcome, f"http_{status[:3]}")
    assert result.body == b""


async def test_a_redirect_is_told_and_not_followed() -> None:
    answer = sends(page(b"", "Location: ../b?c=d", status="301 Moved"))
    result, server = await exchange(answer)
    assert (result.outcome, result.status) == ("redirected", 301)
    assert result.location == server.url("/b?c=d")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "headers",
    [("Retry-After: 90",),
     ("Date: Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After: Sun, 06 Nov 1994 08:51:07 GMT")],
)  # fmt: skip
async def test_retry_after_is_read_by_the_servers_own_clock(headers: tuple[str, ...]) -> None:
    result, _ = await exchange(sends(page(b"", *headers, status="503 Busy")))
    assert (result.reason, result.retry_after_s) == ("http_503", 90.0)


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: bytes(brotli.compress(data, quality=5)),
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
}


@pytest.mark.parametrize("coding", ENCODERS)
async def test_an_encoded_body_is_decoded_and_kept_as_it_came(coding: str) -> None:
    wire = ENCODERS[coding](b"<p>Hello" * 50)
    result, _ = await exchange(sends(page(wire, f"Content-Encoding: {coding}")))
    assert (result.body, result.wire_body) == (b"<p>Hello" * 50, wire)


async def test_codings_in_two_header_lines_are_undone_from_the_last() -> None:
    wire = brotli.compress(gzip.compress(b"text"))
    answer = sends(page(wire, "Content-Encoding: gzip", "Content-Encoding: br"))
    result, _ = await exchange(answer)
    assert result.body == b"text"


@pytest.mark.parametrize("coding", ENCODERS)
async def test_a_bomb_ends_at_the_limit(coding: str) -> None:
    bomb = ENCODERS[coding](bytes(64 * MIB))
    assert await reason_of(sends(page(bomb, f"Content-Encoding: {coding}"))) == "too_large"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (repeats(HTML + b"\r\n", b"all work and no play " * 999), "too_large"),
        (sends(HTML + b"Content-Length: 99999999\r\n\r\n"), "too_large"),
        (closes(b"HTTP/1.1 200 " + b"a" * MIB), "headers_too_large"),
        (resets(HTML + b"\r\nHello"), "cut_short"),
        (sends(page(gzip.compress(bytes(range(99)))[:-20], "Content-Encoding: gzip")), "cut_short"),
        (resets(), "hung_up"),
    ],
    ids=["an endless body", "a body announced as too large", "a long status line",
         "a reset body of unknown length", "a compressed body without its end",
         "a reset before any answer"],
)  # fmt: skip
async def test_what_does_not_end_well_is_a_failure_with_its_reason(
    answer: Answer, reason: str
) -> None:
    assert await reason_of(answer) == reason


async def test_a_request_may_bring_its_own_limit() -> None:
    async with hostile(sends(page(b"x" * 101))) as server, fetching() as fetcher:
        ok = await fetcher.fetch(Request(server.url(), max_body_bytes=101))
        cut = await fetcher.fetch(Request(server.url(), max_body_bytes=100))
    assert (ok.outcome, cut.reason) == ("fetched", "too_large")


async def test_a_robots_file_is_cut_one_byte_behind_its_limit() -> None:
    answer = repeats(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n", b"Disallow: /a\n" * 999)
    result, _ = await exchange(answer, "robots")
    assert result.outcome == "fetched"
    assert len(result.body) == 500 * 1024 + 1


async def test_a_sitemap_may_be_larger_than_a_page_and_of_any_type() -> None:
    answer = sends(page(b"x" * (MIB + 1), "Content-Type: application/octet-stream"))
    result, _ = await exchange(answer, "sitemap")
    assert (result.outcome, len(result.body)) == ("fetched", MIB + 1)


@pytest.mark.parametrize(
    "head",
    [
        b"".join(b"X-%d: a\r\n" % number for number in range(200_000)),
        b"X: " + b"a" * MIB + b"\r\n",
        b"a" * MIB,
        b"".join(b"X-%d: %s\r\n" % (number, b"a" * 8000) for number in range(9)) + b"\r\n",
    ],
    ids=["200,000 headers", "one long value", "one long name", "too many bytes in all"],
)
async def test_a_flood_of_headers_ends_at_the_limit(head: bytes) -> None:
    assert await reason_of(closes(HTML + head)) == "headers_too_large"


async def test_ordinary_headers_may_be_many_and_long() -> None:
    headers = [f"X-{number}: {'a' * 200}" for number in range(200)]
    result, _ = await exchange(sends(page(b"Hello", *headers, f"Y: {'b' * 15_000}")))
    assert result.outcome == "fetched"


@pytest.mark.parametrize(
    "answer", [sends(b""), sends(b"HTTP/1.1 200 OK\r\nX-Slow: ")], ids=["nothing", "half a header"]
)
async def test_headers_that_do_not_come_run_into_their_time_out(answer: Answer) -> None:
    limits = replace(LIMITS, headers_timeout_s=0.05)
    assert await reason_of(answer, limits) == "timeout_headers"


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (replace(LIMITS, rate_window_s=0.05), "too_slow"),
        (replace(LIMITS, body_timeout_s=0.05, min_rate_bytes_per_s=0), "timeout_body"),
    ],
)
async def test_a_body_that_trickles_runs_into_a_limit(limits: FetchLimits, reason: str) -> None:
    assert await reason_of(sends(HTML + b"Content-Length: 20\r\n\r\nhi"), limits) == reason


async def test_a_robots_txt_that_never_ends_is_not_waited_for_as_a_page_is() -> None:
    async def trickles(writer: asyncio.StreamWriter) -> None:
        writer.write(HTML + b"\r\nUser-agent: *\n")
        while not writer.is_closing():
            writer.write(b"#")
            await writer.drain()
            await asyncio.sleep(0)

    limits = replace(LIMITS, rate_window_s=0.05, body_timeout_s=60)
    async with hostile(trickles) as server, fetching(limits) as fetcher:
        result = await fetcher.fetch(Request(server.url("/robots.txt"), "robots"))
    assert (result.reason, result.truncated) == ("timeout_body", "time")


@pytest.mark.parametrize("end", [closes, resets])
@pytest.mark.parametrize(
    "framing", [b"Content-Length: 20\r\n\r\nhi", b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n"]
)
async def test_a_body_that_breaks_off_is_cut_short(
    framing: bytes, end: Callable[[bytes], Answer]
) -> None:
    assert await reason_of(end(HTML + framing)) == "cut_short"


async def test_a_body_of_unknown_length_ends_with_the_connection() -> None:
    result, _ = await exchange(closes(HTML + b"\r\nHello"))
    assert (result.outcome, result.body) == ("fetched", b"Hello")


@pytest.mark.parametrize(
    "data",
    [b"garbage\r\n\r\n", b"\x16\x03\x01\x00\xff" * 9,
     b"HTTP/1.1 two hundred\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n",
     HTML + b"Content-Length: five\r\n\r\nHello"],
)  # fmt: skip
async def test_what_is_not_http_is_a_protocol_failure_and_asked_for_once(data: bytes) -> None:
    assert await reason_of(closes(data)) == "protocol"


@pytest.mark.parametrize("coding", ["compress", "gzip, gzip, gzip", "gzip", "br", "zstd"])
async def test_a_body_that_cannot_be_decoded_is_an_encoding_failure(coding: str) -> None:
    body = page(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", f"Content-Encoding: {coding}")
    assert await reason_of(sends(body)) == "encoding"


@pytest.mark.parametrize("label", ["image/png", "text/css", "application/octet-stream"])
async def test_a_body_of_a_type_that_is_not_wanted_is_not_read(label: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {label}\r\n\r\n".encode()
    result, _ = await exchange(repeats(head, bytes(MIB)))
    assert (result.outcome, result.reason) == ("skipped", "content_type")
    assert label in (result.detail or "")
    assert result.wire_body == b""


@pytest.mark.parametrize("label", ["image/png", "text/css", "application/octet-stream"])
async def test_of_any_type_only_text_is_read(label: str) -> None:
    for body, outcome in ((b"<rss>", "fetched"), (b"\x89PNG\r\n\x1a\n\0" * 99, "skipped")):
        answer = closes(page(body, f"Content-Type: {label}"))
        result, _ = await exchange(answer, is_any_type=True)
        assert result.outcome == outcome
        assert (result.reason == "content_type") == (outcome == "skipped")
        assert (label in (result.detail or "")) == (outcome == "skipped")


UNKNOWN = ["nonsense", "unknown/unknown", "application/unknown", "*/*", "Unknown/Unknown; x=y", "/"]


@pytest.mark.parametrize("label", ["", *(f"Content-Type: {each}\r\n" for each in ("", *UNKNOWN))])
@pytest.mark.parametrize(
    ("body", "outcome"), [(b"<html>", "fetched"), (b"\x89PNG\r\n\x1a\n\0", "skipped")]
)
async def test_an_unlabelled_body_counts_if_it_is_text(
    label: str, body: bytes, outcome: Outcome
) -> None:
    result, _ = await exchange(closes(b"HTTP/1.1 200 OK\r\n" + label.encode() + b"\r\n" + body))
    assert result.outcome == outcome


async def test_connections_are_kept_alive_and_cookies_are_not_kept() -> None:
    async with hostile(sends(page(b"a", "Set-Cookie: id=1"))) as server, fetching() as fetcher:
        for _ in range(3):
            assert (await fetcher.fetch(Request(server.url()))).peer == "127.0.0.1"
        assert (len(server.requests), server.connections) == (3, 1)
        assert not any(b"cookie" in request.lower() for request in server.requests)


async def test_a_kept_connection_that_went_stale_is_no_failure_and_not_replaced_at_once() -> None:
    async def hangs_up_on_every_second(writer: asyncio.StreamWriter) -> None:
        await (closes() if len(server.requests) == 2 else sends(page()))(writer)

    async with hostile(hangs_up_on_every_second) as server, fetching() as fetcher:
        careful, request = OursOrTheirs(fetcher), Request(server.url())
        assert (await careful.fetch(request)).outcome == "fetched"
        with pytest.raises(NotMade) as own:
            await careful.fetch(request)
        assert (len(server.requests), own.value.hold_s) == (2, 0.0)
        assert (await careful.fetch(request)).outcome == "fetched"
    assert (len(server.requests), server.connections) == (3, 2)


async def test_bodies_that_come_at_once_take_the_memory_of_a_few_and_all_come() -> None:
    piece, pieces, ended = 64 * 1024, 8, list[int]()
    # What is read ahead and the short beginnings of all, and two bodies.
    most = 20 * 3 * piece + 2 * pieces * piece
    held = HeldBytes(most)

    async def read(number: int) -> None:
        for _ in range(pieces):
            await held.grow(piece)
            await asyncio.sleep(0)
            assert sum(held._held.values()) <= most + pieces * piece
        ended.append(number)

    await asyncio.gather(*map(read, range(20)))
    assert sorted(ended) == list(range(20))
    await asyncio.sleep(0)
    assert held._held == {}


async def test_the_time_that_a_body_waits_for_memory_is_not_its_own() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 200_000

    async def read() -> int:
        clock = asyncio.get_running_loop().time
        await intake.read(chunks(), BodyPace(0.0, 1.0, 0.2, clock()), held)
        return len(intake.result()[1])

    held, intake = HeldBytes(1), Intake("", BodyRules(10**6))
    first = asyncio.create_task(asyncio.sleep(0.4))
    held._held[first] = 1
    first.add_done_callback(held.release)
    assert await asyncio.create_task(read()) == 600_000
    assert first.done()


class Unreached:
    """A fetcher that ends each request as ``reasons`` says by host; "fine" is an answer."""

    def __init__(self, **reasons: str) -> None:
        self.reasons = reasons

    async def fetch(self, request: Request) -> FetchResult:
        reason = self.reasons[request.url.removeprefix("http://")[0]]
        if reason == "fine":
            return FetchResult(request.url, "fetched", 0.0, 0.1, 200)
        return FetchResult(request.url, "failed", 0.0, 0.1, None, reason, "words")


@pytest.mark.parametrize(
    ("reasons", "ours"),
    [
        ("a no_network, a no_network", "aa"),
        ("a no_network, b fine, a no_network", "a"),
        ("b fine, a no_descriptors", "a"),
        ("a timeout_connect, a timeout_connect", ""),
        ("a timeout_connect, b dns, c dns, a dns", "ca"),
        ("a timeout_connect, b dns, d fine, c dns", ""),
        ("a connect, b http_500, c no_such_host", ""),
    ],
)
async def test_what_nobody_can_do_for_us_is_our_own_failure(reasons: str, ours: str) -> None:
    fetcher = OursOrTheirs(Unreached())
    blamed = ""
    for host, reason in (each.split() for each in reasons.split(", ")):
        fetcher.fetcher = Unreached(**{host: reason})
        try:
            await fetcher.fetch(Request(f"http://{host}/"))
        except NotMade:
            blamed += host
        await asyncio.sleep(0.002)
    assert blamed == ours


async def test_no_more_connections_stay_idle_than_may_be_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "connections", lambda: 2)
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(hostile(sends(page()))) for _ in range(4)]
        fetcher = await stack.enter_async_context(fetching())
        for server in [*servers, servers[-1], servers[0]]:
            assert (await fetcher.fetch(Request(server.url()))).outcome == "fetched"
    assert [server.connections for server in servers] == [2, 1, 1, 1]


async def test_an_idle_connection_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_IDLE_S", 0.0)
    async with hostile(sends(page())) as server, fetching() as fetcher:
        await fetcher.fetch(Request(server.url()))
        while server.tasks:  # noqa: ASYNC110 - the server is the test's own
            await asyncio.sleep(0)
        assert (await fetcher.fetch(Request(server.url()))).outcome == "fetched"
    assert server.connections == 2


async def test_interim_responses_without_end_are_refused() -> None:
    endless = b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000
    assert await reason_of(sends(endless + page())) == "protocol"
    assert await reason_of(repeats(b"", b"HTTP/1.1 102 Processing\r\n\r\n")) == "protocol"
    few = b"HTTP/1.1 103 Early Hints\r\n\r\n" * 16
    assert (await exchange(sends(few + page())))[0].outcome == "fetched"


@pytest.mark.parametrize("odd", ["\x01", '"a\x7f"', '"\u20ac"', " ", '"' + "x" * 2_000 + '"'])
async def test_validators_that_are_no_field_values_are_not_sent(odd: str) -> None:
    result, server = await exchange(sends(page()), validators=Validators(odd, odd))
    assert (result.outcome, b"If-" in server.requests[0]) == ("fetched", False)


@pytest.mark.parametrize("url", ["http://127.0.0.1:25/", "http://127.0.0.1/" + "a" * 9_000])
async def test_ports_of_other_services_and_endless_urls_are_not_requested(url: str) -> None:
    async with fetching() as fetcher:
        result = await fetcher.fetch(Request(url))
    assert (result.outcome, result.reason) == ("failed", "url")


async def test_every_text_of_a_result_can_be_stored_whatever_bytes_came() -> None:
    head = b"HTTP/1.1 200 O\xffK\r\nContent-Length: 1\r\nContent-Encoding: \xff\r\n"
    for kind in (b"application/\xff\xfe", b"text/html\xed\xa0\x80"):
        result, _ = await exchange(sends(head + b"Content-Type: " + kind + b"\r\n\r\nx"))
        texts = [result.detail or "", *result.header_values("Content-Type")]
        assert "".join(texts).encode()


async def test_credentials_of_a_url_are_not_sent() -> None:
    async with hostile(sends(page())) as server, fetching() as fetcher:
        await fetcher.fetch(Request(server.url().replace("//", "//user:secret@")))
    assert b"authorization" not in server.requests[0].lower()


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "shop.localhost", "2130706433", "0x7f.1", "0177.0.0.1", "127.1",
     "0", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]",
     "169.254.169.254", "[fe80::1]", "10.0.0.1", "inside.example"],
)  # fmt: skip
@pytest.mark.parametrize("accept", get_args(Accept))
async def test_inner_addresses_are_refused_in_every_spelling(host: str, accept: Accept) -> None:
    resolver = CachingResolver(overrides={"inside.example": "192.168.0.1"})
    async with (
        hostile(sends(page())) as server,
        fetching(guard=AddressGuard(), resolver=resolver) as fetcher,
    ):
        result = await fetcher.fetch(Request(f"http://{host}:{server.port}/", accept))
    assert (result.outcome, result.reason, result.status) == ("failed", "address", None)
    assert server.connections == 0


async def test_without_a_contact_a_stranger_is_not_visited() -> None:
    async with fetching() as fetcher:
        result = await fetcher.fetch(Request("http://192.0.2.1/"))
    assert result.reason == "address"
    assert "contact" in (result.detail or "")


@pytest.mark.parametrize("name", ["localhost", "a.localhost", "shop.example", "127.0.0.1"])
async def test_loopback_is_reached_where_it_is_allowed(name: str) -> None:
    resolver = CachingResolver(overrides={"shop.example": "127.0.0.1"})
    async with hostile(sends(page())) as server, fetching(resolver=resolver) as fetcher:
        result = await fetcher.fetch(Request(f"http://{name}:{server.port}/"))
    assert (result.outcome, result.peer) == ("fetched", "127.0.0.1")


@pytest.mark.skipif(not socket.has_ipv6, reason="this Python has no IPv6")
async def test_ipv6_is_reached_where_it_is_allowed() -> None:
    async with hostile(sends(page()), host="::1") as server, fetching() as fetcher:
        literal = await fetcher.fetch(Request(server.url()))
        named = await fetcher.fetch(Request(f"http://localhost:{server.port}/"))
    assert (literal.outcome, literal.peer) == ("fetched", "::1")
    assert (named.outcome, named.peer) == ("fetched", "::1")


async def test_nobody_listening_is_a_connect_failure() -> None:
    async with hostile(sends(page())) as server:
        url = server.url()
    async with fetching() as fetcher:
        result = await fetcher.fetch(Request(url))
    assert (result.reason, result.status, result.peer) == ("connect", None, None)


async def test_names_that_do_not_resolve_are_told_apart() -> None:
    async with name_server({"broken.example": SERVFAIL}) as names:
        resolver = CachingResolver(DnsLimits(dns_tries=1), nameservers=[names.address])
        async with fetching(resolver=resolver) as fetcher:
            missing = await fetcher.fetch(Request("http://nowhere.example/"))
            broken = await fetcher.fetch(Request("http://broken.example/"))
    assert (missing.reason, broken.reason) == ("no_such_host", "dns")


async def test_a_name_server_that_is_silent_runs_into_the_connect_time_out() -> None:
    async with name_server({}) as names:
        names.silent = True
        resolver = CachingResolver(nameservers=[names.address])
        limits = replace(LIMITS, connect_timeout_s=0.05)
        async with fetching(limits, resolver=resolver) as fetcher:
            result = await fetcher.fetch(Request("http://nowhere.example/"))
    assert result.reason == "timeout_connect"


@pytest.mark.parametrize(
    "url",
    ["", "nonsense", "http://", "http:///a", "ftp://a.example/", "ws://a.example/", "//a.example/",
     "http://a.example:99999/"],
)  # fmt: skip
async def test_what_is_no_http_url_is_a_failure(url: str) -> None:
    async with fetching() as fetcher:
        result = await fetcher.fetch(Request(url))
    assert (result.outcome, result.reason) == ("failed", "url")


async def test_a_certificate_that_nobody_vouches_for_is_a_failure_with_its_reason() -> None:
    async with hostile(sends(page()), tls=True) as server, fetching() as fetcher:
        result = await fetcher.fetch(Request(server.url()))
    assert (result.reason, result.status) == ("tls", None)
    assert "self-signed certificate" in (result.detail or "")
    assert server.requests == []


async def test_a_certificate_for_another_name_is_a_failure_with_its_reason() -> None:
    trusted = ssl.create_default_context(cafile=str(CERTIFICATE))
    resolver = CachingResolver(overrides={"shop.example": "127.0.0.1"})
    async with (
        hostile(sends(page()), tls=True) as server,
        fetching(resolver=resolver, tls=trusted) as fetcher,
    ):
        result = await fetcher.fetch(Request(f"https://shop.example:{server.port}/"))
    assert result.reason == "tls"
    assert "shop.example" in (result.detail or "")


async def test_a_page_is_fetched_over_tls() -> None:
    trusted = ssl.create_default_context(cafile=str(CERTIFICATE))
    async with hostile(sends(page()), tls=True) as server, fetching(tls=trusted) as fetcher:
        result = await fetcher.fetch(Request(server.url()))
    assert (result.outcome, result.body) == ("fetched", b"<p>Hello")


async def test_a_server_that_speaks_no_tls_is_told_from_a_bad_certificate() -> None:
    async def answers_in_plain_text(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.read(100)
        writer.write(page(status="400 Bad Request"))
        writer.close()

    server = await asyncio.start_server(answers_in_plain_text, "127.0.0.1", 0)
    async with server, fetching() as fetcher:
        port = server.sockets[0].getsockname()[1]
        result = await fetcher.fetch(Request(f"https://127.0.0.1:{port}/"))
    assert (result.reason, result.status) == ("not_tls", None)


async def test_a_handshake_that_hangs_runs_into_the_connect_time_out() -> None:
    limits = replace(LIMITS, connect_timeout_s=0.05)
    async with hostile(sends(b"")) as server, fetching(limits) as fetcher:
        result = await fetcher.fetch(Request(server.url().replace("http:", "https:")))
    assert result.reason == "timeout_connect"


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:2/")
    result, _ = await exchange(sends(page()))
    assert result.outcome == "fetched"


async def test_cancellation_passes_through() -> None:
    async with hostile(sends(b"")) as server, fetching() as fetcher:
        task = asyncio.create_task(fetcher.fetch(Request(server.url())))
        while not server.requests:  # noqa: ASYNC110 - the server is the test's own
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_what_nobody_foresaw_is_a_logged_result(caplog: pytest.LogCaptureFixture) -> None:
    class Surprising(CachingResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[ResolveResult]:
            raise ZeroDivisionError("surprise")

    async with fetching(resolver=Surprising()) as fetcher:
        result = await fetcher.fetch(Request("http://shop.example/"))
    assert (result.reason, result.detail) == ("internal", "ZeroDivisionError('surprise')")
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("freshet.crawler.fetch.client", logging.ERROR)


async def test_an_endless_body_does_not_hold_up_other_hosts() -> None:
    endless = repeats(HTML + b"\r\n", bytes(256 * 1024))
    async with (
        hostile(endless) as attacker,
        hostile(sends(page())) as friend,
        fetching(replace(LIMITS, max_body_bytes=2**40)) as fetcher,
    ):
        attack = asyncio.create_task(fetcher.fetch(Request(attacker.url())))
        calm = [await fetcher.fetch(Request(friend.url())) for _ in range(5)]
        assert not attack.done()
        attack.cancel()
        await asyncio.gather(attack, return_exceptions=True)
    assert {r.outcome for r in calm} == {"fetched"}


def test_uvloop_serves_as_well() -> None:
    async def both() -> list[str | None]:
        good, _ = await exchange(sends(page()))
        cut, _ = await exchange(resets(HTML + b"\r\nHello"))
        return [good.reason, cut.reason]

    assert uvloop.run(both()) == [None, "cut_short"]
