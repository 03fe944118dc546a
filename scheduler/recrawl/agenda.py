"""The agenda of a daemon: what is worth most now, over all pages, found and known.

Invariant: a page is in the window or in flight at most once, and what it learns comes from what
has committed. Consequence: after a crash the same observations lead to the same order.

*The window.* Pages come from one look over all that are watched, the worthiest first, at most two
of a host, and are read from the store; :meth:`RecrawlAgenda.next` takes the worthiest whose host
is ready. Where the budget would pay for a look but no host in the window is ready, the window is
widened: so capacity that hosts refuse goes to the next best pages, and nobody's robots.txt is
asked for before there is a use for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

import aiosqlite
import numpy as np

from scheduler.arguments import Floats
from scheduler.recrawl.refresher import Refresher
from scheduler.recrawl.watchlist import Watchlist
from scheduler.sources import Rows
from storage import hosts, watched
from storage.records import Acknowledged, DueUrl, Host, Kind, Supply, Visit
from storage.watched import WatchedPages

_DAY_S: Final = 86_400.0
#: Pages of a host in the window.
_OF_A_HOST: Final = 2
_LEAST: Final = 4
_MOST: Final = 4_096
#: One page in so many stands in the window, so that the order in it is that of now.
_SHARE: Final = 200
#: Pages from which on they are looked over in a thread.
_MANY: Final = 20_000
#: Seconds after which it is looked again where nothing could be asked for.
_LOOK_AGAIN_S: Final = 60.0

#: What the pages of some hosts are worth: from their URLs and their hosts' origins, (m,).
Importance = Callable[[Sequence[str], Sequence[str]], Floats]


class RecrawlAgenda:
    """An :class:`~storage.records.Agenda` that never ends."""

    def __init__(
        self, reader: aiosqlite.Connection, refresher: Refresher, importance: Importance
    ) -> None:
        self._reader = reader
        self._refresher = refresher
        self._importance = importance
        self.pages = Watchlist()
        self._host_codes: dict[int, int] = {}
        self._origins: dict[int, str] = {}
        self._new_hosts: list[Host] = []
        self._window: dict[int, list[tuple[float, DueUrl]]] = {}
        self._in_window = 0
        self._wanted = _LEAST
        self._settled: list[Visit] = []
        self._found: list[int] = []
        self._looked_at = 0.0
        self._wants_look = True

    async def open(self) -> None:
        """Take in all pages of the store; call once, before anything else."""
        if len(self.pages):
            return
        await self._watch(await watched.pages(self._reader))
        looks = await watched.looks(self._reader)
        rows = np.array([self.pages.row(page_id) for page_id in looks.page_id.tolist()], np.float64)
        known = ~np.isnan(rows)
        self._refresher.recall(
            rows[known].astype(np.intp),
            looks.at[known] / _DAY_S,
            looks.compared[known],
            looks.changed[known],
        )

    def next(self, ready: Collection[int], now: float) -> DueUrl | None:
        """Take the worthiest page of the hosts that are ready."""
        best = max(
            (host_id for host_id in self._window if host_id in ready),
            key=lambda host_id: self._window[host_id][0][0],
            default=None,
        )
        if best is None:
            self._widen()
            return None
        _, due = self._window[best].pop(0)
        if not self._window[best]:
            del self._window[best]
        self._in_window -= 1
        self._wanted = max(_LEAST, self._wanted - 1)
        return due

    def _widen(self) -> None:
        if self._wanted < _MOST and self._in_window >= self._wanted:
            self._wanted = min(_MOST, 2 * self._wanted)
            self._wants_look = True

    def waiting(self, host_id: int) -> bool:
        """Whether a page of this host is in the window."""
        return host_id in self._window

    def done(self, acknowledged: Acknowledged) -> None:
        """Note what has committed; it is learnt with the next look."""
        if isinstance(acknowledged.entry, Visit):
            self._settled.append(acknowledged.entry)
        self._found.extend(acknowledged.pages)
        for _, page_ids in acknowledged.withdrawn:
            self._withdraw(page_ids)

    def _withdraw(self, page_ids: Collection[int]) -> None:
        """Leave these alone; those in the window go on their way."""
        rows = [row for page_id in page_ids if (row := self.pages.row(page_id)) is not None]
        self.pages.drop(np.array(rows, np.intp))

    @property
    def hungry(self) -> bool:
        """Whether there is news, or a look to be taken."""
        return bool(self._settled or self._found or self._wants_look)

    def wakes_at(self) -> float | None:
        """When it is looked again; never None, as pages change for ever."""
        return self._looked_at + _LOOK_AGAIN_S

    async def replenish(self, now: float) -> Supply:
        """Learn what has come, and fill the window where it runs low."""
        found, self._found = self._found, []
        if found:
            new = [page_id for page_id in found if self.pages.row(page_id) is None]
            self.pages.admit_again(found)
            await self._watch(await watched.pages(self._reader, new))
        settled, self._settled = self._settled, []
        for visit in settled:
            self._learn(visit)
        if now >= self._looked_at + _LOOK_AGAIN_S or self._in_window * 2 < self._wanted:
            self._wants_look = True
        supplied = await self._look(now) if self._wants_look else set()
        new_hosts, self._new_hosts = self._new_hosts, []
        return Supply(tuple(new_hosts), tuple(supplied))

    # -- learning ----------------------------------------------------------------

    async def _watch(self, found: WatchedPages) -> None:
        """Append pages, with what the store knows of them."""
        if not len(found):
            return
        unknown = set(found.host_id.tolist()) - self._host_codes.keys()
        for host in await hosts.load(self._reader, sorted(unknown)):
            self._host_codes[host.host_id] = len(self._host_codes)
            self._origins[host.host_id] = host.origin
            self._new_hosts.append(host)
        host_ids = found.host_id.tolist()
        codes = np.array([self._host_codes[host_id] for host_id in host_ids], np.intp)
        origins = [self._origins[host_id] for host_id in host_ids]
        importance = self._importance(found.url, origins)
        self.pages.add(
            found.page_id,
            host=codes,
            importance=importance,
            since=found.since / _DAY_S,
            captured=found.captured,
            gone=found.gone.astype(np.int16),
            not_before=np.where(found.failed, found.asked / _DAY_S, -np.inf),
        )
        self._refresher.add(codes, importance, found.found_at / _DAY_S)

    def _learn(self, visit: Visit) -> None:
        row = self.pages.row(visit.due.page_id)
        if row is None:
            return
        self.pages.settle(row, visit)
        kind, at = visit.observation.kind, visit.observation.at / _DAY_S
        if kind in (Kind.CHANGED, Kind.UNCHANGED):
            self._refresher.looked(row, at, changed=kind is Kind.CHANGED)
        elif kind in (Kind.NEW, Kind.GONE):
            self._refresher.looked(row, at, changed=None)

    # -- the window --------------------------------------------------------------

    async def _look(self, now: float) -> set[int]:
        """Look over all pages; the hosts of those that came into the window."""
        self._looked_at, self._wants_look = now, False
        self._wanted = max(_LEAST, min(self._wanted, _MOST), len(self.pages) // _SHARE)
        room = self._wanted - self._in_window
        if room <= 0 or not len(self.pages):
            return set()
        if len(self.pages) > _MANY:
            rows, worth = await asyncio.to_thread(self._chosen, now / _DAY_S, room)
        else:
            rows, worth = self._chosen(now / _DAY_S, room)
        supplied = await self._supply(rows, worth, now)
        if len(rows) < room:
            # There is no more to be had: look again when some of it is used up.
            self._wanted = max(_LEAST, self._in_window)
        return supplied

    def _chosen(self, now: float, room: int) -> tuple[Rows, Floats]:
        """The worthiest rows that may come into the window, the worthiest first."""
        worth = self.pages.weighted(self._refresher.worth(now), now)
        left = np.where(self.pages.may_be_asked(now), worth, 0.0)
        host = self.pages["host"]
        free = np.full(len(self._host_codes), _OF_A_HOST)
        for host_id, entries in self._window.items():
            free[self._host_codes[host_id]] -= len(entries)
        chosen: list[int] = []
        while len(chosen) < room:
            left[free[host] <= 0] = 0.0
            rows = _largest(left, 4 * (room - len(chosen)))
            if not rows:
                break
            for row in rows:
                if free[host[row]] > 0 and len(chosen) < room:
                    free[host[row]] -= 1
                    left[row] = 0.0
                    chosen.append(row)
        return np.array(chosen, np.intp), worth[chosen]

    async def _supply(self, rows: Rows, worth: Floats, now: float) -> set[int]:
        page_ids = self.pages["page_id"][rows].tolist()
        self.pages["taken"][rows] = True
        loaded = await watched.due_urls(self._reader, page_ids, now)
        by_page = {due.page_id: due for due in loaded}
        supplied = set()
        for row, page_id, value in zip(rows.tolist(), page_ids, worth.tolist(), strict=True):
            due = by_page.get(page_id)
            if due is None:
                self.pages.drop(np.array([row]))
                continue
            due = replace(due, attempt=int(self.pages["failures"][row]))
            self._window.setdefault(due.host_id, []).append((value, due))
            self._in_window += 1
            supplied.add(due.host_id)
        return supplied


def _largest(worth: Floats, count: int) -> list[int]:
    """The rows of the ``count`` largest values above 0, largest first, ties by the lowest row."""
    if count < len(worth):
        rows = np.argpartition(-worth, count - 1)[:count]
    else:
        rows = np.arange(len(worth))
    rows = rows[worth[rows] > 0]
    found: list[int] = rows[np.lexsort((rows, -worth[rows]))].tolist()
    return found
