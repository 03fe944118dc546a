"""Sitemaps and feeds, from their bytes to claims."""

import asyncio
import gzip
from datetime import UTC, datetime
from random import Random

from freshet.crawler.admission.admit import Admission, FoundUrls, Scope
from freshet.crawler.admission.traps import TrapLimits
from freshet.crawler.frontier.politeness import PolitenessRules
from freshet.crawler.reduce.sitemaps import SitemapLimits, read_feed
from freshet.crawler.robots.cache import RobotsCache, RobotsRules
from freshet.crawler.signals.listings import Complaints, Listings, SitemapEntries
from freshet.storage.entries import Claim
from freshet.storage.records import DueUrl
from tests.crawler.stages import Past

SITE = "https://a.example"
DUE = DueUrl(1, f"{SITE}/sitemap.xml", f"{SITE}/sitemap.xml", 1, 0.0, role="sitemap")
NOW = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
DAY_S = 86_400.0


def listings() -> Listings:
    book = RobotsCache("freshet", RobotsRules(), PolitenessRules(), Random(1))
    admission = Admission(Scope("host", [SITE]), TrapLimits())
    return Listings(admission, book, SitemapLimits(), Complaints(), Past())


def urlset(*entries: tuple[str, str]) -> bytes:
    inside = "".join(
        f"<url><loc>{url}</loc><lastmod>{date}</lastmod></url>" for url, date in entries
    )
    return f"<urlset>{inside}</urlset>".encode()


async def read(body: bytes) -> tuple[SitemapEntries, FoundUrls]:
    reader = listings()
    entries = await reader.read(DUE, body, NOW, 0.0)
    return entries, await reader.admit(entries, DUE.depth)


def moment(*parts: int) -> float:
    return datetime(*parts, tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type]


async def test_entries_claim_when_their_pages_changed() -> None:
    entries, found = await read(
        urlset(
            (f"{SITE}/a#top", "2026-05-01T12:00:00Z"),
            (f"{SITE}/b\x7f", "2026-05-01"),
            ("https://other.example/c", "2026-05-01"),
            ("https://[/", "2026-05-01"),
            (f"{SITE}/a", "2026-05-02T12:00:00Z"),
        )
    )
    day = moment(2026, 5, 1)
    assert entries.said.claims == (
        Claim(f"{SITE}/a", day + DAY_S / 2, day + DAY_S / 2),
        Claim(f"{SITE}/b%7F", day - 14 * 3600, day + DAY_S + 12 * 3600),
    )
    assert found.targets is not None
    assert found.targets.urls == found.targets.column("fetch_urls") == [f"{SITE}/a", f"{SITE}/b%7F"]
    assert found.offsite == frozenset({2})


async def test_an_index_claims_when_its_sitemaps_changed() -> None:
    entries, found = await read(
        f"<sitemapindex><sitemap><loc>{SITE}/s.xml.gz</loc><lastmod>2026-05-01T00:00:00Z</lastmod>"
        "</sitemap></sitemapindex>".encode()
    )
    at = moment(2026, 5, 1)
    assert entries.said.claims == (Claim(f"{SITE}/s.xml.gz", at, at),)
    assert found.targets is not None
    assert found.targets.column("roles") == ["sitemap"]


async def test_a_large_sitemap_is_the_same_in_a_thread() -> None:
    pages = [(f"{SITE}/{'x' * 100}/{i}", "2026-05-01T00:00:00Z") for i in range(3_000)]
    entries, found = await read(gzip.compress(urlset(*pages), 0))
    assert found.targets is not None
    assert len(found.targets) == len(entries.said.claims) == 3_000
    assert found.offsite == frozenset()


async def test_entities_do_not_grow() -> None:
    laughs = b'<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><urlset>&b;</urlset>'
    entries, _ = await read(laughs)
    assert (entries.is_one, entries.allowed, entries.problem) == (True, [], None)


def test_entries_of_a_feed_are_news_of_pages() -> None:
    body = b"""<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title>
      <entry><title>one</title><id>1</id><link href="/one"/>
        <published>2026-04-01T00:00:00Z</published><updated>2026-05-01T00:00:00Z</updated></entry>
      <entry><title>two</title><id>2</id><link href="/two"/>
        <published>2026-04-01T00:00:00Z</published></entry>
      <entry><title>three</title><id>3</id><link href="/three"/></entry>
      <entry><title>four</title><id>4</id><link href="/four"/><updated>2036-05-01</updated></entry>
      <entry><title>off</title><id>5</id><link href="https://b.example/"/></entry>
    </feed>"""
    due = DueUrl(1, f"{SITE}/feed", f"{SITE}/feed", 1, 0.0, role="feed")
    said = listings().claims(due, read_feed(body, due.url), NOW, 0.0)
    may, april = moment(2026, 5, 1), moment(2026, 4, 1)
    assert said.claims == (
        Claim(f"{SITE}/one", may, may), Claim(f"{SITE}/two", april, april),
    )  # fmt: skip
    assert said.rejected == 1


def test_a_feed_whose_dates_have_no_zone_leaves_it_open() -> None:
    body = b"""<rss version="2.0"><channel><title>t</title><item><link>/one</link>
      <pubDate>Fri, 01 May 2026 00:00:00</pubDate></item></channel></rss>"""
    due = DueUrl(1, f"{SITE}/rss.xml", f"{SITE}/rss.xml", 1, 0.0, role="feed")
    (claim,) = listings().claims(due, read_feed(body, due.url), NOW, 0.0).claims
    assert claim.until - claim.since == 26 * 3600


async def test_of_many_long_lists_one_slice_at_a_time_is_admitted() -> None:
    reader, turn = listings(), 0

    async def admit() -> list[int]:
        return [turn async for some in reader.slices(range(1_000)) if len(some) <= 250]

    tasks = asyncio.gather(*(admit() for _ in range(9)))
    while not tasks.done():
        await asyncio.sleep(0)
        turn += 1
    assert len(set().union(*await tasks)) == 9 * 4
