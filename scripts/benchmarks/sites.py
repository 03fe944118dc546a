"""What keeping real sites fresh costs, end to end: the daemon beside plain strategies.

The whole daemon runs on recorded sites in virtual time. A first complete crawl is free for
everybody; from then on every request counts: robots.txt, sitemaps, feeds, redirects, dead links.
One request for each page and 60 or 20 days. Costs are those of
:mod:`scripts.benchmarks.site_windows`, strategies those of
:mod:`scripts.benchmarks.plain_strategies`. The daemon holds what its store says: a page that it
refused or left out is missing, whatever it asked. Costs are means over runs that differ in the
order of equal pages. The two rivals are reported apart, and by the size of sites.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from operator import itemgetter
from pathlib import Path
from random import Random
from statistics import fmean, geometric_mean
from time import process_time
from typing import Any, Final, TypeAlias
from unittest.mock import patch
from urllib.parse import urlsplit

import numpy as np
import uvloop

from freshet.config.loading import load
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import Clock, VirtualClock
from freshet.crawler.robots.cache import RobotsCache
from freshet.crawler.run import status_recorder
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.scheduler.arrays import Floats
from freshet.scheduler.discovery.hub_covers import Discovery
from freshet.scheduler.discovery.hub_yield import ExpectedReveals
from freshet.scheduler.estimate.site_model import SiteLearner
from freshet.scheduler.queue import pages, ready
from freshet.scheduler.queue.existence import Existence
from freshet.scheduler.queue.new_pages import HubPages
from freshet.scheduler.queue.pages import PageTable
from freshet.scheduler.queue.sessions import Sessions
from freshet.scheduler.sources import Rows
from freshet.storage.database import reading
from freshet.storage.records import FetchResult
from scripts.benchmarks import command, page_paces
from scripts.benchmarks.daemon_sites import recorded
from scripts.benchmarks.plain_strategies import ORACLES, PLAIN, RIVALS, Links, Visits, follower
from scripts.benchmarks.recorded_web import RecordedWeb, Recording
from scripts.benchmarks.site_windows import DAY_S, Bill, Window
from tests.integration.quick import unwatched

Row: TypeAlias = dict[str, Any]

#: The network is not used, but a crawler beyond loopback must say who it is. The strategies beside
#: it follow all links, also those that are marked with nofollow.
_SETTINGS = {
    "crawl.contact": "https://example.org/bench",
    "crawl.follow_nofollow": True,
    "store.bodies_per_page": 1,
}


#: The visits that left a version in the store, by the URLs that were requested. A page that only
#: leads on, by meta refresh, is known as that: the store has no version, and no strategy needs one.
_HELD: Final = (
    "SELECT page.fetch_url, finding.at FROM finding JOIN page ON page.id = finding.page_id "
    "WHERE kind IN ('new', 'changed', 'unchanged', 'redirected') AND page.held_back IS NULL"
)
#: Pages whose worth differs by this share at most are equal.
_EQUAL: Final = 1e-6
_STATUS_DAYS: Final = 30.0

_ADMIT, _REVEALING = PageTable.admit_again, HubPages.revealing


def _served(sessions: Sessions, later: Floats, host: Rows, requests: float) -> Floats:
    """Count the visits that are served, whatever they are worth."""
    served = np.argsort(-later)[: int(requests + 1)]
    served = served[later[served] > 0]
    return np.bincount(host[served], minlength=len(sessions.closed)).astype(float) * sessions.price


def _admitted(table: PageTable, page_ids: Iterable[int]) -> None:
    """Admit dropped pages again, but take none that was gone for new."""
    before = {name: table[name].copy() for name in ("gone", "absent")}
    _ADMIT(table, page_ids)
    for name, values in before.items():
        table[name][:] = values


def _unrevealing(hubs: HubPages, table: PageTable, now: float, kind: Discovery) -> ExpectedReveals:
    return replace(_REVEALING(hubs, table, now, kind), value=np.zeros(len(table)))


#: What can be switched off, to see what it brings: what is put in the place of what.
WITHOUT: Final[Mapping[str, Sequence[tuple[object, str, object]]]] = {
    "sessions": [(Sessions, "open", lambda self, *_, **__: _all_open(self))],
    "sessions by worth": [(Sessions, "_of_served", _served)],
    "worth of dead URLs": [(PageTable, "_empty", lambda t: np.zeros(len(t), np.bool_))],
    "share of dead URLs": [(ready, "_EMPTY_SHARE", 1.0)],
    "dead links once more": [(pages, "_EARLY_TRIES", inf)],
    "dead links linked anew": [(PageTable, "admit_again", _admitted)],
    "existence": [(Existence, "of_new", lambda _, rows: np.ones(len(rows)))],
    "clock of the site": [(SiteLearner, "proven", property(lambda _: False))],
    "folders that go": [(Existence, "of_held", lambda it: np.ones(len(it)))],
    "hub pages": [(HubPages, "revealing", _unrevealing)],
    "other spellings": [(pages, "spelling", lambda _url: 0)],
    "pauses of dead hosts": [(RobotsCache, "_pause_s", lambda *_: 6 * 3_600.0)],
}


def _all_open(sessions: Sessions) -> Rows:
    found = np.flatnonzero(sessions.closed)
    sessions.closed = np.zeros(len(sessions.closed), np.bool_)
    return found


class Sites:
    """Several recorded sites as one fetcher: each begins its window at the clock's present."""

    def __init__(self, windows: Sequence[Window], clock: Clock, sitemap: str) -> None:
        self.webs = [
            RecordedWeb(window.site, clock, ahead=window.begin - clock.now(), sitemap=sitemap)
            for window in windows
        ]
        self._of_host = {host: web for web in self.webs for host in web.recording.hosts}

    async def fetch(self, request: Request) -> FetchResult:
        """Answer as the host's site."""
        host = urlsplit(request.url).hostname or ""
        return await self._of_host.get(host, self.webs[0]).fetch(request)

    async def close(self) -> None:
        """Do nothing: nothing is open."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What the daemon made of a window: its bill, and its requests by what they met.

    ``held`` are the days of the visits to each page that left their version in the store, ``asked``
    those of all.
    """

    bill: Bill
    held: Visits
    asked: Visits
    kinds: Mapping[str, int]
    seconds: float

    @property
    def useful(self) -> float:
        """The share of requests that reached pages, or sitemaps and feeds that exist."""
        met = self.kinds.get("pages", 0) + self.kinds.get("sitemaps and feeds", 0)
        return met / max(1, sum(self.kinds.values()))


