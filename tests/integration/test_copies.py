"""A crawl stops asking for URLs that give nothing but copies, and for nothing else."""

from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from freshet.crawler.extensions.lab.synthetic_web.content import ContentHistory
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb, WebSpec
from freshet.crawler.run.crawl import crawl
from freshet.crawler.run.orders import CrawlReport
from scripts.synthetic_server import WebServer, serve
from tests.crawler.extensions.lab.synthetic_web.outlet import is_variant, outlet
from tests.integration.quick import (
    answered,
    assert_consistent,
    assert_counted,
    order,
    quick,
    unwatched,
    urls,
)

SPEC = WebSpec(hosts=1, pages_per_host=200)


def shop(*, vivid: bool = False) -> SyntheticWeb:
    """The shop; a ``vivid`` one has other words at each URL, what it may be named."""
    site = outlet(SPEC.plot("outlet"))
    if vivid:
        documents = [(target, page) for target, page in site.documents() if is_variant(target)]
        own = {t: replace(page, history=_own(page.history, t)) for t, page in documents}
        site = replace(site, resources={**site.resources, **own})
    return SPEC.web([site])


def _own(history: ContentHistory, target: str) -> ContentHistory:
    """The links of another history with a text of its own."""
    own = SPEC.plot("outlet").story(f"own {target}").content(0)
    return replace(
        history, content=lambda version: replace(own, links=history.content(version).links)
    )


def pages_of(web: SyntheticWeb, server: WebServer) -> set[str]:
    """The URLs that are pages of their own."""
    origin = server.url("outlet").rstrip("/")
    return {origin + t for t, _ in web.sites["outlet"].documents() if not is_variant(t)}


async def crawled(
    server: WebServer, db: Path, resume: bool | None = None, **changes: object
) -> CrawlReport:
    # A host that is asked a thousand times a second would be far ahead of what is committed.
    settings = quick(**{"store__batch": 2, **changes})
    return await crawl(settings, order(db, server, ["outlet"], resume), watch=unwatched)


async def test_orders_sessions_and_printer_versions_are_left_and_every_page_is_found(
    tmp_path: Path,
) -> None:
    web, db = shop(), tmp_path / "crawl.db"
    async with serve(web) as server:
        pages = pages_of(web, server)
        report = await crawled(server, db)
    assert pages <= answered(db)
    # Patterns of 30 pages and one in twenty, and sessions, of which one pair is enough.
    wasted = report.pages - len(pages)
    needless = len(web.sites["outlet"].resources) - len(pages)
    assert needless == 741
    assert wasted < 0.3 * needless
    assert all(is_variant(url) for url in urls(db, "SELECT url FROM page WHERE copy_of <> id"))
    assert_consistent(db)
    closed = {p.shape for _, p in report.bounded if p.kind == "trap: copies"}
    assert "/list?category&sort" in closed
    assert "/…?sid" in {p.shape for _, p in report.bounded if p.kind == "trap: parameter"}
    stored = "SELECT shape FROM trap WHERE closed_at IS NOT NULL AND kind = 'trap: copies'"
    assert urls(db, stored) == closed
    assert not closed & {"/list?category", "/product?id", "/news?page"}


@pytest.mark.long
async def test_every_url_is_counted_once_as_read_or_refused(tmp_path: Path) -> None:
    web, db = shop(), tmp_path / "crawl.db"
    async with serve(web) as server:
        await crawled(server, db)
    assert_counted(db)
    held = "SELECT url FROM page WHERE held_back = 'trap: copies' AND last_at IS NOT NULL"
    assert urls(db, held) == set()


@pytest.mark.long
async def test_parameters_that_make_pages_are_left_alone(tmp_path: Path) -> None:
    web, db = shop(vivid=True), tmp_path / "crawl.db"
    async with serve(web) as server:
        report = await crawled(server, db, store__batch=100)
    assert report.pages == len(web.sites["outlet"].resources)
    assert report.bounded == []


@pytest.mark.long
async def test_what_was_learnt_holds_in_the_next_crawl_and_is_given_up_when_it_is_no_longer_true(
    tmp_path: Path,
) -> None:
    db = tmp_path / "crawl.db"
    async with serve(shop()) as server:
        before = await crawled(server, db)
        held = "SELECT url FROM page WHERE held_back = 'trap: copies'"
        refused = urls(db, held)
        again = await crawled(server, db)
        assert (again.pages, urls(db, held)) == (before.pages, refused)
        port = urlsplit(server.url("outlet")).port or 0
    async with serve(shop(vivid=True), port=port) as server:
        await crawled(server, db, store__batch=100)
        assert urls(db, held) == set()
        assert refused <= answered(db)
    assert_consistent(db)


@pytest.mark.long
async def test_whoever_turns_it_off_gets_what_was_held_back(tmp_path: Path) -> None:
    web, db = shop(), tmp_path / "crawl.db"
    async with serve(web) as server:
        await crawled(server, db)
        report = await crawled(
            server, db, store__batch=100, traps__min_copy_urls=0, traps__min_copy_pairs=0
        )
    assert report.pages == len(web.sites["outlet"].resources)
