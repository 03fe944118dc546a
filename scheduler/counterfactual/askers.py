"""Policies as they stand before an archive: what is worth asking for, learning from answers.

All learn from answers and nothing else. Index and rate policies share the learning of
:mod:`scheduler.recrawl.learning`, a batch at a time; ``greedy_index`` is what the daemon makes of
it (:mod:`freshet.scheduler.recrawl.by_clock`); interval policies keep their paces.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from freshet.scheduler import policy
from freshet.scheduler.arguments import Floats
from freshet.scheduler.columns import Column
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.policy import IndexPolicy, IntervalPolicy, Pace, RatePolicy, Revisit
from freshet.scheduler.recrawl.by_clock import ByClock
from freshet.scheduler.recrawl.by_index import ByIndex
from freshet.scheduler.recrawl.by_rate import ByRate
from freshet.scheduler.recrawl.learning import Learning
from freshet.scheduler.recrawl.looks import Looks
from freshet.scheduler.recrawl.refresher import Beliefs
from freshet.scheduler.sources import Rows


class Asker(Protocol):
    """What a run asks of a policy, as of a :class:`~scheduler.recrawl.refresher.Refresher`."""

    def add(self, site: Rows, area: Rows, importance: Floats, at: Floats) -> None:
        """Append rows: pages of these sites and areas (integer codes), found on these days."""
        ...

    def learn(self, looks: Looks) -> None:
        """Take in what was found, in the order of time."""
        ...

    def worth(self, now: float) -> Floats:
        """(n,), what a look at each page is worth on this day; 0: it is not to be asked for."""
        ...

    def beliefs(self, now: float) -> Beliefs | None:
        """What is thought of all pages on this day; None where there are no such beliefs."""
        ...

    def replan(self, budget: float, now: float) -> None:
        """Take it that ``budget`` looks a day can be paid from now on."""
        ...


class Paced:
    """An :class:`Asker` for an interval policy: the most overdue first, and nothing before it is.

    Servers do not say when a page changed: a policy learns when a look last saw a change.
    """

    def __init__(self, interval_policy: IntervalPolicy) -> None:
        self._policy = interval_policy
        self._paces: list[Pace | None] = []
        self._due = Column[np.float64](np.float64)
        self._modified = Column[np.float64](np.float64)

    def add(self, site: Rows, area: Rows, importance: Floats, at: Floats) -> None:
        """Append rows, which have no pace before the first look."""
        self._paces += [None] * len(at)
        self._due.extend(np.full(len(at), np.inf))
        self._modified.extend(at)

    def learn(self, looks: Looks) -> None:
        """Set the paces of what was looked at."""
        due, modified = self._due.rows, self._modified.rows
        rows, days, changed = looks.row.tolist(), looks.at.tolist(), looks.changed.tolist()
        for row, at, is_changed in zip(rows, days, changed, strict=True):
            before = self._paces[row]
            if is_changed or before is None:
                modified[row] = at
            revisit = Revisit(at, is_changed, float(modified[row]))
            pace = self._paces[row] = self._policy.next_interval(before, revisit)
            due[row] = pace.due_at

    def worth(self, now: float) -> Floats:
        """(n,), days overdue."""
        late: Floats = np.maximum(now - self._due.rows, 0.0)
        return late

    def beliefs(self, now: float) -> Beliefs | None:
        """It has none."""
        return None

    def replan(self, budget: float, now: float) -> None:
        """It knows no budget."""


def shown(asker: Asker, looks: Looks) -> Looks:
    """Of these looks, made by somebody else, those that a policy learns from.

    Change rates are learnt from all of them. An interval is set by the looks that it brought
    about: there the last one of each page is where it begins.
    """
    if not isinstance(asker, Paced):
        return looks
    _, last = np.unique(looks.row[::-1], return_index=True)
    return looks.take(np.sort(len(looks) - 1 - last))


def asker_of(specification: str) -> Asker:
    """What asks by the policy of this name, ``NAME`` or ``NAME:OPTION=VALUE,…``.

    Raises:
        PolicyError: there is none of this name, or an option or value is not accepted.
    """
    chosen = policy.load(specification)
    if isinstance(chosen, GreedyIndex):
        return ByClock()
    if isinstance(chosen, IndexPolicy):
        return ByIndex(chosen, Learning(together=True))
    if isinstance(chosen, RatePolicy):
        return ByRate(chosen, learning=Learning(together=True))
    return Paced(chosen)
