"""Responses that are wrong, and are read as other clients read them, over raw sockets."""

import asyncio
import gc
import gzip
import zlib

import pytest

from freshet.crawler.archive.warc import WireExchange, records
from freshet.crawler.cli.check import _mended
from freshet.crawler.errors import NotMade
from freshet.crawler.fetch.body import Intake
from freshet.crawler.fetch.client import FetchLimits, OursOrTheirs, Request
from freshet.crawler.fetch.connection import HttpConnection
from freshet.crawler.fetch.heads import REPAIRS
from freshet.storage.records import FetchResult, Validators
from scripts.benchmarks.odd_responses import CODINGS, HEADS, LENGTHS, TEXT, UNSURE, Odd
from tests.crawler.fetch.hostile_server import Answer, closes, hostile, page, resets, sends
from tests.crawler.fetch.test_client import exchange, fetching

LIMITS = FetchLimits(headers_timeout_s=5, body_timeout_s=5)


def serves(odd: Odd) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(odd.data)
        await writer.drain()
        if odd.later:
            for _ in range(20):
                await asyncio.sleep(0)
            writer.write(odd.later)
        if odd.ends:
            writer.close()

    return answer


@pytest.mark.parametrize("odd", [*HEADS, *CODINGS, *LENGTHS], ids=lambda odd: odd.name)
async def test_what_other_clients_read_is_read(odd: Odd) -> None:
    result, _ = await exchange(serves(odd), limits=LIMITS)
    assert (result.outcome, result.body, result.detail) == ("fetched", TEXT, None)


@pytest.mark.parametrize("said", ["deflate", "br", "zstd", "gzip"])
@pytest.mark.parametrize("packed", [zlib.compress(TEXT), gzip.compress(TEXT)], ids=["zlib", "gzip"])
@pytest.mark.parametrize("harm", ["cut", "damaged"])
async def test_what_is_cut_or_damaged_is_no_page_in_whatever_coding(
    said: str, packed: bytes, harm: str
) -> None:
    half = len(packed) // 2
    body = packed[:half] if harm == "cut" else packed[:half] + b"\xff\xff" + packed[half + 2 :]
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {said}\r\nContent-Length: {len(body)}\r\n\r\n"
    result, _ = await exchange(sends(head.encode() + body), limits=LIMITS)
    assert (result.outcome, result.body) == ("failed", b"")


@pytest.mark.parametrize("odd", UNSURE, ids=lambda odd: odd.name)
async def test_what_has_no_sure_end_is_refused(odd: Odd) -> None:
    result, server = await exchange(serves(odd), limits=LIMITS)
    assert (result.outcome, result.reason) == ("failed", "protocol")
    assert len(server.requests) == 1


@pytest.mark.parametrize("odd", [*HEADS, *CODINGS, *LENGTHS], ids=lambda odd: odd.name)
async def test_a_mended_response_is_the_last_on_its_connection_and_says_what_was_wrong(
    odd: Odd,
) -> None:
    async with hostile(serves(odd)) as server, fetching(LIMITS) as fetcher:
        first = await fetcher.fetch(Request(server.url()))
        while (second := await fetcher.fetch(Request(server.url()))).reason == "stale":
            pass
    assert (second.body, second.repairs) == (TEXT, first.repairs)
    assert REPAIRS.keys() >= set(first.repairs)
    if first.repairs:
        assert server.connections == len(server.requests) == 2
    assert first.head
    assert first.head in odd.data + odd.later


@pytest.mark.parametrize(
    ("lines", "repairs"),
    [
        (b"Server : x\r\nNotice\r\n", ("blank_before_colon", "no_header")),
        (b"Server: x\r\r\n", ("carriage_return",)),
        (b"Server:x\nVary:   a \n b\r\n", ()),
    ],
)
async def test_an_archive_has_the_head_as_it_came(lines: bytes, repairs: tuple[str, ...]) -> None:
    odd = b"HTTP/1.1 200 OK\n" + lines + b"Transfer-Encoding: chunked\r\n\r\n"
    result, _ = await exchange(sends(odd + b"2\r\nab\r\n0\r\n\r\n"))
    assert result.repairs == repairs
    (_, response, _), _ = records(
        WireExchange(Request(result.url), result), None, lambda: "<urn:x>"
    )
    assert odd.replace(b"Transfer", b"X-Archive-Orig-Transfer") + b"ab" in response


def test_a_check_names_each_repair() -> None:
    result = FetchResult("http://a.example/", "fetched", 0.0, 0.0, 200, repairs=tuple(REPAIRS))
    assert [step.why for step in _mended(result)] == list(REPAIRS.values())


