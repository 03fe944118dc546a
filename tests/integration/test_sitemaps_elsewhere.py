"""A sitemap that lies elsewhere may name URLs of the hosts that name it, and of no others."""

from pathlib import Path

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run.crawl import CrawlOrder, crawl
from tests.integration.quick import quick, unwatched
from tests.integration.scripted import Page, scripted

Hosts = dict[str, dict[str, Page]]


def to(place: str, status: int = 302) -> Page:
    return Page("", status, {"Location": place})


def urlset(*urls: str) -> Page:
    inside = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return Page(f"<urlset>{inside}</urlset>")


def index(*urls: str) -> Page:
    inside = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return Page(f"<sitemapindex>{inside}</sitemapindex>")


def rss(*urls: str) -> Page:
    inside = "".join(f"<item><title>t</title><link>{url}</link></item>" for url in urls)
    return Page(f"<rss version='2.0'><channel><title>t</title>{inside}</channel></rss>")


A, B, CDN = "{origin:a}", "{origin:b}", "{origin:cdn}"
NAMES = Page(f"Sitemap: {A}/map.xml")
#: A page of each host.
OF_ALL = urlset(f"{A}/new", f"{B}/new", f"{CDN}/new")

#: What the hosts have beside their pages; and the pages that the sitemaps may name.
CASES: dict[str, tuple[Hosts, set[str]]] = {
    "302": (
        {"a": {"/robots.txt": NAMES, "/map.xml": to(f"{CDN}/map.xml")},
         "cdn": {"/map.xml": OF_ALL}}, {"a", "cdn"}),
    "301": (
        {"a": {"/robots.txt": NAMES, "/map.xml": to(f"{CDN}/map.xml", 301)},
         "cdn": {"/map.xml": OF_ALL}}, {"a", "cdn"}),
    "307 and 308": (
        {"a": {"/robots.txt": NAMES, "/map.xml": to("/two.xml", 307),
               "/two.xml": to(f"{CDN}/map.xml", 308)},
         "cdn": {"/map.xml": OF_ALL}}, {"a", "cdn"}),
    "a relative line in robots.txt": (
        {"a": {"/robots.txt": Page("Sitemap: /map.xml"), "/map.xml": to(f"{CDN}/map.xml")},
         "cdn": {"/map.xml": OF_ALL}}, {"a", "cdn"}),
    "a feed": (
        {"a": {"/robots.txt": NAMES, "/map.xml": to(f"{CDN}/feed")},
         "cdn": {"/feed": rss(f"{A}/new", f"{B}/new")}}, {"a"}),
    "over a third host": (
        {"a": {"/robots.txt": NAMES, "/map.xml": to(f"{B}/map.xml")},
         "b": {"/map.xml": to(f"{CDN}/map.xml")}, "cdn": {"/map.xml": OF_ALL}}, {"a", "cdn"}),
    "an index that redirects": (
        {"a": {"/robots.txt": NAMES, "/map.xml": to(f"{CDN}/index.xml")},
         "cdn": {"/index.xml": index(f"{CDN}/1.xml", f"{CDN}/2.xml"), "/1.xml": urlset(f"{A}/new"),
                 "/2.xml": OF_ALL}}, {"a", "cdn"}),
    "an index elsewhere": (
        {"a": {"/robots.txt": Page(f"Sitemap: {CDN}/index.xml")},
         "cdn": {"/index.xml": index(f"{CDN}/1.xml"), "/1.xml": OF_ALL}}, {"a", "cdn"}),
    "a file of an index redirects": (
        {"a": {"/robots.txt": NAMES, "/map.xml": index(f"{A}/1.xml"), "/1.xml": to(f"{CDN}/1.xml")},
         "cdn": {"/1.xml": OF_ALL}}, {"a", "cdn"}),
    "named by another host only": (
        {"b": {"/robots.txt": NAMES}, "a": {"/map.xml": to(f"{CDN}/map.xml")},
         "cdn": {"/map.xml": OF_ALL}}, {"b", "cdn"}),
    "at the usual place, named by another host": (
        {"b": {"/robots.txt": Page(f"Sitemap: {A}/sitemap.xml")},
         "a": {"/sitemap.xml": to(f"{CDN}/map.xml")}, "cdn": {"/map.xml": OF_ALL}},
        {"a", "b", "cdn"}),
    "an index at the usual place": (
        {"b": {"/robots.txt": Page(f"Sitemap: {A}/sitemap.xml")},
         "a": {"/sitemap.xml": to(f"{CDN}/index.xml")},
         "cdn": {"/index.xml": index(f"{CDN}/1.xml"), "/1.xml": urlset(f"{A}/new")}}, {"a"}),
    "an open redirect": (
        {"cdn": {"/robots.txt": Page(f"Sitemap: {A}/go?to=1"), "/map.xml": OF_ALL},
         "a": {"/go?to=1": to(f"{CDN}/map.xml")}}, {"cdn"}),
    "an open redirect, beside a sitemap": (
        {"cdn": {"/robots.txt": Page(f"Sitemap: {A}/go?to=1"), "/map.xml": OF_ALL},
         "a": {"/robots.txt": NAMES, "/map.xml": urlset(f"{A}/"),
               "/go?to=1": to(f"{CDN}/map.xml")}}, {"cdn"}),
    "an index of a stranger": (
        {"cdn": {"/robots.txt": Page(f"Sitemap: {CDN}/index.xml"),
                 "/index.xml": index(f"{CDN}/1.xml", f"{A}/map.xml"), "/1.xml": OF_ALL},
         "a": {"/robots.txt": NAMES, "/map.xml": urlset(f"{B}/new")}}, {"cdn"}),
    "an index that names a stranger's file": (
        {"a": {"/robots.txt": NAMES, "/map.xml": index(f"{CDN}/1.xml")},
         "cdn": {"/robots.txt": Page(f"Sitemap: {CDN}/1.xml"), "/1.xml": OF_ALL}}, {"cdn"}),
    "the other way round": (
        {"a": {"/robots.txt": NAMES, "/map.xml": to(f"{CDN}/map.xml")},
         "cdn": {"/map.xml": to(f"{B}/map.xml")}, "b": {"/map.xml": OF_ALL}}, {"a", "b"}),
    "a page that redirects": (
        {"a": {"/": Page("<a href=/go>go</a>"), "/go": to(f"{CDN}/map.xml")},
         "cdn": {"/robots.txt": Page(f"Sitemap: {CDN}/map.xml"), "/map.xml": OF_ALL}}, {"cdn"}),
}  # fmt: skip


