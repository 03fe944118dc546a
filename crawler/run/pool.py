"""The fetch pool: starts the requests that the frontier allows, and ends the run.

Each request is performed in its own task; its entries reach the store through the one writer.
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
    """Bounds of one invocation; 0 means none.

    A run waits ``patience_s`` for the next due URL; a drain waits ``grace_s`` for the requests
    under way and then cancels them. A cancelled request leaves its host queue and its page taken: a
    pool that ``goes_on`` after a limit or a pause waits for all.
    """

    concurrent_requests: int = 256
    max_pages: int = 0
    max_requests: int = 0
    patience_s: float = 300.0
    grace_s: float = 10.0
    goes_on: bool = False


_ANSWERED = frozenset({"new", "changed", "unchanged"})
#: A turn comes after so many seconds, whatever there is to do.
_TURN_S = 600.0
#: Requests that are started in one turn of the event loop.
_AT_ONCE = 32
#: A host whose failure may be ours waits for as many requests to others at least.
_TURNS = 6
_DAY_S = 86_400.0


class Supervisor(WriterHost):
    """The run around the visits of a pool; by itself it does nothing more."""

    def begun(self) -> None:
        """Note that the first turn of a pool is over, which may take a while."""

    async def turn(self) -> None:
        """Do what is due, before each turn of the pool: in a daemon at least once a minute."""

    def may_get_more(self) -> bool:
        """Return whether pages may come from elsewhere: the pool waits when nothing is due."""
        return False


class Performing(Protocol):
    """Makes requests."""

    async def perform(self, request: FrontierRequest, /) -> Sequence[Entry]:
        """Perform one request, and return the entries to write."""


class Submitting(Protocol):
    """Takes entries for the store."""

    async def submit(self, entry: Entry, /) -> None:
        """Take one, which is acknowledged when it is in the store."""

    def hurry(self, *, soon: bool = False) -> None:
        """Do not wait for more entries, or not long (``soon``): these are waited for."""


@dataclass(slots=True, kw_only=True, eq=False)
class FetchPool:
    """Performs requests until nothing is due within the patience, a limit, or :meth:`stop`.

    A request is made when the ``pacer`` allows it, and its entries go to the writer.
    ``requisites`` are not counted by the limits, and fetched after the last page.

    Attributes:
        told_to_stop: set by :meth:`stop`.
        no_network_since: the time since which no host can be reached; None: hosts can be.
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
    # By entry, for those whose commit is waited for.
    _committing: dict[tuple[str, int], asyncio.Future[None]] = field(
        default_factory=dict, init=False
    )
    _tasks: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _page_tasks: int = field(default=0, init=False)
    _pages: int = field(default=0, init=False)
    # Requests that rendered pages made, beside their own.
    _loaded: int = field(default=0, init=False)
    _pausing: bool = field(default=False, init=False)
    _is_store_away: bool = field(default=False, init=False)
    _is_held: bool = field(default=False, init=False)
    # For want of a network or of files no request could be made since, and none is until.
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
        """Take no new work: :meth:`run` returns when the requests under way have ended.

        With ``at_once`` they are cancelled, and their URLs stay due.
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
        """Start no request while the store cannot be written, or go on."""
        self._is_store_away = while_store_is_away
        self._changed.set()

    def shift(self, by: float) -> None:
        """Follow a jump of the time: limits keep their length."""
        self._deadline += by
        self._resume_at += by
        if self._cut_off_since is not None:
            self._cut_off_since += by
        if self.no_network_since is not None:
            self.no_network_since += by
        if self._drain_until is not None:
            self._drain_until += by

    def wake(self) -> None:
        """Begin the next turn at once."""
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
            # What is to be asked next may come from the commit.
            self.writer.hurry(soon=True)

    async def run(self, *, time_limit_s: float = 0.0) -> Ending:
        """Crawl, at most for the time limit (0: none); may be repeated.

        All submitted entries have been acknowledged when this returns.
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
                    # Other tasks get a turn, too.
                    await asyncio.sleep(0)
        finally:
            self._break_off()

    # -- one turn of the loop ----------------------------------------------------

    async def _replenish(self) -> None:
        await self.supervisor.turn()
        new_hosts, host_ids = await self.agenda.replenish(self.clock.now())
        if new := [host for host in new_hosts if not self.frontier.knows(host.host_id)]:
            # Concurrently: a key may need a DNS query.
            keys = await asyncio.gather(*(self.queues.queue_key(host.origin) for host in new))
            for host, key in zip(new, keys, strict=True):
                self.frontier.add_host(host, key)
                await asyncio.sleep(0)  # Reading its robots.txt took a while.
        for host_id in host_ids:
            self.frontier.wake(host_id)

    async def _launch(self) -> Ending | None:
        """Start requests; return the reason if no more will be started, else None."""
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
            # Nobody else can be asked.
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
        """Return whether nothing is missing that the last pages need."""
        needs = self.requisites
        return needs is None or not needs.busy or self._over(now)

    def _may_launch(self) -> bool:
        """Return whether there is room and need for a request.

        A visit that waits for a probe has ended its own request; the probe must be sent even if
        that visit is the last that the limits allow.
        """
        waiting = self.probes.waiting
        has_room = len(self._tasks) - waiting < self.rules.concurrent_requests
        needed = self.requisites is not None and self.requisites.busy
        if self._cut_off_since is not None and len(self._tasks) > waiting:
            # One at a time shows as well as many whether somebody can be reached again.
            return False
        return has_room and (waiting > 0 or needed or self._may_take_pages())

    def _may_take_pages(self) -> bool:
        """Return whether the limit allows more pages if all requests in flight succeed."""
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
        """Wait until a request has ended or is due; a drain cancels after its grace period."""
        if self.unacknowledged and len(self._tasks) == self.probes.waiting:
            # New work can come from the commit only.
            self.writer.hurry()
        now = self.clock.now()
        if draining:
            until = self._drains_until(now)
        else:
            until = self._deadline
            if self._may_launch() and not self._is_store_away:
                # Whoever looks after the pool sees by its turns that it lives.
                until = min(until, self._next_launch(now), now + _TURN_S)
        # Only the passing of time brings new work; cancelled requests and probes are about to end.
        idle = not draining and len(self._tasks) == self.probes.waiting and not self.unacknowledged
        came = await self.clock.wait(self._changed, until, idle=idle)
        if draining and not came:
            self._break_off()
            self._drain_until = inf

    def _drains_until(self, now: float) -> float:
        """Return when requests under way are cancelled."""
        if self.rules.goes_on and not self.stopping:
            return inf
        self._drain_until = self._drain_until or now + self.rules.grace_s
        return self._drain_until

    def _next_launch(self, now: float) -> float:
        """Return the time of the next possible start."""
        if now < self._resume_at:
            return self._resume_at
        # The pacer may allow one by now: a ready request must not wait for anything else.
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
            await asyncio.sleep(0)  # It took no time on the network: other tasks get a turn.
            return
        self.pacer.started()
        task = asyncio.create_task(self._perform(request))
        self._tasks.add(task)
        is_page = _is_page(request)
        self._page_tasks += is_page
        task.add_done_callback(lambda task: self._finished(task, is_page=is_page))
        if len(self._tasks) % _AT_ONCE == 0:
            # To begin hundreds of connections takes a while: other tasks get a turn.
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
        # The URLs of a listing are in the store, and need not be here as well.
        del entries
        if rest is not None:
            async for entry in rest:
                await self._commit(entry)
                del entry

    async def _submit_all(self, entries: Sequence[Entry]) -> AsyncIterator[Entry] | None:
        """Send entries to the writer, wait for a listing's commit, and return what follows it."""
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
        """Send an entry to the writer, and wait until it has committed."""
        done = self._committing[_key(entry)] = asyncio.get_running_loop().create_future()
        try:
            await self.submit(entry)
            self.writer.hurry()
            await done
        finally:
            self._committing.pop(_key(entry), None)

    def _reached(self) -> None:
        """Go on as usual: a host has answered, or is held responsible for its failure."""
        if self._cut_off_since is not None or self.frontier.has_resting:
            since = inf if self.no_network_since is None else self.no_network_since
            self._cut_off_since = self.no_network_since = None
            self.frontier.release(self.clock.now(), since)

    def _put_back(self, request: FrontierRequest, own: NotMade) -> None:
        """Queue a request anew that has not been made, and start none for a while."""
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
            # Other hosts have their turn before.
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
    """Return what an entry is known by: a visit that cannot be stored becomes another one."""
    return ("page", entry.due.page_id) if isinstance(entry, Visit) else ("note", id(entry))


def _is_page(request: FrontierRequest) -> bool:
    return isinstance(request, PageRequest) and not isinstance(request.due, RequisiteUrl)
