"""A site on loopback whose pages build themselves, crawled again and again with a real Chromium.

Each page loads a script, which loads its text as JSON and a side column, in an order that the
server's random pauses decide, and shows them. A page may have some of: a clock that ticks, an
advertisement that is another each time, identifiers and classes drawn anew, a part that comes late.
Before each visit a share of the pages gets another line of text: what a crawl reports beside these
are false changes, what it does not report is missed.

Cost: processor seconds and the greatest memory (proportional shares) of the process and all its
children, for a crawl with ``render = "always"`` and for one that takes the pages as they come,
less what a crawl of no pages takes.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

from aiohttp import web

from freshet.config.loading import load
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run.crawl import CrawlOrder, crawl
from scripts.benchmarks import command

_WORDS = "river bridge council town mill spring market harbour winter road school garden".split()
_SHELL = """<!doctype html><html lang=en><head><title>Page {n}</title>
<link rel=stylesheet href=/style.css></head><body><div id=app></div>
<noscript>Please enable JavaScript.</noscript><script>const page = {n};</script>
<script src=/app.js></script></body></html>"""
_APP = """
const app = document.getElementById('app'), has = trait => page & trait;
const part = (name, html) => { const made = document.createElement(name); made.innerHTML = html;
  if (has(4)) { made.id = 'i' + Math.random().toString(36).slice(2);
    made.className = 'css-' + Math.random().toString(36).slice(2); }
  app.append(made); return made; };
const main = part('main', ''), aside = part('aside', '');
fetch('/text/' + page).then(got => got.json()).then(text => {
  document.title = text.title;
  main.innerHTML = `<h1>${text.title}</h1>` + text.lines.map(line => `<p>${line}</p>`).join('');
  if (has(1)) { const clock = document.createElement('p'); main.prepend(clock);
    setInterval(() => { clock.textContent = new Date().toLocaleString('en'); }, 100); }
  if (has(8)) setTimeout(() => fetch('/late/' + page).then(got => got.text()).then(line => {
    main.insertAdjacentHTML('beforeend', `<p>${line}</p>`); }), 300);
});
fetch('/side').then(got => got.json()).then(links => {
  aside.innerHTML = '<ul>' + links.map(n => `<li><a href=/p/${n}>Page ${n}</a>`).join('') + '</ul>';
  if (has(2)) fetch('/ad').then(got => got.text()).then(ad => {
    aside.insertAdjacentHTML('beforeend', `<div class=ad><a href=//ad.x>${ad}</a></div>`); }); });
