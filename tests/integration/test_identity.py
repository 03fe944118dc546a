"""One page is one page: other spellings, sessions in the path, and cookies that open it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run.crawl import CrawlOrder, crawl
from tests.integration.quick import quick, unwatched
from tests.storage.small_store import rows

WORDS = "".join(f"<p>Sentence {n} of this page tells of the weather." for n in range(9))


@dataclass(frozen=True)
class Reply:
    """An answer with a body, or a redirect that sets cookies."""

    body: str = ""
    location: str | None = None
    cookies: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        status = "302 Found" if self.location is not None else "200 OK"
        lines = [f"HTTP/1.1 {status}", "Content-Type: text/html; charset=utf-8"]
        lines += [f"Location: {self.location}"] if self.location is not None else []
        lines += [f"Set-Cookie: {each}" for each in self.cookies]
        body = self.body.encode()
        return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


#: What a site answers to a path, as it was asked, with these cookies.
Site = Callable[[str, str], Reply]


@dataclass
class Server:
    """A site on loopback; ``asked`` are the paths with their cookies, but for robots.txt."""

    site: Site
    port: int = 0
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                path, lines = head.split()[1], head.split("\r\n")
                cookies = [it[8:] for it in lines if it.lower().startswith("cookie: ")]
                if path in {"/robots.txt", "/sitemap.xml"}:
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    continue
                self.asked.append((path, "|".join(cookies)))
                writer.write(self.site(path, "|".join(cookies)).to_bytes())
        writer.transport.abort()

    async def crawled(self, db: Path, crawls: int = 1) -> None:
        seeds = seeds_from_arguments([f"http://127.0.0.1:{self.port}/"]).seeds
        for _ in range(crawls):
            await crawl(quick(), CrawlOrder(db, seeds), watch=unwatched)


@asynccontextmanager
async def serving(site: Site) -> AsyncIterator[Server]:
    it = Server(site)
    server = await asyncio.start_server(it.serve, "127.0.0.1", 0)
    it.port = server.sockets[0].getsockname()[1]
    yield it
    server.close()
    await server.wait_closed()


def page(title: str, *links: str) -> Reply:
    hrefs = "".join(f"<a href='{each}'>{each}</a>" for each in links)
    return Reply(f"<title>{title}</title><h1>Page {title}</h1>{WORDS}{hrefs}<p>{title * 9}</p>")


def pages(db: Path) -> list[tuple[str, str]]:
    sql = "SELECT url, last_kind FROM page WHERE role = 'page' ORDER BY url"
    return [(f"/{url.split('/', 3)[3]}", kind) for url, kind in rows(db, sql)]


NEWS = "/%E3%83%8B%E3%83%A5%E3%83%BC%E3%82%B9/"
ABOUT = "/%CE%BD%CE%AD%CE%B1/"
RUSSIAN = "/%D0%BD%D0%BE%D0%B2%D0%BE%D1%81%D1%82%D0%B8/"


async def test_a_site_whose_menus_and_texts_spell_its_urls_otherwise_has_each_page_once(
    tmp_path: Path,
) -> None:
    upper = [NEWS, ABOUT, RUSSIAN, "/~joe/", "/a-b.html"]
    other = [NEWS.lower(), ABOUT.lower(), RUSSIAN.lower(), "/%7Ejoe/", "/a%2db%2Ehtml"]

    def site(path: str, _cookies: str) -> Reply:
        return page(unquote(path), *(other + upper if path == "/" else upper))

    async with serving(site) as server:
        await server.crawled(tmp_path / "crawl.db", 2)
    assert pages(tmp_path / "crawl.db") == sorted((each, "unchanged") for each in ["/", *upper])
    # What is requested is what was found.
    assert {path for path, _ in server.asked} == {"/", *other}
    assert len(server.asked) == 12


@pytest.mark.parametrize("letter", ["S", "s"])
async def test_each_crawl_of_a_site_with_sessions_in_its_paths_finds_the_same_pages(
    tmp_path: Path, letter: str
) -> None:
    sessions = [f"({letter}({name * 24}))" for name in "abcdefghijklmn"]
    alive = list[str]()

    def site(path: str, _cookies: str) -> Reply:
        first, _, rest = path.removeprefix("/").partition("/")
        if first in alive:
            return page(rest, *(f"/{first}/{name}.aspx" for name in ("a", "b", "c")))
        # A new visitor, or a session that is over.
        alive.append(sessions.pop())
        return Reply(location=f"/{alive[-1]}/{rest if first.startswith('(') else first}")

    async with serving(site) as server:
        await server.crawled(tmp_path / "crawl.db")
        assert len(alive) == 1
        # The server was started anew.
        alive.clear()
        await server.crawled(tmp_path / "crawl.db", 2)
    expected = [(path, "unchanged") for path in ("/", "/a.aspx", "/b.aspx", "/c.aspx")]
    assert pages(tmp_path / "crawl.db") == expected


def bouncing(hops: Mapping[str, Reply]) -> Site:
    """A page at ``/`` that is shown to who has the cookie ``seen``; others are sent round."""

    def site(path: str, cookies: str) -> Reply:
        if path == "/" and "seen=yes" in cookies:
            return page("home", "/a")
        return hops.get(path, page(path))

    return site


SEEN = "seen=yes; Path=/"
ROUNDS: Mapping[str, Mapping[str, Reply]] = {
    "to itself": {"/": Reply(location="/", cookies=(SEEN,))},
    "with several cookies": {"/": Reply(location="/", cookies=("a=1", SEEN, "b=2; Secure"))},
    "with attributes": {"/": Reply(location="/", cookies=(f"{SEEN}; HttpOnly; SameSite=Lax",))},
    "for a while": {"/": Reply(location="/", cookies=(f"{SEEN}; Max-Age=3600",))},
    "without a path": {"/": Reply(location="/", cookies=("seen=yes",))},
    "with a fragment": {"/": Reply(location="/#top", cookies=(SEEN,))},
    "with tracking": {"/": Reply(location="/?utm_source=x", cookies=(SEEN,)),
                      "/?utm_source=x": Reply(location="/")},
    "there and back": {"/": Reply(location="/check"),
                       "/check": Reply(location="/", cookies=(SEEN,))},
    "there with a cookie, and back": {"/": Reply(location="/check", cookies=(SEEN,)),
                                      "/check": Reply(location="/")},
    "round": {"/": Reply(location="/one"), "/one": Reply(location="/two", cookies=("a=1",)),
              "/two": Reply(location="/", cookies=(SEEN,))},
    "ASP.NET": {"/": Reply(location="/?AspxAutoDetectCookieSupport=1", cookies=(SEEN,)),
                "/?AspxAutoDetectCookieSupport=1": Reply(location="/")},
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDS)
async def test_a_page_that_wants_a_cookie_back_is_read_in_each_crawl(
    tmp_path: Path, name: str
) -> None:
    async with serving(bouncing(ROUNDS[name])) as server:
        await server.crawled(tmp_path / "crawl.db")
        assert ("/a", "new") in pages(tmp_path / "crawl.db")
        assert ("/", "new") in pages(tmp_path / "crawl.db")
        first = server.asked[0]
        server.asked.clear()
        await server.crawled(tmp_path / "crawl.db")
    assert ("/", "unchanged") in pages(tmp_path / "crawl.db")
    # No page keeps a cookie until its next visit, and no other page gets it.
    assert (first[1], server.asked[0][1]) == ("", "")
    assert ("/a", "") in server.asked
    assert len(server.asked) <= 6
    assert rows(tmp_path / "crawl.db", "SELECT 1 FROM page WHERE url LIKE '%seen%'") == []


@pytest.mark.parametrize(
    "cookie", ["", "n=1; Max-Age=0", "n=1; Path=/elsewhere", "n=1; Domain=b.example", "n=1"]
)
async def test_a_page_that_redirects_in_a_circle_whatever_it_gets_is_a_loop(
    tmp_path: Path, cookie: str
) -> None:
    cookies = (cookie,) if cookie else ()
    hops = {"/": Reply(location="/check"), "/check": Reply(location="/", cookies=cookies)}
    async with serving(bouncing(hops)) as server:
        await server.crawled(tmp_path / "crawl.db")
    assert len(server.asked) <= 4
    sql = "SELECT count(*) FROM finding WHERE reason = 'redirect_loop'"
    assert rows(tmp_path / "crawl.db", sql) == [(1,)]
