"""What was refused, counted by reason and told at most once a minute."""

from __future__ import annotations

import logging
from collections import Counter
from math import inf

log = logging.getLogger(__name__)

_EVERY_S = 60.0


class Refusals:
    """Counts; ``total`` is by reason since the beginning."""

    def __init__(self) -> None:
        self.total: Counter[str] = Counter()
        self._untold: Counter[str] = Counter()
        self._example: dict[str, str] = {}
        self._told_at = -inf

    def count(self, why: str, source: str) -> None:
        """Something from this address was refused."""
        self.total[why] += 1
        self._untold[why] += 1
        self._example[why] = source

    def tell(self, now: float, *, at_once: bool = False) -> None:
        """Log what was refused since, in one line, unless a line has just been logged."""
        if not self._untold or (now < self._told_at + _EVERY_S and not at_once):
            return
        reasons = ", ".join(
            f"{why} {count:,} (last from {self._example[why]})"
            for why, count in self._untold.most_common()
        )
        log.warning("pushed and refused: %s", reasons)
        self._told_at = now
        self._untold.clear()
        self._example.clear()
