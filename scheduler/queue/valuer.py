"""The value of a visit to each page. The valuation does not change the learnt state.

The value of a visit adds up the freshness that it restores and the new pages that it reveals. A
page that was never captured must be captured sooner or later, so waiting saves no request: its
value exceeds the value of a certainly changed page by a turn, the days in which all captured pages
could be visited. For ephemeral sources and their items see
:mod:`freshet.scheduler.queue.ephemeral`.
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

#: Lower bound of the values of urgent and overdue visits.
CANNOT_WAIT: Final = 1e100
_AT_ONCE: Final = 1e120


@dataclass(frozen=True, slots=True)
class VisitValues:
    """The values of visits to n pages.

    Attributes:
        value: (n,), the total value.
        new: (n,), the value of the pages that a visit reveals.
        discovers: (n,), whether most of the value is for pages that are not captured yet.
        sources: the rows of the ephemeral sources, declared or recognised, ascending.
        arrivals: the new items a day at each of the sources.
        urgent: the rows of the items to fetch at once.
        revealing: the new pages that visits are expected to reveal.
        turn: days in which all captured pages could be visited.
    """

    value: Floats
    new: Floats
    discovers: Bools
    sources: Rows
    arrivals: Floats
    urgent: Rows
    revealing: ExpectedReveals
    turn: float


@dataclass(frozen=True, slots=True)
class VisitValuer:
    """Valuation of visits on one day under a budget, from pages, hosts and a ranker."""

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
        """Return (n,), whether there is a copy of a page that existed at its last visit."""
        found: Bools = self.pages["captured"] & (self.pages["gone"] == 0)
        return found

    def values(self, fresh: Floats) -> VisitValues:
        """Return the values of visits; ``fresh`` (n,) is their value for freshness."""
        pages, now = self.pages, self.now
        revealing = self.hubs.revealing(pages, now, self.terms.discovery)
        new = (self.terms.missing if self.terms.come else 0.0) * revealing.value
        if isinstance(self.ranker, IntervalRanker):
            # An interval policy visits no page before it is due, regardless of new pages.
            new[~self.ranker.due(now)] = 0.0
        (row, arrivals, decayed), (urgent, urgency) = decaying(
            pages, self.hubs, revealing, self.terms, now, cost=self.hosts.cost()
        )
        both = fresh + new
        both[row] = np.maximum(both[row], decayed)
        new[row] = np.maximum(new[row], decayed)
        turn = int(np.count_nonzero(pages["captured"])) / self.budget
        value = pages.weighted(both, now, turn, self.terms.missing)
        value[urgent] = _AT_ONCE * urgency
        return VisitValues(
            value=value,
            new=new,
            discovers=(new > fresh) | ~pages["captured"],
            sources=row,
            arrivals=arrivals,
            urgent=urgent,
            revealing=revealing,
            turn=turn,
        )

    def offers(self, values: VisitValues, empty_above: float, spent: Rows) -> tuple[Floats, Ints]:
        """Return (n,), values of visits allowed now, and (H,), targets of redirecting hosts.

        URLs without content are offered if their value is at least ``empty_above``. The ``spent``
        rows are offered only if they cannot wait or have revealed new pages. The second array has
        the host to which a host has only redirected, or −1.
        """
        pages, value = self.pages, values.value
        left = np.where(pages.may_be_requested(self.now), value, 0.0)
        names, targets = pages.names(self.hosts.places)
        left[names] = 0.0
        left[pages["empty"] & (value < empty_above)] = 0.0
        # Lists that have revealed new pages are useful; overdue pages and visit requests ignore the
        # quota.
        has_revealed = np.isin(spent, values.revealing.by)
        left[spent[~has_revealed & (value[spent] < CANNOT_WAIT)]] = 0.0
        return left, targets

    def tomorrow(self, values: VisitValues, offered: Floats) -> Floats:
        """Return (n,), the values of the ``offered`` visits (n,) a day from now."""
        if not self.has_price:
            return offered
        then = self.now + 1.0
        fresh = self.ranker.values(then)
        later = self.pages.weighted(fresh + values.new, then, values.turn, self.terms.missing)
        later[offered <= 0] = 0.0
        return later

    def unvisited(self) -> Bools:
        """Return (H,), whether no page of a host was ever requested."""
        asked = self.pages["captured"] | np.isfinite(self.pages["absent"])
        found: Bools = self.of_hosts(asked) == 0
        return found

    def of_hosts(self, pages: Bools) -> Ints:
        """Return (H,), the number of pages of each host that a mask (n,) marks."""
        return np.bincount(self.pages["host"][pages], minlength=len(self.hosts))


# -- choice of the best pages, a few per host --


@dataclass(frozen=True, slots=True)
class Valuation:
    """The value of each page, and the choice that follows.

    Attributes:
        at: day.
        worth: (n,), the value of a visit to each page.
        discovers: (n,), whether most of the value is for pages that are not captured yet.
        chosen: the rows to load into the ready queue, the highest value first.
        has_all: whether these are all pages that may be requested now.
        sources: the rows of the ephemeral sources, declared or recognised, ascending.
        arrivals: the new items a day at each of the sources.
        urgent: the rows of the items to fetch at once.
        reveals: (n,), the expected number of new pages that a visit to each page reveals.
        hazard: (n,), the changes expected since the last visit; empty if no audit sample is due.
        unknown, per_day: expected number of pages that exist and are not known yet, and their
            number a day.
        opened: the codes of the hosts that begin a session.
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


def best_rows(value: Floats, host: Rows, free: Ints, room: int) -> Rows:
    """Return at most ``room`` rows with the largest ``value`` (n,) above 0, in descending order.

    At most ``free[h]`` rows (0, 1 or 2) are from host h, a code in ``host`` (n,). Ties are broken
    by the lowest row. One pass over all rows, and a sort of two rows per host.
    """
    first, second = numeric.two_of_each(value, np.ascontiguousarray(host), len(free))
    rows = np.concatenate([first[free > 0], second[free > 1]])
    rows = rows[rows >= 0]
    order = np.lexsort((rows, -value[rows]))
    return rows[order[:room]]
