"""The memory of a crawl: by pages crawled, and by URLs known."""

from __future__ import annotations

import shutil
import sqlite3
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import linear_regression
from time import time
from typing import Any

from scripts.benchmarks import command
from scripts.benchmarks.crawling import crawl
from scripts.benchmarks.exchanges import Exchange
from scripts.benchmarks.loopback import Web, addresses, serving
from scripts.benchmarks.memory_watch import MemoryWatch, Sample
from scripts.benchmarks.site_contents import Calm

_WARM_UP_PAGES = 2_000
_SERIES_POINTS = 25


def growth(pages: int, directory: Path) -> dict[str, Any]:
    """A crawl of so many pages of 10 to 28 kB with 66 links, over 20 hosts without delay."""
    calm = Calm(pages // 20, links=66, min_bytes=10_000, max_bytes=28_000, latency_s=0.005)
    with (
        serving(Web(calm, addresses(20), {}), directory / "growth.log") as server,
        crawl(server, directory / "growth.db", "--delay", "0") as crawling,
        MemoryWatch(crawling.pid) as watch,
    ):
        report = crawling.report()
        exchanges = server.exchanges()
    points = _by_pages(watch.samples, exchanges)
    return {
        "pages": report["pages"],
        "seconds": report["seconds"],
        "peak_mb": watch.peaks(),
        "bytes_per_page_after_2000": _slope(points),
        "resident_mb_by_pages": {
            n: round(sample.resident / 1e6, 1)
            for n, sample in points[:: max(1, len(points) // _SERIES_POINTS)]
        },
    }


def _by_pages(samples: Sequence[Sample], exchanges: Sequence[Exchange]) -> list[tuple[int, Sample]]:
    """Samples with the number of pages served by then, up to the last page."""
    ends = sorted(e.end for e in exchanges if e.status == 200 and e.path != "/robots.txt")
    return [(bisect_right(ends, s.at), s) for s in samples if s.at <= ends[-1]]


def _slope(points: Sequence[tuple[int, Sample]]) -> float | None:
    late = [(n, sample.resident) for n, sample in points if n >= _WARM_UP_PAGES]
    if len(late) < 2:
        return None
    return round(linear_regression([n for n, _ in late], [size for _, size in late]).slope)


def frontier(known: int, pages: int, directory: Path) -> dict[str, Any]:
    """The same crawl of some pages with and without so many known URLs, over 200 hosts."""
    calm = Calm(max(known // 200, 400), links=66, min_bytes=10_000, max_bytes=28_000)
    web = Web(calm, addresses(200), {})
    few, many = directory / "few" / "store.db", directory / "many" / "store.db"
    few.parent.mkdir()
    with serving(web, directory / "frontier.log") as server:
        with crawl(server, few, "--delay", "0", "--max-pages", "200") as crawling:
            crawling.report()
        shutil.copytree(few.parent, many.parent)
        urls = fill(many, known)
        command.say(f"{urls} URLs are known")
        results = []
        for store in (few, many):
            options = ["--delay", "0", "--resume", "--max-pages", str(pages)]
            with crawl(server, store, *options) as crawling, MemoryWatch(crawling.pid) as watch:
                report = crawling.report()
            results.append({"pages": report["pages"], "peak_mb": watch.peaks()})
    added = results[1]["peak_mb"]["process"] - results[0]["peak_mb"]["process"]
    return {
        "known_urls": urls,
        "without": results[0],
        "with": results[1],
        "added_mb": round(added, 1),
    }


def fill(store: Path, known: int) -> int:
    """Make URLs of the store's hosts known and due, all in all ``known``; how many are."""
    with closing(sqlite3.connect(store)) as connection, connection:
        (hosts,) = connection.execute("SELECT count(*) FROM host").fetchone()
        connection.execute(
            "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?)"
            "INSERT OR IGNORE INTO page (url, fetch_url, host_id, depth, found_at, found_run_id) "
            "SELECT origin || '/p/' || n, origin || '/p/' || n, host.id, 9, ?, 1 "
            "FROM number CROSS JOIN host",
            (known // hosts, time()),
        )
        connection.execute(
            "INSERT OR IGNORE INTO frontier (page_id, host_id, priority, due_at, reason) "
            "SELECT id, host_id, depth + 1, found_at, 'discovery' FROM page "
            "WHERE last_kind IS NULL AND held_back IS NULL"
        )
        (urls,) = connection.execute("SELECT count(*) FROM page").fetchone()
    return int(urls)


def main() -> None:
    """The command ``scripts/bench memory``."""
    parser = command.arguments(__doc__)
    parser.add_argument("--pages", type=int, default=6_000, help="pages of the first crawl")
    parser.add_argument("--known", type=int, default=1_000_000, help="URLs of the large frontier")
    parser.add_argument("--more-pages", type=int, default=2_000, help="pages crawled from it")
    chosen = parser.parse_args()
    with command.workspace() as directory:
        grown = growth(chosen.pages, directory)
        command.say(f"{grown['pages']} pages: {grown['peak_mb']}")
        held = frontier(chosen.known, chosen.more_pages, directory)
        command.finish({"growth": grown, "frontier": held}, chosen.output)
