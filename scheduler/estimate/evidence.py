"""Evidence of changes, the Protocol of its estimators, and the evidence in stored observations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.sources import Rows
from freshet.storage.words import KINDS, Kind


@dataclass(frozen=True, slots=True)
class Evidence:
    """Intervals of time and the changes of sources in them; every column has length m.

    A source may stand in any number of rows, in any order. The constructor trusts its caller,
    because a simulation makes one of these for each crawl; :meth:`of` checks.

    Attributes:
        source: row of the source in its table.
        at: day on which it was learnt, the end of the interval.
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
        """Return checked evidence; without ``counted`` all of it compares two crawls.

        ``sources`` is the number of sources of the table, where it is known.

        Raises:
            ValueError: naming the argument, the row and what is accepted.
        """
        days = arrays.finite("at", at)
        m = len(days)
        rows = arrays.codes("source", source, m, sources)
        spans = arrays.non_negative("span", span, m)
        number = arrays.counts("changes", changes, m)
        exact = np.zeros(m, np.bool_) if counted is None else arrays.flags("counted", counted, m)
        _refuse_first(~exact & (spans == 0), "span", spans, "above 0 where it is not counted")
        _refuse_first(~exact & (number > 1), "changes", number, "0 or 1 where it is not counted")
        return cls(rows, days, spans, number, exact)


@runtime_checkable
class Estimator(Protocol):
    """A learner of change rates, from evidence alone."""

    def observe(self, evidence: Evidence) -> None:
        """Learn this evidence; it is trusted (see :meth:`Evidence.of`)."""
        ...

    def change_rate(self, rows: Rows | None = None) -> Floats:
        """Return estimated changes per day of these rows, or of all; finite, above 0."""
        ...

    @property
    def revision(self) -> int:
        """Return a number that grows when estimates of rows without new evidence moved."""
        ...


def _refuse_first(bad: Bools, name: str, column: Floats | Ints, accepted: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"{name}: row {row} is {column[row]}; accepted is {accepted}")


# -- histories --
#
# Two successive captures of a page are an interval with or without change. By kind of observation:
#
#     new                         the first capture: a history starts
#     unchanged, changed          an interval from the capture before, or a history's start
#     failed, refused, skipped    ignored: the interval runs on over them
#     gone, redirected            the page was absent: the next capture starts a new history
#
# Where the clock was set back, or two captures have the same time, the later one starts a new
# history: a change in no time would be an infinite rate.

_DAY_S: Final = 86_400.0


def _codes_of(*kinds: Kind) -> list[int]:
    return [KINDS.index(kind) for kind in kinds]


_CAPTURE = np.isin(np.arange(len(KINDS)), _codes_of(Kind.NEW, Kind.UNCHANGED, Kind.CHANGED))
_COMPARED = np.isin(np.arange(len(KINDS)), _codes_of(Kind.UNCHANGED, Kind.CHANGED))
_BREAK = np.isin(np.arange(len(KINDS)), _codes_of(Kind.GONE, Kind.REDIRECTED))


@dataclass(frozen=True, slots=True)
class Histories:
    """The evidence in observations, and the number of those without any.

    Attributes:
        evidence: one row for each interval; days, on the clock of Unix time / 86,400.
        starts: captures that start a history.
        breaks: observations that the page was gone or led elsewhere.
        passed_over: observations without an answer to compare (failed, refused, skipped).
        without_length: captures at the instant of the one before them, or earlier.
    """

    evidence: Evidence
    starts: int
    breaks: int
    passed_over: int
    without_length: int


def evidence_of(page: ArrayLike, at: ArrayLike, kind: ArrayLike) -> Histories:
    """Return the evidence in m observations; each is counted in one place of the result.

    Args:
        page: (m,), row of the page, ascending.
        at: (m,), Unix seconds; in the order of time within a page, but for a clock set back.
        kind: (m,), place of the observation's kind in :data:`freshet.storage.records.KINDS`.

    Cost: O(m), some ten columns of memory.

    Raises:
        ValueError: naming the argument, the row and what is accepted.
    """
    seconds = arrays.finite("at", at)
    rows = arrays.codes("page", page, len(seconds))
    codes = arrays.codes("kind", kind, len(seconds), len(KINDS))
    _refuse_unsorted(rows)
    capture = _CAPTURE[codes]
    passed_over = ~capture & ~_BREAK[codes]
    kept = ~passed_over
    rows, seconds, codes, capture = rows[kept], seconds[kept], codes[kept], capture[kept]

    follows = np.zeros(len(rows), np.bool_)
    follows[1:] = (rows[1:] == rows[:-1]) & capture[:-1] & _COMPARED[codes[1:]]
    span = np.diff(seconds, prepend=0.0) / _DAY_S
    interval = np.flatnonzero(follows & (span > 0))
    evidence = Evidence(
        rows[interval],
        seconds[interval] / _DAY_S,
        span[interval],
        (codes[interval] == KINDS.index(Kind.CHANGED)).astype(np.int64),
        np.zeros(len(interval), np.bool_),
    )
    return Histories(
        evidence,
        starts=int((capture & ~follows).sum()),
        breaks=int((~capture).sum()),
        passed_over=int(passed_over.sum()),
        without_length=int(follows.sum()) - len(interval),
    )


def _refuse_unsorted(rows: Rows) -> None:
    fallen = np.diff(rows) < 0
    if fallen.any():
        row = int(np.argmax(fallen)) + 1
        raise ValueError(f"page: row {row} is {rows[row]}; accepted is {rows[row - 1]} or more")
