"""What a policy is to a daemon: what is a look at each page worth, learning as it goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate.observations import SignalBatch, VisitResults
from freshet.scheduler.sources import Rows


@dataclass(frozen=True, slots=True)
class Beliefs:
    """What is thought of n pages on a day; every column has length n.

    Attributes:
        hazard: x, the changes expected since the last look: the copy is stale with probability
            1 − e^{−x}, and Ein(x) is expected of H(N).
        rate: changes a day, from now on.
        clocked: 0 to 1, how far x goes by the clock of the page's site instead of by the days.
    """

    hazard: Floats
    rate: Floats
    clocked: Floats


class Refresher(Protocol):
    """Values looks at pages of which there is a copy; rows come, and never go. Days are Unix days.

    *Law.* What it knows of pages is a function of their order and of the looks in theirs, however
    these were divided into calls, and mixed with those of :meth:`add`: fed the same observations
    again after a crash, it knows the same.
    """

    def add(self, site: Rows, area: Rows, importance: Floats, at: Floats) -> None:
        """Append rows: pages of these sites and areas (integer codes), found on these days."""
        ...

    def learn(self, looks: VisitResults) -> None:
        """Take in looks, in their order; what is gone counts for nothing until it is back."""
        ...

    def hear(self, said: SignalBatch) -> None:
        """Take in what a source claims of pages."""
        ...

    def worth(self, now: float) -> Floats:
        """(n,), what a look at each page is worth on this day, at least 0."""
        ...

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        """These pages weigh so much from now on, (m,) each."""
        ...
        ...

    def beliefs(self, now: float) -> Beliefs:
        """What is thought of all pages on this day; not to be written into."""
        ...

    def inherit(self, old: int, new: int) -> None:
        """The page of one row stands at another one now, with all that is known of it."""
        ...

    def replan(self, budget: float, now: float) -> None:
        """Take it that ``budget`` looks a day can be paid from now on."""
        ...

    def limits(self, lane: Rows, per_day: Floats) -> None:
        """Take it that site s shares ``per_day[lane[s]]`` looks at most with those of its lane."""
        ...
