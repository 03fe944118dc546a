"""Two orders of visits for searchers, compared on what a site's visits showed.

The first half of the past teaches both the site's clock, and one of them what a missed change of
each page costs (:class:`.search_quality.Marks`). In the second half each makes as many visits as
were made (:mod:`freshet.scheduler.evaluate.counterfactual`). A change that the archive shows with
the quality change y, and that an order finds d days later, costs it y d: with the mean of the
harmonic cost, and without what is unknown of changes between captures, which is the same for both.
"""

from dataclasses import dataclass, replace

import numpy as np

from freshet.crawler.extensions.readers.search_quality import Marks, as_importance
from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.evaluate.captures import GONE, Captures, content_before
from freshet.scheduler.evaluate.counterfactual import ReplayTerms, run
from freshet.scheduler.evaluate.serving import silent
from freshet.scheduler.queue.site_clock_ranker import SiteClockRanker
from freshet.scheduler.sources import Rows

#: A gain is one if the loss is at most this share, and it is so many standard errors above 0.
_AT_MOST = 0.95
_ERRORS = 1.64
#: Changes with a quality change in each half, below which nothing is judged.
_LEAST = 30


@dataclass(frozen=True, slots=True)
class PairedLoss:
    """The losses of the site clock without marks and with them, in usefulness of a query, by day.

    ``error`` is the standard error of their difference, pages being independent; ``changes`` were
    judged.
    """

    plain: float
    marked: float
    error: float
    changes: int

    @property
    def is_gain(self) -> bool:
        """True if marks gain by more than chance, and enough to be worth it."""
        return self.marked <= min(_AT_MOST * self.plain, self.plain - _ERRORS * self.error)


def paired_loss(captures: Captures, change: Floats, usefulness: Floats) -> PairedLoss | None:
    """Compare the two orders on a site's past; None where it shows too little.

    Args:
        captures: of n pages; their importance does not count.
        change: (m,), the measured quality change of each capture, 0 where there was none.
        usefulness: (n,), u.
    """
    if not len(captures.at):
        return None
    at, page, first, end = captures.at, captures.page, captures.at.min(), captures.at.max()
    middle = (first + end) / 2
    is_early = at <= middle
    before = content_before(page, captures.content)
    is_content = (captures.content >= 0) | (captures.content == GONE)
    changed = is_content & (before >= 0) & (captures.content != before)
    told = changed & (change > 0)
    if min(int((told & is_early).sum()), int((told & ~is_early).sum())) < _LEAST:
        return None
    values = _marks(captures, change, usefulness, is_early & is_content, changed)
    terms = ReplayTerms(float((~is_early).sum() / (end - middle)), middle, end, given=True)
    late = np.flatnonzero(told & ~is_early)
    delays = [
        _delays(replace(captures, importance=importance), terms, late)
        for importance in (np.ones(len(captures)), as_importance(values))
    ]
    costs = [change[late] * delay / (end - middle) for delay in delays]
    by_page = np.bincount(page[late], costs[0] - costs[1])
    plain, marked = (float(cost.sum()) for cost in costs)
    return PairedLoss(plain, marked, float(np.sqrt((by_page**2).sum())), len(late))


def _marks(
    captures: Captures, change: Floats, usefulness: Floats, seen: Bools, changed: Bools
) -> Floats:
    """Return m̂ (n,) by the captures that were ``seen``."""
    page, at = captures.page[seen], captures.at[seen]
    n, found = len(captures), changed[seen]
    first, last = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(first, page, at)
    np.maximum.at(last, page, at)
    age = np.maximum(last - first, 0.0)
    number = np.bincount(page, found, n)
    usual = max(float(number.sum()), 1.0) / max(float(age.sum()), 1e-9)
    rate = (number + 1) / (age + 1 / usual)
    gap = np.where(np.diff(page, prepend=-1) == 0, np.diff(at, prepend=at[:1]), 0.0)
    marks = Marks()
    marks.add(n)
    marks.learn(page, rate[page] * gap, change[seen], found)
    return marks.values(usefulness=usefulness, age=age, rate=rate)


def _delays(captures: Captures, terms: ReplayTerms, changes: Rows) -> Floats:
    """Return the days after which an order's visits find each of these captures, or the end is."""
    asks = run(captures, SiteClockRanker(terms.budget), terms, silent)
    order = np.lexsort((asks.at, asks.page))
    key = asks.page[order] * (2 * terms.end) + asks.at[order]
    page, at = captures.page[changes], captures.at[changes]
    place = np.searchsorted(key, page * (2 * terms.end) + at)
    found = np.full(len(changes), terms.end)
    there = place < len(order)
    same = np.flatnonzero(there)[asks.page[order[place[there]]] == page[there]]
    found[same] = asks.at[order[place[same]]]
    delay: Floats = found - at
    return delay
