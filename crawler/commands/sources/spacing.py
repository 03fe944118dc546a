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
    every host, even of one that asked for more.
    """

    delay_s: float
    connections_per_host: int = 1
    whatever_was_learnt: bool = False

    def capacities(
        self, delays_s: Iterable[float | None], exchanges_s: Iterable[float] | float = 0.0
    ) -> NDArray[np.float64]:
        """Crawls per day by host, whose own delay is known or None; inf without any delay.

        ``exchanges_s`` is how long an exchange with each takes; 0 gives what no host can exceed.
        """
        seconds = np.array([self._delay_s(own) for own in delays_s], np.float64)
        seconds += np.array(exchanges_s if isinstance(exchanges_s, float) else list(exchanges_s))
        with np.errstate(divide="ignore"):
            return self.connections_per_host * _DAY_S / seconds

    def _delay_s(self, own: float | None) -> float:
        if own is None or self.whatever_was_learnt:
            return self.delay_s
        return max(self.delay_s, own)
