"""The times at which an agenda values all pages again.

Invariant: all pages are valued again only if time has passed (:meth:`ValuationTimes.next_at`), or
if a page was taken, committed, found or refused since the last valuation and hosts may offer more
as a result. Consequence: if no ready host has a page to offer, the agenda asks for no valuation,
and its pool waits for a host, a commit or the time. The number of visits and a share of a core
bound the valuations.
"""

from collections.abc import Iterable, Sized
from math import inf
from typing import Final

from freshet.scheduler.queue.ready import ReadyQueue

_DAY_S: Final = 86_400.0
#: Pages are valued again after half of the mean interval between requests, at least the first and
#: at most the second of these seconds; with few requests after an eighth of it, at most the third.
_VALUE_AGAIN_S: Final = (60.0, 900.0, 3_600.0)
#: Minimum seconds between two valuations: a constant and a part per page. A valuation takes 4 % of
#: it.
_REST_S: Final = 0.01
_REST_S_A_PAGE: Final = 8e-6


class ValuationTimes:
    """The time of the last valuation, and the events since.

    Attributes:
        is_due: whether all pages are to be valued at once.
        overdue_at: the first time after the last valuation at which a page becomes overdue.
    """

    def __init__(self) -> None:
        self.is_due = True
        self.overdue_at = inf
        self._valued_at = 0.0
        #: Since the last valuation: a page was taken or found; a host that may have pages to offer
        #: has no page in the ready queue; all pages that may be requested are in the ready queue.
        self._should = False
        #: Since the last valuation: a page was taken or found; a host that may have pages to offer
        #: has none in the ready queue; all pages that may be requested are in the ready queue.
        self._is_altered = self._is_drained = self._has_all = False

    def begin(self) -> None:
        """Forget the valuations of former pages."""
        self.is_due, self.overdue_at = True, inf

    def valued(self, now: float) -> None:
        """Record that a valuation begins."""
        self._valued_at, self.is_due, self._should = now, False, False
        self._is_altered = self._is_drained = False

    def filled(self, *, has_all: bool) -> None:
        """Record that the ready queue holds the chosen pages, and whether those are all."""
        self._has_all = has_all

    def altered(self, *, is_drained: bool) -> None:
        """Record that a page was taken or found, or that a host has no page left to offer."""
        self._is_altered = True
        self._is_drained |= is_drained

    def visited(self, overdue: Iterable[float]) -> None:
        """Record when visited pages become overdue."""
        self.overdue_at = min([self.overdue_at, *(at for at in overdue if at > self._valued_at)])

    @property
    def may_widen(self) -> bool:
        """Return whether more pages could enter the ready queue."""
        return not self._has_all

    def wants_more(self, *, is_wider: bool) -> bool:
        """Return whether another valuation may find more pages to offer."""
        self._should |= is_wider or self._is_drained
        return self._should

    def next_at(self, budget: float, pages: Sized, queue: ReadyQueue) -> float:
        """Return when all pages are valued again."""
        least, middle, most = _VALUE_AGAIN_S
        lasts = _DAY_S / budget
        wait = max(least, min(lasts / 2, middle), min(lasts / 8, most))
        if self._should or (self._is_altered and queue.is_low):
            wait = min(wait, _REST_S + _REST_S_A_PAGE * len(pages))
        return min(self._valued_at + wait, self.overdue_at)

    def shift(self, by: float) -> None:
        """Shift all times after a jump of the clock."""
        self._valued_at += by
        self.overdue_at += by