#: A body behind a status that has none: its head, what follows at once, and what follows later.
BODIES = {
    "a page in the same packet": (b"", b"<p>old", b""),
    "a page in a later packet": (b"", b"", b"<p>old"),
    "a page with its length": (b"Content-Length: 6\r\n", b"<p>old", b""),
    "a page with its length in a later packet": (b"Content-Length: 6\r\n", b"", b"<p>old"),
    "chunks": (b"Transfer-Encoding: chunked\r\n", b"6\r\n<p>old\r\n0\r\n\r\n", b""),
    "chunks in a later packet": (
        b"Transfer-Encoding: chunked\r\n", b"", b"6\r\n<p>old\r\n0\r\n\r\n"),
    "an empty last chunk": (b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n", b""),
    "an empty last chunk that is not announced": (b"", b"0\r\n\r\n", b""),
    "an empty last chunk in a later packet": (b"", b"", b"0\r\n\r\n"),
    "a forged response in the body": (b"", page(b"<p>forged"), b""),
    "a forged response with its length": (
        b"Content-Length: %d\r\n" % len(page(b"<p>forged")), b"", page(b"<p>forged")),
    "an empty line": (b"", b"\r\n", b""),
    "a page in two packets": (b"", b"<p>", b"old"),
}  # fmt: skip


@pytest.mark.parametrize("status", [b"204 No Content", b"205 Reset Content", b"304 Not Modified"])
@pytest.mark.parametrize("body", BODIES)
async def test_a_body_behind_a_status_that_has_none_is_not_the_next_response(
    status: bytes, body: str
) -> None:
    fields, at_once, later = BODIES[body]

    async def answer(writer: asyncio.StreamWriter) -> None:
        if b"GET /next " in server.requests[-1]:
            writer.write(page(b"<p>next"))
            return
        writer.write(b"HTTP/1.1 " + status + b"\r\n" + fields + b"\r\n" + at_once)
        for _ in range(20):
            await asyncio.sleep(0)
        writer.write(later)

    async with hostile(answer) as server, fetching(LIMITS) as fetcher:
        known = Validators('"a"', None)
        first = await fetcher.fetch(Request(server.url(), validators=known))
        while (second := await fetcher.fetch(Request(server.url("/next")))).reason == "stale":
            pass
    assert first.status == int(status[:3])
    assert first.outcome == ("not_modified" if first.status == 304 else "skipped")
    assert (second.outcome, second.body) == ("fetched", b"<p>next")


@pytest.mark.parametrize(
    "damage",
    [b"xyz\r\n", b"<!--\r\n", b"-5\r\n", b"\r\n", b"\0", b"5 5\r\n", b"0x5\r\n", b";a\r\n",
     b"5\r\nabcdefgh\r\n", b"1" * 17 + b"\r\n", b"\x1f\x8b\x08", b"5\r\nabcde5\r\n", b"+5\r\n"],
)  # fmt: skip
@pytest.mark.parametrize("chunks", [1, 3])
async def test_a_damaged_chunk_in_a_later_packet_fails_at_once(damage: bytes, chunks: int) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in [b"4\r\nabcd\r\n"] * chunks + [damage]:
            for _ in range(20):
                await asyncio.sleep(0)
            writer.write(piece)

    async with asyncio.timeout(10):
        result, _ = await exchange(answer, limits=FetchLimits())
    assert (result.outcome, result.reason) == ("failed", "protocol")
    assert "chunk" in (result.detail or "")


_PACKED = gzip.compress(b"<p>long" * 99)
#: Heads and the beginnings of bodies that fail, and whether the server then hangs up.
FAILING = {
    "a body that is late": (b"Content-Length: 99\r\n\r\n<p>", False),
    "a packed body that is late": (
        b"Content-Encoding: gzip\r\nContent-Length: 999\r\n\r\n" + _PACKED[:-9], False,
    ),
    "a chunk that is late": (b"Transfer-Encoding: chunked\r\n\r\n3\r\n<p>\r\n", False),
    "a damaged chunk": (b"Transfer-Encoding: chunked\r\n\r\n3\r\n<p>\r\nxyz\r\n", False),
    "a body that is cut": (b"Content-Length: 99\r\n\r\n<p>", True),
    "chunks that are cut": (b"Transfer-Encoding: chunked\r\n\r\n3\r\n<p>\r\n", True),
    "a packed body that is cut": (
        b"Content-Encoding: gzip\r\nContent-Length: 999\r\n\r\n" + _PACKED[:-9], True,
    ),
    "a coding that is wrong": (
        b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\n\0\1\2\3\4", False,
    ),
    "a body that is too large": (b"Content-Length: 9999\r\n\r\n" + b"x" * 9999, False),
    "no sure length": (b"Content-Length: -1\r\n\r\n<p>", False),
    "a head that is too large": (b"X: y\r\n" * 999 + b"\r\n", False),
    "a head without an end": (b"X: y\r\n", True),
}  # fmt: skip


async def test_nothing_of_a_response_that_fails_stays_in_memory() -> None:
    responses = iter(FAILING.values())

    async def answer(writer: asyncio.StreamWriter) -> None:
        rest, hangs_up = next(responses)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + rest)
        await writer.drain()
        if hangs_up:
            writer.close()

    limits = FetchLimits(body_timeout_s=0.05, max_body_bytes=5_000)
    gc.collect()
    gc.disable()
    try:
        async with hostile(answer) as server, fetching(limits) as fetcher:
            results = [await fetcher.fetch(Request(server.url())) for _ in FAILING]
        await asyncio.sleep(0)
        left = [each for each in gc.get_objects() if isinstance(each, Intake | HttpConnection)]
    finally:
        gc.enable()
    assert {result.outcome for result in results} == {"failed"}
    assert left == []


