"""How long a shortlist shall last."""

from __future__ import annotations

from math import inf

_LONGEST_REACH = 0.9
_SHORTEST_REACH = 1e-3


class Window:
    """The days for which a shortlist is drawn: those of about as many crawls as it has places.

    Too long a window, and the bar is so high that the list runs short of sources above it; too
    short, and the list is drawn too often. The *reach*, crawls per place, is less after the one
    and more after the other; the pace of crawls is that of the window before.
    """

    __slots__ = ("_crawls", "_days", "_reach", "_start")

    def __init__(self) -> None:
        self._start = -inf
        self._crawls = 0
        self._days = 0.0
        self._reach = 0.5

    def next(self, size: int, now: float, crawls: int) -> float:
        """The days of the window that starts now, after ``crawls`` crawls in all."""
        days, done = now - self._start, crawls - self._crawls
        if 0 < days < inf:
            # Nothing crawled: the pace is not known, and no reason to look often.
            self._days = self._reach * size * days / done if done else 2 * max(self._days, days)
        self._start, self._crawls = now, crawls
        return self._days

    def passed(self) -> None:
        """The list lasted to the end of its window."""
        self._reach = min(self._reach * 1.25, _LONGEST_REACH)

    def ran_short(self) -> None:
        """The list ran short before."""
        self._reach = max(self._reach * 0.8, _SHORTEST_REACH)

    def failed(self) -> None:
        """It was short from the start: the next window is this moment."""
        self._reach = max(self._reach / 2, _SHORTEST_REACH)
        self._days = 0.0
