"""Servers that send what is no HTTP: they are there, and no fault of our network."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import repeat

import pytest

from freshet.crawler.errors import NotMade
from freshet.crawler.fetch.client import OursOrTheirs, Request
from freshet.storage.records import FetchResult
from tests.crawler.fetch.hostile_server import Answer, closes, hostile, page, resets, sends
from tests.crawler.fetch.test_fetch import fetching

_OK = b"HTTP/1.1 200 OK\r\n"
RUBBISH = {
    "SSH": closes(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "SMTP": closes(b"220 mail.example ESMTP\r\n"),
    "RTSP": closes(b"RTSP/1.0 200 OK\r\n\r\n"),
    "a TLS alert": closes(b"\x15\x03\x01\x00\x02\x02\x46"),
    "a greeting of MySQL": closes(b"\x4a\x00\x00\x00\x0a8.0.36\x00"),
    "a frame of HTTP/2": closes(b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64"),
    "zeros": closes(bytes(99)),
    "a page without a head": closes(b"<!doctype html><p>Hello"),
    "JSON without a head": closes(b'{"error": "down"}'),
    "rubbish on an open connection": sends(b"\xff\xfe\xfd\xfc"),
    "rubbish and a reset": resets(b"rubbish\r\n\r\n"),
    "a status in words": closes(b"HTTP/1.1 two hundred\r\n\r\n"),
    "a NUL in the head": closes(_OK + b"X: \0\r\n\r\n"),
    "two places to go to": closes(b"HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\n\r\n"),
    "a length in words": closes(_OK + b"Content-Length: five\r\n\r\nHello"),
    "an unknown transfer coding": closes(_OK + b"Transfer-Encoding: x-secret\r\n\r\nHello"),
    "interim responses without end": sends(b"HTTP/1.1 100 Continue\r\n\r\n" * 999),
    "a head that is too large": closes(_OK + b"X: " + b"y" * 99_999),
    "half a head": closes(_OK + b"Content-Len"),
    "half a head and a reset": resets(_OK + b"Content-Len"),
    "half a word": closes(b"HTT"),
}  # fmt: skip
NOTHING = {"a hang-up": closes(), "a reset": resets(), "an empty line": closes(b"\r\n")}


async def _asked(answer: Answer) -> AsyncIterator[FetchResult | NotMade]:
    """Yield the ends of three requests to each of five hosts that have answered before."""
    answers: Iterator[Answer] = iter([sends(page(b"<p>Hello", "Connection: close"))] * 5)

    async def first_well(writer: asyncio.StreamWriter) -> None:
        await next(answers, answer)(writer)

    async with hostile(first_well) as server, fetching() as fetcher:
        careful = OursOrTheirs(fetcher)
        hosts = [f"http://{name}.localhost:{server.port}/" for name in "abcde"]
        for url in hosts:
            assert (await careful.fetch(Request(url))).outcome == "fetched"
        for urls in repeat(hosts, 3):
            for url in urls:
                try:
                    yield await careful.fetch(Request(url))
                except NotMade as own:
                    yield own


@pytest.mark.parametrize("kind", RUBBISH)
async def test_rubbish_from_every_host_is_theirs(kind: str) -> None:
    ends = [end async for end in _asked(RUBBISH[kind])]
    assert not [end for end in ends if isinstance(end, NotMade)]


@pytest.mark.parametrize("kind", NOTHING)
async def test_nothing_from_any_host_is_ours(kind: str) -> None:
    ends = [end async for end in _asked(NOTHING[kind])]
    assert {end.reason for end in ends if isinstance(end, FetchResult)} <= {"hung_up"}
    assert [end for end in ends if isinstance(end, NotMade) and end.since is not None]
