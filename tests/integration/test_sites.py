"""Tables of sites in a crawl and a daemon: their scope, and how many pages they may have."""

from pathlib import Path

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run.crawl import CrawlOrder, crawl
from tests.integration.quick import quick, unwatched
from tests.integration.scripted import Page, Scripted, scripted
from tests.integration.test_daemon import Stage
from tests.integration.test_reloading import RELOAD_AT, asked_for, kept
from tests.storage.small_store import rows

HOME = Page("<p>Home. " + " ".join(f'<a href="/{n}">Page {n}</a>' for n in range(1, 10)))
PAGES = {"/": HOME, **{f"/{n}": Page(f"<p>This is page {n} of ten.") for n in range(1, 10)}}


async def crawled(web: Scripted, db: Path, *names: str, **changes: object) -> dict[str, int]:
    """The number of pages that a crawl asks each host for."""
    before = len(web.log)
    seeds = seeds_from_arguments([f"{web.origin(name)}/" for name in names]).seeds
    await crawl(quick(**changes), CrawlOrder(db, seeds), watch=unwatched)
    asked = [name for name, target in web.log[before:] if target != "/robots.txt"]
    return {name: asked.count(name) for name in names}


async def test_a_sites_scope_goes_before_that_of_the_others_and_may_change(tmp_path: Path) -> None:
    db, table = tmp_path / "c.db", {"match": "a.localhost", "scope": "list"}
    async with scripted({"a": PAGES, "b": PAGES}) as web:
        assert await crawled(web, db, "a", "b", sites=[table]) == {"a": 1, "b": 10}
        other = {"match": "b.localhost", "scope": "list"}
        assert await crawled(web, db, "a", "b", sites=[table, other]) == {"a": 1, "b": 10}
        # The same bytes: they are read again, for what was out of scope.
        assert await crawled(web, db, "a", "b") == {"a": 10, "b": 10}


async def test_a_site_has_so_many_pages_and_more_when_it_may(tmp_path: Path) -> None:
    db, table = tmp_path / "c.db", {"match": "*.localhost", "max_pages": 4}
    beyond = "SELECT count(*) FROM page WHERE held_back = 'max_pages'"
    async with scripted({"a": PAGES, "b": PAGES}) as web:
        assert await crawled(web, db, "a", "b", sites=[table]) == {"a": 4, "b": 4}
        assert rows(db, beyond) == [(12,)]
        assert await crawled(web, db, "a", "b", sites=[table]) == {"a": 4, "b": 4}
        more = [{"match": "a.localhost", "max_pages": 6}, table]
        assert await crawled(web, db, "a", "b", sites=more) == {"a": 6, "b": 4}
        fewer = [{"match": "a.localhost", "max_pages": 2}, {"match": "b.localhost", "max_pages": 0}]
        assert await crawled(web, db, "a", "b", sites=fewer) == {"a": 2, "b": 10}
        assert rows(db, beyond) == [(8,)]


@pytest.mark.long
async def test_a_daemon_takes_over_scopes_and_numbers_of_pages(stage: Stage) -> None:
    before = [
        {"match": "news.localhost", "scope": "list"},
        {"match": "docs.localhost", "max_pages": 5},
    ]
    after = [
        {"match": "docs.localhost", "scope": "list"},
        {"match": "wiki.localhost", "max_pages": 5},
    ]

    names = ["news", "docs", "wiki"]
    later = await kept(stage, names, asked_for(sites=after), quick(sites=before))

    def pages(host: str, asked: list[str]) -> set[str]:
        words = ("robots.txt", "sitemap", ".rss", ".xml", "feed")
        return {url for url in asked if host in url and not any(word in url for word in words)}

    first = [url for _, url in stage.server.asked[:RELOAD_AT]]
    assert pages("news.", first) == {"http://news.localhost/"}
    assert len(pages("docs.", first)) <= 5
    assert len(pages("wiki.", first)) > 5
    assert len(pages("news.", later)) > 5
    assert len(pages("wiki.", later)) <= 5
