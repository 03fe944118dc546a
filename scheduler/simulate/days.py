"""The days of a simulation: cut into parts, and the moments at which a crawl is due."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil
from typing import TypeAlias

import numpy as np

#: Is told the day that a run has reached.
Progress: TypeAlias = Callable[[float], None]


def silent(_day: float) -> None:
    """Tell nobody."""


def split(begin: float, end: float, length: float) -> Iterator[tuple[float, float]]:
    """The time from ``begin`` to ``end`` in parts of this length; the last may be shorter.

    >>> list(split(0.0, 2.5, 1.0))
    [(0.0, 1.0), (1.0, 2.0), (2.0, 2.5)]
    """
    # A last part that is there by rounding only belongs to the one before it.
    parts = ceil((end - begin) / length - 1e-6)
    edges = [begin + part * length for part in range(parts)]
    yield from zip(edges, [*edges[1:], end], strict=True)


def ticks(budget: float, begin: float, end: float) -> list[float]:
    """The moments in (begin, end] at which a crawl is due: in the middle of each 1/budget days.

    >>> ticks(2.0, 0.0, 1.0)
    [0.25, 0.75]
    """
    first, after = np.floor(np.array([begin, end]) * budget + 0.5)
    moments: list[float] = ((np.arange(first, after) + 0.5) / budget).tolist()
    return moments
