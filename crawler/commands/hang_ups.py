"""SIGHUP tells a daemon to reload; until there is one it waits."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
