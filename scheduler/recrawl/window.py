"""The pages that may be asked for next, a few of each host."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Final

from freshet.storage.records import DueUrl
from freshet.storage.words import Reason

#: Of the pages taken last it is remembered what they were worth.
_REMEMBERED: Final = 200


class Window:
    """Due pages by host, each host's worthiest first.

    Attributes:
        paid: what the pages taken last were worth.
    """

    def __init__(self) -> None:
        self.paid: deque[float] = deque(maxlen=_REMEMBERED)
        self._hosts: dict[int, list[tuple[float, DueUrl]]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, host_id: int) -> bool:
        return host_id in self._hosts

    def counts(self) -> Iterator[tuple[int, int]]:
        """The hosts, and how many pages each has here."""
        return ((host_id, len(pages)) for host_id, pages in self._hosts.items())

    def count(self, host_id: int) -> int:
        """How many pages a host has here."""
        return len(self._hosts.get(host_id, ()))

    def add(self, worth: float, due: DueUrl) -> None:
        """Put a page in its host's row, behind those that are worth as much."""
        row = self._hosts.setdefault(due.host_id, [])
        place = next((i for i, (other, _) in enumerate(row) if other < worth), len(row))
        row.insert(place, (worth, due))
        self._size += 1

    def revalue(self, worth: Callable[[DueUrl], float]) -> None:
        """Put each host's pages in the order of what they are worth by now."""
        for host_id, row in self._hosts.items():
            valued = [(worth(due), due) for _, due in row]
            self._hosts[host_id] = sorted(valued, key=lambda page: -page[0])

    def best(self, ready: Collection[int], *, favoured: bool | None = None) -> DueUrl | None:
        """Take the worthiest page of the hosts that are ready.

        ``favoured`` says whether pages that are due for discovery come before all others, or after.
        """
        candidates = [host_id for host_id in self._hosts if host_id in ready]
        if not candidates:
            return None
        if favoured is None:
            host_id, place = max(candidates, key=lambda each: self._hosts[each][0][0]), 0
        else:
            places = ((each, n) for each in candidates for n in range(len(self._hosts[each])))
            host_id, place = max(places, key=lambda at: self._favour(*at, favoured=favoured))
        self.paid.append(self._hosts[host_id][place][0])
        return self._take(host_id, place)

    def _favour(self, host_id: int, place: int, *, favoured: bool) -> tuple[bool, float]:
        worth, due = self._hosts[host_id][place]
        fits = due.reason is Reason.AUDIT or (due.reason is Reason.DISCOVERY) == favoured
        return fits, worth

    def worthiest(self) -> DueUrl | None:
        """The page that comes next if its host is ready."""
        first = max(self._hosts.values(), key=lambda row: row[0][0], default=None)
        return None if first is None else first[0][1]

    def withdraw(self, host_id: int, page_id: int) -> DueUrl | None:
        """Take a page back, if it is here."""
        row = self._hosts.get(host_id, [])
        place = next((i for i, (_, due) in enumerate(row) if due.page_id == page_id), None)
        return None if place is None else self._take(host_id, place)

    def clear(self, host_id: int) -> list[DueUrl]:
        """Take back all pages of a host that were not drawn at random."""
        row = self._hosts.pop(host_id, [])
        kept = [each for each in row if each[1].audit]
        if kept:
            self._hosts[host_id] = kept
        self._size -= len(row) - len(kept)
        return [due for _, due in row if not due.audit]

    def _take(self, host_id: int, place: int) -> DueUrl:
        _, due = self._hosts[host_id].pop(place)
        if not self._hosts[host_id]:
            del self._hosts[host_id]
        self._size -= 1
        return due
