"""What is learnt of pages as they are looked at: their change rates, as a table. Pure."""

from __future__ import annotations

import numpy as np

from scheduler.arguments import Bools, Floats
from scheduler.estimators.empirical_bayes import EmpiricalBayes
from scheduler.estimators.estimator import Evidence
from scheduler.recrawl.refresher import Beliefs
from scheduler.sources import Rows, SourceTable


class Learning:
    """n pages that come and never go; each one's rate follows its looks.

    A page's rate is estimated after each look at it, those of all others when the prior that
    they share has been fitted anew. ``half_life_days``: how old evidence is when it weighs half.
    """

    def __init__(self, half_life_days: float | None = None) -> None:
        self._learner = EmpiricalBayes(0, half_life_days=half_life_days)
        self._revision = self._learner.revision
        self._site = np.empty(0, np.intp)
        self._importance = np.empty(0)
        self._last = np.empty(0)
        self._rate = np.empty(0)

    def __len__(self) -> int:
        return len(self._site)

    def add(self, site: Rows, importance: Floats, at: Floats) -> None:
        """Append rows; their rates are what is usual on their site."""
        first = len(self._site)
        self._learner.extend(site)
        self._site = np.concatenate([self._site, site])
        self._importance = np.concatenate([self._importance, importance])
        self._last = np.concatenate([self._last, at])
        rows = np.arange(first, len(self._site))
        self._rate = np.concatenate([self._rate, self._learner.change_rate(rows)])

    def looked(self, row: int, at: float, *, changed: bool | None) -> None:
        """Learn from a look."""
        span = at - self._last[row]
        self._last[row] = at
        if changed is None or span <= 0:
            return
        rows, none = np.array([row], np.intp), np.zeros(1, np.bool_)
        self._learner.observe(
            Evidence(rows, np.array([at]), np.array([span]), np.array([int(changed)]), none)
        )
        self._rate[row] = self._learner.change_rate(rows)[0]
        if self._learner.revision != self._revision:
            self._estimate_all()

    def recall(self, rows: Rows, at: Floats, compared: Bools, changed: Bools) -> None:
        """Learn from looks of former runs, all at once."""
        order = np.argsort(rows, kind="stable")
        rows, at = rows[order], at[order]
        first = np.diff(rows, prepend=-1) != 0
        span = at - np.where(first, self._last[rows], np.roll(at, 1))
        told = compared[order] & (span > 0)
        differed = changed[order][told].astype(np.int64)
        none = np.zeros(len(differed), np.bool_)
        self._learner.observe(Evidence(rows[told], at[told], span[told], differed, none))
        np.maximum.at(self._last, rows, at)
        self._estimate_all()

    def table(self) -> SourceTable:
        """All pages with what is known of them; not to be written into."""
        n = len(self._site)
        nothing = np.zeros(n)
        return SourceTable(
            self._importance, self._rate, np.zeros(n, np.bool_), np.zeros(n, np.intp),
            np.full(1, np.inf), self._last, np.zeros(n, np.int64), nothing, nothing,
        )  # fmt: skip

    def rate(self, row: int) -> float:
        """The estimated changes of a page per day."""
        return float(self._rate[row])

    def credible(self, row: int) -> tuple[float, float]:
        """The rates between which that of a page lies with a probability of 90 %."""
        lower, upper = self._learner.credible_interval(np.array([row], np.intp))
        return float(lower[0]), float(upper[0])

    def stale(self, row: int, now: float) -> float:
        """1 − e^{−Δτ}, the probability that a page has changed since it was looked at."""
        age = max(now - float(self._last[row]), 0.0)
        return float(-np.expm1(-float(self._rate[row]) * age))

    def beliefs(self, now: float) -> Beliefs:
        """Changes at the estimated rates since the last look at each page."""
        age = np.maximum(now - self._last, 0.0)
        return Beliefs(self._rate * age, self._rate, np.zeros(len(age)))

    def _estimate_all(self) -> None:
        self._rate = self._learner.change_rate()
        self._revision = self._learner.revision
