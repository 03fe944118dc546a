"""Covers: hub pages chosen for the new pages that they reveal, and their cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from math import ceil, inf

import numpy as np

from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.discovery.reveals import Reveals


@dataclass(frozen=True, slots=True)
class CoverOutcome:
    """The result of a cover: ``size`` old pages revealed ``found`` of ``new`` new ones."""

    size: int
    found: int
    new: int

    @property
    def overhead(self) -> float:
        """Return |O| / |N(O)|: visits for each new page (section 3.2.1); inf for nothing."""
        if not self.found:
            return inf if self.size else 0.0
        return self.size / self.found

    @property
    def coverage(self) -> float:
        """Return the share of the new pages that it revealed; 1 where nothing was new."""
        return self.found / self.new if self.new else 1.0


def outcome(reveals: Reveals, cover: Ints) -> CoverOutcome:
    """Return the result of visiting these old pages; each counts, even without new pages."""
    return CoverOutcome(int(cover.size), int(reveals.covered(cover).sum()), reveals.new)


# -- greedy ------------------------------------------------------------------
#
# GREEDY: the page that reveals most of what is left, again and again (section 3.5.2).
#
# With a budget of k pages it finds at least 1 - 1/e of what any k pages could; for a share of the
# new pages it needs at most a logarithmic factor more pages than the best cover.

#: Taken off before a share of pages is rounded up: .1 of 30 is 3, whatever the machine thinks.
_ROUNDING = 1e-9


def greedy(reveals: Reveals, *, budget: int | None = None, share: float = 1.0) -> Ints:
    """Return at most ``budget`` old pages that reveal ``share`` of what can be revealed.

    In the order in which they are chosen; of equal ones the first. Orphans count for nothing: they
    are not in the share. What a page adds only shrinks as others are chosen, so that a page is
    valued anew only when it stands first (Minoux 1978); the choice is exact.

    Raises:
        ValueError: the share is not between 0 and 1, or the budget below 0.
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share must be from 0 to 1, not {share}")
    if budget is not None and budget < 0:
        raise ValueError(f"budget must be at least 0, not {budget}")
    left = ceil(share * (reveals.new - reveals.orphans) - _ROUNDING)
    limit = reveals.old if budget is None else budget
    uncovered = np.ones(reveals.new, np.bool_)
    pages = reveals.first_pages.tolist()
    waiting = [(-size, page) for size, page in zip(reveals.sizes.tolist(), pages, strict=True)]
    heapify(waiting)
    chosen: list[int] = []
    while left > 0 and len(chosen) < limit and waiting:
        bound, page = waiting[0]
        members = reveals.of(page)
        gain = int(np.count_nonzero(uncovered[members]))
        if gain < -bound:
            if gain:
                heapreplace(waiting, (-gain, page))
            else:
                heappop(waiting)
            continue
        heappop(waiting)
        chosen.append(page)
        uncovered[members] = False
        left -= gain
    return np.array(chosen, np.int64)


# -- past --


@dataclass(frozen=True, slots=True)
class RecrawlHistory:
    """Full recrawls of a site before the choice of a cover, at time ``at`` (section 3.6.4).

    Times count in steps of any length. ``pages`` says how many pages there are by now: X_t.
    ``alive`` are those that existed at their last visit, of shape (pages,); None: all.
    """

    pages: int
    at: float
    times: Sequence[float]
    recrawls: Sequence[Reveals]
    alive: Bools | None = None

    def __post_init__(self) -> None:
        if len(self.times) != len(self.recrawls):
            raise ValueError(f"{len(self.times)} times for {len(self.recrawls)} recrawls")
        if any(each.old > self.pages for each in self.recrawls):
            raise ValueError("a recrawl knows more old pages than there are pages")

    def of_living(self, alive: Bools) -> RecrawlHistory:
        """Return the history as if pages that are gone had never revealed anything."""
        if alive.all():
            return self
        recrawls = [each.by(alive[: each.old]) for each in self.recrawls]
        return RecrawlHistory(self.pages, self.at, self.times, recrawls, alive)

    @property
    def last(self) -> RecrawlHistory:
        """Return the history of the last recrawl only."""
        return RecrawlHistory(self.pages, self.at, self.times[-1:], self.recrawls[-1:], self.alive)

    @property
    def last_news(self) -> Reveals | None:
        """Return the last recrawl in which a page revealed anything."""
        return next((each for each in reversed(self.recrawls) if each.members.size), None)

    def weights(self, alpha: float = 1.0) -> Floats:
        """Return the weight of each recrawl, alpha^(t - t'); of shape (recrawls,).

        Raises:
            ValueError: alpha is not above 0 and at most 1.
        """
        if not 0.0 < alpha <= 1.0:
            raise ValueError(f"alpha must be above 0 and at most 1, not {alpha}")
        return np.asarray(alpha ** (self.at - np.asarray(self.times, np.float64)), np.float64)

    def fractions(self, alpha: float = 1.0) -> Floats:
        """Return p_i^t of each page: the mean of its p_i, weighted with alpha^(t - t').

        A page that was not there yet revealed nothing; a recrawl in which nothing was new says
        nothing of any. Of shape (pages,).

        Raises:
            ValueError: alpha is not above 0 and at most 1.
        """
        total, weights = np.zeros(self.pages), 0.0
        for weight, recrawl in zip(self.weights(alpha).tolist(), self.recrawls, strict=True):
            if not recrawl.new:
                continue
            total[: recrawl.old] += weight * recrawl.fractions
            weights += weight
        return total / weights if weights else total

    def ever(self) -> Bools:
        """Return a mask (pages,) of the pages that revealed anything in any recrawl."""
        found = np.zeros(self.pages, np.bool_)
        for recrawl in self.recrawls:
            found[: recrawl.old] |= recrawl.degrees > 0
        return found


# -- limits --


def historical_limit(past: RecrawlHistory) -> Ints:
    """Return every page that revealed a new one in any of the recrawls.

    No choice by history exceeds it (section 3.6.5): the bound called full with a recrawl at every
    step, and that for w with one at every w-th.
    """
    return np.asarray(np.flatnonzero(past.ever()), np.int64)