#: What a server says when a connection that it kept was idle for too long for it.
LATE = {
    "408 and a body": (page(b"<p>late", status="408 Request Timeout"), False),
    "408 and a hang-up": (page(b"", status="408 Request Time-out"), True),
    "408 that closes": (page(b"", "Connection: close", status="408 Request Timeout"), True),
    "408 of HTTP/1.0": (b"HTTP/1.0 408 Request Time-out\r\n\r\n<h1>408</h1>", True),
    "408 in chunks": (
        b"HTTP/1.1 408 Timeout\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nlate\r\n0\r\n\r\n", False),
    "408 without a reason": (b"HTTP/1.1 408\r\nContent-Length: 0\r\n\r\n", False),
    "408 with an odd head": (
        b"HTTP/1.1 408 Late\r\nServer : x\r\nContent-Length: 0\r\n\r\n", False),
    "408 with a long body": (b"HTTP/1.1 408 Late\r\nContent-Length: 99999\r\n\r\nlate", False),
    "nothing": (b"", True),
    "half a head": (b"HTTP/1.1 408", True),
    "rubbish": (b"\0\0\0", True),
}  # fmt: skip


@pytest.mark.parametrize("late", LATE)
async def test_a_kept_connection_that_came_too_late_is_replaced(late: str) -> None:
    said, ends = LATE[late]
    served = dict[asyncio.StreamWriter, int]()

    async def answer(writer: asyncio.StreamWriter) -> None:
        served[writer] = served.get(writer, 0) + 1
        writer.write(page() if served[writer] == 1 else said)
        if served[writer] > 1 and ends:
            writer.close()

    async with hostile(answer) as server, fetching(LIMITS) as fetcher:
        careful, request = OursOrTheirs(fetcher), Request(server.url())
        assert (await careful.fetch(request)).outcome == "fetched"
        with pytest.raises(NotMade):
            await careful.fetch(request)
        assert (await careful.fetch(request)).outcome == "fetched"
    assert (len(server.requests), server.connections) == (3, 2)


async def test_408_on_a_new_connection_is_the_answer() -> None:
    result, server = await exchange(sends(page(b"", status="408 Request Timeout")))
    assert (result.reason, len(server.requests)) == ("http_408", 1)


def _announces(more: int, body: bytes = b"<p>whole") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(body) + more) + body


_CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#: Bodies that end early, all of them at the same byte.
ALIKE = {
    "1 too large": _announces(1),
    "2 too large": _announces(2),
    "7 too large": _announces(7),
    "1,000 too large": _announces(1_000),
    "twice as large": _announces(8),
    "a long page": _announces(7, b"<p>whole" * 20_000),
    "the last chunk missing": _CHUNKS + b"8\r\n<p>whole\r\n",
    "two chunks, the last missing": _CHUNKS + b"3\r\n<p>\r\n5\r\nwhole\r\n",
    "a chunk without its end": _CHUNKS + b"8\r\n<p>whole",
    "half the last chunk": _CHUNKS + b"8\r\n<p>whole\r\n0\r\n",
    "a chunk that is too large": _CHUNKS + b"9\r\n<p>whole",
    "an odd head": _announces(7).replace(b"OK\r\n", b"OK\r\nServer : x\r\n"),
}


@pytest.mark.parametrize("case", ALIKE)
async def test_what_ends_early_three_times_alike_is_whole(case: str) -> None:
    async with hostile(closes(ALIKE[case])) as server, fetching(LIMITS) as fetcher:
        results = [await fetcher.fetch(Request(server.url())) for _ in range(4)]
    assert [each.reason for each in results] == ["cut_short", "cut_short", None, None]
    assert results[2].body.startswith(b"<p>whole")
    assert "cut_alike" in results[2].repairs


@pytest.mark.parametrize(
    "bodies",
    [
        [_announces(7, b"<p>%d" % n) for n in range(6)],
        [_announces(7, b"<p>%d" % (n // 2)) for n in range(6)],
        [_announces(7, b"")] * 6,
        [page(gzip.compress(b"<p>" * 500), "Content-Encoding: gzip")[:-9]] * 6,
    ],
    ids=["other bytes each time", "two alike each time", "nothing", "gzip without its end"],
)
async def test_what_ends_early_in_other_ways_stays_cut(bodies: list[bytes]) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(bodies[len(server.requests) - 1])
        writer.close()

    async with hostile(answer) as server, fetching(LIMITS) as fetcher:
        reasons = {(await fetcher.fetch(Request(server.url()))).reason for _ in bodies}
    assert reasons == {"cut_short"}


async def test_what_is_reset_stays_cut() -> None:
    async with hostile(resets(_announces(7))) as server, fetching(LIMITS) as fetcher:
        reasons = {(await fetcher.fetch(Request(server.url()))).reason for _ in range(4)}
    assert reasons == {"cut_short"}
