"""CLIQ-1: CLIQ by the last recrawl alone (section 3.6.4).

After a step in which nothing was new it knows nothing and looks nowhere: so it is defined.
"""

from __future__ import annotations

import numpy as np

from freshet.scheduler.arguments import Ints
from freshet.scheduler.discovery.cliq import cliq
from freshet.scheduler.discovery.clusters import EPS_B
from freshet.scheduler.discovery.past import Past


def cliq_1(past: Past, budget: int, eps_b: float = EPS_B) -> Ints:
    """The best pages of the clusters of the last recrawl."""
    if not past.recrawls:
        return np.zeros(0, np.int64)
    return cliq(past.recrawls[-1], budget, eps_b)
