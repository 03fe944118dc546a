"""Markdown in a crawl: pages that it alone links are found, its edits are changes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.reduce.blocks import TEXT_VERSION
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.run.orders import CrawlReport
from tests.integration.quick import quick, unwatched
from tests.integration.scripted import Page, Scripted, scripted
from tests.storage.small_store import SmallStore, rows

MARKDOWN, PLAIN = {"Content-Type": "text/markdown"}, {"Content-Type": "text/plain"}
GUIDE = "# Guide\n\nHow to mend a net, knot by knot.\n\nSee [the knots](/only)."


@pytest.fixture
async def site() -> AsyncIterator[tuple[Scripted, dict[str, Page]]]:
    pages = {
        "/": Page("<title>Home</title><p>Nets and boats.</p><a href=/llms.txt>for models</a>"),
        "/llms.txt": Page("# Docs\n\n- [Guide](guide): mending nets\n", headers=PLAIN),
        "/guide": Page(GUIDE, headers=MARKDOWN),
        "/only": Page("<title>Knots</title><p>The reef knot and the bowline.</p>"),
    }
    async with scripted({"a": pages}) as served:
        yield served, pages


async def visit(served: Scripted, db: Path) -> dict[str, str]:
    """Crawl, and return the kind of the newest finding of each page."""
    seeds = seeds_from_arguments([served.origin("a") + "/"]).seeds
    await crawl(quick(), CrawlOrder(db, seeds, resume=False), watch=unwatched)
    found = rows(
        db,
        "SELECT p.url, f.kind FROM finding AS f JOIN page AS p ON p.id = f.page_id "
        "WHERE p.role = 'page' ORDER BY f.id",
    )
    return {url.removeprefix(served.origin("a")): kind for url, kind in found}


async def test_a_page_that_only_markdown_links_is_found(
    site: tuple[Scripted, dict[str, Page]], tmp_path: Path
) -> None:
    db = tmp_path / "crawl.db"
    found = await visit(site[0], db)
    assert found == dict.fromkeys(["/", "/llms.txt", "/guide", "/only"], "new")
    titles = {title for (title,) in rows(db, "SELECT title FROM page WHERE role = 'page'")}
    assert titles == {"Home", "Docs", "Guide", "Knots"}


async def test_an_edit_is_a_change_and_another_reading_of_the_same_text_is_none(
    site: tuple[Scripted, dict[str, Page]], tmp_path: Path
) -> None:
    served, pages = site
    db = tmp_path / "crawl.db"
    await visit(served, db)
    # As a store has it that was written when Markdown was read as plain text.
    SmallStore(db).execute("UPDATE version SET text_version = ?", TEXT_VERSION)
    pages["/guide"] = Page(GUIDE + "\n", headers=MARKDOWN)
    assert (await visit(served, db))["/guide"] == "unchanged"
    pages["/guide"] = Page(GUIDE.replace("a net", "a torn sail"), headers=MARKDOWN)
    assert (await visit(served, db))["/guide"] == "changed"


# -- asked for (fetch.markdown) ------------------------------------------------------


def words_of(number: int) -> str:
    return " ".join(f"word{number}x{n}" for n in range(60))


class Negotiating:
    """A host whose pages are HTML, and Markdown for those who ask for it."""

    def __init__(self, *, varies: bool = True, same: bool = True, smaller: bool = True) -> None:
        self.varies, self.same, self.smaller = varies, same, smaller
        self.asked: list[tuple[str, str]] = []
        self.alternate = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        accept = request.headers.get("Accept", "")
        self.asked.append((request.path, accept))
        if request.path == "/robots.txt":
            return web.Response(text="User-agent: *\nAllow: /\n")
        number = int(request.path.strip("/") or 0)
        headers = {"Vary": "Accept-Encoding, Accept"} if self.varies else {}
        links = range(1, 6) if number == 0 else ()
        if accept.startswith("text/markdown"):
            text = words_of(number) if self.same else "Log in to read this page."
            more = "" if self.smaller else "<!-- " + "x" * 9_000 + " -->"
            body = f"# Page {number}\n\n{text}\n\n" + "".join(f"- [n{n}](/{n})\n" for n in links)
            return web.Response(
                text=body + more, content_type="text/markdown", headers=headers, charset="utf-8"
            )
        anchors = "".join(f"<li><a href=/{n}>n{n}</a>" for n in links)
        style = "<style>" + "p { color: red }" * 99 + "</style>"
        body = f"<title>P{number}</title>{self.alternate}{style}<main><h1>Page {number}</h1>"
        body += f"<p>{words_of(number)}</p><ul>{anchors}</ul></main>"
        return web.Response(text=body, content_type="text/html", headers=headers)

    @property
    def forms(self) -> list[str]:
        """The form in which each page was requested, in order."""
        pages = [(path, accept) for path, accept in self.asked if path != "/robots.txt"]
        return ["md" if accept.startswith("text/markdown") else "html" for _, accept in pages]


@asynccontextmanager
async def serving(host: Negotiating) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(host.handle, access_log=None))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://a.localhost:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def crawled(host: Negotiating, db: Path, **settings: object) -> CrawlReport:
    async with serving(host) as place:
        seeds = seeds_from_arguments([f"{place}/"]).seeds
        return await crawl(
            quick(fetch__markdown=True, **settings), CrawlOrder(db, seeds, resume=False),
            watch=unwatched,
        )  # fmt: skip


async def test_a_host_with_the_same_text_in_fewer_bytes_is_asked_for_markdown(
    tmp_path: Path,
) -> None:
    host, db = Negotiating(), tmp_path / "crawl.db"
    report = await crawled(host, db)
    # The first page in both forms, the five others as Markdown.
    assert sorted(host.forms) == ["html"] + ["md"] * 6
    assert next(path for path, accept in host.asked if accept.startswith("text/markdown")) == "/"
    # Each request counts: robots.txt, too.
    assert report.fetches == len(host.asked)
    types = rows(db, "SELECT content_type FROM version ORDER BY id")
    assert [kind.partition(";")[0] for (kind,) in types] == ["text/html"] + ["text/markdown"] * 5


@pytest.mark.parametrize(
    "host",
    [Negotiating(same=False), Negotiating(smaller=False)],
    ids=["another text", "more bytes"],
)
async def test_a_host_whose_markdown_is_no_gain_is_asked_for_html(
    host: Negotiating, tmp_path: Path
) -> None:
    await crawled(host, tmp_path / "crawl.db")
    assert sorted(host.forms) == ["html"] * 6 + ["md"]


async def test_a_host_that_offers_none_is_not_asked(tmp_path: Path) -> None:
    host = Negotiating(varies=False)
    await crawled(host, tmp_path / "crawl.db")
    assert host.forms == ["html"] * 6


async def test_an_alternate_form_in_the_head_is_an_offer(tmp_path: Path) -> None:
    host = Negotiating(varies=False)
    host.alternate = '<link rel="alternate" type="text/markdown" href="/0.md">'
    await crawled(host, tmp_path / "crawl.db")
    assert sorted(host.forms) == ["html"] + ["md"] * 6


async def test_without_the_setting_no_host_is_asked(tmp_path: Path) -> None:
    host = Negotiating()
    async with serving(host) as place:
        seeds = seeds_from_arguments([f"{place}/"]).seeds
        await crawl(quick(), CrawlOrder(tmp_path / "crawl.db", seeds), watch=unwatched)
    assert host.forms == ["html"] * 6


async def test_another_form_of_the_same_text_is_no_change(tmp_path: Path) -> None:
    host, db = Negotiating(), tmp_path / "crawl.db"
    async with serving(host) as place:
        seeds = seeds_from_arguments([f"{place}/"]).seeds
        order = CrawlOrder(db, seeds, resume=False)
        await crawl(quick(), order, watch=unwatched)
        host.asked.clear()
        await crawl(quick(fetch__markdown=True), order, watch=unwatched)
    assert "md" in host.forms
    kinds = rows(db, "SELECT DISTINCT kind FROM finding")
    assert sorted(kind for (kind,) in kinds) == ["new", "unchanged"]
