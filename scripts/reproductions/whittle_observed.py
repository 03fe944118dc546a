"""The Whittle index of a source whose random utility is observed, for a given law of U; numerical.

A source passes from x to αx + U if it is not crawled; if it is, x is earned and U comes next. With
the price λ paid for each period without a crawl, the average-reward equation (21) is

    V(x) + β = max( Cλ + E V(αx + U),  x + E V(U) ),   E V(U) = 0

The optimal policy crawls from a threshold on (section 7). At the price λ for which the threshold
is a, crawling and waiting come to the same there. So for each a = x_j of a grid, V on the grid
below a, β and λ solve linear equations:

    V(x_i) = Cλ − β + E V(αx_i + U)   i < j,      V(x) = x − β   x ≥ a
    a = Cλ + E V(αa + U),                         E V(U) = 0

and γ(a) = λ. V is convex and continuous at a, so it is interpolated linearly on the grid below a;
above it is exact. The error falls with the square of the grid's step.

    U    utilities    atoms of equal probability       (K,)
    α    retention    share left after a period        one number, below 1
    C    cost         of a crawl                       one number

Method: policy evaluation, one system of at most G + 2 equations for each of G grid points, O(G⁴)
with a small constant: 0.3 s for G = 200. Where no state of the grid's top can be reached it ends.

Reference: Avrachenkov and Borkar 2018, section 7, which proves indexability and says that there is
a numerical procedure without giving one. Value iteration for a given λ comes to the same thresholds
(tested).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Floats
from freshet.scheduler.ephemeral.policies import PolicyInput
from freshet.scheduler.ephemeral.sources import EphemeralSources
from scripts.reproductions.whittle_states import index_at

#: The last threshold is this near to the largest state that can be reached.
_REACHABLE = 0.98
#: The share of the grid that lies, evenly, below the largest mean state u*.
_EVEN = 0.75


@dataclass(frozen=True, slots=True)
class IndexCurve:
    """γ at the states of a grid from 0; between them linear, above it rises by 1/C."""

    states: Floats
    indices: Floats
    cost: float

    def at(self, state: float | np.float64) -> float:
        """The index at a state of at least 0."""
        above = max(0.0, float(state) - float(self.states[-1])) / self.cost
        return float(np.interp(state, self.states, self.indices)) + above


def atoms(draws: Floats, count: int, mean: float) -> Floats:
    """(count,) values of equal probability that stand for the law of ``draws``, (m,), m ≥ count.

    Each is the mean of its share of the sorted draws; all are scaled to ``mean``.

    >>> atoms(np.array([1.0, 5.0, 2.0, 4.0]), 2, 3.0).tolist()
    [1.5, 4.5]
    """
    parts = np.array_split(np.sort(draws), count)
    values = np.array([part.mean() for part in parts])
    scaled: Floats = values * (mean / values.mean())
    return scaled


def index_curve(
    utilities: Floats, retention: float, *, cost: float = 1.0, points: int = 200
) -> IndexCurve:
    """The curve for U uniform on the atoms ``utilities``.

    Raises:
        ValueError: if an atom is negative or not finite, if all are 0, if ``retention`` is not
            from 0 to below 1, or the cost not above 0.
    """
    values = arrays.non_negative("utilities", utilities)
    if not values.size or not values.max() > 0:
        raise ValueError("utilities: are all 0; accepted is a law with a mean above 0")
    if not 0 <= retention < 1:
        raise ValueError(f"retention: is {retention}; accepted is a number from 0 to below 1")
    price = arrays.budget("cost", cost)
    states = _grid(values, retention, points)
    moves = _Moves.between(states, values, retention)
    indices = [0.0, *(moves.price_at(j) / price for j in range(1, len(states)))]
    # Lemma 4: the index does not fall; what falls is rounding.
    return IndexCurve(states, np.maximum.accumulate(indices), price)


def _grid(utilities: Floats, retention: float, points: int) -> Floats:
    mean = float(utilities.mean()) / (1 - retention)
    reachable = _REACHABLE * float(utilities.max()) / (1 - retention)
    top = min(reachable, float(utilities.max()) + retention * mean)
    middle = min(1.2 * mean, top)
    if middle == top:
        return np.linspace(0, top, points)
    count = int(_EVEN * points)
    tail = np.geomspace(middle, top, points - count + 1)
    return np.concatenate([np.linspace(0, middle, count), tail[1:]])


@dataclass(frozen=True, slots=True)
class _Moves:
    """Where G states lead without a crawl; all (G, G), row: from; column: the cell reached.

    A cell runs from its grid point to the next; the last has no end. ``left`` and ``right`` are
    the weights of a cell's two ends in the interpolated E V(αx + U); ``mass`` and ``first`` the
    probability, and its product with the state, of landing in the cell or above it.
    """

    states: Floats
    left: Floats
    right: Floats
    mass: Floats
    first: Floats

    @classmethod
    def between(cls, states: Floats, utilities: Floats, retention: float) -> _Moves:
        """The moves x → αx + U."""
        size, weight = len(states), 1 / len(utilities)
        reached = retention * states[:, None] + utilities
        cell = np.clip(np.searchsorted(states, reached, side="right") - 1, 0, size - 1)
        widths = np.append(np.diff(states), np.inf)
        share = (reached - states[cell]) / widths[cell]
        place = (np.arange(size)[:, None] * size + cell).ravel()

        def gathered(weights: Floats) -> Floats:
            sums = np.bincount(place, weight * weights.ravel(), size * size)
            return sums.astype(np.float64).reshape(size, size)

        def upwards(sums: Floats) -> Floats:
            return sums[:, ::-1].cumsum(axis=1)[:, ::-1]

        return cls(
            states,
            gathered(1 - share),
            gathered(share),
            upwards(gathered(np.ones_like(share))),
            upwards(gathered(reached)),
        )

    def price_at(self, j: int) -> float:
        """Cλ for which the threshold is grid point j, at least 1."""
        a = self.states[j]
        # E V(αx + U) = inner @ V + earned − lost·β, for the rows 0 to j.
        inner = self.left[: j + 1, :j].copy()
        inner[:, 1:] += self.right[: j + 1, : j - 1]
        end = self.right[: j + 1, j - 1]
        earned = end * a + self.first[: j + 1, j]
        lost = end + self.mass[: j + 1, j]
        # Unknown: V below a, β, Cλ. Row 0 is state 0, whose successors are those of a crawl.
        matrix, known = np.zeros((j + 2, j + 2)), np.zeros(j + 2)
        matrix[:j, :j] = np.eye(j) - inner[:j]
        matrix[:j, j] = 1 + lost[:j]
        matrix[:j, j + 1] = -1
        known[:j] = earned[:j]
        matrix[j, :j], matrix[j, j], matrix[j, j + 1] = inner[j], -lost[j], 1
        known[j] = a - earned[j]
        matrix[j + 1, :j], matrix[j + 1, j] = inner[0], -lost[0]
        known[j + 1] = -earned[0]
        return float(np.linalg.solve(matrix, known)[-1])


@dataclass(frozen=True, slots=True)
class WhittleByState:
    """The deterministic index at the state: the one observed, or the one expected.

    With random utilities that are observed it is a heuristic; the papers use it.
    """

    sources: EphemeralSources

    def __call__(self, seen: PolicyInput) -> Floats:
        """(n,), the index."""
        return index_at(self.sources, seen.state)


@dataclass(frozen=True, slots=True)
class WhittleByCurve:
    """The stochastic index where a source has a curve, the deterministic one where it has None.

    The second is right for a source that is not observed: its expected state, which is all that
    is known of it, moves as the deterministic model says.
    """

    sources: EphemeralSources
    curves: Sequence[IndexCurve | None]

    def __call__(self, seen: PolicyInput) -> Floats:
        """(n,), the index."""
        index = index_at(self.sources, seen.state)
        drawn = (
            index[row] if curve is None else curve.at(seen.state[row])
            for row, curve in enumerate(self.curves)
        )
        return np.fromiter(drawn, np.float64, len(self.curves))


@dataclass(frozen=True, slots=True)
class GreedyObserved:
    """The largest utility that is there, per cost; that expected where it is not observed."""

    sources: EphemeralSources

    def __call__(self, seen: PolicyInput) -> Floats:
        """(n,), utility per unit of cost."""
        return seen.state / self.sources.cost
