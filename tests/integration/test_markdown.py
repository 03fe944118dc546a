"""Markdown in a crawl: pages that it alone links are found, its edits are changes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.reduce.blocks import TEXT_VERSION
from freshet.crawler.run.crawl import CrawlOrder, crawl
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
