"""Sources whose items fade: a table of n of them, and what it follows from Theorem 1's model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Floats
from freshet.scheduler.policies import whittle


@dataclass(frozen=True, slots=True)
class EphemeralSources:
    """n sources; construct with :meth:`of`, which checks.

    Attributes:
        arrival_rate: (n,), Λ, items per unit of time.
        mean_utility: (n,), ξ̄, what an item is worth when it appears, on average.
        decay: (n,), μ, the rate at which it fades, per unit of time.
        cost: (n,), C, of one crawl, in the unit of the budget.
        period: T, the time from one decision to the next.
    """

    arrival_rate: Floats
    mean_utility: Floats
    decay: Floats
    cost: Floats
    period: float

    @classmethod
    def of(
        cls,
        arrival_rate: ArrayLike,
        mean_utility: ArrayLike,
        decay: ArrayLike,
        *,
        cost: ArrayLike = 1.0,
        period: float = 1.0,
    ) -> EphemeralSources:
        """Return the checked table; one number stands for all rows.

        Raises:
            ValueError: if a row is negative, NaN or not finite, a cost not above 0, or if the
                columns have different lengths.
        """
        given = [np.atleast_1d(np.asarray(each)) for each in (arrival_rate, mean_utility, decay)]
        price = np.atleast_1d(np.asarray(cost))
        length = max(len(each) for each in (*given, price))
        full = [np.full(length, each[0]) if len(each) == 1 else each for each in (*given, price)]
        names = ("arrival_rate", "mean_utility", "decay")
        rate, utility, mu = (
            arrays.non_negative(name, each, length)
            for name, each in zip(names, full[:3], strict=True)
        )
        costs = arrays.positive("cost", arrays.finite("cost", full[3], length))
        return cls(rate, utility, mu, costs, arrays.budget("period", period))

    def __len__(self) -> int:
        return len(self.cost)

    @property
    def retention(self) -> Floats:
        """Return α = e^{−μT} (n,), the share of utility left after a period."""
        left: Floats = np.exp(-self.decay * self.period)
        return left

    @property
    def fresh(self) -> Floats:
        """Return u (n,), the expected utility one period after a crawl."""
        return self.utility_after(np.ones(len(self)))

    @property
    def ceiling(self) -> Floats:
        """Return u* (n,), the limit of utility without crawls; inf without decay."""
        return self.utility_after(np.full(len(self), np.inf))

    def utility_after(self, periods: Floats) -> Floats:
        """Return the expected utility (n,) a number of periods after a crawl."""
        return whittle.utility_after(
            periods, self.arrival_rate, self.mean_utility, self.decay, period=self.period
        )

    def index(self, periods: Floats) -> Floats:
        """Return the Whittle index (n,) a number of periods after a crawl."""
        return whittle.index(
            periods,
            self.arrival_rate,
            self.mean_utility,
            self.decay,
            cost=self.cost,
            period=self.period,
        )

    def index_at(self, state: Floats) -> Floats:
        """Return the Whittle index (n,) at any state."""
        return whittle.index_at(
            state,
            self.arrival_rate,
            self.mean_utility,
            self.decay,
            cost=self.cost,
            period=self.period,
        )


# -- utility laws --
#
# Laws of ξ, the random utility of an item when it appears (section 7); the papers do not name one.
# ``together`` lets all items of a period share one draw of ξ: attention to a source differs from
# period to period, not from item to item.

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
        arrays.one_of("family", self.family, FAMILIES)
        arrays.budget("shape", self.shape)
        if self.family == "pareto" and self.shape <= 1:
            raise ValueError(f"shape: is {self.shape}; accepted for pareto is a number above 1")

    def draws(self, count: int, rng: np.random.Generator) -> Floats:
        """Return samples of ξ/ξ̄ (count,)."""
        match self.family:
            case "constant":
                return np.ones(count)
            case "exponential":
                return rng.exponential(size=count)
            case "lognormal":
                return rng.lognormal(-(self.shape**2) / 2, self.shape, count)
            case "pareto":
                return (rng.pareto(self.shape, count) + 1) * (self.shape - 1) / self.shape
