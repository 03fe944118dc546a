"""Whole pages in archives: what pages need is fetched after them, politely and once."""

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from freshet.config.settings import Settings
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.archive.cdxj import surt, write_cdxj
from freshet.crawler.cli.replay import fill
from freshet.crawler.errors import UsageError
from freshet.crawler.fetch.client import Request, request_headers
from freshet.crawler.fetch.responses import judge
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.archive_player import ReplayCounts
from freshet.crawler.run.crawl import CrawlOrder, Live, crawl
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import CrawlReport, DaemonOrder
from freshet.crawler.run.replay import Losses
from freshet.crawler.run.wiring import Observer
from freshet.storage.records import FetchResult, Validators
from tests.crawler.archive.exchanges import whole
from tests.integration.quick import assert_consistent, quick, unwatched
from tests.integration.test_archive import Archived
from tests.storage.small_store import rows

DAY_S = 86_400.0
HOME, CDN = "http://site.localhost", "http://cdn.localhost"
TYPES = {"css": "text/css", "js": "text/javascript", "png": "image/png", "txt": "text/plain"}
WORDS = "The river rises in the hills above the town and is fed by many springs. " * 4


def page(name: str, head: str, links: str = "") -> str:
    return (
        f"<!doctype html><html lang=en><head><title>{name}</title>{head}</head>"
        f"<body><h1>{name}</h1><p>Of {name}: {WORDS}</p>{links}</body></html>"
    )


SHARED = f"<link rel=stylesheet href={CDN}/all.css><script src=/app.js></script>"
FILES = {
    f"{HOME}/": page("home", SHARED, "<a href=/a.html>a</a><a href=/b.html>b</a>"),
    f"{HOME}/a.html": page("a", SHARED, "<img src=/a.png><img src=/secret/a.png>"),
    f"{HOME}/b.html": page("b", SHARED, "<img src=/b.png srcset='/b2.png 2x'><img src=/gone.png>"),
    f"{HOME}/robots.txt": "User-agent: *\nDisallow: /secret/\n",
    f"{HOME}/app.js": "let x = 1;",
    f"{HOME}/a.png": "PNG a",
    f"{HOME}/b.png": "PNG b",
    f"{HOME}/b2.png": "PNG b2",
    f"{CDN}/robots.txt": "User-agent: *\nDisallow: /private\n",
    f"{CDN}/all.css": "@import 'more.css'; p { background: url(img/p.png) url(private.png) }",
    f"{CDN}/more.css": "@import 'all.css'; @font-face { src: url(f.woff2) }",
    f"{CDN}/img/p.png": "PNG p",
    f"{CDN}/f.woff2": "font",
}
PAGES = {f"{HOME}/", f"{HOME}/a.html", f"{HOME}/b.html"}
NEEDED = {url for url in FILES if not url.endswith("robots.txt")} - PAGES


@dataclass(slots=True)
class Site:
    """Two hosts in memory, whose answers take no time; the ETag is of the bytes."""

    clock: VirtualClock = field(default_factory=lambda: VirtualClock(1_700_000_000.0))
    files: dict[str, str] = field(default_factory=lambda: dict(FILES))
    moved: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=lambda: dict(TYPES))
    asked: list[tuple[float, str]] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)
    with_etags: bool = True

    async def fetch(self, request: Request) -> FetchResult:
        url, at = request.url, self.clock.now()
        self.asked.append((at, url))
        body, etag = self.files.get(url), f'"{hash(self.files.get(url))}"'
        known = request.validators or Validators()
        status = self.statuses.get(url, 200 if body is not None else 404)
        if url in self.moved:
            status = 302
        elif status == 200 and known.etag == etag:
            status = 304
        location = self.moved.get(url, "").encode() or None
        said = [(b"Content-Type", self.types.get(url.rpartition(".")[2], "text/html").encode())]
        said += [(b"ETag", etag.encode())] if self.with_etags and body is not None else []
        said += [(b"Location", location)] if location else []
        verdict = judge(status, url, location, is_conditional=known != Validators())
        data = (body or "").encode() if verdict.outcome == "fetched" else b""
        return FetchResult(
            url, verdict.outcome, at, 0.0, status, verdict.reason, verdict.detail,
            request_headers=(("Host", "h"), *request_headers(request).items()),
            headers=tuple(said), wire_body=data, body=data, location=verdict.location,
        )  # fmt: skip

    def times(self) -> Counter[str]:
        return Counter(url for _, url in self.asked)

    async def crawl(self, folder: Path, **changes: object) -> CrawlReport:
        wanted = {"requisites": True, "dir": str(folder / "warcs")}
        settings = quick(**{f"archive__{k}": v for k, v in wanted.items()} | changes)
        order = CrawlOrder(folder / "crawl.db", seeds_from_arguments([f"{HOME}/"]).seeds)
        return await crawl(settings, order, watch=unwatched, fetcher=self, clock=self.clock)


