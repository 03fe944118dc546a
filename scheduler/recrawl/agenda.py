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
from collections.abc import Collection, Sequence
from dataclasses import replace
from math import expm1, inf
from random import Random
from typing import Final

import aiosqlite
import numpy as np

from scheduler.arguments import Floats
from scheduler.recrawl.refresher import Refresher
from scheduler.recrawl.terms import TermsOf
from scheduler.recrawl.watchlist import Watchlist
from scheduler.recrawl.window import Window
from scheduler.sources import Rows
from storage import hosts, watched
from storage.records import Acknowledged, Audit, DueUrl, Host, Kind, Reason, Supply, Visit
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


class RecrawlAgenda:
    """An :class:`~storage.records.Agenda` that never ends."""

    def __init__(
        self,
        reader: aiosqlite.Connection,
        refresher: Refresher,
        terms_of: TermsOf,
        rng: Random,
        *,
        audit_share: float = 0.0,
    ) -> None:
        self._reader = reader
        self._refresher = refresher
        self._terms_of = terms_of
        self.pages = Watchlist()
        self._host_codes: dict[int, int] = {}
        self._host_ids: list[int] = []
        self._origins: dict[int, str] = {}
        self._new_hosts: list[Host] = []
        self._window = Window()
        self._wanted = _LEAST
        self._settled: list[Visit] = []
        self._found: list[int] = []
        self._rng = rng
        self._audit_share = audit_share
        self._audits_due = 0.0
        self._looked_at = 0.0
        self._wants_look = True

    def forget(self, refresher: Refresher) -> None:
        """Begin anew with another refresher; nothing may be in flight."""
        self._refresher = refresher
        self.pages = Watchlist()
        self._host_codes, self._host_ids, self._origins = {}, [], {}
        self._window, self._settled, self._found = Window(), [], []
        self._wants_look = True

    async def open(self) -> None:
        """Take in all pages of the store, unless they are known."""
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
        for row in np.flatnonzero(self.pages["gone"]).tolist():
            self._refresher.gone(row)

    def next(self, ready: Collection[int], now: float) -> DueUrl | None:
        """Take the worthiest page of the hosts that are ready."""
        due = self._window.best(ready)
        if due is None:
            self._widen()
            return None
        self._wanted = max(_LEAST, self._wanted - 1)
        self._audits_due += self._audit_share
        return due

    def _widen(self) -> None:
        if self._wanted < _MOST and len(self._window) >= self._wanted:
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
        return bool(self._settled or self._found or self._wants_look or self._audits_due >= 1)

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
        if now >= self._looked_at + _LOOK_AGAIN_S or len(self._window) * 2 < self._wanted:
            self._wants_look = True
        supplied = await self._look(now) if self._wants_look else set()
        if self._audits_due >= 1:
            self._audits_due -= 1
            supplied |= await self._audit(now)
        new_hosts, self._new_hosts = self._new_hosts, []
        return Supply(tuple(new_hosts), tuple(supplied))

    # -- what people want to know ------------------------------------------------

    @property
    def host_ids(self) -> Sequence[int]:
        """The hosts, by the codes that pages and refresher know them by."""
        return tuple(self._host_ids)

    @property
    def paid(self) -> Sequence[float]:
        """What the pages asked for last were worth."""
        return tuple(self._window.paid)

    def upcoming(self) -> DueUrl | None:
        """The page that comes next if its host is ready."""
        return self._window.worthiest()

    # -- learning ----------------------------------------------------------------

    async def _watch(self, found: WatchedPages) -> None:
        """Append pages, with what the store knows of them."""
        if not len(found):
            return
        unknown = set(found.host_id.tolist()) - self._host_codes.keys()
        for host in await hosts.load(self._reader, sorted(unknown)):
            self._host_codes[host.host_id] = len(self._host_codes)
            self._host_ids.append(host.host_id)
            self._origins[host.host_id] = host.origin
            self._new_hosts.append(host)
        host_ids = found.host_id.tolist()
        codes = np.array([self._host_codes[host_id] for host_id in host_ids], np.intp)
        origins = [self._origins[host_id] for host_id in host_ids]
        terms = self._terms_of(found.url, origins)
        if terms.never.any():
            await self._watch(found.take(~terms.never))
            return
        self.pages.add(
            found.page_id,
            host=codes,
            importance=terms.importance,
            least=terms.least_days,
            most=terms.most_days,
            since=found.since / _DAY_S,
            captured=found.captured,
            gone=found.gone.astype(np.int16),
            not_before=np.where(found.failed, found.asked / _DAY_S, -np.inf),
        )
        self._refresher.add(codes, terms.area, terms.importance, found.found_at / _DAY_S)

    def _learn(self, visit: Visit) -> None:
        row = self.pages.row(visit.due.page_id)
        if row is None:
            return
        self.pages.settle(row, visit)
        kind, at = visit.observation.kind, visit.observation.at / _DAY_S
        if kind in (Kind.CHANGED, Kind.UNCHANGED):
            self._refresher.looked(row, at, changed=kind is Kind.CHANGED)
        elif kind is Kind.NEW:
            self._refresher.looked(row, at, changed=None)
        elif kind is Kind.GONE:
            self._refresher.looked(row, at, changed=None)
            self._refresher.gone(row)

    # -- the window --------------------------------------------------------------

    async def _look(self, now: float) -> set[int]:
        """Look over all pages; the hosts of those that came into the window."""
        self._looked_at, self._wants_look = now, False
        self._wanted = max(_LEAST, min(self._wanted, _MOST), len(self.pages) // _SHARE)
        room = self._wanted - len(self._window)
        if room <= 0 or not len(self.pages):
            return set()
        if len(self.pages) > _MANY:
            worth = await asyncio.to_thread(self._worth, now / _DAY_S)
        else:
            worth = self._worth(now / _DAY_S)
        self._window.revalue(lambda due: self._now_worth(due, worth))
        rows = self._chosen(worth, now / _DAY_S, room)
        supplied = await self._supply(rows, worth[rows], now)
        if len(rows) < room:
            # There is no more to be had: look again when some of it is used up.
            self._wanted = max(_LEAST, len(self._window))
        return supplied

    def _worth(self, now: float) -> Floats:
        return self.pages.weighted(self._refresher.worth(now), now)

    def _now_worth(self, due: DueUrl, worth: Floats) -> float:
        row = self.pages.row(due.page_id)
        return inf if due.audit is not None or row is None else float(worth[row])

    def _chosen(self, worth: Floats, now: float, room: int) -> Rows:
        """The worthiest rows that may come into the window, the worthiest first."""
        left = np.where(self.pages.may_be_asked(now), worth, 0.0)
        host = self.pages["host"]
        free = np.full(len(self._host_codes), _OF_A_HOST)
        for host_id, count in self._window.counts():
            free[self._host_codes[host_id]] -= count
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
        return np.array(chosen, np.intp)

    async def _audit(self, now: float) -> set[int]:
        """Draw a captured page, each as likely as the next; its host, which is asked first for it.

        What is in the window is drawn as well: only a page in flight is passed over.
        """
        captured = np.flatnonzero(self.pages["captured"] & (self.pages["gone"] == 0))
        if not len(captured):
            return set()
        row = int(captured[self._rng.randrange(len(captured))])
        due = await self._drawn(row, now)
        if due is None:
            return set()
        hazard = float(self._refresher.beliefs(now / _DAY_S).hazard[row])
        audit = Audit(
            float(self.pages["importance"][row]),
            float(self.pages["since"][row]) * _DAY_S,
            -expm1(-hazard),
            hazard,
        )
        self.pages["taken"][row] = True
        self._window.add(inf, replace(due, audit=audit, reason=Reason.AUDIT))
        return {due.host_id}

    async def _drawn(self, row: int, now: float) -> DueUrl | None:
        """A page out of the window or the store; None while it is in flight."""
        page_id = int(self.pages["page_id"][row])
        if self.pages["taken"][row]:
            return self._window.withdraw(self._host_ids[int(self.pages["host"][row])], page_id)
        return next(iter(await watched.due_urls(self._reader, [page_id], now)), None)

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
            self._window.add(value, due)
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
