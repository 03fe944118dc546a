"""How many crawls a day politeness leaves each host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Spacing:
    """How far apart exchanges with a host are.

    ``delay_s`` is the least of every host; with ``whatever_was_learnt`` it is the delay of
    every host, even of one that asked for more. The time that an exchange itself takes is
    not counted: the capacity is what no host can exceed.
    """

    delay_s: float
    connections_per_host: int = 1
    whatever_was_learnt: bool = False

    def capacities(self, delays_s: Iterable[float | None]) -> NDArray[np.float64]:
        """Crawls per day by host, whose own delay is known or None; inf without any delay."""
        seconds = np.array([self._delay_s(own) for own in delays_s], np.float64)
        with np.errstate(divide="ignore"):
            return self.connections_per_host * _DAY_S / seconds

    def _delay_s(self, own: float | None) -> float:
        if own is None or self.whatever_was_learnt:
            return self.delay_s
        return max(self.delay_s, own)
