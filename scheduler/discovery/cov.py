"""COV: the greedy cover of the last recrawl, once more (section 3.6.3).

After a step in which nothing was new it knows nothing and looks nowhere: so it is defined.
"""

from __future__ import annotations

import numpy as np

from freshet.scheduler.arguments import Ints
from freshet.scheduler.discovery.greedy import greedy
from freshet.scheduler.discovery.past import Past


def cov(past: Past, budget: int) -> Ints:
    """The pages that GREEDY would have looked at in the last recrawl, had it known."""
    if not past.recrawls:
        return np.zeros(0, np.int64)
    return greedy(past.recrawls[-1], budget=budget)
