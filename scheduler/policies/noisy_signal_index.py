"""Index policy for sources whose signals may be false, and whose changes may come without one.

Crawl next what is worth most now. The worth W of a source is the price λ per crawl at which
crawling it in its present state is just right, if each state is to be crawled exactly when that
lowers the long-run average of cost + λ · crawls.

A source is crawled at day 0; s days later k signals have been heard:

    D(s, k) = μ E[H(Poisson(as) + Bin(k, q))]         cost per day, harmonic (the default)
    D(s, k) = μ (1 − e^{−as}(1 − q)^k)                cost per day, binary
    W = E∫₀^{T_L} (L − D) ds  at  L = D(s, k)         the index

with T_L the first time at which D reaches the level L. :mod:`scheduler.signal_paths` derives
the index and has its sums, :mod:`scheduler.signal_levels` the fast form for the harmonic cost.

    μ      importance          weight
    Δ      change_rate         changes per day, all of them
    g      signal_rate         signals per day, false ones included
    q      signal_precision    probability that a signal is true
    a      Δ − gq              changes per day that no signal tells of
    s      now − last_crawl    days
    k      pending_signals     signals since the last crawl

Limits: without signals (g = 0 or q = 0) the greedy index of the same cost; with all changes
told of and no false signal (g = Δ, q = 1) μk/Δ for the harmonic cost. What is *not* the index:
the greedy index at the effective age. It leaves out that a signal may end the wait at any
moment, and so overvalues sources with many signals: simulated, it costs the same up to a recall
of 0.3 and 4 to 11 % more at 0.9. Nor is it s·D − ∫D along the path that was heard, which knows
what stopping would have been worth on this path only: 3 to 65 % more.

Cost: harmonic about 2.5 µs a source, after a quarter of a second for a table at the first call;
binary 2 µs. Accuracy: see the two modules; 4e-3 relative at worst and 5e-5 in the median
(harmonic), rounding where no more than 64 signals matter (binary). A crawl later than ``now``
counts as one at ``now``.

Reference: Busa-Fekete et al., "A Scalable Crawling Algorithm Utilizing Noisy Change-Indicating
Signals" (WWW 2025), GREEDY-NCIS: the binary index. The harmonic one is ours, by the same
construction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from freshet.scheduler import arguments, signal_levels, signal_paths
from freshet.scheduler.arguments import Floats, Ints
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.policies.greedy_index_binary import GreedyIndexBinary
from freshet.scheduler.policy import IndexPolicy
from freshet.scheduler.sources import Rows, SourceTable

#: W in μ/Δ, of recall, precision, Δ times the elapsed days, and signals.
_WORTH: dict[str, Callable[[Floats, Floats, Floats, Ints], Floats]] = {
    "harmonic": signal_levels.worth,
    "binary": signal_paths.binary_worth,
}
_WITHOUT_NOISE: dict[str, IndexPolicy] = {"harmonic": GreedyIndex(), "binary": GreedyIndexBinary()}

#: Signals of no greater precision tell nothing: W differs by as little from that of silence.
_NOTHING_TOLD = 1e-9


@dataclass(frozen=True, slots=True)
class NoisySignalIndex:
    """Crawls the source that is worth most, given its clock and its signals.

    Attributes:
        cost: ``harmonic`` or ``binary``.

    Raises:
        ValueError: if the cost is another.

    Where every change is told of (a = 0) and every other signal is false, nothing is lost in
    silence: one signal makes the level L = 8 · 1/2, and the wait for it is worth L a day for
    1/g = 1/2 day.

    >>> table = SourceTable.of(
    ...     [8], [1], signal_rate=[2], signal_precision=[0.5], pending_signals=[1]
    ... )
    >>> NoisySignalIndex().index(table, now=0.25).round(9).tolist()
    [2.0]
    """

    cost: str = "harmonic"

    def __post_init__(self) -> None:
        arguments.one_of("cost", self.cost, tuple(_WORTH))

    def index(self, table: SourceTable, now: float) -> Floats:
        """(n,), W in importance · days; sources without noisy signals as the greedy index."""
        index = _WITHOUT_NOISE[self.cost].index(table, now)
        rows = _noisy(table)
        if len(rows):
            delta, q = table.change_rate[rows], table.signal_precision[rows]
            recall = np.minimum(table.signal_rate[rows] * q / delta, 1)
            elapsed = delta * np.maximum(now - table.last_crawl[rows], 0)
            worth = _WORTH[self.cost](recall, q, elapsed, table.pending_signals[rows])
            index[rows] = table.importance[rows] / delta * worth
        return index


def _noisy(table: SourceTable) -> Rows:
    """The rows whose signals tell something, but not all."""
    told = (table.signal_rate > 0) & (table.signal_precision > _NOTHING_TOLD)
    return np.flatnonzero(told & ~table.complete_observations & (table.change_rate > 0))
