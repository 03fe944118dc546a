"""Looks at pages, as what values pages learns from them. Pure; days are Unix days."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.arguments import Bools, Floats
from scheduler.sources import Rows


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

    @classmethod
    def one(cls, row: int, at: float, *, changed: bool | None, gone: bool = False) -> Looks:
        """A single look; ``changed`` is None where nothing was compared."""
        return cls(
            np.array([row], np.intp), np.array([at]), np.array([changed is not None]),
            np.array([bool(changed)]), np.array([gone]),
        )  # fmt: skip
