"""The listener over sockets: hostile connections, and whom a proxy speaks for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network

import pytest

from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.push.server import PushListener, PushRequest, PushResponse, Refusals


@dataclass(slots=True)
class Door:
    """A listener whose endpoint notes what it is given, and reads bodies up to ten bytes."""

    port: int = 0
    received: list[PushRequest] = field(default_factory=list)
    bodies: list[bytes | None] = field(default_factory=list)
    refusals: Refusals = field(default_factory=Refusals)

    async def answer(self, pushed: PushRequest) -> PushResponse:
        self.received.append(pushed)
        if pushed.path == "/broken":
            raise RuntimeError("a bug")
        if pushed.path == "/unread":
            return PushResponse(404, "unread")
        try:
            self.bodies.append(await pushed.read(10))
        except ConnectionError as error:
            return PushResponse(400, str(error))
        return PushResponse(429) if pushed.path == "/later" else PushResponse(200, "received")

    async def send(self, data: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        answer = await reader.read()
        writer.close()
        return answer


@asynccontextmanager
async def listening(door: Door, **options: object) -> AsyncIterator[PushListener]:
    listener = PushListener(door.answer, door.refusals, **options)  # type: ignore[arg-type]
    door.port = await listener.open("127.0.0.1", 0)
    try:
        yield listener
    finally:
        await listener.close()


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    door = Door()
    async with listening(door):
        yield door


def request(path: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: a", "Connection: close", *headers]
    if body and not any(line.startswith("Content-Length") for line in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def test_what_is_sent_is_heard(door: Door) -> None:
    answer = await door.send(request("/x/y?a=b&c=%20", b"0123456789", "X-Hub-Signature: s"))
    assert answer.startswith(b"HTTP/1.1 200 ")
    (pushed,) = door.received
    assert (pushed.path, dict(pushed.query)) == ("/x/y", {"a": "b", "c": " "})
    assert pushed.headers["x-hub-signature"] == "s"
    assert (pushed.length, pushed.source) == (10, "127.0.0.1")
    assert door.bodies == [b"0123456789"]


async def test_a_connection_whose_body_is_not_wanted_is_closed_at_once(door: Door) -> None:
    head = "POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n"
    assert (await door.send(head.encode())).startswith(b"HTTP/1.1 404 ")


async def test_a_compressed_body_stays_compressed_and_none_is_read_beyond_its_limit(
    door: Door,
) -> None:
    await door.send(request("/x", b"\x1f\x8bbomb", "Content-Encoding: gzip"))
    await door.send(request("/x", b"01234567890"))
    assert door.bodies == [b"\x1f\x8bbomb", None]


async def test_when_to_try_again_is_said(door: Door) -> None:
    assert b"\r\nRetry-After: 60\r\n" in await door.send(request("/later"))


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 9_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 100 + b"\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_counted_and_not_logged(
    door: Door, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await door.send(data)).startswith(b"HTTP/1.")
    assert door.received == []
    assert door.refusals._unreported == {"not HTTP": 1}
    assert caplog.records == []


async def test_a_broken_body_and_a_bug_are_answered(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    chunked = request("/x", b"", "Transfer-Encoding: chunked")
    assert b" 400 " in (await door.send(chunked + b"zz\r\nfoo\r\n"))[:20]
    assert (door.bodies, caplog.records) == ([], [])
    assert (await door.send(request("/broken"))).startswith(b"HTTP/1.1 500 ")
    assert (await door.send(request("/x"))).startswith(b"HTTP/1.1 200 ")
    assert [record.getMessage() for record in caplog.records] == [
        "a pushed request could not be answered"
    ]


async def test_where_too_many_come_the_oldest_goes() -> None:
    door = Door()
    async with listening(door, most=8):
        silent = [await asyncio.open_connection("127.0.0.1", door.port) for _ in range(8)]
        assert (await door.send(request("/x"))).startswith(b"HTTP/1.1 200 ")
        assert await silent[0][0].read() == b""
        assert not silent[1][0].at_eof()
        for _, writer in silent:
            writer.close()
    assert door.refusals._unreported["too many connections"] >= 1


async def test_who_says_nothing_is_put_out_after_a_while() -> None:
    door = Door()
    async with listening(door) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        await door.send(request("/x"))
        now = asyncio.get_running_loop().time()
        listener._server.sweep(now)
        assert not door.refusals._unreported
        listener._server.sweep(now + 100)
        assert await reader.read() == b""
        writer.close()
    assert door.refusals._unreported == {"connection too long": 1}


async def test_a_proxy_of_ours_says_for_whom_it_speaks() -> None:
    door = Door()
    forwarded = request("/x", b"", "X-Forwarded-For: 203.0.113.9, 198.51.100.7")
    async with listening(door, proxies=(ip_network("127.0.0.0/8"),)):
        await door.send(forwarded)
    async with listening(door):
        await door.send(forwarded)
    assert [pushed.source for pushed in door.received] == ["198.51.100.7", "127.0.0.1"]


async def test_an_address_that_is_taken_is_an_error_of_one_line(door: Door) -> None:
    other = PushListener(door.answer, door.refusals)
    with pytest.raises(CrawlError, match=f"cannot listen at 127.0.0.1:{door.port}: "):
        await other.open("127.0.0.1", door.port)
    await other.close()
