"""The budget of a daemon that was given none: one request a page and day, at most one a second.

Pages that are visited at a fixed interval count as often as that, and each host once, for its
robots.txt. While pages wait for their first visit the daemon sends one request a second, so that a
new site is read in hours. That is two requests for each of them, and ten: URLs of a host that never
answers cannot keep it up.
"""

from math import inf, log2
from typing import Final

import aiosqlite
import numpy as np

from freshet.crawler.politeness import Pacer
from freshet.scheduler.agenda.recrawl import RecrawlAgenda
from freshet.storage.queries import columns

#: One a second.
MOST: Final = 86_400.0
_FIRST: Final = 2.0
_LEAST_FIRST: Final = 10.0
#: A budget that differs by less is not changed.
_MOVED: Final = 0.05


async def of_store(reader: aiosqlite.Connection, seeds: int) -> float:
    """Return the requests a day for the pages of a store, and at least for its seeds."""
    return limited(max(await columns.watched(reader), seeds))


def limited(wanted: float) -> float:
    """Return the requests a day for so many visits a day."""
    return min(max(1.0, wanted), MOST)


def for_ranker(per_day: float) -> float:
    """Return the budget by which a ranker learns: a power of two.

    Where the pages hardly change, what it has learnt then serves after the next start.
    """
    return float(2.0 ** round(log2(per_day)))


class DefaultBudget:
    """Follows the pages of an agenda.

    Attributes:
        steady: requests a day once all pages were visited.
        first: whether pages wait for their first visit, at one request a second.
        waiting: how many do.
        counts_at: when the pages are counted next.
    """

    def __init__(self, agenda: RecrawlAgenda, pacer: Pacer, per_day: float) -> None:
        self._agenda = agenda
        self._pacer = pacer
        self._known = 0
        self._left = _LEAST_FIRST
        self._spent = pacer.spent
        self.steady = per_day
        self.first = True
        self.waiting = 0
        self.counts_at = -inf

    def per_day(self) -> float:
        """Return the budget for the pages that are known now."""
        pages = self._agenda.pages
        new = slice(min(self._known, len(pages)), None)
        waiting = ~pages["captured"] & (pages["gone"] == 0) & np.isneginf(pages["not_before"])
        self._left += _FIRST * int(np.count_nonzero(waiting[new]))
        if self.first:
            self._left = max(0.0, self._left - (self._pacer.spent - self._spent))
        self._known, self._spent = len(pages), self._pacer.spent
        self.waiting = int(np.count_nonzero(waiting))
        if not self.waiting and len(pages):
            self._left = 0.0
        self.first = (self.waiting > 0 or not len(pages)) and self._left > 0
        wanted = limited(self._visits())
        if abs(wanted / self.steady - 1) > _MOVED and len(pages):
            self.steady = wanted
        return MOST if self.first else self.steady

    def _visits(self) -> float:
        pages = self._agenda.pages
        there = pages["gone"] == 0
        count, per_day = recurring(self._agenda)
        return int(np.count_nonzero(there)) - count + per_day + len(self._agenda.learner.hosts)


def recurring(agenda: RecrawlAgenda) -> tuple[int, float]:
    """Return how many pages are visited at a fixed interval, and how often a day in all."""
    pages = agenda.pages
    those = (pages["gone"] == 0) & (pages["least"] == pages["most"])
    return int(np.count_nonzero(those)), float((1 / pages["most"][those]).sum())