async def test_what_pages_need_is_archived_once_as_robots_txt_allows(tmp_path: Path) -> None:
    site = Site()
    report = await site.crawl(tmp_path)
    assert {url for url, n in site.times().items() if n > 1} == set()
    assert site.times().keys() == FILES.keys() | {f"{HOME}/gone.png"}
    assert report.pages == 3
    assert report.requisites == {
        "fetched": 8, "failed": 1, "disallowed": 2,
        "bytes": sum(len(FILES[url]) for url in NEEDED),
    }  # fmt: skip
    archived = Archived.of(tmp_path / "warcs")
    accepts = Counter(facts["accept"] for facts in archived.facts)
    assert accepts["requisite"] == 8 + 1 + 2
    refused = [each for each in archived.facts if each["outcome"] == "refused"]
    assert [each["accept"] for each in refused] == ["requisite"] * 2
    with (tmp_path / "index").open("w+") as index:
        write_cdxj(whole(tmp_path / "warcs"), index)
        index.seek(0)
        keys = {line.split()[0] for line in index}
    assert {surt(url) for url in NEEDED | PAGES} <= keys


async def test_the_store_knows_pages_only(tmp_path: Path) -> None:
    await Site().crawl(tmp_path)
    db = tmp_path / "crawl.db"
    assert {url for (url,) in rows(db, "SELECT url FROM page WHERE role = 'page'")} == PAGES
    assert rows(db, "SELECT count(*) FROM observation AS o JOIN page AS p ON p.id = o.page_id "
                    "WHERE p.role = 'page'") == [(3,)]  # fmt: skip
    assert rows(db, "SELECT origin FROM host ORDER BY origin") == [(CDN,), (HOME,)]
    assert_consistent(db)


async def test_without_the_setting_nothing_else_is_fetched(tmp_path: Path) -> None:
    site = Site()
    report = await site.crawl(tmp_path, archive__requisites=False)
    assert not NEEDED & site.times().keys()
    assert report.requisites is None


async def test_requisites_without_an_archive_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--archive DIR"):
        await Site().crawl(tmp_path, archive__dir="")


async def test_each_host_keeps_its_delay(tmp_path: Path) -> None:
    site = Site()
    await site.crawl(tmp_path, politeness__delay_s=3.0)
    for host in (HOME, CDN):
        starts = [at for at, url in site.asked if url.startswith(host)]
        assert min(later - at for at, later in pairwise(starts)) >= 3.0
    assert site.times().keys() >= NEEDED


async def test_the_next_crawl_asks_again_after_some_days_only(tmp_path: Path) -> None:
    """Those with validators are not sent again; of others the archive refers to the bytes."""
    site = Site(with_etags=False)
    await site.crawl(tmp_path)
    for days, again in ((1, 0), (7, len(NEEDED))):
        site.clock.go_on_from(site.clock.now() + days * DAY_S)
        site.asked.clear()
        site.files[f"{HOME}/a.html"] = page(f"a {days}", SHARED, "<img src=/a.png>")
        report = await site.crawl(tmp_path)
        assert len(NEEDED & site.times().keys()) == again
        assert (report.requisites or {}).get("fetched", 0) == again
    archived = Archived.of(tmp_path / "warcs")
    archived.assert_closed()
    for url in NEEDED:
        assert (archived.urls("response")[url], archived.urls("revisit")[url]) == (1, 1)


