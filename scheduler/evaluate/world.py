"""The world of one simulation: its sources, and all their changes.

Day 0 is the day on which the crawlers start. The changes begin before it, because a crawler starts
with copies that were made before, and their changes since then must be known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from freshet.scheduler.arrays import Floats
from freshet.scheduler.evaluate.changes import ChangeProcess, ChangeTimes, members
from freshet.scheduler.sources import Rows, SourceTable


@dataclass(frozen=True, slots=True)
class World:
    """n sources and their changes; a crawler observes it only by its crawls and signals.

    Attributes:
        table: the sources with their true change rates.
        changes: from day −``history`` to ``days``.
        history: days before day 0.
        days: days after it.
    """

    table: SourceTable
    changes: ChangeTimes
    history: float
    days: float

    def __len__(self) -> int:
        return len(self.table)

    @classmethod
    def draw(
        cls, table: SourceTable, process: ChangeProcess, history: float, days: float, rng: Generator
    ) -> World:
        """Draw a world with sources that change by the process."""
        drawn = process(table, history + days, rng)
        return cls(table, ChangeTimes(drawn.offsets, drawn.at - history), history, days)

    def signals(self, begin: float, end: float) -> tuple[Rows, Floats]:
        """Return source and day of every signalled change in (begin, end], in the order of time."""
        rows = np.flatnonzero(self.table.complete_observations)
        source, at = self.changes_of(rows, begin, end)
        order = np.argsort(at, kind="stable")
        return source[order], at[order]

    def changes_of(self, rows: Rows, begin: float, end: float) -> tuple[Rows, Floats]:
        """Return the changes of these sources in (begin, end], source after source."""
        before = self._changes_until(rows, begin)
        number = self._changes_until(rows, end) - before
        source = np.repeat(rows, number)
        first = self.changes.offsets[rows] + before
        return source, self.changes.at[members(first, number)]

    def past_change(self, rows: Rows, back: Floats) -> Floats:
        """Return (m,), day of each source's latest change before day 0, skipping ``back`` changes.

        If the history is too short, the day on which it starts.
        """
        known = self._changes_until(rows, 0.0)
        enough = known > back
        place = self.changes.offsets[rows] + known - 1
        day = np.full(len(rows), -self.history)
        day[enough] = self.changes.at[place[enough] - back[enough].astype(np.intp)]
        return day

    def blind(self) -> World:
        """Return the world for a crawler that knows no change rates: they are NaN."""
        unknown = np.full(len(self), np.nan)
        signals = np.where(self.table.complete_observations, unknown, self.table.signal_rate)
        return replace(self, table=replace(self.table, change_rate=unknown, signal_rate=signals))

    def _changes_until(self, rows: Rows, day: float) -> Rows:
        m = len(rows)
        return self.changes.count(rows, np.full(m, -np.inf), np.full(m, day)).astype(np.intp)


# -- populations of sources. Seeded. -----------------------------------------


@dataclass(frozen=True, slots=True)
class _Class:
    """One class of sources: log-normal importances and change rates, coupled.

    Attributes:
        mean_importance, importance_sigma: mean of μ before rounding, and σ of ln μ.
        log_rate, rate_sigma: mean and standard deviation of ln Δ before clipping, Δ per day.
        correlation: of the normal variables behind μ and Δ (a Gaussian copula).
    """

    mean_importance: float
    importance_sigma: float
    log_rate: float
    rate_sigma: float
    correlation: float


_INCOMPLETE = _Class(885, 1.964, -1.744, 2.693, -0.20)
_COMPLETE = _Class(7114, 1.629, -0.464, 0.569, 0.50)
#: The share of sources with complete observations.
_COMPLETE_SHARE = 0.04
#: Changes per day, least and most.
_SLOWEST, _FASTEST = 0.018, 6.0


def surrogate(n: int, rng: Generator) -> SourceTable:
    """Draw n sources that stand for the 18.5 million URLs of the LambdaCrawl paper.

    A surrogate, because the paper's data are not published. It is fitted to the numbers in the
    paper's figures and poster, among them a mean change rate of 1.124 a day and a mean importance
    of 1134. The shapes of the distributions and the correlation of importance and change rate are
    guesses. At R = 20 % of the URLs a day LambdaCrawl costs about 303 per URL here (in the paper:
    about 330). Draws of 100,000 differ by about 2 %: compare ratios.

        96 %  incomplete observations  μ log-normal, mean 885, σ 1.964;  ln Δ ~ N(−1.744, 2.693²)
         4 %  complete observations    μ log-normal, mean 7114, σ 1.629; ln Δ ~ N(−0.464, 0.569²)

    μ is rounded and at least 1, Δ clipped to 0.018 … 6 a day; their normal variables are
    correlated by −0.20 and +0.50. All sources are on one host without a limit, in random order.

    Reference: Kolobov, Peres, Lu, Horvitz, "Staying up to Date with Online Content Changes Using
    Reinforcement Learning for Scheduling", NeurIPS 2019, section 7, for the fitted numbers.
    """
    complete = rng.permutation(n) < round(_COMPLETE_SHARE * n)
    importance, change_rate = np.empty(n), np.empty(n)
    for rows, law in ((~complete, _INCOMPLETE), (complete, _COMPLETE)):
        importance[rows], change_rate[rows] = _drawn(int(rows.sum()), law, rng)
    return SourceTable.of(importance, change_rate, complete_observations=complete)


def _drawn(n: int, law: _Class, rng: Generator) -> tuple[Floats, Floats]:
    z, other = rng.standard_normal((2, n))
    coupled = law.correlation * z + np.sqrt(1 - law.correlation**2) * other
    sigma = law.importance_sigma
    # The mean of a log-normal variable is e^{σ²/2} times its median.
    importance = law.mean_importance * np.exp(sigma * coupled - sigma**2 / 2)
    change_rate = np.exp(law.log_rate + law.rate_sigma * z)
    return np.maximum(np.round(importance), 1.0), np.clip(change_rate, _SLOWEST, _FASTEST)
