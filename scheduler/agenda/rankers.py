"""Pages valued by an index policy, with change rates learnt as they are looked at."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import Final

import numpy as np

from freshet.scheduler.agenda.ranker import Beliefs, Refresher
from freshet.scheduler.agenda.site_clock_ranker import ByClock
from freshet.scheduler.arrays import Column, Floats
from freshet.scheduler.estimate.bayes import EmpiricalBayes
from freshet.scheduler.estimate.evidence import Evidence
from freshet.scheduler.estimate.observations import SignalBatch, VisitResults
from freshet.scheduler.estimate.sources_trust import Listening
from freshet.scheduler.policy import CrawlPlan, IndexPolicy, RatePolicy
from freshet.scheduler.sources import Rows, SourceTable

# -- learning ----------------------------------------------------------------
#
# What is learnt of pages as they are looked at: their change rates, as a table.

_HALF_LIFE_DAYS: Final = 480.0
_GROWTH_TOGETHER: Final = 4.0
_NOT_COUNTED: Final = np.zeros(1, np.bool_)


class Learning:
    """n pages that come and never go; each one's rate follows its looks.

    A page's rate is estimated after each look at it, those of all others when the prior that
    they share has been fitted anew. Rates drift: evidence that is 480 days old weighs half, which
    served best on recorded sites.

    Looks are learnt from one by one, so that in which batches they come does not show; or
    ``together``, with fewer fits of the prior: that takes a tenth of the time where it need not
    hold.
    """

    def __init__(self, *, together: bool = False) -> None:
        self._together = together
        growth = {"growth": _GROWTH_TOGETHER} if together else {}
        self._learner = EmpiricalBayes(0, half_life_days=_HALF_LIFE_DAYS, **growth)
        self._importance = Column[np.float64](np.float64)
        self._last = Column[np.float64](np.float64)
        self._rate = Column[np.float64](np.float64)
        self._looked = Column[np.bool_](np.bool_)

    def __len__(self) -> int:
        return len(self._rate)

    def add(self, site: Rows, importance: Floats, at: Floats) -> None:
        """Append rows; their rates are what is usual on their site."""
        first = len(self)
        self._learner.extend(site)
        self._importance.extend(importance)
        self._last.extend(at)
        self._looked.append(len(at))
        self._rate.extend(self._learner.change_rate(np.arange(first, first + len(site))))

    def learn(self, looks: VisitResults) -> None:
        """Learn from looks, in the order of time."""
        if self._together:
            self._learn_together(looks)
            return
        last = self._last.rows
        told = np.zeros(len(looks), np.bool_)
        self._looked.rows[looks.row] = True
        for k in range(len(looks)):
            row, at = int(looks.row[k]), float(looks.at[k])
            span = at - last[row]
            last[row] = max(at, last[row])
            if looks.compared[k] and span > 0:
                told[k] = True
                self._learn_one(looks.row[k : k + 1], at, span, changed=bool(looks.changed[k]))
        rows = np.unique(looks.row[told])
        if len(rows):
            self._rate.rows[rows] = self._learner.change_rate(rows)

    def _learn_one(self, row: Rows, at: float, span: float, *, changed: bool) -> None:
        found = np.array([int(changed)])
        self._learner.observe(Evidence(row, np.array([at]), np.array([span]), found, _NOT_COUNTED))
        if self._learner.fit_is_due:
            self._rate.rows[:] = self._learner.change_rate()

    def _learn_together(self, looks: VisitResults) -> None:
        last = self._last.rows
        order = np.argsort(looks.row, kind="stable")
        row, at = looks.row[order], looks.at[order]
        before = last[row]
        follows = np.flatnonzero(np.diff(row, prepend=-1) == 0)
        before[follows] = np.maximum(before[follows], at[follows - 1])
        np.maximum.at(last, row, at)
        self._looked.rows[row] = True
        told = looks.compared[order] & (at > before)
        row, at, span = row[told], at[told], (at - before)[told]
        changes = looks.changed[order][told].astype(np.int64)
        self._learner.observe(Evidence(row, at, span, changes, np.zeros(len(row), np.bool_)))
        if self._learner.fit_is_due:
            self._rate.rows[:] = self._learner.change_rate()
        elif len(row):
            rows = np.unique(row)
            self._rate.rows[rows] = self._learner.change_rate(rows)

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        """These pages weigh so much from now on."""
        self._importance.rows[rows] = importance

    def inherit(self, old: int, new: int) -> None:
        """What is known of one page is known of another, which was looked at when that one was."""
        self._learner.inherit(old, new)
        if not self._looked.rows[new]:
            self._last.rows[new] = self._last.rows[old]
        self._rate.rows[new] = self._learner.change_rate(np.array([new]))[0]

    def table(self) -> SourceTable:
        """All pages with what is known of them; not to be written into."""
        n = len(self)
        nothing = np.zeros(n)
        return SourceTable(
            self._importance.rows, self._rate.rows, np.zeros(n, np.bool_), np.zeros(n, np.intp),
            np.full(1, np.inf), self._last.rows, np.zeros(n, np.int64), nothing, nothing,
        )  # fmt: skip

    def rate(self, row: int) -> float:
        """The estimated changes of a page per day."""
        return float(self._rate.rows[row])

    def credible(self, row: int) -> tuple[float, float]:
        """The rates between which that of a page lies with a probability of 90 %."""
        lower, upper = self._learner.credible_interval(np.array([row], np.intp))
        return float(lower[0]), float(upper[0])

    def beliefs(self, now: float) -> Beliefs:
        """Changes at the estimated rates since the last look at each page."""
        age = np.maximum(now - self._last.rows, 0.0)
        return Beliefs(self._rate.rows * age, self._rate.rows, np.zeros(len(age)))


class ByIndex:
    """A :class:`~freshet.scheduler.agenda.ranker.Refresher` for an index policy.

    ``learning`` says how rates are learnt.
    """

    def __init__(self, policy: IndexPolicy, learning: Learning | None = None) -> None:
        self._policy = policy
        self._learning = Learning() if learning is None else learning

    def add(self, site: Rows, area: Rows, importance: Floats, at: Floats) -> None:
        """Append rows."""
        self._learning.add(site, importance, at)

    def learn(self, looks: VisitResults) -> None:
        """Learn from looks."""
        self._learning.learn(looks)

    def hear(self, said: SignalBatch) -> None:
        """Claims are not listened to."""

    def worth(self, now: float) -> Floats:
        """(n,), the index of every page."""
        return self._policy.index(self._learning.table(), now)

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        """Weigh these pages anew."""
        self._learning.reweigh(rows, importance)

    def inherit(self, old: int, new: int) -> None:
        """What is known of one page is known of another."""
        self._learning.inherit(old, new)

    def beliefs(self, now: float) -> Beliefs:
        """Changes at the learnt rates."""
        return self._learning.beliefs(now)

    def replan(self, budget: float, now: float) -> None:
        """Nothing changes: the price is what comes out."""

    def limits(self, lane: Rows, per_day: Floats) -> None:
        """Nothing changes: the next look goes to the worthiest page whose host is ready."""


# -- by rate -----------------------------------------------------------------
#
# Pages looked at by a plan of crawl rates, planned anew as rates are learnt.
#
# Each look is followed by the next after a time with mean 1/ρ: exactly that where the plan is to
# be carried out evenly spaced, exponentially distributed where at Poisson times. The draw belongs
# to the page and the day of its last look, and is no state: fed the same looks, the same is due.
#
# A page is worth its importance times the days for which it has been due. Where nothing is due,
# those go first that are nearest to it: the budget is spent whole. The plan keeps the limits of
# the hosts, and gives what they refuse to the pages of others.

#: What a page that is not due is worth at most, compared with one that has been for a day.
_NOT_DUE: Final = 1e-9
#: A plan is made anew when so much more or less is looked at.
_GROWN: Final = 1.1
_DAYS: Final = 1.0
#: A limit that moves by so much calls for another plan.
_MOVED: Final = 0.2


class ByRate:
    """A :class:`~freshet.scheduler.agenda.ranker.Refresher` for a rate policy.

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

    def learn(self, looks: VisitResults) -> None:
        """Learn from looks."""
        self._learning.learn(looks)

    def hear(self, said: SignalBatch) -> None:
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


