"""Crawls of Freshet and of Scrapy with its JOBDIR, each killed three times and started again.

Each crawl begins with nothing, is killed at three random moments of the time of its own undisturbed
crawl, and goes on with the same command to its end. A page whose answer the server never sent to
the end in that time is missed. The spider is the one of Scrapy's tutorial, and JOBDIR is how its
documentation pauses and resumes crawls; it names SIGKILL nowhere, which a machine does not ask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, TypeAlias

from scripts.benchmarks import command, crawl_competitors
from scripts.benchmarks.crawling import CrawlProcess, crawl, started
from scripts.benchmarks.loopback import Server, Web, addresses, serving
from scripts.benchmarks.site_contents import Calm

#: Starts the crawl that stands in a directory, or begins one there.
Start: TypeAlias = Callable[[Path], AbstractContextManager[CrawlProcess]]
_KILLS = 3
_OPTIONS = ("--delay", "0")
_AT_ONCE = crawl_competitors.Concurrency(16, 16)


def measure(kills: int, seed: int, python: Path | None, directory: Path) -> dict[str, Any]:
    """Kill each crawler so often, and judge what the server was asked for."""
    web = Web(Calm(150, latency_s=0.005, max_bytes=6_000), addresses(3), {})
    scrapy = crawl_competitors.scrapy_python(python)
    with serving(web, directory / "exchanges.log") as server:
        starts: dict[str, Start] = {
            "freshet": partial(_freshet, server),
            "scrapy_jobdir": partial(_scrapy, scrapy, server),
        }
        found = {
            name: _judged(server, start, max(1, kills // _KILLS), Random(seed), directory / name)
            for name, start in starts.items()
        }
    return found | {"versions": crawl_competitors.versions(scrapy)}


def _freshet(server: Server, place: Path) -> AbstractContextManager[CrawlProcess]:
    return crawl(server, place / "store.db", *_OPTIONS)


def _scrapy(python: Path, server: Server, place: Path) -> AbstractContextManager[CrawlProcess]:
    seeds = place / "seeds.txt"
    seeds.write_text("\n".join(server.seeds()) + "\n", "utf-8")
    spider = crawl_competitors.scrapy(
        python, "ordinary", seeds, _AT_ONCE, JOBDIR=str(place / "job")
    )
    return started(spider.command, place, within=spider.directory)


def _judged(
    server: Server, start: Start, crawls: int, rng: Random, directory: Path
) -> dict[str, float]:
    directory.mkdir()
    pages = {
        f"{server.origin(host)}{server.web.calm.path(n)}"
        for host in server.web.addresses
        for n in range(server.web.calm.pages)
    }
    began_at = monotonic()
    _run(start, directory / "undisturbed", [])
    undisturbed_s = monotonic() - began_at
    missed, whole, again, kills = 0, 0, 0, 0
    for number in range(crawls):
        before = len(server.exchanges())
        moments = [rng.uniform(0, undisturbed_s) for _ in range(_KILLS)]
        kills += _run(start, directory / str(number), moments)
        got = Counter(
            f"{server.origin(each.host)}{each.path}"
            for each in server.exchanges()[before:]
            if each.status == 200
        )
        lost = len(pages - got.keys())
        missed, whole = missed + lost, whole + (lost == 0)
        again += sum(count - 1 for url, count in got.items() if url in pages)
        command.say(f"{directory.name}: {lost} of {len(pages)} pages missed")
    return {
        "crawls": crawls, "kills": kills, "pages": crawls * len(pages), "pages_missed": missed,
        "crawls_without_a_miss": whole, "pages_asked_again": again,
        "undisturbed_s": round(undisturbed_s, 2),
    }  # fmt: skip


def _run(start: Start, place: Path, moments: list[float]) -> int:
    """Crawl to the end through kills, each so long after a start; return how many came in time."""
    place.mkdir()
    kills = 0
    for moment in moments:
        with start(place) as running:
            if not running.wait(moment):
                running.kill()
                kills += running.killed
    with start(place) as running:
        running.wait()
        if running.process.returncode != 0:
            said = running.errors.read_text("utf-8", "replace").strip()
            raise RuntimeError(f"{place.parent.name} failed: {said[-2_000:]}")
    return kills
