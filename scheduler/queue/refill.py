"""The pages that enter the ready queue: those that a valuation chose, and audit samples."""

from collections.abc import Iterable
from dataclasses import replace
from math import expm1, inf
from random import Random
from typing import Final

import aiosqlite
import numpy as np

from freshet.scheduler.arrays import Floats
from freshet.scheduler.queue.learner import Learner
from freshet.scheduler.queue.ready import ReadyQueue
from freshet.scheduler.queue.valuer import Valuation
from freshet.scheduler.sources import Rows
from freshet.storage.entries import Audit, Reason
from freshet.storage.queries import columns
from freshet.storage.records import DueUrl

_DAY_S: Final = 86_400.0
#: Maximum number of waiting pages of a host with which an audit sample is still added.
_MOST_WAITING: Final = 20
#: Pages read from the store at once.
_READ: Final = 500


class AuditDraws:
    """Random draws of captured pages for audits.

    Attributes:
        share: the share of all requests that are audits.
    """

    def __init__(self, rng: Random) -> None:
        self.share = 0.0
        self._due = 0.0
        self._rng = rng

    @property
    def is_due(self) -> bool:
        """Return whether a page is to be drawn."""
        return self._due >= 1

    def took(self) -> None:
        """Count a request."""
        self._due += self.share

    def draw(self, captured: Rows) -> int | None:
        """Return one of these rows, each equally likely; None without any."""
        self._due -= 1
        return int(captured[self._rng.randrange(len(captured))]) if len(captured) else None


class Supply:
    """Loader of pages from the store into the ready queue."""

    def __init__(
        self, reader: aiosqlite.Connection, learner: Learner, queue: ReadyQueue, draws: AuditDraws
    ) -> None:
        self._reader = reader
        self._pages, self._hosts = learner.pages, learner.hosts
        self._queue = queue
        self._draws = draws

    def revalue(self, value: Floats) -> None:
        """Sort the ready queue by the present values of its pages, (n,)."""

        def present_value(due: DueUrl) -> float:
            row = self._pages.row(due.page_id)
            # ``value`` has no rows for pages that were found after the thread began.
            is_first = due.audit or due.reason == "signal" or row is None or row >= len(value)
            return inf if is_first else float(value[row])

        self._queue.revalue(present_value)

    async def bring(self, found: Valuation, now: float) -> set[int]:
        """Put the chosen pages into the ready queue; return their hosts."""
        hosts: set[int] = set()
        for first in range(0, len(found.chosen), _READ):
            hosts |= await self._bring(found.chosen[first : first + _READ], found, now)
        return hosts

    async def _bring(self, rows: Rows, found: Valuation, now: float) -> set[int]:
        """Put some pages into the ready queue; drop pages that may no longer be fetched."""
        rows = rows[~self._pages["taken"][rows]]
        page_ids = self._pages["page_id"][rows].tolist()
        self._pages["taken"][rows] = True
        by_page = {due.page_id: due for due in await columns.due_urls(self._reader, page_ids, now)}
        hosts = set()
        for row, page_id in zip(rows.tolist(), page_ids, strict=True):
            due = by_page.get(page_id)
            if due is None:
                self._pages.drop(np.array([row]))
                continue
            reason: Reason = "discovery" if found.discovers[row] else "refresh"
            due = replace(due, attempt=int(self._pages["failures"][row]), reason=reason)
            self._queue.add(float(found.worth[row]), due)
            hosts.add(due.host_id)
        return hosts

    async def draw_audits(self, hazard: Floats, now: float) -> set[int]:
        """Draw captured pages while audits are due; return their hosts.

        ``hazard`` (n,) are the changes expected since the last visit; empty if no audit was due.
        """
        hosts: set[int] = set()
        while len(hazard) and self._draws.is_due:
            hosts |= await self._draw_audit(hazard, now)
        return hosts

    async def _draw_audit(self, hazard: Floats, now: float) -> set[int]:
        """Draw a page, also from the ready queue; a page in flight is skipped."""
        pages, known = self._pages, slice(len(hazard))
        captured = np.flatnonzero(pages["captured"][known] & (pages["gone"][known] == 0))
        row = self._draws.draw(captured)
        if row is None:
            return set()
        host_id, page_id = self._hosts.ids[pages["host"][row]], int(pages["page_id"][row])
        if self._queue.count(host_id) > _MOST_WAITING:
            return set()
        if pages["taken"][row]:
            due = self._queue.withdraw(host_id, page_id)
        else:
            due = next(iter(await columns.due_urls(self._reader, [page_id], now)), None)
        if due is None:
            return set()
        x, since = float(hazard[row]), float(pages["since"][row]) * _DAY_S
        audit = Audit(float(pages["importance"][row]), since, -expm1(-x), x)
        pages["taken"][row] = True
        self._queue.add(inf, replace(due, audit=audit, reason="audit"))
        return {due.host_id}

    def clear(self, hosts: Iterable[int], least: float = inf) -> None:
        """Remove the pages of hosts (codes) with a value below ``least`` from the ready queue."""
        for host in hosts:
            back = self._queue.clear(self._hosts.ids[host], least)
            ids = np.array([due.page_id for due in back], np.int64)
            self._pages["taken"][self._pages.rows(ids)[0]] = False
