"""The protocol by which a policy ranks pages for a daemon, a simulation or a replay."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.estimate.evidence import SignalBatch, VisitResults
from freshet.scheduler.sources import Rows


@dataclass(frozen=True, slots=True)
class Beliefs:
    """State of n pages on a day, as estimated; every column has length n.

    Attributes:
        hazard: x, the changes expected since the last visit: the copy is stale with probability
            1 − e^{−x}, and Ein(x) is expected of H(N).
        rate: changes a day, from now on.
        clocked: 0 to 1, how far x goes by the site's clock instead of by the days.
        claimed: 1 where change signals for the page are believed, 0 where they are not, −1 where
            there are none; None: the ranker does not judge sources.
        planned: visits a day by the plan of a rate policy; None: there is no plan.
    """

    hazard: Floats
    rate: Floats
    clocked: Floats
    claimed: NDArray[np.integer] | None = None
    planned: Floats | None = None


class Ranker(Protocol):
    """Values visits to pages of which there is a copy; rows come, and never go. Days are Unix days.

    *Law.* Its state is a function of the order of the pages and of the visits in theirs, however
    these were divided into calls, and mixed with those of :meth:`add`: fed the same observations
    again after a crash, it is the same.
    """

    def add(
        self, site: Rows, area: Rows, importance: Floats, at: Floats, pace: Floats | None = None
    ) -> None:
        """Append rows: pages of these sites and areas (integer codes), found on these days.

        Before its first visit a page is presumed to change ``pace`` times as often as others of its
        site; None: 1.
        """

    def learn(self, visits: VisitResults) -> None:
        """Take in visits, in their order; a page that is gone counts again when it is back."""

    def receive(self, said: SignalBatch) -> None:
        """Take in the signals of one source at one time."""

    def worth(self, now: float) -> Floats:
        """Return (n,), the value of a visit to each page on this day, at least 0."""

    def beliefs(self, now: float) -> Beliefs:
        """Return the estimates for all pages on this day; not to be written into."""

    def credible_interval(self, rows: Rows) -> tuple[Floats, Floats]:
        """Return the rates, (m,) each, between which those of pages lie at 90 %."""

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        """Give these pages another importance, (m,) each."""

    def inherit(self, old: int, new: int) -> None:
        """Hand the state of one row on to another, where its page stands now."""


@runtime_checkable
class SignalRanker(Protocol):
    """A ranker that can be told for which pages signals tell of every change."""

    @property
    def declared(self) -> Bools:
        """Return (n,), for which pages that was said."""

    def declare(self, rows: Rows, complete: Bools) -> None:
        """Say for which of these pages it is so, (m,)."""
