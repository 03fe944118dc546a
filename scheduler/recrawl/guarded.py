"""A refresher whose faults are contained: somebody else's policy must not stop the daemon."""

from __future__ import annotations

import logging
import re

import numpy as np

from freshet.scheduler.arguments import Floats
from freshet.scheduler.columns import Column
from freshet.scheduler.recrawl.by_clock import ByClock
from freshet.scheduler.recrawl.hearing import Hearing
from freshet.scheduler.recrawl.listening import Listening
from freshet.scheduler.recrawl.looks import Looks
from freshet.scheduler.recrawl.refresher import Beliefs, Refresher
from freshet.scheduler.sources import Rows

log = logging.getLogger(__name__)

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_MOST_TOLD = 100
#: Pages that have been looked at since the last good plan come after those that have not.
_AFTER = 1e-6


class Guarded:
    """A :class:`~freshet.scheduler.recrawl.refresher.Refresher` around another.

    Where that raises an error or answers with anything but n finite numbers from 0 on, its last
    good answer holds; pages that are not in it go by importance and age. A kind of fault is
    told once.
    """

    def __init__(self, inner: Refresher, name: str) -> None:
        self._inner = inner
        self._name = name
        self._told: set[str] = set()
        self._good = np.empty(0)
        self._importance = Column[np.float64](np.float64)
        self._last = Column[np.float64](np.float64)

    def add(self, site: Rows, area: Rows, importance: Floats, at: Floats) -> None:
        """Append rows."""
        self._importance.extend(importance)
        self._last.extend(at)
        self._inner.add(site, area, importance, at)

    def learn(self, looks: Looks) -> None:
        """Pass it on."""
        np.maximum.at(self._last.rows, looks.row, looks.at)
        self._good[looks.row[looks.row < len(self._good)]] = 0.0
        self._inner.learn(looks)

    def hear(self, said: Hearing) -> None:
        """Pass it on."""
        self._inner.hear(said)

    def listening(self, site: int) -> Listening | None:
        """What claims have told of a site; None where nobody listens, or claims anything."""
        return self._inner.listening(site) if isinstance(self._inner, ByClock) else None

    def worth(self, now: float) -> Floats:
        """What the other says, or said last."""
        worth: object = None
        try:
            worth = self._inner.worth(now)
        except Exception as error:  # noqa: BLE001 - whatever another's code raises is told
            fault: str | None = f"{type(error).__name__}: {error}"
        else:
            fault = self._fault(worth)
        if fault is None and isinstance(worth, np.ndarray):
            self._good = worth.copy()
            return worth
        self._tell(fault or "")
        rest = self._importance.rows * np.maximum(now - self._last.rows, 0.0)
        rest[: len(self._good)] = np.where(
            self._good > 0, self._good, rest[: len(self._good)] * _AFTER
        )
        return rest

    def beliefs(self, now: float) -> Beliefs:
        """What the other says."""
        return self._inner.beliefs(now)

    def limits(self, lane: Rows, per_day: Floats) -> None:
        """Pass it on."""
        self._inner.limits(lane, per_day)

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        """Pass it on."""
        self._importance.rows[rows] = importance
        self._inner.reweigh(rows, importance)

    def inherit(self, old: int, new: int) -> None:
        """Pass it on."""
        self._last.rows[new] = max(self._last.rows[new], self._last.rows[old])
        self._inner.inherit(old, new)

    def replan(self, budget: float, now: float) -> None:
        """Pass it on."""
        try:
            self._inner.replan(budget, now)
        except Exception as error:  # noqa: BLE001 - as above
            self._tell(f"{type(error).__name__}: {error}")

    def _tell(self, fault: str) -> None:
        # Without what differs each time, such as the number of a page.
        kind = _NUMBER.sub("#", fault)
        if kind not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(kind)
            log.error("policy %s: %s; its last good plan goes on", self._name, fault)

    def _fault(self, worth: object) -> str | None:
        if not isinstance(worth, np.ndarray):
            return f"answers with {type(worth).__name__}"
        if worth.shape != (len(self._last),):
            return f"answers with {worth.shape} values for {len(self._last)} pages"
        good = np.isfinite(worth) & (worth >= 0)
        if good.all():
            return None
        row = int(np.argmin(good))
        return f"says that page {row} is worth {worth[row]}"
