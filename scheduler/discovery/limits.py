"""What no choice by history exceeds: all pages that ever revealed one (section 3.6.5)."""

from __future__ import annotations

import numpy as np

from freshet.scheduler.arguments import Ints
from freshet.scheduler.discovery.past import Past


def historical_limit(past: Past) -> Ints:
    """Every page that revealed a new one in any of the recrawls.

    With a recrawl at every step it is the bound called full; with one at every w-th that for w.
    """
    return np.asarray(np.flatnonzero(past.ever()), np.int64)
