"""Clocks (real and virtual), waiting, and turns of the event loop."""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from math import inf
from typing import Final, Protocol

log = logging.getLogger(__name__)

#: Largest slew: the clock runs at most 1 % faster or slower until it agrees with the machine's
#: clock, so a budget per hour stays within 2 %.
_SLEW: Final = 0.01
#: A larger difference would make recorded times wrong for days: the clock is stepped at once.
STEP_S: Final = 3_600.0

#: Range of times whose year has four digits in every time zone.
_FIRST_AT: Final = datetime(1001, 1, 1, tzinfo=UTC).timestamp()
_LAST_AT: Final = datetime(9999, 1, 1, tzinfo=UTC).timestamp() - 1.0

#: Matches JSON keys whose values are times.
_TIME_NAME: Final = re.compile(r"(?:^|_)(?:at|since|until|not_before)$")


def calendar(at: float) -> datetime:
    """Return a time in UTC, clipped to the years 1001 to 9998: sites state arbitrary times."""
    return datetime.fromtimestamp(max(_FIRST_AT, min(_LAST_AT, at)), UTC)


def iso(at: float) -> str:
    """Return a time in ISO 8601, UTC, to the microsecond."""
    return calendar(at).isoformat(timespec="microseconds").replace("+00:00", "Z")


