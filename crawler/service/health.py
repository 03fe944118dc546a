"""Health of a daemon, for the service manager's watchdog and for monitoring.

*Alive* is for the watchdog, which kills a process that is not: it counts only faults that a
restart would mend. *Healthy* is for people and their monitoring: it counts all that keeps the
copy from being refreshed, also a store that is away and a network that is down.

*Invariant.* Intended waiting (for the budget, for a store that is away, for a drain) counts as
life, however long it takes.
"""

import logging
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

#: A batch commits in less, even on a slow disk beside a reader; SQLite itself gives up after 10 s.
_COMMITS_WITHIN_S: Final = 120.0
#: The slowest request ends in less, and the pool then looks for work.
_TURNS_WITHIN_S: Final = 900.0
#: A request that the budget allows is sent in less, unless no host may be visited.
_ASKS_WITHIN_S: Final = 600.0


#: The phase of a daemon.
DaemonPhase = Literal["starting", "fetching", "reloading", "upkeep", "stopping"]


@dataclass(frozen=True, slots=True)
class Vitals:
    """The state of a daemon at one moment; counts only grow.

    ``turns`` counts the pool's searches for work, ``spent`` the requests sent, ``commits`` the
    batches committed; ``backlog`` entries wait for a commit, ``queued`` pages for a request;
    ``held``: the budget allows no request yet; ``parked`` hosts get no requests.
    """

    turns: int = 0
    spent: int = 0
    commits: int = 0
    backlog: int = 0
    queued: int = 0
    parked: int = 0
    held: bool = False
    store_is_away: bool = False


class Vitality:
    """Judge of successive vitals; ``now`` is in seconds of any monotonic clock."""

    def __init__(self, now: float) -> None:
        self._last = Vitals()
        self._state: DaemonPhase = "starting"
        self._turned_at = self._committed_at = self._asked_at = now

    def check(self, state: DaemonPhase, vitals: Vitals, now: float) -> None:
        """Note the progress since the last call."""
        last, self._last, self._state = self._last, vitals, state
        waits = vitals.store_is_away or state != "fetching"
        if waits or vitals.held or vitals.turns != last.turns:
            self._turned_at = now
        if vitals.store_is_away or not vitals.backlog or vitals.commits != last.commits:
            self._committed_at = now
        if waits or vitals.held or not vitals.queued or vitals.spent != last.spent:
            self._asked_at = now

    def lifeless(self, now: float) -> str | None:
        """Return the fault that only a restart can mend; None if the daemon is alive."""
        silent_s = now - self._committed_at
        if silent_s > _COMMITS_WITHIN_S:
            return (
                f"nothing has been committed for {silent_s:.0f} s although {self._last.backlog} "
                "entries wait"
            )
        silent_s = now - self._turned_at
        if silent_s > _TURNS_WITHIN_S:
            return f"the pool has not looked for work for {silent_s:.0f} s"
        return None

    def problems(self, now: float) -> list[str]:
        """Return the problems in sentences; none if the daemon does its work."""
        found = []
        if self._state in {"starting", "stopping"}:
            found.append(f"it is {self._state}")
        if self._last.store_is_away:
            found.append("the store is unavailable, and fetching is paused until it can be written")
        if lifeless := self.lifeless(now):
            found.append(lifeless)
        idle_s = now - self._asked_at
        if idle_s > _ASKS_WITHIN_S:
            found.append(
                f"nothing has been fetched for {idle_s:.0f} s although pages are due and the "
                f"budget allows it; hosts parked: {self._last.parked}"
            )
        return found


# -- sd notify ---------------------------------------------------------------

log = logging.getLogger(__name__)

_NS_PER_US: Final = 1_000
_US_PER_S: Final = 1e6
_LONGEST_STATUS: Final = 300


class NotifySocket:
    """Notification of the service manager (sd_notify(3)); does nothing without one.

    A datagram of lines ``NAME=value`` goes to the socket that ``NOTIFY_SOCKET`` names: written out
    here, because the libraries for it bring the journal along.

    Attributes:
        watchdog_s: seconds within which the manager wants a sign of life; None: it wants none.
    """

    def __init__(self, environment: Mapping[str, str], process: int) -> None:
        """Read from ``environment`` the manager's variables for the process of this id."""
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
        """Report that the service does its work, at the start or after :meth:`reloading`."""
        self._send("READY=1", self._said(status))

    def reloading(self) -> None:
        """Report that the settings are being read again; :meth:`ready` is to follow."""
        now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // _NS_PER_US
        self._send("RELOADING=1", f"MONOTONIC_USEC={now_us}")

    def stopping(self) -> None:
        """Report that the service is about to end."""
        self._send("STOPPING=1", self._said("stopping: waiting for requests under way"))

    def status(self, status: str) -> None:
        """Report the current work in one line for people."""
        before = self._status
        said = self._said(status)
        if self._status != before:
            self._send(said)

    def alive(self) -> None:
        """Send a sign of life to the watchdog."""
        self._send("WATCHDOG=1")

    def close(self) -> None:
        """Close the socket; nothing is reported from now on."""
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
                log.warning("cannot notify the service manager: %s", error.strerror or error)
            self._is_deaf = True
        else:
            self._is_deaf = False


def _address(name: str) -> str:
    """Return a path, or an abstract name, which the kernel wants to begin with a zero byte."""
    if name.startswith("@"):
        return "\0" + name[1:]
    return name if name.startswith("/") else ""


def _watchdog_s(environment: Mapping[str, str], process: int) -> float | None:
    micros = environment.get("WATCHDOG_USEC", "")
    meant_for = environment.get("WATCHDOG_PID", str(process))
    if not micros.isdigit() or not int(micros) or meant_for != str(process):
        return None
    return int(micros) / _US_PER_S
