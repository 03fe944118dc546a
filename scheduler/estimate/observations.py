"""Visits and change signals as columns, which rankers learn from; days are Unix days."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.sources import Rows
from freshet.storage.words import Kind, Rung

_COMPARED: Final = frozenset({Kind.CHANGED, Kind.UNCHANGED})
_TELLING: Final = _COMPARED | {Kind.NEW, Kind.GONE}

#: A visit: the page's row, the day, the kind of the observation, the rung that decided.
VisitResult: TypeAlias = tuple[int, float, Kind, Rung | None]


@dataclass(frozen=True, slots=True)
class VisitResults:
    """The results of m visits in the order in which they became known; columns of length m.

    Attributes:
        row: of the page.
        at: day.
        compared: True where there was an earlier version to compare with.
        changed: True where the page had changed; False where nothing was compared.
        gone: True where the page was gone.
        moved: True where the bytes differed from before, changed or not.
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
        """Return the visits of a slice, or at these places in this order."""
        return VisitResults(**{field: getattr(self, field)[some] for field in self.__slots__})

    @classmethod
    def one(
        cls, row: int, at: float, *, changed: bool | None, gone: bool = False, moved: bool = False
    ) -> VisitResults:
        """Return a single visit; ``changed`` is None where nothing was compared."""
        return cls(
            row=np.array([row], np.intp),
            at=np.array([at]),
            compared=np.array([changed is not None]),
            changed=np.array([bool(changed)]),
            gone=np.array([gone]),
            moved=np.array([moved or bool(changed)]),
        )


def told(learnt: Collection[VisitResult]) -> VisitResults:
    """Return the visits that found content, or its end."""
    visits = [visit for visit in learnt if visit[2] in _TELLING]
    kinds = [visit[2] for visit in visits]
    return VisitResults(
        row=np.array([visit[0] for visit in visits], np.intp),
        at=np.array([visit[1] for visit in visits], np.float64),
        compared=np.array([kind in _COMPARED for kind in kinds], np.bool_),
        changed=np.array([kind is Kind.CHANGED for kind in kinds], np.bool_),
        gone=np.array([kind is Kind.GONE for kind in kinds], np.bool_),
        moved=np.array([_moved(visit[2], visit[3]) for visit in visits], np.bool_),
    )


def _moved(kind: Kind, rung: Rung | None) -> bool:
    """Return whether the bytes differed: no 304 and no equal digest."""
    same = kind is Kind.UNCHANGED and rung in {Rung.NOT_MODIFIED, Rung.BODY}
    return kind in _COMPARED and not same


#: The source pushes its claims; it cannot be polled.
UNASKED: Final = -1


@dataclass(frozen=True, slots=True)
class SignalBatch:
    """The claims of one source at one time about m pages; columns of length m, maybe 0.

    Attributes:
        source: its number.
        asked: the row of the page under which the source is polled; :data:`UNASKED`: none.
        at: day.
        row: the pages with another claim than last time.
        since, until: days between which each of these has changed last, by its claim.
    """

    source: int
    asked: int
    at: float
    row: Rows
    since: Floats
    until: Floats

    @classmethod
    def silent(cls, source: int, asked: int, at: float) -> SignalBatch:
        """Return the signal of a source that repeated its last claims."""
        none = np.empty(0)
        return cls(source, asked, at, row=none.astype(np.intp), since=none, until=none)

    def take(self, some: Rows) -> SignalBatch:
        """Return the claims about these pages."""
        return replace(self, row=self.row[some], since=self.since[some], until=self.until[some])

    def events(self) -> tuple[Rows, Rows]:
        """Return an order in which pages that changed together are adjacent, and event numbers.

        One build of a site, or one edit, shows as one time. Both are (m,); numbers count from 0.
        """
        order = np.lexsort((self.row, self.since, self.until))
        parted = (np.diff(self.since[order]) != 0) | (np.diff(self.until[order]) != 0)
        return order, np.concatenate([np.zeros(min(1, len(order)), np.intp), np.cumsum(parted)])
