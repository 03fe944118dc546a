"""The change rate of a source that tells of every change (Kolobov et al. 2019, eq. 11).

The likelihood of U changes in S days under a Poisson process is maximal at Δ = U/S, which is 0
for a source that has not changed yet. The paper's remedy, line 13 of its Algorithm 4, is

    Δ = (U + 0.5) / (S + 0.5).

Where
    U   ``changes``, the number of changes notified, shape (m,);
    S   ``days``, the length of the window in which they came, shape (m,);
    Δ   the estimate, changes per day, shape (m,);
    0.5 ``smoothing``: that many imaginary changes in as many imaginary days.

Cost: O(m). Edge cases: without evidence Δ = 1; with ``smoothing=0`` Δ = 0 for a source without
changes. Numerical form: as it stands, no cancellation.

Reference: Kolobov, Peres, Lu, Horvitz, "Staying up to Date with Online Content Changes Using
Reinforcement Learning for Scheduling", NeurIPS 2019, Algorithm 4. Differs from the paper in:
the smoothing is an argument; eq. 11 itself has the consistent (U + 1)/S.

>>> float(estimate_many([3, 0], [6.5, 0.5])[0])
0.5
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler import arguments
from freshet.scheduler.arguments import Floats, Ints


def estimate_complete(changes: int, days: float, *, smoothing: float = 0.5) -> float:
    """Changes per day of a source that changed ``changes`` times in ``days`` days.

    Raises:
        ValueError: as for :func:`estimate_many`.
    """
    return float(estimate_many_complete([changes], [days], smoothing=smoothing)[0])


def estimate_many_complete(
    changes: ArrayLike, days: ArrayLike, *, smoothing: float = 0.5
) -> Floats:
    """(m,), changes per day of m sources.

    Raises:
        ValueError: if a number of changes is not whole, a number is negative or not finite,
            or a source has no days and there is no smoothing.
    """
    number = arguments.counts("changes", changes)
    window = arguments.non_negative("days", days, len(number))
    s = float(arguments.non_negative("smoothing", [smoothing])[0])
    if s == 0 and not window.all():
        row = int(np.argmin(window))
        raise ValueError(f"days: row {row} is 0; accepted is a number above 0 without smoothing")
    return smoothed_rate(number, window, s)


def smoothed_rate(changes: Ints | Floats, days: Floats, smoothing: float) -> Floats:
    """The equation, for values that are known to be good."""
    rate: Floats = (changes + smoothing) / (days + smoothing)
    return rate
