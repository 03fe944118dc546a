"""A store that cannot be written for a while: a daemon waits for it, and goes on."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from freshet.crawler.clock import Clock
from freshet.crawler.pool import FetchPool
from freshet.crawler.terminal import span
from freshet.storage.database import StoreUnavailable
from freshet.storage.entries import HostState
from freshet.storage.records import Acknowledged

log = logging.getLogger(__name__)

T = TypeVar("T")

#: The first wait, how it grows, and the longest one: there may be room again at any time.
_FIRST_S: Final = 60.0
_FACTOR: Final = 2.0
_LONGEST_S: Final = 900.0


class Outages:
    """Holds a pool while the store is away: disk full, failing, or locked by another program.

    *Invariant.* What could not be committed is tried again until it is, in its order, and
    nothing is fetched meanwhile. Consequence: an outage costs time, and no observation. It is
    told once when it begins and once when it ends. Who stops the daemon meanwhile gets the error
    that the last try ended with.
    """

    def __init__(self, pool: FetchPool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._since: float | None = None
        self._wait_s = _FIRST_S

    @property
    def is_on(self) -> bool:
        """Whether the store is away."""
        return self._since is not None

    async def wait(self, error: StoreUnavailable) -> None:
        """Wait until it is worth another try.

        Raises:
            StoreUnavailable: the error, if the daemon has been told to stop.
        """
        now = self._clock.now()
        if self._since is None:
            self._since = now
            self._pool.hold(while_store_is_away=True)
            log.error(
                "%s; fetching is paused until it can be written, which is tried every minute at "
                "first and every %s later",
                error.why,
                span(_LONGEST_S),
            )
        if self._pool.stopping:
            raise error
        await self._clock.wait(self._pool.told_to_stop, now + self._wait_s, idle=True)
        self._wait_s = min(_FACTOR * self._wait_s, _LONGEST_S)

    async def endure(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of ``work``, which is repeated until the store lets it."""
        while True:
            try:
                done = await work()
            except StoreUnavailable as error:
                await self.wait(error)
            else:
                self.over()
                return done

    def written(self, _batch: Sequence[Acknowledged]) -> None:
        """A batch has committed."""
        self.over()

    def over(self) -> None:
        """The store could be written."""
        if self._since is None:
            return
        away_s = self._clock.now() - self._since
        self._since, self._wait_s = None, _FIRST_S
        self._pool.hold(while_store_is_away=False)
        log.warning("the store can be written again after %s; fetching goes on", span(away_s))


# -- absences ----------------------------------------------------------------
#
# Hosts that cannot be asked for a while: told once when they go, once when they are back.

#: Shorter pauses are everyday life.
_TOLD_FROM_S: Final = 300.0


class Absences:
    """Listens to what politeness remembers; a host goes by its politeness key."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def told(self, batch: Sequence[Acknowledged]) -> None:
        """A batch has committed."""
        for item in batch:
            if item.entry.host is not None:
                self._look(item.entry.host)

    def _look(self, state: HostState) -> None:
        since = self._since.get(state.lane)
        parked_until = state.parked_until or state.last_exchange_at
        if since is None and parked_until - state.last_exchange_at >= _TOLD_FROM_S:
            self._since[state.lane] = state.last_exchange_at
            log.warning(
                "%s cannot be asked (%s, %d times in a row); it is tried ever more rarely, and its "
                "part of the budget goes to other hosts",
                state.lane,
                state.parked_reason,
                state.failures,
            )
        elif since is not None and not state.failures:
            del self._since[state.lane]
            away_s = state.last_exchange_at - since
            log.warning("%s answers again after %s", state.lane, span(away_s))


# -- hang ups ----------------------------------------------------------------
#
# SIGHUP tells a daemon to reload; until there is one it waits.


class HangUps:
    """What SIGHUP does: a daemon that is not there yet reloads as soon as it is."""

    def __init__(self) -> None:
        self._reload: Callable[[], None] | None = None
        self._is_due = False

    def told(self) -> None:
        """The signal has come."""
        if self._reload is None:
            self._is_due = True
        else:
            self._reload()

    def serve(self, reload: Callable[[], None] | None) -> None:
        """This is to be done from now on; None: nothing."""
        self._reload = reload
        if self._is_due and reload is not None:
            self._is_due = False
            reload()


@contextmanager
def heeding_hang_ups() -> Iterator[HangUps]:
    """From here on SIGHUP ends nothing."""
    hang_ups, loop = HangUps(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, hang_ups.told)
    try:
        yield hang_ups
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
