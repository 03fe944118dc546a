"""The fetch pool: launches what the frontier allows, and says when a run is over.

Shell over the state machines: it awaits, they decide. A request is performed in a task of its
own; everything that it found reaches the store through the one writer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf

from freshet.crawler.clock import Clock
from freshet.crawler.compare.not_content.check import Probes
from freshet.crawler.frontier import Frontier
from freshet.crawler.pacing import Pacer
from freshet.crawler.requests import FrontierRequest, PageRequest, Refusal
from freshet.storage.records import Acknowledged, Agenda, Entry, Visit
from freshet.storage.words import Kind, Role


@dataclass(frozen=True, slots=True)
class PoolRules:
    """Bounds of one invocation; 0 means none.

    ``patience_s`` is how long a run waits for the next URL, ``grace_s`` how long a drain
    waits for the requests under way before it breaks them off. A request that is broken off
    leaves its lane and its page taken: a pool that ``goes_on`` after a limit or a pause waits for
    all.
    """

    exchanges: int = 256
    max_pages: int = 0
    patience_s: float = 300.0
    grace_s: float = 10.0
    goes_on: bool = False


class Ending(StrEnum):
    """The reason why a run of the pool ended."""

    NOTHING_DUE = "nothing due"
    INTERRUPTED = "interrupted"
    LIMIT = "limit"
    PAUSED = "paused"


_ANSWERED = frozenset({Kind.NEW, Kind.CHANGED, Kind.UNCHANGED})


@dataclass(slots=True, kw_only=True, eq=False)
class FetchPool:
    """Performs requests until nothing is due within the patience, a limit, or :meth:`stop`.

    ``perform`` makes one request and returns its entries, which ``write`` hands to the writer;
    ``pacer`` is asked before each. ``begun`` is called in each run after the first turn, which
    may take a while.

    Attributes:
        chores: awaited in this order at the beginning of each turn, at least once a minute of a
            daemon's; the argument is the time.
        told_to_stop: set by :meth:`stop`.
    """

    frontier: Frontier
    agenda: Agenda
    perform: Callable[[FrontierRequest], Awaitable[Sequence[Entry]]]
    probes: Probes
    write: Callable[[Entry], Awaitable[None]]
    lane_key: Callable[[str], Awaitable[str]]
    clock: Clock
    rules: PoolRules
    pacer: Pacer
    begun: Callable[[], None] | None = None
    chores: list[Callable[[float], Awaitable[None]]] = field(default_factory=list)
    told_to_stop: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _page_tasks: int = field(default=0, init=False)
    _pages: int = field(default=0, init=False)
    _unacknowledged: int = field(default=0, init=False)
    _pausing: bool = field(default=False, init=False)
    _is_store_away: bool = field(default=False, init=False)
    _is_held: bool = field(default=False, init=False)
    _failure: BaseException | None = field(default=None, init=False)
    _drain_until: float | None = field(default=None, init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    @property
    def active(self) -> int:
        """Requests under way."""
        return len(self._tasks)

    @property
    def unacknowledged(self) -> int:
        """Entries that were handed to the writer and have not committed."""
        return self._unacknowledged

    @property
    def stopping(self) -> bool:
        """True from the call of :meth:`stop` on."""
        return self.told_to_stop.is_set()

    def stop(self, *, at_once: bool = False) -> None:
        """Take no new work: :meth:`run` returns when the requests under way have ended.

        ``at_once`` they are broken off, and their URLs stay due.
        """
        if at_once:
            self._break_off()
        self.told_to_stop.set()
        self._changed.set()

    def pause(self) -> None:
        """Take no new work in this run; :meth:`run` may be called again."""
        self._pausing = True
        self._changed.set()

    def hold(self, *, while_store_is_away: bool) -> None:
        """Start nothing while what is found cannot be kept, or start again."""
        self._is_store_away = while_store_is_away
        self._changed.set()

    def wake(self) -> None:
        """Begin the next turn at once."""
        self._changed.set()

    def acknowledged(self, batch: Sequence[Acknowledged]) -> None:
        """Note what the writer has committed."""
        for item in batch:
            self._unacknowledged -= 1
            self.agenda.done(item)
            if isinstance(item.entry, Visit) and item.entry.role is Role.PAGE:
                self._pages += item.entry.observation.kind in _ANSWERED
        self._changed.set()

    async def submit(self, entry: Entry) -> None:
        """Hand an entry to the writer, and count it until it is acknowledged."""
        self._unacknowledged += 1
        try:
            await self.write(entry)
        except BaseException:
            self._unacknowledged -= 1
            raise

    async def run(self, *, time_limit_s: float = 0.0) -> Ending:
        """Crawl, for so long at most (0: no limit); may be repeated.

        Everything that was submitted has been acknowledged when this returns.
        """
        deadline = self.clock.now() + (time_limit_s or inf)
        self._drain_until = None
        self.probes.begin(self._changed.set)
        has_begun = False
        try:
            while True:
                self._changed.clear()
                await self._replenish()
                ending = await self._launch(deadline)
                if self.begun is not None and not has_begun:
                    self.begun()
                has_begun = True
                if self._failure is not None:
                    raise self._failure
                if ending is not None:
                    self.probes.give_up()
                    if self._quiet():
                        self._pausing = False
                        return ending
                if ending is not None or not self.agenda.hungry:
                    await self._wait(deadline, draining=ending is not None)
                else:
                    # Everybody else has a turn, too.
                    await asyncio.sleep(0)
        finally:
            self._break_off()

    # -- one turn of the loop ----------------------------------------------------

    async def _replenish(self) -> None:
        for chore in self.chores:
            await chore(self.clock.now())
        supply = await self.agenda.replenish(self.clock.now())
        new = [host for host in supply.new_hosts if not self.frontier.knows(host.host_id)]
        # Together: a key may be an address, and each name a query.
        keys = await asyncio.gather(*(self.lane_key(host.origin) for host in new))
        for host, key in zip(new, keys, strict=True):
            self.frontier.add_host(host, key)
        for host_id in supply.host_ids:
            self.frontier.wake(host_id)

    async def _launch(self, deadline: float) -> Ending | None:
        """Start what may start; return why nothing more will be started, or None."""
        while True:
            now = self.clock.now()
            if ending := self._must_end(now, deadline):
                return ending
            self._is_held = not self._is_store_away and not self.pacer.allows(now)
            if self._is_store_away or self._is_held:
                return None
            request = None
            if self._may_launch():
                request = self.frontier.next(now, pages=self._may_take_pages())
            if request is None:
                return Ending.NOTHING_DUE if self._over(now) else None
            await self._start(request)

    def _must_end(self, now: float, deadline: float) -> Ending | None:
        if self.stopping:
            return Ending.INTERRUPTED
        if self._pausing:
            return Ending.PAUSED
        full = self.rules.max_pages and self._pages >= self.rules.max_pages
        return Ending.LIMIT if now >= deadline or full else None

    def _may_launch(self) -> bool:
        """Return whether there is room for a request, and use for one.

        A visit that waits for a probe has ended its own request, and the probe must be sent even
        where that visit is the last that the limits allow.
        """
        waiting = self.probes.waiting
        has_room = len(self._tasks) - waiting < self.rules.exchanges
        return has_room and (waiting > 0 or self._may_take_pages())

    def _may_take_pages(self) -> bool:
        """Return whether the limit has room for pages if all that are in flight answer."""
        pages = self._pages + self._page_tasks + self._unacknowledged
        return not self.rules.max_pages or pages < self.rules.max_pages

    def _over(self, now: float) -> bool:
        """Return whether the run has ended: nothing is due within the patience."""
        if not self._quiet() or self.agenda.hungry:
            return False
        at = self._next_wake()
        return at is None or at > now + self.rules.patience_s

    def _quiet(self) -> bool:
        return not self._tasks and not self._unacknowledged

    def _next_wake(self) -> float | None:
        times = (self.frontier.wakes_at(), self.agenda.wakes_at())
        return min((at for at in times if at is not None), default=None)

    async def _wait(self, deadline: float, *, draining: bool) -> None:
        """Wait until something has ended or become due; a drain breaks off after its grace."""
        now = self.clock.now()
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
        came = await self.clock.wait(self._changed, until, idle=idle)
        if draining and not came:
            self._break_off()
            self._drain_until = inf

    def _next_launch(self, now: float) -> float:
        """Return the time at which something may start again, or should be looked for."""
        if self._is_held:
            # It may have come to allow it just now: what is ready must not wait for anything else.
            return self.pacer.allows_at(now)
        at = self._next_wake()
        return inf if at is None else at

    def _idle(self) -> bool:
        """Return whether time alone can bring anything new."""
        return len(self._tasks) == self.probes.waiting and not self._unacknowledged

    # -- requests ----------------------------------------------------------------

    async def _start(self, request: FrontierRequest) -> None:
        if isinstance(request, Refusal):
            await self._perform(request)
            return
        self.pacer.started()
        task = asyncio.create_task(self._perform(request))
        self._tasks.add(task)
        self._page_tasks += isinstance(request, PageRequest)
        task.add_done_callback(lambda task: self._finished(task, request))

    async def _perform(self, request: FrontierRequest) -> None:
        for entry in await self.perform(request):
            await self.submit(entry)

    def _finished(self, task: asyncio.Task[None], request: FrontierRequest) -> None:
        self._tasks.discard(task)
        self._page_tasks -= isinstance(request, PageRequest)
        self._changed.set()
        if not task.cancelled() and (error := task.exception()):
            self._failure = error

    def _break_off(self) -> None:
        for task in self._tasks:
            task.cancel()
