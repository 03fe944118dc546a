"""The clock seam: Unix time that never jumps while a crawl runs."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time; waiting is the event loop's business."""

    def now(self) -> float:
        """Unix seconds (UTC)."""


class SteadyClock:
    """The wall clock at the start, carried on by the monotonic clock.

    Consequence: a delay is a delay although the machine's clock is set meanwhile.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Unix seconds (UTC)."""
        return self._offset + time.monotonic()
