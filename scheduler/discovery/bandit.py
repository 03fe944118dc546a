"""A bandit that needs no full recrawls: every old page is an arm (section 7.1).

A new page is a step in time, and an arm pays where it covers that page. k arms are pulled in a
batch, and what all of them revealed together is all that is known of what was new. The arms of the
largest upper confidence bound are pulled; they converge to those of the largest outdegree, as
OD-WIN would take them.

The bound is that of UCB1 (Auer, Cesa-Bianchi, Fischer 2002) with the variance p (1 - p) that an arm
is thought to have, as in UCB-V (Audibert, Munos, Szepesvari 2009, without its term of the range).
UCB1 takes 1/4 for every arm: of thousands of pages that pay nothing each then looks as promising as
the index after a few looks, until it was pulled often.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from freshet.scheduler.arguments import Bools, Floats, Ints
from freshet.scheduler.discovery.past import Past
from freshet.scheduler.discovery.reveals import Reveals

#: Narrow: the widest of 1, 0.1 and 0.01 that costs next to nothing on synthetic sites.
WIDTH: Final = 0.1


class Bandit:
    """What the arms have paid. ``width`` scales the confidence bounds: 0 only exploits."""

    def __init__(self, width: float = WIDTH) -> None:
        self._width = width
        self._trials = np.zeros(0)
        self._paid = np.zeros(0)
        self._steps = 0.0

    def choose(self, pages: int, budget: int, alive: Bools | None = None) -> Ints:
        """The ``budget`` arms of ``pages`` to be pulled next, the most promising first."""
        self._grow(pages)
        best = np.argsort(-self.bounds()[:pages], kind="stable")
        if alive is not None:
            best = best[alive[best]]
        return np.asarray(best[: max(budget, 0)], np.int64)

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

    def learn_all(self, recrawl: Reveals) -> None:
        """What a full recrawl revealed: every old page is an arm of the batch."""
        steps = max(recrawl.new, 1)
        self._steps += steps
        self._grow(recrawl.old)
        self._trials[: recrawl.old] += steps
        self._paid[: recrawl.old] += recrawl.degrees

    def bounds(self) -> Floats:
        """The upper confidence bound of the share of new pages that each arm covers."""
        known = self._trials + 1.0
        # A page that was never looked at is worth what pages are in the mean, and its doubt.
        mean = np.minimum((self._paid + self._mean()) / known, 1.0)
        variance = mean * (1.0 - mean)
        doubt = np.sqrt(2.0 * np.log(self._steps + 1.0) * variance / known)
        return np.asarray(mean + self._width * doubt, np.float64)

    def _mean(self) -> float:
        """What pages pay in the mean: a half at first, never nothing, or none would be tried."""
        return (float(self._paid.sum()) + 1.0) / (float(self._trials.sum()) + 2.0)

    def _grow(self, pages: int) -> None:
        more = pages - self._trials.size
        if more > 0:
            self._trials = np.append(self._trials, np.zeros(more))
            self._paid = np.append(self._paid, np.zeros(more))


def told_bandit(past: Past, budget: int) -> Ints:
    """The arms that a bandit would pull next that had seen all recrawls."""
    bandit = Bandit()
    for recrawl in past.recrawls:
        bandit.learn_all(recrawl)
    return bandit.choose(past.pages, budget, past.alive)
