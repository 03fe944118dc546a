"""The ready queue: a few pages of each host that may be requested next."""

from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from math import inf
from typing import Final

import numpy as np

from freshet.scheduler.queue.page_rules import DiscoveryTerms
from freshet.scheduler.queue.pages import OVERDUE
from freshet.scheduler.sources import Rows
from freshet.storage.records import DueUrl

#: Of the pages taken last it is remembered what they were worth.
_REMEMBERED: Final = 200
#: The ready queue holds so many pages, and one in this number of all pages, so that its order is
#: that of now.
_LEAST_READY: Final = 4
_MOST_READY: Final = 4_096
_SHARE: Final = 200


class ReadyQueue:
    """Due pages by host, each host's worthiest first.

    Hosts are in the order of their worthiest pages, so that a choice asks few of them whether they
    are ready; equal ones go by how long they have had pages here.

    Attributes:
        paid: what the pages taken last were worth.
        wanted: how many pages should be here.
    """

    def __init__(self, wanted: int = _LEAST_READY) -> None:
        self.wanted = wanted
        self.paid: deque[float] = deque(maxlen=_REMEMBERED)
        self._hosts: dict[int, list[tuple[float, DueUrl]]] = {}
        self._size = 0
        #: The hosts with minus what their worthiest pages are worth, and when they came; some of
        #: these are what was true before.
        self._order: list[tuple[float, int, int]] = []
        self._came: dict[int, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, host_id: int) -> bool:
        return host_id in self._hosts

    @property
    def is_low(self) -> bool:
        """Return whether half of the wanted pages are gone."""
        return len(self) * 2 < self.wanted

    def took(self) -> None:
        """Want fewer pages: one was taken for a visit."""
        self.wanted = max(_LEAST_READY, self.wanted - 1)

    def follow(self, pages: int) -> None:
        """Want a share of all pages, where so many are watched."""
        self.wanted = max(_LEAST_READY, min(self.wanted, _MOST_READY), pages // _SHARE)

    def widen(self) -> bool:
        """Want twice as many if the queue is full; return whether that is so."""
        if self.wanted >= _MOST_READY or len(self) < self.wanted:
            return False
        self.wanted = min(_MOST_READY, 2 * self.wanted)
        return True

    def has_all(self) -> None:
        """Want no more than there are: all pages that may be asked are here."""
        self.wanted = max(_LEAST_READY, len(self))

    def counts(self) -> Iterator[tuple[int, int]]:
        """Return the hosts with their numbers of pages here."""
        return ((host_id, len(pages)) for host_id, pages in self._hosts.items())

    def count(self, host_id: int) -> int:
        """Count the pages of a host here."""
        return len(self._hosts.get(host_id, ()))

    def add(self, worth: float, due: DueUrl) -> None:
        """Insert a page into its host's row, behind those of the same worth."""
        if due.host_id not in self._hosts:
            self._count += 1
            self._hosts[due.host_id], self._came[due.host_id] = [], self._count
        row = self._hosts[due.host_id]
        place = next((i for i, (other, _) in enumerate(row) if other < worth), len(row))
        row.insert(place, (worth, due))
        self._size += 1
        if place == 0:
            self._rank(due.host_id)

    def _rank(self, host_id: int) -> None:
        """Put a host to its place, if it has pages."""
        if host_id in self._hosts:
            insort(self._order, self._entry(host_id))

    def _entry(self, host_id: int) -> tuple[float, int, int]:
        return -self._hosts[host_id][0][0], self._came[host_id], host_id

    def revalue(self, worth: Callable[[DueUrl], float]) -> None:
        """Sort each host's pages by their present worth."""
        for host_id, row in self._hosts.items():
            valued = [(worth(due), due) for _, due in row]
            self._hosts[host_id] = sorted(valued, key=lambda page: -page[0])
        self._order = sorted(map(self._entry, self._hosts))

    @property
    def has_overdue(self) -> bool:
        """Return whether a page here is overdue, and not only put back before its visit."""
        return any(OVERDUE <= row[0][0] < inf for row in self._hosts.values())

    def best(
        self, ready: Collection[int], *, favoured: bool | None = None, least: float = 0.0
    ) -> DueUrl | None:
        """Take the worthiest page of the hosts that are ready, if it is worth at ``least`` so much.

        ``favoured`` says whether pages that are due for discovery come before all others, or after;
        overdue ones come first in any case.
        """
        if favoured is None:
            found = self._first(ready)
            if found is None:
                return None
            host_id, place = found, 0
        else:
            candidates = [host_id for host_id in self._hosts if host_id in ready]
            places = ((each, n) for each in candidates for n in range(len(self._hosts[each])))
            chosen = max(places, key=lambda at: self._favour(*at, favoured=favoured), default=None)
            if chosen is None:
                return None
            host_id, place = chosen
        if self._hosts[host_id][place][0] < least:
            return None
        self.paid.append(self._hosts[host_id][place][0])
        return self._take(host_id, place)

    def _first(self, ready: Collection[int]) -> int | None:
        """Return the ready host with the worthiest page."""
        stale, found = [], None
        for place, entry in enumerate(self._order):
            if entry[2] not in self._hosts or self._entry(entry[2]) != entry:
                stale.append(place)
            elif entry[2] in ready:
                found = entry[2]
                break
        for place in reversed(stale):
            del self._order[place]
        return found

    def _favour(self, host_id: int, place: int, *, favoured: bool) -> tuple[bool, float]:
        worth, due = self._hosts[host_id][place]
        fits = worth >= OVERDUE or (due.reason == "discovery") == favoured
        return fits, worth

    def worthiest(self, is_closed: Callable[[int], bool]) -> DueUrl | None:
        """Return the page that comes next if its host, none of the closed ones, is ready."""
        rows = (row for host_id, row in self._hosts.items() if not is_closed(host_id))
        first = max(rows, key=lambda row: row[0][0], default=None)
        return None if first is None else first[0][1]

    def withdraw(self, host_id: int, page_id: int) -> DueUrl | None:
        """Remove a page, if it is here."""
        row = self._hosts.get(host_id, [])
        place = next((i for i, (_, due) in enumerate(row) if due.page_id == page_id), None)
        return None if place is None else self._take(host_id, place)

    def clear(self, host_id: int, least: float = inf) -> list[DueUrl]:
        """Remove the pages of a host that are worth less, except audit samples."""
        row = self._hosts.pop(host_id, [])
        kept = [each for each in row if each[1].audit or each[0] >= least]
        if kept:
            self._count += 1
            self._hosts[host_id], self._came[host_id] = kept, self._count
            self._rank(host_id)
        self._size -= len(row) - len(kept)
        return [due for worth, due in row if not due.audit and worth < least]

    def _take(self, host_id: int, place: int) -> DueUrl:
        _, due = self._hosts[host_id].pop(place)
        if not self._hosts[host_id]:
            del self._hosts[host_id]
        elif place == 0:
            self._rank(host_id)
        self._size -= 1
        return due


# -- shares of visits for discovery and freshness ----------------------------
# The worthiest visit comes next, so that the shares are an outcome. Where the user sets a floor or
# a ceiling, two accounts see to it: each visit pays the share in, each visit for discovery takes
# one out.

#: Visits by which an account may run ahead: what was not found for a week is not made up for.
_MOST: Final = 50.0
#: The share of a host's requests for probes, and lists that have told of no change yet.
_ASIDE: Final = 0.05
#: The share of requests for URLs that led to no content, and how many are saved for them.
_EMPTY_SHARE: Final = 0.02
_EMPTY_MOST: Final = 10.0


class AsideQuota:
    """Keeps the requests that are not for pages below a share of a host's.

    They are for lists (sitemaps and feeds) that have told nothing yet, and for URLs that cannot
    exist (probes). The first list and the first probe of a host are free. Hosts are ids.

    Attributes:
        untold: the rows of these lists, by the last valuation.
    """

    def __init__(self) -> None:
        self.untold: Rows = np.zeros(0, np.intp)
        self._requests: Counter[int] = Counter()
        self._aside: Counter[int] = Counter()
        self._probed: set[int] = set()

    def took(self, host_id: int, row: int) -> None:
        """Count a request for the page of a row."""
        self._requests[host_id] += 1
        self._aside[host_id] += row in self.untold

    def take_probe(self, host_id: int) -> bool:
        """Take a request for a URL that cannot exist, if there is room; return whether."""
        if host_id in self._probed and self.is_spent(host_id):
            return False
        self._probed.add(host_id)
        self._requests[host_id] += 1
        self._aside[host_id] += 1
        return True

    def spent(self, untold: Rows, host_ids: Sequence[int]) -> Rows:
        """Return which of these lists, that have told nothing, must not be asked next.

        ``host_ids`` (m,) are the hosts of the lists (m,).
        """
        self.untold = untold
        return untold[[self.is_spent(host_id) for host_id in host_ids]]

    def is_spent(self, host_id: int) -> bool:
        """Return whether a host's next request must be for a page."""
        return self._aside[host_id] > _ASIDE * self._requests[host_id]


class EmptyQuota:
    """Keeps requests for URLs that led to no content below a share of all."""

    def __init__(self) -> None:
        self._saved = 1.0

    @property
    def is_spent(self) -> bool:
        """Return whether the next request must not be for such a URL."""
        return self._saved < 1

    def took(self, *, is_empty: bool | None) -> None:
        """Count a request; None: its page is not watched."""
        self._saved = min(self._saved + _EMPTY_SHARE, _EMPTY_MOST) - bool(is_empty)


class DiscoveryQuota:
    """Keeps the shares of visits for discovery between a floor and a ceiling.

    Attributes:
        terms: those of the user.
        found, revealed: visits for discovery: at pages never captured, and at those that may reveal
            some.
        refreshed: all others.
        aside: the share of requests that are not for pages.
    """

    def __init__(self) -> None:
        self.terms = DiscoveryTerms()
        self.aside = AsideQuota()
        self.found = self.revealed = self.refreshed = 0
        self._below_most = self._above_least = 0.0

    @property
    def favoured(self) -> bool | None:
        """Return whether the next visit is for discovery or not; None: either."""
        if self._below_most < 0:
            return False
        return True if self._above_least > 0 else None

    def took(self, *, discovers: bool, captured: bool) -> None:
        """Count a visit."""
        self.found += discovers and not captured
        self.revealed += discovers and captured
        self.refreshed += not discovers
        self._below_most = self._paid(self._below_most, self.terms.most, discovers)
        self._above_least = self._paid(self._above_least, self.terms.least, discovers)

    @staticmethod
    def _paid(account: float, share: float, discovers: bool) -> float:
        return min(max(account + share - discovers, -_MOST), _MOST)
