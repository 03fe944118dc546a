"""Interruptions of a daemon: an unwritable store, unreachable hosts, and SIGHUP."""

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

#: The first wait, its growth, and the longest: the disk may have room again at any time.
_FIRST_S: Final = 60.0
_FACTOR: Final = 2.0
_LONGEST_S: Final = 900.0


class StoreOutages:
    """Holds a pool while the store is unavailable: disk full, failing, or locked by a program.

    *Invariant.* Entries are written again in their order until they are committed, and nothing is
    fetched meanwhile. Consequence: an outage costs time, and no observation. It is logged when it
    begins and when it ends. A stop during an outage ends with the error of the last try.
    """

    def __init__(self, pool: FetchPool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._since: float | None = None
        self._wait_s = _FIRST_S

    @property
    def is_on(self) -> bool:
        """True while the store is unavailable."""
        return self._since is not None

    async def wait(self, error: StoreUnavailable) -> None:
        """Wait until the next try.

        Raises:
            StoreUnavailable: the error, if the daemon has been told to stop.
        """
        now = self._clock.now()
        if self._since is None:
            self._since = now
            self._pool.hold(while_store_is_away=True)
            log.error(
                "%s; fetching is paused until the store can be written (next try in a minute, "
                "later every %s)",
                error.why,
                span(_LONGEST_S),
            )
        if self._pool.stopping:
            raise error
        await self._clock.wait(self._pool.told_to_stop, now + self._wait_s, idle=True)
        self._wait_s = min(_FACTOR * self._wait_s, _LONGEST_S)

    async def endure(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do ``work``, and repeat it until the store is available."""
        while True:
            try:
                done = await work()
            except StoreUnavailable as error:
                await self.wait(error)
            else:
                self.over()
                return done

    def written(self, _batch: Sequence[Acknowledged]) -> None:
        """Observe a committed batch."""
        self.over()

    def over(self) -> None:
        """End the outage, if there is one."""
        if self._since is None:
            return
        away_s = self._clock.now() - self._since
        self._since, self._wait_s = None, _FIRST_S
        self._pool.hold(while_store_is_away=False)
        log.warning("the store can be written again after %s; fetching goes on", span(away_s))


# -- unreachable hosts -------------------------------------------------------

#: Shorter pauses are usual.
_LOGGED_FROM_S: Final = 300.0


class UnreachableHosts:
    """Logs once when a host becomes unreachable, and once when it answers again."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """Observe a committed batch."""
        for item in batch:
            if item.entry.host is not None:
                self._check(item.entry.host)

    def _check(self, state: HostState) -> None:
        since = self._since.get(state.lane)
        parked_until = state.parked_until or state.last_exchange_at
        if since is None and parked_until - state.last_exchange_at >= _LOGGED_FROM_S:
            self._since[state.lane] = state.last_exchange_at
            log.warning(
                "%s is unreachable (%s, %d times in a row); it is tried less and less often, and "
                "its part of the budget goes to other hosts",
                state.lane,
                state.parked_reason,
                state.failures,
            )
        elif since is not None and not state.failures:
            del self._since[state.lane]
            away_s = state.last_exchange_at - since
            log.warning("%s answers again after %s", state.lane, span(away_s))


# -- SIGHUP ------------------------------------------------------------------


class ReloadSignals:
    """The handler of SIGHUP; an early signal waits until the daemon can reload."""

    def __init__(self) -> None:
        self._reload: Callable[[], None] | None = None
        self._is_due = False

    def received(self) -> None:
        """Handle the signal."""
        if self._reload is None:
            self._is_due = True
        else:
            self._reload()

    def serve(self, reload: Callable[[], None] | None) -> None:
        """Call ``reload`` at each signal from now on; None: ignore them."""
        self._reload = reload
        if self._is_due and reload is not None:
            self._is_due = False
            reload()


@contextmanager
def handling_reload_signals() -> Iterator[ReloadSignals]:
    """Handle SIGHUP, which would end the process, while the block runs."""
    signals, loop = ReloadSignals(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, signals.received)
    try:
        yield signals
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
