"""Covers, and what they cost: old pages chosen to be looked at again for what they reveal."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from freshet.scheduler.arguments import Ints
from freshet.scheduler.discovery.reveals import Reveals


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a cover was worth: ``size`` old pages revealed ``found`` of ``new`` new ones."""

    size: int
    found: int
    new: int

    @property
    def overhead(self) -> float:
        """|O| / |N(O)|: looks wasted for each new page (section 3.2.1); infinite for nothing."""
        if not self.found:
            return inf if self.size else 0.0
        return self.size / self.found

    @property
    def coverage(self) -> float:
        """The share of the new pages that it revealed; 1 where nothing was new."""
        return self.found / self.new if self.new else 1.0


def outcome(reveals: Reveals, cover: Ints) -> Outcome:
    """What it is worth to look at these old pages; each counts, even one that reveals nothing."""
    return Outcome(int(cover.size), int(reveals.covered(cover).sum()), reveals.new)
