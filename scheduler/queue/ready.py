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

#: Number of taken pages with remembered values.
_REMEMBERED: Final = 200
#: Wanted size of the ready queue: these bounds, and one in ``_SHARE`` of all pages. It is small so
#: that its order is current.
_LEAST_READY: Final = 4
_MOST_READY: Final = 4_096
_SHARE: Final = 200


class ReadyQueue:
    """Due pages by host, each host's pages in descending order of value.

    Hosts are in the order of their best pages, so that a choice checks few of them for readiness.
    Ties go to the host that has had pages here for longer.

    Attributes:
        paid: the values of the pages taken last.
        wanted: the number of pages that should be here.
    """

    def __init__(self, wanted: int = _LEAST_READY) -> None:
        self.wanted = wanted
        self.paid: deque[float] = deque(maxlen=_REMEMBERED)
        self._hosts: dict[int, list[tuple[float, DueUrl]]] = {}
        self._size = 0
        #: Entries (negative value of a host's best page, time of arrival, host); outdated entries
        #: are skipped.
        self._order: list[tuple[float, int, int]] = []
        self._arrived: dict[int, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, host_id: int) -> bool:
        return host_id in self._hosts

    @property
    def is_low(self) -> bool:
        """Return whether less than half of the wanted pages are here."""
        return len(self) * 2 < self.wanted

    def took(self) -> None:
        """Reduce the wanted number by the page that was taken."""
        self.wanted = max(_LEAST_READY, self.wanted - 1)

    def follow(self, pages: int) -> None:
        """Raise the wanted number to a share of all pages."""
        self.wanted = max(_LEAST_READY, min(self.wanted, _MOST_READY), pages // _SHARE)

    def widen(self) -> bool:
        """Double the wanted number if the queue is full; return whether it was."""
        if self.wanted >= _MOST_READY or len(self) < self.wanted:
            return False
        self.wanted = min(_MOST_READY, 2 * self.wanted)
        return True

    def has_all(self) -> None:
        """Reduce the wanted number to the present one: all pages that may be requested are here."""
        self.wanted = max(_LEAST_READY, len(self))

    def counts(self) -> Iterator[tuple[int, int]]:
        """Return the hosts with their numbers of pages here."""
        return ((host_id, len(pages)) for host_id, pages in self._hosts.items())

    def count(self, host_id: int) -> int:
        """Count the pages of a host here."""
        return len(self._hosts.get(host_id, ()))

    def add(self, value: float, due: DueUrl) -> None:
        """Insert a page into its host's row, behind pages with the same value."""
        if due.host_id not in self._hosts:
            self._count += 1
            self._hosts[due.host_id], self._arrived[due.host_id] = [], self._count
        row = self._hosts[due.host_id]
        place = next((i for i, (other, _) in enumerate(row) if other < value), len(row))
        row.insert(place, (value, due))
        self._size += 1
        if place == 0:
            self._rank(due.host_id)

    def _rank(self, host_id: int) -> None:
        """Insert a host into the order, if it has pages."""
        if host_id in self._hosts:
            insort(self._order, self._entry(host_id))

    def _entry(self, host_id: int) -> tuple[float, int, int]:
        return -self._hosts[host_id][0][0], self._arrived[host_id], host_id

    def revalue(self, value: Callable[[DueUrl], float]) -> None:
        """Sort each host's pages by their present values."""
        for host_id, row in self._hosts.items():
            valued = [(value(due), due) for _, due in row]
            self._hosts[host_id] = sorted(valued, key=lambda page: -page[0])
        self._order = sorted(map(self._entry, self._hosts))

    @property
    def has_overdue(self) -> bool:
        """Return whether a page here is overdue; pages that were put back do not count."""
        return any(OVERDUE <= row[0][0] < inf for row in self._hosts.values())

    def best(
        self, ready: Collection[int], *, favoured: bool | None = None, least: float = 0.0
    ) -> DueUrl | None:
        """Take the best page of the ready hosts, if its value is at least ``least``.

        With ``favoured`` True, pages due for discovery rank before all others; with False, after
        all others. Overdue pages always rank first.
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
        """Return the ready host with the best page."""
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
        value, due = self._hosts[host_id][place]
        fits = value >= OVERDUE or (due.reason == "discovery") == favoured
        return fits, value

    def worthiest(self, is_closed: Callable[[int], bool]) -> DueUrl | None:
        """Return the page that is next if its host is ready; closed hosts are skipped."""
        rows = (row for host_id, row in self._hosts.items() if not is_closed(host_id))
        first = max(rows, key=lambda row: row[0][0], default=None)
        return None if first is None else first[0][1]

    def withdraw(self, host_id: int, page_id: int) -> DueUrl | None:
        """Remove a page and return it, or return None."""
        row = self._hosts.get(host_id, [])
        place = next((i for i, (_, due) in enumerate(row) if due.page_id == page_id), None)
        return None if place is None else self._take(host_id, place)

    def clear(self, host_id: int, least: float = inf) -> list[DueUrl]:
        """Remove the pages of a host with a value below ``least``, except audit samples."""
        row = self._hosts.pop(host_id, [])
        kept = [each for each in row if each[1].audit or each[0] >= least]
        if kept:
            self._count += 1
            self._hosts[host_id], self._arrived[host_id] = kept, self._count
            self._rank(host_id)
        self._size -= len(row) - len(kept)
        return [due for value, due in row if not due.audit and value < least]

    def _take(self, host_id: int, place: int) -> DueUrl:
        _, due = self._hosts[host_id].pop(place)
        if not self._hosts[host_id]:
            del self._hosts[host_id]
        elif place == 0:
            self._rank(host_id)
        self._size -= 1
        return due


# -- shares of visits for discovery and freshness --
# The best visit is next, so the shares are an outcome. If the user sets a floor or a ceiling, two
# accounts enforce it: each visit adds the share, each visit for discovery subtracts one.

#: Maximum balance of an account, in visits: a week without discoveries is not made up for.
_MOST: Final = 50.0
#: Share of a host's requests for probes and for lists without an announced change.
_ASIDE: Final = 0.05
#: Share of requests for URLs that led to no content, and the maximum number saved for them.
_EMPTY_SHARE: Final = 0.02
_EMPTY_MOST: Final = 10.0


class AsideQuota:
    """Quota of a host's requests that are not for pages.

    They are for lists (sitemaps and feeds) without an announced change, and for URLs that cannot
    exist (probes). The first list and the first probe of a host are free. Hosts are ids.

    Attributes:
        silent_lists: the rows of these lists, by the last valuation.
    """

    def __init__(self) -> None:
        self.silent_lists: Rows = np.zeros(0, np.intp)
        self._requests: Counter[int] = Counter()
        self._aside: Counter[int] = Counter()
        self._probed: set[int] = set()

    def took(self, host_id: int, row: int) -> None:
        """Count a request for the page of a row."""
        self._requests[host_id] += 1
        self._aside[host_id] += row in self.silent_lists

    def take_probe(self, host_id: int) -> bool:
        """Take a request for a URL that cannot exist; return whether the quota allowed it."""
        if host_id in self._probed and self.is_spent(host_id):
            return False
        self._probed.add(host_id)
        self._requests[host_id] += 1
        self._aside[host_id] += 1
        return True

    def spent(self, silent_lists: Rows, host_ids: Sequence[int]) -> Rows:
        """Return the lists, of those without an announced change, that must not be requested next.

        ``host_ids`` (m,) are the hosts of the lists (m,).
        """
        self.silent_lists = silent_lists
        return silent_lists[[self.is_spent(host_id) for host_id in host_ids]]

    def is_spent(self, host_id: int) -> bool:
        """Return whether a host's next request must be for a page."""
        return self._aside[host_id] > _ASIDE * self._requests[host_id]


class EmptyQuota:
    """Quota of requests for URLs that led to no content."""

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
    """Floor and ceiling of the share of visits for discovery.

    Attributes:
        terms: the user's settings.
        found: visits for discovery to pages never captured.
        revealed: visits for discovery to pages that may reveal new ones.
        refreshed: all other visits.
        aside: the quota of requests that are not for pages.
    """

    def __init__(self) -> None:
        self.terms = DiscoveryTerms()
        self.aside = AsideQuota()
        self.found = self.revealed = self.refreshed = 0
        self._below_most = self._above_least = 0.0

    @property
    def favoured(self) -> bool | None:
        """Return whether the next visit should be for discovery; None: no preference."""
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
