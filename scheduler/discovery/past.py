"""What is known of a site's past recrawls when a cover is to be chosen (section 3.6.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from freshet.scheduler.arguments import Bools, Floats
from freshet.scheduler.discovery.reveals import Reveals


@dataclass(frozen=True, slots=True)
class Past:
    """Full recrawls of a site, at growing times, and the time ``at`` of the choice.

    Times count in steps of any length. ``pages`` says how many pages there are by now: X_t.
    ``alive`` are those that were there when last looked at, of shape (pages,); None: all.
    """

    pages: int
    at: float
    times: Sequence[float]
    recrawls: Sequence[Reveals]
    alive: Bools | None = None

    def __post_init__(self) -> None:
        if len(self.times) != len(self.recrawls):
            raise ValueError(f"{len(self.times)} times for {len(self.recrawls)} recrawls")
        if any(each.old > self.pages for each in self.recrawls):
            raise ValueError("a recrawl knows more old pages than there are pages")

    def of_living(self, alive: Bools) -> Past:
        """As if pages that are gone had never revealed anything: nothing chooses them then."""
        if alive.all():
            return self
        recrawls = [each.by(alive[: each.old]) for each in self.recrawls]
        return Past(self.pages, self.at, self.times, recrawls, alive)

    @property
    def last(self) -> Past:
        """As if only the last recrawl had been."""
        return Past(self.pages, self.at, self.times[-1:], self.recrawls[-1:], self.alive)

    @property
    def last_news(self) -> Reveals | None:
        """The last recrawl in which a page revealed anything."""
        return next((each for each in reversed(self.recrawls) if each.members.size), None)

    def weights(self, alpha: float = 1.0) -> Floats:
        """What each recrawl counts, alpha^(t - t'); of shape (recrawls,).

        Raises:
            ValueError: alpha is not above 0 and at most 1.
        """
        if not 0.0 < alpha <= 1.0:
            raise ValueError(f"alpha must be above 0 and at most 1, not {alpha}")
        return np.asarray(alpha ** (self.at - np.asarray(self.times, np.float64)), np.float64)

    def fractions(self, alpha: float = 1.0) -> Floats:
        """p_i^t of each page: the mean of its p_i in all recrawls, weighted with alpha^(t - t').

        A page that was not there yet revealed nothing; a recrawl in which nothing was new says
        nothing of any. Of shape (pages,).

        Raises:
            ValueError: alpha is not above 0 and at most 1.
        """
        total, weights = np.zeros(self.pages), 0.0
        for weight, recrawl in zip(self.weights(alpha).tolist(), self.recrawls, strict=True):
            if not recrawl.new:
                continue
            total[: recrawl.old] += weight * recrawl.fractions
            weights += weight
        return total / weights if weights else total

    def ever(self) -> Bools:
        """The pages that revealed anything in any recrawl, as a mask of shape (pages,)."""
        found = np.zeros(self.pages, np.bool_)
        for recrawl in self.recrawls:
            found[: recrawl.old] |= recrawl.degrees > 0
        return found
