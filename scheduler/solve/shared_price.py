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
from math import log
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
#: How near the sum of the shares comes to the budget before they are scaled to it.
_NEAR: Final = 1e-10
_LEAST: Final = 1e-300


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
            place = float(np.clip((np.log2(price) - _POWERS[0]) * 2, 0, len(PRICES) - 1))
        left = min(int(place), len(PRICES) - 2)
        return float(_between(place - left, self.rates[[left]], self.rates[[left + 1]])[0])


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
    left = min(max(int((total > per_day).sum()), 1), len(PRICES) - 1) - 1
    some, fewer = rates[:, left], rates[:, left + 1]
    # The logarithm of the sum is nearly a straight line: a chord meets the budget in a few steps
    # (regula falsi, by the Illinois rule: an end that stays counts half).
    low, high, part, side = 0.0, 1.0, 1.0, 0.0
    above, below = log(total[left] / per_day), log(max(total[left + 1] / per_day, _LEAST))
    while below < 0 and high - low > _NEAR:
        part = low + (high - low) * above / (above - below)
        off = log(max(float(_between(part, some, fewer).sum()) / per_day, _LEAST))
        if abs(off) < _NEAR:
            break
        if off > 0:
            low, above, below = part, off, below / (1 + (side > 0))
        else:
            high, below, above = part, off, above / (1 + (side < 0))
        side = off
    share = _between(part, some, fewer)
    return float(2.0 ** (_POWERS[left] + part / 2)), np.asarray(per_day * share / share.sum())


def _between(part: float, some: Floats, fewer: Floats) -> Floats:
    """Return (N,), the rates at a part of the way from one price to the next."""
    with np.errstate(divide="ignore", invalid="ignore"):
        between = some * np.exp(part * np.log(fewer / some))
    # From something to nothing there is no power: the curve falls evenly.
    return np.where(fewer > 0, between, (1 - part) * some)
