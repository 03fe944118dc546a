"""The whole crawl, from a site list to observations, held against the web's own truth."""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb, showcase
from freshet.crawler.reduce.parser_process import _Worker
from freshet.crawler.run.crawl import CrawlOrder, Live, crawl
from freshet.crawler.run.orders import CrawlReport
from freshet.crawler.run.wiring import Observer
from freshet.crawler.urls import canonical
from freshet.storage.records import Acknowledged
from scripts.synthetic_server import WebServer, plain, serve
from scripts.synthetic_truth import Truth
from tests.console import as_json
from tests.integration.quick import (
    answered,
    assert_consistent,
    crawlable,
    order,
    quick,
    unwatched,
    urls,
)
from tests.integration.scripted import Page, scripted

DAY_S = 86_400.0


async def test_two_crawls_find_every_page_and_every_edit_and_nothing_else(tmp_path: Path) -> None:
    web, db = showcase(seed=7, traps=False), tmp_path / "crawl.db"
    async with serve(web) as server:
        server.clock.advance(5 * DAY_S)
        await crawl(quick(), order(db, server, list(web.sites)), watch=unwatched)
        assert answered(db) == crawlable(web, server)
        before = server.clock.now()
        server.clock.advance(10 * DAY_S)
        report = await crawl(quick(), order(db, server, list(web.sites)), watch=unwatched)
        assert answered(db) == crawlable(web, server)
        assert {page.url for page in report.changed_pages} == edited(web, server, before, db)
    assert_consistent(db)
    last_run = (await asyncio.to_thread(as_json, "status", "--db", db))["last_run"]
    counts = last_run["observations"]
    kinds = ("new", "changed", "unchanged", "gone", "redirected", "refused", "skipped")
    assert {kind: counts.get(kind, 0) for kind in (*kinds, "failed")} == {
        kind: getattr(report, kind) for kind in kinds
    } | {"failed": report.errors}
    arguments = ("--db", db, "--all", "--since", last_run["started_at"], "--limit", 10**6)
    told = await asyncio.to_thread(as_json, "changes", *arguments)
    shown = Counter(each["kind"] for each in told["changes"])
    assert (shown["new"], shown["changed"]) == (report.new, report.changed)
    assert (len(report.appeared), len(report.vanished)) == (shown["new"], shown["gone"])
    assert told["total"] == shown.total()


def edited(web: SyntheticWeb, server: WebServer, before: float, db: Path) -> set[str]:
    """The pages that the truth says have changed, of those that were seen twice."""
    now, truth = server.clock.now(), Truth(web)
    seen = urls(
        db,
        "SELECT p.url FROM page AS p JOIN observation AS o ON o.page_id = p.id "
        "WHERE p.role = 'page' AND o.kind IN ('changed', 'unchanged')",
    )
    return {
        url
        for place in truth.alive(before) & truth.alive(now)
        if (url := canonical(server.addresses.url(place))) in seen
        and truth.changed_significantly(place, before, now)
    }


async def test_endless_calendars_and_session_ids_are_bounded_and_reported(tmp_path: Path) -> None:
    web, db = showcase(seed=3), tmp_path / "crawl.db"
    bounds = {"max_calendar_urls": 6, "max_session_urls": 4, "min_copy_pairs": 0}
    settings = quick(**{f"traps__{name}": most for name, most in bounds.items()})
    async with serve(web) as server:
        report = await crawl(settings, order(db, server, ["events"]), watch=unwatched)
    kinds = {pattern.kind for _, pattern in report.bounded}
    assert kinds == {"trap: calendar", "trap: session"}
    assert report.ending == "nothing due"


