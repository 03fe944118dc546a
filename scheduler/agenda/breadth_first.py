"""The agenda of a crawl: every due URL once, host by host, shallow pages first.

Invariant: a URL in memory is due in the table ``frontier``, and no page is handed out
twice. Consequence: memory is bounded by the queues, however long the frontier is.
"""

from collections import Counter, deque
from collections.abc import Collection, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain
from math import inf

import aiosqlite

from freshet.storage.entries import Host
from freshet.storage.records import Acknowledged, DueUrl, Visit
from freshet.storage.tables import frontier, hosts

_WINDOW = 64
_LEAST = 2
_LOW_WATER = 16
_IN_MEMORY = 20_000
_HOSTS_PER_QUERY = 200
#: URLs that a sitemap may have (sitemaps.org).
_OF_A_SITEMAP = 50_000


class BreadthFirst:
    """An :class:`~freshet.storage.records.Agenda` over the stored frontier, a queue per host.

    All queues together hold ``_IN_MEMORY`` URLs, and ``_LEAST`` more for each host. No sitemap of a
    host is read that could make more than ``most_listed`` of its URLs due.
    """

    def __init__(self, reader: aiosqlite.Connection, most_listed: float = inf) -> None:
        self._reader = reader
        self._most_listed = most_listed
        # URLs that sitemaps brought, by the sitemap's host, since its due URLs were last counted.
        self._listed: Counter[int] = Counter()
        # Sitemaps that were handed out, and have not been acknowledged.
        self._reading: Counter[int] = Counter()
        self._known: set[int] = set()
        # Neither has empty entries: hosts come and go by the hundred thousand.
        self._queues: dict[int, deque[DueUrl]] = {}
        self._taken: dict[int, set[int]] = {}
        self._held = 0
        # Hosts with due URLs beyond their queue, and those of them to be read next.
        self._more: set[int] = set()
        self._hungry: dict[int, None] = {}
        # A heap: when to load URLs of a host that are not due yet.
        self._later: list[tuple[float, int]] = []
        # Pages settled while a read is under way: its snapshot may still show them as due.
        self._settled: set[int] = set()

    async def open(self) -> None:
        """Learn which hosts have URLs due; call once, before anything else."""
        self._later = [(at, host_id) for host_id, at in await frontier.wake_times(self._reader)]
        heapify(self._later)

    def next(self, ready: Collection[int], now: float) -> DueUrl | None:
        """Take the shallowest due URL of the host that has been ready longest."""
        for host_id in ready:
            while queue := self._queues.get(host_id):
                due = queue.popleft()
                self._held -= 1
                if not queue:
                    del self._queues[host_id]
                waits = due.role == "sitemap" and self._is_full(host_id)
                if waits or (len(queue) < _LOW_WATER and host_id in self._more):
                    self._hungry[host_id] = None
                if not waits:
                    self._reading[host_id] += due.role == "sitemap"
                    return due
                self._taken[host_id].discard(due.page_id)
        return None

    def put_back(self, due: DueUrl) -> None:
        """Take back a URL that has not been visited."""
        self._queues.setdefault(due.host_id, deque()).appendleft(due)
        self._held += 1
        self._reading[due.host_id] -= due.role == "sitemap"

    def waiting(self, host_id: int) -> bool:
        """Return whether a due URL of this host can be taken now."""
        return host_id in self._queues

    def done(self, acknowledged: Acknowledged) -> None:
        """Forget a settled URL; remember its retry, and the hosts that grew by it."""
        if isinstance(acknowledged.entry, Visit):
            self._settle(acknowledged.entry)
            if acknowledged.entry.role == "sitemap":
                host_id = acknowledged.entry.due.host_id
                self._listed[host_id] += len(acknowledged.pages)
                self._reading[host_id] -= 1
                self._hungry[host_id] = None
        for host_id, page_ids in acknowledged.withdrawn:
            self._withdraw(host_id, page_ids)
        for host_id in acknowledged.supplied:
            if len(self._queues.get(host_id, ())) < _LOW_WATER:
                self._hungry[host_id] = None
            else:
                self._more.add(host_id)

    @property
    def hungry(self) -> bool:
        """Return whether :meth:`replenish` would load something although nothing falls due."""
        return bool(self._hungry)

    def wakes_at(self) -> float | None:
        """Return when the next URL that waits for its time falls due, or None."""
        return self._later[0][0] if self._later else None

    def overdue_at(self) -> float:
        """Return inf: each page is fetched once."""
        return inf

    def target_of(self, host_id: int) -> int | None:
        """Return None: pages are fetched as they come."""
        del host_id
        return None

    async def replenish(self, now: float) -> tuple[Sequence[Host], Sequence[int]]:
        """Fill the queues that run low."""
        while self._later and self._later[0][0] <= now:
            self._hungry[heappop(self._later)[1]] = None
        asked = list(self._hungry)[:_HOSTS_PER_QUERY]
        if not asked:
            return (), ()
        for host_id in asked:
            del self._hungry[host_id]
        await self._fill(asked, now)
        new = [host_id for host_id in asked if host_id not in self._known]
        self._known.update(new)
        new_hosts = await hosts.load(self._reader, new) if new else []
        return new_hosts, [h for h in asked if h in self._queues]

    def _is_full(self, host_id: int) -> bool:
        """Return whether a further sitemap of a host could bring too many URLs."""
        sitemaps = self._reading[host_id] + 1
        return self._listed[host_id] + sitemaps * _OF_A_SITEMAP > self._most_listed

    def _settle(self, visit: Visit) -> None:
        due = visit.due
        self._settled.add(due.page_id)
        taken = self._taken.get(due.host_id, set())
        taken.discard(due.page_id)
        if not taken:
            self._taken.pop(due.host_id, None)
        if visit.retry_at is not None:
            heappush(self._later, (visit.retry_at, due.host_id))

    def _withdraw(self, host_id: int, page_ids: Collection[int]) -> None:
        """Remove pages that are no longer due from a queue.

        The last one is left in it: that a host has something to take is known elsewhere, and
        one needless visit is cheap.
        """
        queue = self._queues.get(host_id, deque())
        kept = [due for due in queue if due.page_id not in page_ids] or [*queue][:1]
        taken = self._taken.get(host_id, set())
        taken.difference_update(due.page_id for due in queue)
        taken.update(due.page_id for due in kept)
        # A read that is under way may still show them as due.
        self._settled.update(page_ids)
        self._held -= len(queue) - len(kept)
        if queue:
            self._queues[host_id] = deque(kept)
        if len(kept) < _LOW_WATER and host_id in self._more:
            self._hungry[host_id] = None

    async def _still_full(self, host_ids: list[int], now: float) -> list[int]:
        """Count the due URLs of hosts that were full; return those that are."""
        full = [host_id for host_id in host_ids if self._is_full(host_id)]
        for host_id in full:
            self._listed[host_id] = await frontier.due_count(self._reader, host_id, now)
        return [host_id for host_id in full if self._is_full(host_id)]

    async def _fill(self, host_ids: list[int], now: float) -> None:
        """Load more URLs after the last ones of these hosts."""
        room = (_IN_MEMORY - self._held) // len(host_ids)
        size = max(_LEAST, min(_WINDOW, room))
        # What is found or settled while the read is under way is not in its snapshot.
        self._more.difference_update(host_ids)
        self._settled.clear()
        full = await self._still_full(host_ids, now)
        # Those in memory are still in the table.
        taken = list(chain.from_iterable(self._taken.get(host_id, ()) for host_id in host_ids))
        loaded = await frontier.load(
            self._reader, host_ids, now, size, without_pages=taken, without_sitemaps=full
        )
        by_host: dict[int, list[DueUrl]] = {host_id: [] for host_id in host_ids}
        for due in loaded:
            by_host[due.host_id].append(due)
        for host_id, rows in by_host.items():
            left_out = self._supply(host_id, rows, size)
            if left_out or len(rows) == size or host_id in full:
                self._more.add(host_id)

    def _supply(self, host_id: int, rows: list[DueUrl], size: int) -> bool:
        """Fill a queue to ``size`` from these rows; return whether some did not fit."""
        taken = self._taken.get(host_id, set())
        fresh = [d for d in rows if d.page_id not in self._settled]
        queue = self._queues.get(host_id, deque())
        chosen = fresh[: max(0, size - len(queue))]
        if chosen:
            queue.extend(chosen)
            taken.update(due.page_id for due in chosen)
            self._queues[host_id], self._taken[host_id] = queue, taken
            self._held += len(chosen)
        return len(chosen) < len(fresh)
