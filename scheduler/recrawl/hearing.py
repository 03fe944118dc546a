"""What sources of claims have said, as what values pages hears it. Pure; days are Unix days."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from freshet.scheduler.arguments import Floats
from freshet.scheduler.sources import Rows

#: The source speaks when it likes; nobody asks it.
UNASKED: Final = -1


@dataclass(frozen=True, slots=True)
class Hearing:
    """What one source said at one time of m pages; all columns have length m, which may be 0.

    Attributes:
        source: a small number for each source, its own.
        asked: the row of the page under which the source is asked; :data:`UNASKED`: none.
        at: day.
        row: the pages of which it says something else than last time.
        since, until: days between which each of these has changed last, it says.
    """

    source: int
    asked: int
    at: float
    row: Rows
    since: Floats
    until: Floats

    @classmethod
    def silent(cls, source: int, asked: int, at: float) -> Hearing:
        """A source that said what it said last time."""
        return cls(source, asked, at, np.empty(0, np.intp), np.empty(0), np.empty(0))

    def take(self, some: Rows) -> Hearing:
        """What was said of these pages."""
        return Hearing(
            self.source, self.asked, self.at, self.row[some], self.since[some], self.until[some]
        )

    def events(self) -> tuple[Rows, Rows]:
        """The order in which pages that changed at the same time stand together, and their number.

        One build of a site, or one edit, shows as one time. Returns (m,) places and (m,) numbers
        of events from 0, in that order.
        """
        order = np.lexsort((self.row, self.since, self.until))
        parted = (np.diff(self.since[order]) != 0) | (np.diff(self.until[order]) != 0)
        return order, np.concatenate([np.zeros(min(1, len(order)), np.intp), np.cumsum(parted)])
