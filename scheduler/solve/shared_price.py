"""One budget for several shards: each reports how many requests it would make at some prices.

The optimum of a crawl under a budget is one price λ: every page is visited at the rate at which a
further visit saves λ, and these rates sum to the budget (:mod:`scheduler.policies.lambda_crawl`).
So shards only need to agree on λ. Shard s reports its *demand curve* S_s(λ) at fixed prices; the
price is the solution of

    Σ_s S_s(λ) = R

and its share of the budget is S_s(λ). Between two prices S is interpolated as a power of λ, which
it nearly is: rates range from λ^{−1} to λ^{−1/2}, so that in steps of √2 the error is at most 0.1
%.

If the shards demand less than R at any price, the rest is divided among them in proportion, so that
a shard with an unknown demand can use it.
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

#: The prices λ of a curve: powers of 2 from −40 to 40, in steps of a half.
_POWERS: Final = np.arange(-80, 81) / 2
PRICES: Final[Floats] = 2.0**_POWERS
#: Maximum number of rows that are read: of a curve of a million pages every 16th.
_ROWS: Final = 1 << 16
#: Number of hosts with enforced capacities.
_HOSTS: Final = 32
_FAR: Final = 64
#: Powers of 2 of Δ/μ, and bins in each.
_WIDEST: Final = 60
_BINS: Final = 16
#: Tolerance of the sum of the shares before they are scaled to the budget.
_NEAR: Final = 1e-10
_LEAST: Final = 1e-300


@dataclass(frozen=True, slots=True)
class DemandCurve:
    """Requests a day that a shard would make at each of :data:`PRICES`; (161,), descending."""

    rates: Floats

    @classmethod
    def of(
        cls, demand: IntervalDemand, hosts: Hosts | None = None, near: float = 0.0
    ) -> DemandCurve:
        """Return the curve of these sources, from a regular sample if there are many.

        The rate of a source is Δ/x(λΔ/μ), so that sums of Δ by log₂ Δ/μ determine the whole curve.
        The demand of a host is limited to its capacity, for the 32 hosts that reach it at the
        highest prices, down to a 64th of the price ``near``.
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
            value = np.bincount(host, np.sqrt(mu * delta), minlength=len(hosts.capacity))
            # √μΔ/2λ is above the rate of a source: below this λ a host may be at its capacity.
            full = np.square(step * value / hosts.capacity) / 2
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
        """Return the curve of a message; raises ValueError if it is not one."""
        if len(message) != 4 * len(PRICES):
            raise ValueError(f"a demand curve has {4 * len(PRICES)} bytes, not {len(message)}")
        rates = np.frombuffer(message, "<f4").astype(np.float64)
        return cls(np.minimum.accumulate(non_negative("rates", rates)))

    def message(self) -> bytes:
        """Return the curve in 644 bytes."""
        return self.rates.astype("<f4").tobytes()

    def at(self, price: float) -> float:
        """Return the requests a day at a price; 0 and inf are the ends of the curve."""
        with np.errstate(divide="ignore"):
            place = float(np.clip((np.log2(price) - _POWERS[0]) * 2, 0, len(PRICES) - 1))
        left = min(int(place), len(PRICES) - 2)
        return float(_between(place - left, self.rates[[left]], self.rates[[left + 1]])[0])


def divide(curves: Sequence[DemandCurve], per_day: float) -> tuple[float, Floats]:
    """Return λ and each shard's share of the budget, (N,), which sum to ``per_day``.

    λ is 0 if all shards together demand less than the budget.

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
    # The logarithm of the sum is nearly linear: a chord meets the budget in a few steps (regula
    # falsi, by the Illinois rule: an end that stays counts half).
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
    """Return the sum of Δ/x at each price, (161,), over sources divided between two bins."""
    size = 2 * _WIDEST * _BINS + 2
    weight = np.bincount(left, delta * (1 - part), minlength=size)
    weight += np.bincount(left + 1, delta * part, minlength=size)
    bins = weight.nonzero()[0]
    price = np.arange(len(PRICES)) * (_BINS // 2)
    return np.asarray(_shapes()[price[:, None] + bins] @ weight[bins])


def _between(part: float, some: Floats, fewer: Floats) -> Floats:
    """Return (N,), the rates at a fraction of the interval from one price to the next."""
    with np.errstate(divide="ignore", invalid="ignore"):
        between = some * np.exp(part * np.log(fewer / some))
    # Towards 0 there is no power law: the curve decreases linearly.
    return np.where(fewer > 0, between, (1 - part) * some)