def daemon(
    windows: Sequence[Window], db: Path, interval: float, *, sitemap: str = "own",
    policy: str = "site_clock", without: str | None = None,
) -> list[Kept]:  # fmt: skip
    """What the daemon made of these windows under one budget, ``without`` one of WITHOUT."""
    days = min(window.days for window in windows)
    budget = sum(window.mean_pages for window in windows) / interval
    clock = VirtualClock(windows[0].begin)
    sites = Sites(windows, clock, sitemap)
    seeds = seeds_from_arguments([window.site.start for window in windows]).seeds
    settings, _ = load(None, _SETTINGS)
    db.unlink(missing_ok=True)
    started = process_time()

    async def whole() -> tuple[float, Set[tuple[str, float]]]:
        await crawl(settings, CrawlOrder(db, seeds), watch=unwatched, fetcher=sites, clock=clock)
        for web in sites.webs:
            web.forget()
        begin = clock.now()
        order = DaemonOrder(db, seeds, budget, policy, days * DAY_S)
        seed = windows[0].seed
        report = await keep(
            settings, order, watch=unwatched, fetcher=sites, clock=clock, rng=Random(seed + 1)
        )
        if report.ending == "interrupted":
            # A daemon takes the signals; what it made of half a window is no figure.
            sys.exit("interrupted")
        async with reading(db) as connection:
            held = await connection.execute_fetchall(_HELD)
            return begin, {(url, at) for url, at in held}

    with ExitStack() as stack, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        others = WITHOUT[without] if without else ()
        for owner, name, other in (*others, *_judged(windows[0].seed)):
            stack.enter_context(patch.object(owner, name, other))
        begin, stored = runner.run(whole())
    took = (process_time() - started) / len(windows)
    found = []
    for window, web in zip(windows, sites.webs, strict=True):
        # The first crawl is that of the first moment.
        shown = ((page, url, at) for (url, at), page in web.page_at.items())
        asked, held = defaultdict[int, list[float]](list), defaultdict[int, list[float]](list)
        for page, url, at in sorted(shown, key=itemgetter(2)):
            day = max(0.0, (at - begin) / DAY_S)
            asked[page].append(day)
            if (url, at) in stored:
                held[page].append(day)
        found.append(Kept(window.bill(held), held, asked, dict(web.kinds), took))
    return found


