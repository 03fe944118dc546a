"""What an exchange leaves for an archive beside a whole body."""

import asyncio

import pytest

from freshet.crawler.fetch.client import FetchLimits
from tests.crawler.fetch.hostile_server import closes, page, repeats, sends
from tests.crawler.fetch.test_client import AGENT, exchange

HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


async def test_the_status_line_is_kept_as_it_came() -> None:
    result, _ = await exchange(sends(b"HTTP/1.0 404 Not h\xe9re\r\nContent-Length: 0\r\n\r\n"))
    assert result.status_line == b"HTTP/1.0 404 Not h\xe9re"


@pytest.mark.parametrize("status", ["404 Not Found", "302 Found", "503 Service Unavailable"])
async def test_the_short_body_of_an_error_that_came_with_its_headers_is_kept(status: str) -> None:
    result, _ = await exchange(sends(page(b"<p>sorry", "Location: /b", status=status)))
    assert result.outcome != "fetched"
    assert (result.wire_body, result.body, result.truncated) == (b"<p>sorry", b"", None)


async def test_the_body_of_an_error_is_not_waited_for() -> None:
    head = b"HTTP/1.1 404 Not Found\r\nContent-Length: 1000000\r\n\r\n"
    result, _ = await exchange(sends(head + b"<p>sor"))
    assert (result.outcome, result.wire_body) == ("gone", b"")
    assert result.truncated == "unspecified"


@pytest.mark.parametrize(
    ("answer", "reason", "truncated"),
    [
        (sends(HTML + b"Content-Length: 99999999\r\n\r\n"), "too_large", "length"),
        (sends(HTML + b"Content-Length: 9\r\n\r\n"), "timeout_body", "time"),
        (closes(HTML + b"Content-Length: 9\r\n\r\nabc"), "cut_short", "disconnect"),
        (repeats(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n", bytes(9_999)),
         "content_type", "unspecified"),
    ],
)  # fmt: skip
async def test_why_a_body_is_not_whole_is_said(answer: object, reason: str, truncated: str) -> None:
    limits = FetchLimits(body_timeout_s=0.05, max_body_bytes=1_000_000)
    result, _ = await exchange(answer, limits=limits)  # type: ignore[arg-type]
    assert (result.reason, result.truncated) == (reason, truncated)


async def test_a_robots_file_that_is_cut_says_so() -> None:
    answer = repeats(b"HTTP/1.1 200 OK\r\n\r\n", b"Disallow: /a\n" * 999)
    result, _ = await exchange(answer, "robots")
    assert (result.outcome, result.truncated) == ("fetched", "length")


async def test_a_request_without_an_answer_is_known() -> None:
    async def silent(_writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    result, _ = await exchange(silent, limits=FetchLimits(headers_timeout_s=0.05))
    assert (result.reason, result.status, result.status_line) == ("timeout_headers", None, b"")
    assert dict(result.request_headers)["User-Agent"] == AGENT
    assert result.truncated is None
