"""What a policy is to a daemon: what is a look at each page worth, learning as it goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from scheduler.arguments import Bools, Floats
from scheduler.sources import Rows


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

    *Law.* What it knows is a function of the calls of :meth:`add` and :meth:`looked`, in their
    order: fed the same observations again after a crash, it knows the same.
    """

    def add(self, site: Rows, area: Rows, importance: Floats, at: Floats) -> None:
        """Append rows: pages of these sites and areas (integer codes), found on these days."""
        ...

    def looked(self, row: int, at: float, *, changed: bool | None) -> None:
        """A page was looked at: it had changed or not since; None: there is nothing to compare."""
        ...

    def recall(self, rows: Rows, at: Floats, compared: Bools, changed: Bools) -> None:
        """As :meth:`looked` for each of m looks of former runs; ``changed`` where ``compared``."""
        columns = zip(rows.tolist(), at.tolist(), compared.tolist(), changed.tolist(), strict=True)
        for row, day, is_compared, is_changed in columns:
            self.looked(row, day, changed=is_changed if is_compared else None)

    def worth(self, now: float) -> Floats:
        """(n,), what a look at each page is worth on this day, at least 0."""
        ...

    def stale(self, row: int, now: float) -> float:
        """The probability that a page has changed since it was looked at."""
        ...

    def beliefs(self, now: float) -> Beliefs:
        """What is thought of all pages on this day; not to be written into."""
        ...

    def gone(self, row: int) -> None:
        """A page is gone: it counts for nothing until it is looked at again and is there."""
        ...

    def replan(self, budget: float, now: float) -> None:
        """Take it that ``budget`` looks a day can be paid from now on."""
        ...

    def limits(self, lane: Rows, per_day: Floats) -> None:
        """Take it that site s shares ``per_day[lane[s]]`` looks at most with those of its lane."""
        ...