def _judged(seed: int) -> Sequence[tuple[object, str, object]]:
    """What the judge sets: the order of equal pages, and no status at each hour."""
    weighted = PageTable.weighted

    def stirred(table: PageTable, *args: Any, **named: Any) -> Floats:
        luck = np.random.default_rng(seed).random(len(table))
        return weighted(table, *args, **named) * (1 + _EQUAL * luck)

    return (PageTable, "weighted", stirred), (status_recorder, "_EVERY_S", _STATUS_DAYS * DAY_S)


def compared(window: Window, db: Path, interval: float, options: argparse.Namespace) -> Row:
    """One window under every strategy: the costs, means over the runs, and what the daemon did."""
    links, requests = Links(window), round(window.mean_pages * window.days / interval)
    strategies = {**RIVALS, **({} if options.rivals else {**PLAIN, **ORACLES})}
    if options.sitemap != "own":
        strategies["follower"] = partial(follower, sitemap=options.sitemap)
    runs = [replace(window, seed=seed) for seed in range(options.runs)]
    costs, bills = {}, {}
    for name, strategy in strategies.items():
        made = [it.bill(strategy(it, links, requests).visits) for it in runs]
        bills[name] = made[0]
        costs[name] = round(fmean(bill.cost for bill in made), 4)
    kept, *without = (
        [
            daemon(
                [it], db, interval, sitemap=options.sitemap, policy=options.policy, without=name
            )[0]
            for it in runs
        ]
        for name in (None, *options.without)
    )
    cost = fmean(it.bill.cost for it in kept)
    own = replace(window, pages=Window.of(window.site, window.first, window.days, own=True).pages)
    return {
        "site": window.site.path.stem,
        "first_day": window.first,
        "interval": interval,
        "pages": round(window.mean_pages, 1),
        "requests": requests,
        "costs": costs,
        "daemon": described(kept[0])
        | {
            "cost": round(cost, 4),
            "costs": [round(it.bill.cost, 4) for it in kept],
            "asked": round(fmean(window.bill(it.asked).cost for it in kept), 4),
            "by_own_changes": round(fmean(own.bill(it.held).cost for it in kept), 4),
        },
        "careful rotation": _new_pages(bills["careful rotation"]),
        "of_each": {name: round(cost / other, 3) for name, other in costs.items() if other},
        "without": {
            name: described(runs[0])
            | {"of_all_on": round(fmean(it.bill.cost for it in runs) / cost, 3)}
            for name, runs in zip(options.without, without, strict=True)
        },
    }


def described(kept: Kept) -> Row:
    """What the daemon made of a window."""
    bill, total = kept.bill, max(1, sum(kept.kinds.values()))
    return {
        "cost": round(bill.cost, 4),
        "stale": round(bill.stale, 4),
        "requests": total,
        "shares": {kind: round(n / total, 4) for kind, n in sorted(kept.kinds.items())},
        "useful": round(kept.useful, 4),
        "cpu_s": round(kept.seconds, 1),
        **_new_pages(bill),
    }


def _new_pages(bill: Bill) -> Row:
    delay = bill.median_delay
    return {
        "new": bill.came,
        "found": len(bill.delays),
        "median_delay_days": round(delay, 1) if delay < inf else None,
    }


