"""The last and shortest list: small enough to be valued as a whole for every crawl."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from freshet.scheduler.arrays import Bools
from freshet.scheduler.shortlists.ranks import NOBODY, Rank
from freshet.scheduler.shortlists.shortlist import Shortlist
from freshet.scheduler.shortlists.whole import COLUMNS, WRITTEN, Part, Whole


class Front(Shortlist):
    """A shortlist that takes in every event at once, in columns with room for more sources."""

    def __init__(self, whole: Whole, size: int) -> None:
        super().__init__(whole, size)
        self._hold(self._part)

    def leader(self, now: float, ready: Bools | None) -> Rank:
        """The source that is worth most, of those whose host is ready, and its worth.

        NOBODY if none of them is worth anything.
        """
        if not self._place:
            return NOBODY
        part = self._part
        worth = self._whole.worth_of(part, now)
        if ready is not None:
            worth = worth * ready.take(part.table.host)
        place = int(worth.argmax())
        most = float(worth[place])
        if most <= 0:
            return NOBODY
        ties = () if self._is_in_order else (worth == most).nonzero()[0]
        row = part.rows[place] if len(ties) < 2 else part.rows[ties].min()
        return most, int(row)

    def admit(self, rows: Iterable[int]) -> None:
        """Put sources on the list that had an event, or were let in."""
        for row in rows:
            place = self._place.get(row)
            if place is None:
                self._append(row)
            else:
                for mine, all_of_them in self._written:
                    mine[place] = all_of_them[row]
                if self._part.noise is not None:
                    self._part.noise[place] = self._whole.noise_of(row)

    def would_overgrow(self, more: int) -> bool:
        """Whether to draw anew is cheaper than to admit so many more."""
        return len(self._place) + more > self._drawn + 2 * self._size

    def _hold(self, part: Part) -> None:
        n = len(part)
        self._is_in_order = True
        self._place = dict(zip(part.rows.tolist(), range(n), strict=True))
        # What lies beyond the n-th place is never read before it is written.
        beyond = np.zeros(self._size, np.intp)
        extended = np.concatenate([np.arange(n), beyond]) if n else beyond[:0]
        self._roomy = part.take(extended)
        self._show(n)

    def _show(self, n: int) -> None:
        """Let the first n places be the list."""
        self._part = self._roomy.first(n)
        mine, whole = self._part.table, self._whole.table
        self._written = [(getattr(mine, name), getattr(whole, name)) for name in WRITTEN]

    def _append(self, row: int) -> None:
        n = len(self._place)
        if n == len(self._roomy):
            self._hold(self._part if n else self._whole.part(np.array([row])))
        roomy = self._roomy
        for name in COLUMNS:
            getattr(roomy.table, name)[n] = getattr(self._whole.table, name)[row]
        if roomy.noise is not None:
            roomy.noise[n] = self._whole.noise_of(row)
        roomy.rows[n] = row
        self._place[row] = n
        self._is_in_order = False
        self._show(n + 1)
