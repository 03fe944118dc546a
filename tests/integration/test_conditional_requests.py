"""A server that cannot answer what we add to a request is asked once more without it."""

import asyncio
import gzip
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.cli.replay import fill
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.run.orders import CrawlReport
from tests.crawler.fetch.hostile_server import Answer, closes, page, resets, sends
from tests.integration.quick import quick, unwatched
from tests.storage.small_store import rows

PATHS = ["/", *(f"/{n}" for n in range(3))]
#: Of each page whether its requests are conditional.
ONCE = {path: [True] for path in PATHS}
#: After three pages it is known what the host cannot answer.
TWICE = {path: [True, False] for path in PATHS[:3]} | {PATHS[3]: [False]}
#: After three repeats in vain there are no more for a day.
IN_VAIN = {path: [True, False] for path in PATHS[:3]} | {PATHS[3]: [True]}
WORDS = "".join(f"<p>Sentence {n} of this page tells of the weather." for n in range(9))


@dataclass
class Site:
    """Pages with an ETag; ``spoilt`` answers requests for them that have a ``condition``.

    ``asked`` has of each request for a page the path, whether it had one, and the number of its
    connection.
    """

    spoilt: Answer
    condition: bytes = b"\r\nif-none-match:"
    plain: Callable[[str], bytes | None] = lambda _path: None
    version: int = 1
    connections: int = 0
    asked: list[tuple[str, bool, int]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split()[1].decode()
                if path not in PATHS:
                    writer.write(page(b"", status="404 Not Found"))
                    continue
                is_conditional = self.condition in head.lower()
                self.asked.append((path, is_conditional, number))
                await self.answer(path, is_conditional)(writer)
        writer.transport.abort()

    def answer(self, path: str, is_conditional: bool) -> Answer:
        if is_conditional:
            return self.spoilt
        links = "".join(f"<a href={each}>{each}</a>" for each in PATHS)
        body = f"<title>{path}</title><h1>Page {path}</h1>{WORDS}{links}<!-- {self.version} -->"
        return sends(self.plain(path) or page(body.encode(), f'ETag: "{path}"'))

    async def crawled(self, folder: Path, crawls: int = 2, **changes: object) -> CrawlReport:
        """Crawl so many times, and return the last report; ``asked`` is of the last crawl."""
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        seeds = seeds_from_arguments([f"http://127.0.0.1:{port}/"]).seeds
        order = CrawlOrder(folder / "crawl.db", seeds)
        settings = quick(**changes)
        reports = []
        for number in range(crawls):
            self.asked.clear()
            self.version = number
            reports.append(await crawl(settings, order, watch=unwatched))
        server.close()
        await server.wait_closed()
        return reports[-1]

    def times(self, path: str) -> list[bool]:
        """Return of each request for a page whether it was conditional."""
        return [is_conditional for each, is_conditional, _ in self.asked if each == path]


HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
WHOLE = page(b"<p>whole")
SPOILT = {
    "hangs up": closes(),
    "resets": resets(),
    "hangs up in the status line": closes(b"HTTP/1.1 20"),
    "hangs up in the headers": closes(HTML + b"ETag: "),
    "hangs up in the body": closes(HTML + b"Content-Length: 900\r\n\r\n<p>"),
    "hangs up in a chunk": closes(HTML + b"Transfer-Encoding: chunked\r\n\r\n90\r\n<p>"),
    "resets in the body": resets(HTML + b"Content-Length: 900\r\n\r\n<p>"),
    "rubbish": closes(b"\x00\x01\x02 what do you want\r\n\r\n"),
    "a page without a head": closes(b"<!doctype html><p>no head\r\n\r\n"),
    "an unreadable status": closes(b"HTTP/1.1 OK 200\r\n\r\n"),
    "an unreadable length": closes(HTML + b"Content-Length: x\r\n\r\n<p>"),
    "too many headers": closes(HTML + b"X-Many: 1\r\n" * 1_001 + b"\r\n"),
    "a body that does not decode": sends(page(b"\x1f\x8b\x08<p>plain", "Content-Encoding: gzip")),
    "a body whose code ends early": sends(page(gzip.compress(b"<p>" * 99)[:-9],
                                               "Content-Encoding: gzip")),
    "400": sends(page(b"Bad request", status="400 Bad Request")),
    "412": sends(page(b"", status="412 Precondition Failed")),
    "416": sends(page(b"", status="416 Range Not Satisfiable")),
    "500": sends(page(b"Oops", status="500 Internal Server Error")),
    "501": sends(page(b"", status="501 Not Implemented")),
    "500 and the end of the connection": closes(page(b"Oops", status="500 Oops")),
}  # fmt: skip


@pytest.mark.parametrize("spoilt", SPOILT.values(), ids=SPOILT)
async def test_it_is_repeated_once_without_its_validators(tmp_path: Path, spoilt: Answer) -> None:
    site = Site(spoilt)
    report = await site.crawled(tmp_path)
    assert {path: site.times(path) for path in PATHS} == TWICE
    assert (report.pages, report.errors) == (4, 0)
    got = "SELECT kind, status, rung = '304' FROM observation WHERE run_id = 2"
    assert rows(tmp_path / "crawl.db", got) == [("unchanged", 200, 0)] * 4
    # On another connection than the one that has just failed.
    for (path, is_conditional, number), (then, _, later) in pairwise(site.asked):
        assert (path == then, later != number) == (True, True) or not is_conditional
    # All of them count.
    fetches = rows(tmp_path / "crawl.db", "SELECT fetches FROM crawl_run ORDER BY id")[-1][0]
    assert fetches == report.fetches
    assert report.fetches >= len(site.asked) == 7


NOT_REPEATED = {
    "404": sends(page(b"", status="404 Not Found")),
    "410": sends(page(b"", status="410 Gone")),
    "401": sends(page(b"", status="401 Unauthorized")),
    "403": sends(page(b"", status="403 Forbidden")),
    "304": sends(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
    "304 with a page behind it": sends(b"HTTP/1.1 304 Not Modified\r\n\r\n<p>page"),
    "304 with an empty chunk": sends(b"HTTP/1.1 304 Not Modified\r\n\r\n0\r\n\r\n"),
    "200": sends(WHOLE),
    "204": sends(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "302": sends(page(b"", "Location: /elsewhere", status="302 Found")),
    "an image": sends(page(b"", "Content-Type: image/png")),
    "500 with Retry-After": sends(page(b"", "Retry-After: 1", status="500 Oops")),
    "500 with a Retry-After that cannot be read": sends(
        page(b"", "Retry-After: soon", status="500 Oops")
    ),
    "400 with a date": sends(
        page(b"", "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT", status="400 Bad Request")
    ),
    "a cut body with Retry-After": closes(HTML + b"Retry-After: 1\r\nContent-Length: 9\r\n\r\n<p>"),
}


@pytest.mark.parametrize("spoilt", NOT_REPEATED.values(), ids=NOT_REPEATED)
async def test_another_answer_and_one_with_retry_after_are_not_repeated(
    tmp_path: Path, spoilt: Answer
) -> None:
    site = Site(spoilt)
    await site.crawled(tmp_path, crawl__attempts=1)
    assert {path: site.times(path) for path in PATHS} == ONCE


async def test_a_plain_request_that_fails_is_not_repeated(tmp_path: Path) -> None:
    site = Site(sends(page(b"", status="500 Oops")))
    site.plain = lambda _: page(b"", status="500 Oops") if site.version else None
    report = await site.crawled(tmp_path, crawl__attempts=1)
    assert {path: site.times(path) for path in PATHS} == IN_VAIN
    assert (report.pages, report.errors) == (0, 4)
    failed = "SELECT count(*) FROM observation WHERE kind = 'failed'"
    assert rows(tmp_path / "crawl.db", failed) == [(4,)]


async def test_the_next_visits_are_plain_at_once(tmp_path: Path) -> None:
    site = Site(closes())
    report = await site.crawled(tmp_path, crawls=3)
    assert {path: site.times(path) for path in PATHS} == {path: [False] for path in PATHS}
    assert report.pages == 4


BEHIND = {
    "the page": b"<p>the page that has not changed</p>",
    "an empty chunk": b"0\r\n\r\n",
    "a line": b"\r\n",
}


@pytest.mark.parametrize("behind", BEHIND.values(), ids=BEHIND)
async def test_a_site_whose_304s_have_a_body_is_read_and_its_changes_are_found(
    tmp_path: Path, behind: bytes
) -> None:
    class WithBodies(Site):
        def answer(self, path: str, is_conditional: bool) -> Answer:
            if path in PATHS[1:3] and self.version == 2:
                return sends(page(f"<h1>Page {path}</h1>{WORDS}<p>A new one.".encode(), "ETag: x"))
            if is_conditional:
                return sends(b"HTTP/1.1 304 Not Modified\r\n\r\n" + behind)
            text = f"<h1>Page {path}</h1>{WORDS}" + "".join(
                f"<a href={it}>{it}</a>" for it in PATHS
            )
            return sends(page(text.encode(), f'ETag: "{path}"'))

    report = await WithBodies(closes()).crawled(tmp_path, crawls=3)
    assert (report.pages, report.errors) == (4, 0)
    kinds = "SELECT run_id, kind, count(*) FROM finding WHERE run_id > 1 GROUP BY 1, 2"
    assert rows(tmp_path / "crawl.db", kinds) == [
        (2, "unchanged", 4), (3, "changed", 2), (3, "unchanged", 2),
    ]  # fmt: skip


#: What a server cannot answer of a first request, and its answer.
NOT_CODED = {
    "406": sends(page(b"", status="406 Not Acceptable")),
    "400": sends(page(b"", status="400 Bad Request")),
    "408": sends(page(b"", status="408 Request Timeout")),
    "431": sends(page(b"", status="431 Request Header Fields Too Large")),
    "500": sends(page(b"", status="500 Oops")),
    "a coding that does not decode": sends(page(b"plain", "Content-Encoding: br")),
    "a hang-up": closes(),
}


@pytest.mark.parametrize("spoilt", NOT_CODED.values(), ids=NOT_CODED)
async def test_a_server_that_cannot_answer_full_requests_is_read_from_the_first_crawl_on(
    tmp_path: Path, spoilt: Answer
) -> None:
    site = Site(spoilt, condition=b"\r\naccept-encoding: gzip")
    report = await site.crawled(tmp_path, crawls=1)
    assert (report.pages, report.errors) == (4, 0)
    # A hang-up on the connection of the robots.txt, which was kept, is not the page's fault.
    assert {path: site.times(path)[-2:] for path in PATHS} == TWICE


SHORT = {
    "404": "404 Not Found", "410": "410 Gone", "429": "429 Too Many Requests",
    "503": "503 Service Unavailable", "403": "403 Forbidden", "451": "451 Unavailable",
}  # fmt: skip


@pytest.mark.parametrize("status", SHORT.values(), ids=SHORT)
async def test_a_site_of_errors_gets_one_request_a_page_and_visit(
    tmp_path: Path, status: str
) -> None:
    site = Site(closes())
    links = "".join(f"<a href={it}>{it}</a>" for it in PATHS).encode()
    site.plain = lambda path: page(b"", status=status) if path != "/" else page(links)
    await site.crawled(tmp_path, crawls=1, crawl__attempts=1, politeness__failures_to_park=99)
    assert [len(site.times(path)) for path in PATHS] == [1] * 4


async def test_the_delay_of_the_host_holds_between_the_two(tmp_path: Path) -> None:
    at: list[float] = []
    clock: Callable[[], float] = asyncio.get_running_loop().time

    class Noting(Site):
        def answer(self, path: str, is_conditional: bool) -> Answer:
            at.append(clock())
            return super().answer(path, is_conditional)

    await Noting(sends(page(b"", status="500 Oops"))).crawled(tmp_path, politeness__delay_s=0.1)
    assert len(at) == 11
    assert min(later - earlier for earlier, later in pairwise(at)) >= 0.099


async def test_a_replay_of_the_archive_gives_the_same_visits(tmp_path: Path) -> None:
    site = Site(sends(page(b"", status="500 Oops")))
    await site.crawled(tmp_path, archive__dir=str(tmp_path / "warcs"))
    seen = "SELECT p.url, o.kind, o.status FROM observation AS o JOIN page AS p ON p.id = o.page_id"
    await asyncio.to_thread(fill, tmp_path / "new.db", [tmp_path / "warcs"], quick())
    found = [sorted(rows(tmp_path / name, seen)) for name in ("crawl.db", "new.db")]
    assert found[0] == found[1]
    assert len(found[0]) == 8
