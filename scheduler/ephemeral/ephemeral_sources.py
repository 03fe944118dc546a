"""Sources whose items fade: a table of n of them, and what it follows from Theorem 1's model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler import arguments
from freshet.scheduler.arguments import Floats
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
        """The table; one number stands for all rows.

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
            arguments.non_negative(name, each, length)
            for name, each in zip(names, full[:3], strict=True)
        )
        costs = arguments.positive("cost", arguments.finite("cost", full[3], length))
        return cls(rate, utility, mu, costs, arguments.budget("period", period))

    def __len__(self) -> int:
        return len(self.cost)

    @property
    def retention(self) -> Floats:
        """(n,), α = e^{−μT}, what is left of an item's utility after a period."""
        left: Floats = np.exp(-self.decay * self.period)
        return left

    @property
    def fresh(self) -> Floats:
        """(n,), u, the expected utility one period after a crawl."""
        return self.utility_after(np.ones(len(self)))

    @property
    def ceiling(self) -> Floats:
        """(n,), u*, where the utility of a source that nobody crawls ends; inf without decay."""
        return self.utility_after(np.full(len(self), np.inf))

    def utility_after(self, periods: Floats) -> Floats:
        """(n,), the expected utility so many periods after a crawl."""
        return whittle.utility_after(
            periods, self.arrival_rate, self.mean_utility, self.decay, period=self.period
        )

    def index(self, periods: Floats) -> Floats:
        """(n,), the Whittle index so many periods after a crawl."""
        return whittle.index(
            periods,
            self.arrival_rate,
            self.mean_utility,
            self.decay,
            cost=self.cost,
            period=self.period,
        )

    def index_at(self, state: Floats) -> Floats:
        """(n,), the Whittle index at any state."""
        return whittle.index_at(
            state,
            self.arrival_rate,
            self.mean_utility,
            self.decay,
            cost=self.cost,
            period=self.period,
        )

    def replicated(self, times: int) -> EphemeralSources:
        """Each source so many times, the copies of the table one after the other."""
        return EphemeralSources(
            np.tile(self.arrival_rate, times),
            np.tile(self.mean_utility, times),
            np.tile(self.decay, times),
            np.tile(self.cost, times),
            self.period,
        )
