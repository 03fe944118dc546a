"""How long learning takes, told of each piece of work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from freshet.scheduler.agenda.ranker import Beliefs, Refresher
from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate.observations import Hearing, Looks
from freshet.scheduler.sources import Rows


class Timed:
    """A :class:`~freshet.scheduler.agenda.ranker.Refresher` around another.

    ``told`` is given the name of a piece of work and its seconds, in whatever thread it was done.
    """

    def __init__(self, inner: Refresher, told: Callable[[str, float], None]) -> None:
        self._inner = inner
        self._told = told

    def add(self, site: Rows, area: Rows, importance: Floats, at: Floats) -> None:
        """Append rows."""
        self._inner.add(site, area, importance, at)

    def learn(self, looks: Looks) -> None:
        """Take in looks."""
        with self._timed("learn"):
            self._inner.learn(looks)

    def hear(self, said: Hearing) -> None:
        """Take in what a source claims."""
        with self._timed("hear"):
            self._inner.hear(said)

    def worth(self, now: float) -> Floats:
        """What a look at each page is worth."""
        with self._timed("value"):
            return self._inner.worth(now)

    def beliefs(self, now: float) -> Beliefs:
        """What is thought of all pages."""
        with self._timed("foresee"):
            return self._inner.beliefs(now)

    def replan(self, budget: float, now: float) -> None:
        """Take it that so many looks a day can be paid."""
        with self._timed("replan"):
            self._inner.replan(budget, now)

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        """These pages weigh so much."""
        self._inner.reweigh(rows, importance)

    def inherit(self, old: int, new: int) -> None:
        """The page of one row stands at another one now."""
        self._inner.inherit(old, new)

    def limits(self, lane: Rows, per_day: Floats) -> None:
        """Hosts that share a lane share so many looks."""
        self._inner.limits(lane, per_day)

    @contextmanager
    def _timed(self, work: str) -> Iterator[None]:
        began = perf_counter()
        try:
            yield
        finally:
            self._told(work, perf_counter() - began)
