"""CLIQ-WIN: the clusters of the last recrawl, and every page that ever revealed anything.

Each such page is a cluster of its own, worth its mean over all recrawls (section 3.6.4).
"""

from __future__ import annotations

import numpy as np

from freshet.scheduler.arguments import Ints
from freshet.scheduler.discovery.cliq import best_of_clusters
from freshet.scheduler.discovery.clusters import EPS_B
from freshet.scheduler.discovery.od import od
from freshet.scheduler.discovery.past import Past


def cliq_win(past: Past, budget: int, alpha: float = 1.0, eps_b: float = EPS_B) -> Ints:
    """The ``budget`` clusters that are worth most, each by its best page."""
    worth = past.fractions(alpha)
    if past.recrawls:
        last = past.recrawls[-1]
        best = best_of_clusters(last, eps_b)
        worth[: last.old] = np.maximum(worth[: last.old], best)
    return od(worth, budget)
