"""The fetch pool: launches what the frontier allows, and says when a run is over.

Shell over the state machines: it awaits, they decide. An exchange is performed in a task
of its own; everything that it found reaches the store through the one writer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from freshet.crawler.clock import Clock
from freshet.crawler.frontier import (
    CallErrand,
    Errand,
    Frontier,
    PageErrand,
    ProbeErrand,
    Refusal,
    RobotsErrand,
)
from freshet.crawler.pacing import Pacer
from freshet.crawler.visit import Visiting
from freshet.storage.records import Acknowledged, Agenda, Entry, Visit
from freshet.storage.words import Kind, Role


@dataclass(frozen=True, slots=True)
class PoolRules:
    """Bounds of one invocation; 0 means none.

    ``patience_s`` is how long a run waits for the next URL, ``grace_s`` how long a drain
    waits for the exchanges under way before it breaks them off. What is broken off leaves its
    lane and its page taken: a pool that ``goes_on`` after a limit or a pause waits for all.
    """

    exchanges: int = 256
    max_pages: int = 0
    time_limit_s: float = 0.0
    patience_s: float = 300.0
    grace_s: float = 10.0
    goes_on: bool = False


class Ending(StrEnum):
    """Why the pool stopped."""

    NOTHING_DUE = "nothing due"
    INTERRUPTED = "interrupted"
    LIMIT = "limit"
    PAUSED = "paused"


_ANSWERED = frozenset({Kind.NEW, Kind.CHANGED, Kind.UNCHANGED})


async def _nothing(_now: float) -> None:
    """The chore of who has none."""


def _nobody() -> None:
    """Who waits for the beginning where nobody does."""


class FetchPool:
    """Runs errands until nothing is due within the patience, a limit, or :meth:`stop`.

    ``pacer`` is asked before each exchange, whatever it is for.

    Attributes:
        chore: done before each look for work, at least once a minute of a daemon's.
        begun: called in each run when the first look for work, which may take a while, is over.
    """

    def __init__(
        self,
        frontier: Frontier,
        agenda: Agenda,
        visiting: Visiting,
        submit: Callable[[Entry], Awaitable[None]],
        lane_key: Callable[[str], Awaitable[str]],
        clock: Clock,
        rules: PoolRules,
        pacer: Pacer,
    ) -> None:
        self._frontier = frontier
        self._agenda = agenda
        self._visiting = visiting
        self._lane_key = lane_key
        self._clock = clock
        self.rules = rules
        self._pacer = pacer
        self._tasks: set[asyncio.Task[None]] = set()
        self._page_tasks = 0
        self._pages = 0
        self._unacknowledged = 0
        self._submit_entry = submit
        self.told_to_stop = asyncio.Event()
        self.chore: Callable[[float], Awaitable[None]] = _nothing
        self.begun: Callable[[], None] = _nobody
        self._pausing = False
        self._is_store_away = False
        self._is_held = False
        self._failure: BaseException | None = None
        self._drain_until: float | None = None
        self._changed = asyncio.Event()
        visiting.probing.listen(self._changed.set)

    @property
    def active(self) -> int:
        """Exchanges under way."""
        return len(self._tasks)

    @property
    def unacknowledged(self) -> int:
        """Entries that were handed to the writer and have not committed."""
        return self._unacknowledged

    @property
    def stopping(self) -> bool:
        """Whether :meth:`stop` was called."""
        return self.told_to_stop.is_set()

    def stop(self) -> None:
        """Take no new work; :meth:`run` returns when what is in flight has ended."""
        self.told_to_stop.set()
        self._changed.set()

    def hold(self, *, while_store_is_away: bool) -> None:
        """Start nothing while what is found cannot be kept, or start again."""
        self._is_store_away = while_store_is_away
        self._changed.set()

    def pause(self) -> None:
        """As :meth:`stop`, but to go on: :meth:`run` may be called again. It ends once for it."""
        self._pausing = True
        self._changed.set()

    def wake(self) -> None:
        """Look at once what there is to do."""
        self._changed.set()

    def abandon(self) -> None:
        """Break off the exchanges under way; their URLs stay due."""
        for task in self._tasks:
            task.cancel()

    def acknowledged(self, batch: Sequence[Acknowledged]) -> None:
        """The writer has committed these."""
        for item in batch:
            self._unacknowledged -= 1
            self._agenda.done(item)
            if isinstance(item.entry, Visit) and item.entry.role is Role.PAGE:
                self._pages += item.entry.observation.kind in _ANSWERED
        self._changed.set()

    async def submit(self, entry: Entry) -> None:
        """Hand an entry to the writer, and count it until it is acknowledged."""
        self._unacknowledged += 1
        try:
            await self._submit_entry(entry)
        except BaseException:
            self._unacknowledged -= 1
            raise

    async def run(self) -> Ending:
        """Crawl; everything submitted has been acknowledged when this returns. May be repeated."""
        deadline = self._clock.now() + (self.rules.time_limit_s or inf)
        self._drain_until = None
        self._visiting.probing.resume()
        has_begun = False
        try:
            while True:
                self._changed.clear()
                await self._replenish()
                ending = await self._launch(deadline)
                if not has_begun:
                    has_begun = True
                    self.begun()
                if self._failure is not None:
                    raise self._failure
                if ending is not None:
                    self._visiting.probing.give_up()
                    if self._quiet():
                        self._pausing = False
                        return ending
                if ending is not None or not self._agenda.hungry:
                    await self._wait(deadline, draining=ending is not None)
        finally:
            self.abandon()

    # -- one turn of the loop ----------------------------------------------------

    async def _replenish(self) -> None:
        await self.chore(self._clock.now())
        supply = await self._agenda.replenish(self._clock.now())
        new = [host for host in supply.new_hosts if not self._frontier.knows(host.host_id)]
        # Together: a key may be an address, and each name a query.
        keys = await asyncio.gather(*(self._lane_key(host.origin) for host in new))
        for host, key in zip(new, keys, strict=True):
            self._frontier.add_host(host, key)
        for host_id in supply.host_ids:
            self._frontier.wake(host_id)

    async def _launch(self, deadline: float) -> Ending | None:
        """Start what may start; why nothing more will be started, or None."""
        while True:
            now = self._clock.now()
            if ending := self._must_end(now, deadline):
                return ending
            self._is_held = not self._is_store_away and not self._pacer.allows(now)
            if self._is_store_away:
                return None
            if self._is_held:
                return None
            errand = None
            if self._may_launch():
                errand = self._frontier.next(now, pages=self._may_take_pages())
            if errand is None:
                return Ending.NOTHING_DUE if self._over(now) else None
            await self._start(errand)

    def _must_end(self, now: float, deadline: float) -> Ending | None:
        if self.stopping:
            return Ending.INTERRUPTED
        if self._pausing:
            return Ending.PAUSED
        full = self.rules.max_pages and self._pages >= self.rules.max_pages
        return Ending.LIMIT if now >= deadline or full else None

    def _may_launch(self) -> bool:
        """Whether there is room for an exchange, and use for one.

        A visit that waits for a probe has ended its exchange, and the probe must be sent even
        where that visit is the last that the limits allow.
        """
        waiting = self._visiting.probing.waiting
        has_room = len(self._tasks) - waiting < self.rules.exchanges
        return has_room and (waiting > 0 or self._may_take_pages())

    def _may_take_pages(self) -> bool:
        """Whether the limit has room for pages, for all that are in flight answer."""
        pages = self._pages + self._page_tasks + self._unacknowledged
        return not self.rules.max_pages or pages < self.rules.max_pages

    def _over(self, now: float) -> bool:
        """Whether the run has ended: nothing is due within the patience."""
        if not self._quiet() or self._agenda.hungry:
            return False
        at = self._next_wake()
        return at is None or at > now + self.rules.patience_s

    def _quiet(self) -> bool:
        return not self._tasks and not self._unacknowledged

    def _next_wake(self) -> float | None:
        times = (self._frontier.wakes_at(), self._agenda.wakes_at())
        return min((at for at in times if at is not None), default=None)

    async def _wait(self, deadline: float, *, draining: bool) -> None:
        """Wait until something has ended or become due; a drain breaks off after its grace."""
        now = self._clock.now()
        if draining and self.rules.goes_on and not self.stopping:
            until = inf
        elif draining:
            self._drain_until = self._drain_until or now + self.rules.grace_s
            until = self._drain_until
        else:
            until = deadline
            if self._may_launch() and not self._is_store_away:
                until = min(until, self._next_launch(now))
        # What has been given up or broken off is about to end: it needs no time.
        idle = not draining and self._idle()
        came = await self._clock.wait(self._changed, until, idle=idle)
        if draining and not came:
            self.abandon()
            self._drain_until = inf

    def _next_launch(self, now: float) -> float:
        """When something may start again, or should be looked for."""
        if self._is_held:
            # It may have come to allow it just now: what is ready must not wait for anything else.
            return self._pacer.allows_at(now)
        at = self._next_wake()
        return inf if at is None else at

    def _idle(self) -> bool:
        """Whether time alone can bring anything new."""
        return len(self._tasks) == self._visiting.probing.waiting and not self._unacknowledged

    # -- errands -----------------------------------------------------------------

    async def _start(self, errand: Errand) -> None:
        if isinstance(errand, Refusal):
            await self.submit(self._visiting.refusal(errand))
            return
        self._pacer.started()
        task = asyncio.create_task(self._perform(errand))
        self._tasks.add(task)
        self._page_tasks += isinstance(errand, PageErrand)
        task.add_done_callback(lambda task: self._finished(task, errand))

    def _finished(self, task: asyncio.Task[None], errand: Errand) -> None:
        self._tasks.discard(task)
        self._page_tasks -= isinstance(errand, PageErrand)
        self._changed.set()
        if not task.cancelled() and (error := task.exception()):
            self._failure = error

    async def _perform(self, errand: PageErrand | RobotsErrand | ProbeErrand | CallErrand) -> None:
        match errand:
            case PageErrand():
                await self.submit(await self._visiting.page(errand))
            case RobotsErrand():
                await self._robots(errand)
            case ProbeErrand():
                await self.submit(await self._visiting.probe(errand))
            case CallErrand():
                for entry in await self._visiting.call(errand):
                    await self.submit(entry)

    async def _robots(self, errand: RobotsErrand) -> None:
        for entry in await self._visiting.robots(errand):
            await self.submit(entry)
