"""Covers: hub pages chosen for the new pages that they reveal, and their cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from math import inf, nan

import numpy as np

from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.discovery.reveal_graph import Reveals, Sightings, from_rows, reveals_of

# -- greedy --
#
# GREEDY: repeatedly take the page that reveals most of the remaining new pages (section 3.5.2).
#
# With a budget of k pages it finds at least 1 - 1/e of the new pages that any k pages could. To
# find all new pages, it needs at most a logarithmic factor more pages than the best cover.


def greedy(reveals: Reveals, budget: int | None = None) -> Ints:
    """Return at most ``budget`` old pages that reveal most of what can be revealed.

    The pages are in the order of the choice; ties are broken by the first. The gain of a page only
    shrinks as others are chosen, so that a page is valued again only when it is first in the heap
    (Minoux 1978); the choice is exact.

    Raises:
        ValueError: if the budget is below 0.
    """
    if budget is not None and budget < 0:
        raise ValueError(f"budget must be at least 0, not {budget}")
    limit = reveals.old if budget is None else budget
    uncovered = np.ones(reveals.new, np.bool_)
    pages = reveals.first_pages.tolist()
    waiting = [(-size, page) for size, page in zip(reveals.sizes.tolist(), pages, strict=True)]
    heapify(waiting)
    chosen: list[int] = []
    while len(chosen) < limit and waiting:
        bound, page = waiting[0]
        members = reveals.of(page)
        gain = int(np.count_nonzero(uncovered[members]))
        if not gain:
            heappop(waiting)
        elif gain < -bound:
            heapreplace(waiting, (-gain, page))
        else:
            heappop(waiting)
            chosen.append(page)
            uncovered[members] = False
    return np.array(chosen, np.int64)


# -- past --


@dataclass(frozen=True, slots=True)
class RecrawlHistory:
    """Full recrawls of a site before the choice of a cover, all of one weight (section 3.6.4).

    ``pages`` is the present number of pages, X_t. ``alive`` are those that existed at their last
    visit, of shape (pages,); None: all.
    """

    pages: int
    recrawls: Sequence[Reveals]
    alive: Bools | None = None

    def __post_init__(self) -> None:
        if any(each.old > self.pages for each in self.recrawls):
            raise ValueError("a recrawl has more old pages than the history has pages")

    def of_living(self, alive: Bools) -> RecrawlHistory:
        """Return the history as if removed pages had never revealed any page."""
        if alive.all():
            return self
        recrawls = [each.by(alive[: each.old]) for each in self.recrawls]
        return RecrawlHistory(self.pages, recrawls, alive)

    def fractions(self) -> Floats:
        """Return p_i^t of each page: the mean of its p_i.

        A page that did not exist yet counts as 0; recrawls without new pages are skipped. Shape
        (pages,).
        """
        total, telling = np.zeros(self.pages), [each for each in self.recrawls if each.new]
        for recrawl in telling:
            total[: recrawl.old] += recrawl.fractions
        return total / max(len(telling), 1)

    def ever(self) -> Ints:
        """Return every page that revealed a new one in any of the recrawls.

        No choice by history exceeds it (section 3.6.5): it is the bound "full" with a recrawl at
        every step, and the bound for w with one at every w-th.
        """
        found = np.zeros(self.pages, np.bool_)
        for recrawl in self.recrawls:
            found[: recrawl.old] |= recrawl.degrees > 0
        return np.asarray(np.flatnonzero(found), np.int64)


# -- evaluation --
#
# Evaluation of discovery algorithms: each chooses by past recrawls, and the next recrawl is the
# test.


@dataclass(frozen=True, slots=True)
class CoverRecord:
    """The covers of an algorithm, one for each recrawl of each site (section 3.6.6).

    Visits to ``size`` (m,) old pages revealed ``found`` (m,) of the ``new`` (m,) new ones.
    """

    size: Ints
    found: Ints
    new: Ints

    @property
    def coverage(self) -> float:
        """Return the revealed share of the new pages of all sites; NaN without new pages."""
        new = int(self.new.sum())
        return int(self.found.sum()) / new if new else nan

    @property
    def depth(self) -> float:
        """Return the mean size of a cover; NaN without covers."""
        return float(self.size.mean()) if len(self.size) else nan

    @property
    def overhead(self) -> float:
        """Return |O| / |N(O)|, visits per new page (section 3.2.1); inf if no page was found."""
        visits, found = int(self.size.sum()), int(self.found.sum())
        if not found:
            return inf if visits else 0.0
        return visits / found


def judged(
    recrawls: Sequence[Reveals],
    choose: Callable[[RecrawlHistory, Reveals], Ints],
    alive: Sequence[Bools],
) -> CoverRecord:
    """Evaluate an algorithm, which chooses before each recrawl except the first.

    ``choose`` is called with the past, and with the recrawl itself, which only a bound may use.
    ``alive`` are the old pages that existed at the beginning of a step, for each recrawl. Steps
    without new pages are omitted, because they cannot test a cover.
    """
    results = []
    for number in range(1, len(recrawls)):
        now = recrawls[number]
        if not now.new:
            continue
        past = RecrawlHistory(now.old, recrawls[:number]).of_living(alive[number])
        cover = choose(past, now)
        results.append((cover.size, int(now.covered(cover).sum()), now.new))
    return CoverRecord(*np.array(results, np.int64).reshape(-1, 3).T)


# -- new sites --
#
# Pages of a site that lead to unknown sites: H_t of appendix 9.1.
#
# The new nodes are other sites, not pages. Each is revealed by the old pages that link to it, and
# by those that lead to it through new pages only. The covers are chosen as for pages.


@dataclass(frozen=True, slots=True)
class SiteSightings:
    """The history of the links of a site to others; times as in ``pages``.

    Attributes:
        pages: the pages of the site that links, and the links between them.
        first_at: when each other site was first seen, on any page; of shape (sites,).
        source, target: the page and the other site that a link leads to; of shape (links,).
        seen_at: when it was first seen.
    """

    pages: Sightings
    first_at: Floats
    source: Ints
    target: Ints
    seen_at: Floats

    def between(self, start: float, end: float) -> Reveals:
        """Return H_t of the sites first seen after ``start``, up to ``end``."""
        sources, targets, old, both = self.pages.links_between(start, end)
        is_new = (start < self.first_at) & (self.first_at <= end)
        known = (self.source < both) & is_new[self.target]
        known[known] = self.pages.may_be_there(self.source[known], self.seen_at[known], end)
        number = np.cumsum(is_new) - 1
        source = np.concatenate((sources, self.source[known]))
        target = np.concatenate((targets, both + number[self.target[known]]))
        pages, new = both - old, int(is_new.sum())
        graph = reveals_of(old, pages + new, source, target)
        # Without the first new nodes: these are pages on the way to the sites.
        rows = ((int(page), graph.of(int(page))) for page in np.flatnonzero(graph.set_of >= 0))
        sites = ((page, found[found >= pages] - pages) for page, found in rows)
        return from_rows(old, new, sites)
