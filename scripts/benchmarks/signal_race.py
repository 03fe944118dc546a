"""Sources with noisy signals, and one index that crawls them: a world, a run, its exact cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.costs import noisy_harmonic
from freshet.scheduler.sources import Rows, SourceTable

#: Crawls between two valuations of all sources.
_BATCH = 20
#: Rows that are visited in between.
_FRONT = 4 * _BATCH

_X, _W = np.polynomial.legendre.leggauss(24)
_U: Floats = ((_X + 1) / 2) ** 2
_DU_OVER_U: Floats = (_X + 1) / 2 * _W / _U


@dataclass(frozen=True, slots=True)
class World:
    """Sources at day 0, and the signals to come, in order."""

    table: SourceTable
    signal_at: Floats
    signal_of: Rows


@dataclass(slots=True)
class Waiting:
    """What has happened since each source's last crawl.

    ``since`` is the day of its last crawl or signal, ``spent`` the cost from the crawl to then.
    """

    cost: str
    table: SourceTable
    since: Floats
    spent: Floats


#: The index of these rows on this day.
Index = Callable[[Waiting, Rows, float], Floats]


def world(
    n: int, precision: float, recall: float, bandwidth: float, days: float, seed: int
) -> World:
    """Sources like those of the surrogate population without complete observations.

    Each starts at an age uniform over the interval that LambdaCrawl gives it.
    """
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(n)
    mu = np.exp(np.log(885) - 1.964**2 / 2 + 1.964 * z)
    delta = np.exp(-1.744 + 2.693 * (-0.2 * z + 0.98 * rng.standard_normal(n))).clip(0.018, 6)
    g = recall * delta / precision
    of = np.repeat(np.arange(n), rng.poisson(g * days))
    at = rng.uniform(0, days, len(of))
    order = np.argsort(at)
    ages = rng.uniform(size=n) / _rates(mu, delta, bandwidth * n)
    q = np.full(n, precision)
    table = SourceTable.of(mu, delta, last_crawl=-ages, signal_rate=g, signal_precision=q)
    return World(table, at[order], of[order])


def _rates(mu: Floats, delta: Floats, budget: float) -> Floats:
    def at(log_price: float) -> Floats:
        c = mu / np.exp(log_price)
        rates: Floats = 2 * c / (1 + np.sqrt(1 + 4 * c / delta))
        return rates

    return at(float(brentq(lambda log_price: at(log_price).sum() - budget, -50, 50)))


def unsignalled(table: SourceTable, rows: Rows) -> Floats:
    """a, changes per day that no signal tells of; a trace of them where there are none."""
    a = table.change_rate[rows] - table.signal_rate[rows] * table.signal_precision[rows]
    return np.maximum(a, 1e-12)


def level(cost: str, table: SourceTable, rows: Rows, now: float) -> Floats:
    """D(s, k) of these rows."""
    k, q = table.pending_signals[rows], table.signal_precision[rows]
    m = unsignalled(table, rows) * (now - table.last_crawl[rows])
    gap = noisy_harmonic(m, k, q) if cost == "harmonic" else 1 - np.exp(-m) * (1 - q) ** k
    return table.importance[rows] * gap


def lost(waiting: Waiting, rows: Rows, start: Floats, now: float) -> Floats:
    """∫ D dt from day ``start`` to ``now``, between which nothing is heard of these rows."""
    table = waiting.table
    a, k, q = unsignalled(table, rows), table.pending_signals[rows], table.signal_precision[rows]
    before, silent = a * (start - table.last_crawl[rows]), a * (now - start)
    if waiting.cost == "binary":
        gap = silent + (1 - q) ** k * np.exp(-before) * np.expm1(-silent)
    else:
        none = (1 - q[:, None] * _U) ** k[:, None] * np.exp(-before[:, None] * _U)
        gap = (silent[:, None] + none * np.expm1(-silent[:, None] * _U) / _U) @ _DU_OVER_U
    return np.asarray(table.importance[rows] * gap / a)


def race(world: World, index: Index, cost: str, budget: float, start: float, end: float) -> float:
    """Cost per source and day between two days, for exactly one crawl each 1/``budget``.

    The index is charged with the conditional expectation of the cost, given the times of
    crawls and signals.
    """
    n = len(world.table)
    table = world.table.take(np.arange(n))
    run = _Run(Waiting(cost, table, np.zeros(n), np.zeros(n)), start)
    run.waiting.spent[:] = lost(run.waiting, np.arange(n), table.last_crawl, 0)
    front, bound, received = np.zeros(n, np.bool_), np.inf, 0
    for tick in range(int(end * budget)):
        now = (tick + 1) / budget
        until = int(np.searchsorted(world.signal_at, now))
        for signal in range(received, until):
            source = int(world.signal_of[signal])
            run.meets(source, float(world.signal_at[signal]))
            table.pending_signals[source] += 1
            front[source] = True
        received = until
        if tick % _BATCH == 0:
            front, bound = _front(index(run.waiting, np.arange(n), now + _BATCH / budget))
        run.crawls(_best(run.waiting, index, front, bound, now), now)
    for source in range(n):
        run.meets(source, end)
    return run.total / n / (end - start)


def _front(later: Floats) -> tuple[Bools, float]:
    """The rows of largest index at the end of a batch, and a bound on that of all others.

    An index does not fall while time passes: whoever is not among them stays below the bound
    until a signal comes.
    """
    if len(later) <= _FRONT:
        return np.ones(len(later), np.bool_), -np.inf
    bound = float(np.partition(later, -_FRONT)[-_FRONT])
    return later >= bound, bound


def _best(waiting: Waiting, index: Index, front: Bools, bound: float, now: float) -> int:
    rows = np.flatnonzero(front)
    values = index(waiting, rows, now)
    if values.max() < bound:
        rows = np.arange(len(waiting.table))
        values = index(waiting, rows, now)
    return int(rows[np.argmax(values)])


@dataclass(slots=True)
class _Run:
    waiting: Waiting
    measured: float
    total: float = 0.0

    def meets(self, source: int, now: float) -> None:
        """Charge the source for the time since its last event."""
        waiting, rows = self.waiting, np.array([source])
        since = waiting.since[rows]
        waiting.spent[rows] += lost(waiting, rows, since, now)
        if now > self.measured:
            counted = np.maximum(since, self.measured)
            self.total += float(lost(waiting, rows, counted, now)[0])
        waiting.since[rows] = now

    def crawls(self, source: int, now: float) -> None:
        self.meets(source, now)
        self.waiting.spent[source] = 0
        self.waiting.table.pending_signals[source] = 0
        self.waiting.table.last_crawl[source] = now
