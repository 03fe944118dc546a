"""Pages looked at by a plan of crawl rates, planned anew as rates are learnt.

Each look is followed by the next after a time with mean 1/ρ: exactly that where the plan is to be
carried out evenly spaced, exponentially distributed where at Poisson times. The draw belongs to
the page and the day of its last look, and is no state: fed the same looks, the same is due.

A page is worth its importance times the days for which it has been due. Where nothing is due,
those go first that are nearest to it: the budget is spent whole. The plan keeps the limits of the
hosts, and gives what they refuse to the pages of others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from freshet.scheduler.arguments import Floats
from freshet.scheduler.columns import Column
from freshet.scheduler.policy import CrawlPlan, RatePolicy
from freshet.scheduler.recrawl.hearing import Hearing
from freshet.scheduler.recrawl.learning import Learning
from freshet.scheduler.recrawl.looks import Looks
from freshet.scheduler.recrawl.refresher import Beliefs
from freshet.scheduler.sources import Rows, SourceTable

#: What a page that is not due is worth at most, compared with one that has been for a day.
_NOT_DUE: Final = 1e-9
#: A plan is made anew when so much more or less is looked at.
_GROWN: Final = 1.1
_DAYS: Final = 1.0
#: A limit that moves by so much calls for another plan.
_MOVED: Final = 0.2


class ByRate:
    """A :class:`~freshet.scheduler.recrawl.refresher.Refresher` for a rate policy.

    ``seed`` decides the times of plans at Poisson times, ``learning`` how rates are learnt.
    """

    def __init__(self, policy: RatePolicy, seed: int = 0, learning: Learning | None = None) -> None:
        self._policy = policy
        self._seed = np.uint64(seed)
        self._learning = Learning() if learning is None else learning
        self._budget = 1.0
        self._plan: CrawlPlan | None = None
        self._planned_at = -np.inf
        self._site = Column[np.intp](np.intp)
        self._lane, self._per_day = np.empty(0, np.intp), np.empty(0)

    def add(self, site: Rows, area: Rows, importance: Floats, at: Floats) -> None:
        """Append rows; they are in the next plan."""
        self._site.extend(site)
        self._learning.add(site, importance, at)

    def learn(self, looks: Looks) -> None:
        """Learn from looks."""
        self._learning.learn(looks)

    def hear(self, said: Hearing) -> None:
        """Claims are not listened to."""

    def worth(self, now: float) -> Floats:
        """(n,), importance times the days since a look was due."""
        table = self._learning.table()
        plan = self._current(now)
        rate = np.zeros(len(table))
        rate[: len(plan)] = plan.crawl_rate
        wait = self._draws(table.last_crawl) if plan.crawling == "poisson" else np.ones(len(rate))
        planned = rate > 0
        late = np.full(len(rate), -1.0)
        late[planned] = now - table.last_crawl[planned] - wait[planned] / rate[planned]
        due = table.importance * late
        soon = np.exp(np.minimum(late[planned] * rate[planned], 0.0))
        not_due = np.zeros(len(rate))
        not_due[planned] = _NOT_DUE * soon
        return np.where(late > 0, _NOT_DUE + due, not_due)

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        """Weigh these pages anew in the next plan."""
        self._learning.reweigh(rows, importance)

    def inherit(self, old: int, new: int) -> None:
        """What is known of one page is known of another."""
        self._learning.inherit(old, new)

    def beliefs(self, now: float) -> Beliefs:
        """Changes at the learnt rates."""
        return self._learning.beliefs(now)

    def replan(self, budget: float, now: float) -> None:
        """Plan for this budget at the next look."""
        self._budget = budget
        self._plan = None

    def _current(self, now: float) -> CrawlPlan:
        """The plan, made anew each day, and where there are many new pages."""
        n = len(self._learning)
        plan = self._plan
        if plan is None or now >= self._planned_at + _DAYS or n > _GROWN * len(plan):
            plan = self._plan = self._policy.rates(self._limited(), self._budget)
            self._planned_at = now
        return plan

    def limits(self, lane: Rows, per_day: Floats) -> None:
        """Keep these limits from the next plan on, which comes at once where they moved."""
        moved = not np.array_equal(lane, self._lane) or not np.allclose(
            per_day, self._per_day, rtol=_MOVED, atol=0
        )
        self._lane, self._per_day = lane, per_day
        if moved:
            self._plan = None

    def _limited(self) -> SourceTable:
        """All pages on their lanes; those of sites that have come since have no limit."""
        lane = np.append(self._lane, len(self._per_day))
        host = lane[np.minimum(self._site.rows, len(self._lane))]
        per_day = np.append(self._per_day, np.inf)
        return replace(self._learning.table(), host=host, host_capacity=per_day)

    def _draws(self, last: Floats) -> Floats:
        """(n,), exponentially distributed with mean 1, by the page and its last look."""
        mixed = last.view(np.uint64) ^ (np.arange(len(last), dtype=np.uint64) + self._seed)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        share = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return -np.log1p(-share)
