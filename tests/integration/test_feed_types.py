"""Feeds are read whatever the media type says: of a page's links, of the site list, of lists."""

import asyncio
from pathlib import Path

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run.crawl import CrawlOrder, crawl
from tests.crawler.fetch.hostile_server import HostileServer, hostile, page
from tests.integration.quick import quick, unwatched

TYPES = [
    "application/octet-stream", "application/x-rss+xml", "application/rss", "text/html",
    "text/plain", "unknown/unknown", "application/json", "", "nonsense", "text/css",
    "binary/octet-stream", "application/x-atom+xml", "image/svg+xml", "application/rss+xml",
]  # fmt: skip


def rss(number: int) -> bytes:
    link = f"/rss{number}"
    return (
        f"<rss version='2.0'><channel><title>t</title><item><title>a</title><link>{link}</link>"
        "</item></channel></rss>"
    ).encode()


def atom(number: int) -> bytes:
    return (
        "<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom'><title>t</title><entry>"
        f"<title>a</title><id>i</id><link href='/atom{number}'/></entry></feed>"
    ).encode()


#: Feeds by their paths, an RSS and an Atom feed of each type.
FEEDS = {
    f"/{kind.__name__}-feed{number}": page(kind(number), f"Content-Type: {said}")
    for kind in (rss, atom)
    for number, said in enumerate(TYPES)
}
ENTRIES = {f"/{kind}{number}" for kind in ("rss", "atom") for number in range(len(TYPES))}
HEAD = "".join(f"<link rel=alternate type=application/rss+xml href={path}>" for path in FEEDS)


async def asked(tmp_path: Path, pages: dict[str, bytes], seeds: list[str]) -> set[str]:
    """Return the paths that a crawl of these pages requests; ``@`` is the server."""
    server: HostileServer

    async def answer(writer: asyncio.StreamWriter) -> None:
        path = server.requests[-1].split()[1].decode()
        known = pages.get(path)
        body = page(b"<p>nothing more") if known is None else known
        head, _, rest = body.partition(b"\r\n\r\n")
        rest = rest.replace(b"@", server.url("").encode())
        length = b"Content-Length: %d" % len(rest)
        lines = [
            length if line.startswith(b"Content-Length") else line for line in head.split(b"\r\n")
        ]
        writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + rest)

    async with hostile(answer) as server:
        given = seeds_from_arguments([server.url(path) for path in seeds]).seeds
        settings = quick(crawl__patience_s=0.2, signals__max_feeds=100)
        await crawl(settings, CrawlOrder(tmp_path / "c.db", given), watch=unwatched)
    return {head.split()[1].decode() for head in server.requests}


ROBOTS = page(b"", "Content-Type: text/plain")


async def test_feeds_that_a_page_links_are_read(tmp_path: Path) -> None:
    home = page(f"<head>{HEAD}</head><p>Home".encode())
    paths = await asked(tmp_path, {"/robots.txt": ROBOTS, "/": home, **FEEDS}, ["/"])
    assert paths >= ENTRIES


async def test_feeds_in_the_site_list_are_read(tmp_path: Path) -> None:
    paths = await asked(tmp_path, {"/robots.txt": ROBOTS, **FEEDS}, list(FEEDS))
    assert paths >= ENTRIES


async def test_feeds_that_robots_txt_names_are_read(tmp_path: Path) -> None:
    robots = page("".join(f"Sitemap: @{path}\n" for path in FEEDS).encode())
    assert await asked(tmp_path, {"/robots.txt": robots, **FEEDS}, ["/"]) >= ENTRIES


async def test_feeds_in_an_index_of_sitemaps_are_read(tmp_path: Path) -> None:
    inside = "".join(f"<sitemap><loc>@{path}</loc></sitemap>" for path in FEEDS)
    pages = {
        "/robots.txt": page(b"Sitemap: @/index.xml"),
        "/index.xml": page(f"<sitemapindex>{inside}</sitemapindex>".encode()),
    }
    assert await asked(tmp_path, pages | FEEDS, ["/"]) >= ENTRIES


@pytest.mark.parametrize("said", TYPES[:3])
async def test_other_text_of_these_types_is_no_page(tmp_path: Path, said: str) -> None:
    home = page(b"<link rel=alternate type=application/rss+xml href=/feed><p>Home")
    no_feed = page(b"<p>Text <a href=/more>more</a>", f"Content-Type: {said}")
    pages = {"/robots.txt": ROBOTS, "/": home, "/feed": no_feed}
    assert await asked(tmp_path, pages, ["/"]) == {"/robots.txt", "/", "/feed"}
