"""Looks at pages, as what values pages learns from them. Pure; days are Unix days."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from scheduler.arguments import Bools, Floats
from scheduler.sources import Rows
from storage.records import Kind

_COMPARED: Final = frozenset({Kind.CHANGED, Kind.UNCHANGED})
_TELLING: Final = _COMPARED | {Kind.NEW, Kind.GONE}


@dataclass(frozen=True, slots=True)
class Looks:
    """m looks in the order in which they became known; all columns have length m.

    Attributes:
        row: of the page.
        at: day.
        compared: whether there was something to compare with.
        changed: whether the page had changed; False where nothing was compared.
        gone: whether the page was gone.
    """

    row: Rows
    at: Floats
    compared: Bools
    changed: Bools
    gone: Bools

    def __len__(self) -> int:
        return len(self.row)

    def take(self, some: slice) -> Looks:
        """Those of a stretch."""
        return Looks(
            self.row[some], self.at[some], self.compared[some], self.changed[some], self.gone[some]
        )

    @classmethod
    def one(cls, row: int, at: float, *, changed: bool | None, gone: bool = False) -> Looks:
        """A single look; ``changed`` is None where nothing was compared."""
        return cls(
            np.array([row], np.intp), np.array([at]), np.array([changed is not None]),
            np.array([bool(changed)]), np.array([gone]),
        )  # fmt: skip


def told(learnt: Collection[tuple[int, float, Kind]]) -> Looks:
    """What visits tell of changes: those that found content, or its end."""
    looks = [look for look in learnt if look[2] in _TELLING]
    kinds = [kind for _, _, kind in looks]
    return Looks(
        np.array([row for row, _, _ in looks], np.intp),
        np.array([at for _, at, _ in looks], np.float64),
        np.array([kind in _COMPARED for kind in kinds], np.bool_),
        np.array([kind is Kind.CHANGED for kind in kinds], np.bool_),
        np.array([kind is Kind.GONE for kind in kinds], np.bool_),
    )
