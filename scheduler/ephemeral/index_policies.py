"""The Whittle index as a policy over periods: states unknown, known, and known of some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from freshet.scheduler.arguments import Floats
from freshet.scheduler.ephemeral.ephemeral_sources import EphemeralSources
from freshet.scheduler.ephemeral.observed_index import IndexCurve
from freshet.scheduler.ephemeral.periods import Seen


@dataclass(frozen=True, slots=True)
class WhittleByAge:
    """The index of the state expected since the crawl, exact; nothing is observed."""

    sources: EphemeralSources

    def priority(self, seen: Seen) -> Floats:
        """(n,), the index."""
        return self.sources.index(seen.since_crawl)


@dataclass(frozen=True, slots=True)
class WhittleByState:
    """The deterministic index at the state: the one observed, or the one expected.

    With random utilities that are observed it is a heuristic; the papers use it.
    """

    sources: EphemeralSources

    def priority(self, seen: Seen) -> Floats:
        """(n,), the index."""
        return self.sources.index_at(seen.state)


@dataclass(frozen=True, slots=True)
class WhittleByCurve:
    """The stochastic index where a source has a curve, the deterministic one where it has None.

    The second is right for a source that is not observed: its expected state, which is all that
    is known of it, moves as the deterministic model says.
    """

    sources: EphemeralSources
    curves: Sequence[IndexCurve | None]

    def priority(self, seen: Seen) -> Floats:
        """(n,), the index."""
        index = self.sources.index_at(seen.state)
        drawn = (
            index[row] if curve is None else curve.at(seen.state[row])
            for row, curve in enumerate(self.curves)
        )
        return np.fromiter(drawn, np.float64, len(self.curves))
