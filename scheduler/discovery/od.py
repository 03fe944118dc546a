"""OD: the pages of the largest outdegree to new pages (section 3.6.1)."""

from __future__ import annotations

import numpy as np

from freshet.scheduler.arguments import Floats, Ints


def od(fractions: Floats, budget: int) -> Ints:
    """The ``budget`` pages of the largest p_i, of equal ones the first; none that are 0.

    Lemma 1: it finds at least p_[1] / (p_[1] + the sum of p_[k+1] to p_[2k-1]) of the best cover.
    """
    candidates = np.flatnonzero(fractions > 0)
    best = np.argsort(-fractions[candidates], kind="stable")[: max(budget, 0)]
    return np.asarray(candidates[best], np.int64)
