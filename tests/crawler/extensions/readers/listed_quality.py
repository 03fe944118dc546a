"""Search quality by whole lists, as its definition has it: what faster ways are held against."""

import numpy as np

from freshet.crawler.extensions.readers.search_quality import views
from freshet.scheduler.arrays import Floats


def search_quality(copies: Floats, live: Floats, frequency: Floats) -> float:
    """Return Q (4.5) by the scores (queries, pages) of all copies and live pages; 0: no match.

    A page that is gone scores 0 in ``live``, one that is not held 0 in ``copies``. Where no live
    page matches, Q is 1.
    """
    best = usefulness(live, live, frequency)
    return usefulness(copies, live, frequency) / best if best > 0 else 1.0


def usefulness(listed: Floats, paid: Floats, frequency: Floats) -> float:
    """Return Σ_q f_q Σ_p I(R) S: pages listed by some scores and paid by others, as in (4.3)."""
    order = np.argsort(-listed, axis=1, kind="stable")
    matches = np.take_along_axis(listed, order, axis=1) > 0
    scores = np.where(matches, np.take_along_axis(paid, order, axis=1), 0.0)
    return float(frequency @ (scores @ views(np.arange(1, listed.shape[1] + 1))))
