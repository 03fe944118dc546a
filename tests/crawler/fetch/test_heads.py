"""Heads and chunks read the same in whatever pieces they come."""

import asyncio
import re
from contextlib import suppress

import pytest
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import HttpResponseParser
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.errors import Unfetched
from freshet.crawler.fetch import heads as heads_module
from freshet.crawler.fetch.connection import HeadLimits, HttpConnection, field_bytes, request_bytes
from freshet.crawler.fetch.heads import Chunks, head_end, read_head
from scripts.benchmarks.odd_responses import ALL, Odd

PIECES = st.lists(st.binary(min_size=1, max_size=40), max_size=5)
SHORT = [odd for odd in ALL if len(odd.data) < 2_000]


class Wire(asyncio.Transport):
    """A transport that goes nowhere."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def close(self) -> None:
        pass

    abort = close


async def received(odd: Odd, size: int) -> object:
    """What a channel makes of a response that comes in pieces of a size."""
    channel = HttpConnection(HeadLimits(9), memoryview(bytearray(65_536)), lambda _: None)
    channel.connection_made(Wire())
    asking = asyncio.create_task(channel.ask(b""))
    await asyncio.sleep(0)
    data = odd.data + odd.later
    for start in range(0, len(data), size):
        piece = data[start : start + size]
        channel.get_buffer(-1)[: len(piece)] = piece
        channel.buffer_updated(len(piece))
    channel.connection_lost(None)
    try:
        await asking
        body = b"".join([piece async for piece in channel.pieces()])
    except Unfetched as end:
        return end.reason
    return channel.head, channel.head_bytes, body, channel.cut, channel.repairs


@pytest.mark.parametrize("odd", SHORT, ids=lambda odd: odd.name)
async def test_a_response_is_the_same_in_whatever_pieces_it_comes(odd: Odd) -> None:
    whole = await received(odd, 10_000)
    assert await received(odd, 1) == whole
    assert await received(odd, 7) == whole


def fed(data: bytes, sizes: list[int]) -> tuple[bytes, bool, bytes] | None:
    chunks, body, start = Chunks(1_000), b"", 0
    rest = b""
    try:
        for size in [*sizes, len(data)]:
            pieces, rest = chunks.feed(data[start : start + size])
            body += b"".join(pieces)
            start += size
            if chunks.is_ended:
                return body, True, rest + data[start:]
    except Unfetched:
        return None
    return body, False, b""


def framed(pieces: list[bytes]) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@given(PIECES, st.lists(st.integers(1, 30), max_size=9), st.binary(max_size=9))
def test_chunks_are_the_same_in_whatever_packets_they_come(
    pieces: list[bytes], sizes: list[int], after: bytes
) -> None:
    assert fed(framed(pieces) + after, sizes) == (b"".join(pieces), True, after)


def by_aiohttp(data: bytes) -> bytes | None:
    """The body that aiohttp's parser reads, None if it refuses it or it does not end."""
    loop = asyncio.new_event_loop()
    try:
        parser = HttpResponseParser(
            BaseProtocol(loop), loop, 2**20, read_until_eof=True, auto_decompress=False
        )
        messages, *_ = parser.feed_data(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        body = messages[0][1]
        with suppress(HttpProcessingError):
            parser.feed_data(data)
        return bytes(body.read_nowait()) if body.is_eof() and body.exception() is None else None
    finally:
        loop.close()


@given(
    PIECES, st.integers(0, 200), st.sampled_from([b"\r", b"\n", b"0", b"f", b";", b"-", b"\0", b""])
)
def test_what_aiohttp_reads_in_chunks_is_read_and_the_same(
    pieces: list[bytes], at: int, put: bytes
) -> None:
    data = framed(pieces)
    data = data[:at] + put + data[at + 1 :]
    theirs = by_aiohttp(data)
    if theirs is not None and b"\0" not in data:
        ours = fed(data, [])
        assert ours is not None
        assert ours[:2] == (theirs, True)


@given(st.text("\r\n ab:", max_size=40))
def test_a_head_ends_with_its_first_empty_line(text: str) -> None:
    data = text.encode()
    found = re.search(rb"\n\r{0,2}\n", data)
    assert head_end(data) == (-1 if found is None else found.end())


@given(st.binary(max_size=80))
def test_any_bytes_are_a_head_or_refused(data: bytes) -> None:
    for head in (data, b"HTTP/1.1 200 OK\r\n" + data + b"\r\n\r\n"):
        with suppress(Unfetched):
            assert read_head(head).status >= 100


@pytest.mark.parametrize("odd", ["a\r\nX: y", "a\nb", "\0", "\r"])
def test_a_field_of_a_request_has_no_line_break(odd: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        field_bytes([("X", odd)])
    with pytest.raises(ValueError, match="line break"):
        request_bytes("GET", f"/{odd}", b"")


LINES = st.lists(
    st.tuples(
        st.sampled_from([b"Transfer-Encoding", b"Connection", b"Content-Length", b"Location"]),
        st.sampled_from([b"chunked", b"Chunked", b"gzip", b"", b"0", b"12", b"keep-alive",
                         b"Keep-Alive", b"close", b"identity"]),
    ),
    max_size=4,
)  # fmt: skip


@given(st.sampled_from([b"1.1", b"1.0"]), st.sampled_from([200, 204, 206, 301, 304, 404]), LINES)
def test_a_usual_head_is_read_as_any_other(
    version: bytes, status: int, lines: list[tuple[bytes, bytes]]
) -> None:
    head = b"HTTP/%b %d OK\r\n" % (version, status)
    head += b"".join(b"%b: %b\r\n" % line for line in lines) + b"\r\n"

    def read() -> object:
        try:
            return read_head(head)
        except Unfetched as refused:
            return str(refused)

    with pytest.MonkeyPatch.context() as patched:
        quick = read()
        patched.setattr(heads_module, "_plain_head", lambda *_: None)
        assert read() == quick
