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
from functools import cache
from math import log
from typing import Final

import numpy as np

from freshet.scheduler.arrays import Floats, budget, non_negative
from freshet.scheduler.solve.budget import Hosts
from freshet.scheduler.solve.demand import IntervalDemand, changes_at
from freshet.scheduler.sources import Rows

#: λ of a curve, in powers of 2 from −40 to 40.
_POWERS: Final = np.arange(-80, 81) / 2
PRICES: Final[Floats] = 2.0**_POWERS
#: Rows that are read at most: of a curve of a million pages every 16th.
_ROWS: Final = 1 << 16
#: Hosts whose capacities are kept to.
_HOSTS: Final = 32
_FAR: Final = 64
#: Powers of 2 of Δ/μ, and bins in each.
_WIDEST: Final = 60
_BINS: Final = 16
#: How near the sum of the shares comes to the budget before they are scaled to it.
_NEAR: Final = 1e-10
_LEAST: Final = 1e-300


@dataclass(frozen=True, slots=True)
class DemandCurve:
    """Requests a day that a shard would make at each of :data:`PRICES`; (161,), falling."""

    rates: Floats

    @classmethod
    def of(
        cls, demand: IntervalDemand, hosts: Hosts | None = None, near: float = 0.0
    ) -> DemandCurve:
        """Return the curve of these sources, of many those of every so manieth.

        The rate of a source is Δ/x(λΔ/μ), so that sums of Δ by log₂ Δ/μ tell the whole curve. A
        host that its pages would load beyond its capacity gets that; so it is for the 32 hosts
        where it happens at the highest prices, if not below a 64th of that which is ``near``.
        """
        step = max(-(-len(demand) // _ROWS), 1)
        mu, delta = demand.importance[::step], demand.change_rate[::step]
        there = (mu > 0) & (delta > 0)
        mu, delta = mu[there], delta[there]
        place = (np.clip(np.log2(delta / mu), -_WIDEST, _WIDEST) + _WIDEST) * _BINS
        left: Rows = place.astype(np.intp)
        part: Floats = place - left
        total = np.zeros(len(PRICES))
        if hosts is not None:
            host = hosts.code[::step][there]
            worth = np.bincount(host, np.sqrt(mu * delta), minlength=len(hosts.capacity))
            # √μΔ/2λ is above the rate of a source: below this λ a host may be at its capacity.
            full = np.square(step * worth / hosts.capacity) / 2
            for one in np.argsort(-full)[:_HOSTS]:
                if full[one] <= max(near / _FAR, PRICES[0]):
                    break
                its = host == one
                rates = step * _summed(left[its], part[its], delta[its])
                total += np.minimum(rates, hosts.capacity[one])
                left, part, delta, host = left[~its], part[~its], delta[~its], host[~its]
        total += step * _summed(left, part, delta)
        most = np.inf if hosts is None else hosts.capacity.sum()
        return cls(np.minimum.accumulate(np.minimum(total, most)))

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


@cache
def _shapes() -> Floats:
    """Return 1/x(c) at each c = 2^(power of a price + power of Δ/μ), in bins."""
    powers = np.arange((_POWERS[0] - _WIDEST) * _BINS, (_POWERS[-1] + _WIDEST) * _BINS + 2)
    return np.asarray(1 / changes_at(2.0 ** (powers / _BINS)))


def _summed(left: Rows, part: Floats, delta: Floats) -> Floats:
    """Return the sum of Δ/x at each price, (161,), of sources in a bin and part of the next."""
    size = 2 * _WIDEST * _BINS + 2
    weight = np.bincount(left, delta * (1 - part), minlength=size)
    weight += np.bincount(left + 1, delta * part, minlength=size)
    bins = weight.nonzero()[0]
    price = np.arange(len(PRICES)) * (_BINS // 2)
    return np.asarray(_shapes()[price[:, None] + bins] @ weight[bins])


def _between(part: float, some: Floats, fewer: Floats) -> Floats:
    """Return (N,), the rates at a part of the way from one price to the next."""
    with np.errstate(divide="ignore", invalid="ignore"):
        between = some * np.exp(part * np.log(fewer / some))
    # From something to nothing there is no power: the curve falls evenly.
    return np.where(fewer > 0, between, (1 - part) * some)
