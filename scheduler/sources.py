"""The sources of a plan as a table of columns."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Bools, Floats, Ints

#: Rows of a table, by number.
Rows: TypeAlias = NDArray[np.intp]
#: Number of areas of a site; the last one holds the pages outside all others.
AREAS: Final = 16
#: Columns of a table with one row per host.
_OF_HOSTS: Final = frozenset({"host_capacity", "host_cost"})


@dataclass(frozen=True, slots=True)
class SourceTable:
    """The data on n sources that policies need; every column has length n.

    Make one with :meth:`of`, which checks its arguments; :meth:`take` does not check again. The
    owner (a simulation, the daemon) may write to the columns, so that a crawl needs no new table.

    Attributes:
        importance: μ, a weight of at least 0.
        change_rate: Δ, changes per day; all changes, signalled or not.
        complete_observations: True where every change is notified (class Wᵒ of the paper).
        host: code of the source's host, 0 to H − 1.
        host_capacity: (H,), crawls per day that politeness allows a host; inf: no limit.
        host_cost: (H,), the cost of a crawl of each host, relative to the cheapest; 1 if all delays
            are equal.
        last_crawl: day of the last crawl, on the clock of ``now``.
        pending_signals: k, signals since the last crawl; for a source with complete observations
            the number n of its uncrawled changes.
        signal_rate: g, signals per day, false ones included; 0 without signals. For a source with
            complete observations Δ.
        signal_precision: q, the probability that a signal is true (0 to 1); Δ − g·q is the rate of
            unsignalled changes.
    """

    importance: Floats
    change_rate: Floats
    complete_observations: Bools
    host: NDArray[np.intp]
    host_capacity: Floats
    host_cost: Floats
    last_crawl: Floats
    pending_signals: Ints
    signal_rate: Floats
    signal_precision: Floats

    def __len__(self) -> int:
        return len(self.importance)

    @classmethod
    def of(  # noqa: PLR0913 - one argument a column
        cls,
        importance: ArrayLike,
        change_rate: ArrayLike,
        *,
        complete_observations: ArrayLike | None = None,
        host: ArrayLike | None = None,
        host_capacity: ArrayLike | None = None,
        host_cost: ArrayLike | None = None,
        last_crawl: ArrayLike | None = None,
        pending_signals: ArrayLike | None = None,
        signal_rate: ArrayLike | None = None,
        signal_precision: ArrayLike | None = None,
    ) -> SourceTable:
        """Return a checked table; omitted columns have defaults.

        The defaults: incomplete observations, one host without a limit, crawls of equal cost, last
        crawled on day 0, no signals.

        Raises:
            ValueError: naming the argument, the row and the accepted values.
        """
        mu = arrays.non_negative("importance", importance)
        n = len(mu)
        delta = arrays.non_negative("change_rate", change_rate, n)
        complete = _flags_or(complete_observations, n)
        hosts, capacity = hosts_of(host, host_capacity, n)
        rate, precision = _signals(signal_rate, signal_precision, delta, complete)
        cost = np.ones(len(capacity)) if host_cost is None else host_cost
        costs = arrays.positive("host_cost", cost, len(capacity))
        days = np.zeros(n) if last_crawl is None else last_crawl
        pending = np.zeros(n) if pending_signals is None else pending_signals
        return cls(
            importance=mu,
            change_rate=delta,
            complete_observations=complete,
            host=hosts,
            host_capacity=capacity,
            host_cost=costs,
            last_crawl=arrays.finite("last_crawl", days, n),
            pending_signals=arrays.counts("pending_signals", pending, n),
            signal_rate=rate,
            signal_precision=precision,
        )

    def take(self, rows: Rows | Bools) -> SourceTable:
        """Return a table of these rows, in this order, as copies; host codes are unchanged."""
        columns = {
            field.name: getattr(self, field.name)[rows]
            for field in fields(self)
            if field.name not in _OF_HOSTS
        }
        return replace(self, **columns)


def hosts_of(
    host: ArrayLike | None, host_capacity: ArrayLike | None, n: int
) -> tuple[NDArray[np.intp], Floats]:
    """Return checked host codes and capacities; without them one host without a limit.

    Raises:
        ValueError: also if capacities are given without codes.
    """
    if host is None:
        if host_capacity is not None:
            raise ValueError("host: is missing; host_capacity is indexed by its codes")
        return np.zeros(n, np.intp), np.full(1, np.inf)
    if host_capacity is None:
        codes = arrays.codes("host", host, n)
        return codes, np.full(int(codes.max(initial=-1)) + 1, np.inf)
    capacity = arrays.positive("host_capacity", host_capacity)
    return arrays.codes("host", host, n, len(capacity)), capacity


def _flags_or(values: ArrayLike | None, n: int) -> Bools:
    if values is None:
        return np.zeros(n, np.bool_)
    return arrays.flags("complete_observations", values, n)


def _signals(
    rate: ArrayLike | None, precision: ArrayLike | None, delta: Floats, complete: Bools
) -> tuple[Floats, Floats]:
    """Return rates and precisions; complete observations have g = Δ and q = 1."""
    n = len(delta)
    g = np.zeros(n) if rate is None else arrays.non_negative("signal_rate", rate, n).copy()
    q = np.zeros(n) if precision is None else arrays.share("signal_precision", precision, n)
    # Where every change is signalled, rounding may make g·q slightly larger than Δ.
    impossible = ~complete & (g * q > delta * (1 + 1e-9))
    if impossible.any():
        row = int(np.argmax(impossible))
        raise ValueError(
            f"signal_rate: row {row} is {g[row]}, with {g[row] * q[row]} true changes; "
            f"accepted is at most change_rate ({delta[row]}) / signal_precision ({q[row]})"
        )
    return np.where(complete, delta, g), np.where(complete, 1.0, q)
