"""Looks at pages, as what values pages learns from them. Pure; days are Unix days."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from freshet.scheduler.arrays import Bools, Floats
from freshet.scheduler.sources import Rows
from freshet.storage.words import Kind, Rung

_COMPARED: Final = frozenset({Kind.CHANGED, Kind.UNCHANGED})
_TELLING: Final = _COMPARED | {Kind.NEW, Kind.GONE}

#: A look at the page of a row, on a day, with what came of it.
Told: TypeAlias = tuple[int, float, Kind, Rung | None]


@dataclass(frozen=True, slots=True)
class Looks:
    """The results of m visits in the order in which they became known; columns of length m.

    Attributes:
        row: of the page.
        at: day.
        compared: whether there was something to compare with.
        changed: whether the page had changed; False where nothing was compared.
        gone: whether the page was gone.
        moved: whether its bytes were others than before, changed or not.
    """

    row: Rows
    at: Floats
    compared: Bools
    changed: Bools
    gone: Bools
    moved: Bools

    def __len__(self) -> int:
        return len(self.row)

    def take(self, some: slice | Rows) -> Looks:
        """Return the visits of a slice, or at these places in this order."""
        return Looks(
            self.row[some], self.at[some], self.compared[some], self.changed[some],
            self.gone[some], self.moved[some],
        )  # fmt: skip

    @classmethod
    def one(
        cls, row: int, at: float, *, changed: bool | None, gone: bool = False, moved: bool = False
    ) -> Looks:
        """Return a single visit; ``changed`` is None where nothing was compared."""
        return cls(
            np.array([row], np.intp), np.array([at]), np.array([changed is not None]),
            np.array([bool(changed)]), np.array([gone]), np.array([moved or bool(changed)]),
        )  # fmt: skip


def told(learnt: Collection[Told]) -> Looks:
    """Return the visits that found content, or its end."""
    looks = [look for look in learnt if look[2] in _TELLING]
    kinds = [look[2] for look in looks]
    return Looks(
        np.array([look[0] for look in looks], np.intp),
        np.array([look[1] for look in looks], np.float64),
        np.array([kind in _COMPARED for kind in kinds], np.bool_),
        np.array([kind is Kind.CHANGED for kind in kinds], np.bool_),
        np.array([kind is Kind.GONE for kind in kinds], np.bool_),
        np.array([_moved(look[2], look[3]) for look in looks], np.bool_),
    )


def _moved(kind: Kind, rung: Rung | None) -> bool:
    """Return whether the bytes differed: no 304 and no equal digest."""
    same = kind is Kind.UNCHANGED and rung in {Rung.NOT_MODIFIED, Rung.BODY}
    return kind in _COMPARED and not same


# -- hearing -----------------------------------------------------------------
#
# What sources of claims have said, as what values pages hears it. Pure; days are Unix days.

#: The source speaks when it likes; nobody asks it.
UNASKED: Final = -1


@dataclass(frozen=True, slots=True)
class Hearing:
    """The claims of one source at one time about m pages; columns of length m, maybe 0.

    Attributes:
        source: a small number for each source, its own.
        asked: the row of the page under which the source is asked; :data:`UNASKED`: none.
        at: day.
        row: the pages of which it says something else than last time.
        since, until: days between which each of these has changed last, it says.
    """

    source: int
    asked: int
    at: float
    row: Rows
    since: Floats
    until: Floats

    @classmethod
    def silent(cls, source: int, asked: int, at: float) -> Hearing:
        """Return the signal of a source that repeated its last claims."""
        return cls(source, asked, at, np.empty(0, np.intp), np.empty(0), np.empty(0))

    def take(self, some: Rows) -> Hearing:
        """Return the claims about these pages."""
        return Hearing(
            self.source, self.asked, self.at, self.row[some], self.since[some], self.until[some]
        )

    def events(self) -> tuple[Rows, Rows]:
        """Return an order in which pages that changed together are adjacent, and event numbers.

        One build of a site, or one edit, shows as one time. Returns (m,) places and (m,) numbers
        of events from 0, in that order.
        """
        order = np.lexsort((self.row, self.since, self.until))
        parted = (np.diff(self.since[order]) != 0) | (np.diff(self.until[order]) != 0)
        return order, np.concatenate([np.zeros(min(1, len(order)), np.intp), np.cumsum(parted)])
