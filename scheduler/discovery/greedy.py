"""GREEDY: the page that reveals most of what is left, again and again (section 3.5.2).

With a budget of k pages it finds at least 1 - 1/e of what any k pages could; for a share of the new
pages it needs at most a logarithmic factor more pages than the best cover.
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace
from math import ceil

import numpy as np

from freshet.scheduler.arguments import Ints
from freshet.scheduler.discovery.reveals import Reveals

#: Taken off before a share of pages is rounded up: .1 of 30 is 3, whatever the machine thinks.
_ROUNDING = 1e-9


def greedy(reveals: Reveals, *, budget: int | None = None, share: float = 1.0) -> Ints:
    """A cover of at most ``budget`` old pages that reveals ``share`` of what can be revealed.

    In the order in which they are chosen; of equal ones the first. Orphans count for nothing: they
    are not in the share. What a page adds only shrinks as others are chosen, so that a page is
    valued anew only when it stands first (Minoux 1978); the choice is exact.

    Raises:
        ValueError: the share is not between 0 and 1, or the budget below 0.
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share must be from 0 to 1, not {share}")
    if budget is not None and budget < 0:
        raise ValueError(f"budget must be at least 0, not {budget}")
    left = ceil(share * (reveals.new - reveals.orphans) - _ROUNDING)
    limit = reveals.old if budget is None else budget
    uncovered = np.ones(reveals.new, np.bool_)
    pages = reveals.first_pages.tolist()
    waiting = [(-size, page) for size, page in zip(reveals.sizes.tolist(), pages, strict=True)]
    heapify(waiting)
    chosen: list[int] = []
    while left > 0 and len(chosen) < limit and waiting:
        bound, page = waiting[0]
        members = reveals.of(page)
        gain = int(np.count_nonzero(uncovered[members]))
        if gain < -bound:
            if gain:
                heapreplace(waiting, (-gain, page))
            else:
                heappop(waiting)
            continue
        heappop(waiting)
        chosen.append(page)
        uncovered[members] = False
        left -= gain
    return np.array(chosen, np.int64)
