"""A list of the sources that can be worth most for a while.

A shortlist is drawn from a longer list for a *window* of time. As no index falls while time
passes, what a source is worth at the end of the window bounds what it is worth before. So the
shortlist takes those that will be worth most at the end, and promises of those left out: none
outranks the *bar* until then. While some listed source reaches the bar, none of the others
needs a look.

A source with an event (crawl, signal, new change rate) is admitted to every list, wherever its
index went: the promise is about sources without events.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import TypeAlias

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.shortlists.ranks import NOBODY, HeldBack, Rank, just_below
from freshet.scheduler.shortlists.selection import Selection, select
from freshet.scheduler.shortlists.whole import WRITTEN, Part, Whole
from freshet.scheduler.shortlists.window import Window
from freshet.scheduler.sources import Rows

#: Sources of a host that is held back that are let in together.
_FEW = 16


class Shortlist:
    """The sources of a longer list that can be worth most within a window.

    Attributes:
        until: the day on which the window ends; −inf: the list must be drawn anew.
        bar: no source of the longer list that is left out outranks it until then, …
        held_back: … but for the sources of these hosts, which have bars of their own.
    """

    def __init__(self, whole: Whole, size: int) -> None:
        self.until = -inf
        self.bar = NOBODY
        self.held_back = HeldBack()
        self.window = Window()
        self._whole = whole
        self._size = size
        self._drawn = 0
        self._admitted: list[int] = []
        self._part = whole.part(np.zeros(0, np.intp))

    def __len__(self) -> int:
        return len(self._part)

    def draw(self, longer: LongList, now: float, crawls: int, ready: Bools | None) -> None:
        """Choose anew for the next window; ``crawls`` counts the crawls so far."""
        longer.settle()
        self._admitted.clear()
        if len(longer) <= self._size:
            everything = np.arange(len(longer))
            self._choose(longer, longer.until, Selection(everything, NOBODY, HeldBack()))
            return
        until = min(now + self.window.next(self._size, now, crawls), longer.until)
        limited = self._limited(ready)
        selection = select(longer.worth(until), longer.hosts(), limited, self._size)
        self._choose(longer, until, selection)

    def admit(self, rows: Iterable[int]) -> None:
        """Put sources on the list that had an event, or were let in."""
        self._admitted.extend(rows)

    def would_overgrow(self, more: int) -> bool:
        """Whether to draw anew is cheaper than to admit so many more."""
        return len(self._admitted) + more > 2 * self._size

    def give_up(self) -> None:
        """The list is of no use until it is drawn anew."""
        self.until = -inf
        self._admitted.clear()

    def let_in(self, longer: LongList, host: int, now: float) -> list[int]:
        """The rows of a host that was held back, as far as one of them can be its best.

        That is its best few of now, and all that reach the last of them within the window.
        """
        # Of what the longer list has not taken in yet, this one knows already. The columns are
        # those of the whole table, for the longer list's may be older.
        part = self._whole.part(longer.rows(longer.of_host(host)))
        soon, later = self._whole.worth_of(part, now), self._whole.worth_of(part, self.until)
        least, row = self.bar
        above = np.flatnonzero((later > least) | ((later == least) & (part.rows <= row)))
        floor = float(np.partition(soon[above], -_FEW)[-_FEW]) if len(above) > _FEW else 0.0
        self.held_back.lower(host, just_below(floor) if floor > least else self.bar)
        return list(part.rows[above[later[above] >= floor]].tolist())

    def settle(self) -> None:
        """Take in what has been admitted."""
        if not self._admitted:
            return
        rows = np.unique(np.array(self._admitted, dtype=np.intp))
        self._admitted.clear()
        place = np.searchsorted(self._part.rows, rows)
        known = place < len(self)
        known[known] = self._part.rows[place[known]] == rows[known]
        self._renew(place[known], rows[known])
        if not known.all():
            others = self._whole.part(rows[~known])
            # What stays behind the bar is left out, like all others.
            near = np.flatnonzero(self._whole.worth_of(others, self.until) >= self.bar[0])
            if len(near):
                self._hold(self._part.with_others(others.take(near)))

    def rows(self, positions: Rows) -> Rows:
        """The rows at these positions."""
        return self._part.rows[positions]

    def hosts(self) -> Rows:
        """(m,), host codes."""
        return self._part.table.host

    def worth(self, at: float) -> Floats:
        """(m,), what each source is worth at day ``at``."""
        return self._whole.worth_of(self._part, at)

    def of_host(self, host: int) -> Rows:
        """The positions of a host's sources."""
        return np.flatnonzero(self._part.table.host == host)

    def part(self, positions: Rows) -> Part:
        """The sources at these positions, as copies."""
        return self._part.take(positions)

    def _limited(self, ready: Bools | None) -> Bools | None:
        """The hosts that must not fill the list: not ready, or held back the last time."""
        if ready is None:
            return None
        limited = ~ready
        limited[self.held_back.host] = True
        return limited if limited.any() else None

    def _choose(self, longer: LongList, until: float, selection: Selection) -> None:
        self.until = until
        self.bar = _by_row(longer, selection.bar)
        held = selection.held_back
        rows = np.where(held.row < 0, -1, longer.rows(np.maximum(held.row, 0)))
        self.held_back = HeldBack(held.host, held.worth, rows)
        self._drawn = len(selection.chosen)
        self._hold(longer.part(selection.chosen))

    def _hold(self, part: Part) -> None:
        self._part = part

    def _renew(self, place: Rows, rows: Rows) -> None:
        """Copy again what events have written to."""
        mine, whole = self._part, self._whole
        for name in WRITTEN:
            getattr(mine.table, name)[place] = getattr(whole.table, name)[rows]
        if mine.noise is not None:
            mine.noise[place] = whole.noise(rows, mine.table.last_crawl[place])


#: What a shortlist is drawn from: sources at positions 0 to m − 1, in the order of their rows.
LongList: TypeAlias = Whole | Shortlist


def _by_row(longer: LongList, bar: Rank) -> Rank:
    """The bar by row that was one by position."""
    worth, position = bar
    return bar if position >= len(longer) else (worth, int(longer.rows(np.array([position]))[0]))
