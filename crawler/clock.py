"""The clock seam: the time now, and waiting."""

import asyncio
import time
from collections.abc import Callable
from math import inf
from typing import Final, Protocol

#: How much faster or slower than true time may pass until it agrees with the machine's clock: a
#: budget an hour stays within two parts in a hundred.
_SLEW: Final = 0.01


class Clock(Protocol):
    """A clock that can wait."""

    def now(self) -> float:
        """Return Unix seconds (UTC)."""

    def go_on_from(self, at: float) -> None:
        """Continue from ``at``, a recorded time, if the machine's clock was set back since."""

    async def wait(self, changed: asyncio.Event, until: float, *, idle: bool) -> bool:
        """Wait until the event is set or the time is ``until``; return whether the event was set.

        ``idle``: nothing under way could set the event, except signals from outside.
        """


def _steady() -> float:
    """Return seconds that include the machine's sleep and that nobody can set."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


class SteadyClock:
    """The wall clock, without its jumps.

    *Invariant.* Time never goes back, and intervals are true to a hundredth. Consequence: a delay
    holds although the machine's clock is set meanwhile, the machine's sleep counts, and after
    months the time is still the machine's.
    """

    def __init__(
        self, *, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _steady
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._at = wall()
        self._read_at = steady()

    def now(self) -> float:
        """Return Unix seconds (UTC)."""
        read_at = self._steady()
        passed = read_at - self._read_at
        self._read_at = read_at
        behind = self._wall() - (self._at + passed)
        self._at += passed + max(-_SLEW * passed, min(_SLEW * passed, behind))
        return self._at

    def go_on_from(self, at: float) -> None:
        """Implement :class:`Clock`; then time runs slower until the machine's clock agrees."""
        self._at = max(self.now(), at)

    async def wait(self, changed: asyncio.Event, until: float, *, idle: bool) -> bool:
        """Implement :class:`Clock`; ``idle`` does not matter."""
        try:
            async with asyncio.timeout(None if until == inf else until - self.now()):
                await changed.wait()
        except TimeoutError:
            return False
        return True


class VirtualClock:
    """A clock that stands still during work, and jumps when the program is idle."""

    def __init__(self, at: float) -> None:
        self._at = at

    def now(self) -> float:
        """Return the virtual time in Unix seconds."""
        return self._at

    def go_on_from(self, at: float) -> None:
        """Implement :class:`Clock`."""
        self._at = max(self._at, at)

    async def wait(self, changed: asyncio.Event, until: float, *, idle: bool) -> bool:
        """Implement :class:`Clock`; if idle, jump to ``until`` at once.

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
