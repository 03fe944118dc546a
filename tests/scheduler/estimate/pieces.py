"""Evidence, written down by hand."""

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler.estimate.evidence import Evidence


def pieces(
    source: ArrayLike, at: ArrayLike, span: ArrayLike, changes: ArrayLike, *,
    counted: ArrayLike | None = None,
) -> Evidence:  # fmt: skip
    """Without ``counted`` all of it compares two crawls."""
    days, spans = np.asarray(at, np.float64), np.asarray(span, np.float64)
    exact = np.zeros(len(days), np.bool_) if counted is None else np.asarray(counted, np.bool_)
    return Evidence(np.asarray(source, np.intp), days, spans, np.asarray(changes, np.int64), exact)
