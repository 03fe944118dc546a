"""A crawl ends with its near-duplicates found, and whoever asks the store is told of them."""

import asyncio
import json
from pathlib import Path
from random import Random

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run.crawl import CrawlOrder, Live, crawl
from freshet.crawler.run.orders import CrawlReport
from freshet.crawler.run.wiring import Observer
from tests.console import shown
from tests.integration.quick import quick, unwatched
from tests.integration.scripted import Page, Scripted, scripted


def article(seed: int) -> str:
    chance = Random(seed)
    words = " ".join(f"word{chance.randrange(500)}" for _ in range(120))
    return f"<main><h1>Article {seed}</h1><p>{words}</p></main>"


HOME = "".join(f'<a href="/{n}">{n}</a> <a href="/{n}/print">Print</a> ' for n in range(3))
PAGES = {
    "/": Page(f"<p>The front page of a small paper.</p>{HOME}"),
    **{f"/{n}": Page(article(n)) for n in range(3)},
    **{f"/{n}/print": Page(article(n)) for n in range(3)},
}


async def crawled(web: Scripted, db: Path, **changes: object) -> CrawlReport:
    seeds = seeds_from_arguments([web.origin("h")]).seeds
    return await crawl(quick(**changes), CrawlOrder(db, seeds), watch=unwatched)


async def told(db: Path, *arguments: str) -> str:
    # In a thread of its own: the command has an event loop of its own.
    return await asyncio.to_thread(shown, *arguments, "--db", db)


async def test_after_a_crawl_its_groups_are_in_report_status_and_export(tmp_path: Path) -> None:
    db = tmp_path / "c.db"
    async with scripted({"h": PAGES}) as web:
        report = await crawled(web, db)
    found = report.duplicates
    assert (found.pages, found.groups, found.duplicates) == (7, 3, 3)
    assert (found.unseen, found.waiting) == (0, 0)
    status = json.loads(await told(db, "status", "--json"))
    assert status["duplicates"]["duplicates"] == 3
    assert "3 of 7 pages with a text are duplicates, in 3 groups" in await told(db, "status")
    exported = await told(db, "export", "--format", "jsonl")
    rows = [json.loads(line) for line in exported.splitlines()]
    origin = web.origin("h")
    assert {row["url"]: row["duplicate_of"] for row in rows if row["duplicate_of"]} == {
        f"{origin}/{n}/print": f"{origin}/{n}" for n in range(3)
    }


async def test_a_crawl_that_is_stopped_leaves_the_comparing_to_the_next(tmp_path: Path) -> None:
    db = tmp_path / "c.db"

    def stopped(live: Live) -> Observer:
        return lambda _batch: live.pool.stop()

    async with scripted({"h": PAGES}) as web:
        seeds = seeds_from_arguments([web.origin("h")]).seeds
        report = await crawl(quick(), CrawlOrder(db, seeds), watch=stopped)
        assert report.ending == "interrupted"
        assert report.duplicates.parameters is None
        report = await crawled(web, db)
    assert (report.ending, report.duplicates.duplicates) == ("nothing due", 3)
