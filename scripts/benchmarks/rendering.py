"""A site on loopback whose pages build themselves, crawled again and again with a real Chromium.

Each page loads a script, which loads both halves of its text as JSON and a side column, in an order
that the server's random pauses decide, and shows them. A page may have some of: a clock that ticks;
advertisements that are others each time, in the order in which they come; identifiers, classes, a
token and times in attributes drawn anew; a part that comes late, by a random pause. Before each
visit a share of the pages gets another line of text: what a crawl reports beside these are false
changes, what it does not report is missed. Pages that count their readers within the text are
crawled beside those, and told apart.

Cost: processor seconds and the greatest memory (proportional shares) of the process and all its
children, for a crawl with ``render = "always"`` and for one that takes the pages as they come.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from math import comb
from pathlib import Path
from random import Random

from aiohttp import web

from freshet.config.loading import load
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run.crawl import CrawlOrder, crawl
from scripts.benchmarks import command
from scripts.benchmarks.memory_watch import MemoryWatch

_WORDS = "river bridge council town mill spring market harbour winter road school garden".split()
_SHELL = """<!doctype html><html lang=en><head><title>Page {n}</title>
<link rel=stylesheet href=/style.css></head><body><div id=app></div>
<noscript>Please enable JavaScript.</noscript><script>const page = {n}, traits = {traits};</script>
<script src=/app.js></script></body></html>"""
_APP = """
const app = document.getElementById('app'), has = trait => traits & trait;
const drawn = () => Math.random().toString(36).slice(2);
const load = (url, show) => fetch(url).then(got => got.json()).then(show);
const part = (name, html) => { const made = document.createElement(name); made.innerHTML = html;
  if (has(4)) { made.id = 'i' + drawn(); made.className = 'css-' + drawn();
    made.dataset.shownAt = Date.now(); made.insertAdjacentHTML('afterbegin',
      `<form><input type=hidden name=csrf value=${drawn()}></form>`); }
  app.append(made); return made; };
const main = part('main', '<h1></h1><section></section><section></section>');
const aside = part('aside', '');
main.querySelectorAll('section').forEach((section, half) => load(`/text/${page}/${half}`, text => {
  document.title = main.querySelector('h1').textContent = text.title;
  section.innerHTML = text.lines.map(line => `<p>${line}</p>`).join('');
  if (half) return;
  if (has(1)) { const clock = document.createElement('p'); main.prepend(clock);
    setInterval(() => { clock.textContent = new Date().toLocaleString('en'); }, 100); }
  if (has(8)) setTimeout(() => load('/late/' + page, line => {
    main.insertAdjacentHTML('beforeend', `<p>${line}</p>`); }), 50 + 400 * Math.random());
  if (has(16)) load('/count', readers => {
    section.insertAdjacentHTML('afterend', `<p>${readers} people have read this page.</p>`); });
}));
load('/side', links => {
  aside.innerHTML = '<ul>' + links.map(n => `<li><a href=/p/${n}>Page ${n}</a>`).join('') + '</ul>';
  if (has(2)) for (const n of [1, 2]) load('/ad', ad => {
    aside.insertAdjacentHTML('beforeend', `<div class=ad><a href=//ad.x>${ad}</a></div>`); }); });
"""
#: The bit that pages have which count their readers; the others are those of a page's number.
_COUNTER = 16


class Site:
    """The site; ``lines`` are the texts of its pages, which ``change`` makes longer.

    After the ``pages`` come those that count their readers.
    """

    def __init__(self, pages: int, counters: int, seed: int) -> None:
        self.rng, self.pages, self.readers = Random(seed), range(pages), 0
        self.lines = {n: [self._line() for _ in range(8)] for n in range(pages + counters)}

    def _line(self) -> str:
        return " ".join(self.rng.choices(_WORDS, k=18)) + "."

    def change(self, share: float) -> set[int]:
        """Give a share of the pages another line; return which."""
        changed = {n for n in self.pages if self.rng.random() < share}
        for n in changed:
            self.lines[n].insert(self.rng.randrange(len(self.lines[n])), self._line())
        return changed

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer as the site does, some answers after a pause."""
        _, kind, *rest = request.path.split("/")
        if kind in {"text", "side", "late", "ad", "count"}:
            await asyncio.sleep(self.rng.random() * 0.08)
        match kind:
            case "p":
                n = int(rest[0])
                traits = n % _COUNTER if n in self.pages else _COUNTER
                text = _SHELL.format(n=n, traits=traits)
                return web.Response(text=text, content_type="text/html")
            case "app.js" | "style.css" as name:
                body, kind = (_APP, "javascript") if name == "app.js" else ("", "css")
                return web.Response(text=body, content_type=f"text/{kind}")
            case "text":
                n, half = map(int, rest)
                lines = self.lines[n][:5] if half == 0 else self.lines[n][5:]
                return web.json_response({"title": f"Of page {n}", "lines": lines})
            case "side":
                return web.json_response(list(self.lines)[:10])
            case "late":
                return web.json_response(f"A part of page {rest[0]} that comes later than others.")
            case "ad":
                return web.json_response(" ".join(self.rng.choices(_WORDS, k=6)))
            case "count":
                self.readers += self.rng.randint(1, 99)
                return web.json_response(self.readers)
            case _:
                return web.Response(status=404)