def together(windows: Sequence[Window], db: Path, interval: float, sitemap: str) -> Row:
    """All windows under one budget, beside the best plain strategy for each with its own share."""
    kept = daemon(windows, db, interval, sitemap=sitemap)
    bills = defaultdict[str, Bill](Bill)
    for window in windows:
        links, requests = Links(window), round(window.mean_pages * window.days / interval)
        for name, strategy in PLAIN.items():
            bills[name] += window.bill(strategy(window, links, requests).visits)
    costs = {name: round(bill.cost, 4) for name, bill in bills.items()}
    cost = sum((each.bill for each in kept), Bill()).cost
    return {
        "sites": [window.site.path.stem for window in windows],
        "interval": interval,
        "costs": costs,
        "daemon": round(cost, 4),
        "of_best_plain": round(cost / min(costs.values()), 3),
        "each": [described(each) for each in kept],
    }


def table(rows: Sequence[Row]) -> str:
    """The windows as a table in Markdown."""
    names = list(rows[0]["costs"]) if rows else []
    lines = [
        f"| site, first day, interval | {' | '.join(names)} | daemon | of the better rival |",
        "|---" * (len(names) + 3) + "|",
    ]
    for row in rows:
        costs = " | ".join(f"{row['costs'][name]:.4f}" for name in names)
        place = f"{row['site']}, {row['first_day']:g}, {row['interval']:g}"
        share = f"{max(row['of_each'].get(name, 0.0) for name in RIVALS):.2f}"
        lines.append(f"| {place} | {costs} | {row['daemon']['cost']:.4f} | {share} |")
        # Files of earlier versions have no such rows.
        for name, it in row.get("without", {}).items():
            blank = " | " * len(names)
            lines.append(f"| without {name}{blank}| {it['cost']:.4f} | ×{it['of_all_on']:.2f} |")
    return "\n".join(lines)


#: Classes of sites by their pages: from so many on.
_CLASSES: Final = {"all": 0.0, "< 25": 0.0, "25 to 60": 25.0, "60 to 200": 60.0, "> 200": 200.0}


def _size(row: Row) -> str:
    return max((name for name in _CLASSES if name != "all" and _CLASSES[name] <= row["pages"]),
               key=_CLASSES.__getitem__)  # fmt: skip


def summary(rows: Sequence[Row]) -> Row:
    """The daemon's costs beside each strategy, geometric means, sites weigh the same."""
    of_site = {
        site: [r for r in rows if r["site"] == site] for site in sorted({r["site"] for r in rows})
    }
    found: Row = {}
    for size in _CLASSES:
        sites = {site: its for site, its in of_site.items() if size in {"all", _size(its[0])}}
        if sites:
            found[size] = {
                "sites": len(sites),
                **{name: _mean_share(list(sites.values()), name) for name in rows[0]["costs"]},
            }
    better = [max(row["of_each"].get(name, 0.0) for name in RIVALS) for row in rows]
    kinds = Counter[str]()
    for row in rows:
        kinds.update({k: share / len(rows) for k, share in row["daemon"]["shares"].items()})
    return found | {
        "worst_of_the_better_rival": max(better, default=None),
        "requests": {kind: round(share, 3) for kind, share in kinds.most_common()},
    }


def _mean_share(sites: Sequence[Sequence[Row]], name: str) -> float | None:
    """The mean over sites of the means over their windows; a site without changes has none."""
    shares = [[r["of_each"][name] for r in its if r["of_each"].get(name)] for its in sites]
    means = [geometric_mean(each) for each in shares if each]
    return round(geometric_mean(means), 3) if means else None


