"""What looks at a page are worth as time goes by, as the daemon of these settings has it.

The daemon's learning is gone through again, from the store: its law is that it depends on the
looks alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Final

import numpy as np

from freshet.crawler.commands.refreshing import refresher_of
from freshet.crawler.commands.revelations import Revelations
from freshet.scheduler import policy as policy_scheduler
from freshet.scheduler.agenda.history import News
from freshet.scheduler.agenda.pages import Watchlist
from freshet.scheduler.agenda.ranker import Refresher
from freshet.scheduler.agenda.rankers import Guarded, Learning
from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.estimate.observations import Looks
from freshet.scheduler.policy import IndexPolicy, Policy, RatePolicy
from freshet.scheduler.sources import Rows

#: Looks of which the price is the median worth, where no outlook tells it.
_RECENT: Final = 200
_FARTHEST_DAYS: Final = 3_650.0
_HALVINGS: Final = 40


@dataclass(frozen=True, slots=True)
class Watched:
    """n pages as a refresher takes them; all columns have length n, ``found`` in Unix days."""

    site: Rows
    area: Rows
    importance: Floats
    found: Floats


@dataclass(frozen=True, slots=True)
class Valuing:
    """A page's row in what was learnt, and alone in a watchlist of its own; days are Unix days.

    ``paid`` is what the last looks at any page were worth when they were taken, and the last one
    at this page, for what they kept fresh; ``paid_row`` and ``paid_look`` say at which page, and
    which look of all.
    """

    policy: Policy
    refresher: Refresher
    learning: Learning
    row: int
    site: int
    page: Watchlist
    revelations: Revelations
    looks: Looks
    paid: Floats
    paid_row: Rows
    paid_look: Rows

    def worth(self, day: float) -> float | None:
        """What a look is worth on a day; None: the policy has no index; inf: it comes first."""
        if not isinstance(self.policy, IndexPolicy):
            return None
        own = self.refresher.worth(day)[self.row : self.row + 1]
        its, reveals = self.revelations, self.revelations.on(day)
        if reveals.is_urgent:
            return inf
        worth = np.maximum(own + reveals.worth, reveals.fading)
        found = self.page.weighted(worth, day, its.turn, its.new_page)
        return float(found[0]) * (1.0 if self.page["captured"][0] else its.exists)

    def worth_at_last_look(self) -> float | None:
        """What the last look was worth when it was taken, if there was one before."""
        mine = np.flatnonzero(self.looks.row == self.row)
        if len(mine) < 2:
            return None
        taken = self.paid[self.paid_look == mine[-1]]
        return float(taken[0]) if len(taken) else None

    def usual_worth(self, among: Bools) -> float | None:
        """What the last looks at pages of these were worth: their median; ``among`` is (n,)."""
        taken = self.paid[among[self.paid_row]]
        return float(np.median(taken)) if len(taken) else None

    def is_clocked(self, day: float) -> bool:
        """Whether the page's site has a clock of its own that is gone by."""
        return bool(self.refresher.beliefs(day).clocked[self.row] > 0)

    def is_claimed(self) -> bool | None:
        """Whether claims on the page are believed; None: there are none, or nobody listens."""
        if not isinstance(self.refresher, Guarded):
            return None
        listening = self.refresher.listening(self.site)
        if listening is None or not listening.speaks_of(self.row):
            return None
        return listening.proven

    def stale(self, day: float) -> float:
        """The probability that the page has changed since it was looked at."""
        return float(-np.expm1(-self.refresher.beliefs(day).hazard[self.row]))

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


def valuing(
    name: str, budget: float, pages: Watched, news: News, page: Watchlist, reveals: Revelations
) -> Valuing:
    """Learn what a daemon of this policy and budget has learnt from these news."""
    looks, row = news.looks, reveals.row
    chosen, refresher, learning = policy_scheduler.load(name), refresher_of(name), Learning()
    refresher.replan(budget, 0.0)
    refresher.add(pages.site, pages.area, pages.importance, pages.found)
    learning.add(pages.site, pages.importance, pages.found)
    learning.learn(looks)
    told = _told(chosen, looks, row)
    paid, done = np.zeros(len(told)), 0
    for place, look in enumerate(told.tolist()):
        news.teach(refresher, done, look)
        paid[place] = refresher.worth(float(looks.at[look]))[looks.row[look]]
        done = look
    news.teach(refresher, done)
    site = int(pages.site[row])
    return Valuing(
        chosen, refresher, learning, row, site, page, reveals, looks, paid, looks.row[told], told
    )


def _told(chosen: Policy, looks: Looks, row: int) -> Rows:
    """The looks whose worth is asked for: the last ones at pages seen before, and the page's."""
    if not isinstance(chosen, IndexPolicy):
        return np.empty(0, np.intp)
    again = np.ones(len(looks), np.bool_)
    again[np.unique(looks.row, return_index=True)[1]] = False
    recent = np.flatnonzero(again)[-_RECENT:]
    mine = np.flatnonzero(looks.row == row)[1:][-1:]
    return np.union1d(recent, mine).astype(np.intp)
