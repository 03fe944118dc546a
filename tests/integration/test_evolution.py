"""Real sites with their true history, where FRESHET_EVOLUTION_DIR says they are."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run.crawl import CrawlOrder, crawl
from tests.integration.quick import answered, quick, unwatched, urls
from tests.integration.timeserver import FOLDER, NO_FOLDER, History, served
from tests.storage.small_store import rows

SITES = ("flink", "lean", "ada", "httpwg")
#: Pages answer after some time as the server reads a time after it has begun to.
CLOCK_ERROR_S = 0.001

pytestmark = [pytest.mark.long, pytest.mark.skipif(FOLDER is None, reason=NO_FOLDER)]


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    options = ("--sitemap", "generated", "--start", "2025-02-01")
    with served(SITES, tmp_path, *options) as history:
        yield history


def _found(db: Path, origin: str) -> set[str]:
    """The paths that answered; with a meta refresh, too: the recording has these as pages."""
    refreshing = urls(db, "SELECT url FROM page WHERE last_kind = 'redirected' AND status = 200")
    return {
        unquote(url.removeprefix(origin))
        for url in answered(db) | refreshing
        if url.startswith(f"{origin}/")
    }


def _not_found(db: Path) -> set[str]:
    """The paths of the sites' own "not found" pages, to which their sitemaps lead."""
    block_pages = "SELECT url FROM page JOIN observation AS o ON o.page_id = page.id "
    return {
        f"/{unquote(url.split('/', 3)[3])}"
        for url in urls(db, f"{block_pages} WHERE o.kind = 'failed' AND o.reason = 'soft_404'")
    }


async def test_the_pages_found_are_those_that_the_sites_had(
    history: History, tmp_path: Path
) -> None:
    db = tmp_path / "crawl.db"
    # One site's own robots.txt names no sitemap, and some of its pages are linked nowhere.
    entries = [f"{origin}/{path}" for origin in history.hosts for path in ("", "sitemap.xml")]
    seeds = seeds_from_arguments(entries).seeds
    for day in ("2025-02-01", "2025-05-01"):
        history.set_clock(day)
        await crawl(quick(), CrawlOrder(db, seeds), watch=unwatched)
        for origin in history.hosts:
            alive, found = history.alive(origin), _found(db, origin)
            # The recorded sites are served as their own hosts did: /a is /a.html there.
            unknown = {path for path in found - alive if f"{path}.html" not in alive}
            assert (sorted(alive - found - _not_found(db)), sorted(unknown)) == ([], [])
            assert all("404" in path or "not-found" in path for path in _not_found(db))


async def test_by_the_servers_log_no_request_came_early(history: History, tmp_path: Path) -> None:
    seeds = seeds_from_arguments([f"{origin}/" for origin in history.hosts]).seeds
    settings = quick(politeness__delay_s=0.1, crawl__time_limit_s=4.0)
    await crawl(settings, CrawlOrder(tmp_path / "crawl.db", seeds), watch=unwatched)
    by_host = defaultdict(list)
    for line in history.requests():
        by_host[line["host"]].append((line["rt"], line["rt"] + line["dur_ms"] / 1e3))
    assert len(by_host) == len(SITES)
    gaps = [b[0] - a[1] for times in by_host.values() for a, b in pairwise(sorted(times))]
    assert len(gaps) > 4 * 10
    assert min(gaps) >= 0.1 - CLOCK_ERROR_S


async def test_a_second_visit_to_real_pages_is_mostly_answered_304(
    history: History, tmp_path: Path
) -> None:
    db = tmp_path / "crawl.db"
    seeds = seeds_from_arguments([f"{next(iter(history.hosts))}/"]).seeds
    await crawl(quick(), CrawlOrder(db, seeds), watch=unwatched)
    report = await crawl(quick(), CrawlOrder(db, seeds), watch=unwatched)
    rungs = rows(
        db,
        "SELECT o.rung, count(*) FROM observation AS o JOIN page AS p ON p.id = o.page_id "
        "WHERE o.run_id = 2 AND p.role = 'page' AND o.kind = 'unchanged' GROUP BY 1",
    )
    assert report.changed == 0
    assert rungs == [("304", report.pages)]
