"""What servers ask of a crawler, end to end: robots.txt, sitemaps, directives, TLS."""

import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.run.orders import CrawlReport
from tests.integration.quick import quick, unwatched, urls
from tests.integration.scripted import Page, Scripted, scripted
from tests.storage.small_store import rows

CERTIFICATE = Path(__file__).parents[1] / "crawler" / "fetch" / "data" / "loopback.pem"
HOME = Page('<p>Home. <a href="/a">A</a> <a href="/b/c">C</a></p>')
PAGES = {"/": HOME, "/a": Page("<p>The page A.</p>"), "/b/c": Page("<p>The page C.</p>")}


async def crawled(web: Scripted, db: Path, *names: str, **changes: object) -> CrawlReport:
    seeds = seeds_from_arguments([f"{web.origin(name)}/" for name in names]).seeds
    return await crawl(quick(**changes), CrawlOrder(db, seeds), watch=unwatched)


@pytest.mark.parametrize(
    "robots",
    [Page("gone fishing", 500), Page("slow down", 429), Page("down", 503, {"Retry-After": "1"}),
     Page("\x1f\x8b\x08cut", 200, {"Content-Encoding": "gzip"})],
    ids=["500", "429", "503", "unreadable"],
)  # fmt: skip
async def test_an_unreachable_robots_txt_closes_its_host(tmp_path: Path, robots: Page) -> None:
    async with scripted({"h": {**PAGES, "/robots.txt": robots}}) as web:
        report = await crawled(
            web, tmp_path / "c.db", "h", crawl__patience_s=0.1, politeness__back_off_factor=3.0
        )
    assert set(web.asked("h")) == {"/robots.txt"}
    assert len(web.asked("h")) >= 2
    assert [host.urls for host in report.deferred] == [1]


@pytest.mark.parametrize("status", [401, 403, 404, 410])
async def test_no_robots_txt_allows_everything(tmp_path: Path, status: int) -> None:
    async with scripted({"h": {**PAGES, "/robots.txt": Page("", status)}}) as web:
        report = await crawled(web, tmp_path / "c.db", "h")
    assert report.pages == 3


async def test_what_robots_txt_forbids_is_recorded_as_refused_and_not_asked(tmp_path: Path) -> None:
    db = tmp_path / "c.db"
    rules = Page("User-agent: *\nDisallow: /b\n", headers={"Content-Type": "text/plain"})
    async with scripted({"h": {**PAGES, "/robots.txt": rules}}) as web:
        report = await crawled(web, db, "h")
    assert sorted(web.asked("h")) == ["/", "/a", "/robots.txt"]
    assert (report.pages, report.refused_by_robots) == (2, 1)
    details = urls(db, "SELECT detail FROM observation WHERE kind = 'refused'")
    assert details == {"Disallow: /b"}


async def test_noindex_is_recorded_and_noarchive_keeps_no_body(tmp_path: Path) -> None:
    db = tmp_path / "c.db"
    pages = {"/": Page("<p>Secret.</p>", headers={"X-Robots-Tag": "noindex, noarchive"})}
    async with scripted({"h": pages}) as web:
        await crawled(web, db, "h")
    assert rows(db, "SELECT noindex, noarchive FROM page") == [(2, 1)]
    assert rows(db, "SELECT count(*) FROM body") == [(0,)]


def sitemap(*locations: str) -> Page:
    entries = "".join(f"<url><loc>{location}</loc></url>" for location in locations)
    return Page(f"<urlset>{entries}</urlset>", headers={"Content-Type": "application/xml"})


def cross_submit(naming: str) -> Mapping[str, Mapping[str, Page]]:
    """Host ``a`` has a sitemap that lists a page of ``b``."""
    listing = sitemap("{origin:a}/own", "{origin:b}/listed")
    return {
        "a": {
            "/": Page("<p>A</p>"), "/own": Page("<p>Own</p>"), "/sitemap.xml": listing,
            "/robots.txt": Page("Sitemap: {origin:a}/sitemap.xml\n"),
        },
        "b": {
            "/": Page("<p>B</p>"), "/listed": Page("<p>Listed</p>"), "/robots.txt": Page(naming),
        },
    }  # fmt: skip


async def test_a_sitemap_speaks_for_another_host_only_if_that_host_says_so(tmp_path: Path) -> None:
    async with scripted(cross_submit("User-agent: *\nDisallow:\n")) as web:
        await crawled(web, tmp_path / "c.db", "a", "b")
    assert "/own" in web.asked("a")
    assert "/listed" not in web.asked("b")


@pytest.mark.parametrize("first", ["a", "b"], ids=["sitemap first", "robots.txt first"])
async def test_a_named_sitemap_counts_whichever_file_is_read_first(
    tmp_path: Path, first: str
) -> None:
    second = "b" if first == "a" else "a"
    async with scripted(cross_submit("Sitemap: {origin:a}/sitemap.xml\n")) as web:
        await crawled(web, tmp_path / "c.db", first, crawl__scope="host")
        await crawled(web, tmp_path / "c.db", second)
    assert "/listed" in web.asked("b")


async def test_a_sitemap_line_that_is_no_url_harms_nothing(tmp_path: Path) -> None:
    rules = Page("Sitemap: http://\nSitemap: https://[::bad/\n")
    async with scripted({"h": {**PAGES, "/robots.txt": rules}}) as web:
        report = await crawled(web, tmp_path / "c.db", "h")
    assert (report.pages, report.errors) == (3, 0)


async def test_a_larger_depth_lets_in_what_a_smaller_one_held_back(tmp_path: Path) -> None:
    async with scripted(
        {"h": {**PAGES, "/a": Page('<p>A. <a href="/deep">D</a></p>'), "/deep": HOME}}
    ) as web:
        shallow = await crawled(web, tmp_path / "c.db", "h", crawl__max_depth=1)
        assert (shallow.pages, shallow.held_back) == (3, {"depth": 1})
        site = {"match": "*.localhost", "max_depth": 0}
        own = await crawled(web, tmp_path / "d.db", "h", crawl__max_depth=1, sites=[site])
        deep = await crawled(web, tmp_path / "c.db", "h", crawl__max_depth=0)
    assert (deep.pages, deep.new) == (4, 1)
    assert (own.pages, own.held_back) == (4, {})


async def test_a_bad_certificate_is_a_recorded_outcome_and_no_downgrade(tmp_path: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATE)
    db = tmp_path / "c.db"
    async with scripted({"h": PAGES}, tls) as web:
        bare = web.origin("h").removeprefix("https://")
        seeds = seeds_from_arguments([bare]).seeds
        report = await crawl(quick(), CrawlOrder(db, seeds), watch=unwatched)
    assert web.log == []
    ((_, _, why),) = report.silent_seeds
    assert "certificate" in why
    assert why.endswith(f"; name http://{bare}/ to crawl it without https")
    assert urls(db, "SELECT reason FROM observation") == {"tls"}
    assert urls(db, "SELECT url FROM page") == {f"{web.origin('h')}/"}