def dated(value: object, name: str = "") -> object:
    """Return JSON data with all times in ISO 8601; ``name`` is the key of the value."""
    if isinstance(value, Mapping):
        return {key: dated(each, str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [dated(each, name) for each in value]
    if isinstance(value, int | float) and _TIME_NAME.search(name):
        return iso(value)
    return value


_UNITS_S: Final = {"min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(min|h|d|w)")


def moment_of(text: str, now: float) -> float:
    """Return Unix seconds of ``2d`` (two days ago), ``90min``, ``12h``, ``1w``, or of a date.

    A date (ISO 8601) without a time zone is local. Raises ValueError at any other text.
    """
    span = _SPAN.fullmatch(text.strip())
    if span is not None:
        return max(now - float(span[1]) * _UNITS_S[span[2]], 0.0)
    try:
        return datetime.fromisoformat(text.strip()).astimezone().timestamp()
    except (ValueError, OverflowError, OSError) as error:
        accepted = "90min, 12h, 2d, 1w or 2026-03-31T12:00"
        raise ValueError(f"{text}: not a moment; accepted are {accepted}") from error


class Clock(Protocol):
    """A clock that can wait."""

    def now(self) -> float:
        """Return Unix seconds (UTC)."""

    def go_on_from(self, at: float) -> None:
        """Continue from ``at``, a recorded time, if the machine's clock is behind it."""

    def on_step(self, shift: Callable[[float], None]) -> None:
        """Call ``shift`` with the seconds of each jump before :meth:`now` returns the new time."""

    async def wait(self, changed: asyncio.Event, until: float, *, idle: bool) -> bool:
        """Wait until the event is set or the time is ``until``; return whether the event was set.

        ``idle``: no work under way can set the event; only external signals can.
        """


async def pause(clock: Clock, seconds: float, ended: asyncio.Event | None = None) -> None:
    """Wait for a number of seconds of a clock, or until the event is set."""
    changed = asyncio.Event() if ended is None else ended
    await clock.wait(changed, clock.now() + seconds, idle=True)


_BOOT_TIME: Final = getattr(time, "CLOCK_BOOTTIME", None)
#: A monotonic clock in seconds; includes suspend where the system has CLOCK_BOOTTIME.
_steady: Final[Callable[[], float]] = (
    time.monotonic if _BOOT_TIME is None else partial(time.clock_gettime, _BOOT_TIME)
)


class SteadyClock:
    """The wall clock, without jumps of less than an hour.

    *Invariant.* Except for longer jumps, which :meth:`on_step` reports, time never decreases, and
    intervals are correct within 1 %. Consequence: delays are kept when the machine's clock is
    set, suspended time counts, and the time differs from the machine's by an hour at most.
    """

    def __init__(
        self, *, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _steady
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._at = wall()
        self._read_at = steady()
        self._shifts: list[Callable[[float], None]] = []

    def now(self) -> float:
        """Return Unix seconds (UTC)."""
        read_at = self._steady()
        passed = read_at - self._read_at
        self._read_at = read_at
        behind = self._wall() - (self._at + passed)
        if not -STEP_S <= behind <= STEP_S:
            log.warning(
                "the machine's clock was set %s by %.1f h: times are recorded by it from now on, "
                "and delays keep their length",
                "back" if behind < 0 else "ahead",
                abs(behind) / 3_600,
            )
            self._at += passed + behind
            for shift in self._shifts:
                shift(behind)
            return self._at
        # Called ten times per page: min() and max() would cost as much as reading the clocks.
        most = _SLEW * passed
        if behind > most:
            behind = most
        elif behind < -most:
            behind = -most
        self._at += passed + behind
        return self._at

    def on_step(self, shift: Callable[[float], None]) -> None:
        """Implement :class:`Clock`."""
        self._shifts.append(shift)

    def go_on_from(self, at: float) -> None:
        """Implement :class:`Clock`; the clock then runs slower until the machine's agrees."""
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
    """A clock that stops during work, and jumps to the next deadline when the program is idle."""

    def __init__(self, at: float) -> None:
        self._at = at

    def now(self) -> float:
        """Return the virtual time in Unix seconds."""
        return self._at

    def go_on_from(self, at: float) -> None:
        """Implement :class:`Clock`."""
        self._at = max(self._at, at)

    def on_step(self, shift: Callable[[float], None]) -> None:
        """Implement :class:`Clock`: a virtual clock has no unexpected jumps."""

    async def wait(self, changed: asyncio.Event, until: float, *, idle: bool) -> bool:
        """Implement :class:`Clock`; if idle, jump to ``until`` at once.

        Raises:
            RuntimeError: ``until`` is inf, so the wait would never end.
        """
        if not idle:
            return await changed.wait()
        if until == inf:
            raise RuntimeError("nothing is under way, and nothing will ever be")
        self._at = max(self._at, until)
        await asyncio.sleep(0)
        return changed.is_set()


#: Interval of the heartbeat while requests are under way, and the delay of a beat (both in seconds)
#: from which on the process is taken to have been stopped, or suspended with the machine.
_BEAT_S: Final = 1.0
_LATE_S: Final = 5.0


class Standstills:
    """Total time for which this process was stopped while requests were under way.

    Attributes:
        total_s: stopped seconds so far.
    """

    def __init__(self, steady: Callable[[], float] = _steady) -> None:
        self._steady = steady
        self.total_s = self._beat_at = 0.0
        self._under_way = 0
        self._is_beating = False

    def begin(self) -> float:
        """Start watching for one request, until :meth:`end`; return ``total_s``."""
        self._under_way += 1
        if not self._is_beating:
            self._is_beating = True
            self._beat_next()
        return self.total_s

    def end(self) -> None:
        """Stop watching for one request."""
        self._under_way -= 1

    def _beat_next(self) -> None:
        self._beat_at = self._steady() + _BEAT_S
        asyncio.get_running_loop().call_later(_BEAT_S, self._beat)

    def _beat(self) -> None:
        # The beat was due before any timeout of the stopped time, so it runs before them.
        late_s = self._steady() - self._beat_at
        if late_s > _LATE_S:
            self.total_s += late_s
            log.info("this process stood still for %.0f s", late_s)
        if self._under_way:
            self._beat_next()
        else:
            self._is_beating = False


class Turns:
    """Limits one kind of work to one piece per turn of the event loop.

    Hundreds of bodies may be complete at once: other tasks run between two pages.
    """

    def __init__(self) -> None:
        self._is_taken = False
        self._queue = asyncio.Lock()

    async def take(self) -> None:
        """Wait for a turn; the piece of work follows before anything else is awaited."""
        if self._is_taken or self._queue.locked():
            async with self._queue:
                if self._is_taken:
                    await asyncio.sleep(0)
                self._take()
        else:
            self._take()

    def _take(self) -> None:
        self._is_taken = True
        asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        self._is_taken = False
