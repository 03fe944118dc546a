"""Pages valued by an index policy, with change rates learnt as they are looked at. Pure."""

from __future__ import annotations

from scheduler.arguments import Bools, Floats
from scheduler.policy import IndexPolicy
from scheduler.recrawl.learning import Learning
from scheduler.recrawl.refresher import Beliefs
from scheduler.sources import Rows


class ByIndex:
    """A :class:`~scheduler.recrawl.refresher.Refresher` for an index policy."""

    def __init__(self, policy: IndexPolicy) -> None:
        self._policy = policy
        self._learning = Learning()

    def add(self, site: Rows, area: Rows, importance: Floats, at: Floats) -> None:
        """Append rows."""
        self._learning.add(site, importance, at)

    def looked(self, row: int, at: float, *, changed: bool | None) -> None:
        """Learn from a look."""
        self._learning.looked(row, at, changed=changed)

    def recall(self, rows: Rows, at: Floats, compared: Bools, changed: Bools) -> None:
        """Learn from looks of former runs, all at once."""
        self._learning.recall(rows, at, compared, changed)

    def worth(self, now: float) -> Floats:
        """(n,), the index of every page."""
        return self._policy.index(self._learning.table(), now)

    def stale(self, row: int, now: float) -> float:
        """The probability that a page has changed since it was looked at."""
        return self._learning.stale(row, now)

    def beliefs(self, now: float) -> Beliefs:
        """Changes at the learnt rates."""
        return self._learning.beliefs(now)

    def gone(self, row: int) -> None:
        """Nothing changes: a page that is gone is looked at ever more rarely anyway."""

    def replan(self, budget: float, now: float) -> None:
        """Nothing changes: the price is what comes out."""

    def limits(self, lane: Rows, per_day: Floats) -> None:
        """Nothing changes: the next look goes to the worthiest page whose host is ready."""
