"""The value of a visit to each page, by what is known; nothing here changes what is known.

A visit is worth what it keeps fresh and what it reveals together. A page that has never been
captured must be once, sooner or later, so that waiting saves nothing: it is worth a turn (the days
in which all captured pages could be visited) more than one that has certainly changed. Of ephemeral
sources, and of what appears there, :mod:`freshet.scheduler.queue.ephemeral` speaks.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from freshet.compiled import numeric
from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.discovery.hub_yield import ExpectedReveals
from freshet.scheduler.queue.ephemeral import decaying
from freshet.scheduler.queue.hosts import HostCodes
from freshet.scheduler.queue.new_pages import HubPages
from freshet.scheduler.queue.page_rules import DiscoveryTerms
from freshet.scheduler.queue.pages import PageTable
from freshet.scheduler.queue.ranker import Ranker
from freshet.scheduler.queue.rankers import IntervalRanker, PolicyRanker
from freshet.scheduler.sources import Rows

#: Overdue visits and those that come at once are worth more.
CANNOT_WAIT: Final = 1e100
_AT_ONCE: Final = 1e120


@dataclass(frozen=True, slots=True)
class VisitValues:
    """The values of visits to n pages.

    Attributes:
        worth: (n,), in all.
        new: (n,), for the pages that a visit reveals.
        discovers: (n,), whether most of it is for pages that are not captured yet.
        sources: the rows of the pages that are taken for ephemeral sources, ascending.
        arrivals: the new items a day at each of these.
        urgent: the rows of the items that come at once.
        revealing: what visits reveal.
        turn: days in which all captured pages could be visited.
    """

    worth: Floats
    new: Floats
    discovers: Bools
    sources: Rows
    arrivals: Floats
    urgent: Rows
    revealing: ExpectedReveals
    turn: float


@dataclass(frozen=True, slots=True)
class VisitValuer:
    """Values visits on one day under a budget, by pages, their hosts, and what a ranker knows."""

    pages: PageTable
    hubs: HubPages
    hosts: HostCodes
    ranker: Ranker
    terms: DiscoveryTerms
    budget: float
    now: float

    @property
    def has_price(self) -> bool:
        """Return whether values of the ranker can be compared with the price of a request."""
        return not isinstance(self.ranker, PolicyRanker)

    @property
    def held(self) -> Bools:
        """Return (n,), whether there is a copy of a page, which was there at its last visit."""
        found: Bools = self.pages["captured"] & (self.pages["gone"] == 0)
        return found

    def values(self, fresh: Floats) -> VisitValues:
        """Return what visits are worth; ``fresh`` (n,) is for what they keep fresh."""
        pages, now = self.pages, self.now
        revealing = self.hubs.revealing(pages, now, self.terms.discovery)
        new = (self.terms.missing if self.terms.come else 0.0) * revealing.worth
        if isinstance(self.ranker, IntervalRanker):
            # It leaves pages alone until they are due, whatever a visit might reveal.
            new[~self.ranker.due(now)] = 0.0
        (row, arrivals, faded), (urgent, urgency) = decaying(
            pages, self.hubs, revealing, self.terms, now, cost=self.hosts.cost()
        )
        both = fresh + new
        both[row] = np.maximum(both[row], faded)
        new[row] = np.maximum(new[row], faded)
        turn = int(np.count_nonzero(pages["captured"])) / self.budget
        worth = pages.weighted(both, now, turn, self.terms.missing)
        worth[urgent] = _AT_ONCE * urgency
        return VisitValues(
            worth=worth,
            new=new,
            discovers=(new > fresh) | ~pages["captured"],
            sources=row,
            arrivals=arrivals,
            urgent=urgent,
            revealing=revealing,
            turn=turn,
        )

    def offers(self, values: VisitValues, empty_above: float, spent: Rows) -> tuple[Floats, Ints]:
        """Return (n,), what visits are worth that may be made now, and (H,) where names lead.

        URLs without content are asked if they are worth at least ``empty_above``. Of the ``spent``
        rows only what cannot wait is asked, and what has led to new pages. The second array has the
        host to which a host has only redirected, or −1.
        """
        pages, worth = self.pages, values.worth
        left = np.where(pages.may_be_asked(self.now), worth, 0.0)
        names, targets = pages.names(self.hosts.places)
        left[names] = 0.0
        left[pages["empty"] & (worth < empty_above)] = 0.0
        # What has led to new pages tells something; bounds and wishes stand above the share.
        told = np.isin(spent, values.revealing.by)
        left[spent[~told & (worth[spent] < CANNOT_WAIT)]] = 0.0
        return left, targets

    def tomorrow(self, values: VisitValues, offered: Floats) -> Floats:
        """Return (n,), what the ``offered`` visits (n,) are worth a day from now."""
        if not self.has_price:
            return offered
        then = self.now + 1.0
        fresh = self.ranker.worth(then)
        later = self.pages.weighted(fresh + values.new, then, values.turn, self.terms.missing)
        later[offered <= 0] = 0.0
        return later

    def unvisited(self) -> Bools:
        """Return (H,), whether none of a host's pages was ever asked."""
        asked = self.pages["captured"] | np.isfinite(self.pages["absent"])
        found: Bools = self.of_hosts(asked) == 0
        return found

    def of_hosts(self, pages: Bools) -> Ints:
        """Return (H,), how many pages of each host are marked in a mask (n,)."""
        return np.bincount(self.pages["host"][pages], minlength=len(self.hosts))


# -- choice of the worthiest pages, a few of each host -----------------------


@dataclass(frozen=True, slots=True)
class Valuation:
    """The value of each page, and the choice that follows.

    Attributes:
        at: day.
        worth: (n,), the value of a visit to each page.
        discovers: (n,), whether most of that is for pages that are not captured yet.
        chosen: the rows that come into the ready queue, the worthiest first.
        has_all: whether all pages that may be asked now come into it.
        sources: the rows of the pages that are taken for ephemeral sources, ascending.
        arrivals: the new items a day at each of these.
        urgent: the rows of the items that come at once.
        reveals: (n,), how many new pages a visit to each page is expected to reveal.
        hazard: (n,), the changes expected since the last visit, where pages are drawn; else empty.
        unknown, per_day: new pages that are thought to be there unknown, and those a day.
        opened: the hosts (codes) whose session begins.
        targets: (H,), the host to which a host has only redirected, or −1.
    """

    at: float
    worth: Floats
    discovers: Bools
    chosen: Rows
    has_all: bool
    sources: Rows
    arrivals: Floats
    urgent: Rows
    reveals: Floats
    hazard: Floats
    unknown: float
    per_day: float
    opened: Rows
    targets: Ints


def worthiest(worth: Floats, host: Rows, free: Ints, room: int) -> Rows:
    """Return at most ``room`` rows of the largest ``worth`` (n,) above 0, the worthiest first.

    Of host h, a code in ``host`` (n,), come at most ``free[h]``, which is 0, 1 or 2. Equal ones go
    by the lowest row. One pass over all rows, and a sort of two a host.
    """
    first, second = numeric.two_of_each(worth, np.ascontiguousarray(host), len(free))
    rows = np.concatenate([first[free > 0], second[free > 1]])
    rows = rows[rows >= 0]
    order = np.lexsort((rows, -worth[rows]))
    return rows[order[:room]]
