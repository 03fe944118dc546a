"""Drawing captured pages at random: looks at them measure how fresh the copies are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import expm1, inf
from random import Random
from typing import Final

import aiosqlite
import numpy as np

from freshet.scheduler.arguments import Floats
from freshet.scheduler.recrawl.watchlist import Watchlist
from freshet.scheduler.recrawl.window import Window
from freshet.storage.entries import Audit
from freshet.storage.queries import columns
from freshet.storage.records import DueUrl
from freshet.storage.words import Reason

_DAY_S: Final = 86_400.0
#: Of a host that is away no more audits pile up than some, which would take the window's room.
_OF_AWAY_HOST: Final = 20


@dataclass(frozen=True, slots=True)
class Drawing:
    """Draws from the pages of a watchlist into a window; ``host_ids`` are those of its codes."""

    reader: aiosqlite.Connection
    rng: Random

    async def draw(
        self,
        pages: Watchlist,
        window: Window,
        host_ids: Sequence[int],
        hazard: Floats,
        now: float,
    ) -> set[int]:
        """Draw a captured page, each as likely as the next; its host, which is asked first for it.

        ``hazard`` (n,) are the changes expected since the last look. What is in the window is drawn
        as well: only a page in flight is passed over.
        """
        known = slice(len(hazard))
        captured = np.flatnonzero(pages["captured"][known] & (pages["gone"][known] == 0))
        if not len(captured):
            return set()
        row = int(captured[self.rng.randrange(len(captured))])
        host_id = host_ids[int(pages["host"][row])]
        if window.count(host_id) > _OF_AWAY_HOST:
            return set()
        due = await self._drawn(pages, window, host_id, row, now)
        if due is None:
            return set()
        x = float(hazard[row])
        audit = Audit(
            float(pages["importance"][row]), float(pages["since"][row]) * _DAY_S, -expm1(-x), x
        )
        pages["taken"][row] = True
        window.add(inf, replace(due, audit=audit, reason=Reason.AUDIT))
        return {due.host_id}

    async def _drawn(
        self, pages: Watchlist, window: Window, host_id: int, row: int, now: float
    ) -> DueUrl | None:
        """A page out of the window or the store; None while it is in flight."""
        page_id = int(pages["page_id"][row])
        if pages["taken"][row]:
            return window.withdraw(host_id, page_id)
        return next(iter(await columns.due_urls(self.reader, [page_id], now)), None)
