"""What an estimator of change rates is told, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler import arguments
from freshet.scheduler.arguments import Bools, Floats, Ints
from freshet.scheduler.sources import Rows


@dataclass(frozen=True, slots=True)
class Evidence:
    """What stretches of time told of the changes of sources; every column has length m.

    A source may stand in any number of rows, in any order. The constructor trusts its caller,
    because a simulation makes one of these for each crawl; :meth:`of` checks.

    Attributes:
        source: row of the source in its table.
        at: day on which it was learnt, the end of the stretch.
        span: days covered; above 0, or 0 where ``counted``.
        changes: where ``counted`` the exact number of changes in the span (complete
            observations); elsewhere 1 if the source changed at least once, 0 if it did not.
        counted: True where all changes were seen, False where two crawls were compared.
    """

    source: Rows
    at: Floats
    span: Floats
    changes: Ints
    counted: Bools

    def __len__(self) -> int:
        return len(self.source)

    @classmethod
    def of(
        cls,
        source: ArrayLike,
        at: ArrayLike,
        span: ArrayLike,
        changes: ArrayLike,
        *,
        counted: ArrayLike | None = None,
        sources: int | None = None,
    ) -> Evidence:
        """Checked evidence; without ``counted`` all of it compares two crawls.

        ``sources`` is the number of sources of the table, where it is known.

        Raises:
            ValueError: naming the argument, the row and what is accepted.
        """
        days = arguments.finite("at", at)
        m = len(days)
        rows = arguments.codes("source", source, m, sources)
        spans = arguments.non_negative("span", span, m)
        number = arguments.counts("changes", changes, m)
        exact = np.zeros(m, np.bool_) if counted is None else arguments.flags("counted", counted, m)
        _refuse_first(~exact & (spans == 0), "span", spans, "above 0 where it is not counted")
        _refuse_first(~exact & (number > 1), "changes", number, "0 or 1 where it is not counted")
        return cls(rows, days, spans, number, exact)


@runtime_checkable
class Estimator(Protocol):
    """Learns change rates from evidence, and from nothing else."""

    def observe(self, evidence: Evidence) -> None:
        """Take this evidence in; it is trusted (see :meth:`Evidence.of`)."""
        ...

    def change_rate(self, rows: Rows | None = None) -> Floats:
        """Estimated changes per day of these rows, or of all sources; finite and above 0."""
        ...

    @property
    def revision(self) -> int:
        """Grows when estimates of rows without new evidence have moved: ask for all again."""
        ...


def _refuse_first(bad: Bools, name: str, column: Floats | Ints, accepted: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"{name}: row {row} is {column[row]}; accepted is {accepted}")
