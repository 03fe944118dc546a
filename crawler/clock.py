"""The clock seam: what time it is, and waiting for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from math import inf
from typing import Final, Protocol

#: How much faster or slower than true time may pass until it agrees with the machine's clock: a
#: budget an hour stays within two parts in a hundred.
_SLEW: Final = 0.01


class Clock(Protocol):
    """Tells the time, and waits."""

    def now(self) -> float:
        """Unix seconds (UTC)."""

    def go_on_from(self, at: float) -> None:
        """It is ``at`` by now, or later: that was written down before the clock was set back."""

    async def wait(self, changed: asyncio.Event, until: float, *, idle: bool) -> bool:
        """Wait until the event is set or it is ``until``; whether the event was set.

        ``idle``: nothing is under way that could set it, but signals from outside.
        """


def _steady() -> float:
    """Seconds that go on while the machine sleeps, and nobody can set."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


class SteadyClock:
    """The wall clock, without its jumps.

    *Invariant.* Time never goes back, and between two readings passes as it truly did, to a
    hundredth. Consequence: a delay is a delay although the machine's clock is set meanwhile, the
    machine's sleep counts, and after months the time is still that of the machine.
    """

    def __init__(
        self, *, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _steady
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._at = wall()
        self._read_at = steady()

    def now(self) -> float:
        """Unix seconds (UTC)."""
        read_at = self._steady()
        passed = read_at - self._read_at
        self._read_at = read_at
        behind = self._wall() - (self._at + passed)
        self._at += passed + max(-_SLEW * passed, min(_SLEW * passed, behind))
        return self._at

    def go_on_from(self, at: float) -> None:
        """As :class:`Clock` says; then it is slowed down until the machine's clock agrees."""
        self._at = max(self.now(), at)

    async def wait(self, changed: asyncio.Event, until: float, *, idle: bool) -> bool:
        """As :class:`Clock` says; what is under way does not matter."""
        try:
            async with asyncio.timeout(None if until == inf else until - self.now()):
                await changed.wait()
        except TimeoutError:
            return False
        return True


class VirtualClock:
    """A clock that stands still while there is work, and jumps where there is none."""

    def __init__(self, at: float) -> None:
        self._at = at

    def now(self) -> float:
        """The virtual time in Unix seconds."""
        return self._at

    def go_on_from(self, at: float) -> None:
        """As :class:`Clock` says."""
        self._at = max(self._at, at)

    async def wait(self, changed: asyncio.Event, until: float, *, idle: bool) -> bool:
        """As :class:`Clock` says; if idle, it is ``until`` at once.

        Raises:
            RuntimeError: nothing would ever happen.
        """
        if not idle:
            return await changed.wait()
        if until == inf:
            raise RuntimeError("nothing is under way, and nothing will ever be")
        self._at = max(self._at, until)
        await asyncio.sleep(0)
        return changed.is_set()