# -- guarded -----------------------------------------------------------------
#
# A refresher whose faults are contained: somebody else's policy must not stop the daemon.

log = logging.getLogger(__name__)

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_MOST_TOLD = 100
#: Pages that have been looked at since the last good plan come after those that have not.
_AFTER = 1e-6


class Guarded:
    """A :class:`~freshet.scheduler.agenda.ranker.Refresher` around another.

    Where that raises an error or answers with anything but n finite numbers from 0 on, its last
    good answer holds; pages that are not in it go by importance and age. A kind of fault is
    told once.
    """

    def __init__(self, inner: Refresher, name: str) -> None:
        self._inner = inner
        self._name = name
        self._told: set[str] = set()
        self._good = np.empty(0)
        self._importance = Column[np.float64](np.float64)
        self._last = Column[np.float64](np.float64)

    def add(self, site: Rows, area: Rows, importance: Floats, at: Floats) -> None:
        """Append rows."""
        self._importance.extend(importance)
        self._last.extend(at)
        self._inner.add(site, area, importance, at)

    def learn(self, looks: VisitResults) -> None:
        """Pass it on."""
        np.maximum.at(self._last.rows, looks.row, looks.at)
        self._good[looks.row[looks.row < len(self._good)]] = 0.0
        self._inner.learn(looks)

    def hear(self, said: SignalBatch) -> None:
        """Pass it on."""
        self._inner.hear(said)

    def listening(self, site: int) -> Listening | None:
        """What claims have told of a site; None where nobody listens, or claims anything."""
        return self._inner.listening(site) if isinstance(self._inner, ByClock) else None

    def worth(self, now: float) -> Floats:
        """What the other says, or said last."""
        worth: object = None
        try:
            worth = self._inner.worth(now)
        except Exception as error:  # noqa: BLE001 - whatever another's code raises is told
            fault: str | None = f"{type(error).__name__}: {error}"
        else:
            fault = self._fault(worth)
        if fault is None and isinstance(worth, np.ndarray):
            self._good = worth.copy()
            return worth
        self._tell(fault or "")
        rest = self._importance.rows * np.maximum(now - self._last.rows, 0.0)
        rest[: len(self._good)] = np.where(
            self._good > 0, self._good, rest[: len(self._good)] * _AFTER
        )
        return rest

    def beliefs(self, now: float) -> Beliefs:
        """What the other says."""
        return self._inner.beliefs(now)

    def limits(self, lane: Rows, per_day: Floats) -> None:
        """Pass it on."""
        self._inner.limits(lane, per_day)

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        """Pass it on."""
        self._importance.rows[rows] = importance
        self._inner.reweigh(rows, importance)

    def inherit(self, old: int, new: int) -> None:
        """Pass it on."""
        self._last.rows[new] = max(self._last.rows[new], self._last.rows[old])
        self._inner.inherit(old, new)

    def replan(self, budget: float, now: float) -> None:
        """Pass it on."""
        try:
            self._inner.replan(budget, now)
        except Exception as error:  # noqa: BLE001 - as above
            self._tell(f"{type(error).__name__}: {error}")

    def _tell(self, fault: str) -> None:
        # Without what differs each time, such as the number of a page.
        kind = _NUMBER.sub("#", fault)
        if kind not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(kind)
            log.error("policy %s: %s; its last good plan goes on", self._name, fault)

    def _fault(self, worth: object) -> str | None:
        if not isinstance(worth, np.ndarray):
            return f"answers with {type(worth).__name__}"
        if worth.shape != (len(self._last),):
            return f"answers with {worth.shape} values for {len(self._last)} pages"
        good = np.isfinite(worth) & (worth >= 0)
        if good.all():
            return None
        row = int(np.argmin(good))
        return f"says that page {row} is worth {worth[row]}"
