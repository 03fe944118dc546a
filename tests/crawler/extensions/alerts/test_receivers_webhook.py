"""Webhooks on loopback: what is sent, and receivers that misbehave."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from structlog.testing import capture_logs
from yarl import URL

from freshet.crawler.errors import CrawlError, Unfetched
from freshet.crawler.extensions.alerts import receivers
from freshet.crawler.extensions.alerts.receivers import (
    AppriseReceiver,
    Delivery,
    DeliveryOutcome,
    Logged,
    Webhook,
    in_words,
    signature,
)
from freshet.crawler.extensions.alerts.tables import Message
from freshet.crawler.fetch.addresses import AddressGuard, CachingResolver
from freshet.crawler.fetch.connection import HttpConnection
from freshet.crawler.fetch.transport import Connections
from freshet.crawler.frontier.clock import Clock, VirtualClock
from scripts.benchmarks.odd_hosts import serving as odd_server
from scripts.benchmarks.odd_responses import HEADS, Odd

KEY = b"k" * 32
NOW = 1_800_000_000.9
MESSAGE = Message(
    1, "alert_1", "ä", '{"type":"test","data":{"rule":"ä","summary":"hello"}}',
    since=NOW, tries=0, next_at=NOW,
)  # fmt: skip
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handle: Handler) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(handle, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    finally:
        await runner.cleanup()


async def post(
    url: str,
    *,
    timeout_s: float = 20.0,
    key: bytes | None = KEY,
    private: bool = True,
    clock: Clock | None = None,
) -> Delivery:
    resolver = CachingResolver()
    guard = AddressGuard(allow_private=private)
    hook = Webhook(
        url, key, timeout_s, guard=guard, resolver=resolver, user_agent="Freshet/1",
        clock=VirtualClock(NOW) if clock is None else clock,
    )  # fmt: skip
    try:
        return await hook.deliver(MESSAGE, NOW)
    finally:
        await hook.close()
        await resolver.close()


def answering(status: int, **headers: str) -> Handler:
    async def handle(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, headers={k.replace("_", "-"): v
                                                    for k, v in headers.items()})  # fmt: skip

    return handle


async def test_a_message_is_named_signed_and_sent_as_it_is() -> None:
    seen: list[tuple[dict[str, str], bytes]] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        seen.append((dict(request.headers), await request.read()))
        return web.Response(status=204)

    async with serving(handle) as url:
        assert await post(url) == Delivery("taken")
        assert await post(url, key=None) == Delivery("taken")
    headers, body = seen[0]
    assert body == MESSAGE.body.encode()
    assert headers["webhook-id"] == headers["Idempotency-Key"] == "alert_1"
    assert headers["webhook-timestamp"] == "1800000000"
    assert headers["webhook-signature"] == signature(KEY, "alert_1", 1_800_000_000, body)
    assert headers["Content-Type"] == "application/json"
    assert "webhook-signature" not in seen[1][0]


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(200, "taken"), (400, "refused"), (410, "refused"),
     (401, "failed"), (404, "failed"), (500, "failed")],
)  # fmt: skip
async def test_the_status_says_what_became_of_it(status: int, outcome: DeliveryOutcome) -> None:
    async with serving(answering(status)) as url:
        assert (await post(url)).outcome == outcome


async def test_the_receiver_says_when_to_come_back() -> None:
    async with serving(answering(503, Retry_After="120")) as url:
        answer = await post(url)
    assert (answer.outcome, answer.retry_after_s) == ("failed", 120.0)
    assert answer.said == "HTTP 503 Service Unavailable"


async def test_a_reason_in_no_known_encoding_is_told_in_ascii() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 500 \xff\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        assert await post(f"http://{host}:{port}/") == Delivery("failed", r"HTTP 500 \xff")


async def test_redirects_are_not_followed() -> None:
    asked: list[str] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    async with serving(handle) as url:
        answer = await post(url)
    assert asked == ["/hook"]
    assert (answer.outcome, answer.said) == ("failed", "HTTP 307 Temporary Redirect")


async def test_a_receiver_that_hangs_is_left_alone_in_time() -> None:
    never = asyncio.Event()

    async def handle(_request: web.BaseRequest) -> web.StreamResponse:
        await never.wait()
        return web.Response()

    async with serving(handle) as url:
        answer = await post(url, timeout_s=0.05)
        never.set()
    assert answer == Delivery("failed", "no answer within 0.05 s")


async def test_a_body_without_end_is_not_read() -> None:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100_000):
            try:
                await response.write(b"x" * 65_536)
            except ConnectionError:
                break
        return response

    async with serving(handle) as url:
        assert await post(url) == Delivery("taken")


async def test_a_receiver_that_is_not_there_is_a_failure() -> None:
    async with serving(answering(200)) as url:
        pass
    assert (await post(url)).outcome == "failed"


@pytest.mark.parametrize(
    ("reasons", "tries", "outcome"),
    [
        (["connect"], 2, "taken"),
        (["connect", "connect"], 2, "failed"),
        (["address"], 1, "failed"),
        (["dns"], 1, "failed"),
        (["tls"], 1, "failed"),
        (["hung_up"], 1, "failed"),
        (["timeout_connect"], 1, "failed"),
        ([], 1, "taken"),
    ],
)
async def test_a_connection_that_is_refused_is_tried_once_more(
    monkeypatch: pytest.MonkeyPatch, reasons: list[str], tries: int, outcome: DeliveryOutcome
) -> None:
    asked, left = [], reasons.copy()
    get = Connections.get

    async def fail_first(self: Connections, url: URL, proxy: None) -> HttpConnection:
        asked.append(url)
        if left:
            raise Unfetched(left.pop(0), "no connection")
        return await get(self, url, proxy)

    monkeypatch.setattr(Connections, "get", fail_first)
    monkeypatch.setattr(receivers, "_CONNECT_WAIT_S", 3_600.0)
    clock = VirtualClock(NOW)
    async with serving(answering(204)) as url:
        assert (await post(url, clock=clock)).outcome == outcome
    assert len(asked) == tries
    assert clock.now() == NOW + 3_600.0 * (tries - 1)


async def test_addresses_are_guarded() -> None:
    async with serving(answering(200)) as url:
        answer = await post(url, private=False)
    assert answer.outcome == "failed"
    assert "a loopback address" in answer.said


async def test_apprise_takes_a_message_in_words() -> None:
    seen: list[dict[str, str]] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        seen.append(json.loads(await request.read()))
        return web.Response()

    async with serving(handle) as url:
        service = AppriseReceiver(url.replace("http://", "json://"), 20.0)
        assert await service.deliver(MESSAGE, NOW) == Delivery("taken")
    assert (seen[0]["title"], seen[0]["message"]) == ("ä: a test", "hello")


async def test_a_service_that_hangs_is_left_alone_and_not_asked_again() -> None:
    never = asyncio.Event()

    async def handle(_request: web.BaseRequest) -> web.StreamResponse:
        await never.wait()
        return web.Response()

    async with serving(handle) as url:
        service = AppriseReceiver(url.replace("http://", "json://"), 0.05)
        assert (await service.deliver(MESSAGE, NOW)).said == "no answer within 0.05 s"
        assert "is still busy" in (await service.deliver(MESSAGE, NOW)).said
        never.set()


@pytest.mark.parametrize("url", ["nonsense://x", "slack://"])
def test_what_apprise_does_not_know_is_refused_without_the_url(url: str) -> None:
    with pytest.raises(CrawlError, match="does not know"):
        AppriseReceiver(url, 1.0)


def test_a_digest_in_words_is_no_longer_than_people_read() -> None:
    change = {"kind": "changed", "url": "https://a.example/", "title": None, "summary": "a → b"}
    data = {"rule": "r", "from": "x", "to": "y", "changes": [change] * 60}
    title, body = in_words({"type": "digest", "data": data})
    assert title == "r: 60 pages, x to y"
    assert body.splitlines()[:2] == ["changed: https://a.example/", "  a → b"]
    assert body.splitlines()[-1] == "… and 10 more"


async def test_the_log_takes_a_message_in_words() -> None:
    with capture_logs() as lines:
        assert await Logged().deliver(MESSAGE, NOW) == Delivery("taken")
    (line,) = lines
    assert (line["event"], line["rule"]) == ("alert", "ä")
    assert (line["title"], line["text"]) == ("ä: a test", "hello")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (
            "mailtos://me:secret-word@127.0.0.1:2?from=me@b.example&to=you@b.example",
            "mail server 127.0.0.1:2 did not answer (connection refused)",
        ),
        ("json://127.0.0.1:2/secret-word", "the service did not answer (connection refused)"),
    ],
)
async def test_a_service_that_cannot_be_reached_is_named_without_secrets(
    url: str, words: str
) -> None:
    seen: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    try:
        answer = await AppriseReceiver(url, 20.0).deliver(MESSAGE, NOW)
    finally:
        logging.getLogger().removeHandler(handler)
    assert (answer.outcome, answer.said) == ("failed", words)
    assert [line for line in seen if "secret-word" in line] == []


async def test_a_reason_is_told_while_another_delivery_hangs() -> None:
    never = asyncio.Event()

    async def handle(_request: web.BaseRequest) -> web.StreamResponse:
        await never.wait()
        return web.Response()

    async with serving(handle) as url:
        hanging = AppriseReceiver(url.replace("http://", "json://"), 0.05)
        assert "no answer" in (await hanging.deliver(MESSAGE, NOW)).said
        refused = await AppriseReceiver("json://127.0.0.1:2/x", 20.0).deliver(MESSAGE, NOW)
        assert refused.said == "the service did not answer (connection refused)"
        never.set()


@pytest.mark.parametrize("odd", [odd for odd in HEADS if odd.is_sure], ids=lambda odd: odd.name)
async def test_a_receiver_is_read_as_leniently_as_a_page(odd: Odd) -> None:
    async with odd_server(lambda _path: odd) as origin:
        assert await post(f"{origin}/hook") == Delivery("taken")
