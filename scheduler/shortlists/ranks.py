"""Who outranks whom, and the hosts of which only a few sources are listed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.sources import Rows

#: What a source is worth, and its row. The one that is worth more *outranks* the other; of two
#: that are worth the same it is the one of the lower row.
Rank: TypeAlias = tuple[float, int]

_NO_ROW = int(np.iinfo(np.intp).max)

#: The rank of nobody: every source that is worth anything outranks it.
NOBODY: Rank = (0.0, _NO_ROW)


def just_below(worth: float) -> Rank:
    """The rank that all sources of this worth still reach."""
    return worth, _NO_ROW


def outranks(one: Rank, other: Rank) -> bool:
    """Whether ``one`` comes before ``other``."""
    return one[0] > other[0] or (one[0] == other[0] and one[1] < other[1])


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Hosts of which only the first few sources are listed, each with a bar of its own.

    A host that is not ready must not fill a list with sources that nobody may crawl. Every
    source of ``host[j]`` that is not listed is outranked by ``(worth[j], row[j])`` or has just
    that rank's worth and a higher row. The bars are lowered when more sources are let in.
    """

    host: Rows = field(default_factory=lambda: np.zeros(0, np.intp))
    worth: Floats = field(default_factory=lambda: np.zeros(0))
    row: Rows = field(default_factory=lambda: np.zeros(0, np.intp))

    def __len__(self) -> int:
        return len(self.host)

    def above(self, rank: Rank, ready: Bools | None) -> Rows:
        """The hosts, of those that are ready, whose bar outranks ``rank``."""
        # Most of them are not ready: that is why they are held back.
        held = np.ones(len(self), np.bool_) if ready is None else ready.take(self.host)
        place = np.flatnonzero(held)
        worth, row = self.worth[place], self.row[place]
        above = (worth > rank[0]) | ((worth == rank[0]) & (row < rank[1]))
        hosts: Rows = self.host[place[above]]
        return hosts

    def lower(self, host: int, bar: Rank) -> None:
        """The bar of one host from now on."""
        place = self.host == host
        self.worth[place], self.row[place] = bar
