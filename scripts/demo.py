"""The demo: an evolving synthetic web on loopback is crawled, changes, and is crawled again.

The web knows its own truth, so the demo ends by holding the crawl against it. It exits 1 if the
crawl missed a page or an edit, or reported one that is none.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import uvloop
from rich.console import Console

from freshet.config.loading import load
from freshet.config.settings import Settings
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.cli.crawl import print_summary
from freshet.crawler.cli.progress import watching
from freshet.crawler.extensions.lab.synthetic_web.web import SyntheticWeb, showcase
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.run.orders import CrawlReport
from freshet.crawler.run.terminal import show_line, show_list
from freshet.crawler.urls import canonical
from freshet.storage.database import reading
from scripts.synthetic_server import WebClock, WebServer, serve
from scripts.synthetic_truth import Truth

_DAY_S = 86_400.0
_SETTINGS = {
    "politeness.delay_s": 0.05,
    # One of the hosts throttles and fails: shorter pauses, so that nobody waits for it.
    "crawl.patience_s": 15.0,
    "politeness.back_off_initial_s": 0.5,
    "politeness.back_off_factor": 2.0,
    "network.allow_private_addresses": True,
    # The showcase has endless calendars and session ids: small bounds end them sooner.
    "traps.max_calendar_urls": 20,
    "traps.max_session_urls": 10,
}

out = Console(highlight=False, soft_wrap=True)


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the synthetic web (default: 1)")
    parser.add_argument("--days", type=float, default=10.0, help="between the two crawls")
    parser.add_argument("--db", type=Path, help="keep the store in this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        db = arguments.db or Path(folder) / "demo.db"
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            is_right = runner.run(demonstrate(showcase(arguments.seed), arguments.days, db))
    if arguments.db:
        out.print(f"Look around: .venv/bin/freshet status --db {db}")
    if not is_right:
        sys.exit("scripts/demo: the crawl differs from the truth, see the table above")


async def demonstrate(web: SyntheticWeb, days: float, db: Path) -> bool:
    """Crawl the web twice, ``days`` apart; return whether the result is the truth."""
    settings, _ = load(None, _SETTINGS)
    async with serve(web, WebClock(web.start_at)) as server:
        server.clock.advance(5 * _DAY_S)
        seeds = seeds_from_arguments([server.url(name) for name in web.sites]).seeds
        out.rule(f"A synthetic web: {len(web.sites)} hosts on loopback; the first crawl")
        before = server.clock.now()
        await _crawl(settings, CrawlOrder(db, seeds))
        server.clock.advance(days * _DAY_S)
        out.rule(f"{days:g} days later: the same command again")
        report = await _crawl(settings, CrawlOrder(db, seeds))
        out.rule()
        return await _compare(web, server, before, report, db)


async def _crawl(settings: Settings, order: CrawlOrder) -> CrawlReport:
    with watching(quiet=False, verbose=False) as watch:
        report = await crawl(settings, order, watch=watch)
    print_summary(report, order.db)
    return report


async def _compare(
    web: SyntheticWeb, server: WebServer, before: float, report: CrawlReport, db: Path
) -> bool:
    """Print the pages and edits of the truth and of the crawl; return whether they are the same."""
    now, truth = server.clock.now(), Truth(web)
    alive = {canonical(server.addresses.url(place)) for place in web.crawlable(now)}
    edited = {
        canonical(server.addresses.url(place))
        for place in web.crawlable(before) & web.crawlable(now) & truth.alive(before)
        if truth.changed_significantly(place, before, now)
    }
    found = await _urls(
        db,
        "SELECT url FROM page WHERE role = 'page' AND last_kind IN ('new', 'changed', 'unchanged')",
    )
    seen = {page.url for page in report.changed_pages}
    rows = [
        _row("pages that a complete polite crawl finds", alive, _no_trap(web, server, found)),
        _row("pages whose main text was edited", edited, _no_trap(web, server, seen)),
    ]
    show_list(
        "Against the truth that the web knows",
        ("what", "in truth", "Freshet", "missed", "too many"),
        rows,
    )
    frames = sum(e.is_of_frame for e in truth.edits_between(before, now))
    if not seen - edited:
        show_line(
            f"{frames} edits of frames, and noise in every answer (time stamps, tokens, adverts), "
            "raised no change."
        )
    return not any(missed or too_many for *_, missed, too_many in rows)


def _row(label: str, truth: set[str], told: set[str]) -> tuple[str, int, int, int, int]:
    return label, len(truth), len(told), len(truth - told), len(told - truth)


def _no_trap(web: SyntheticWeb, server: WebServer, urls: set[str]) -> set[str]:
    """Those that are no endless made-up pages, of which there is no truth."""
    places = ((url, server.addresses.place(url)) for url in urls)
    return {
        url
        for url, place in places
        if place is not None and not web.sites[place.host].trap(place.target)
    }


async def _urls(db: Path, sql: str) -> set[str]:
    async with reading(db) as reader:
        return {row[0] for row in await reader.execute_fetchall(sql)}


if __name__ == "__main__":
    main()
