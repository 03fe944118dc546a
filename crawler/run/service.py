"""A daemon as a service: what its manager, its monitoring and its health checks are told.

*Invariant.* Nothing here reads the store for a request: what a scrape tells is in memory, and what
is not is sampled in between. Consequence: nobody who asks can hold fetching up.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, perf_counter
from types import MappingProxyType
from typing import Final

from freshet.config.settings import Operation
from freshet.crawler import __version__
from freshet.crawler.clock import Clock
from freshet.crawler.frontier import Frontier
from freshet.crawler.pacing import Pacer
from freshet.crawler.pool import FetchPool
from freshet.crawler.run.notes import Noting
from freshet.crawler.run.outages import Outages
from freshet.crawler.run.standing import measured
from freshet.crawler.service.health import DaemonPhase, NotifySocket, Vitality, Vitals
from freshet.crawler.service.listener import Health, HealthListener
from freshet.crawler.service.metrics import Figures, MeasuredFreshness, Metrics
from freshet.crawler.terminal import counted, percent
from freshet.scheduler.agenda.recrawl import RecrawlAgenda
from freshet.storage.database import Database, StoreError, store_errors
from freshet.storage.entries import Outlook
from freshet.storage.records import Acknowledged

log = logging.getLogger(__name__)

_BEAT_S: Final = 1.0
#: The manager's watchdog is fed at half of its time, which must be met: looked at twice as often.
_FEEDS: Final = 2
_SAMPLE_S: Final = 15.0
_NOBODY: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Parts:
    """The running parts of a daemon that are told of."""

    pool: FetchPool
    frontier: Frontier
    agenda: RecrawlAgenda
    pacer: Pacer
    noting: Noting
    outages: Outages
    clock: Clock
    database: Database


class Service:
    """What the outside sees of one daemon, from the moment that it is entered.

    Unless it is entered it only counts. ``environment`` is what the service manager said.

    Attributes:
        address: where it listens, None if nowhere.
        metrics: what a scrape tells.
    """

    def __init__(
        self, operation: Operation | None = None, environment: Mapping[str, str] = _NOBODY
    ) -> None:
        self.address: str | None = None
        self.metrics = Metrics(__version__)
        self.metrics.stand(self._figures)
        self._manager = NotifySocket(environment, os.getpid())
        self._operation = operation
        names = operation.host_names if operation is not None else ()
        self._listener = HealthListener(self.metrics.registry, self.health, names)
        self._beating: asyncio.Task[None] | None = None
        self._sampler: asyncio.Task[None] | None = None
        self._is_entered = self._is_lifeless = False
        self._state = DaemonPhase.STARTING
        self._vitality = Vitality(monotonic())
        self._parts: Parts | None = None
        self._turns = self._commits = self._parked = self._store_bytes = self._log_bytes = 0
        self._committed_at: float | None = None
        self._fed_at = self._sampled_at = 0.0
        self._measured: MeasuredFreshness | None = None
        self._measured_of: Outlook | None = None

    async def __aenter__(self) -> Service:
        """Listen, and let the heart beat."""
        self._is_entered = True
        self._manager.status("opening the store, and learning from it")
        self.metrics.is_in(self._state, healthy=False)
        await self._listen()
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Tell that it is over."""
        self.stops()
        await _ended(self._beating)
        await self._listener.close()
        self._manager.close()

    # -- what the daemon says ------------------------------------------------------

    def attend(self, parts: Parts) -> None:
        """Tell of these parts from now on; it is ready when their pool first looks for work."""
        self._parts = parts
        parts.pool.chores.insert(0, self._turn)
        if self._is_entered:
            self._sampler = asyncio.create_task(self._sampling(parts))

    async def leave(self) -> None:
        """The parts are about to be closed."""
        self.stops()
        self._parts = None
        await _ended(self._sampler)

    def committed(self, batch: Sequence[Acknowledged]) -> None:
        """A batch has committed."""
        self._commits += 1
        if self._parts is not None:
            self._committed_at = self._parts.clock.now()
        self.metrics.count(batch)

    @contextmanager
    def timed(self, work: str) -> Iterator[None]:
        """Measure a piece of learning, in whatever thread it is done."""
        began = perf_counter()
        try:
            yield
        finally:
            self.metrics.worked(work, perf_counter() - began)

    def reloads(self) -> None:
        """A reload was asked for, and begins when the exchanges under way have ended."""
        if self._state in {DaemonPhase.FETCHING, DaemonPhase.UPKEEP, DaemonPhase.RELOADING}:
            self._state = DaemonPhase.RELOADING
            self._manager.reloading()

    def reloaded(self, *, done: bool) -> None:
        """A reload was followed, or could not be."""
        self.metrics.reloaded(done=done)
        if self._state is DaemonPhase.RELOADING:
            self._state = DaemonPhase.FETCHING
            words = self.status() if done else "not reloaded, see the log; " + self.status()
            self._manager.ready(words)

    def keeps_up(self) -> None:
        """Fetching pauses for the upkeep of a day."""
        if self._state is DaemonPhase.FETCHING:
            self._state = DaemonPhase.UPKEEP

    def stops(self) -> None:
        """The daemon is about to end."""
        if self._state is not DaemonPhase.STOPPING:
            self._state = DaemonPhase.STOPPING
            self._manager.stopping()

    async def _turn(self, _now: float) -> None:
        """Note that the pool looks for work."""
        self._turns += 1
        if self._state is DaemonPhase.STARTING:
            self._state = DaemonPhase.FETCHING
            self._manager.ready(self.status())
        elif self._state is DaemonPhase.UPKEEP:
            self._state = DaemonPhase.FETCHING

    # -- what others are told ------------------------------------------------------

    def health(self) -> Health:
        """What is wrong now, and how it stands."""
        now = monotonic()
        self._look(now)
        facts: dict[str, object] = {"state": self._state, "version": __version__}
        if self._parts is not None:
            facts |= {
                "spent": self._parts.pacer.spent,
                "pages": len(self._parts.agenda.pages),
                "last_commit_at": self._committed_at,
            }
        return Health(self._vitality.problems(now), facts)

    def status(self) -> str:
        """How it stands, in one line for people."""
        if self._parts is None:
            return str(self._state)
        problems = self._vitality.problems(monotonic())
        pacer, last = self._parts.pacer, self._parts.noting.last
        granted = pacer.flowed(self._parts.clock.now())
        words = [
            *(problem for problem in problems if not problem.startswith("it is ")),
            f"{pacer.spent:,} of {int(granted):,} requests spent",
        ]
        if pages := len(self._parts.agenda.pages):
            words.append(counted(pages, "page"))
        if last is not None and last.stale is not None:
            words.append(f"{percent(1 - last.stale)} fresh, expected")
        return "; ".join(words)

    def _figures(self) -> Figures | None:
        if (it := self._parts) is None:
            return None
        granted = it.pacer.flowed(it.clock.now())
        return Figures(
            it.pacer.per_day, granted, it.pacer.spent, it.pacer.forgone,
            len(it.agenda.pages), it.agenda.queued, it.pool.active, it.pool.unacknowledged,
            it.frontier.host_count, self._parked, self._store_bytes, self._log_bytes,
            it.outages.is_on, self._committed_at, it.noting.last, self._measured,
        )  # fmt: skip

    # -- in the background ---------------------------------------------------------

    async def _listen(self) -> None:
        """Listen where it was asked for; a place that is taken is told, and no more."""
        if self._operation is None or self._operation.endpoint is None:
            return
        try:
            self.address = await self._listener.open(*self._operation.endpoint)
        except OSError as error:
            log.warning(
                "operation.listen = %s: %s; there is no /healthz and no /metrics, the daemon goes "
                "on without",
                self._operation.listen,
                os.strerror(error.errno) if error.errno else error,
            )
        else:
            log.info("listening on %s", self.address)

    async def _beat(self) -> None:
        """Measure how late the event loop is, look how things stand, and tell the manager."""
        wanted_s = self._manager.watchdog_s
        beat_s = min(_BEAT_S, wanted_s / _FEEDS**2) if wanted_s else _BEAT_S
        while True:
            began = monotonic()
            await asyncio.sleep(beat_s)
            now = monotonic()
            self.metrics.lagged(max(0.0, now - began - beat_s))
            self.beat(now)

    def beat(self, now: float) -> None:
        """One beat, at a time of :func:`time.monotonic`."""
        if self._parts is not None and self._parts.pool.stopping:
            self.stops()
        self._look(now)
        self.metrics.is_in(self._state, healthy=not self._vitality.problems(now))
        wanted_s = self._manager.watchdog_s
        if wanted_s is not None and now - self._fed_at >= wanted_s / _FEEDS - _BEAT_S / 100:
            self._feed(now)
        if now - self._sampled_at >= _SAMPLE_S and self._state is DaemonPhase.FETCHING:
            self._sampled_at = now
            self._manager.status(self.status())

    def _feed(self, now: float) -> None:
        """Tell the watchdog that it is alive, if it is."""
        if lifeless := self._vitality.lifeless(now):
            if not self._is_lifeless:
                log.error("%s: the service manager is to start the daemon anew", lifeless)
            self._is_lifeless = True
            return
        self._fed_at, self._is_lifeless = now, False
        self._manager.alive()

    def _look(self, now: float) -> None:
        if (it := self._parts) is None:
            return
        vitals = Vitals(
            self._turns, it.pacer.spent, self._commits, it.pool.unacknowledged, it.agenda.queued,
            self._parked, not it.pacer.allows(it.clock.now()), it.outages.is_on,
        )  # fmt: skip
        self._vitality.look(self._state, vitals, now)

    async def _sampling(self, parts: Parts) -> None:
        """Learn from time to time what takes longer than a look into memory."""
        told = ""
        while True:
            try:
                await self._sample(parts)
            except StoreError as error:
                # Once: it comes again every 15 s for as long as the cause is there.
                if told != str(error):
                    log.warning("%s; its size and the measured freshness are as before", error)
                told = str(error)
            await asyncio.sleep(_SAMPLE_S)

    async def _sample(self, parts: Parts) -> None:
        self._parked = parts.frontier.parked(parts.clock.now())
        path = parts.database.path
        self._store_bytes = await asyncio.to_thread(_size, path)
        self._log_bytes = await asyncio.to_thread(_size, path.with_name(f"{path.name}-wal"))
        last = parts.noting.last
        if last is None or last is self._measured_of:
            return
        with store_errors(path):
            found = await measured(parts.database.reader, last.at)
        self._measured_of = last
        if found is not None:
            fresh = found.binary
            self._measured = MeasuredFreshness(
                1 - fresh.mean, 1 - fresh.upper, 1 - fresh.lower, found.harmonic.mean, found.draws
            )


async def _ended(task: asyncio.Task[None] | None) -> None:
    """End a task that goes on for ever; what it ended of by itself is raised."""
    if task is None:
        return
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _size(path: Path) -> int:
    """Bytes of a file, 0 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
