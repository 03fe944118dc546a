"""Compiling what a daemon learns with, or loading it, before pages wait for it."""

from __future__ import annotations

import numpy as np

from freshet.scheduler.recrawl.by_clock import ByClock
from freshet.scheduler.recrawl.choosing import worthiest
from freshet.scheduler.recrawl.hearing import Hearing
from freshet.scheduler.recrawl.looks import Looks


def prepare() -> None:
    """Call each compiled function once.

    That takes some fifteen seconds after an installation, and half a second from then on.
    """
    refresher, n = ByClock(), 6
    rows, none = np.arange(n), np.zeros(n, np.bool_)
    refresher.replan(1.0, 0.0)
    refresher.add(np.zeros(n, np.intp), np.zeros(n, np.intp), np.ones(n), np.zeros(n))
    for day in (0.0, 1.0):
        compared = np.full(n, day > 0)
        refresher.learn(Looks(rows, np.full(n, day), compared, compared, none, compared))
    refresher.hear(Hearing(0, 0, 1.5, rows[1:], np.full(n - 1, 1.2), np.full(n - 1, 1.2)))
    compared = np.ones(n, np.bool_)
    refresher.learn(Looks(rows, np.full(n, 1.8), compared, compared, none, compared))
    worthiest(refresher.worth(2.0), np.zeros(n, np.intp), np.ones(1, np.intp), 1)
