"""The daemon's learning from claims against the true history of recorded sites, without fetching.

The accounting is that of :mod:`scripts.benchmarks.daemon_sites`, but the site has a sitemap, which
gives for each page the time of its last version, whatever changed in it. It is asked when the
daemon's learning finds it worth most, and each poll is one of the visits that are paid.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from math import floor
from pathlib import Path
from statistics import fmean, geometric_mean

import numpy as np

from freshet.scheduler.estimate.evidence import SignalBatch, VisitResults
from freshet.scheduler.queue.rankers import ranker_of
from freshet.scheduler.queue.site_clock_ranker import SiteClockRanker
from scripts.benchmarks import command
from scripts.benchmarks.daemon_sites import (
    Page,
    Run,
    kept,
    load_pages,
    looks_a_day,
    recorded,
    uniform,
)

_DAY_S = 86_400.0
SEEDS = 4
INTERVALS = (60.0, 20.0, 5.0)
#: Wanted of true sitemaps, and beyond.
GOALS = (0.50, 0.35)


@dataclass(slots=True)
class Sitemap:
    """The days of the versions of each page, and what was claimed last of it."""

    stamped: bool
    versions: list[tuple[float, ...]] = field(default_factory=list)
    claimed: dict[int, float] = field(default_factory=dict)
    polls: int = 0

    def moved(self, row: int, since: float, until: float) -> bool:
        """Whether a page got another version in between."""
        days = self.versions[row]
        return bisect_right(days, since) < bisect_right(days, until)

    def poll(self, rows: Sequence[int], now: float) -> tuple[list[int], list[float]]:
        """The pages of which it says something else than last time, and their days."""
        self.polls += 1
        found, since = [], []
        for row in rows:
            place = bisect_right(self.versions[row], now)
            at = floor(now) if self.stamped else self.versions[row][max(place - 1, 0)]
            if self.claimed.get(row) != at:
                self.claimed[row] = at
                found.append(row)
                since.append(at)
        return found, since


@dataclass(frozen=True, slots=True)
class Versioned(Page):
    """A page with the days of all of its versions."""

    versions: tuple[float, ...] = ()


def load(path: Path) -> list[Versioned]:
    """The pages of a recorded site, in the order of their births."""
    versions: dict[int, list[float]] = {}
    with closing(sqlite3.connect(path)) as connection:
        (start,) = connection.execute("SELECT min(time) FROM versions").fetchone()
        for page_id, at in connection.execute(
            "SELECT page, time FROM versions WHERE blob IS NOT NULL ORDER BY page, time"
        ):
            versions.setdefault(page_id, []).append((at - start) / _DAY_S)
    pages = [
        Versioned(page.url, page.birth, page.death, page.changes, tuple(versions[page_id]))
        for page_id, page in load_pages(path).items()
    ]
    return sorted(pages, key=lambda page: page.birth)


class _WithSitemap(Run):
    """Looks at a site whose sitemap is asked in between; the sitemap is row 0 of the ranker."""

    def __init__(
        self, pages: Sequence[Versioned], seed: int, ranker: SiteClockRanker, sitemap: Sitemap
    ) -> None:
        super().__init__(pages, seed, ranker)
        self._sitemap, self._learning = sitemap, ranker
        sitemap.versions = [page.versions for page in self.pages if isinstance(page, Versioned)]
        self.first_row = 1
        one = np.zeros(1, np.intp)
        ranker.add(one, one, np.ones(1), np.zeros(1))

    def visit(self, now: float) -> None:
        """Ask for a page, or for the sitemap; for that at first."""
        worth = self._learning.values(now)
        mine = np.where(self.alive[: len(worth) - 1], worth[1:], -np.inf)
        if worth[0] >= mine.max() or not self._sitemap.polls:
            self._poll(now)
            return
        row = int(np.argmax(mine))
        moved = self._sitemap.moved(row, self.last[row], now)
        changed = self.bill.add(self.pages[row], self.last[row], now)
        self.last[row] = now
        self._learning.learn(VisitResults.one(row + 1, now, changed=changed, moved=moved))

    def _poll(self, now: float) -> None:
        rows, since = self._sitemap.poll(np.flatnonzero(self.alive).tolist(), now)
        at = np.array(since)
        self._learning.receive(SignalBatch(0, 0, now, np.array(rows, np.intp) + 1, at, at))


def silent(pages: Sequence[Versioned], interval: float, seed: int) -> float:
    """The harmonic cost of visits without claims, as a share of that of uniform ones."""
    rate = looks_a_day(pages, interval)
    even = uniform(pages, rate, seed)
    return kept(pages, rate, seed, ranker_of("site_clock", rate)).harmonic / even.harmonic


def listened(
    pages: Sequence[Versioned], interval: float, seed: int, *, stamped: bool
) -> tuple[float, float]:
    """The same with a sitemap, and the share of the visits that went to it."""
    rate = looks_a_day(pages, interval)
    even = uniform(pages, rate, seed)
    ranker = SiteClockRanker(rate)
    sitemap = Sitemap(stamped)
    costs = _WithSitemap(pages, seed, ranker, sitemap).costs(rate)
    days = max(page.death for page in pages)
    return costs.harmonic / even.harmonic, sitemap.polls / (rate * days)


def figures(directory: Path) -> dict[str, object]:
    """Costs by interval and site: without claims, with true ones, and with everything stamped."""
    costs: dict[str, dict[str, dict[str, float]]] = {}
    with command.workspace() as workspace:
        for path in recorded(directory, workspace):
            pages = load(path)
            for interval in INTERVALS:
                when = f"{interval:g} days"
                found = _compared(pages, interval)
                command.say(f"{path.stem}, every {when}: {found}")
                costs.setdefault(when, {})[path.stem] = found
    return {
        "seeds": SEEDS,
        "goal_harmonic_at_20_days": GOALS,
        "geometric_means": {when: _means(sites) for when, sites in costs.items()},
        "shares_of_uniform": costs,
    }


def _compared(pages: Sequence[Versioned], interval: float) -> dict[str, float]:
    """Harmonic costs as shares of uniform ones, means over orders; and the polls."""
    each = [
        (silent(pages, interval, seed), listened(pages, interval, seed, stamped=False),
         listened(pages, interval, seed, stamped=True))
        for seed in range(SEEDS)
    ]  # fmt: skip
    without, true, stamped = zip(*each, strict=True)
    return {
        "without": round(fmean(without), 4),
        "sitemap": round(fmean(cost for cost, _ in true), 4),
        "polls_of_looks": round(fmean(polls for _, polls in true), 3),
        "stamped": round(fmean(cost for cost, _ in stamped), 4),
        "stamped_of_without": round(fmean(cost for cost, _ in stamped) / fmean(without), 4),
        "stamped_polls_of_looks": round(fmean(polls for _, polls in stamped), 3),
    }


def _means(sites: dict[str, dict[str, float]]) -> dict[str, float]:
    return {
        name: round(geometric_mean(site[name] for site in sites.values()), 4)
        for name in ("without", "sitemap", "stamped", "stamped_of_without")
    }
