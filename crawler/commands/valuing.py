"""What looks at a page are worth as time goes by, by its own history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from scheduler.arguments import Bools, Floats
from scheduler.policy import IndexPolicy, Policy, RatePolicy
from scheduler.recrawl.learning import Learning
from scheduler.recrawl.watchlist import Watchlist
from scheduler.sources import Rows

#: Looks of which the price is the median worth, where no outlook tells it.
_RECENT: Final = 200
_FARTHEST_DAYS: Final = 3_650.0
_HALVINGS: Final = 60


@dataclass(frozen=True, slots=True)
class Valuing:
    """A page's row in what was learnt, and alone in a watchlist of its own; days are Unix days.

    ``row_of`` and ``at`` are all looks at all pages, in the order in which they were made.
    """

    policy: Policy
    learning: Learning
    row: int
    page: Watchlist
    row_of: Rows
    at: Floats

    def worth(self, day: float) -> float | None:
        """What a look is worth on a day, None where the policy has no index."""
        if not isinstance(self.policy, IndexPolicy):
            return None
        own = np.array([self.row], np.intp)
        index = self._index(own, self.learning.table().last_crawl[own], day)
        return float(self.page.weighted(index, day)[0])

    def worth_at_last_look(self) -> float | None:
        """What the last look was worth when it was taken, if there was one before."""
        if not isinstance(self.policy, IndexPolicy):
            return None
        mine = self.at[self.row_of == self.row]
        if len(mine) < 2:
            return None
        return float(self._index(np.array([self.row], np.intp), mine[-2:-1], float(mine[-1]))[0])

    def usual_worth(self, among: Bools) -> float | None:
        """What the last looks at pages of these were worth: their median; ``among`` is (n,)."""
        if not isinstance(self.policy, IndexPolicy):
            return None
        order = np.lexsort((np.arange(len(self.row_of)), self.row_of))
        row, day = self.row_of[order], self.at[order]
        again = np.flatnonzero((np.diff(row) == 0) & among[row[1:]]) + 1
        latest = again[np.argsort(day[again], kind="stable")[-_RECENT:]]
        paid = [
            float(self._index(row[i : i + 1], day[i - 1 : i], float(day[i]))[0])
            for i in latest.tolist()
        ]
        return float(np.median(paid)) if paid else None

    def planned(self, budget: float, lane: Rows, per_day: Floats) -> float | None:
        """The looks a day of a plan for so many in all, None where the policy makes none.

        ``lane`` (n,) is that of each page, which allows ``per_day`` looks to all of its pages.
        """
        if not isinstance(self.policy, RatePolicy) or not self.page["captured"][0]:
            return None
        table = replace(self.learning.table(), host=lane, host_capacity=per_day)
        return float(self.policy.rates(table, budget).crawl_rate[self.row])

    def due_at_price(self, price: float, day: float) -> float | None:
        """The days until a look is worth the price; None: not for years."""
        if self._reaches(price, day):
            return 0.0
        early, late = 0.0, _FARTHEST_DAYS
        if not self._reaches(price, day + late):
            return None
        for _ in range(_HALVINGS):
            middle = (early + late) / 2
            early, late = (early, middle) if self._reaches(price, day + middle) else (middle, late)
        return late

    def _reaches(self, price: float, day: float) -> bool:
        worth = self.worth(day)
        return worth is not None and worth >= price

    def _index(self, rows: Rows, last: Floats, day: float) -> Floats:
        """What looks at these pages are worth on a day if they were last looked at on those."""
        if not isinstance(self.policy, IndexPolicy):
            raise TypeError("the policy has no index")
        table = self.learning.table().take(rows)
        table.last_crawl[:] = last
        return self.policy.index(table, day)
