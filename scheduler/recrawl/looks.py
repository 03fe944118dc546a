"""Looks at pages, as what values pages learns from them. Pure; days are Unix days."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from freshet.scheduler.arguments import Bools, Floats
from freshet.scheduler.sources import Rows
from freshet.storage.words import Kind, Rung

_COMPARED: Final = frozenset({Kind.CHANGED, Kind.UNCHANGED})
_TELLING: Final = _COMPARED | {Kind.NEW, Kind.GONE}

#: A look at the page of a row, on a day, with what came of it.
Told: TypeAlias = tuple[int, float, Kind, Rung | None]


@dataclass(frozen=True, slots=True)
class Looks:
    """m looks in the order in which they became known; all columns have length m.

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
        """Those of a stretch, or of these places in this order."""
        return Looks(
            self.row[some], self.at[some], self.compared[some], self.changed[some],
            self.gone[some], self.moved[some],
        )  # fmt: skip

    @classmethod
    def one(
        cls, row: int, at: float, *, changed: bool | None, gone: bool = False, moved: bool = False
    ) -> Looks:
        """A single look; ``changed`` is None where nothing was compared."""
        return cls(
            np.array([row], np.intp), np.array([at]), np.array([changed is not None]),
            np.array([bool(changed)]), np.array([gone]), np.array([moved or bool(changed)]),
        )  # fmt: skip


def told(learnt: Collection[Told]) -> Looks:
    """What visits tell of changes: those that found content, or its end."""
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
    """Whether the bytes were others: neither a 304 nor the digest said that nothing changed."""
    same = kind is Kind.UNCHANGED and rung in {Rung.NOT_MODIFIED, Rung.BODY}
    return kind in _COMPARED and not same