"""


class Site:
    """The site; ``lines`` are the texts of its pages, which ``change`` makes longer."""

    def __init__(self, pages: int, seed: int) -> None:
        self.rng = Random(seed)
        self.lines = {n: [self._line() for _ in range(8)] for n in range(pages)}

    def _line(self) -> str:
        return " ".join(self.rng.choices(_WORDS, k=18)) + "."

    def change(self, share: float) -> set[int]:
        """Give a share of the pages another line; return which."""
        changed = {n for n in self.lines if self.rng.random() < share}
        for n in changed:
            self.lines[n].insert(self.rng.randrange(len(self.lines[n])), self._line())
        return changed

    async def answer(self, request: web.Request) -> web.Response:
        """Answer as the site does, some answers after a pause."""
        _, kind, *rest = request.path.split("/")
        if kind in {"text", "side", "late", "ad"}:
            await asyncio.sleep(self.rng.random() * 0.08)
        match kind:
            case "p":
                return web.Response(text=_SHELL.format(n=rest[0]), content_type="text/html")
            case "app.js" | "style.css" as name:
                body, kind = (_APP, "javascript") if name == "app.js" else ("", "css")
                return web.Response(text=body, content_type=f"text/{kind}")
            case "text":
                n = int(rest[0])
                return web.json_response({"title": f"Of page {n}", "lines": self.lines[n]})
            case "side":
                return web.json_response(list(self.lines)[:10])
            case "late":
                return web.Response(text=f"A part of page {rest[0]} that comes later than others.")
            case "ad":
                return web.Response(text=" ".join(self.rng.choices(_WORDS, k=6)))
            case _:
                return web.Response(status=404)


def tree_of(pid: int) -> list[int]:
    """Return the ids of a process and all below it that have not ended."""
    parents = dict[int, int]()
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = each.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # It has ended.
        if state != "Z":
            parents[int(each.parent.name)] = int(parent)
    found = [pid]
    for above in found:
        found += [one for one, parent in parents.items() if parent == above]
    return found


def _memory_mb() -> float:
    held = 0
    for pid in tree_of(os.getpid()):
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue  # It has ended.
        held += next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return held / 1024


def _cpu_s() -> float:
    used = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


class _Greatest:
    """The greatest memory while it is open."""

    def __enter__(self) -> _Greatest:
        self.mb, self._ended = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._ended.wait(0.25):
            self.mb = max(self.mb, _memory_mb())

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()


async def _visits(
    site: Site, db: Path, *, render: str, visits: int, share: float, pages: int
) -> dict[str, float]:
    """Crawl the pages so many times; return what was reported and what it cost."""
    runner = web.AppRunner(_application(site))
    await runner.setup()
    place = web.TCPSite(runner, "127.0.0.1", 0)
    await place.start()
    port = runner.addresses[0][1]
    settings, _ = load(
        None,
        {
            "browser.render": render, "politeness.delay_s": 0.0, "politeness.slow_factor": 0.0,
            "politeness.connections_per_host": 4, "network.allow_private_addresses": True,
            "crawl.scope": "list", "robots.sitemaps": False, "change.probe": False,
        },
    )  # fmt: skip
    seeds = seeds_from_arguments([f"http://127.0.0.1:{port}/p/{n}" for n in range(pages)]).seeds
    counts = dict.fromkeys(
        ("visits", "changes", "false_changes", "missed", "failed", "requests"), 0.0
    )
    began_at, began_cpu_s = time.perf_counter(), _cpu_s()
    with _Greatest() as greatest:
        for visit in range(visits):
            changed = site.change(share) if visit else set()
            report = await crawl(settings, CrawlOrder(db, seeds), watch=_unwatched)
            counts["requests"] += report.fetches
            counts["failed"] += report.errors
            if visit:
                seen = _changed(db)
                counts["visits"] += pages
                counts["changes"] += len(changed)
                counts["false_changes"] += len(seen - changed)
                counts["missed"] += len(changed - seen)
            command.say(f"{render}, visit {visit + 1} of {visits}: {counts} {report.reasons}")
    await runner.cleanup()
    return counts | {
        "seconds": time.perf_counter() - began_at,
        "cpu_s": _cpu_s() - began_cpu_s,
        "greatest_mb": greatest.mb,
    }


def _application(site: Site) -> web.Application:
    application = web.Application()
    application.router.add_get("/{path:.*}", site.answer)
    return application


def _unwatched(_live: object) -> Callable[[object], None]:
    return lambda _batch: None


def _changed(db: Path) -> set[int]:
    """Return the pages that the last run found changed, significantly."""
    with closing(sqlite3.connect(db)) as store:
        rows = store.execute(
            "SELECT p.url FROM observation AS o JOIN page AS p ON p.id = o.page_id "
            "WHERE o.kind = 'changed' AND o.run_id = (SELECT max(run_id) FROM observation)"
        )
        return {int(url.rpartition("/")[2]) for (url,) in rows}


def main() -> None:
    """The command."""
    parser = command.arguments(__doc__)
    parser.add_argument("--pages", type=int, default=16, help="of each combination of traits one")
    parser.add_argument("--visits", type=int, default=11, help="visits to each page")
    parser.add_argument("--share", type=float, default=0.1, help="pages that change before a visit")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found = dict[str, dict[str, float]]()
    for render in ("never", "always"):
        with command.workspace() as directory:
            found[render] = asyncio.run(
                _visits(
                    Site(given.pages, given.seed), directory / "crawl.db", render=render,
                    visits=given.visits, share=given.share, pages=given.pages,
                )
            )  # fmt: skip
    raw, rendered = found["never"], found["always"]
    shown, still = given.pages * given.visits, rendered["visits"] - rendered["changes"]
    command.finish(
        {
            "pages": given.pages,
            "visits_to_each": given.visits,
            "rendered": {name: round(value, 3) for name, value in rendered.items()},
            "raw": {name: round(value, 3) for name, value in raw.items()},
            "cpu_s_a_page": {k: round(v["cpu_s"] / shown, 4) for k, v in found.items()},
            "requests_a_page": {k: round(v["requests"] / shown, 2) for k, v in found.items()},
            "false_changes_of_visits_without_one": round(rendered["false_changes"] / still, 4),
            "changes_found": round(1 - rendered["missed"] / max(1, rendered["changes"]), 4),
        },
        given.output,
    )
