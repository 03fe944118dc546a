"""The time of a web, which its owner sets."""

from __future__ import annotations

import time
from collections.abc import Callable


class WebClock:
    """Virtual Unix seconds: it stands still, or runs ``speed`` times as fast as real time.

    Time never goes back; ``monotonic`` is where real time comes from.
    """

    def __init__(
        self, at: float, *, speed: float = 0.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._at = at
        self._speed = speed
        self._monotonic = monotonic
        self._since = monotonic()

    def now(self) -> float:
        """The virtual time in Unix seconds."""
        if self._speed == 0:
            return self._at
        return self._at + (self._monotonic() - self._since) * self._speed

    def advance(self, seconds: float) -> float:
        """Move on by so many virtual seconds; the new time.

        Raises:
            ValueError: if that would go back.
        """
        if seconds < 0:
            raise ValueError(f"the web's time does not go back by {-seconds} s")
        self._at += seconds
        return self.now()

    def set(self, at: float) -> float:
        """Move on to a time in Unix seconds; the new time.

        Raises:
            ValueError: if that would go back.
        """
        return self.advance(at - self.now())
