"""Evaluation of discovery algorithms: each chooses by past recrawls, the next one judges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan

from freshet.scheduler.arrays import Bools, Ints
from freshet.scheduler.discovery.covers import CoverOutcome, RecrawlHistory, outcome
from freshet.scheduler.discovery.reveals import Reveals


@dataclass(frozen=True, slots=True)
class Record:
    """An algorithm's outcomes, one for each recrawl of each site (section 3.6.6)."""

    outcomes: Sequence[CoverOutcome]

    @property
    def coverage(self) -> float:
        """Return the revealed share of the new pages of all sites; NaN if none was new."""
        new = sum(each.new for each in self.outcomes)
        return sum(each.found for each in self.outcomes) / new if new else nan

    @property
    def depth(self) -> float:
        """Return the mean size of a cover; NaN without any."""
        sizes = [each.size for each in self.outcomes]
        return sum(sizes) / len(sizes) if sizes else nan

    @property
    def overhead(self) -> float:
        """Return all visits for all pages that they revealed; inf where they revealed none."""
        return CoverOutcome(
            sum(each.size for each in self.outcomes), sum(each.found for each in self.outcomes), 0
        ).overhead


def judged(
    recrawls: Sequence[Reveals],
    choose: Callable[[RecrawlHistory, Reveals], Ints],
    alive: Sequence[Bools] | None = None,
    first: int = 1,
) -> Record:
    """Let an algorithm choose before each recrawl from ``first`` on, and compare with it.

    ``choose`` is given the past, and the recrawl itself, which only a bound may use. ``alive``
    are the old pages that were there when a step began, for each recrawl; without it, all. Steps
    in which nothing was new are left out: no cover can be judged by them.
    """
    outcomes = []
    for number in range(first, len(recrawls)):
        now = recrawls[number]
        if not now.new:
            continue
        past = RecrawlHistory(
            now.old, float(number), list(map(float, range(number))), recrawls[:number]
        )
        if alive is not None:
            past = past.of_living(alive[number])
        outcomes.append(outcome(now, choose(past, now)))
    return Record(outcomes)
