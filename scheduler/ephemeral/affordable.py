"""Whom to crawl in a period: the largest indices that a budget pays for, Σ C_i v_i ≤ M.

In decreasing order of the index, equal ones by row; a source that the rest of the budget does not
pay for is passed over. Where all cost the same, these are the ⌊M/C⌋ largest. Not all are sorted:
O(n) and the sorting of those that come into question.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arguments import Floats

Rows: TypeAlias = NDArray[np.intp]

#: Rounding of a sum of costs is no overspending, as a share of the budget.
_ROUNDING = 1e-12
#: Of how many rows one is sampled, and how small a sample suggests nothing.
_STRIDE = 64
_SAMPLE = 64
#: So many rows are sorted in less time than they are divided.
_SORTED = 2_048


def affordable(index: Floats, cost: Floats, budget: float) -> Rows:
    """The rows to crawl, in increasing order.

    ``index`` (n,) is per unit of ``cost`` (n,), and the budget M of the same unit, at least 0.

    >>> affordable(np.array([1.0, 4.0, 3.0, 2.0]), np.array([1.0, 2.0, 2.0, 1.0]), 3).tolist()
    [1, 3]
    """
    limit = budget * (1 + _ROUNDING)
    if not len(cost) or limit < cost.min():
        return np.empty(0, dtype=np.intp)
    if cost[0] == cost.min() == cost.max():
        return _in_order(largest(index, int(limit / cost[0])), len(index))
    return _in_order(_of_unequal_cost(index, cost, limit), len(index))


def _in_order(rows: Rows, n: int) -> Rows:
    if len(rows) * _STRIDE < n:
        return np.sort(rows)
    chosen = np.zeros(n, np.bool_)
    chosen[rows] = True
    return np.flatnonzero(chosen)


def largest(index: Floats, count: int) -> Rows:
    """The rows of the ``count`` largest, in no order; of equal ones the first.

    >>> sorted(largest(np.array([5.0, 7.0, 5.0, 5.0]), 2).tolist())
    [0, 1]
    """
    if count >= len(index):
        return np.arange(len(index))
    if count < 1:
        return np.empty(0, dtype=np.intp)
    rows = _likely(index, count)
    if rows is not None:
        return rows[largest(index[rows], count)]
    least = np.partition(index, len(index) - count)[len(index) - count]
    above = np.flatnonzero(index > least)
    equal = np.flatnonzero(index == least)
    return np.concatenate([above, equal[: count - len(above)]])


def _likely(index: Floats, count: int) -> Rows | None:
    """All rows above a level that a sample suggests, if those are few and enough."""
    sample = index[::_STRIDE]
    expected = count / _STRIDE
    rank = len(sample) - int(expected + 4 * expected**0.5 + 8)
    if len(sample) < _SAMPLE or rank < len(sample) // 4:
        return None
    rows = np.flatnonzero(index >= np.partition(sample, rank)[rank])
    return rows if count <= len(rows) < len(index) else None


def _of_unequal_cost(index: Floats, cost: Floats, limit: float) -> Rows:
    # A sample suggests which are paid for whatever the order, and where the budget ends.
    high, low = _levels(index, cost, limit)
    taken, left = [], limit
    for among in (index > high, (index <= high) & (index > low), index <= low):
        rows = np.flatnonzero(among & (cost <= left))
        paid, left = _in_turn(rows, index[rows], cost[rows], left)
        taken.append(paid)
    return np.concatenate(taken)


def _levels(index: Floats, cost: Floats, limit: float) -> tuple[float, float]:
    """Indices somewhat above and below the one at which the budget is spent, likely."""
    order = np.argsort(-index[::_STRIDE])
    spent = np.cumsum(cost[::_STRIDE][order]) * _STRIDE
    expected = int(np.searchsorted(spent, limit))
    margin = int(4 * expected**0.5 + 8)
    first, last = expected - margin, expected + margin
    sample = index[::_STRIDE][order]
    return (
        float(sample[first]) if first >= 0 else np.inf,
        float(sample[last]) if last < len(sample) else -np.inf,
    )


def _in_turn(rows: Rows, index: Floats, cost: Floats, left: float) -> tuple[Rows, float]:
    """Those of ``rows`` that are paid for, largest index first, and what is left over.

    What is paid for as a whole need not be sorted: else the half with the larger indices comes
    first, then the other one. ``index`` and ``cost`` are those of the rows.
    """
    spent = float(cost.sum())
    if spent <= left:
        return rows, left - spent
    middle = np.partition(index, len(rows) // 2)[len(rows) // 2]
    is_first = index > middle
    if len(rows) <= _SORTED or not is_first.any():
        return _one_by_one(rows, index, cost, left)
    first, left = _in_turn(rows[is_first], index[is_first], cost[is_first], left)
    second = ~is_first & (cost <= left)
    more, left = _in_turn(rows[second], index[second], cost[second], left)
    return np.concatenate([first, more]), left


def _one_by_one(rows: Rows, index: Floats, cost: Floats, left: float) -> tuple[Rows, float]:
    order = np.lexsort((rows, -index))
    rows, cost = rows[order], cost[order]
    taken: list[Rows] = []
    while True:
        paid = cost <= left
        rows, cost = rows[paid], cost[paid]
        if not rows.size:
            return np.concatenate([*taken, rows]), left
        spent = np.cumsum(cost)
        # What fits alone fits as the first, though its sum be rounded.
        count = max(1, int(np.searchsorted(spent, left, side="right")))
        taken.append(rows[:count])
        left -= float(spent[count - 1])
        rows, cost = rows[count:], cost[count:]
