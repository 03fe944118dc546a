"""Ephemeral sources as a table of n rows, and results of Theorem 1's model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Floats
from freshet.scheduler.policies import whittle
from freshet.scheduler.special_functions import beta_hazard


@dataclass(frozen=True, slots=True)
class EphemeralSources:
    """n sources; construct with :meth:`of`, which checks its arguments.

    Attributes:
        arrival_rate: (n,), Λ, items per unit of time.
        mean_utility: (n,), ξ̄, the mean utility of an item when it appears.
        decay: (n,), μ, the rate at which its utility decays, per unit of time.
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
        """Return the checked table; one number applies to all rows.

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


# -- utility distributions --
#
# Distributions of ξ, the random utility of an item when it appears (section 7); the papers do not
# name one. With ``together`` all items of a period share one draw of ξ: attention to a source
# differs from period to period, not from item to item.

Family: TypeAlias = Literal["constant", "exponential", "lognormal", "pareto"]
FAMILIES: tuple[Family, ...] = ("constant", "exponential", "lognormal", "pareto")


@dataclass(frozen=True, slots=True)
class UtilityLaw:
    """The distribution of ξ/ξ̄, with mean 1.

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


# -- arrivals --
#
# The rate of new items at one source: the posterior of Λ, from the items that crawls found.
#
# Items are a Poisson process of rate Λ, and Λ is Gamma distributed with the shape a and the rate b:
# a items in b days. A crawl τ days after the last one that finds N new items makes it
#
#     a ← a + N,   b ← b + τ
#
# If all that the page shows is new, older items may have dropped off: then only N ≥ c is known. The
# posterior is then not a Gamma distribution, but its moments are exact, with q = τ/(b + τ) and I_q
# the regularised incomplete beta function,
#
#     E[Λ | N ≥ c]  = (a/b)         I_q(c, a + 1) / I_q(c, a)
#     E[Λ² | N ≥ c] = (a(a + 1)/b²) I_q(c, a + 2) / I_q(c, a)
#
# since N is negative binomial and Λ times the density of Gamma(a, b) is a/b times the density of
# Gamma(a + 1, b). With d = q^c (1 − q)^a/(B(c, a) I_q(c, a)) and I_q(c, a + 1) of DLMF 8.17.21,
#
#     b E[Λ | N ≥ c] = a + d,   b² Var[Λ | N ≥ c] = a + d (1 + (1 − q)(a + c) − a − d)
#
# The Gamma distribution with these moments replaces it. So a page that showed no item (c = 0) adds
# no evidence, and a full one that was expected to be full hardly any.
#
# Evidence that is s days old has the weight 2^{−s/h}, also within a stretch: a stretch without a
# crawl with the same items per day as its two halves has the weight of the halves.
#
#     c, N  count                  new items that the crawl found     at least 0
#     τ     elapsed                days since the last crawl          above 0
#     a     PRIOR_ITEMS + items    shape                              items
#     b     PRIOR_DAYS + days      rate                               days
#     h     half_life              of the evidence                    days
#     Λ     result                 items per day                      one number
#
# Method: two sums per source, O(1) a crawl: a continued fraction if the page was full, else
# arithmetic. Numerical form: from a million items on, the variance is a difference of close
# numbers; the excess N − c is then nearly geometric with the ratio r = q(c + a)/(c + 1), and its
# moments are used. The matched b is clamped to the range from b to b + τ, where it lies except for
# rounding.
#
# Edge cases: without evidence Λ is the prior's 10 items per day. A crawl 0 days after the last is
# refused, as are counts below 0 and numbers that are not finite.
#
# Reference: none in the papers of Avrachenkov and Borkar, which take Λ as known or avoid it. The
# conjugate Gamma distribution is as old as Bayes; matching moments is assumed-density filtering
# (Minka 2001).

#: The prior: half an item in a twentieth of a day. That is ten a day, as for a busy feed, with less
#: weight than the first item: rates differ by orders of magnitude.
PRIOR_ITEMS: Final = 0.5
PRIOR_DAYS: Final = 0.05
#: The age at which evidence has half the weight. A month: newsrooms change slowly, and the rate of
#: a source with one item a day is then still known to within a sixth.
HALF_LIFE_DAYS: Final = 30.0
#: From this number of items on, N − c is taken as geometric.
_MANY: Final = 1e6
#: Below this many half-lives, decay within a stretch is ignored.
_SHORT: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The posterior of one source's Λ beyond the prior: two numbers to store.

    Ninety-nine and a half items in 9.95 days make, with the prior, a hundred in ten.

    >>> known = Arrivals(items=99.5, days=9.95)
    >>> known.rate
    10.0

    Attributes:
        items: new items that were found, each with its decayed weight.
        days: the days in which they appeared, likewise.
    """

    items: float = 0.0
    days: float = 0.0

    def __post_init__(self) -> None:
        arrays.amount("items", self.items)
        arrays.amount("days", self.days)

    @property
    def rate(self) -> float:
        """Return E Λ, items per day."""
        return (PRIOR_ITEMS + self.items) / (PRIOR_DAYS + self.days)

    def after(
        self,
        count: float,
        elapsed: float,
        *,
        at_least: bool = False,
        half_life: float = HALF_LIFE_DAYS,
    ) -> Arrivals:
        """Return the posterior after a crawl that found ``count`` items in ``elapsed`` days.

        ``at_least``: all items on the page were new, so that there may have been more.

        Raises:
            ValueError: if the count is negative, the elapsed time or the half-life not above 0,
                or one of them not finite.
        """
        arrays.amount("count", count)
        arrays.budget("elapsed", elapsed)
        decayed = self.decayed(elapsed, half_life=half_life)
        items, days = _at_least(decayed, count, elapsed) if at_least else (count, elapsed)
        weight = _weight(elapsed / half_life)
        return Arrivals(decayed.items + weight * items, decayed.days + weight * days)

    def decayed(self, elapsed: float, *, half_life: float = HALF_LIFE_DAYS) -> Arrivals:
        """Return the posterior without a crawl for 0 or more days; raises as :meth:`after`."""
        arrays.amount("elapsed", elapsed)
        kept = 0.5 ** (elapsed / arrays.budget("half_life", half_life))
        return Arrivals(self.items * kept, self.days * kept)


def _weight(halvings: float) -> float:
    """Return the weight of an interval of ``halvings`` half-lives at its end, over its length."""
    if halvings < _SHORT:
        return 1.0
    y = halvings * math.log(2)
    return -math.expm1(-y) / y


def _at_least(known: Arrivals, count: float, elapsed: float) -> tuple[float, float]:
    """Return the growth of a and b if ``count`` items or more appeared."""
    if count == 0:
        return 0.0, 0.0
    a, b = PRIOR_ITEMS + known.items, PRIOR_DAYS + known.days
    mean, variance = _moments(a, b, count, elapsed)
    exact = b + elapsed
    rate = min(max(mean / variance, b), exact) if variance > 0 else exact
    return max(0.0, mean * rate - a), rate - b


def _moments(a: float, b: float, count: float, elapsed: float) -> tuple[float, float]:
    """Return mean and variance of Λ, Gamma distributed with a and b, given N ≥ ``count``."""
    total = b + elapsed
    q, missed = elapsed / total, b / total
    ratio = q * ((count + a) / (count + 1))
    if count < _MANY or ratio >= 1:
        d = beta_hazard(count, a, q, missed)
        return (a + d) / b, (a + d * (1 + missed * (a + count) - a - d)) / (b * b)
    excess = ratio / (1 - ratio)
    items = a + count + excess
    return items / total, (items + excess * (1 + excess)) / total / total
