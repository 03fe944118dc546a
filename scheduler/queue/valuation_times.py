"""The times at which an agenda values all pages again.

Invariant: that is only if time has passed (:meth:`ValuationTimes.next_at`), or if a page was taken,
committed, found or refused since the last valuation and hosts may offer more for it. Consequence:
where no ready host has a page to offer, the agenda is not hungry, and its pool waits for a host, a
commit or the time; valuations are bounded by visits, and by a share of a core.
"""

from collections.abc import Iterable, Sized
from math import inf
from typing import Final

from freshet.scheduler.queue.ready import ReadyQueue

_DAY_S: Final = 86_400.0
#: Pages are valued again after half of the time for which a request must last, from the first to
#: the second of these seconds; where requests are few after an eighth of it, up to the third.
_VALUE_AGAIN_S: Final = (60.0, 900.0, 3_600.0)
#: Seconds between two valuations at least, in all and for each page: one takes 4 % of that.
_REST_S: Final = 0.01
_REST_S_A_PAGE: Final = 8e-6


class ValuationTimes:
    """The time of the last valuation, and what has happened since.

    Attributes:
        is_due: whether all pages are valued at once.
        overdue_at: when, after the last valuation, a page becomes overdue.
    """

    def __init__(self) -> None:
        self.is_due = True
        self.overdue_at = inf
        self._valued_at = 0.0
        #: A valuation is due after the rest from the last one.
        self._should = False
        #: Since the last valuation something was taken or has come; a host that may have a page to
        #: offer has none in the ready queue; all that could come into the ready queue has.
        self._is_altered = self._is_drained = self._has_all = False

    def begin(self) -> None:
        """Know of no valuation of these pages."""
        self.is_due, self.overdue_at = True, inf

    def valued(self, now: float) -> None:
        """Note that a valuation begins."""
        self._valued_at, self.is_due, self._should = now, False, False
        self._is_altered = self._is_drained = False

    def filled(self, *, has_all: bool) -> None:
        """Note that the ready queue has got what was chosen, and whether that was all."""
        self._has_all = has_all

    def altered(self, *, is_drained: bool) -> None:
        """Note that a page was taken, or has come; or that a host has none left to offer."""
        self._is_altered = True
        self._is_drained |= is_drained

    def visited(self, overdue: Iterable[float]) -> None:
        """Note when pages that were visited become overdue."""
        self.overdue_at = min([self.overdue_at, *(at for at in overdue if at > self._valued_at)])

    @property
    def may_widen(self) -> bool:
        """Return whether more pages could come into the ready queue."""
        return not self._has_all

    def wants_more(self, *, is_wider: bool) -> bool:
        """Return whether a valuation follows after a rest: there can be other pages to offer."""
        self._should |= is_wider or self._is_drained
        return self._should

    def next_at(self, budget: float, pages: Sized, queue: ReadyQueue) -> float:
        """Return when all pages are valued again: pages never cease to change."""
        least, middle, most = _VALUE_AGAIN_S
        lasts = _DAY_S / budget
        wait = max(least, min(lasts / 2, middle), min(lasts / 8, most))
        if self._should or (self._is_altered and queue.is_low):
            wait = min(wait, _REST_S + _REST_S_A_PAGE * len(pages))
        return min(self._valued_at + wait, self.overdue_at)

    def shift(self, by: float) -> None:
        """Follow a jump of the time."""
        self._valued_at += by
        self.overdue_at += by
