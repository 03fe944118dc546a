"""A bandit that needs no full recrawls: every old page is an arm (section 7.1). Pure.

A new page is a step in time, and an arm pays where it covers that page. k arms are pulled in a
batch, and what all of them revealed together is all that is known of what was new. The arms of the
largest upper confidence bound are pulled (UCB1; Auer, Cesa-Bianchi, Fischer 2002); they converge to
those of the largest outdegree, as OD-WIN would take them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scheduler.arguments import Floats, Ints


class Bandit:
    """What the arms have paid. ``width`` scales the confidence bounds: 0 only exploits."""

    def __init__(self, width: float = 0.5) -> None:
        self._width = width
        self._trials = np.zeros(0)
        self._paid = np.zeros(0)
        self._steps = 0.0

    def choose(self, pages: int, budget: int) -> Ints:
        """The ``budget`` arms of ``pages`` to be pulled next, the most promising first."""
        self._grow(pages)
        best = np.argsort(-self.bounds(), kind="stable")[: max(budget, 0)]
        return np.asarray(best, np.int64)

    def learn(self, pulled: Mapping[int, Ints]) -> None:
        """What each arm of a batch revealed (new pages, by any numbers).

        A batch that reveals nothing is a step, too, so that its arms give way to others.
        """
        revealed = list(pulled.values())
        new = len(np.unique(np.concatenate(revealed))) if revealed else 0
        steps = max(new, 1)
        self._steps += steps
        self._grow(max(pulled, default=-1) + 1)
        for page, members in pulled.items():
            self._trials[page] += steps
            self._paid[page] += members.size

    def bounds(self) -> Floats:
        """The upper confidence bound of the share of new pages that each arm covers."""
        known = self._trials + 1.0
        # A page that was never looked at is worth what pages are in the mean, and its doubt.
        mean = (self._paid + self._mean()) / known
        return np.asarray(
            mean + self._width * np.sqrt(2.0 * np.log(self._steps + 1.0) / known), np.float64
        )

    def _mean(self) -> float:
        trials = float(self._trials.sum())
        return float(self._paid.sum()) / trials if trials else 0.0

    def _grow(self, pages: int) -> None:
        more = pages - self._trials.size
        if more > 0:
            self._trials = np.append(self._trials, np.zeros(more))
            self._paid = np.append(self._paid, np.zeros(more))
