"""Evidence of changes, and the evidence in stored observations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.sources import Rows
from freshet.storage.entries import KINDS, Kind, Rung


@dataclass(frozen=True, slots=True)
class Evidence:
    """Intervals of time and the changes of sources in them; every column has length m.

    A source may have any number of rows, in any order. The constructor does not check, because a
    simulation makes one of these for each crawl.

    Attributes:
        source: row of the source in its table.
        at: day of the observation, the end of the interval.
        span: length in days; above 0, or 0 where ``counted``.
        changes: where ``counted`` the exact number of changes in the span (complete observations);
            elsewhere 1 if the source changed at least once, else 0.
        counted: True where all changes were seen, False where two crawls were compared.
    """

    source: Rows
    at: Floats
    span: Floats
    changes: Ints
    counted: Bools

    def __len__(self) -> int:
        return len(self.source)


# -- histories --
#
# Two successive captures of a page are an interval with or without change. By kind of observation:
#
#     new                         the first capture: a history starts
#     unchanged, changed          an interval from the previous capture, or a history's start
#     failed, refused, skipped    ignored: the interval continues
#     gone, redirected            the page was absent: the next capture starts a new history
#
# If the clock was set back, or two captures have the same time, the later one starts a new history:
# a change in no time would be an infinite rate.

_DAY_S: Final = 86_400.0


_CAPTURE = np.isin(KINDS, ("new", "unchanged", "changed"))
_COMPARED = np.isin(KINDS, ("unchanged", "changed"))
_BREAK = np.isin(KINDS, ("gone", "redirected"))


def evidence_of(page: ArrayLike, at: ArrayLike, kind: ArrayLike) -> Evidence:
    """Return the evidence in m observations: one row per interval, days since 1970.

    Args:
        page: (m,), row of the page, ascending.
        at: (m,), Unix seconds; in the order of time within a page, except where the clock was set
            back.
        kind: (m,), position of the observation's kind in :data:`freshet.storage.records.KINDS`.

    Cost: O(m), about ten columns of memory.

    Raises:
        ValueError: naming the argument, the row and the accepted values.
    """
    seconds = arrays.finite("at", at)
    rows = arrays.codes("page", page, len(seconds))
    codes = arrays.codes("kind", kind, len(seconds), len(KINDS))
    fallen = np.diff(rows) < 0
    if fallen.any():
        row = int(np.argmax(fallen)) + 1
        raise ValueError(f"page: row {row} is {rows[row]}; accepted is {rows[row - 1]} or more")
    kept = _CAPTURE[codes] | _BREAK[codes]
    rows, seconds, codes = rows[kept], seconds[kept], codes[kept]

    span = np.diff(seconds, prepend=0.0) / _DAY_S
    follows = np.zeros(len(rows), np.bool_)
    follows[1:] = (rows[1:] == rows[:-1]) & _CAPTURE[codes[:-1]] & _COMPARED[codes[1:]]
    interval = np.flatnonzero(follows & (span > 0))
    return Evidence(
        rows[interval],
        seconds[interval] / _DAY_S,
        span[interval],
        (codes[interval] == KINDS.index("changed")).astype(np.int64),
        np.zeros(len(interval), np.bool_),
    )


# -- observations ------------------------------------------------------------
#
# Visits and change signals as columns, which rankers learn from; days are Unix days.

_COMPARED_KINDS: Final = frozenset({"changed", "unchanged"})
_INFORMATIVE: Final = _COMPARED_KINDS | {"new", "gone"}

#: A visit: the page's row, the day, the kind of the observation, and the detection stage that
#: decided.
VisitResult: TypeAlias = tuple[int, float, Kind, Rung | None]


@dataclass(frozen=True, slots=True)
class VisitResults:
    """The results of m visits in the order in which they became known; columns of length m.

    Attributes:
        row: of the page.
        at: day.
        compared: True where the visit compared with an earlier version.
        changed: True where the page had changed; False without a comparison.
        gone: True where the page was gone.
        moved: True where the bytes differed from before, with or without a change.
    """

    row: Rows
    at: Floats
    compared: Bools
    changed: Bools
    gone: Bools
    moved: Bools

    def __len__(self) -> int:
        return len(self.row)

    def take(self, some: slice | Rows) -> VisitResults:
        """Return the visits of a slice, or at these positions in this order."""
        return VisitResults(**{name: getattr(self, name)[some] for name in self.__slots__})

    @classmethod
    def one(
        cls, row: int, at: float, *, changed: bool | None, gone: bool = False, moved: bool = False
    ) -> VisitResults:
        """Return a single visit; ``changed`` is None without a comparison."""
        return cls(
            row=np.array([row], np.intp),
            at=np.array([at]),
            compared=np.array([changed is not None]),
            changed=np.array([bool(changed)]),
            gone=np.array([gone]),
            moved=np.array([moved or bool(changed)]),
        )


def _has_moved(kind: str, rung: str | None) -> bool:
    """Return whether the bytes differed: not for a 304 or an equal digest."""
    return kind == "changed" or (kind == "unchanged" and rung not in {"304", "body"})


def visit_results(learnt: Collection[VisitResult]) -> VisitResults:
    """Return the visits that found content, or that the page is gone."""
    visits = [visit for visit in learnt if visit[2] in _INFORMATIVE]
    kinds = [visit[2] for visit in visits]
    return VisitResults(
        row=np.array([visit[0] for visit in visits], np.intp),
        at=np.array([visit[1] for visit in visits], np.float64),
        compared=np.array([kind in _COMPARED_KINDS for kind in kinds], np.bool_),
        changed=np.array([kind == "changed" for kind in kinds], np.bool_),
        gone=np.array([kind == "gone" for kind in kinds], np.bool_),
        moved=np.array([_has_moved(kind, rung) for _, _, kind, rung in visits], np.bool_),
    )


#: The source pushes its claims; it cannot be polled.
UNASKED: Final = -1


@dataclass(frozen=True, slots=True)
class SignalBatch:
    """The claims of one source at one time about m pages; columns of length m, which may be 0.

    Attributes:
        source: its number.
        asked: the row of the page that polls the source, or :data:`UNASKED`.
        at: day.
        row: the pages with new claims.
        since, until: days between which each page has last changed, by its claim.
    """

    source: int
    asked: int
    at: float
    row: Rows
    since: Floats
    until: Floats

    def take(self, some: Rows) -> SignalBatch:
        """Return the claims about these pages."""
        return replace(self, row=self.row[some], since=self.since[some], until=self.until[some])

    def events(self) -> tuple[Rows, Rows]:
        """Return an order in which pages that changed together are adjacent, and event numbers.

        One build of a site, or one edit, has one time. Both are (m,); numbers count from 0.
        """
        order = np.lexsort((self.row, self.since, self.until))
        parted = (np.diff(self.since[order]) != 0) | (np.diff(self.until[order]) != 0)
        return order, np.concatenate([np.zeros(min(1, len(order)), np.intp), np.cumsum(parted)])
