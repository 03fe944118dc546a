"""Which sources come on a shortlist, and the bars that all others stay behind."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.shortlists.ranks import HeldBack, Rank, just_below
from freshet.scheduler.sources import Rows

#: Enough of a column to know its quantiles within some per cent.
_SAMPLE = 1 << 16

#: Up to so many hosts for each place on the list, one source of each limited host is listed.
_HOSTS_PER_PLACE = 16


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen positions, ascending, and the bars; ``row`` is a position in all of them."""

    chosen: Rows
    bar: Rank
    held_back: HeldBack


def select(worth: Floats, host: Rows, limited: Bools | None, size: int) -> Selection:
    """The positions of the ``size`` largest worths, and of a few sources of limited hosts.

    Args:
        worth: (m,), at least 0; what is worth nothing is not chosen.
        host: (m,), host codes.
        limited: (H,), hosts that do not count towards ``size`` but share as many places
            among themselves; None: no host.
        size: how many to choose; if more are worth the same it may become twice as many.

    Cost: O(m), and O(s log s) in the number s of the chosen.
    """
    free = None if limited is None else ~limited[host]
    least = _quantile(worth if free is None else worth[free], size)
    chosen = np.flatnonzero((worth >= least) & (worth > 0))
    if free is None:
        return Selection(*_cut(chosen, worth, least, size), HeldBack())
    few, held_back = _few_of_each(chosen[~free[chosen]], worth, host, size)
    chosen, bar = _cut(chosen[free[chosen]], worth, least, size)
    return Selection(np.sort(np.concatenate([chosen, few])), bar, held_back)


def _quantile(worth: Floats, size: int) -> float:
    """About the ``size``-th largest; 0 if there are not as many."""
    if len(worth) <= size:
        return 0.0
    step = max(len(worth) // _SAMPLE, 1)
    sample = worth[::step]
    place = len(sample) - max(size // step, 1)
    return float(np.partition(sample, place)[place])


def _cut(positions: Rows, worth: Floats, least: float, size: int) -> tuple[Rows, Rank]:
    """All of them, or the first ``size`` in rank if far more are worth the same."""
    if len(positions) <= 2 * size:
        return positions, just_below(least)
    first = _in_rank(positions, worth)[:size]
    last = int(first[-1])
    return np.sort(first), (float(worth[last]), last)


def _few_of_each(positions: Rows, worth: Floats, host: Rows, size: int) -> tuple[Rows, HeldBack]:
    """The first sources of each host, ``size`` in all, and the hosts that have more."""
    if not len(positions):
        return positions, HeldBack()
    ranked = _in_rank(positions, worth)
    ranked = ranked[np.argsort(host[ranked], kind="stable")]
    start = np.flatnonzero(np.diff(host[ranked], prepend=-1))
    count = np.diff(start, append=len(ranked))
    few = size // len(start)
    if not few and len(start) <= _HOSTS_PER_PLACE * size:
        few = 1
    place = np.arange(len(ranked)) - np.repeat(start, count)
    return ranked[place < few], _held_back(start[count > few], few, ranked, worth, host)


def _held_back(start: Rows, few: int, ranked: Rows, worth: Floats, host: Rows) -> HeldBack:
    if not few:
        nothing_listed = np.full(len(start), inf)
        return HeldBack(host[ranked[start]], nothing_listed, np.full(len(start), -1))
    last = ranked[start + few - 1]
    return HeldBack(host[last], worth[last], last)


def _in_rank(positions: Rows, worth: Floats) -> Rows:
    return positions[np.lexsort((positions, -worth[positions]))]
