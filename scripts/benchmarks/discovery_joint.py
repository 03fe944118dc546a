"""Finding and refreshing under one price, beside fixed shares of the same budget.

The whole daemon on recorded sites in virtual time. A site is first crawled whole, which nobody
pays for; from there on each variant has the same budget. Judged by the true history are both ends:
*freshness*, what the copies cost (the harmonic number of the changes that a copy misses, over the
days for which there is a copy), and *delay*, the days for which a page was missing that was born
later and to which a link led: until its first visit, or its end where it never had one.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Final

import uvloop

from freshet.config.loading import load
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from scripts.benchmarks import command
from scripts.benchmarks.daemon_recorded import Stretch, within
from scripts.benchmarks.daemon_sites import Costs, Page, load_pages, recorded
from scripts.benchmarks.recorded_web import RecordedWeb, Recording
from tests.integration.quick import unwatched

_DAY_S = 86_400.0
_CONTACT = "https://example.org/bench"
_POLICY = "site_clock"
#: The days before a stretch in which a site is crawled whole, with so many requests a page.
_BEFORE: Final = 3.0
_A_PAGE: Final = 4.0


@dataclass(frozen=True, slots=True)
class Variant:
    """How looks are shared; ``share`` None: by worth, else so many of them for discovery."""

    share: float | None = None
    new_page: float = 1.0

    @property
    def name(self) -> str:
        """What it is called in tables."""
        if self.share is not None:
            return f"{100 * self.share:g}/{100 - 100 * self.share:g}"
        return "joint" if self.new_page == 1 else f"joint, worth {self.new_page:g}"

    def settings(self) -> dict[str, object]:
        """What the daemon is told."""
        bounds = {} if self.share is None else {"least": self.share, "most": self.share}
        return {
            **{f"daemon.{name}_discovery": share for name, share in bounds.items()},
            "daemon.new_page_value": self.new_page,
        }


@dataclass(frozen=True, slots=True)
class Judged:
    """What a variant came to; both costs are means, ``seven`` the share found within a week."""

    requests: int
    freshness: float
    stale: float
    delay: float
    seven: float
    new: int


@dataclass(frozen=True, slots=True)
class _Site:
    recording: Recording
    path: Path
    stretch: Stretch

    @property
    def begin(self) -> float:
        """Unix seconds of the first day that is judged."""
        return self.recording.begin + (self.stretch.begin + _BEFORE) * _DAY_S

    def pages(self) -> dict[int, Page]:
        """Those that live in the stretch, days counted from its first."""
        stretch = replace(self.stretch, begin=self.stretch.begin + _BEFORE)
        return within(load_pages(self.path), stretch)

    def linked(self) -> set[int]:
        """The pages to which a link leads, at any time of the stretch."""
        days = range(0, int(self.stretch.days), 7)
        found = [self.recording.reachable(self.begin + day * _DAY_S) for day in days]
        return set().union(*found, self.recording.reachable(self.begin + self.stretch.days))


def compared(
    directory: Path, workspace: Path, stretches: Sequence[Stretch], variants: Sequence[Variant]
) -> dict[str, dict[str, dict[str, Judged]]]:
    """What each variant came to, by interval and site."""
    found: dict[str, dict[str, dict[str, Judged]]] = {}
    for path in recorded(directory, workspace):
        for stretch in stretches:
            with closing(Recording(path)) as recording:
                site = _Site(recording, path, stretch)
                crawled = _crawled(site)
                for variant in variants:
                    it = _kept(site, crawled, variant)
                    command.say(f"{path.stem}, {stretch.interval:g} days, {variant.name}: {it}")
                    of_site = found.setdefault(f"{stretch.interval:g} days", {})
                    of_site.setdefault(path.stem, {})[variant.name] = it
    return found


def dominated(sites: Mapping[str, Mapping[str, Judged]], name: str) -> dict[str, list[str]]:
    """By site, the other variants of fixed shares that are better in both."""
    found: dict[str, list[str]] = {}
    for site, of_site in sites.items():
        it = of_site[name]
        found[site] = [
            other
            for other, its in of_site.items()
            if "/" in other and its.freshness < it.freshness and its.delay < it.delay
        ]
    return found


def _crawled(site: _Site) -> Path:
    """A store with the whole site as it was when the stretch begins."""
    db = site.path.with_name(f"{site.path.stem}-{site.stretch.interval:g}.db")
    alive = sum(page.birth <= 0 for page in site.pages().values())
    clock = VirtualClock(site.begin - _BEFORE * _DAY_S)
    _run(site, db, clock, alive * _A_PAGE / _BEFORE, _BEFORE, {})
    return db


def _kept(site: _Site, crawled: Path, variant: Variant) -> Judged:
    db = crawled.with_suffix(".variant.db")
    shutil.copyfile(crawled, db)
    pages, days = site.pages(), site.stretch.days
    lived = sum(page.death - max(page.birth, 0.0) for page in pages.values())
    budget = lived / days / site.stretch.interval
    web = _run(site, db, VirtualClock(site.begin), budget, days, variant.settings())
    visits: defaultdict[int, list[float]] = defaultdict(list)
    for page, at in web.shown:
        visits[page].append((at - site.begin) / _DAY_S)
    db.unlink()
    return judged(pages, visits, site.linked(), len(web.asked))


def _run(
    site: _Site, db: Path, clock: VirtualClock, budget: float, days: float, said: dict[str, object]
) -> RecordedWeb:
    web = RecordedWeb(site.recording, clock)
    seeds = seeds_from_arguments([site.recording.start]).seeds
    order = DaemonOrder(db, seeds, budget, _POLICY, days * _DAY_S)
    settings, _ = load(None, {"crawl.contact": _CONTACT, "store.bodies_per_page": 2} | said)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(keep(settings, order, watch=unwatched, fetcher=web, clock=clock, rng=Random(1)))
    return web


def judged(
    pages: Mapping[int, Page],
    visits: Mapping[int, Sequence[float]],
    linked: set[int],
    requests: int,
) -> Judged:
    """What the visits to each page (days, ascending) came to; older pages were seen on day 0."""
    costs, kept, missing, early, new = Costs(), 0.0, 0.0, 0, 0
    for number, page in pages.items():
        seen = [day for day in visits.get(number, ()) if page.birth <= day < page.death]
        if page.birth <= 0:
            seen = [0.0, *seen]
        elif number in linked:
            until = min(seen[0] if seen else page.death, page.death)
            missing, new = missing + until - page.birth, new + 1
            early += bool(seen) and seen[0] - page.birth <= 7
        if seen:
            kept += page.death - seen[0]
            for since, until in pairwise([*seen, page.death]):
                costs.add(page, since, until)
    return Judged(
        requests, round(costs.harmonic / kept, 5), round(costs.binary / kept, 5),
        round(missing / max(new, 1), 3), round(early / max(new, 1), 4), new,
    )  # fmt: skip
