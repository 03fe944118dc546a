"""Which pages come into the window: the worthiest, a few of each host."""

from __future__ import annotations

import numpy as np

from freshet.scheduler.arguments import Floats, Ints
from freshet.scheduler.compiling import compiled
from freshet.scheduler.sources import Rows


def worthiest(worth: Floats, host: Rows, free: Ints, room: int) -> Rows:
    """At most ``room`` rows of the largest ``worth`` (n,) above 0, the worthiest first.

    Of host h, a code in ``host`` (n,), come at most ``free[h]``, which is 0, 1 or 2. Equal ones go
    by the lowest row. One pass over all rows, and a sort of two a host.
    """
    first, second = _two_of_each(worth, host, len(free))
    rows = np.concatenate([first[free > 0], second[free > 1]])
    rows = rows[rows >= 0]
    order = np.lexsort((rows, -worth[rows]))
    return rows[order[:room]]


@compiled
def _two_of_each(worth: Floats, host: Rows, hosts: int) -> tuple[Rows, Rows]:
    """The two worthiest rows of each host; -1 where there is none above 0."""
    first, second = np.full(hosts, -1, np.intp), np.full(hosts, -1, np.intp)
    for row in range(len(worth)):
        if worth[row] > 0:
            h = host[row]
            if first[h] < 0 or worth[row] > worth[first[h]]:
                first[h], second[h] = row, first[h]
            elif second[h] < 0 or worth[row] > worth[second[h]]:
                second[h] = row
    return first, second
