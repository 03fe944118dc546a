"""Learning whom to crawl: the Whittle index of estimated parameters, and some optimism.

The index needs Λ, ξ̄ and μ of each source. What crawls find and what clicks tell gives posteriors of
them (:mod:`scheduler.ephemeral.sources`, :mod:`scripts.reproductions.whittle_fading`). Plugged in
are

    Λ̃ = E Λ + sσ(Λ),    ξ̃ = E ξ̄ + sσ(ξ̄),    μ̃ = μ̂ e^{−sσ(log μ)},    s = z √(1 + ln k)

k periods after a crawl: the ends at which u* = Λξ̄/μ, hence what a long wait gathers, is largest,
optimism in the face of uncertainty. Else a source whose items seem to fade too soon is left alone,
and never known better; as s grows without bound, however slowly, none is left alone for good. The
deviations σ fall as one over the square root of the evidence, and the exploration with them.
Whom nobody has crawled comes first, once: an order of magnitude cannot be guessed.

A learner sees only what was crawled, and no utilities. Without clicks ξ̄ and μ stay what was
configured, and the ranks are as good as that is; what no clicks can teach is not explored.

    z          optimism      deviations one period after a crawl  one number
    k          since_crawl   periods                              (n,)
    μ̂ at first half_life     ln 2/μ, in the time of T             (n,) or one number
    ξ̄ at first worth         configured                           (n,) or one number

Method: O(1) a crawl for Λ. For ξ̄ and μ clicks are kept until their items are an eighth of all that
came before, and learnt at once: some hundred times for a million. O(n) a period for the index.

Edge cases: a source without items comes to a Λ, and an index, near 0. One whose items do not fade
cannot be configured: a half-life is finite. What a source is known for is forgotten by its crawls,
not while it is left alone.

Reference: ours, in the place of the learner of Avrachenkov and Borkar 2019
(:mod:`scripts.reproductions.whittle_lspe`), which learns thresholds without a model.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Floats
from freshet.scheduler.ephemeral.policies import PolicyInput
from freshet.scheduler.ephemeral.sources import HALF_LIFE_DAYS, PRIOR_DAYS, PRIOR_ITEMS, Arrivals
from freshet.scheduler.policies import whittle
from scripts.reproductions.whittle_fading import Fading, Worth, exposure
from scripts.reproductions.whittle_items import Watched

#: Standard deviations of optimism, one period after a crawl.
OPTIMISM: Final = 1.0
#: Clicks and items are learnt when they are this share of those learnt before, or so many.
_SHARE: Final = 1 / 8
_MANY: Final = 20_000


class PlugIn:
    """The learner of n sources, told by :class:`~.simulated_items.Told`."""

    def __init__(
        self,
        cost: Floats,
        *,
        half_life: ArrayLike = 1.0,
        worth: ArrayLike = 1.0,
        period: float = 1.0,
        optimism: float = OPTIMISM,
        forgetting: float = HALF_LIFE_DAYS,
    ) -> None:
        """Begin with nothing but what is configured; ``cost`` is (n,).

        Raises:
            ValueError: if a cost or a half-life is not above 0, a worth is negative, or one of
                them not finite.
        """
        self._cost = arrays.positive("cost", arrays.finite("cost", cost))
        n = len(self._cost)
        half_lives = arrays.positive("half_life", _each("half_life", half_life, n))
        self._period = arrays.budget("period", period)
        self._optimism = arrays.amount("optimism", optimism)
        self._forgetting = arrays.budget("forgetting", forgetting)
        self._arrivals = [Arrivals()] * n
        self._fading = [Fading.of(float(each)) for each in half_lives]
        self._worth = [Worth.of(float(each)) for each in _each("worth", worth, n)]
        self._new: list[list[Watched]] = [[] for _ in range(n)]
        self._pending, self._learnt = [0] * n, [0] * n
        # Means of Λ and ξ̄ and the mode of log μ, and their deviations.
        self._middle, self._spread = np.empty((3, n)), np.zeros((3, n))
        for row in range(n):
            self._plug(row)

    @property
    def estimates(self) -> tuple[Floats, Floats, Floats]:
        """(n,) each: E Λ, E ξ̄ and μ̂, without optimism."""
        rates, worths, logs = self._middle
        return rates.copy(), worths.copy(), np.exp(logs)

    def __call__(self, seen: PolicyInput) -> Floats:
        """(n,), the index; infinite for whom nobody has crawled."""
        optimism = self._optimism * np.sqrt(1 + np.log(seen.since_crawl))
        rates, worths, logs = self._middle + optimism * self._spread
        index = whittle.index(
            seen.since_crawl, rates, worths, np.exp(logs), cost=self._cost, period=self._period
        )
        return np.where(seen.crawls == 0, np.inf, index)

    def found(self, row: int, ages: Floats, elapsed: float) -> None:
        """A crawl showed items, all that came in the ``elapsed`` time before it."""
        known = self._arrivals[row]
        self._arrivals[row] = known.after(len(ages), elapsed, half_life=self._forgetting)
        self._plug(row)

    def watched(self, row: int, seen: Watched) -> None:
        """Clicks were counted on the items of an earlier crawl."""
        self._new[row].append(seen)
        self._pending[row] += len(seen.since)
        if self._pending[row] >= min(_MANY, _SHARE * self._learnt[row]):
            self._learn(row)

    def _learn(self, row: int) -> None:
        new = self._new[row]
        ages = np.concatenate([each.ages for each in new])
        since = np.concatenate([each.since[each.item] for each in new])
        until = np.concatenate([each.until[each.item] for each in new])
        fading = self._fading[row].after(ages, since=since, until=until)
        lives = exposure(
            fading.decay,
            np.concatenate([each.since for each in new]),
            np.concatenate([each.until for each in new]),
        )
        self._fading[row] = fading
        self._worth[row] = self._worth[row].after(float(len(ages)), lives)
        self._learnt[row] += self._pending[row]
        self._pending[row] = 0
        new.clear()
        self._plug(row)

    def _plug(self, row: int) -> None:
        arrivals, worth, fading = self._arrivals[row], self._worth[row], self._fading[row]
        self._middle[:, row] = arrivals.rate, worth.mean, math.log(fading.decay)
        spread = math.sqrt(PRIOR_ITEMS + arrivals.items) / (PRIOR_DAYS + arrivals.days)
        self._spread[0, row] = spread
        # Without clicks nothing will ever be known of these but what was configured.
        if self._learnt[row]:
            self._spread[1:, row] = worth.deviation, -fading.deviation


def _each(name: str, values: ArrayLike, length: int) -> Floats:
    given = np.atleast_1d(np.asarray(values, dtype=np.float64))
    return arrays.non_negative(
        name, np.full(length, given[0]) if np.ndim(values) == 0 else given, length
    )
