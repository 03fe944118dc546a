"""Columns of different lengths, one behind the other, and the search in them."""

from __future__ import annotations

import numpy as np

from freshet.scheduler.arguments import Floats, Ints
from freshet.scheduler.sources import Rows


def places(at: Floats, begin: Ints, end: Ints, value: Floats) -> Ints:
    """(m,), the first place in the ascending stretch ``at[begin:end]`` that is behind ``value``.

    That is ``end`` where none is. A binary search in all m stretches at once: as many rounds as
    the longest of them has binary digits.

    >>> at = np.array([1.0, 2.0, 2.0, 0.5])  # stretches [1, 2, 2] and [0.5]
    >>> places(at, np.array([0, 0, 3]), np.array([3, 3, 4]), np.array([0.0, 2.0, 0.25])).tolist()
    [0, 3, 3]
    """
    low, high = begin.astype(np.int64), end.astype(np.int64)
    while True:
        open_ = np.flatnonzero(low < high)
        if not len(open_):
            return low
        middle = (low[open_] + high[open_]) // 2
        behind = at[middle] > value[open_]
        high[open_[behind]] = middle[behind]
        low[open_[~behind]] = middle[~behind] + 1


def members(first: Ints, number: Ints) -> Ints:
    """The places of m stretches, ``number`` (m,) from each ``first`` (m,) on, one by one.

    >>> members(np.array([7, 0]), np.array([2, 3])).tolist()
    [7, 8, 0, 1, 2]
    """
    begin = offsets_of(number)
    return np.arange(int(begin[-1])) + np.repeat(first - begin[:-1], number)


def offsets_of(number: Ints | Rows) -> Ints:
    """(m + 1,), where each of m stretches begins, and where the last one ends.

    >>> offsets_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    offsets = np.zeros(len(number) + 1, np.int64)
    np.cumsum(number, out=offsets[1:])
    return offsets
