"""The protocol with which a policy ranks pages for a daemon, a simulation or a replay."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.estimate.evidence import SignalBatch, VisitResults
from freshet.scheduler.sources import Rows


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Estimated state of n pages on a day; every column has length n.

    Attributes:
        hazard: x, the changes expected since the last visit: the copy is stale with probability 1 −
            e^{−x}, and Ein(x) is the expectation of H(N).
        rate: changes a day, from now on.
        clocked: 0 to 1, the share of x that follows the site's clock instead of the days.
        claimed: 1 where change signals for the page are believed, 0 where they are not, −1 without
            signals; None: the ranker does not judge sources.
        planned: visits a day in the plan of a rate policy; None without a plan.
    """

    hazard: Floats
    rate: Floats
    clocked: Floats
    claimed: NDArray[np.integer] | None = None
    planned: Floats | None = None


class Ranker(Protocol):
    """A ranker of visits to pages that have a copy. Rows are never removed. Days are Unix days.

    *Contract.* The state depends only on the order of the pages and on the order of the visits. It
    does not depend on how these are divided into calls, or on how :meth:`add` calls mix with them:
    with the same observations again after a crash, the state is the same.
    """

    def add(
        self, site: Rows, area: Rows, importance: Floats, at: Floats, pace: Floats | None = None
    ) -> None:
        """Append rows: pages of these sites and areas (integer codes), found on these days.

        Before its first visit a page is assumed to change ``pace`` times as often as others of its
        site; None: 1.
        """

    def learn(self, visits: VisitResults) -> None:
        """Learn from visits, in their order; a page that is gone counts again when it is back."""

    def receive(self, batch: SignalBatch) -> None:
        """Learn from the signals of one source at one time."""

    def values(self, now: float) -> Floats:
        """Return (n,), the value of a visit to each page on this day, at least 0."""

    def beliefs(self, now: float) -> Beliefs:
        """Return the estimates for all pages on this day; the arrays are read-only."""

    def credible_interval(self, rows: Rows) -> tuple[Floats, Floats]:
        """Return the bounds (m,) each of the 90 % credible intervals of the pages' rates."""

    def reweigh(self, rows: Rows, importance: Floats) -> None:
        """Set the importance (m,) of these pages."""

    def inherit(self, old: int, new: int) -> None:
        """Copy the state of one row to another, the row of the page's new URL."""


@runtime_checkable
class SignalRanker(Protocol):
    """A ranker that accepts declarations that the signals of a page announce every change."""

    @property
    def declared(self) -> Bools:
        """Return (n,), True for the declared pages."""

    def declare(self, rows: Rows, complete: Bools) -> None:
        """Set for each of these pages whether it is declared, (m,)."""
