"""A store with its bodies, taken in again, gives the store that it is."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from freshet.config.settings import Settings
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.clock import VirtualClock
from freshet.crawler.lab.replay import replay
from freshet.crawler.lab.replay_store import Gaps, StoredPast
from freshet.crawler.run.crawl import CrawlOrder, Mode, crawl
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.crawler.synthetic_web.server import SyntheticFetcher, serve
from freshet.crawler.synthetic_web.web import showcase
from freshet.storage.database import open_store
from freshet.storage.queries import page
from tests.integration.quick import assert_consistent, order, quick, unwatched
from tests.integration.scripted import Page, scripted
from tests.integration.test_replay import DAY_S, FOUND, LINKS, OBSERVED, PAGES, cut, rows, same

#: Pages that ask not to be archived: their bodies are in no store.
NO_ARCHIVE = ("/noarchive", "/noindex-by-header")
SEEDS = "SELECT text, url, fallback_url, root_url, importance FROM seed ORDER BY id"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two crawls of the synthetic web, ten days apart."""
    db = tmp_path_factory.mktemp("live") / "live.db"

    async def crawl_twice() -> None:
        web = showcase(seed=7, traps=False)
        async with serve(web) as server:
            server.clock.advance(5 * DAY_S)
            for _ in range(2):
                sites = order(db, server, list(web.sites))
                await crawl(quick(change__probe=True), sites, watch=unwatched)
                server.clock.advance(10 * DAY_S)

    asyncio.run(crawl_twice())
    return db


async def replayed(store: Path, db: Path, settings: Settings, most: int | None = None) -> Gaps:
    """Fill ``db``; of the last run with ``most`` exchanges only."""
    async with page.snapshot(store) as connection:
        past = await StoredPast.of(connection, lambda _word: None)
        runs = await past.runs()
        if most is not None:
            runs[-1] = cut(runs[-1], most)
        await replay(settings, db, runs)
        return past.gaps


def told(db: Path, query: str) -> list[tuple[object, ...]]:
    """What a store says but of pages that are not to be archived, refusals included.

    Of a meta refresh only is told where it led: the answer's validators are not.
    """
    found = rows(db, query.replace("kind <> 'refused'", "kind NOT NULL"))
    found = [row for row in found if not str(row[0]).endswith(NO_ARCHIVE)]
    if query is not PAGES:
        return found
    return [row[:8] + row[10:] if row[5] == "refresh" else row for row in found]


def counted(db: Path) -> Counter[object]:
    """How many looks there are of each kind."""
    return Counter(kind for (kind,) in rows(db, "SELECT kind FROM finding"))


def assert_same(live: Path, again: Path) -> None:
    """The tables say the same, kind by kind and time by time."""
    for query in (OBSERVED, PAGES, LINKS, FOUND):
        theirs, ours = told(live, query), told(again, query)
        assert len(theirs) == len(ours)
        assert [(a, b) for a, b in zip(theirs, ours, strict=True) if not same(a, b)][:5] == []
    assert rows(live, SEEDS) == rows(again, SEEDS)
    assert rows(again, OBSERVED)
    assert_consistent(again)


async def test_a_store_gives_the_store_that_it_is_and_is_only_read(
    live: Path, tmp_path: Path
) -> None:
    again, before = tmp_path / "again.db", live.read_bytes()
    # Killed half-way, and begun again, while another process is writing the store.
    daemon = await open_store(live)
    await replayed(live, again, quick(), most=100)
    assert len(rows(again, OBSERVED)) < len(rows(live, OBSERVED)) - 100
    gaps = await replayed(live, again, quick())
    await replayed(live, again, quick())
    await daemon.close()
    assert_same(live, again)
    assert live.read_bytes() == before
    looks = len(rows(live, "SELECT id FROM observation"))
    assert (gaps.extent.looks, gaps.extent.odd, gaps.damaged) == (looks, 0, 0)
    assert gaps.extent.not_kept == 4
    assert len(rows(again, "SELECT id FROM observation")) == looks - 4


async def test_a_daemons_store_gives_what_the_daemon_found(tmp_path: Path) -> None:
    db, again = tmp_path / "live.db", tmp_path / "again.db"
    web = showcase(seed=7, traps=False)
    clock = VirtualClock(web.start_at + 5 * DAY_S)
    seeds = seeds_from_arguments([f"http://{name}.localhost/" for name in web.sites]).seeds
    settings = quick(change__probe=True, store__bodies_per_page=10_000)
    order = DaemonOrder(db, seeds, 200.0, "greedy_index", 4 * DAY_S)
    fetcher = SyntheticFetcher(web, clock)
    await keep(settings, order, watch=unwatched, fetcher=fetcher, clock=clock, rng=Random(1))
    gaps = await replayed(db, again, settings)
    assert_same(db, again)
    assert gaps.extent.not_kept == sum(
        row[2] != "failed" for row in rows(db, OBSERVED) if str(row[0]).endswith(NO_ARCHIVE)
    )


