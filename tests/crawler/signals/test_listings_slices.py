"""Long sitemaps flow in slices: nothing is lost, and one slice is in memory for all hosts."""

import asyncio
import gzip
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.reduce.sitemaps import SitemapLimits, parse_sitemap, sitemap_slices
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.signals import listings
from freshet.crawler.signals.listings import ListingRoom
from freshet.storage.records import FetchResult
from tests.integration.quick import quick, unwatched
from tests.storage.small_store import rows

URLS = [f"http://a.localhost/{number:05d}/{'x' * 60}" for number in range(4_000)]
HEAD = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>"
XML = HEAD + "".join(f"<url><loc>{url}</loc></url>" for url in URLS)
DATED = XML.replace("</loc>", "</loc><lastmod>2026-01-01</lastmod>")
INDEX = (
    XML.replace("urlset", "sitemapindex")
    .replace("<url>", "<sitemap>")
    .replace("</url>", "</sitemap>")
)
BODIES = {
    "whole": XML + "</urlset>",
    "cut short": XML,
    "cut in a tag": XML[:-3],
    "damaged": XML.replace("</url><url>", "<url></url>", 1) + "</urlset>",
    "dated": DATED + "</urlset>",
    "index": INDEX + "</sitemapindex>",
    "lines": "\n".join(URLS),
    "lines and white space": "\n \n".join(URLS) + "\n\n",
    "feed": "<rss><channel>" + "".join(f"<item><link>{url}</link></item>" for url in URLS)
    + "</channel></rss>",
    "none": "<html><p>nothing",
    "empty": "",
}  # fmt: skip


@pytest.mark.parametrize("most_chars", [1, 70_000, 1e9])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_the_slices_of_a_sitemap_are_the_whole(body: str, packed: bool, most_chars: float) -> None:
    data = gzip.compress(body.encode()) if packed else body.encode()
    for limits in (SitemapLimits(), SitemapLimits(max_entries=1_234)):
        whole = parse_sitemap(data, limits)
        slices = list(sitemap_slices(data, limits, most_chars=most_chars))
        assert tuple(chain.from_iterable(each.entries for each in slices)) == whole.entries
        last = slices[-1]
        assert (last.kind, last.truncated, last.problem, last.rejected) == (
            whole.kind, whole.truncated, whole.problem, whole.rejected,
        )  # fmt: skip
        # To the end of 64 KiB.
        sizes = [sum(len(url) for url, _ in each.entries) for each in slices]
        assert max(sizes) <= most_chars + 64 * 1024


def test_what_is_read_is_not_kept() -> None:
    found: Iterator[object] = sitemap_slices(BODIES["whole"].encode(), most_chars=70_000)
    assert len(list(found)) >= 4


async def test_one_listing_at_a_time_takes_the_room_whatever_the_number_of_hosts() -> None:
    room, now, most = ListingRoom(10.0), 0.0, 0.0

    async def read(size: float) -> None:
        nonlocal now, most
        await room.take(size)
        now += size
        most = max(most, now)
        await asyncio.sleep(0)
        now -= size

    async with asyncio.TaskGroup() as tasks:
        for number in range(200):
            tasks.create_task(read([1.0, 4.0, 10.0][number % 3]))
    assert most == 10.0
    assert now == 0.0


class Listed:
    """A host in memory with a long sitemap."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock

    async def fetch(self, request: Request) -> FetchResult:
        text, kind = "<p>A page.", b"text/html"
        if request.url.endswith("/robots.txt"):
            text = "User-agent: *\nDisallow: /0\nSitemap: http://a.localhost/sitemap.xml\n"
            kind = b"text/plain"
        elif request.url.endswith("/sitemap.xml"):
            text, kind = BODIES["dated"].replace(">2026-", ">2023-"), b"application/xml"
        body = text.encode()
        return FetchResult(
            request.url, "fetched", self.clock.now(), 0.0, 200,
            headers=((b"Content-Type", kind),), wire_body=body, body=body,
        )  # fmt: skip


async def test_a_crawl_knows_every_url_and_date_of_a_sitemap_that_it_reads_in_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listings, "_SLICE_CHARS", 50_000)
    admitted: list[int] = []
    whole = listings.Listings.admit

    async def admit(self: object, entries: object, depth: int) -> object:
        admitted.append(len(entries.links))  # type: ignore[attr-defined]
        return await whole(self, entries, depth)  # type: ignore[arg-type]

    monkeypatch.setattr(listings.Listings, "admit", admit)
    clock = VirtualClock(1_700_000_000.0)
    order = CrawlOrder(tmp_path / "a.db", seeds_from_arguments(["http://a.localhost/"]).seeds)
    report = await crawl(quick(), order, watch=unwatched, fetcher=Listed(clock), clock=clock)
    assert len(admitted) >= 4
    assert max(admitted) < 2_000
    known = {url for (url,) in rows(tmp_path / "a.db", "SELECT url FROM page")}
    assert set(URLS) <= known
    ((told,),) = rows(tmp_path / "a.db", "SELECT count(DISTINCT page_id) FROM claim")
    assert told == len(URLS)
    assert report.refused == len(URLS)
