"""Change detection in whole crawls of the synthetic web."""

from pathlib import Path

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.extensions.lab.synthetic_web.content import DAY_S
from freshet.crawler.extensions.lab.synthetic_web.fetcher import SyntheticFetcher
from freshet.crawler.extensions.lab.synthetic_web.sites import documentation
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb, WebSpec
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.run.orders import CrawlReport
from scripts.benchmarks.detection_web import Clutter, board
from tests.integration.quick import quick, unwatched
from tests.storage.small_store import rows


class Visits:
    """A web that is crawled at one time after the other, into one store."""

    def __init__(self, web: SyntheticWeb, db: Path) -> None:
        self.db = db
        self.clock = VirtualClock(web.start_at)
        self._fetcher = SyntheticFetcher(web, self.clock.now)
        origins = [self._fetcher.addresses.origin(name) for name in web.sites]
        self._order = CrawlOrder(db, seeds_from_arguments(origins).seeds)

    async def crawl(self, after_days: float = 0.0) -> CrawlReport:
        self.clock.go_on_from(self.clock.now() + after_days * DAY_S)
        return await crawl(
            quick(), self._order, watch=unwatched, fetcher=self._fetcher, clock=self.clock
        )

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        return rows(self.db, sql)


async def test_a_page_that_moved_keeps_its_history(tmp_path: Path) -> None:
    spec = WebSpec(hosts=1, pages_per_host=8, seed=2, span_days=8)
    visits = Visits(spec.web([documentation(spec.plot("docs"))]), tmp_path / "crawl.db")
    await visits.crawl()
    report = await visits.crawl(after_days=3)
    moved = "JOIN page AS p ON p.id = x.page_id WHERE p.url LIKE '%/guide/getting-started.html'"
    # The reason says whether the redirect or the page came first.
    assert visits.rows(f"SELECT x.kind FROM finding AS x {moved}") == [("unchanged",)]
    assert visits.rows(f"SELECT x.sketch IS NOT NULL FROM version AS x {moved}") == [(1,)]
    assert report.new == 0
    assert report.appeared == []


async def test_what_the_report_counts_is_what_the_store_finds(tmp_path: Path) -> None:
    spec = WebSpec(hosts=1, pages_per_host=14, seed=4)
    web = spec.web([board(spec.plot("board"), {Clutter.ADVERTS})])
    visits = Visits(web, tmp_path / "crawl.db")
    for _ in range(4):
        report = await visits.crawl(after_days=1)
        found = visits.rows(
            "SELECT count(*) FROM finding AS f JOIN page AS p ON p.id = f.page_id "
            f"WHERE f.run_id = {report.run} AND f.kind = 'changed' AND p.role = 'page'"
        )
        assert found == [(report.changed,)]
        assert len(report.changed_pages) == report.changed


async def test_visits_that_find_nothing_different_are_remembered_by_their_number(
    tmp_path: Path,
) -> None:
    spec = WebSpec(hosts=1, pages_per_host=5, seed=4)
    web = spec.web([board(spec.plot("board"), ())])
    visits = Visits(web, tmp_path / "crawl.db")
    for _ in range(3):
        await visits.crawl()
    assert visits.rows("SELECT DISTINCT still FROM page WHERE role = 'page'") == [(2,)]
    assert visits.rows("SELECT count(*) FROM memory") == [(0,)]
