"""The fetch pool: starts the requests that the frontier allows, and ends the run.

Each request is performed in its own task; the writer commits its entries.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from freshet.crawler.compare.not_content.check import Probes
from freshet.crawler.errors import NotMade
from freshet.crawler.frontier.clock import Clock
from freshet.crawler.frontier.frontier import (
    Frontier,
    FrontierRequest,
    PageRequest,
    Refusal,
    RequisiteUrl,
    RobotsReading,
)
from freshet.crawler.frontier.politeness import HostQueues, Pacer
from freshet.storage.records import Acknowledged, Agenda, Entry, Visit, WriterHost

if TYPE_CHECKING:
    from freshet.crawler.archive.requisites import Requisites


T = TypeVar("T")
#: Reason for the end of a run.
Ending = Literal["nothing due", "interrupted", "limit", "requests", "paused", "cut off"]


@dataclass(frozen=True, slots=True)
class PoolRules:
    """Limits of one invocation; 0 means none.

    A run waits ``patience_s`` for the next due URL. At its end it waits ``grace_s`` for the
    requests under way, and then cancels them. A cancelled request leaves its host queue and page
    blocked, so a pool that ``goes_on`` after a limit or pause waits for all of them.
    """

    concurrent_requests: int = 256
    max_pages: int = 0
    max_requests: int = 0
    patience_s: float = 300.0
    grace_s: float = 10.0
    goes_on: bool = False


_ANSWERED = frozenset({"new", "changed", "unchanged"})
#: Longest time between two turns.
_TURN_S = 600.0
#: Requests started in one turn of the event loop.
_AT_ONCE = 32
#: After a failure that may be Freshet's fault, a host waits for at least this many requests to
#: others.
_TURNS = 6
_DAY_S = 86_400.0


class Supervisor(WriterHost):
    """The run around a pool's visits; the base class does nothing."""

    def begun(self) -> None:
        """React to the end of the pool's first turn."""

    async def turn(self) -> None:
        """Do the due work before each turn of the pool; in a daemon at least once a minute."""

    def may_get_more(self) -> bool:
        """Return whether pages may come from elsewhere; then the pool waits when none is due."""
        return False


class Performing(Protocol):
    """Performs requests."""

    async def perform(self, request: FrontierRequest, /) -> Sequence[Entry]:
        """Perform one request, and return the entries to write."""


class Submitting(Protocol):
    """Accepts entries for the store."""

    async def submit(self, entry: Entry, /) -> None:
        """Accept an entry; it is acknowledged after its commit."""

    def hurry(self, *, soon: bool = False) -> None:
        """Commit without waiting for more entries, or after a short wait (``soon``)."""


