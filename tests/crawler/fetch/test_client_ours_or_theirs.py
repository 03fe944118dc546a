"""Failures that are ours or theirs: rubbish, silence, a clock that jumps, a standstill."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from itertools import repeat

import pytest

from freshet.crawler.errors import NotMade
from freshet.crawler.fetch.client import OursOrTheirs, Request
from freshet.crawler.frontier import clock
from freshet.crawler.frontier.clock import Standstills, SteadyClock
from freshet.storage.entries import Outcome
from freshet.storage.records import FetchResult
from tests.crawler.fetch.hostile_server import Answer, closes, hostile, page, resets, sends
from tests.crawler.fetch.test_client import fetching

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


# -- our own time ----------------------------------------------------------------


class Hosts:
    """Hosts that answer, or fail with a reason; ``meanwhile`` is done during each request."""

    def __init__(self, reason: str | None = None, status: int | None = None) -> None:
        self.reason, self.status = reason, status
        self.meanwhile: Callable[[], None] = lambda: None

    async def fetch(self, request: Request) -> FetchResult:
        self.meanwhile()
        await asyncio.sleep(0.05)
        outcome: Outcome = "fetched" if self.reason is None else "failed"
        status = 200 if self.reason is None else self.status
        return FetchResult(request.url, outcome, 0.0, 86_400.5, status, self.reason)


@pytest.mark.parametrize("jump_s", [2 * 3_600.0, -2 * 3_600.0, 365 * 86_400.0, -365 * 86_400.0])
async def test_what_is_known_of_hosts_follows_a_jump_of_the_clock(jump_s: float) -> None:
    set_by = 0.0
    hosts = Hosts()
    careful = OursOrTheirs(hosts, SteadyClock(wall=lambda: 1.8e9 + set_by, steady=lambda: 0.0))
    for number in range(20):
        hosts.reason = "connect" if number % 4 == 3 else None
        if number == 10:
            set_by = jump_s
        with suppress(NotMade):
            await careful.fetch(Request(f"http://{'abc'[number % 3]}/"))
    answered_at = {known.at for known in careful._known.values()}
    assert answered_at == {1.8e9 + jump_s}


STANDSTILLS = {
    **dict.fromkeys(
        ("timeout_headers", "hung_up", "timeout_connect", "connect", "dns", "tls", "stale"), None
    ),
    **dict.fromkeys(("timeout_body", "too_slow", "cut_short"), 200),
}


@pytest.mark.parametrize("reason", STANDSTILLS)
async def test_what_fails_while_we_stood_still_is_no_failure_of_a_host(
    monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    monkeypatch.setattr(clock, "_BEAT_S", 0.005)
    now = 0.0

    def stand_still() -> None:
        nonlocal now
        now += 86_400.0

    hosts = Hosts(reason, STANDSTILLS[reason])
    careful = OursOrTheirs(hosts, standstills=Standstills(lambda: now))
    hosts.meanwhile = stand_still
    with pytest.raises(NotMade):
        await careful.fetch(Request("http://a/"))
    # An answer is one, and took as long as the host did.
    hosts.reason, hosts.status = "http_500", 500
    assert (await careful.fetch(Request("http://a/"))).reason == "http_500"
    hosts.reason = None
    assert (await careful.fetch(Request("http://a/"))).duration_s == pytest.approx(0.5, abs=0.01)
