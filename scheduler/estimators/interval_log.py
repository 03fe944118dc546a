"""Ragged histories of many sources in flat columns, appended to crawl by crawl.

Invariant: every entry knows the position of the entry before it of the same source, and every
source the position of its last entry. Consequence: an append costs O(1), and the history of a
few sources is read without a look at the others, although nothing is sorted.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arguments import Floats, Ints
from freshet.scheduler.sources import Rows

#: In the place of a number of changes: it is only known that there was one.
AT_LEAST_ONE: Final = -1

_ENTRY = np.dtype(
    [
        ("source", np.int32),
        ("changes", np.int32),
        ("at", np.float64),
        ("span", np.float64),
        ("previous", np.int32),
    ],
    align=True,
)
_SMALLEST = 1024


class IntervalLog:
    """Entries (source, day, span in days, changes), of which the oldest may be forgotten.

    Args:
        n: the number of sources.
        window: days; entries that lie so much before the newest, or more, count no longer.
    """

    def __init__(self, n: int, window: float) -> None:
        self._window = window
        self._n = n
        self.newest = -np.inf
        self._length = 0
        self._clear(_SMALLEST)

    def __len__(self) -> int:
        return self._length

    def append(self, source: Rows, at: Floats, span: Floats, changes: Ints) -> None:
        """Add entries, in any order of days."""
        if not len(source):
            return
        self.newest = max(self.newest, float(at.max()))
        if self._length + len(source) > len(self._entries):
            self._make_room(len(source))
        new = self._entries[self._length : self._length + len(source)]
        new["source"], new["at"], new["span"], new["changes"] = source, at, span, changes
        self._link(source)
        self._length += len(source)

    def of(self, rows: Rows) -> tuple[Rows, Floats, Ints]:
        """The entries of these sources that still count: owner, span and changes.

        The owner is a position in ``rows``; owners ascend, the entries of one come newest first.
        """
        number = self._number[rows]
        starts = np.cumsum(number) - number
        entries = np.empty(int(number.sum()), np.int64)
        walker, at = np.arange(len(rows)), self._last[rows]
        depth = 0
        while len(walker := walker[at >= 0]):
            at = at[at >= 0]
            entries[starts[walker] + depth] = at
            at = self._entries["previous"][at]
            depth += 1
        owner = np.repeat(np.arange(len(rows)), number)
        kept = self._entries["at"][entries] > self.newest - self._window
        entries, owner = entries[kept], owner[kept]
        return owner, self._entries["span"][entries], self._entries["changes"][entries]

    def _link(self, source: Rows) -> None:
        """Chain the new entries: behind one another within the batch, then to the old ones."""
        order = np.argsort(source, kind="stable")
        position = self._length + order
        ordered = source[order]
        previous = self._last[ordered]
        follows = ordered[1:] == ordered[:-1]
        previous[1:][follows] = position[:-1][follows]
        self._entries["previous"][position] = previous
        # Positions of one source ascend, and the last of equal rows is the one that stays.
        self._last[ordered] = position
        np.add.at(self._number, source, 1)

    def _make_room(self, more: int) -> None:
        """Drop what counts no longer; double if little was dropped."""
        old = self._entries[: self._length]
        kept = old[old["at"] > self.newest - self._window]
        self._clear(max(_SMALLEST, 2 * (len(kept) + more)))
        self._entries[: len(kept)] = kept
        self._link(kept["source"].astype(np.intp))
        self._length = len(kept)

    def _clear(self, capacity: int) -> None:
        self._entries: NDArray[np.void] = np.empty(capacity, _ENTRY)
        self._last = np.full(self._n, -1, np.int64)
        self._number = np.zeros(self._n, np.intp)
        self._length = 0
