"""All sources of a queue, and what they are worth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arrays import Floats
from freshet.scheduler.policies.greedy_index import Valuation
from freshet.scheduler.shortlists import jitter
from freshet.scheduler.sources import Rows, SourceTable

T = TypeVar("T", bound=np.generic)

#: Rows that are valued together: their temporaries stay in the processor's cache.
_CHUNK = 1 << 15

#: The columns of a table that have a row for each source, …
COLUMNS = tuple(name for name in SourceTable.__slots__ if name != "host_capacity")
#: … and those that events write to.
WRITTEN = ("change_rate", "last_crawl", "pending_signals", "signal_rate")


@dataclass(frozen=True, slots=True)
class Part:
    """Some sources: their rows, their columns, the factors of their indices (None: all 1)."""

    rows: Rows
    table: SourceTable
    noise: Floats | None

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, positions: Rows) -> Part:
        """Some of them, as copies."""
        noise = None if self.noise is None else self.noise[positions]
        return Part(self.rows[positions], self.table.take(positions), noise)

    def first(self, n: int) -> Part:
        """The first n, sharing their columns."""
        noise = None if self.noise is None else self.noise[:n]
        return Part(self.rows[:n], _sliced(self.table, slice(n)), noise)

    def with_others(self, others: Part) -> Part:
        """Together with others, none of them its own; both, and the result, in order of rows."""
        place = np.searchsorted(self.rows, others.rows) + np.arange(len(others))
        mine = np.ones(len(self) + len(others), np.bool_)
        mine[place] = False

        def joined(column: NDArray[T], theirs: NDArray[T]) -> NDArray[T]:
            both = np.empty(len(mine), column.dtype)
            both[mine], both[place] = column, theirs
            return both

        columns = {
            name: joined(getattr(self.table, name), getattr(others.table, name)) for name in COLUMNS
        }
        noise = None
        if self.noise is not None and others.noise is not None:
            noise = joined(self.noise, others.noise)
        table = SourceTable(host_capacity=self.table.host_capacity, **columns)
        return Part(joined(self.rows, others.rows), table, noise)


class Whole:
    """The queue's own table; the longest list. Positions in it are rows."""

    until = inf

    def __init__(self, table: SourceTable, valuation: Valuation, noise: float, seed: int) -> None:
        self.table = table
        self._valuation = valuation
        self._noise = noise
        self._seed = seed

    def __len__(self) -> int:
        return len(self.table)

    def settle(self) -> None:
        """Nothing: events are written to the table at once."""

    def rows(self, positions: Rows) -> Rows:
        """The rows at these positions."""
        return positions

    def hosts(self) -> Rows:
        """(n,), host codes."""
        return self.table.host

    def worth(self, at: float) -> Floats:
        """(n,), what each source is worth at day ``at``."""
        worth = np.empty(len(self))
        for start in range(0, len(self), _CHUNK):
            rows = slice(start, min(start + _CHUNK, len(self)))
            worth[rows] = self.worth_of(self._chunk(rows), at)
        return worth

    def worth_of(self, part: Part, at: float) -> Floats:
        """What some sources are worth at day ``at``."""
        worth = self._valuation(part.table, at)
        return worth if part.noise is None else worth * part.noise

    def of_host(self, host: int) -> Rows:
        """The positions of a host's sources."""
        order, start = self._by_host
        return order[start[host] : start[host + 1]].astype(np.intp)

    def part(self, positions: Rows) -> Part:
        """The sources at these positions, as copies."""
        table = self.table.take(positions)
        return Part(positions, table, self.noise(positions, table.last_crawl))

    def noise(self, rows: Rows, last_crawl: Floats) -> Floats | None:
        """The factors of the rows' indices; None if there is no noise."""
        if not self._noise:
            return None
        return jitter.factors(self._noise, self._seed, rows, last_crawl)

    def noise_of(self, row: int) -> float:
        """The factor of one row's index."""
        return jitter.factor(self._noise, self._seed, row, float(self.table.last_crawl[row]))

    def _chunk(self, rows: slice) -> Part:
        table = _sliced(self.table, rows)
        numbers = np.arange(rows.start, rows.stop)
        return Part(numbers, table, self.noise(numbers, table.last_crawl))

    @cached_property
    def _by_host(self) -> tuple[NDArray[np.uint32], Rows]:
        """The rows in the order of hosts, and where each host starts."""
        counts = np.bincount(self.table.host, minlength=len(self.table.host_capacity))
        # Half the memory of intp; there are fewer rows than 2³².
        order = np.argsort(self.table.host, kind="stable").astype(np.uint32)
        return order, np.concatenate([[0], np.cumsum(counts)])


def _sliced(table: SourceTable, rows: slice) -> SourceTable:
    """Some rows, sharing the columns."""
    columns = {name: getattr(table, name)[rows] for name in COLUMNS}
    return SourceTable(host_capacity=table.host_capacity, **columns)
