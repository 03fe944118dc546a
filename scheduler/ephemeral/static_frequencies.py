"""Optimal frequencies that never change (Lefortier et al. 2013, as the Whittle papers tell of it).

A source that is crawled every I units of time earns (Λξ̄/μ)(1 − e^{−μI})/I. Frequencies f = 1/I
are sought

    maximise  Σ f (Λξ̄/μ)(1 − e^{−μ/f})    subject to  Σ C f T = M,  f ≤ 1/T

Each term is concave in f. At the price λ per unit of cost, with y = μI and u* = Λξ̄/μ,

    u* [ 1 − (1 + y) e^{−y} ] = λC,   so   1 + y = −W₋₁(−(1 − λC/u*)/e)   (Lambert W)

and a source with u* ≤ λC is never crawled. λ is found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import lambertw

from freshet.scheduler.arguments import Floats
from freshet.scheduler.ephemeral.ephemeral_sources import EphemeralSources
from freshet.scheduler.ephemeral.periods import Seen


def static_frequencies(sources: EphemeralSources, budget: float) -> Floats:
    """(n,), crawls per period, at most 1 each; Σ C f is the budget, or less where all are at 1.

    A source without decay earns the same however seldom it is crawled, and gets 0.
    """
    fading = (sources.decay > 0) & (sources.arrival_rate * sources.mean_utility > 0)
    frequencies = np.zeros(len(sources))
    if not fading.any():
        return frequencies
    worth = np.where(fading, sources.ceiling, 0.0)
    top = float((worth / sources.cost).max())

    def at(price: float) -> Floats:
        wanted = np.zeros(len(sources))
        rows = fading & (worth > price * sources.cost)
        share = price * sources.cost[rows] / worth[rows]
        # At the branch point, where y is 0, scipy has no value.
        y = np.nan_to_num(-lambertw(-(1 - share) / np.e, -1).real - 1)
        step = sources.decay[rows] * sources.period
        wanted[rows] = step / np.maximum(y, step)
        return wanted

    few, many = _around(at, sources.cost, budget, top)
    # A frequency falls to 0 so late that floats see a jump: the rest of the budget goes there.
    short, long = budget - float(sources.cost @ few), float(sources.cost @ (many - few))
    return few + min(1.0, short / long) * (many - few) if long > 0 else few


def _around(
    at: Callable[[float], Floats], cost: Floats, budget: float, top: float
) -> tuple[Floats, Floats]:
    """Frequencies at two prices next to each other, of which one spends too much."""
    low, high = 0.0, top
    while low < (middle := (low + high) / 2) < high:
        if float(cost @ at(middle)) > budget:
            low = middle
        else:
            high = middle
    return at(high), at(low)


@dataclass(frozen=True, slots=True)
class StaticFrequencies:
    """Crawls each source at a fixed frequency: whoever is furthest behind its own comes first.

    ``frequencies`` are crawls per period, (n,).
    """

    frequencies: Floats

    def priority(self, seen: Seen) -> Floats:
        """(n,), crawls that are owed."""
        owed: Floats = self.frequencies * (seen.elapsed + 1) - seen.crawls
        return owed
