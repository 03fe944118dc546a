"""A sitemap as large as the protocol allows, read in a process of its own.

``parsed`` is :func:`freshet.crawler.reduce.sitemaps.parse_sitemap` alone; ``read`` all that a visit
does with it before it is stored (pages in canonical form, scope, claims), beside an event loop
whose worst delay is told, from a tick that is due every 5 ms. On a busy machine that is the
delay of the machine: ``worst_own_work_s`` is the CPU time that the process took for itself between
two ticks.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from freshet.crawler.admission.admit import Admission, Scope
from freshet.crawler.admission.traps import TrapLimits
from freshet.crawler.frontier.politeness import PolitenessRules
from freshet.crawler.reduce.sitemaps import SitemapLimits, parse_sitemap
from freshet.crawler.robots.cache import RobotsCache, RobotsRules
from freshet.crawler.signals.listings import Complaints, Listings
from freshet.storage.records import DueUrl
from scripts.benchmarks.command import workspace

_ENTRIES = 50_000
_BYTES = 50 * 1024 * 1024
_SITE = "https://shop.example"
_TICK_S = 0.005
_OPENING = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
    b'xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">\n'
)
_END = b"</urlset>\n"


def figures() -> dict[str, object]:
    """Seconds and megabytes for the sitemap as it is and gzipped."""
    body = sitemap()
    result: dict[str, object] = {"entries": _ENTRIES, "decoded_bytes": len(body)}
    with workspace() as directory:
        for name, data in (("plain", body), ("gzip", gzip.compress(body, 6))):
            path = directory / f"{name}.xml"
            path.write_bytes(data)
            result[name] = {step: _measured(step, path) for step in ("parsed", "read")}
    return result


def sitemap() -> bytes:
    """The entries of a shop with pictures, filled up to the limit of the protocol."""
    room = (_BYTES - len(_OPENING) - len(_END)) // _ENTRIES
    return b"".join((_OPENING, *(_entry(i, room) for i in range(_ENTRIES)), _END))


def _entry(i: int, room: int) -> bytes:
    first = (
        f"<url><loc>{_SITE}/department-{i % 40}/a-product-with-a-long-name-{i:06}</loc>"
        f"<lastmod>2025-{1 + i % 12:02}-{1 + i % 28:02}T{i % 24:02}:{i % 60:02}:{i * 7 % 60:02}"
        "+00:00</lastmod><changefreq>weekly</changefreq><priority>0.5</priority>"
    )
    parts = [first]
    length, number = len(first) + len("</url>\n"), 0
    while True:
        picture = (
            f"<image:image><image:loc>https://images.shop.example/p/{i:06}/{number}.jpg"
            f"</image:loc><image:title>View {number} of product {i}</image:title></image:image>\n"
        )
        if length + len(picture) > room:
            return "".join((*parts, "</url>", " " * (room - length), "\n")).encode()
        parts.append(picture)
        length, number = length + len(picture), number + 1


def _measured(step: str, path: Path) -> dict[str, object]:
    command = [sys.executable, "-m", "scripts.benchmarks.signals_sitemap", step, str(path)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def _parsed(body: bytes) -> dict[str, object]:
    found = parse_sitemap(body)
    return {"entries": len(found.entries), "problem": found.problem}


async def _read(body: bytes) -> dict[str, object]:
    scope = Scope("host")
    scope.add_seed(_SITE)
    politeness = PolitenessRules()
    book = RobotsCache("freshet", RobotsRules(), politeness, Random(1))
    admission = Admission(scope, TrapLimits())
    past: Any = SimpleNamespace(sources=_nothing, offsite_at=_nothing)
    listings = Listings(admission, book, SitemapLimits(), Complaints(), past)
    due = DueUrl(1, f"{_SITE}/sitemap.xml", f"{_SITE}/sitemap.xml", 1, 0.0, role="sitemap")
    ticking = asyncio.create_task(_worst_delay())
    await asyncio.sleep(0)
    entries = await listings.read(due, body, time.time(), 0.0)
    found = await listings.admit(entries, due.depth)
    ticking.cancel()
    delay_s, own_s = await ticking
    return {
        "targets": len(found.targets or ()),
        "claims": len(entries.said.claims),
        "worst_loop_delay_s": round(delay_s, 4),
        "worst_own_work_s": round(own_s, 4),
    }


async def _nothing(*_: object) -> list[Any]:
    return []


async def _worst_delay() -> tuple[float, float]:
    """By how much a tick came too late, and the CPU time between two of them, at the worst."""
    delay, own = 0.0, 0.0
    with suppress(asyncio.CancelledError):
        while True:
            due, spent = time.perf_counter() + _TICK_S, time.process_time()
            await asyncio.sleep(_TICK_S)
            delay = max(delay, time.perf_counter() - due)
            own = max(own, time.process_time() - spent)
    return delay, own


def _peak_bytes() -> int:
    status = Path("/proc/self/status").read_text("ascii")
    return 1024 * int(next(x for x in status.splitlines() if x.startswith("VmHWM")).split()[1])


def _main(step: str, path: str) -> None:
    body = Path(path).read_bytes()
    Path("/proc/self/clear_refs").write_text("5", "ascii")
    before = _peak_bytes()
    wall, cpu = time.perf_counter(), time.process_time()
    found = _parsed(body) if step == "parsed" else asyncio.run(_read(body))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    figures = {
        "seconds": round(wall, 2),
        "cpu_seconds": round(cpu, 2),
        "peak_mb_above_the_body": round((_peak_bytes() - before) / 1e6, 1),
    }
    json.dump(figures | found, sys.stdout)


if __name__ == "__main__":
    _main(*sys.argv[1:])
