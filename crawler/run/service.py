"""A daemon as a service: reports to the service manager, to monitoring and to health checks.

*Alive* is for the manager's watchdog, which kills a process that is not alive; it covers only
faults that a restart resolves. *Healthy* is for people and their monitoring; it covers everything
that keeps the copies from being refreshed, including an unavailable store and a missing network.

*Invariant.* Intended waiting (for the budget, for an unavailable store, for a drain) counts as
alive, however long it takes. *Invariant.* No scrape or health check reads the store: values are in
memory, or sampled in the background. Consequence: monitoring cannot delay fetching.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, perf_counter, thread_time
from types import MappingProxyType
from typing import Final

from freshet import __version__
from freshet.config.settings import Operation
from freshet.crawler.fetch.bounds import met
from freshet.crawler.frontier.clock import iso
from freshet.crawler.run.daemon_status import measured
from freshet.crawler.run.orders import AUDITED_S
from freshet.crawler.run.outages import StoreOutages
from freshet.crawler.run.pool import FetchPool
from freshet.crawler.run.status_recorder import StatusRecorder
from freshet.crawler.run.terminal import counted, percent, spending
from freshet.crawler.service.http import Health, HtmlPages, HttpServer
from freshet.crawler.service.metrics import DaemonPhase, Figures, Metrics, of_outlook, of_sample
from freshet.scheduler.queue.audit import Staleness
from freshet.storage.database import Database, store_errors
from freshet.storage.entries import Outlook
from freshet.storage.errors import StoreError
from freshet.storage.records import Acknowledged

log = logging.getLogger(__name__)

_BEAT_S: Final = 1.0
#: Interval of measuring the event loop's lag, which limits the resolution.
_LOOP_S: Final = 0.05
#: The watchdog is notified at half of its time, and that time is checked twice as often.
_FEEDS: Final = 2
_SAMPLE_S: Final = 15.0
#: A batch commits faster, even on a slow disk beside a reader; SQLite itself gives up after 10 s.
_COMMITS_WITHIN_S: Final = 120.0
#: The slowest request ends earlier, and then the pool looks for work.
_TURNS_WITHIN_S: Final = 900.0
#: An allowed request is sent earlier, unless no host may be visited.
_REQUESTS_WITHIN_S: Final = 600.0
_NS_PER_US: Final = 1_000
_US_PER_S: Final = 1e6
_LONGEST_STATUS: Final = 300
_NO_ENVIRONMENT: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Parts:
    """The running parts of a daemon that the service reports on."""

    pool: FetchPool
    recorder: StatusRecorder
    outages: StoreOutages
    database: Database


class _Sampled:
    """The last sampled values of a daemon that are not in memory."""

    def __init__(self) -> None:
        self.parked = self.store_bytes = self.log_bytes = 0
        self.measured: Staleness | None = None
        #: The status snapshot for which freshness was measured.
        self._measured_of: Outlook | None = None

    async def read(self, parts: _Parts) -> None:
        """Read all values; the freshness once per status snapshot.

        Raises:
            StoreError: the store cannot be read; its values stay.
        """
        self.parked = parts.pool.frontier.parked(parts.pool.clock.now())
        path = parts.database.path
        self.store_bytes = await asyncio.to_thread(_size, path)
        self.log_bytes = await asyncio.to_thread(_size, path.with_name(f"{path.name}-wal"))
        last = parts.recorder.last
        if last is None or last is self._measured_of:
            return
        with store_errors(path):
            found = await measured(parts.database.reader, last.at - AUDITED_S)
        self._measured_of = last
        self.measured = found or self.measured


class Service:
    """The reports of one daemon; they are sent while it is entered as a context.

    ``environment`` has the variables of the service manager; ``pages`` are served as well.

    Attributes:
        address: the address that it listens on, or None.
        metrics: the metrics of a scrape.
    """

    def __init__(
        self,
        operation: Operation | None = None,
        environment: Mapping[str, str] = _NO_ENVIRONMENT,
        pages: HtmlPages | None = None,
    ) -> None:
        self.address: str | None = None
        self.metrics = Metrics(__version__)
        self.metrics.stand(self._figures)
        self._manager = NotifySocket(environment, os.getpid())
        self._operation = operation
        self._listener = (
            HttpServer(operation, self.health, self.metrics.registry, pages=pages)
            if operation is not None and operation.endpoint is not None
            else None
        )
        self._beating: asyncio.Task[None] | None = None
        self._sampler: asyncio.Task[None] | None = None
        self._is_entered = self._is_lifeless = False
        self._state: DaemonPhase = "starting"
        self._liveness = LivenessJudge(monotonic())
        self._parts: _Parts | None = None
        self._turns = self._commits = 0
        self._committed_at: float | None = None
        self._fed_at = self._sampled_at = 0.0
        self._sampled = _Sampled()

    async def __aenter__(self) -> Service:
        """Listen, and start the heartbeat."""
        self._is_entered = True
        self._manager.status("opening the store, and learning from it")
        self.metrics.is_in(self._state, healthy=False)
        await self._listen()
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Report the end."""
        self.stops()
        await _ended(self._beating)
        if self._listener is not None:
            await self._listener.close()
        self._manager.close()

    # -- events of the daemon ------------------------------------------------------

    def attend(
        self, pool: FetchPool, recorder: StatusRecorder, outages: StoreOutages, database: Database
    ) -> None:
        """Report on these parts; the daemon is ready at the pool's first turn."""
        parts = self._parts = _Parts(pool, recorder, outages, database)
        if self._is_entered:
            self._sampler = asyncio.create_task(self._sampling(parts))

    async def leave(self) -> None:
        """Drop the parts, which are about to be closed."""
        self.stops()
        self._parts = None
        await _ended(self._sampler)

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """Observe a committed batch."""
        self._commits += 1
        if self._parts is not None:
            self._committed_at = self._parts.pool.clock.now()
        self.metrics.count(batch)

    @contextmanager
    def timed(self, work: str) -> Iterator[None]:
        """Measure the time of learning work, in any thread."""
        began = perf_counter()
        try:
            yield
        finally:
            self.metrics.worked(work, perf_counter() - began)

    def reloads(self) -> None:
        """Report that a reload will begin after the requests under way."""
        if self._state in {"fetching", "upkeep", "reloading"}:
            self._state = "reloading"
            self._manager.reloading()

    def reloaded(self, *, done: bool) -> None:
        """Report the end of a reload, successful or not."""
        self.metrics.reloaded(done=done)
        if self._state == "reloading":
            self._state = "fetching"
            words = self.status() if done else "not reloaded, see the log; " + self.status()
            self._manager.ready(words)

    def keeps_up(self) -> None:
        """Report the pause for the daily upkeep."""
        if self._state == "fetching":
            self._state = "upkeep"

    def stops(self) -> None:
        """Report that the daemon is stopping."""
        if self._state != "stopping":
            self._state = "stopping"
            self._manager.stopping()

    async def turn(self, _now: float) -> None:
        """Count a turn of the pool."""
        self._turns += 1
        if self._state == "starting":
            self._state = "fetching"
            self._manager.ready(self.status())
        elif self._state == "upkeep":
            self._state = "fetching"

    # -- reports -------------------------------------------------------------------

    async def health(self) -> Health:
        """Return the problems and the main figures."""
        now = monotonic()
        self._check(now)
        facts: dict[str, object] = {"state": self._state, "version": __version__}
        if self._parts is not None:
            facts |= {
                "spent": self._parts.pool.pacer.spent,
                "pages": len(self._parts.recorder.agenda.pages),
                "last_commit_at": self._committed_at,
            }
        return self._liveness.problems(now), facts

    def status(self) -> str:
        """Return the status in one line."""
        if self._parts is None:
            return self._state
        problems = self._liveness.problems(monotonic())
        pacer, last = self._parts.pool.pacer, self._parts.recorder.last
        granted = pacer.flowed(self._parts.pool.clock.now())
        words = [
            *(problem for problem in problems if not problem.startswith("it is ")),
            spending(pacer.spent, int(granted), "requests spent"),
        ]
        if pages := len(self._parts.recorder.agenda.pages):
            words.append(counted(pages, "page"))
        if last is not None and last.stale is not None:
            words.append(f"{percent(1 - last.stale)} fresh, expected")
        return "; ".join(words)

    def _figures(self) -> Figures:
        if (it := self._parts) is None:
            return {}
        pacer, agenda = it.pool.pacer, it.recorder.agenda
        return {
            "budget_requests_per_day": pacer.per_day,
            "budget_granted_requests": pacer.flowed(it.pool.clock.now()),
            "budget_spent_requests": pacer.spent,
            "budget_forgone_requests": pacer.forgone,
            "pages_watched": len(agenda.pages),
            "queue_pages": len(agenda.queue),
            "exchanges_active": it.pool.active,
            "writer_backlog_entries": it.pool.unacknowledged,
            "hosts": it.pool.frontier.host_count,
            "hosts_parked": self._sampled.parked,
            "store_bytes": {"database": self._sampled.store_bytes, "log": self._sampled.log_bytes},
            "last_commit_timestamp_seconds": self._committed_at,
            "store_available": not it.outages.is_on,
            "network_available": it.pool.no_network_since is None,
            "bounds_met": met,
            **of_outlook(it.recorder.last),
            **of_sample(self._sampled.measured),
        }

    # -- in the background ---------------------------------------------------------

    async def _listen(self) -> None:
        """Listen on the address of the settings; log a failure."""
        if self._listener is None or self._operation is None or not self._operation.endpoint:
            return
        try:
            self.address = await self._listener.open(*self._operation.endpoint)
        except OSError as error:
            log.warning(
                "operation.listen = %s: %s; the daemon runs without /healthz, /metrics and /v1: "
                "choose another address and restart it",
                self._operation.listen,
                os.strerror(error.errno) if error.errno else error,
            )
        else:
            log.info("listening on %s", self.address)

    async def _beat(self) -> None:
        """Measure the lag of the event loop, check the health, and notify the manager."""
        wanted_s = self._manager.watchdog_s
        beat_s = min(_BEAT_S, wanted_s / _FEEDS**2) if wanted_s else _BEAT_S
        next_s = monotonic() + beat_s
        while True:
            began, worked = monotonic(), thread_time()
            await asyncio.sleep(_LOOP_S)
            now = monotonic()
            self.metrics.lagged(max(0.0, now - began - _LOOP_S), thread_time() - worked)
            if now >= next_s:
                next_s = now + beat_s
                self.beat(now)

    def beat(self, now: float) -> None:
        """Check and report once, at a time of :func:`time.monotonic`."""
        if self._parts is not None and self._parts.pool.stopping:
            self.stops()
        self._check(now)
        self.metrics.is_in(self._state, healthy=not self._liveness.problems(now))
        wanted_s = self._manager.watchdog_s
        if wanted_s is not None and now - self._fed_at >= wanted_s / _FEEDS - _BEAT_S / 100:
            self._feed(now)
        if now - self._sampled_at >= _SAMPLE_S and self._state == "fetching":
            self._sampled_at = now
            self._manager.status(self.status())

    def _feed(self, now: float) -> None:
        """Notify the watchdog if the daemon is alive."""
        if lifeless := self._liveness.lifeless(now):
            if not self._is_lifeless:
                log.error("%s: the service manager will restart the daemon", lifeless)
            self._is_lifeless = True
            return
        self._fed_at, self._is_lifeless = now, False
        self._manager.alive()

    def _check(self, now: float) -> None:
        if (it := self._parts) is None:
            self._liveness.check(self._state, DaemonVitals(), now)
            return
        vitals = DaemonVitals(
            turns=self._turns,
            spent=it.pool.pacer.spent,
            commits=self._commits,
            backlog=it.pool.unacknowledged,
            queued=it.recorder.agenda.offered(),
            parked=self._sampled.parked,
            held=not it.pool.pacer.allows(it.pool.clock.now()),
            store_is_away=it.outages.is_on,
            no_network_since=it.pool.no_network_since,
        )
        self._liveness.check(self._state, vitals, now)

    async def _sampling(self, parts: _Parts) -> None:
        """Sample the values that are not in memory, at intervals."""
        logged = ""
        while True:
            try:
                await self._sampled.read(parts)
            except StoreError as error:
                # Log it once: it recurs every 15 s until the cause is resolved.
                if logged != str(error):
                    log.warning(
                        "%s; its size and the measured freshness keep their last values", error
                    )
                logged = str(error)
            await asyncio.sleep(_SAMPLE_S)