def main() -> None:
    """The command ``scripts/bench sites``."""
    parser = command.arguments(__doc__)
    parser.add_argument(
        "directory", type=Path, metavar="DIR", nargs="?",
        help="recorded sites: *.sqlite.zst, or *.sqlite as scripts/record_site writes them",
    )  # fmt: skip
    parser.add_argument("--site", action="append", help="only this one; repeatable")
    parser.add_argument("--interval", type=float, action="append", help="days; default 60 and 20")
    parser.add_argument("--days", type=float, default=360.0, help="of a window")
    parser.add_argument("--windows", type=int, default=2, help="of a site, one after the other")
    parser.add_argument(
        "--sitemap", choices=("own", "honest", "daily"), default="own",
        help="what the daemon finds: the recorded ones, or one with true or with daily times",
    )  # fmt: skip
    parser.add_argument("--policy", default="site_clock", help="how pages are ranked")
    parser.add_argument(
        "--without", choices=WITHOUT, action="append", default=[],
        help="run the daemon once more with this switched off; repeatable",
    )  # fmt: skip
    parser.add_argument("--runs", type=int, default=3, help="in other orders of equal pages")
    parser.add_argument("--rivals", action="store_true", help="beside the two rivals alone")
    parser.add_argument(
        "--paces", action="store_true",
        help="instead, how often pages change by their depth and dated URLs",
    )  # fmt: skip
    parser.add_argument("--together", action="store_true", help="also all under one budget")
    parser.add_argument("--quick", action="store_true", help="one window of 180 days, 60 days")
    parser.add_argument("--figure", type=Path, metavar="PNG", help="draw the windows")
    parser.add_argument(
        "--show", type=Path, action="append", metavar="FILE",
        help="instead, what a run wrote to its --output; repeatable",
    )  # fmt: skip
    options = parser.parse_args()
    if (options.show is None) == (options.directory is None):
        parser.error("either DIR or --show FILE is needed")
    if options.paces:
        command.say(page_paces.table(_paces(options)))
        return
    rows, joint = _shown(options.show) if options.show else _measured(options)
    command.say(table(rows))
    if options.figure is not None:
        # Only drawing needs matplotlib.
        from scripts.benchmarks import sites_drawing

        sites_drawing.draw(rows, options.figure)
    means = {
        f"{interval:g} days": summary([row for row in rows if row["interval"] == interval])
        for interval in sorted({row["interval"] for row in rows}, reverse=True)
    }
    command.finish({"geometric_means": means, "windows": rows, "together": joint}, options.output)


def _shown(paths: Sequence[Path]) -> tuple[list[Row], list[Row]]:
    """The windows in files, and what came of several under one budget."""
    found = [json.loads(path.read_bytes()) for path in paths]
    return [r for each in found for r in each["windows"]], [
        r for each in found for r in each["together"]
    ]


def _paces(options: argparse.Namespace) -> Sequence[page_paces.Row]:
    """The pages of the first window of each site of a folder."""
    with command.workspace() as workspace:
        return [
            row
            for site in _sites(options, workspace)
            for row in page_paces.rows_of(Window.of(site, 0.0, options.days))
        ]


def _sites(options: argparse.Namespace, workspace: Path) -> Sequence[Recording]:
    """The recordings of a folder, or those that are named."""
    paths = [*recorded(options.directory, workspace), *options.directory.glob("*.sqlite")]
    return [Recording(p) for p in sorted(paths) if not options.site or p.stem in options.site]


def _measured(options: argparse.Namespace) -> tuple[list[Row], list[Row]]:
    """The windows of a folder, and what came of those of one time under one budget."""
    intervals = [60.0] if options.quick else options.interval or [60.0, 20.0]
    days, number = (180.0, 1) if options.quick else (options.days, options.windows)
    rows: list[Row] = []
    joint: list[Row] = []
    with command.workspace() as workspace:
        sites = _sites(options, workspace)
        for k in range(number):
            windows = [
                Window.of(site, k * days, days, sitemap=options.sitemap != "own")
                for site in sites
                if site.end >= site.begin + (k + 1) * days * DAY_S
            ]
            for interval in intervals:
                for window in windows:
                    rows.append(compared(window, workspace / "store.db", interval, options))
                    command.say("\n".join(table(rows[-1:]).splitlines()[2:]))
                if options.together and len(windows) > 1:
                    joint.append(
                        together(windows, workspace / "store.db", interval, options.sitemap)
                    )
                    command.say(f"together, {interval:g} days: {joint[-1]['of_best_plain']}")
    if not rows:
        sys.exit(f"{options.directory}: no recording (of those named) has {days:g} days")
    return rows, joint
