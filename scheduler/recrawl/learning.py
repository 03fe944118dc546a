"""What is learnt of pages as they are looked at: their change rates, as a table."""

from __future__ import annotations

from typing import Final

import numpy as np

from freshet.scheduler.arguments import Floats
from freshet.scheduler.columns import Column
from freshet.scheduler.estimators.empirical_bayes import EmpiricalBayes
from freshet.scheduler.estimators.estimator import Evidence
from freshet.scheduler.recrawl.looks import Looks
from freshet.scheduler.recrawl.refresher import Beliefs
from freshet.scheduler.sources import Rows, SourceTable

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

    def learn(self, looks: Looks) -> None:
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

    def _learn_together(self, looks: Looks) -> None:
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
