"""The world of one simulation: its sources, and every change that they will make.

Day 0 is the day on which the crawlers start. The changes reach back before it, because a crawler
starts with copies that were made before: what has happened to them since must be known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from freshet.scheduler.arguments import Floats
from freshet.scheduler.simulate.changes import ChangeProcess, ChangeTimes
from freshet.scheduler.sources import Rows, SourceTable


@dataclass(frozen=True, slots=True)
class World:
    """n sources and their changes; no crawler sees it but through its crawls and signals.

    Attributes:
        table: the sources with their true change rates.
        changes: of day −``history`` to ``days``.
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
        cls,
        table: SourceTable,
        process: ChangeProcess,
        history: float,
        days: float,
        rng: np.random.Generator,
    ) -> World:
        """A world whose sources change as the process says."""
        drawn = process.draw(table, history + days, rng)
        return cls(table, ChangeTimes(drawn.offsets, drawn.at - history), history, days)

    def signals(self, begin: float, end: float) -> tuple[Rows, Floats]:
        """Source and day of every notified change in (begin, end], in the order of time."""
        rows = np.flatnonzero(self.table.complete_observations)
        source, at = self.changes_of(rows, begin, end)
        order = np.argsort(at, kind="stable")
        return source[order], at[order]

    def changes_of(self, rows: Rows, begin: float, end: float) -> tuple[Rows, Floats]:
        """The changes of these sources in (begin, end], source after source."""
        before = self._changes_until(rows, begin)
        number = self._changes_until(rows, end) - before
        source = np.repeat(rows, number)
        first = self.changes.offsets[rows] + before
        starts = np.cumsum(number) - number
        place = np.arange(len(source)) - np.repeat(starts - first, number)
        return source, self.changes.at[place]

    def past_change(self, rows: Rows, back: Floats) -> Floats:
        """(m,), the day of each source's latest change before day 0 but ``back`` (0: the latest).

        Where the history is too short for it, the day on which it starts.
        """
        known = self._changes_until(rows, 0.0)
        enough = known > back
        place = self.changes.offsets[rows] + known - 1
        day = np.full(len(rows), -self.history)
        day[enough] = self.changes.at[place[enough] - back[enough].astype(np.intp)]
        return day

    def blind(self) -> World:
        """The same world for a crawler that knows no change rate: they are NaN."""
        unknown = np.full(len(self), np.nan)
        signals = np.where(self.table.complete_observations, unknown, self.table.signal_rate)
        return replace(self, table=replace(self.table, change_rate=unknown, signal_rate=signals))

    def _changes_until(self, rows: Rows, day: float) -> Rows:
        m = len(rows)
        return self.changes.count(rows, np.full(m, -np.inf), np.full(m, day)).astype(np.intp)