@pytest.mark.parametrize("kills", [1, 2])
async def test_a_page_whose_parser_was_killed_is_parsed_or_asked_for_again_and_loses_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    large = "<a href=/next>next</a>" + "<p>Words of a large page.</p>" * 20_000
    exchange, killed = _Worker._exchange, 0

    async def killing(worker: _Worker, process: Process, call: bytes) -> bytes:
        nonlocal killed
        killed += 1
        if killed <= kills:
            os.kill(process.pid, signal.SIGKILL)
        return await exchange(worker, process, call)

    monkeypatch.setattr(_Worker, "_exchange", killing)
    db = tmp_path / "crawl.db"
    async with scripted({"site": {"/": Page(large), "/next": Page("Next.")}}) as site:
        seeds = seeds_from_arguments([site.origin("site") + "/"]).seeds
        await crawl(quick(), CrawlOrder(db, seeds), watch=unwatched)
    kinds = "SELECT url || ' ' || kind || ' ' || coalesce(reason, '') FROM observation AS o "
    found = urls(db, f"{kinds} JOIN page AS p ON p.id = o.page_id WHERE p.role = 'page'")
    origin = site.origin("site")
    assert found - {f"{origin}/ failed parser"} == {f"{origin}/ new ", f"{origin}/next new "}
    assert (f"{origin}/ failed parser" in found) == (kills == 2)


async def test_an_unchanged_web_costs_a_second_run_no_change(tmp_path: Path) -> None:
    web, db = plain(hosts=3, pages_per_host=12), tmp_path / "crawl.db"
    async with serve(web) as server:
        first = await crawl(quick(), order(db, server, list(web.sites)), watch=unwatched)
        second = await crawl(quick(), order(db, server, list(web.sites)), watch=unwatched)
    assert (second.new, second.changed, second.gone) == (0, 0, 0)
    assert second.unchanged == second.pages == first.pages
    assert second.run == first.run + 1


async def test_a_limited_run_is_finished_by_the_same_command(tmp_path: Path) -> None:
    web, db = plain(hosts=2, pages_per_host=30), tmp_path / "crawl.db"
    async with serve(web) as server:
        everything = crawlable(web, server)
        limited = await crawl(
            quick(crawl__max_pages=20), order(db, server, list(web.sites)), watch=unwatched
        )
        assert (limited.pages, limited.ending) == (20, "limit")
        rest = await crawl(quick(), order(db, server, list(web.sites)), watch=unwatched)
    assert (rest.run, rest.resumed) == (limited.run, True)
    assert limited.pages + rest.pages == len(everything)
    asked = [exchange.target for exchange in server.log if exchange.target != "/robots.txt"]
    assert len(asked) == len(everything)


async def test_new_and_resume_force_what_the_last_run_does_not_suggest(tmp_path: Path) -> None:
    web, db = plain(hosts=1, pages_per_host=10), tmp_path / "crawl.db"
    async with serve(web) as server:
        with pytest.raises(CrawlError, match="no run to resume"):
            await crawl(quick(), order(db, server, ["h1"], resume=True), watch=unwatched)
        limited = await crawl(quick(crawl__max_pages=3), order(db, server, ["h1"]), watch=unwatched)
        new = await crawl(quick(), order(db, server, ["h1"], resume=False), watch=unwatched)
        again = await crawl(quick(), order(db, server, ["h1"], resume=True), watch=unwatched)
    assert (new.run, again.run) == (limited.run + 1, limited.run + 1)
    assert (new.pages, again.pages) == (10, 0)


async def test_a_stopped_crawl_drains_and_is_resumed_without_a_second_fetch(tmp_path: Path) -> None:
    web, db = plain(hosts=2, pages_per_host=30), tmp_path / "crawl.db"

    def stop_soon(live: Live) -> Observer:
        def observe(_batch: Sequence[Acknowledged]) -> None:
            if live.tally.pages >= 10:
                live.pool.stop()

        return observe

    async with serve(web) as server:
        stopped = await crawl(quick(), order(db, server, list(web.sites)), watch=stop_soon)
        rest = await crawl(quick(), order(db, server, list(web.sites)), watch=unwatched)
        assert answered(db) == crawlable(web, server)
    assert stopped.ending == "interrupted"
    assert stopped.pages + rest.pages == 60
    targets = [(e.host, e.target) for e in server.log if e.target != "/robots.txt"]
    assert len(targets) == len(set(targets))


