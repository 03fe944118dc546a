"""Pages valued by an index policy, with change rates learnt as they are looked at. Pure."""

from __future__ import annotations

import numpy as np

from scheduler.arguments import Bools, Floats
from scheduler.estimators.empirical_bayes import EmpiricalBayes
from scheduler.estimators.estimator import Evidence
from scheduler.policy import IndexPolicy
from scheduler.sources import Rows, SourceTable


class ByIndex:
    """A :class:`~scheduler.recrawl.refresher.Refresher` for an index policy.

    A page's rate is estimated after each look at it, those of all others when the prior that
    they share has been fitted anew. ``half_life_days``: how old evidence is when it weighs half.
    """

    def __init__(self, policy: IndexPolicy, half_life_days: float | None = None) -> None:
        self._policy = policy
        self._learner = EmpiricalBayes(0, half_life_days=half_life_days)
        self._revision = self._learner.revision
        self._site = np.empty(0, np.intp)
        self._importance = np.empty(0)
        self._last = np.empty(0)
        self._rate = np.empty(0)

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
        rows = np.array([row], np.intp)
        self._learner.observe(
            Evidence(
                rows, np.array([at]), np.array([span]), np.array([int(changed)]),
                np.zeros(1, np.bool_),
            )
        )  # fmt: skip
        self._rate[row] = self._learner.change_rate(rows)[0]
        if self._learner.revision != self._revision:
            self._revision = self._learner.revision
            self._rate = self._learner.change_rate()

    def recall(self, rows: Rows, at: Floats, compared: Bools, changed: Bools) -> None:
        """Learn from looks of former runs, all at once."""
        order = np.argsort(rows, kind="stable")
        rows, at = rows[order], at[order]
        first = np.diff(rows, prepend=-1) != 0
        before = np.where(first, self._last[rows], np.roll(at, 1))
        span = at - before
        told = compared[order] & (span > 0)
        m = int(told.sum())
        self._learner.observe(
            Evidence(
                rows[told], at[told], span[told], changed[order][told].astype(np.int64),
                np.zeros(m, np.bool_),
            )
        )  # fmt: skip
        np.maximum.at(self._last, rows, at)
        self._rate = self._learner.change_rate()
        self._revision = self._learner.revision

    def worth(self, now: float) -> Floats:
        """(n,), the index of every page."""
        n = len(self._site)
        table = SourceTable(
            self._importance, self._rate, np.zeros(n, np.bool_), self._site, np.full(1, np.inf),
            self._last, np.zeros(n, np.int64), np.zeros(n), np.zeros(n),
        )  # fmt: skip
        return self._policy.index(table, now)

    def replan(self, budget: float, now: float) -> None:
        """Nothing changes: the price is what comes out."""
