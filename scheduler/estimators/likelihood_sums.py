"""All that is known of the change rates of n sources, as running sums.

Invariant: the sums of a source are those of its evidence, each piece weighted by 2^{−t/h}, t the
days from it to the source's newest piece and h the half-life. Consequence: neither the order in
which evidence comes nor how it is divided into batches matters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arguments import Floats
from freshet.scheduler.columns import Column
from freshet.scheduler.estimators import rate_grid
from freshet.scheduler.estimators.estimator import Evidence
from freshet.scheduler.sources import Rows

#: Rows whose likelihoods are worked out together: 157 numbers each.
CHUNK = 2048


class LikelihoodSums:
    """The sums of ``rate_grid`` for n sources; ``half_life`` in days, infinite: no fading.

    Memory: 176 bytes a source, and 8 more with a half-life.
    """

    def __init__(self, n: int, half_life: float) -> None:
        self._half_life = half_life
        self._differed_rows = Column[np.float32](np.float32, width=rate_grid.POINTS)
        self._exact_rows = Column[np.float64](np.float64, width=2)
        self._latest_rows = Column[np.float64](np.float64)
        self.extend(n)

    def __len__(self) -> int:
        return len(self._exact_rows)

    def extend(self, n: int) -> None:
        """Append n sources without evidence."""
        self._differed_rows.append(n)
        self._exact_rows.append(n)
        if self._fades:
            self._latest_rows.extend(np.full(n, -np.inf))

    @property
    def _differed(self) -> NDArray[np.float32]:
        return self._differed_rows.rows

    @property
    def _exact(self) -> Floats:
        return self._exact_rows.rows

    @property
    def _latest(self) -> Floats:
        return self._latest_rows.rows

    def add(self, evidence: Evidence) -> None:
        """Take this evidence in."""
        if len(evidence) == 1:
            self._add_one(evidence)
        elif len(evidence):
            self._add_many(evidence)

    def inherit(self, old: int, new: int) -> None:
        """Add the sums of a source to those of another one, as they are."""
        self._differed[new] += self._differed[old]
        self._exact[new] += self._exact[old]
        if self._fades:
            self._latest[new] = max(self._latest[new], self._latest[old])

    def likelihood(self, rows: Rows) -> Floats:
        """(m, 157), on the fine grid, each row relative to its largest value."""
        return rate_grid.likelihood(self._differed[rows], self._exact[rows])

    def known(self) -> Rows:
        """The rows of the sources that there is evidence of."""
        # An interval at whose end the source differed weighs on the lowest rate of all.
        return np.flatnonzero(self._exact.any(axis=1) | (self._differed[:, 0] != 0))

    @property
    def _fades(self) -> bool:
        return self._half_life < np.inf

    def _add_one(self, evidence: Evidence) -> None:
        """What :meth:`_add_many` does, for a simulation that goes crawl by crawl."""
        source, span = int(evidence.source[0]), float(evidence.span[0])
        changes = int(evidence.changes[0])
        weight = self._fade_one(source, float(evidence.at[0])) if self._fades else 1.0
        if changes and not evidence.counted[0]:
            differed = self._differed[source]
            differed += weight * rate_grid.differed(span)
        else:
            exact = self._exact[source]
            exact += (weight * changes, weight * span)

    def _add_many(self, evidence: Evidence) -> None:
        source, span = evidence.source, evidence.span
        weight = self._fade(source, evidence.at) if self._fades else np.ones(len(evidence))
        differed = (evidence.changes > 0) & ~evidence.counted
        rest = ~differed
        np.add.at(self._exact[:, 0], source[rest], (weight * evidence.changes)[rest])
        np.add.at(self._exact[:, 1], source[rest], (weight * span)[rest])
        rows = np.flatnonzero(differed)
        rows = rows[np.argsort(source[rows], kind="stable")]
        for first in range(0, len(rows), CHUNK):
            part = rows[first : first + CHUNK]
            self._add_differed(source[part], span[part], weight[part])

    def _add_differed(self, source: Rows, span: Floats, weight: Floats) -> None:
        """Add intervals at whose end sources differed; ``source`` ascends."""
        log_probability = rate_grid.differed(span)
        log_probability *= weight[:, None]
        starts = np.flatnonzero(np.diff(source, prepend=-1))
        self._differed[source[starts]] += np.add.reduceat(log_probability, starts, axis=0)

    def _fade_one(self, source: int, at: float) -> float:
        """Age the sums of a source to its newest evidence; the weight of evidence of day ``at``."""
        before = self._latest[source]
        if at <= before:
            return float(np.exp2((at - before) / self._half_life))
        self._latest[source] = at
        faded = np.exp2((before - at) / self._half_life)
        self._differed[source] *= faded
        self._exact[source] *= faded
        return 1.0

    def _fade(self, source: Rows, at: Floats) -> Floats:
        """:meth:`_fade_one` for many: (m,), the weights."""
        rows = np.unique(source)
        before = self._latest[rows]
        np.maximum.at(self._latest, source, at)
        faded = np.exp2((before - self._latest[rows]) / self._half_life)
        self._differed[rows] *= faded[:, None].astype(np.float32)
        self._exact[rows] *= faded[:, None]
        weights: Floats = np.exp2((at - self._latest[source]) / self._half_life)
        return weights