async def test_no_two_exchanges_with_a_host_are_closer_than_the_delay(tmp_path: Path) -> None:
    web, db = plain(hosts=5, pages_per_host=8), tmp_path / "crawl.db"
    async with serve(web) as server:
        await crawl(
            quick(politeness__delay_s=0.05), order(db, server, list(web.sites)), watch=unwatched
        )
        for name in web.sites:
            log = sorted((e.started_at, e.ended_at) for e in server.log if e.host == name)
            gaps = [later[0] - earlier[1] for earlier, later in pairwise(log)]
            assert len(log) == 9
            assert min(gaps) >= 0.05


async def test_a_crawl_beyond_loopback_without_a_contact_is_refused(tmp_path: Path) -> None:
    seeds = seeds_from_arguments(["https://example.org/"]).seeds
    with pytest.raises(CrawlError, match=r"contact") as caught:
        await crawl(quick(), CrawlOrder(tmp_path / "crawl.db", seeds), watch=unwatched)
    assert "\n" not in str(caught.value)


async def test_loopback_is_refused_by_default_and_the_seed_is_named(tmp_path: Path) -> None:
    web, db = plain(hosts=1, pages_per_host=3), tmp_path / "crawl.db"
    async with serve(web) as server:
        report = await crawl(
            quick(network__allow_private_addresses=False),
            order(db, server, ["h1"]),
            watch=unwatched,
        )
    assert len(server.log) == 0
    assert [(text, "loopback" in why) for text, _, why in report.silent_seeds] == [
        (server.url("h1"), True)
    ]


async def test_a_line_without_a_scheme_falls_back_to_http(tmp_path: Path) -> None:
    web, db = plain(hosts=1, pages_per_host=4), tmp_path / "crawl.db"
    async with serve(web) as server:
        bare = server.url("h1").removeprefix("http://").rstrip("/")
        seeds = seeds_from_arguments([bare]).seeds
        report: CrawlReport = await crawl(quick(), CrawlOrder(db, seeds), watch=unwatched)
    assert report.pages == 4
    assert report.silent_seeds == []


async def test_a_host_that_is_down_is_deferred_with_its_reason(tmp_path: Path) -> None:
    db = tmp_path / "crawl.db"
    seeds = seeds_from_arguments(["http://127.0.0.1:2/"]).seeds
    report = await crawl(
        quick(crawl__patience_s=0.2, politeness__back_off_factor=4.0),
        CrawlOrder(db, seeds),
        watch=unwatched,
    )
    assert report.ending == "nothing due"
    assert [(host.origin, host.urls) for host in report.deferred] == [("http://127.0.0.1:2", 1)]
    assert "robots.txt unreachable" in str(report.deferred[0].reason)
    assert "robots.txt unreachable" in report.silent_seeds[0][2]


async def test_what_a_site_says_is_never_visited_is_known_and_comes_back(tmp_path: Path) -> None:
    db = tmp_path / "crawl.db"
    pages = {"/": Page('<main><p>Home.</p><a href="/docs/1">1</a><a href="/tag/2">2</a>')}
    pages |= {path: Page(f"<main><p>The page {path}.") for path in ("/docs/1", "/tag/2")}
    async with scripted({"h": pages}) as web:
        for sites, asked in (
            ([{"match": "/tag/*", "never": True}], {"/", "/docs/1"}),
            ([{"match": "*.localhost", "never": True}, {"match": "/t*", "never": True}], set()),
            ([], {"/", "/docs/1", "/tag/2"}),
        ):
            web.log.clear()
            seeds = seeds_from_arguments([web.origin("h")]).seeds
            await crawl(quick(sites=sites), CrawlOrder(db, seeds), watch=unwatched)
            assert {each for each in web.asked("h") if each in pages} == asked
