"""A little noise for each cycle of each source, so that no source keeps step with the clock.

Sources whose crawls fall on the same hour every day see a page that changes daily always in the
same state. The noise is not drawn but computed from the seed, the source and the day of its last
crawl: nothing is stored, it stays the same until the next crawl, and a run can be repeated.

Reference: the mixing function is SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom
Number Generators", OOPSLA 2014, fig. 14).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from freshet.scheduler.arrays import Floats
from freshet.scheduler.sources import Rows

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E37_79B9_7F4A_7C15


def factor(jitter: float, seed: int, row: int, last_crawl: float) -> float:
    """The factor of one source's index, uniform in 1 ± ``jitter``; as :func:`factors` has it."""
    bits = int(np.float64(last_crawl).view(np.uint64))
    return float(_factor(jitter, _mixed(_mixed(row) ^ bits ^ _start(seed))))


def factors(jitter: float, seed: int, rows: Rows, last_crawl: Floats) -> Floats:
    """The factors of many sources' indices, each uniform in 1 ± ``jitter``; (m,).

    >>> last_crawl = np.zeros(2)
    >>> factors(0.25, 7, np.array([0, 1]), last_crawl).round(3).tolist()
    [0.907, 0.853]
    """
    bits = np.ascontiguousarray(last_crawl).view(np.uint64)
    word = _mixed(_mixed(rows.astype(np.uint64)) ^ bits ^ np.uint64(_start(seed)))
    return np.asarray(_factor(jitter, word))


def _start(seed: int) -> int:
    return int(_mixed(seed & _MASK))


def _factor(jitter: float, word: Any) -> Any:
    # The upper 53 bits make a number from 0 to 1.
    return 1 + jitter * (2 * ((word >> 11) * 2.0**-53) - 1)


def _mixed(word: Any) -> Any:
    """One int, or an array of uint64: arrays wrap around by themselves, an int by the mask."""
    word = (word + _GOLDEN) & _MASK
    word = ((word ^ (word >> 30)) * 0xBF58_476D_1CE4_E5B9) & _MASK
    word = ((word ^ (word >> 27)) * 0x94D0_49BB_1331_11EB) & _MASK
    return word ^ (word >> 31)