async def test_validators_are_sent_but_for_style_sheets(tmp_path: Path) -> None:
    site = Site()
    await site.crawl(tmp_path)
    site.clock.go_on_from(site.clock.now() + 8 * DAY_S)
    site.files[f"{HOME}/b.html"] = page("b again", SHARED, "<img src=/b.png>")
    report = await site.crawl(tmp_path)
    # The script, a picture, what the style sheets need, and those.
    assert report.requisites is not None
    assert (report.requisites["unchanged"], report.requisites["fetched"]) == (4, 2)


async def test_an_archive_of_before_is_continued(tmp_path: Path) -> None:
    site, folder = Site(with_etags=False), tmp_path / "warcs"
    await site.crawl(tmp_path, archive__requisites=False)
    with closing(sqlite3.connect(folder / "revisits.db")) as db:
        db.execute("ALTER TABLE original DROP COLUMN asked_at")
        db.execute("PRAGMA user_version = 1")
        db.commit()
    report = await site.crawl(tmp_path)
    assert (report.requisites or {})["fetched"] == len(NEEDED)
    archived = Archived.of(folder)
    assert all(archived.urls("revisit")[url] == 1 for url in PAGES)


async def test_a_page_has_so_many(tmp_path: Path) -> None:
    site = Site()
    pictures = "".join(f"<img src=/many/{n}.png>" for n in range(50))
    site.files |= {f"{HOME}/many/{n}.png": f"PNG {n}" for n in range(50)}
    site.files[f"{HOME}/"] = page("home", SHARED, pictures)
    report = await site.crawl(tmp_path, archive__requisites_per_page=12)
    assert report.requisites is not None
    # Two style sheets, a script and pictures; what the style sheets need comes too late.
    assert sum(n for url, n in site.times().items() if "many" in url) == 10
    assert report.requisites["left out"] == 40 + 3


async def test_the_limit_of_pages_lets_their_requisites_come(tmp_path: Path) -> None:
    site = Site()
    report = await site.crawl(tmp_path, crawl__max_pages=2)
    assert report.pages == 2
    assert report.ending == "limit"
    assert {f"{CDN}/all.css", f"{CDN}/f.woff2", f"{HOME}/app.js"} <= site.times().keys()
    assert "not fetched" not in (report.requisites or {})


async def test_a_stop_drops_what_waits_and_says_so(tmp_path: Path) -> None:
    site = Site()

    def watch(live: Live) -> Observer:
        return lambda _batch: live.pool.stop() if live.tally.pages else None

    wanted = quick(
        archive__dir=str(tmp_path / "warcs"), archive__requisites=True, politeness__delay_s=60.0,
        crawl__patience_s=300.0,
    )  # fmt: skip
    order = CrawlOrder(tmp_path / "crawl.db", seeds_from_arguments([f"{HOME}/"]).seeds)
    report = await crawl(wanted, order, watch=watch, fetcher=site, clock=site.clock)
    assert report.ending == "interrupted"
    assert (report.requisites or {}).get("not fetched", 0) > 0


async def test_redirects_are_followed_and_troubles_tried_again(tmp_path: Path) -> None:
    site = Site()
    site.moved = {
        f"{HOME}/a.png": f"{CDN}/img/p.png", f"{HOME}/b.png": f"{HOME}/b3.png",
        f"{HOME}/b3.png": f"{HOME}/b.png",
    }  # fmt: skip
    site.statuses = {f"{HOME}/b2.png": 500}
    report = await site.crawl(tmp_path)
    # Three tries, and the first one once more as a plain request.
    assert site.times()[f"{HOME}/b2.png"] == 4
    assert site.times()[f"{HOME}/b3.png"] == site.times()[f"{HOME}/b.png"] == 1
    assert report.requisites is not None
    assert (report.requisites["redirected"], report.requisites["failed"]) == (3, 2)


