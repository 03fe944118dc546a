"""Interruptions of a daemon: an unwritable store, unreachable hosts, and SIGHUP."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exponential

from freshet.crawler.frontier.clock import Clock, pause
from freshet.crawler.run.terminal import span
from freshet.storage.entries import HostState
from freshet.storage.errors import StoreError, StoreUnavailable
from freshet.storage.records import Acknowledged

if TYPE_CHECKING:
    from freshet.crawler.run.pool import FetchPool

log = logging.getLogger(__name__)

T = TypeVar("T")

#: First wait, which doubles, and longest wait: the disk may have space again at any time.
_FIRST_S: Final = 60.0
_LONGEST_S: Final = 900.0


class StoreOutages:
    """Pauses a pool while the store is unavailable: disk full, failing, or locked by a program.

    *Invariant.* Entries are written again in order until they are committed, and no request is sent
    meanwhile. Consequence: an outage costs time, but no observation. Its begin and end are logged.
    A stop during an outage ends with the error of the last attempt.
    """

    def __init__(self, pool: FetchPool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._since: float | None = None

    @property
    def is_on(self) -> bool:
        """True while the store is unavailable."""
        return self._since is not None

    async def endure(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do ``work``, and repeat it until the store is available.

        Raises:
            StoreUnavailable: the last attempt failed, and the daemon has been told to stop.
        """
        try:
            done = await work()
        except StoreUnavailable as error:
            # tenacity's retry object is a reference cycle. Using it only after a failure spares the
            # collector one cycle per visit.
            done = await self._repeated(work, error)
        self.over()
        return done

    async def _repeated(self, work: Callable[[], Awaitable[T]], error: StoreUnavailable) -> T:
        """Repeat ``work``, which has failed with ``error``."""
        stop, errors = self._pool.told_to_stop, [error]

        async def first_failed() -> T:
            if errors:
                raise errors.pop()
            return await work()

        tries = AsyncRetrying(
            retry=retry_if_exception_type(StoreUnavailable),
            wait=wait_exponential(_FIRST_S, _LONGEST_S),
            stop=lambda _: stop.is_set(),
            before_sleep=self.failed,
            sleep=lambda seconds: pause(self._clock, seconds, stop),
            reraise=True,
        )
        done: T = await tries(first_failed)
        return done

    def failed(self, tries: RetryCallState) -> None:
        """Pause the pool at the first failure."""
        if self._since is not None or tries.outcome is None:
            return
        self._since = self._clock.now()
        self._pool.hold(while_store_is_away=True)
        error = tries.outcome.exception()
        log.error(
            "%s; fetching is paused until the store can be written (next try in a minute, "
            "later every %s)",
            error.why if isinstance(error, StoreUnavailable) else error,
            span(_LONGEST_S),
        )

    def over(self) -> None:
        """End the outage, if there is one."""
        if self._since is None:
            return
        away_s = self._clock.now() - self._since
        self._since = None
        self._pool.hold(while_store_is_away=False)
        log.warning("the store can be written again after %s; fetching goes on", span(away_s))


def enduring(chore: Callable[[float], Awaitable[None]]) -> Callable[[float], Awaitable[None]]:
    """Return the chore with its exceptions logged, except errors of the store."""
    last_error = ""

    async def endured(now: float) -> None:
        nonlocal last_error
        try:
            await chore(now)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - any: it is tried again
            if last_error != (last_error := repr(error)):
                log.error("a chore of the daemon failed (%s); it is tried again", last_error)  # noqa: TRY400
        else:
            last_error = ""

    return endured


# -- unreachable hosts -------------------------------------------------------

#: Shorter pauses are usual.
_PAUSE_LOGGED_FROM_S: Final = 300.0


def unreachable_hosts() -> Callable[[Sequence[Acknowledged]], None]:
    """Return an observer that logs when a host becomes unreachable, and when it answers again."""
    unreachable_since: dict[str, float] = {}

    def check(state: HostState) -> None:
        since, last_at = unreachable_since.get(state.queue), state.last_exchange_at
        if last_at is None:
            return
        parked_until = state.parked_until or last_at
        if since is None and parked_until - last_at >= _PAUSE_LOGGED_FROM_S:
            unreachable_since[state.queue] = last_at
            log.warning(
                "%s is unreachable (%s, %d times in a row); it is tried less and less often, and "
                "its share of the budget goes to other hosts",
                state.queue,
                state.parked_reason,
                state.failures,
            )
        elif since is not None and not state.failures:
            del unreachable_since[state.queue]
            away_s = last_at - since
            log.warning("%s answers again after %s", state.queue, span(away_s))

    def committed(batch: Sequence[Acknowledged]) -> None:
        for item in batch:
            if item.entry.host is not None:
                check(item.entry.host)

    return committed


# -- SIGHUP ------------------------------------------------------------------


@contextmanager
def handling_reload_signals() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Handle SIGHUP, which would end the process, while the block runs.

    Yield a function that sets the handler. If a signal has arrived before, it is called at once.
    """
    early, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, early.set)

    def serve(reload: Callable[[], None]) -> None:
        loop.add_signal_handler(signal.SIGHUP, reload)
        if early.is_set():
            reload()

    try:
        yield serve
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
