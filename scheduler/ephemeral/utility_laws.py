"""Random utilities: what arrives at a source in a period, for a given law of ξ (section 7).

Items come as a Poisson process of rate Λ, each worth ξ when it appears; at the end of the period

    U = Σ ξ_j e^{−μ(T − τ_j)},   E U = u

The papers do not say what the law of ξ is. ``together`` lets all items of a period share one draw
of ξ: the attention that a source gets differs from period to period, not from item to item. Then
U varies as ξ does, however many items there are; else it varies by E ξ²/(ξ̄² Λ T).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from freshet.scheduler import arguments
from freshet.scheduler.arguments import Floats
from freshet.scheduler.ephemeral.ephemeral_sources import EphemeralSources

Family: TypeAlias = Literal["constant", "exponential", "lognormal", "pareto"]
FAMILIES: tuple[Family, ...] = ("constant", "exponential", "lognormal", "pareto")


@dataclass(frozen=True, slots=True)
class UtilityLaw:
    """The law of ξ/ξ̄, of mean 1.

    Attributes:
        family: ``constant``, ``exponential``, ``lognormal`` with σ = ``shape``, or ``pareto``
            with the exponent ``shape``, above 1 (its variance is finite from 2).
        shape: as above.
        together: whether all items of a period share one draw.
    """

    family: Family = "constant"
    shape: float = 1.0
    together: bool = False

    def __post_init__(self) -> None:
        arguments.one_of("family", self.family, FAMILIES)
        arguments.budget("shape", self.shape)
        if self.family == "pareto" and self.shape <= 1:
            raise ValueError(f"shape: is {self.shape}; accepted for pareto is a number above 1")

    def draws(self, count: int, rng: np.random.Generator) -> Floats:
        """(count,), ξ/ξ̄."""
        match self.family:
            case "constant":
                return np.ones(count)
            case "exponential":
                return rng.exponential(size=count)
            case "lognormal":
                return rng.lognormal(-(self.shape**2) / 2, self.shape, count)
            case "pareto":
                return (rng.pareto(self.shape, count) + 1) * (self.shape - 1) / self.shape


def arriving(
    sources: EphemeralSources, law: UtilityLaw, periods: int, rng: np.random.Generator
) -> Floats:
    """(periods, n), U of each period and source."""
    columns = [_of_one(sources, row, law, periods, rng) for row in range(len(sources))]
    return np.stack(columns, axis=1)


def _of_one(
    sources: EphemeralSources, row: int, law: UtilityLaw, periods: int, rng: np.random.Generator
) -> Floats:
    counts = rng.poisson(sources.arrival_rate[row] * sources.period, periods)
    total = int(counts.sum())
    owner = np.repeat(np.arange(periods), counts)
    ages = rng.random(total) * sources.period
    worth = sources.mean_utility[row] * np.exp(-sources.decay[row] * ages)
    worth *= law.draws(periods, rng)[owner] if law.together else law.draws(total, rng)
    sums: Floats = np.bincount(owner, worth, minlength=periods).astype(np.float64)
    return sums
