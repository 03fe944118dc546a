"""Windows of recorded sites, and what a copy of the site cost during one, by its true history.

A page costs from the day on which a chain of links first leads to it from the start page (looked at
daily; with a sitemap, from its birth) to its end. H(k) is a day's cost for k significant changes
missed; a page that exists and is not held has missed its birth as well. A change is significant
where an extractor that is not the crawler's finds another text (:mod:`scripts.benchmarks.
site_labels`); what the crawler's own finds is another window. Pages that live under 30 days are
left out. Days count from the first of the window.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from statistics import median

from scripts.benchmarks.daemon_sites import load_pages
from scripts.benchmarks.recorded_web import Recording
from scripts.benchmarks.site_labels import changes

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Known:
    """A page that counts from ``start`` to ``end``; ``born`` may be before the window."""

    start: float
    end: float
    born: float
    changes: tuple[float, ...]


@dataclass(slots=True)
class Bill:
    """What a copy cost in page-days: ``lived`` of them, ``harmonic`` and ``binary``.

    In ``missing`` of the binary ones there was none yet.

    ``delays`` are the days from the start of each page that came during the window to the first
    visit; those never ``found`` are not among them.
    """

    lived: float = 0.0
    harmonic: float = 0.0
    binary: float = 0.0
    missing: float = 0.0
    came: int = 0
    delays: list[float] = field(default_factory=list)

    def add(self, page: Known, visits: Iterable[float]) -> None:
        """Count a page that was visited on these days, ascending."""
        seen = [day for day in visits if page.born <= day < page.end]
        self.lived += page.end - page.start
        if page.start > 0:
            self.came += 1
            self.delays += [max(0.0, day - page.start) for day in seen[:1]]
        first = seen[0] if seen else page.end
        if first > page.start:
            after = page.changes[bisect_right(page.changes, page.start) :]
            self._missed(page, [page.start, *after], min(first, page.end))
            self.missing += min(first, page.end) - page.start
        for since, until in pairwise([*seen, page.end]):
            if until > page.start:
                begin, stop = (bisect_right(page.changes, day) for day in (since, until))
                self._missed(page, page.changes[begin:stop], until)

    def _missed(self, page: Known, changes: Sequence[float], until: float) -> None:
        days = [until - max(day, page.start) for day in changes if day < until]
        self.harmonic += sum(each / k for k, each in enumerate(days, start=1))
        self.binary += days[0] if days else 0.0

    def __add__(self, other: Bill) -> Bill:
        return Bill(
            self.lived + other.lived, self.harmonic + other.harmonic, self.binary + other.binary,
            self.missing + other.missing, self.came + other.came, self.delays + other.delays,
        )  # fmt: skip

    @property
    def cost(self) -> float:
        """The mean harmonic cost of a page and day."""
        return self.harmonic / self.lived

    @property
    def stale(self) -> float:
        """The mean share of pages that are stale or missing."""
        return self.binary / self.lived

    @property
    def median_delay(self) -> float:
        """The median of the days until a new page was found; one that never was waited for ever."""
        return median([*self.delays, *([inf] * (self.came - len(self.delays)))] or [0.0])


@dataclass(frozen=True, slots=True)
class Window:
    """``days`` of a recorded site from its day ``first`` on.

    ``pages`` are those that count, by their ids in the recording; ``rates`` their true changes a
    day over the whole recording. Equal pages stand in the order of a ``seed``.
    """

    site: Recording
    first: float
    days: float
    pages: Mapping[int, Known]
    rates: Mapping[int, float]
    seed: int = 0

    @classmethod
    def of(
        cls, site: Recording, first: float, days: float, *, sitemap: bool = False, own: bool = False
    ) -> Window:
        """The window of a recording; with a ``sitemap`` a page is known from its birth on.

        Changes are the crawler's ``own`` ones, or those of an independent extractor.
        """
        origin = site.begin + first * DAY_S
        shown = {} if sitemap else _reached(site, origin, days)
        pages, rates = {}, {}
        theirs = {} if own else changes(site)
        for number, page in load_pages(site.path).items():
            days_of = ((at - site.begin) / DAY_S for at in theirs.get(number, ()))
            within = tuple(day for day in days_of if page.birth < day < page.death)
            changed = page.changes if own else within
            born, end = page.birth - first, min(page.death - first, days)
            start = max(born, 0.0) if sitemap else max(born, shown.get(number, inf))
            if start < end:
                days_there = tuple(day - first for day in changed if day - first < end)
                pages[number] = Known(start, end, born, days_there)
                rates[number] = len(changed) / (page.death - page.birth)
        return cls(site, first, days, pages, rates)

    @property
    def begin(self) -> float:
        """Its first moment, in Unix seconds of the recording."""
        return self.site.begin + self.first * DAY_S

    @property
    def mean_pages(self) -> float:
        """The mean number of pages alive."""
        return sum(page.end - page.start for page in self.pages.values()) / self.days

    def bill(self, visits: Mapping[int, Sequence[float]]) -> Bill:
        """What a copy cost whose pages were visited on these days."""
        bill = Bill()
        for number, page in self.pages.items():
            bill.add(page, visits.get(number, ()))
        return bill


def _reached(site: Recording, origin: float, days: float) -> dict[int, float]:
    """The day on which a chain of links first led to each page, 0 for the first."""
    first: dict[int, float] = {}
    for day in range(int(days) + 1):
        for page in site.reachable(origin + day * DAY_S):
            first.setdefault(page, float(day))
    return first