@pytest.mark.parametrize(("hosts", "expected"), CASES.values(), ids=CASES)
async def test_it_may_name_urls_of_who_names_it(
    tmp_path: Path, hosts: Hosts, expected: set[str]
) -> None:
    web: Hosts = {
        name: {"/": Page("<p>Home"), "/new": Page("<p>New"), "/robots.txt": Page("")}
        | hosts.get(name, {})
        for name in ("a", "b", "cdn")
    }
    assert await found(tmp_path, web) == [expected]


async def found(tmp_path: Path, *webs: Hosts) -> list[set[str]]:
    """Return the hosts whose new pages are requested in each of some crawls of these hosts."""
    pages, names = {**webs[-1], **webs[0]}, []
    async with scripted(pages) as running:
        for web in webs:
            pages.update(web)
            running.log.clear()
            seeds = seeds_from_arguments([running.origin(name) for name in web]).seeds
            settings = quick(crawl__patience_s=0.5)
            await crawl(settings, CrawlOrder(tmp_path / "c.db", seeds), watch=unwatched)
            names.append({name for name in web if "/new" in running.asked(name)})
    return names


async def test_a_host_may_name_it_after_it_was_read(tmp_path: Path) -> None:
    plain = {"/": Page("<p>Home"), "/new": Page("<p>New"), "/robots.txt": Page("")}
    before: Hosts = {
        "a": plain | {"/robots.txt": NAMES, "/map.xml": to(f"{CDN}/map.xml")},
        "cdn": plain | {"/map.xml": OF_ALL},
    }  # fmt: skip
    names = Page(f"Sitemap: {B}/b.xml")
    after = before | {"b": plain | {"/robots.txt": names, "/b.xml": to(f"{CDN}/map.xml")}}
    first, second = await found(tmp_path, before, after)
    assert (first, "b" in second) == ({"a", "cdn"}, True)
