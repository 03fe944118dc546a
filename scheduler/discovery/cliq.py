"""CLIQ: the best page of each cluster of pages that reveal the same (section 3.6.2)."""

from __future__ import annotations

import numpy as np

from freshet.scheduler.arguments import Floats, Ints
from freshet.scheduler.discovery.clusters import EPS_B, clusters
from freshet.scheduler.discovery.od import od
from freshet.scheduler.discovery.reveals import Reveals


def cliq(reveals: Reveals, budget: int, eps_b: float = EPS_B) -> Ints:
    """The ``budget`` clusters whose best pages reveal most, each by that page.

    Theorem 1: where pages reveal either nearly the same or nearly nothing in common, it finds at
    least (1 - k' eps_s) / (1 + k eps_b) of the best cover.
    """
    return od(best_of_clusters(reveals, eps_b), budget)


def best_of_clusters(reveals: Reveals, eps_b: float) -> Floats:
    """p_x of the best page of each cluster, 0 of all others; of shape (old,)."""
    found = np.zeros(reveals.old)
    of_set = clusters(reveals, eps_b)
    # The largest set of each cluster, of equal ones that of the first page.
    order = np.lexsort((reveals.first_pages, -reveals.sizes, of_set))
    _, first = np.unique(of_set[order], return_index=True)
    best = reveals.first_pages[order[first]]
    found[best] = reveals.fractions[best]
    return found
