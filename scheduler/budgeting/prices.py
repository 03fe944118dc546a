"""The search for a price: what a crawl must save, so that exactly a budget is spent.

**Why prices.** A convex cost Σ_w J_w(ρ_w) is to be minimised under one budget, Σ_w ρ_w = R. In
the minimum one more crawl per day saves the same with every source that is crawled: that saving
is the Lagrange multiplier λ, the price of a crawl. At a given price each source knows its own
best rate ρ_w(λ), without a look at the others, and all of them together spend S(λ) = Σ_w ρ_w(λ).
S falls while λ rises; the optimum of n variables is the solution of one equation in one unknown,

    S(λ) = R.

Hosts whose capacities bind are budgets of their own, each with a price of its own. Therefore
all functions here take columns, with one row for each budget, and search all prices at once.

**Method.** Newton's method in coordinates in which S is nearly a straight line (the *step*),
inside a bracket that every evaluation makes smaller: where a step leaves the bracket, and in
every eighth round, the bracket is halved instead, so that no shape of S can hold up the search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from freshet.scheduler.arguments import Bools, Floats

#: How near to its budget a spending must be, relative to it. Sums of millions of rates are
#: right to 1e-14, so it is always reached where rates do not cancel.
TOLERANCE = 1e-13
#: Prices so near to each other have a few floats between them at most.
NEIGHBOUR = 1 + 2.0**-49

_ROUNDS = 1000
_HALVED_EVERY = 8
#: By how much a price is raised or lowered while only one end of its bracket is known.
_STRIDE = 16.0
#: By how much a step may change a price at most: where nearly all rates are at their bounds, a
#: tangent that is nearly flat points beyond the range of numbers.
_LEAP = 1e6


@dataclass(frozen=True, slots=True)
class Spending:
    """What is spent at some prices, one row for each budget.

    Attributes:
        price: λ (H,), cost saved per crawl, above 0.
        total: S(λ) (H,), crawls per day.
        slope: −dS/d ln λ (H,), crawls per day, at least 0.
    """

    price: Floats
    total: Floats
    slope: Floats


#: The spending now, the one before (None in the first round) and the budgets → the next prices.
#: Whatever is no number inside the bracket is not taken.
Step: TypeAlias = Callable[[Spending, Spending | None, Floats], Floats]


def clearing_prices(
    spend: Callable[[Floats], Spending], budget: Floats, start: Floats, step: Step
) -> Spending:
    """The spending at the prices that make it ``budget``, to :data:`TOLERANCE`.

    Args:
        spend: evaluates S and its slope; its last call is at the prices that are returned.
        budget: R (H,), above 0; within what can be spent at some price above 0.
        start: first prices (H,), above 0.
        step: :func:`smooth_step` or :func:`root_step`.

    Rates that are the difference of close numbers may miss the tolerance at every floating-point
    price: it is then the highest one found at which no less than the budget is spent, and at
    :data:`NEIGHBOUR` times this price less is.

    Raises:
        ValueError: if a price leaves the range of floating-point numbers, or the spending at it
            does: importances or change rates whose products are too large or too small.

    >>> halved = lambda price: Spending(price, 8 / price, 8 / price)  # S = 8/λ
    >>> clearing_prices(halved, np.array([2.0]), np.array([1.0]), smooth_step).price.tolist()
    [4.0]
    """
    low, high = np.zeros_like(budget), np.full_like(budget, np.inf)
    if not _inside(start, low, high).all():
        raise out_of_range()
    before, now = None, spend(start)
    for count in range(1, _ROUNDS):
        gap = _gap(now, budget)
        settled = np.abs(gap) <= TOLERANCE * budget
        if settled.all():
            return now
        low = np.where(gap > 0, np.maximum(low, now.price), low)
        high = np.where(gap < 0, np.minimum(high, now.price), high)
        halved = _between(low, high, now.price)
        following = halved
        if count % _HALVED_EVERY:
            with np.errstate(all="ignore"):
                wanted = _leap(step(now, before, budget), now.price)
            following = np.where(_inside(wanted, low, high), wanted, halved)
        stays = settled | ~_inside(following, low, high)
        if stays.all():
            if (~settled & (low == 0)).any():
                raise out_of_range()
            return spend(np.where(settled, now.price, low))
        before, now = now, spend(np.where(stays, now.price, following))
    raise out_of_range()


def smooth_step(now: Spending, before: Spending | None, budget: Floats) -> Floats:
    """For spendings that are nearly powers of the price: ln λ as a function of y = ln S.

    In the first round Newton's line, afterwards the cubic that has the values and slopes of
    both rounds; its error is of the order of the square of both errors' product, so that three
    rounds do what takes Newton's method four.
    """
    y = np.log(budget / now.total)
    tangent = -now.total / now.slope
    newton: Floats = now.price * np.exp(tangent * y)
    if before is None:
        return newton
    # x = tangent·y + y²(a + by) through (0, 0) and (y0, x0), with both tangents.
    x0, y0 = np.log(before.price / now.price), np.log(before.total / now.total)
    value = (x0 - tangent * y0) / y0**2
    bend = (-before.total / before.slope - tangent) / y0
    curve = 3 * value - bend + (bend - 2 * value) * y / y0
    cubic = now.price * np.exp(tangent * y + y**2 * curve)
    return np.where(np.abs(y) < np.abs(y0), cubic, newton)


def root_step(now: Spending, _before: Spending | None, budget: Floats) -> Floats:
    """For spendings that are linear in λ^{−1/2} but for kinks: Newton's line in λ^{−1/2}.

    Where S is convex in λ^{−1/2}, all steps but the first fall short of no solution and go
    down: the last kink is found in finitely many.
    """
    following: Floats = now.price / (1 + (budget - now.total) / (2 * now.slope)) ** 2
    return following


def out_of_range() -> ValueError:
    """What is raised where products or quotients leave the range of floating-point numbers."""
    return ValueError(
        "importance, change_rate: some are too large or too small to be computed with, beside "
        "each other, the budget and the capacities; accepted are surely 1e-12 to 1e12"
    )


def _gap(now: Spending, budget: Floats) -> Floats:
    gap = now.total - budget
    if not np.isfinite(gap).all():
        raise out_of_range()
    return gap


def _leap(wanted: Floats, price: Floats) -> Floats:
    leap: Floats = np.clip(wanted, price / _LEAP, price * _LEAP)
    return leap


def _inside(price: Floats, low: Floats, high: Floats) -> Bools:
    inside: Bools = (low < price) & (price < high)
    return inside


def _between(low: Floats, high: Floats, price: Floats) -> Floats:
    """The geometric middle of the bracket; a stride from ``price`` where an end is missing."""
    with np.errstate(invalid="ignore"):
        middle = np.sqrt(low) * np.sqrt(high)
    one_sided = np.where(low > 0, price * _STRIDE, price / _STRIDE)
    return np.where((low > 0) & (high < np.inf), middle, one_sided)