def _cpu_s() -> float:
    used = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


async def _visits(
    site: Site, db: Path, *, render: str, visits: int, share: float
) -> tuple[dict[str, float], list[int]]:
    """Crawl the pages so many times.

    Return what was reported and what it cost, and of how many pages with a counter a change was
    reported, at each visit after the first.
    """
    runner = web.ServerRunner(web.Server(site.answer))
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
    seeds = seeds_from_arguments([f"http://127.0.0.1:{port}/p/{n}" for n in site.lines]).seeds
    names = ("unchanged", "false_changes", "changes", "missed", "failed", "requests")
    counts, counters, unseen = dict.fromkeys(names, 0.0), list[int](), set[int]()
    began_at, began_cpu_s = time.perf_counter(), _cpu_s()
    with MemoryWatch(os.getpid()) as watch:
        for visit in range(visits):
            unseen |= site.change(share) if visit else set()
            report = await crawl(settings, CrawlOrder(db, seeds), watch=_unwatched)
            counts["requests"] += report.fetches
            counts["failed"] += report.errors
            kinds = _compared(db)
            for n in filter(kinds.__contains__, site.pages):
                was, is_seen = "changes" if n in unseen else "unchanged", kinds[n] == "changed"
                counts[was] += 1
                counts["false_changes"] += is_seen and n not in unseen
                counts["missed"] += n in unseen and not is_seen
            unseen -= kinds.keys()
            if visit:
                seen = [kind for n, kind in kinds.items() if n not in site.pages]
                counters.append(seen.count("changed"))
            command.say(f"{render}, visit {visit + 1} of {visits}: {counts} {report.reasons}")
    await runner.cleanup()
    return counts | {
        "seconds": time.perf_counter() - began_at,
        "cpu_s": _cpu_s() - began_cpu_s,
        "greatest_mb": watch.peaks()["proportional_sum"],
    }, counters


def _unwatched(_live: object) -> Callable[[object], None]:
    return lambda _batch: None


def _compared(db: Path) -> dict[int, str]:
    """Return whether the last run found pages ``changed`` or ``unchanged``, by their numbers."""
    with closing(sqlite3.connect(db)) as store:
        rows = store.execute(
            "SELECT p.url, o.kind FROM observation AS o JOIN page AS p ON p.id = o.page_id "
            "WHERE o.kind IN ('changed', 'unchanged') "
            "AND o.run_id = (SELECT max(run_id) FROM observation)"
        )
        return {int(url.rpartition("/")[2]): kind for url, kind in rows}


def upper(found: int, of: int) -> float:
    """Return the upper end of the one-sided Clopper-Pearson interval of a rate, at 95 %.

    >>> round(upper(0, 300), 5)  # the rule of three: 3 / 300
    0.00994
    """
    low, high = 0.0, 1.0
    for _ in range(50):
        rate = (low + high) / 2
        at_most = sum(comb(of, k) * rate**k * (1 - rate) ** (of - k) for k in range(found + 1))
        low, high = (rate, high) if at_most > 0.05 else (low, rate)
    return high


def main() -> None:
    """The command."""
    parser = command.arguments(__doc__)
    parser.add_argument("--pages", type=int, default=16, help="of each combination of traits one")
    parser.add_argument("--counters", type=int, default=4, help="more, with a count of readers")
    parser.add_argument("--visits", type=int, default=11, help="visits to each page")
    parser.add_argument("--share", type=float, default=0.1, help="pages that change before a visit")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found = dict[str, tuple[dict[str, float], list[int]]]()
    for render in ("never", "always"):
        site = Site(given.pages, given.counters, given.seed)
        with command.workspace() as directory:
            found[render] = asyncio.run(
                _visits(
                    site, directory / "crawl.db", render=render, visits=given.visits,
                    share=given.share,
                )
            )  # fmt: skip
    (raw, _), (rendered, counted) = found["never"], found["always"]
    shown = (given.pages + given.counters) * given.visits
    unchanged, wrong = int(rendered["unchanged"]), int(rendered["false_changes"])
    command.finish(
        {
            "pages": given.pages,
            "visits_to_each": given.visits,
            "rendered": {name: round(value, 3) for name, value in rendered.items()},
            "raw": {name: round(value, 3) for name, value in raw.items()},
            "cpu_s_a_page": {k: round(v["cpu_s"] / shown, 4) for k, (v, _) in found.items()},
            "requests_a_page": {k: round(v["requests"] / shown, 2) for k, (v, _) in found.items()},
            "false_changes": f"{wrong} of {unchanged}",
            "false_changes_at_most_at_95_percent": round(upper(wrong, unchanged), 4),
            "changes_found": round(1 - rendered["missed"] / max(1, rendered["changes"]), 4),
            "with_a_counter_in_the_text": {
                "pages": given.counters,
                "changes_reported_at_visit_2_and_on": counted,
                "last_visit_with_one": max((n for n, k in enumerate(counted, 2) if k), default=0),
            },
        },
        given.output,
    )
