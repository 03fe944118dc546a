"""The notification protocol of systemd, by which a service tells its manager how it stands.

A datagram of lines ``NAME=value`` to the socket that ``NOTIFY_SOCKET`` names; see sd_notify(3). It
is small enough to be written out here, and what libraries there are bring the journal along.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Mapping
from typing import Final

log = logging.getLogger(__name__)

_NS_PER_US: Final = 1_000
_US_PER_S: Final = 1e6
_LONGEST_STATUS: Final = 300


class NotifySocket:
    """Tells the service manager; does nothing where there is none.

    Attributes:
        watchdog_s: seconds within which the manager wants a sign of life; None: it wants none.
    """

    def __init__(self, environment: Mapping[str, str], process: int) -> None:
        """Read from ``environment`` what the manager said to the process of this id."""
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._socket: socket.socket | None = None
        self._is_deaf = False
        self._status = ""
        self.watchdog_s = _watchdog_s(environment, process) if self._address else None
        if self._address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            # A manager that reads nothing must not hold the event loop up.
            self._socket.setblocking(False)

    def ready(self, status: str) -> None:
        """The service does its work from now on, or again after :meth:`reloading`."""
        self._send("READY=1", self._said(status))

    def reloading(self) -> None:
        """It is about to read its settings again; :meth:`ready` is to follow."""
        now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // _NS_PER_US
        self._send("RELOADING=1", f"MONOTONIC_USEC={now_us}")

    def stopping(self) -> None:
        """It is about to end."""
        self._send("STOPPING=1", self._said("stopping: waiting for what is under way"))

    def status(self, status: str) -> None:
        """What it is doing, in one line for people."""
        before = self._status
        said = self._said(status)
        if self._status != before:
            self._send(said)

    def alive(self) -> None:
        """A sign of life for the watchdog."""
        self._send("WATCHDOG=1")

    def close(self) -> None:
        """Nothing is told from now on."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _said(self, status: str) -> str:
        self._status = " ".join(status.split())[:_LONGEST_STATUS]
        return f"STATUS={self._status}"

    def _send(self, *lines: str) -> None:
        if self._socket is None:
            return
        try:
            self._socket.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            if not self._is_deaf:
                log.warning("the service manager cannot be told: %s", error.strerror or error)
            self._is_deaf = True
        else:
            self._is_deaf = False


def _address(name: str) -> str:
    """A path, or an abstract name, which the kernel wants to begin with a zero byte."""
    if name.startswith("@"):
        return "\0" + name[1:]
    return name if name.startswith("/") else ""


def _watchdog_s(environment: Mapping[str, str], process: int) -> float | None:
    micros = environment.get("WATCHDOG_USEC", "")
    meant_for = environment.get("WATCHDOG_PID", str(process))
    if not micros.isdigit() or not int(micros) or meant_for != str(process):
        return None
    return int(micros) / _US_PER_S
