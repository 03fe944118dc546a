"""A shop with calendars, filters, sessions and depth that never end: crawled, and kept fresh.

How many requests its traps get is bounded. A pattern is closed by the 30th page that shows nothing
of its own; then one in twenty of its other URLs is asked for, and ever fewer. Each trap here has
one pattern that never ends, the filters of the query have ten (by the names of their parameters, of
which those of three and more share one), most of them with fewer URLs than 30: 450 requests are
more than all of them need, however long the crawl goes on.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.extensions.lab.discover import throttled
from freshet.crawler.extensions.lab.synthetic_web.fetcher import SyntheticFetcher
from freshet.crawler.extensions.lab.synthetic_web.site import TRAPS
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb, WebSpec, endless, mixed
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.crawler.urls import canonical
from freshet.storage.records import FetchResult
from tests.integration.quick import answered, assert_counted, quick, unwatched, urls
from tests.integration.scripted import Page, scripted
from tests.integration.timeserver import FOLDER, NO_FOLDER, served
from tests.storage.small_store import rows

DAY_S = 86_400.0
DAYS = 10.0
#: 90 requests for each of five traps, and 60 more for each calendar: a direction of one ends after
#: sixty empty days.
BOUND = 5 * 90 + 2 * 60
SPEC = WebSpec(1, 60, span_days=DAYS)


@dataclass(slots=True)
class Visitor:
    """Asks a web, in virtual time, and notes for which target when."""

    web: SyntheticWeb
    clock: VirtualClock
    asked: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    async def fetch(self, request: Request) -> FetchResult:
        inner = SyntheticFetcher(self.web, self.clock.now)
        place = inner.addresses.place(request.url)
        assert place is not None
        self.asked[place.target].append(self.clock.now())
        return await inner.fetch(request)

    def of_trap(self) -> Mapping[str, int]:
        """How many different URLs of each trap were asked for."""
        starts = TRAPS.values()
        kinds = (next((t for t in starts if target.startswith(t)), None) for target in self.asked)
        return Counter(kind for kind in kinds if kind is not None)

    @property
    def ordinary(self) -> set[str]:
        return {t for t in self.asked if not t.startswith(tuple(TRAPS.values())) and "." not in t}


def wanted(web: SyntheticWeb, at: float) -> set[str]:
    return {place.target for place in web.crawlable(at)}


async def crawled(db: Path, web: SyntheticWeb, clock: VirtualClock, **changes: object) -> Visitor:
    visitor = Visitor(web, clock)
    origin = SyntheticFetcher(web, clock.now).addresses.origin("bazaar")
    named = CrawlOrder(db, seeds_from_arguments([f"{origin}/"]).seeds)
    # A host that is asked a thousand times a second would be far ahead of what is committed.
    settings = quick(**{"politeness__delay_s": 1.0, **changes})
    await crawl(settings, named, watch=unwatched, fetcher=visitor, clock=clock)
    return visitor


@pytest.mark.long
async def test_a_crawl_ends_and_finds_every_ordinary_page(tmp_path: Path) -> None:
    web, db = endless(SPEC), tmp_path / "crawl.db"
    clock = VirtualClock(web.start_at)
    visitor = await crawled(db, web, clock)
    assert visitor.ordinary >= wanted(web, web.start_at)
    asked = visitor.of_trap()
    assert set(asked) == set(TRAPS.values())
    assert sum(asked.values()) <= BOUND
    assert_counted(db)
    # What comes later costs the next crawl no more than a sample of what is new to it.
    again = await crawled(db, web, clock)
    assert set(again.asked) - set(visitor.asked) <= {"/robots.txt"} | {
        t for t in again.asked if t.startswith(TRAPS["session"])
    }


async def test_a_pattern_is_closed_by_its_thirtieth_page_and_then_sampled(tmp_path: Path) -> None:
    web, db = endless(SPEC), tmp_path / "crawl.db"
    await crawled(db, web, VirtualClock(web.start_at))
    found = await throttled(db, "bazaar.localhost")
    closed = [each for each in found.throttles if each.closed_at is not None]
    assert {"/shelves/… (recurring values)", "/wares?… (recurring values)", "/calendar/#/* (dates)",
            "/dates?month=# (dates)", "/deeper/… (recurring values)", "/…?sid"} <= {
        each.shape for each in closed
    }  # fmt: skip
    for each in (it for it in closed if it.kind == "trap: copies"):
        # 30, those that were under way, and one in twenty with what chance adds.
        # Of a calendar twice as many, as most days of some have no event.
        first = 60 if each.shape and each.shape.endswith("(dates)") else 30
        assert first <= each.crawled <= first + 6 + 0.08 * each.held + 6
        assert each.example is not None


@pytest.mark.long
async def test_ordinary_pages_are_never_held_back(tmp_path: Path) -> None:
    web, db = endless(WebSpec(1, 100, span_days=DAYS)), tmp_path / "crawl.db"
    visitor = await crawled(db, web, VirtualClock(web.start_at))
    assert visitor.ordinary >= wanted(web, web.start_at)
    held = urls(db, "SELECT url FROM page WHERE held_back IS NOT NULL")
    assert held
    assert not {url for url in held if "/ware/" in url or "/all/" in url}


@pytest.mark.long
async def test_news_documentation_shop_and_wiki_lose_nothing_but_copies(tmp_path: Path) -> None:
    web, db = mixed(WebSpec(4, 200, span_days=DAYS)), tmp_path / "crawl.db"
    clock = VirtualClock(web.end_at)
    fetcher = SyntheticFetcher(web, clock.now)
    roots = [f"{fetcher.addresses.origin(name)}/" for name in web.sites]
    named = CrawlOrder(db, seeds_from_arguments(roots).seeds)
    settings = quick(politeness__delay_s=1.0, traps__min_copy_urls=10)
    await crawl(settings, named, watch=unwatched, fetcher=fetcher, clock=clock)
    held = urls(db, "SELECT url FROM page WHERE held_back IS NOT NULL AND role = 'page'")
    # The products of a category in another order.
    assert held
    assert {url for url in held if not url.endswith("&sort=name")} == set()
    there = {canonical(fetcher.addresses.url(place)) for place in web.crawlable(clock.now())}
    assert there - held == answered(db)


@pytest.mark.skipif(FOLDER is None, reason=NO_FOLDER)
@pytest.mark.parametrize("site", ["lean", pytest.param("flink", marks=pytest.mark.long)])
async def test_of_recorded_sites_nothing_is_held_back(tmp_path: Path, site: str) -> None:
    db = tmp_path / "crawl.db"
    with served([site], tmp_path, "--sitemap", "none") as history:
        (origin,) = history.hosts
        history.set_clock(history.begins[origin] + 200 * DAY_S)
        named = CrawlOrder(db, seeds_from_arguments([f"{origin}/"]).seeds)
        await crawl(quick(traps__min_copy_urls=10), named, watch=unwatched)
    assert len(answered(db)) > 50
    assert urls(db, "SELECT url FROM page WHERE held_back LIKE 'trap: %'") == set()


@pytest.mark.long
async def test_where_nothing_is_learnt_the_shop_has_no_end(tmp_path: Path) -> None:
    web, clock = endless(SPEC), VirtualClock(endless(SPEC).start_at)
    limits = {"traps__min_combined": 0, "crawl__max_pages": 2 * BOUND}
    visitor = await crawled(tmp_path / "crawl.db", web, clock, **limits)
    assert sum(visitor.of_trap().values()) > 1.5 * BOUND


@pytest.mark.long
async def test_traps_that_vanish_leave_the_pages(tmp_path: Path) -> None:
    web, db = endless(SPEC), tmp_path / "crawl.db"
    clock = VirtualClock(web.start_at)
    await crawled(db, web, clock)
    without = endless(SPEC, traps=False)
    await crawled(db, without, clock)
    told = {url.split("localhost", 1)[1] for url in answered(db)}
    assert told == wanted(without, clock.now())
    assert_counted(db)


@pytest.mark.long
async def test_a_daemon_finds_new_pages_beside_the_traps(tmp_path: Path) -> None:
    web, db = endless(SPEC), tmp_path / "crawl.db"
    clock = VirtualClock(web.start_at)
    visitor = Visitor(web, clock)
    origin = SyntheticFetcher(web, clock.now).addresses.origin("bazaar")
    named = DaemonOrder(
        db, seeds_from_arguments([f"{origin}/"]).seeds, 150.0, time_limit_s=DAYS * DAY_S
    )
    await keep(
        quick(politeness__delay_s=10.0), named, watch=unwatched, fetcher=visitor, clock=clock,
        rng=Random(1),
    )  # fmt: skip
    assert sum(visitor.of_trap().values()) <= BOUND
    end = web.start_at + DAYS * DAY_S
    assert visitor.ordinary >= wanted(web, end - DAY_S)
    # The first four days go by in reading what there is; then half a day is the rule.
    born = {
        life.place.target: life.born_at
        for life in web.lives()
        if web.start_at + 4 * DAY_S < life.born_at < end - DAY_S
    }
    delays = sorted(visitor.asked[target][0] - at for target, at in born.items())
    assert len(delays) >= 3
    assert delays[len(delays) // 2] < 0.5 * DAY_S
    assert_counted(db)


@pytest.mark.long
async def test_of_a_hundred_thousand_links_half_are_taken_and_that_is_told(tmp_path: Path) -> None:
    db = tmp_path / "crawl.db"
    others = "".join(f"<a href='http://elsewhere.example/{n}'>x</a>" for n in range(100_000))
    home = f"<p>Home</p><a href='/first'>first</a>{others}<a href='/last'>last</a>"
    pages = {"/": Page(home), "/first": Page("<p>First</p>"), "/last": Page("<p>Last</p>")}
    async with scripted({"a": pages}) as server:
        seeds = seeds_from_arguments([f"{server.origin('a')}/"]).seeds
        await crawl(quick(), CrawlOrder(db, seeds), watch=unwatched)
        assert "/first" in server.asked("a")
        assert "/last" not in server.asked("a")
    assert rows(db, "SELECT detail FROM observation WHERE detail LIKE '%links%'") == [
        ("only its first 50,000 links were read; raise parse.max_links to read more",)
    ]
