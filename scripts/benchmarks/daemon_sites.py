"""The daemon's learning against the true history of recorded sites, without fetching.

Accounting: a change is significant if the main text is another and resembles the one before by
0.98 at most, and that is what a visit sees. Pages that live under 30 days are left out; the first
1,200 days; every page is known and fresh at the start or at its birth; one visit every 1/R days,
R the mean number of pages alive divided by the interval; nothing but visits is heard. Costs are
shares of those of uniform periodic visits, as many.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean, geometric_mean
from typing import TypeAlias

import numpy as np
import zstandard

from freshet.crawler.run.importance import Areas
from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.queue.ranker import Ranker
from freshet.scheduler.queue.rankers import ranker_of
from scripts.benchmarks import command
from scripts.benchmarks.daemon_rivals import RIVALS

_DAY_S = 86_400.0
_DAYS = 1_200.0
_LEAST_LIFE = 30.0
_SIGNIFICANT = 0.98
_INTERVALS = (60.0, 20.0, 5.0)
_ORIGIN = "http://recorded.localhost"

#: Costs as shares of uniform ones, harmonic and binary, for each order of the pages.
Shares: TypeAlias = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Page:
    """A page with its life and the days of its significant changes."""

    url: str
    birth: float
    death: float
    changes: tuple[float, ...]


@dataclass(slots=True)
class Costs:
    """Days for which copies were stale: by harmonic numbers of missed changes, and at all."""

    harmonic: float = 0.0
    binary: float = 0.0

    def add(self, page: Page, since: float, until: float) -> bool:
        """Count what a copy of day ``since`` cost until then; whether the page had changed."""
        first, last = bisect_right(page.changes, since), bisect_right(page.changes, until)
        missed = page.changes[first:last]
        self.harmonic += sum((until - at) / n for n, at in enumerate(missed, start=1))
        self.binary += until - missed[0] if missed else 0.0
        return bool(missed)


def load(path: Path) -> list[Page]:
    """The pages of a recorded site, in the order of their births."""
    return sorted(load_pages(path).values(), key=lambda page: page.birth)


def load_pages(path: Path, significant: float = _SIGNIFICANT) -> dict[int, Page]:
    """The pages of a recorded site by their ids.

    A change is ``significant`` where the main text resembles the one before by so much at most: by
    1, where it is another at all.
    """
    connection = sqlite3.connect(path)
    (start,) = connection.execute("SELECT min(time) FROM versions").fetchone()
    (end,) = connection.execute("SELECT max(time) FROM versions").fetchone()
    horizon = min(_DAYS, (end - start) / _DAY_S)
    pages = {}
    for page_id, url, first, last in connection.execute(
        "SELECT id, url, first_seen, last_seen FROM pages WHERE kind = 'html' ORDER BY id"
    ):
        birth = (first - start) / _DAY_S
        death = ((end if last is None else last) - start) / _DAY_S
        if death - birth >= _LEAST_LIFE and birth < horizon:
            death = min(death, horizon)
            days = _changes(connection, page_id, start, significant)
            changes = tuple(at for at in days if birth < at < death)
            pages[page_id] = Page(f"{_ORIGIN}{url}", birth, death, changes)
    connection.close()
    return pages


def recorded(directory: Path, workspace: Path) -> Iterator[Path]:
    """The recorded sites of a directory (``*.sqlite.zst``), unpacked."""
    for packed in sorted(directory.glob("*.sqlite.zst")):
        path = workspace / packed.name.removesuffix(".zst")
        with packed.open("rb") as source, path.open("wb") as target:
            zstandard.ZstdDecompressor().copy_stream(source, target)
        yield path


def compared(
    directory: Path, workspace: Path, seeds: int, *, rivals: bool = False
) -> dict[str, object]:
    """Costs as shares of uniform ones, by interval and site, means over orders of the pages.

    With ``rivals`` also those of others, and where the daemon's are less.
    """
    ours: dict[str, dict[str, Shares]] = {}
    theirs: dict[str, dict[str, dict[str, Shares]]] = {}
    for path in recorded(directory, workspace):
        pages = load(path)
        for interval in _INTERVALS:
            when = f"{interval:g} days"
            even = [uniform(pages, looks_a_day(pages, interval), seed) for seed in range(seeds)]
            shares = _shares(pages, interval, even, _ours)
            command.say(f"{path.stem}, every {when}: {shares}")
            ours.setdefault(when, {})[path.stem] = shares
            for name, rival in RIVALS.items() if rivals else ():
                shares = _shares(pages, interval, even, rival.make)
                command.say(f"{path.stem}, every {when}, {name}: {shares}")
                theirs.setdefault(when, {}).setdefault(path.stem, {})[name] = shares
    found: dict[str, object] = {
        "seeds": seeds,
        "geometric_means": {when: _means(sites.values()) for when, sites in ours.items()},
        "shares_of_uniform": ours,
    }
    return found | (_beside(ours, theirs) if rivals else {})


def _ours(_pages: int, _seed: int, rate: float) -> Ranker:
    return ranker_of("site_clock", rate)


def _shares(
    pages: Sequence[Page],
    interval: float,
    even: Sequence[Costs],
    make: Callable[[int, int, float], Ranker],
) -> Shares:
    """What visits cost beside uniform ones, for each order of the pages."""
    rate = looks_a_day(pages, interval)
    costs = [kept(pages, rate, seed, make(len(pages), seed, rate)) for seed in range(len(even))]
    both = list(zip(costs, even, strict=True))
    return {
        "harmonic": [round(float(c.harmonic / e.harmonic), 4) for c, e in both],
        "binary": [round(float(c.binary / e.binary), 4) for c, e in both],
    }


def _means(sites: Iterable[Shares]) -> dict[str, float]:
    """Geometric means over sites of the means over orders."""
    shares = list(sites)
    return {
        cost: round(geometric_mean(fmean(share[cost]) for share in shares), 4)
        for cost in ("harmonic", "binary")
    }


def _beside(
    ours: dict[str, dict[str, Shares]], theirs: dict[str, dict[str, dict[str, Shares]]]
) -> dict[str, object]:
    """The rivals' costs, and at which intervals and on which sites the daemon's are not less."""
    places = [(when, site) for when, sites in theirs.items() for site in sites]
    judged = {
        name: {
            "geometric_means": {
                when: _means(site[name] for site in sites.values())
                for when, sites in theirs.items()
            },
            **{
                f"daemon_is_better_{cost}": _wins(
                    {
                        f"{site}, {when}": fmean(ours[when][site][cost])
                        < fmean(theirs[when][site][name][cost])
                        for when, site in places
                    }
                )
                for cost in ("harmonic", "binary")
            },
        }
        for name in RIVALS
    }
    return {
        "rivals": {name: {"what": RIVALS[name].what, **found} for name, found in judged.items()},
        "rivals_shares_of_uniform": theirs,
    }


def _wins(better: dict[str, bool]) -> dict[str, object]:
    return {
        "on": sum(better.values()),
        "of": len(better),
        "goal": len(better),
        "not_on": [place for place, is_better in better.items() if not is_better],
    }


def _changes(
    connection: sqlite3.Connection, page_id: int, start: float, significant: float
) -> Iterator[float]:
    before = None
    for at, blob, main, likeness in connection.execute(
        "SELECT time, blob, main_hash, jac_main FROM versions WHERE page = ? ORDER BY time",
        (page_id,),
    ):
        if blob is None:
            continue
        # Without a likeness it stood after a deletion: it is there again, not another.
        is_other = before is not None and main != before and likeness is not None
        if is_other and likeness <= significant:
            yield (at - start) / _DAY_S
        before = main


def looks_a_day(pages: Sequence[Page], interval: float) -> float:
    """R: the mean number of pages alive by the interval."""
    days = max(page.death for page in pages)
    return sum(page.death - page.birth for page in pages) / days / interval


def uniform(pages: Sequence[Page], rate: float, seed: int) -> Costs:
    """All pages in turn, the one visited longest ago next."""
    return Run(pages, seed, None).costs(rate)


def kept(pages: Sequence[Page], rate: float, seed: int, ranker: Ranker) -> Costs:
    """What is worth most next, learning from what was found."""
    return Run(pages, seed, ranker).costs(rate)


class Run:
    """Looks at a site, one after the other; the pages that were there first in a random order.

    Attributes:
        pages, last, alive: in the order of the births; the days of the last visits.
        bill: what the copies cost.
        ranker: what values pages, None for visits in turn.
        first_row: the row of the first page there.
    """

    def __init__(self, pages: Sequence[Page], seed: int, ranker: Ranker | None) -> None:
        shuffled = list(pages)
        Random(seed).shuffle(shuffled)
        self.pages = sorted(shuffled, key=lambda page: max(page.birth, 0.0))
        self.ranker = ranker
        self.first_row = 0
        self._area_of = Areas()
        # As a crawl does, it begins with the page under which all others stand.
        self._area_of([min((page.url for page in pages), key=len)])
        self._death = np.array([page.death for page in self.pages])
        self.last = np.array([page.birth for page in self.pages])
        self.alive = np.zeros(len(pages), np.bool_)
        self._born = 0
        self.bill = Costs()

    def costs(self, rate: float) -> Costs:
        """What the copies cost under so many visits a day."""
        end, number = float(self._death.max()), 1
        while (now := number / rate) < end:
            self._be_born(now)
            self._die(now)
            if self.alive.any():
                self.visit(now)
            number += 1
        self._die(end)
        return self.bill

    def _be_born(self, now: float) -> None:
        first = self._born
        while self._born < len(self.pages) and self.pages[self._born].birth < now:
            self._born += 1
        born = self.pages[first : self._born]
        self.alive[first : self._born] = True
        if born and self.ranker is not None:
            at = self.last[first : self._born]
            self.ranker.add(
                np.zeros(len(born), np.intp),
                self._area_of([page.url for page in born]),
                np.ones(len(born)),
                at,
            )
            rows, none = (
                np.arange(first, self._born) + self.first_row,
                np.zeros(len(born), np.bool_),
            )
            self.ranker.learn(VisitResults(rows, at, none, none, none, none))

    def _die(self, now: float) -> None:
        for row in np.flatnonzero(self.alive & (self._death <= now)).tolist():
            self.alive[row] = False
            self.bill.add(self.pages[row], self.last[row], self._death[row])
            if self.ranker is not None:
                self.ranker.learn(
                    VisitResults.one(row + self.first_row, now, changed=None, gone=True)
                )

    def visit(self, now: float) -> None:
        """Spend one request."""
        known = slice(0, self._born)
        worth = -self.last[known] if self.ranker is None else self.ranker.values(now)
        row = int(np.argmax(np.where(self.alive[known], worth, -np.inf)))
        changed = self.bill.add(self.pages[row], self.last[row], now)
        self.last[row] = now
        if self.ranker is not None:
            self.ranker.learn(VisitResults.one(row, now, changed=changed))