async def test_what_retention_dropped_is_left_out_and_counted(live: Path, tmp_path: Path) -> None:
    store, again = tmp_path / "store.db", tmp_path / "again.db"
    shutil.copy(live, store)
    old = "version_id NOT IN (SELECT version_id FROM page WHERE version_id NOT NULL)"
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(
            "DELETE FROM body WHERE digest NOT IN "
            "(SELECT body_digest FROM page WHERE body_digest NOT NULL)"
        )
        dropped = connection.execute(
            "SELECT count(*) FROM observation AS o JOIN version AS v ON v.id = o.version_id "
            f"LEFT JOIN body AS b ON b.digest = v.body_digest WHERE b.digest IS NULL AND o.{old}"
        ).fetchone()[0]
    gaps = await replayed(store, again, quick())
    assert dropped > 20
    assert gaps.extent.not_kept == dropped + 2
    # Every page that has its last body stands as before, and at no time that it was not seen at.
    seen = {row[:2] for row in told(live, OBSERVED)}
    assert {row[:2] for row in told(again, OBSERVED)} < seen
    content = "SELECT url, body_digest, title FROM page WHERE text_digest NOT NULL"
    theirs, ours = (sorted(told(each, content)) for each in (live, again))
    assert theirs == ours
    assert_consistent(again)


async def test_another_setting_gives_other_verdicts(live: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.db"
    await replayed(live, again, quick(change__significant_below=0.8))
    theirs, ours = counted(live), counted(again)
    assert 0 < ours["changed"] < theirs["changed"]
    assert ours["gone"] == theirs["gone"]
    times = {row[:2] for row in told(again, OBSERVED)}
    assert times == {row[:2] for row in told(live, OBSERVED)}


async def test_a_line_without_a_scheme_stands_where_it_stood(tmp_path: Path) -> None:
    db, again = tmp_path / "live.db", tmp_path / "again.db"
    pages = {"/": Page("<title>Home</title><main><p>Nothing but the words of home.</p></main>")}
    async with scripted({"h": pages}) as web:
        seeds = seeds_from_arguments([web.origin("h").removeprefix("http://")]).seeds
        await crawl(quick(), CrawlOrder(db, seeds, Mode.NEW), watch=unwatched)
    await replayed(db, again, quick())
    assert rows(db, SEEDS)[0][3] == seeds[0].fallback_url
    assert rows(db, SEEDS) == rows(again, SEEDS)
    assert_same(db, again)


async def test_what_was_taken_back_stays_so_and_content_that_came_back_is_unchanged(
    tmp_path: Path,
) -> None:
    """Its bytes went with the verdict: the failure stands in for it from the first."""
    db, again = tmp_path / "live.db", tmp_path / "again.db"
    pages = walled_pages()
    before = dict(pages)
    async with scripted({"h": pages}) as web:
        seeds = seeds_from_arguments([web.origin("h")]).seeds
        site = CrawlOrder(db, seeds, Mode.NEW)
        await crawl(quick(), site, watch=unwatched)
        pages.update(dict.fromkeys(NAMES, WALL))
        await crawl(quick(), site, watch=unwatched)
        pages.update(before)
        await crawl(quick(), site, watch=unwatched)
    gaps = await replayed(db, again, quick())
    assert gaps.extent.taken_back > 0
    assert gaps.extent.not_kept == 0
    kinds = (
        "SELECT p.url, o.at, o.kind, o.reason FROM finding AS o JOIN page AS p ON p.id = page_id"
    )
    theirs, ours = (sorted(rows(each, kinds)) for each in (db, again))
    assert [pair for pair in zip(theirs, ours, strict=True) if not same(*pair)] == []
    assert not rows(again, "SELECT 1 FROM amendment")


NAMES = ("/a", "/b", "/c")
WALL = Page(
    "<title>Ez nincs</title><main><h1>Ez nincs itt</h1><p>Valahol egészen biztosan máshol van az, "
    "amit ezen a lapon keresel, kedves látogató.</p></main>"
)


def walled_pages() -> dict[str, Page]:
    """A site of four pages of content."""
    menu = "".join(f"<a href={name}>{name}</a> " for name in NAMES)
    pages = {
        name: Page(
            f"<title>{name}</title>{menu}<main><h1>{name}</h1><p>All that there is to say about "
            f"{name} is said on this page, which has its own words of {name} alone.</p></main>"
        )
        for name in NAMES
    }
    pages["/"] = Page(f"<title>Home</title>{menu}<main><h1>Home of all the words</h1></main>")
    return pages
