"""One budget for several shards: each tells how many requests it would make at some prices.

The optimum of a crawl under a budget is one price λ: every page is visited at the rate that is
worth λ, and these rates sum to the budget (:mod:`scheduler.policies.lambda_crawl`). So shards need
to agree on λ alone. Shard s reports its *demand curve* S_s(λ) at fixed prices; the price is where

    Σ_s S_s(λ) = R

and its share of the budget is S_s(λ). Between two prices S is taken as a power of λ, as it nearly
is: rates go from λ^{−1} to λ^{−1/2}, so that a step of √2 is off by 0.1 % at most.

Where the shards want less than R at any price, what is left goes to them in proportion, so that
nothing is kept from one that did not know of its demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from freshet.scheduler.arrays import Floats, budget, non_negative
from freshet.scheduler.solve.budget import Demand, Hosts

#: λ of a curve, in powers of 2 from −40 to 40.
_POWERS: Final = np.arange(-80, 81) / 2
PRICES: Final[Floats] = 2.0**_POWERS
#: Rows of a table of many more are sampled: a curve of a million pages is made in milliseconds.
_SAMPLED: Final = 1_024
_TOLD_OF_A_HOST: Final = 32


@dataclass(frozen=True, slots=True)
class DemandCurve:
    """Requests a day that a shard would make at each of :data:`PRICES`; (161,), falling."""

    rates: Floats

    @classmethod
    def of(cls, demand: Demand, hosts: Hosts | None = None, others: float = 0.0) -> DemandCurve:
        """Return the curve of these sources; ``others`` are requests a day at any price.

        A host that its pages would load beyond its capacity gets that. Of more than 1,024 sources
        every so manieth counts, in the order of what they are worth, and capacities where a host
        has 32 of these.
        """
        step = max(len(demand) // _SAMPLED, 1)
        order = np.argsort(demand.importance * demand.change_rate, kind="stable")[step // 2 :: step]
        code = np.zeros(len(order), np.intp) if hosts is None else hosts.code[order]
        capacity = np.array([np.inf]) if hosts is None else hosts.capacity
        scale = len(demand) / max(len(order), 1)
        if step > 1:
            few = np.bincount(code, minlength=len(capacity)) < _TOLD_OF_A_HOST
            capacity = np.where(few, np.inf, capacity)
        some, limits = demand.take(order), Hosts(code, capacity)
        rates, slopes = np.empty(len(some)), np.empty(len(some))
        found = np.full(len(PRICES), others)
        for place, price in enumerate(PRICES.tolist()):
            some.rates_at(price, rates, slopes)
            found[place] += np.minimum(scale * limits.sums(rates), capacity).sum()
        return cls(np.minimum.accumulate(found))

    @classmethod
    def read(cls, message: bytes) -> DemandCurve:
        """Return the curve of a message; raises ValueError if it is none."""
        if len(message) != 4 * len(PRICES):
            raise ValueError(f"a demand curve has {4 * len(PRICES)} bytes, not {len(message)}")
        rates = np.frombuffer(message, "<f4").astype(np.float64)
        return cls(np.minimum.accumulate(non_negative("rates", rates)))

    def message(self) -> bytes:
        """Return the curve in 644 bytes."""
        return self.rates.astype("<f4").tobytes()

    def at(self, price: float) -> float:
        """Return the requests a day at a price; 0 and inf stand for the ends of the curve."""
        with np.errstate(divide="ignore"):
            power, logs = np.log2(price), np.log2(self.rates)
        return float(_between(np.array(power), logs[None])[0])


def divide(curves: Sequence[DemandCurve], per_day: float) -> tuple[float, Floats]:
    """Return λ and each shard's share of the budget, (N,), which sum to ``per_day``.

    λ is 0 where all shards together want less than the budget.

    >>> one = DemandCurve(6 / PRICES)
    >>> price, share = divide([one, DemandCurve(3 / PRICES)], 3.0)
    >>> round(price, 9), share.round(9).tolist()
    (3.0, [2.0, 1.0])
    """
    per_day = budget("per_day", per_day)
    rates = np.array([curve.rates for curve in curves])
    total = rates.sum(axis=0)
    if total[0] <= per_day:
        share = rates[:, 0] if total[0] else np.ones(len(curves))
        return 0.0, np.asarray(per_day * share / share.sum())
    with np.errstate(divide="ignore"):
        logs = np.log2(rates)
    low, high = _POWERS[0], _POWERS[-1]
    while high - low > 1e-12 * max(abs(low), 1.0):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        wanted = _between(np.array(middle), logs).sum()
        low, high = (middle, high) if wanted > per_day else (low, middle)
    share = _between(np.array(low), logs)
    return float(2.0**low), np.asarray(per_day * share / share.sum())


def _between(power: Floats, logs: Floats) -> Floats:
    """Return (N,), the rates at 2^``power`` of curves whose logarithms are ``logs`` (N, K)."""
    place = np.clip((power - _POWERS[0]) * 2, 0, len(_POWERS) - 1)
    left = int(min(np.floor(place), len(_POWERS) - 2))
    part = place - left
    with np.errstate(invalid="ignore"):
        between = (1 - part) * logs[:, left] + part * logs[:, left + 1]
    # From something to nothing there is no power: the curve falls evenly.
    evenly = (1 - part) * np.exp2(logs[:, left]) + part * np.exp2(logs[:, left + 1])
    return np.asarray(np.where(np.isfinite(logs[:, left + 1]), np.exp2(between), evenly))