async def test_tables_of_sites_and_what_was_forgotten_hold_for_requisites(tmp_path: Path) -> None:
    site = Site()
    never = [{"match": "cdn.localhost/img/*", "never": True}]
    await site.crawl(tmp_path, sites=never)
    assert f"{CDN}/img/p.png" not in site.times()
    assert f"{CDN}/all.css" in site.times()
    with closing(sqlite3.connect(tmp_path / "crawl.db")) as db:
        db.execute("INSERT INTO refusal VALUES (?, 0)", (f"{CDN}/f.",))
        db.commit()
    site.clock.go_on_from(site.clock.now() + 8 * DAY_S)
    site.files[f"{HOME}/a.html"] = page("a again", SHARED)
    site.asked.clear()
    await site.crawl(tmp_path)
    assert f"{CDN}/f.woff2" not in site.times()
    assert f"{CDN}/img/p.png" in site.times()


async def test_a_style_sheet_that_imports_others_without_end_is_left(tmp_path: Path) -> None:
    site = Site()
    site.files |= {f"{CDN}/{n}.css": f"@import '{n + 1}.css';" for n in range(100)}
    site.files[f"{CDN}/all.css"] = "@import '0.css';"
    await site.crawl(tmp_path)
    assert sum(url.endswith(".css") for url in site.times()) == 6


async def test_a_replay_takes_pages_only(tmp_path: Path) -> None:
    site = Site()
    report = await site.crawl(tmp_path)
    wanted = quick()
    (replayed,), counts, losses = await _filled(tmp_path, wanted)
    assert (replayed.pages, replayed.new) == (report.pages, report.new) == (3, 3)
    assert losses.lines() == []
    assert counts.refused_again == 0
    found = rows(tmp_path / "new.db", "SELECT url FROM page WHERE role = 'page'")
    assert {url for (url,) in found} == PAGES


@pytest.mark.long
async def test_a_daemon_keeps_to_the_share(tmp_path: Path) -> None:
    """Pages that show other pictures each day need more than the share: pages come first."""

    class Changing(Site):
        async def fetch(self, request: Request) -> FetchResult:
            day = int(self.clock.now() // 3_600)
            pictures = "".join(f"<img src=/p/{day}/{n}.png>" for n in range(20))
            if request.url in PAGES:
                links = "<a href=/a.html>a</a><a href=/b.html>b</a>"
                self.files[request.url] = page(f"{request.url} {day}", SHARED, links + pictures)
            if "/p/" in request.url:
                self.files[request.url] = request.url
            return await Site.fetch(self, request)

    site = Changing()
    settings = quick(
        archive__dir=str(tmp_path / "warcs"), archive__requisites=True,
        archive__requisites_share=0.25,
    )  # fmt: skip
    order = DaemonOrder(
        tmp_path / "crawl.db", seeds_from_arguments([f"{HOME}/"]).seeds, 480.0,
        "site_clock", DAY_S,
    )  # fmt: skip
    report = await keep(
        settings, order, watch=unwatched, fetcher=site, clock=site.clock,
    )  # fmt: skip
    others = sum(url.endswith("/robots.txt") for _, url in site.asked)
    requisites = sum(url in NEEDED or "/p/" in url for _, url in site.asked)
    pages = len(site.asked) - requisites - others
    assert 0.8 * pages / 3 <= requisites <= pages / 3 + 1
    assert len(site.asked) <= 480 + 30
    assert (report.requisites or {})["not fetched"] > 0


async def _filled(
    folder: Path, settings: Settings
) -> tuple[list[CrawlReport], ReplayCounts, Losses]:
    """Replay as the verb does, which has an event loop of its own."""
    return await asyncio.to_thread(fill, folder / "new.db", [folder / "warcs"], settings)
