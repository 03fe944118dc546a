"""What a policy is to a daemon: what is a look at each page worth, learning as it goes."""

from __future__ import annotations

from typing import Protocol

from scheduler.arguments import Floats
from scheduler.recrawl.looks import Looks
from scheduler.sources import Rows


class Refresher(Protocol):
    """Values looks at pages of which there is a copy; rows come, and never go. Days are Unix days.

    *Law.* What it knows of pages is a function of their order and of the looks in theirs, however
    these were divided into calls, and mixed with those of :meth:`add`: fed the same observations
    again after a crash, it knows the same.
    """

    def add(self, site: Rows, area: Rows, importance: Floats, at: Floats) -> None:
        """Append rows: pages of these sites and areas (integer codes), found on these days."""
        ...

    def learn(self, looks: Looks) -> None:
        """Take in looks, in their order; what is gone counts for nothing until it is back."""
        ...

    def worth(self, now: float) -> Floats:
        """(n,), what a look at each page is worth on this day, at least 0."""
        ...

    def stale(self, now: float) -> Floats:
        """(n,), the probability that a page has changed since it was looked at."""

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        """These pages weigh so much from now on, (m,) each."""
        ...
        ...

    def inherit(self, old: int, new: int) -> None:
        """The page of one row stands at another one now, with all that is known of it."""
        ...

    def replan(self, budget: float, now: float) -> None:
        """Take it that ``budget`` looks a day can be paid from now on."""
        ...
