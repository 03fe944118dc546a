"""Whatever bytes a server sends, each visit is committed as an outcome, and the crawl ends."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run.crawl import CrawlOrder, crawl
from tests.integration.quick import assert_consistent, quick, unwatched
from tests.storage.small_store import rows

FIELDS = b"Content-Type", b"ETag", b"Last-Modified", b"Location", b"Link", b"X-\xff"
BODY = b"<title>T</title><main><p>Some words for every page.</p><a href=/a>A</a></main>"

values = st.binary(max_size=40) | st.sampled_from(
    [b"text/html", b"application/\xff\xfe", b'"a\x01b"']
)
heads = st.lists(st.tuples(st.sampled_from(FIELDS), values), max_size=4)


@pytest.mark.long
@given(reason=values, head=heads, body=st.binary(max_size=80) | st.just(BODY))
@example(b"\xff", [(b"Content-Type", b"application/\xff\xfe")], BODY)
@example(b"OK", [(b"ETag", b'"a\x01b"'), (b"X-\xff", b"\xfe")], BODY)
@example(
    b"OK",
    [(b"Content-Type", b"text/html; charset=\xff")],
    "\ud800".encode("utf-8", "surrogatepass"),
)
@settings(max_examples=25, deadline=None)
def test_any_bytes_of_a_server_come_to_a_commit(
    reason: bytes, head: list[tuple[bytes, bytes]], body: bytes
) -> None:
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in head)
    answer = b"HTTP/1.1 200 " + reason + b"\r\n" + lines
    answer += b"Content-Length: %d\r\n\r\n" % len(body) + body
    with TemporaryDirectory() as folder:
        asyncio.run(crawled(answer, Path(folder) / "crawl.db"))


async def crawled(answer: bytes, db: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            while (await reader.readline()).strip():
                pass
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        seeds = seeds_from_arguments([f"http://h.localhost:{port}/"]).seeds
        for _ in range(2):
            # A line feed in a value ends the head: the body then lasts until the connection ends.
            chosen = quick(crawl__patience_s=0.1, fetch__body_timeout_s=0.5)
            order = CrawlOrder(db, seeds, resume=False)
            report = await crawl(chosen, order, watch=unwatched)
            assert not any("internal" in reason for reason in report.reasons)
            assert rows(db, "SELECT 1 FROM observation") or report.deferred
    assert_consistent(db)


@pytest.mark.parametrize("text", ["\x00", "\ud800"])
def test_texts_that_sqlite_cannot_hold_are_no_seeds(text: str) -> None:
    found = seeds_from_arguments([f"http://h.example/{text}"])
    assert all(seed.url.isprintable() for seed in found.seeds)
