"""Pages valued by an index policy, with change rates learnt as they are looked at."""

from __future__ import annotations

from freshet.scheduler.arguments import Floats
from freshet.scheduler.policy import IndexPolicy
from freshet.scheduler.recrawl.hearing import Hearing
from freshet.scheduler.recrawl.learning import Learning
from freshet.scheduler.recrawl.looks import Looks
from freshet.scheduler.recrawl.refresher import Beliefs
from freshet.scheduler.sources import Rows


class ByIndex:
    """A :class:`~freshet.scheduler.recrawl.refresher.Refresher` for an index policy.

    ``learning`` says how rates are learnt.
    """

    def __init__(self, policy: IndexPolicy, learning: Learning | None = None) -> None:
        self._policy = policy
        self._learning = Learning() if learning is None else learning

    def add(self, site: Rows, area: Rows, importance: Floats, at: Floats) -> None:
        """Append rows."""
        self._learning.add(site, importance, at)

    def learn(self, looks: Looks) -> None:
        """Learn from looks."""
        self._learning.learn(looks)

    def hear(self, said: Hearing) -> None:
        """Claims are not listened to."""

    def worth(self, now: float) -> Floats:
        """(n,), the index of every page."""
        return self._policy.index(self._learning.table(), now)

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        """Weigh these pages anew."""
        self._learning.reweigh(rows, importance)

    def inherit(self, old: int, new: int) -> None:
        """What is known of one page is known of another."""
        self._learning.inherit(old, new)

    def beliefs(self, now: float) -> Beliefs:
        """Changes at the learnt rates."""
        return self._learning.beliefs(now)

    def replan(self, budget: float, now: float) -> None:
        """Nothing changes: the price is what comes out."""

    def limits(self, lane: Rows, per_day: Floats) -> None:
        """Nothing changes: the next look goes to the worthiest page whose host is ready."""
