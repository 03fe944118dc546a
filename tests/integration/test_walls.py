"""Pages answered with 200 that are no content, end to end."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from crawler.admission.sites import seeds_from_arguments
from crawler.commands.crawling import CrawlOrder, Mode, crawl
from crawler.commands.report import CrawlReport
from tests.integration.quick import quick, unwatched
from tests.integration.scripted import Page, Scripted, scripted

FRAME = "<nav><a href=/>Home</a> <a href=/a>A</a> <a href=/b>B</a> <a href=/gone>C</a></nav>"
LOST = Page(
    f"<title>Page not found</title>{FRAME}<main><h1>Page not found</h1>"
    "<p>Sorry, the page that you were looking for does not exist.</p></main>"
)
BUSY = Page(
    "<title>Too many requests</title><h1>Too many requests</h1>"
    "<p>You have sent too many requests. Please try again in a few minutes.</p>"
)


def content(words: str) -> Page:
    return Page(
        f"<title>{words}</title>{FRAME}<main><h1>{words}</h1><p>All that there is to say about "
        f"{words} is said on this page, which has its own words of {words}.</p></main>"
    )


PAGES = {"/": content("home"), "/a": content("apples"), "/b": content("beetroot"), "/gone": LOST}


async def crawled(web: Scripted, db: Path, **settings: object) -> CrawlReport:
    seeds = seeds_from_arguments([web.origin("h")]).seeds
    return await crawl(
        quick(change__probe=True, **settings), CrawlOrder(db, seeds, Mode.NEW), watch=unwatched
    )


def last(db: Path, path: str) -> tuple[str, str | None, bool]:
    """Kind and reason of the last observation of a page, and whether it has content."""
    connection = sqlite3.connect(db)
    try:
        row = connection.execute(
            "SELECT o.kind, o.reason, p.body_digest IS NOT NULL FROM page AS p "
            "JOIN finding AS o ON o.page_id = p.id WHERE p.url LIKE ? ORDER BY o.id DESC LIMIT 1",
            (f"%{path}",),
        ).fetchone()
        return row[0], row[1], bool(row[2])
    finally:
        connection.close()


async def test_a_soft_404_is_a_failure_with_its_name_and_nothing_is_kept(tmp_path: Path) -> None:
    db = tmp_path / "c.db"
    async with scripted({"h": PAGES}) as web:
        report = await crawled(web, db)
    assert report.pages == 3
    assert last(db, "/gone") == ("failed", "soft_404", False)
    assert report.reasons == {"failed: soft_404": 1}


async def test_a_page_like_that_of_a_url_that_cannot_exist_is_one_in_any_language(
    tmp_path: Path,
) -> None:
    # Words that no list knows: only the likeness tells.
    words = "Valahol egészen biztosan máshol van az, amit ezen a lapon keresel, kedves látogató."
    text = f"<main><h1>Ez nincs itt</h1><p>{words}</p></main>"
    lost = Page(f"<title>Ez nincs</title>{FRAME}{text}")

    class Everywhere(dict[str, Page]):
        def get(self, target: str, default: Page | None = None) -> Page:  # type: ignore[override]
            return Page("", 404) if target == "/robots.txt" else super().get(target, lost)

    db = tmp_path / "c.db"
    async with scripted({"h": Everywhere(PAGES | {"/gone": lost})}) as web:
        report = await crawled(web, db)
    assert last(db, "/gone") == ("failed", "soft_404", False)
    assert report.pages == 3
    probes = [path for path in web.asked("h") if path not in {*PAGES, "/robots.txt"}]
    assert len(probes) == 1


async def test_a_host_is_probed_once_and_what_it_showed_is_remembered(tmp_path: Path) -> None:
    db = tmp_path / "c.db"
    async with scripted({"h": PAGES}) as web:
        await crawled(web, db)
        first = len(web.log)
        await crawled(web, db)
    known = {*PAGES, "/robots.txt"}
    assert sum(path not in known for path in web.asked("h")) == 1
    assert len(web.log) - first <= len(known)


async def test_robots_txt_counts_for_probes_too(tmp_path: Path) -> None:
    rules = Page("User-agent: *\nDisallow: /\nAllow: /$\nAllow: /a$\nAllow: /b$\n")
    async with scripted({"h": {**PAGES, "/robots.txt": rules}}) as web:
        await crawled(web, tmp_path / "c.db")
    assert set(web.asked("h")) == {"/robots.txt", "/", "/a", "/b"}


async def test_content_that_gives_way_to_a_wall_is_not_changed_and_comes_back_unchanged(
    tmp_path: Path,
) -> None:
    db, pages = tmp_path / "c.db", dict(PAGES)
    async with scripted({"h": pages}) as web:
        await crawled(web, db)
        pages["/a"] = LOST
        report = await crawled(web, db)
        assert last(db, "/a") == ("failed", "soft_404", True)
        assert report.changed == 0
        pages["/a"] = PAGES["/a"]
        await crawled(web, db)
    assert last(db, "/a") == ("unchanged", None, True)


async def test_a_busy_host_is_left_alone_for_a_while_and_asked_again(tmp_path: Path) -> None:
    db, pages = tmp_path / "c.db", dict(PAGES) | {"/b": BUSY}
    async with scripted({"h": pages}) as web:
        report = await crawled(web, db, crawl__attempts=2)
    assert web.asked("h").count("/b") == 2
    assert last(db, "/b") == ("failed", "rate_limited_page", False)
    assert report.retries == 1


@pytest.mark.parametrize("limit", [1, 2])
async def test_visits_that_wait_for_a_probe_do_not_hold_up_a_run_that_ends(
    tmp_path: Path, limit: int
) -> None:
    async with scripted({"h": PAGES}) as web:
        report = await crawled(web, tmp_path / "c.db", crawl__max_pages=limit)
    assert report.pages == limit
