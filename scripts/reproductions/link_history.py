"""The links of a site that was crawled whole at every step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freshet.scheduler.arrays import Bools, Ints
from freshet.scheduler.discovery.reveal_graph import Reveals, reveals_of


@dataclass(frozen=True, slots=True)
class LinkHistory:
    """A site that was crawled whole at every step; steps count from 0, the first crawl.

    Attributes:
        name: what the site is called.
        steps: how many crawls there were.
        born: the step at which each page was first there, ascending; of shape (pages,).
        source, target: the pages that a link leads from and to; of shape (links,), as the next.
        begin, end: the first step at which the link was there, and the first at which it was not.
        gone: the first step at which each page was not there any more; None: all stay.
    """

    name: str
    steps: int
    born: Ints
    source: Ints
    target: Ints
    begin: Ints
    end: Ints
    gone: Ints | None = None

    def __post_init__(self) -> None:
        if np.any(np.diff(self.born) < 0):
            raise ValueError("pages must be in the order of their first steps")
        if not self.source.shape == self.target.shape == self.begin.shape == self.end.shape:
            raise ValueError("each link needs a source, a target, a begin and an end")
        if self.gone is not None and self.gone.shape != self.born.shape:
            raise ValueError("each page is gone at one step")

    def alive(self, step: int) -> Bools:
        """Return which old pages of H_t+1 still existed at a step."""
        known = int(np.searchsorted(self.born, step, "right"))
        return np.ones(known, np.bool_) if self.gone is None else self.gone[:known] > step

    def at(self, step: int) -> Reveals:
        """Return H_t of a step: the pages that are new since the step before, and their links."""
        old, both = (int(n) for n in np.searchsorted(self.born, (step, step + 1), "left"))
        is_there = (self.begin <= step) & (step < self.end)
        known = is_there & (self.source < both) & (self.target < both) & (self.target >= old)
        return reveals_of(old, both - old, self.source[known], self.target[known])

    def recrawls(self) -> list[Reveals]:
        """Return H_t of all steps but the first, at which every page was new."""
        return [self.at(step) for step in range(1, self.steps)]

    def linked_directly(self) -> int:
        """Return new pages that an older page links to when they are new."""
        born = self.born[self.target]
        is_there = (self.begin <= born) & (born < self.end) & (born > 0)
        return int(np.unique(self.target[is_there & (self.born[self.source] < born)]).size)