@dataclass(slots=True, kw_only=True, eq=False)
class FetchPool:
    """Performs requests until no URL is due within the patience, a limit, or :meth:`stop`.

    A request starts when the ``pacer`` allows it, and its entries are sent to the writer. Limits do
    not count ``requisites``, which are still fetched after the last page.

    Attributes:
        told_to_stop: set by :meth:`stop`.
        no_network_since: when hosts stopped answering, or None if they answer.
        unacknowledged: the number of entries that the writer has received and not committed.
    """

    frontier: Frontier
    agenda: Agenda
    requester: Performing
    probes: Probes
    writer: Submitting
    queues: HostQueues
    clock: Clock
    rules: PoolRules
    pacer: Pacer
    supervisor: Supervisor = field(default_factory=Supervisor)
    requisites: Requisites | None = None
    told_to_stop: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    unacknowledged: int = field(default=0, init=False)
    no_network_since: float | None = field(default=None, init=False)
    # Futures of the entries whose commit is awaited.
    _committing: dict[tuple[str, int], asyncio.Future[None]] = field(
        default_factory=dict, init=False
    )
    _tasks: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _page_tasks: int = field(default=0, init=False)
    _pages: int = field(default=0, init=False)
    # Requests that rendered pages made in addition to their first one.
    _loaded: int = field(default=0, init=False)
    _pausing: bool = field(default=False, init=False)
    _is_store_away: bool = field(default=False, init=False)
    _is_held: bool = field(default=False, init=False)
    # When requests began to fail for lack of a network or of file handles, and when to try again.
    _cut_off_since: float | None = field(default=None, init=False)
    _resume_at: float = field(default=-inf, init=False)
    _failure: BaseException | None = field(default=None, init=False)
    _deadline: float = field(default=inf, init=False)
    _drain_until: float | None = field(default=None, init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    @property
    def active(self) -> int:
        """The number of requests under way."""
        return len(self._tasks)

    @property
    def stopping(self) -> bool:
        """True after :meth:`stop`."""
        return self.told_to_stop.is_set()

    def stop(self, *, at_once: bool = False) -> None:
        """Start no more requests: :meth:`run` returns when those under way have ended.

        With ``at_once`` they are cancelled, and their URLs stay due.
        """
        if at_once:
            self._break_off()
        self.told_to_stop.set()
        self._changed.set()

    def pause(self) -> None:
        """Start no more requests in this run; :meth:`run` may be called again."""
        self._pausing = True
        self._changed.set()

    def hold(self, *, while_store_is_away: bool) -> None:
        """Pause while the store cannot be written, or resume."""
        self._is_store_away = while_store_is_away
        self._changed.set()

    def shift(self, by: float) -> None:
        """Adapt to a jump of the clock; limits keep their length."""
        self._deadline += by
        self._resume_at += by
        if self._cut_off_since is not None:
            self._cut_off_since += by
        if self.no_network_since is not None:
            self.no_network_since += by
        if self._drain_until is not None:
            self._drain_until += by

    def wake(self) -> None:
        """Start the next turn at once."""
        self._changed.set()

    def acknowledged(self, batch: Sequence[Acknowledged]) -> None:
        """Count the entries that the writer has committed."""
        for item in batch:
            self.unacknowledged -= 1
            self.agenda.done(item)
            done = self._committing.get(_key(item.entry))
            if done is not None and not done.done():
                done.set_result(None)
            if isinstance(item.entry, Visit) and item.entry.role == "page":
                self._pages += item.entry.observation.kind in _ANSWERED
        self._changed.set()

    async def submit(self, entry: Entry) -> None:
        """Send an entry to the writer, and count it until it is acknowledged."""
        self.unacknowledged += 1
        try:
            await self.writer.submit(entry)
        except BaseException:
            self.unacknowledged -= 1
            raise
        if not isinstance(entry, Visit) or not self.agenda.waiting(entry.due.host_id):
            # The commit may bring the host's next URL.
            self.writer.hurry(soon=True)

    async def run(self, *, time_limit_s: float = 0.0) -> Ending:
        """Crawl, at most for the time limit (0: none); may be called again.

        When this returns, all submitted entries have been acknowledged.
        """
        self._deadline = self.clock.now() + (time_limit_s or inf)
        self._drain_until = None
        self.probes.begin(self._changed.set)
        has_begun = False
        try:
            while True:
                self._changed.clear()
                await self._replenish()
                ending = await self._launch()
                if not has_begun:
                    self.supervisor.begun()
                has_begun = True
                if self._failure is not None:
                    raise self._failure
                if ending is not None:
                    self.probes.give_up()
                    if self._quiet():
                        self._pausing = False
                        return ending
                if ending is not None or not self.agenda.hungry:
                    await self._wait(draining=ending is not None)
                else:
                    # Give other tasks a turn.
                    await asyncio.sleep(0)
        finally:
            self._break_off()

    # -- one turn of the loop ----------------------------------------------------

    async def _replenish(self) -> None:
        await self.supervisor.turn()
        new_hosts, host_ids = await self.agenda.replenish(self.clock.now())
        if new := [host for host in new_hosts if not self.frontier.knows(host.host_id)]:
            # Concurrently, because a key may need a DNS query.
            keys = await asyncio.gather(*(self.queues.queue_key(host.origin) for host in new))
            for host, key in zip(new, keys, strict=True):
                self.frontier.add_host(host, key)
                await asyncio.sleep(0)  # Reading its robots.txt took a while.
        for host_id in host_ids:
            self.frontier.wake(host_id)

    async def _launch(self) -> Ending | None:
        """Start requests; return the reason if no more may start, else None."""
        while True:
            now = self.clock.now()
            if ending := self._must_end(now):
                return ending
            self._is_held = not self._is_store_away and not self.pacer.allows(now)
            if self._is_store_away or self._waits_for_budget(now) or now < self._resume_at:
                return None
            request = self._next_request(now) if self._may_launch() else None
            if request is None:
                return "nothing due" if self._over(now) else None
            await self._start(request)

    def _next_request(self, now: float) -> FrontierRequest | None:
        pages, needs = self._may_take_pages(), self.requisites
        if needs is not None:
            needs.alone, pages = not pages, True
        request = self.frontier.next(now, pages=pages)
        is_cut_off = self._cut_off_since is not None and not self._tasks
        if request is None and is_cut_off and self.frontier.has_resting:
            # All other hosts are waiting.
            self.frontier.release(now)
            request = self.frontier.next(now, pages=pages)
        return request

    def _must_end(self, now: float) -> Ending | None:
        if self.told_to_stop.is_set():
            return "interrupted"
        if self._pausing:
            return "paused"
        if self._cut_off_since is not None and now > self._cut_off_since + self.rules.patience_s:
            return "cut off"
        needs, spent = self.requisites, self.pacer.spent - self._loaded
        if needs is not None:
            spent -= needs.asked
        if now >= self._deadline:
            return "limit"
        if 0 < self.rules.max_pages <= self._pages:
            return "limit" if self._is_complete(now) else None
        return "requests" if 0 < self.rules.max_requests <= spent else None

    def _is_complete(self, now: float) -> bool:
        """Return whether the last pages need no more resources."""
        needs = self.requisites
        return needs is None or not needs.busy or self._over(now)

    def _may_launch(self) -> bool:
        """Return whether a request can and should start.

        A visit that waits for a probe has ended its own request. The probe must be sent even if
        that visit is the last one that the limits allow.
        """
        waiting = self.probes.waiting
        has_room = len(self._tasks) - waiting < self.rules.concurrent_requests
        needed = self.requisites is not None and self.requisites.busy
        if self._cut_off_since is not None and len(self._tasks) > waiting:
            # One request at a time is enough to find out whether hosts answer again.
            return False
        return has_room and (waiting > 0 or needed or self._may_take_pages())

    def _may_take_pages(self) -> bool:
        """Return whether the limit allows more pages if all requests under way succeed."""
        pages = self._pages + self._page_tasks + self.unacknowledged
        return not self.rules.max_pages or pages < self.rules.max_pages

    def _over(self, now: float) -> bool:
        return self.idle(now) and not self.supervisor.may_get_more()

    def idle(self, now: float) -> bool:
        """Return whether no URL is due within the patience."""
        if not self._quiet() or self.agenda.hungry or self._cut_off_since is not None:
            return False
        at = self._next_wake()
        return at is None or at > now + self.rules.patience_s

    def _quiet(self) -> bool:
        return not self._tasks and not self.unacknowledged

    def _next_wake(self) -> float | None:
        times = (self.frontier.wakes_at(), self.agenda.wakes_at())
        return min((at for at in times if at is not None), default=None)

    async def _wait(self, *, draining: bool) -> None:
        """Wait until a request ends or may start; a drain cancels after its grace period."""
        if self.unacknowledged and len(self._tasks) == self.probes.waiting:
            # Only the commit can bring new work.
            self.writer.hurry()
        now = self.clock.now()
        if draining:
            until = self._drains_until(now)
        else:
            until = self._deadline
            if self._may_launch() and not self._is_store_away:
                # Regular turns show the service's watchdog that the pool is alive.
                until = min(until, self._next_launch(now), now + _TURN_S)
        # Idle: only time brings new work. Cancelled requests and probes are about to end.
        idle = not draining and len(self._tasks) == self.probes.waiting and not self.unacknowledged
        happened = await self.clock.wait(self._changed, until, idle=idle)
        if draining and not happened:
            self._break_off()
            self._drain_until = inf

    def _drains_until(self, now: float) -> float:
        """Return when to cancel the requests under way."""
        if self.rules.goes_on and not self.stopping:
            return inf
        self._drain_until = self._drain_until or now + self.rules.grace_s
        return self._drain_until

    def _next_launch(self, now: float) -> float:
        """Return the next time at which a request may start."""
        if now < self._resume_at:
            return self._resume_at
        # The pacer may allow a request by now, which must not wait any longer.
        allowed_at = self.pacer.allows_at(now) if self._is_held else inf
        if self._waits_for_budget(now):
            return min(allowed_at, self.pacer.presses_at(now, self.agenda.overdue_at()))
        at = self._next_wake()
        return allowed_at if at is None else min(at, allowed_at)

    def _waits_for_budget(self, now: float) -> bool:
        return self._is_held and self.pacer.presses_at(now, self.agenda.overdue_at()) > now

    # -- requests ----------------------------------------------------------------

    async def _start(self, request: FrontierRequest) -> None:
        if isinstance(request, Refusal | RobotsReading):
            await self._perform(request)
            await asyncio.sleep(0)  # Give other tasks a turn: this took no time on the network.
            return
        self.pacer.started()
        task = asyncio.create_task(self._perform(request))
        self._tasks.add(task)
        is_page = _is_page(request)
        self._page_tasks += is_page
        task.add_done_callback(lambda task: self._finished(task, is_page=is_page))
        if len(self._tasks) % _AT_ONCE == 0:
            # Opening hundreds of connections takes a while: give other tasks a turn.
            await asyncio.sleep(0)

    async def _perform(self, request: FrontierRequest) -> None:
        try:
            entries = await self.requester.perform(request)
        except NotMade as own:
            self._put_back(request, own)
            return
        if not isinstance(request, Refusal | RobotsReading):
            self._reached()
        rest = await self._submit_all(entries)
        # Free the URLs of a listing, which are in the store.
        del entries
        if rest is not None:
            async for entry in rest:
                await self._commit(entry)
                del entry

    async def _submit_all(self, entries: Sequence[Entry]) -> AsyncIterator[Entry] | None:
        """Send entries to the writer; return a listing's rest after its first part committed."""
        rest = None
        for entry in entries:
            if isinstance(entry, Visit) and entry.fetches > 1:
                self.pacer.started(entry.fetches - 1)
                self._loaded += entry.fetches - 1
            if isinstance(entry, Visit) and entry.role == "sitemap":
                await self._commit(entry)
                rest = entry.rest
            else:
                await self.submit(entry)
        return rest

    async def _commit(self, entry: Entry) -> None:
        """Send an entry to the writer, and wait for its commit."""
        done = self._committing[_key(entry)] = asyncio.get_running_loop().create_future()
        try:
            await self.submit(entry)
            self.writer.hurry()
            await done
        finally:
            self._committing.pop(_key(entry), None)

    def _reached(self) -> None:
        """End a pause: a host has answered, or is itself the cause of its failure."""
        if self._cut_off_since is not None or self.frontier.has_resting:
            since = inf if self.no_network_since is None else self.no_network_since
            self._cut_off_since = self.no_network_since = None
            self.frontier.release(self.clock.now(), since)

    def _put_back(self, request: FrontierRequest, own: NotMade) -> None:
        """Requeue a request that was not made, and pause its host or the pool."""
        now = self.clock.now()
        if not own.is_sent:
            self.pacer.put_back()
        match request:
            case PageRequest(due=due) | Refusal(due=due):
                self.frontier.put_back(due)
            case RobotsReading(host_id):
                self.frontier.wake(host_id)
            case _:
                self.frontier.again(request)
        if own.rest_s and not isinstance(request, Refusal | RobotsReading):
            # Let other hosts have their turn first.
            several_s = _TURNS * _DAY_S / self.pacer.per_day
            self.frontier.rest(request.queue, now + max(own.rest_s, several_s))
        self.no_network_since = own.since or self.no_network_since
        if own.hold_s:
            self._resume_at = max(self._resume_at, now + own.hold_s)
            if self._cut_off_since is None:
                self._cut_off_since = now

    def _finished(self, task: asyncio.Task[None], *, is_page: bool) -> None:
        self._tasks.discard(task)
        self._page_tasks -= is_page
        self._changed.set()
        if not task.cancelled() and (error := task.exception()):
            self._failure = error

    def _break_off(self) -> None:
        for task in self._tasks:
            task.cancel()


def _key(entry: Entry) -> tuple[str, int]:
    """Return the key of an entry; a visit keeps it if it has to be replaced by another visit."""
    return ("page", entry.due.page_id) if isinstance(entry, Visit) else ("note", id(entry))


def _is_page(request: FrontierRequest) -> bool:
    return isinstance(request, PageRequest) and not isinstance(request.due, RequisiteUrl)