async def _ended(task: asyncio.Task[None] | None) -> None:
    """Cancel an endless task; raise its error if it has failed."""
    if task is None:
        return
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _size(path: Path) -> int:
    """Return the size of a file, 0 if it does not exist."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


# -- life and health ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DaemonVitals:
    """The state of a daemon at one moment; counts only grow.

    ``turns`` counts the pool's searches for work, ``spent`` the requests sent, ``commits`` the
    committed batches. ``backlog`` entries wait for a commit, ``queued`` pages for a request.
    ``held``: the budget does not allow a request yet. ``parked`` hosts get no requests.
    ``no_network_since`` is when the network went away, or None.
    """

    turns: int = 0
    spent: int = 0
    commits: int = 0
    backlog: int = 0
    queued: int = 0
    parked: int = 0
    held: bool = False
    store_is_away: bool = False
    no_network_since: float | None = None

    def turned_since(self, last: DaemonVitals) -> bool:
        """Return whether the pool has looked for work, or waits for its budget."""
        return self.held or self.turns != last.turns

    def committed_since(self, last: DaemonVitals) -> bool:
        """Return whether the writer has committed, has an empty backlog, or cannot write."""
        return self.store_is_away or not self.backlog or self.commits != last.commits

    def requested_since(self, last: DaemonVitals) -> bool:
        """Return whether requests were sent, or none had to be."""
        return self.held or not self.queued or self.spent != last.spent


class LivenessJudge:
    """Judges successive vitals; ``now`` is in seconds of any monotonic clock."""

    def __init__(self, now: float) -> None:
        self._last = DaemonVitals()
        self._state: DaemonPhase = "starting"
        self._turned_at = self._committed_at = self._requested_at = now

    def check(self, state: DaemonPhase, vitals: DaemonVitals, now: float) -> None:
        """Record the progress since the last call."""
        last, self._last, self._state = self._last, vitals, state
        waits = vitals.store_is_away or state != "fetching"
        if waits or vitals.turned_since(last):
            self._turned_at = now
        if vitals.committed_since(last):
            self._committed_at = now
        if waits or vitals.requested_since(last):
            self._requested_at = now

    def lifeless(self, now: float) -> str | None:
        """Return the fault that only a restart resolves, or None if the daemon is alive."""
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
        """Return the problems in sentences; empty if the daemon is healthy."""
        found = []
        if self._state in {"starting", "stopping"}:
            found.append(f"it is {self._state}")
        if self._last.store_is_away:
            found.append("the store is unavailable, and fetching is paused until it can be written")
        if (since := self._last.no_network_since) is not None:
            found.append(f"no network since {iso(since)[:19]}Z; one host is tried every 30 s")
        if lifeless := self.lifeless(now):
            found.append(lifeless)
        idle_s = now - self._requested_at
        if idle_s > _REQUESTS_WITHIN_S:
            found.append(
                f"nothing has been fetched for {idle_s:.0f} s although pages are due and the "
                f"budget allows it; hosts parked: {self._last.parked}"
            )
        return found


# -- the service manager -----------------------------------------------------


class NotifySocket:
    """Notification of the service manager (sd_notify(3)); without one it does nothing.

    A datagram of ``NAME=value`` lines is sent to the socket that ``NOTIFY_SOCKET`` names. It is
    implemented here because libraries for it depend on the journal.

    Attributes:
        watchdog_s: seconds within which the manager expects a notification, or None.
    """

    def __init__(self, environment: Mapping[str, str], process: int) -> None:
        """Read the manager's variables for the process with this id."""
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._socket: socket.socket | None = None
        self._is_deaf = False
        self._status = ""
        self.watchdog_s = _watchdog_s(environment, process) if self._address else None
        if self._address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            # A manager that does not read must not block the event loop.
            self._socket.setblocking(False)

    def ready(self, status: str) -> None:
        """Report that the service is ready, at the start or after :meth:`reloading`."""
        self._send("READY=1", self._status_line(status))

    def reloading(self) -> None:
        """Report that the settings are being read again; :meth:`ready` must follow."""
        now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // _NS_PER_US
        self._send("RELOADING=1", f"MONOTONIC_USEC={now_us}")

    def stopping(self) -> None:
        """Report that the service is about to end."""
        self._send("STOPPING=1", self._status_line("stopping: waiting for requests under way"))

    def status(self, status: str) -> None:
        """Report the current work in one line for people."""
        before = self._status
        line = self._status_line(status)
        if self._status != before:
            self._send(line)

    def alive(self) -> None:
        """Notify the watchdog."""
        self._send("WATCHDOG=1")

    def close(self) -> None:
        """Close the socket; later reports are dropped."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _status_line(self, status: str) -> str:
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
    """Return a path, or an abstract name, which starts with a zero byte in the kernel."""
    if name.startswith("@"):
        return "\0" + name[1:]
    return name if name.startswith("/") else ""


def _watchdog_s(environment: Mapping[str, str], process: int) -> float | None:
    micros = environment.get("WATCHDOG_USEC", "")
    meant_for = environment.get("WATCHDOG_PID", str(process))
    if not micros.isdigit() or not int(micros) or meant_for != str(process):
        return None
    return int(micros) / _US_PER_S
