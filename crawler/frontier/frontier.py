"""The frontier: chooses the next request over all hosts (BUbiNG's visit states).

Invariant: a request leaves the frontier only from a host queue that may start one, for a host
whose robots.txt is known and fresh and allows it. Consequence: politeness and robots.txt hold for
every page, however it was found.

The pool calls :meth:`Frontier.next` until it gets None, performs each request, and reports its end.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import reduce
from heapq import heappop, heappush
from itertools import count, islice
from math import inf
from operator import itemgetter
from random import Random
from typing import Any, Protocol

from freshet.crawler.fetch.bounds import meet
from freshet.crawler.frontier.politeness import (
    HostAnswer,
    HostQueue,
    PolitenessRules,
    RulesAt,
    stricter,
)
from freshet.crawler.robots.cache import RobotsCache
from freshet.crawler.urls import origin, robots_url
from freshet.storage import value
from freshet.storage.entries import Host, HostState, Repeats
from freshet.storage.records import Agenda, DueUrl, Entry, FetchResult, Observation


class RequisiteOwner(Protocol):
    """Receiver of the responses to requests for embedded resources of archived pages."""

    async def took(self, due: Any, result: FetchResult) -> None:
        """Record a response."""

    def denied(self, due: Any, why: Observation) -> None:
        """Record that robots.txt forbids the request, and why."""


@value(frozen=True, slots=True)
class RequisiteUrl(DueUrl):
    """A due URL of an embedded resource, requested for ``owner``.

    ``is_anonymous`` if an origin other than the page's has chosen the URL or answers it.
    """

    _: KW_ONLY
    owner: RequisiteOwner = field(repr=False)
    is_anonymous: bool = False


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a due URL; ``queue`` is the key of the host queue, in all request classes."""

    due: DueUrl
    queue: str


@dataclass(frozen=True, slots=True)
class RobotsRequest:
    """A request for a host's robots.txt; ``url`` is a redirect's target after the first hop.

    ``is_anonymous`` from the first redirect to another origin on. ``repeat_of`` is as in
    :class:`~freshet.storage.records.DueUrl`.
    """

    host_id: int
    origin: str
    url: str
    queue: str
    redirects: int = 0
    repeat_of: str | None = None
    is_anonymous: bool = False


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """A request for a page that cannot exist on its host."""

    host_id: int
    url: str
    queue: str


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request to an API (WebSub hub, IndexNow key file); politeness and budget apply.

    A ``form`` is sent by POST. ``handle`` takes the response and its time before any other code
    does, and returns the entries to commit with it. The request carries no secrets, because a page
    or another program has chosen the URL.
    """

    url: str
    queue: str
    handle: Callable[[FetchResult, float], Sequence[Entry]]
    form: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    max_body_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RobotsReading:
    """A robots.txt to read from the store, without a request."""

    host_id: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """A due URL that robots.txt forbids."""

    due: DueUrl
    rule: str


FrontierRequest = PageRequest | RobotsRequest | ProbeRequest | ApiRequest | RobotsReading | Refusal


@dataclass(slots=True, eq=False)
class _QueueEntry:
    """A host queue, its hosts in the order of their turns, and requests that precede pages.

    ``shares`` has the group of each request under way that belongs to a group (see ``share_of``).
    """

    state: HostQueue
    hosts: OrderedDict[int, _HostEntry] = field(default_factory=OrderedDict)
    requests: list[RobotsRequest | ProbeRequest | ApiRequest] = field(default_factory=list)
    shares: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _HostEntry:
    """A host; ``robots_on`` is the queue with the pending request for its robots.txt."""

    host_id: int
    origin: str
    queue: _QueueEntry
    crawl_delay_s: float
    repeats: Repeats
    has_new_repeats: bool = False
    robots_on: _QueueEntry | None = None
    closed_until: float = 0.0
    closed_reason: str | None = None

    def may_be_visited(self, now: float) -> bool:
        """Return whether no robots.txt request is pending and no pause is in effect."""
        return self.robots_on is None and self.closed_until <= now


@dataclass(slots=True, eq=False)
class Frontier:
    """Host queues, each ready, waiting for its time, full, or without work.

    Invariant: each method that changes a queue's work or time ends in ``_schedule``.
    Consequence: no queue with work is forgotten, and a queue in ``ready`` has a page that may be
    requested.

    If an earlier run was killed, ``held_at`` is the latest time of its last request: each queue
    waits for its delay from then on. ``share_of`` returns the group of an origin that is not a
    seed's, and the limit of concurrent requests to that group. ``rules_at`` returns the rules of an
    origin; a queue obeys the strictest rules of its hosts.
    ``api_requests`` is the number of API requests that wait here or are under way.
    """

    agenda: Agenda
    robots: RobotsCache
    rules: PolitenessRules
    rng: Random
    _: KW_ONLY
    held_at: float = -inf
    share_of: Callable[[str], tuple[str, int] | None] = lambda _: None
    rules_at: RulesAt = lambda rules, _: rules
    api_requests: int = field(default=0, init=False)
    _shared: Counter[str] = field(default_factory=Counter, init=False)
    # By group: queues with work that are due and wait for a request of their group to end.
    _blocked: dict[str, OrderedDict[str, _QueueEntry]] = field(default_factory=dict, init=False)
    # Keys of queues that wait until the cause of their failures is known.
    _resting: set[str] = field(default_factory=set, init=False)
    hosts: dict[int, _HostEntry] = field(default_factory=dict, init=False)
    _by_origin: dict[str, int] = field(default_factory=dict, init=False)
    _queues: dict[str, _QueueEntry] = field(default_factory=dict, init=False)
    ready: OrderedDict[str, _QueueEntry] = field(default_factory=OrderedDict, init=False)
    _requests_ready: OrderedDict[str, _QueueEntry] = field(default_factory=OrderedDict, init=False)
    # A heap; an entry is valid while ``_wake_at`` has its time.
    _waiting: list[tuple[float, int, str]] = field(default_factory=list, init=False)
    _wake_at: dict[str, float] = field(default_factory=dict, init=False)
    _sequence: Iterator[int] = field(default_factory=count, init=False)
    # Hosts with work that need their robots.txt from the store first.
    _unread: OrderedDict[int, None] = field(default_factory=OrderedDict, init=False)
    # By host with a pending robots.txt request: hosts that wait to share that robots.txt.
    _sharers: dict[int, list[_HostEntry]] = field(default_factory=dict, init=False)
    # Earliest time at which a ready queue's robots.txt becomes stale or its hours end.
    _recheck_at: float = field(default=inf, init=False)

    # -- hosts -------------------------------------------------------------------

    @property
    def host_count(self) -> int:
        """The number of known hosts."""
        return len(self.hosts)

    def knows(self, host_id: int) -> bool:
        """Return whether :meth:`add_host` was called for a host."""
        return host_id in self.hosts

    def add_host(self, host: Host, queue_key: str) -> None:
        """Add a host to its queue, in the state that an earlier run left."""
        queue = self._queue_of(queue_key)
        self.robots.learn(host)
        delay_s = self.robots.crawl_delay_s(host.host_id)
        repeats = host.repeats or Repeats()
        entry = _HostEntry(host.host_id, host.origin, queue, delay_s, repeats)
        own = self.rules_at(self.rules, host.origin)
        queue.state.rules = stricter(queue.state.rules, own) if queue.hosts else own
        self.hosts[host.host_id] = queue.hosts[host.host_id] = entry
        self._by_origin[host.origin] = host.host_id
        if host.state is not None:
            queue.state.restore(host.state)
        queue.state.obey_crawl_delay(max(queue.state.crawl_delay_s, delay_s))
        queue.state.hold(self.held_at)

    def obey(self, rules: PolitenessRules, rules_at: RulesAt) -> None:
        """Apply these rules from now on; current pauses are not changed."""
        self.rules, self.rules_at = rules, rules_at
        for queue in self._queues.values():
            own = (self.rules_at(rules, host.origin) for host in queue.hosts.values())
            queue.state.rules = reduce(stricter, own, next(own, rules))
            self._schedule(queue)

    def shift(self, by: float) -> None:
        """Shift all times by a jump of the clock; pauses keep their length."""
        self.held_at += by
        self.robots.shift(by)
        for host in self.hosts.values():
            host.closed_until += by
            at = host.repeats.repeated_at + by
            host.repeats = replace(host.repeats, repeated_at=at)
        for queue in self._queues.values():
            queue.state.shift(by)
            self._schedule(queue)

    def wake(self, host_id: int) -> None:
        """Schedule a host for which the crawl queue has new URLs."""
        queue = self.hosts[host_id].queue
        # A queue that is ready keeps its place.
        if queue.state.key not in self.ready and queue.state.key not in self._requests_ready:
            self._schedule(queue)

    def ask_robots(self, host_id: int) -> None:
        """Fetch this host's robots.txt although none of its URLs is due yet."""
        entry = self.hosts[host_id]
        if entry.robots_on is None:
            self._fetch_robots(entry)
            self._schedule(entry.queue)

    def follow(self, request: RobotsRequest) -> None:
        """Queue a redirect hop of a robots.txt on the host queue of its target."""
        queue = self._queue_of(request.queue)
        self.hosts[request.host_id].robots_on = queue
        queue.requests.append(request)
        self._schedule(queue)

    def probe(self, host_id: int, url: str) -> bool:
        """Queue a probe unless robots.txt or the crawl queue forbids it; return whether it was."""
        queue = self.hosts[host_id].queue
        if not self.robots.verdict(host_id, url).allowed or not self.agenda.take_probe(host_id):
            return False
        queue.requests.append(ProbeRequest(host_id, url, queue.state.key))
        self._schedule(queue)
        return True

    def queue(self, request: ApiRequest) -> None:
        """Queue an API request; the caller decrements ``api_requests`` when it has ended."""
        self.api_requests += 1
        queue = self._queue_of(request.queue)
        queue.requests.append(request)
        self._schedule(queue)

    def put_back(self, due: DueUrl) -> None:
        """Requeue a URL that was taken, for its host's next turn."""
        self.agenda.put_back(due)
        self.wake(due.host_id)

    def again(self, request: RobotsRequest | ProbeRequest | ApiRequest) -> None:
        """Requeue a request that was taken and not made."""
        queue = self._queues[request.queue]
        queue.requests.append(request)
        self._schedule(queue)

    def rest(self, queue_key: str, until: float) -> None:
        """Block a host queue until a time, or until :meth:`release`."""
        queue = self._queue_of(queue_key)
        queue.state.rest(until)
        self._resting.add(queue_key)
        self._schedule(queue)

    @property
    def has_resting(self) -> bool:
        """True if host queues wait for :meth:`release`."""
        return bool(self._resting)

    def release(self, now: float, since: float = inf) -> None:
        """Release the resting queues; drop failures that began at ``since`` or later (ours)."""
        keys, self._resting = self._resting, set()
        for host in self.hosts.values() if since < inf else ():
            if self.robots.pardon(host.host_id, since):
                host.closed_until = now
            if host.queue.state.failing_since >= since:
                keys.add(host.queue.state.key)
        for key in keys:
            self._queues[key].state.release(since)
            self._schedule(self._queues[key])

    def host_of(self, origin: str) -> tuple[int, str] | None:
        """Return the id and the politeness key of an origin's host, or None if it is unknown."""
        host_id = self._by_origin.get(origin)
        return None if host_id is None else (host_id, self.hosts[host_id].queue.state.key)

    def permits(self, host_id: int, url: str, now: float) -> bool | None:
        """Return whether robots.txt allows a URL; None while robots.txt is being fetched."""
        entry = self.hosts[host_id]
        if entry.closed_until > now:
            return False
        if not self.robots.is_fresh(host_id, now):
            self._want_robots(entry, now)
            self._schedule(entry.queue)
            if not self.robots.is_fresh(host_id, now):
                return None
        return self.robots.verdict(host_id, url).allowed

    # -- the cycle of a request --------------------------------------------------

    def next(self, now: float, *, pages: bool = True) -> FrontierRequest | None:
        """Take the next request that may start now, or None; see :meth:`wakes_at`.

        Without ``pages`` no due URL is taken. A robots.txt is read from the store only if no page
        is due, so that a file is used before another one evicts it.
        """
        self._promote(now)
        while self._requests_ready:
            _, queue = self._requests_ready.popitem(last=False)
            if self._has_room(queue):
                request = queue.requests.pop(0)
                self._start(queue)
                return request
            self._block(queue)
        if not pages:
            return None
        due = self.agenda.next(_ReadyHosts(self, now), now)
        if due is None:
            return RobotsReading(self._unread.popitem(last=False)[0]) if self._unread else None
        return self._page_request(due)

    def ended(
        self,
        queue_key: str,
        now: float,
        response_s: float,
        answer: HostAnswer,
        retry_after_s: float | None,
        why: str,
    ) -> None:
        """Record the end of a request of this host queue."""
        queue = self._queues[queue_key]
        queue.state.end(now, response_s, answer, retry_after_s, why)
        self._schedule(queue)
        if queue.shares:
            group = queue.shares.pop()
            self._shared[group] -= 1
            if not self._shared[group]:
                del self._shared[group]
            blocked = self._blocked.get(group, OrderedDict())
            # One queue takes the free place. If the group has no request left, all queues are
            # scheduled, as some may have lost their work.
            for other in list(islice(blocked.values(), 1 if self._shared[group] else None)):
                self._schedule(other)

    def owe(self, queue_key: str, now: float, requests: int) -> None:
        """Charge a host queue for requests that a rendered page made at once."""
        queue = self._queue_of(queue_key)
        queue.state.owe(now, requests)
        self._schedule(queue)

    def heed(
        self, queue_key: str, now: float, answer: HostAnswer, retry_after_s: float | None, why: str
    ) -> None:
        """Apply a back-off signal that is not the status of one of the queue's requests.

        Examples: a page's text reads "too many requests"; a request of a rendered page failed.
        """
        queue = self._queue_of(queue_key)
        queue.state.heed(now, answer, retry_after_s, why)
        self._schedule(queue)

    def pause_s(self, queue_key: str, now: float) -> float:
        """Return the seconds until a host that is parked or outside its hours may be visited."""
        state = self._queue_of(queue_key).state
        return max(state.parked_until, state.rules.opens_at(now)) - now

    def robots_known(self, host_id: int, now: float) -> None:
        """Open or close a host after its robots.txt has been fetched or read."""
        entry = self.hosts[host_id]
        entry.robots_on = None
        entry.closed_until, entry.closed_reason = self.robots.closed(host_id, now)
        self._obey_crawl_delay(entry)
        self._schedule(entry.queue)
        for other in self._sharers.pop(host_id, ()):
            other.robots_on = None
            self._schedule(other.queue)

    def answered(self, host_id: int) -> None:
        """Note that a page of a host did not redirect; end the sharing of another's robots.txt."""
        if self.robots.part(host_id):
            self._schedule(self.hosts[host_id].queue)

    # -- reports -----------------------------------------------------------------

    def wakes_at(self) -> float | None:
        """Return the time at which the next queue with work becomes ready, or None.

        Call only after :meth:`next` returned None: queues that are ready now are not considered.
        """
        while self._waiting:
            at, _, key = self._waiting[0]
            if self._wake_at.get(key) == at:
                return at
            heappop(self._waiting)
        return None

    def least_s(self, due: Mapping[int, int]) -> float:
        """Return the seconds that the slowest queue needs for the ``due`` requests, by host."""
        seconds: dict[str, float] = {}
        for host_id, urls in due.items():
            if host_id in self.hosts:
                state = self.hosts[host_id].queue.state
                took = urls * (state.delay_s + state.response_s)
                seconds[state.key] = seconds.get(state.key, 0.0) + took
        return max(seconds.values(), default=0.0)

    def host_state(self, host_id: int) -> HostState:
        """Return the politeness state of a host that must outlive the process."""
        return self.hosts[host_id].queue.state.state(host_id)

    def repeats(self, host_id: int) -> Repeats:
        """Return the repeat counts of a host."""
        return self.hosts[host_id].repeats

    def learn_repeats(self, host_id: int, known: Repeats) -> None:
        """Replace the repeat counts of a host."""
        host = self.hosts[host_id]
        host.has_new_repeats |= known != host.repeats
        host.repeats = known

    def new_repeats(self, host_id: int) -> tuple[int, Repeats] | None:
        """Return the host and its repeat counts once after each change, else None."""
        host = self.hosts[host_id]
        is_new, host.has_new_repeats = host.has_new_repeats, False
        return (host_id, host.repeats) if is_new else None

    def waits(self, now: float) -> dict[int, str]:
        """Return by host why its due URLs must wait; hosts without a reason are missing."""
        reasons = {}
        for entry in self.hosts.values():
            if reason := self._wait_reason(entry, now):
                reasons[entry.host_id] = reason
        return reasons

    def parked(self, now: float) -> int:
        """Count the host queues that pause after failures."""
        return sum(queue.state.parked_until > now for queue in self._queues.values())

    def active(self, now: float) -> int:
        """Count hosts with a request under way, or with a request that waits only for the delay."""
        return sum(
            (entry.queue.state.in_flight > 0 or self.agenda.waiting(entry.host_id))
            and self._wait_reason(entry, now) is None
            for entry in self.hosts.values()
        )

    def _wait_reason(self, entry: _HostEntry, now: float) -> str | None:
        if not self.agenda.waiting(entry.host_id):
            return None
        if entry.closed_until > now:
            return entry.closed_reason
        queue = (entry.robots_on or entry.queue).state
        return queue.parked_reason if queue.parked_until > now else None

    # -- host queues -------------------------------------------------------------

    def _queue_of(self, key: str) -> _QueueEntry:
        if key not in self._queues:
            self._queues[key] = _QueueEntry(HostQueue(key, self.rules, self.rng))
            self._queues[key].state.hold(self.held_at)
        return self._queues[key]

    def _schedule(self, queue: _QueueEntry) -> None:
        """Schedule a queue for its time, or unschedule it if it is full or has no work."""
        key = queue.state.key
        # Runs twice per page: ``in`` costs less than a call of ``pop``.
        if key in self.ready:
            del self.ready[key]
        if key in self._requests_ready:
            del self._requests_ready[key]
        if self._blocked:
            for blocked in self._blocked.values():
                blocked.pop(key, None)
        at = None if queue.state.is_full else self._work_at(queue)
        if at is not None:
            self._wait(queue, max(at, queue.state.ready_at))
        elif key in self._wake_at:
            del self._wake_at[key]

    def _wait(self, queue: _QueueEntry, at: float) -> None:
        key = queue.state.key
        if self._wake_at.get(key) != at:
            self._wake_at[key] = at
            heappush(self._waiting, (at, next(self._sequence), key))

    def _work_at(self, queue: _QueueEntry) -> float | None:
        """Return the time of the queue's next work, ignoring its delay, or None."""
        if queue.requests:
            return 0.0
        first = None
        for host in queue.hosts.values():
            if host.robots_on is None and self.agenda.waiting(host.host_id):
                first = host.closed_until if first is None else min(first, host.closed_until)
        return first

    def _promote(self, now: float) -> None:
        """Make all queues ready that are due."""
        if now >= self._recheck_at:
            self._recheck_at = inf
            for queue in list(self.ready.values()):
                self._schedule(queue)
        while self.robots.put_away:
            if host := self.hosts.get(self.robots.put_away.pop()):
                self._schedule(host.queue)
        while self._waiting and self._waiting[0][0] <= now:
            at, _, key = heappop(self._waiting)
            if self._wake_at.get(key) == at:
                del self._wake_at[key]
                self._make_ready(self._queues[key], now)

    def _make_ready(self, queue: _QueueEntry, now: float) -> None:
        """Make a queue ready: for the robots.txt of its first host with work, or for a page."""
        if (opens_at := queue.state.rules.opens_at(now)) > now:
            self._wait(queue, opens_at)
            return
        if not queue.requests:
            if (turn := self._turn_of(queue, now)) is None:
                # Its work was taken while it waited; new work wakes it.
                return
            if not self.robots.is_fresh(turn.host_id, now):
                self._want_robots(turn, now)
        if not self._has_room(queue):
            self._block(queue)
        elif queue.requests:
            self._requests_ready[queue.state.key] = queue
        else:
            self.ready[queue.state.key] = queue
            ends = [self._recheck_at, queue.state.rules.closes_at(now)]
            ends += [
                at
                for host in queue.hosts.values()
                if host.may_be_visited(now) and (at := self.robots.fresh_until(host.host_id)) > now
            ]
            self._recheck_at = min(ends)

    def _turn_of(self, queue: _QueueEntry, now: float) -> _HostEntry | None:
        """Return the first host of a queue that has work now, or None."""
        for host in queue.hosts.values():
            if host.may_be_visited(now) and self.agenda.waiting(host.host_id):
                return host
        return None

    def _obey_crawl_delay(self, host: _HostEntry) -> None:
        host.crawl_delay_s = self.robots.crawl_delay_s(host.host_id)
        queue = host.queue
        queue.state.obey_crawl_delay(max(h.crawl_delay_s for h in queue.hosts.values()))

    def _want_robots(self, host: _HostEntry, now: float) -> None:
        """Schedule a host's robots.txt to be read from the store, shared, or else fetched."""
        if self.robots.is_put_away(host.host_id):
            self._unread[host.host_id] = None
        elif host.robots_on is None and not self._shares(host, now):
            self._fetch_robots(host)

    def _shares(self, host: _HostEntry, now: float) -> bool:
        """Share the target's robots.txt with a host that only redirects, or wait for that file.

        Return False if the host needs a robots.txt request.
        """
        target_id = self.agenda.target_of(host.host_id)
        target = None if target_id is None else self.hosts.get(target_id)
        if target is None or not self.robots.may_share(host.host_id, target.host_id):
            return False
        if self.robots.is_fresh(target.host_id, now):
            self.robots.share(host.host_id, host.origin, target.host_id)
            self._obey_crawl_delay(host)
            return True
        host.robots_on = target.queue
        self._sharers.setdefault(target.host_id, []).append(host)
        if target.robots_on is None:
            self._fetch_robots(target)
            if target.queue is not host.queue:
                self._schedule(target.queue)
        return True

    def _fetch_robots(self, host: _HostEntry) -> None:
        """Queue the request for a host's robots.txt on the host's queue."""
        host.robots_on = host.queue
        url, key = robots_url(origin(host.origin)), host.queue.state.key
        host.queue.requests.append(RobotsRequest(host.host_id, host.origin, url, key))

    def _page_request(self, due: DueUrl) -> FrontierRequest:
        """Request the URL as found, or its canonical form if robots.txt forbids only the former."""
        queue = self.hosts[due.host_id].queue
        for fetch_url in (due.fetch_url, due.url):
            if self.robots.verdict(due.host_id, fetch_url).allowed:
                if len(queue.hosts) > 1:
                    queue.hosts.move_to_end(due.host_id)
                self._start(queue)
                if fetch_url != due.fetch_url:
                    due = replace(due, fetch_url=fetch_url)
                return PageRequest(due, queue.state.key)
        self._schedule(queue)
        return Refusal(due, self.robots.verdict(due.host_id, due.url).rule or "")

    def _start(self, queue: _QueueEntry) -> None:
        """Start a request; the queue stays ready only if it allows more connections."""
        queue.state.start()
        if share := self._share(queue):
            queue.shares.append(share[0])
            self._shared[share[0]] += 1
        self._schedule(queue)

    def _has_room(self, queue: _QueueEntry) -> bool:
        if not self._shared:
            # Each group may have at least one request.
            return True
        share = self._share(queue)
        return share is None or self._shared[share[0]] < share[1]

    def _block(self, queue: _QueueEntry) -> None:
        if share := self._share(queue):
            meet("requests to hosts that nobody asked for", share[0])
            self._blocked.setdefault(share[0], OrderedDict())[queue.state.key] = queue

    def _share(self, queue: _QueueEntry) -> tuple[str, int] | None:
        """Return the largest share of the queue's hosts; None if one host is not limited."""
        largest = None
        for host in queue.hosts.values():
            if (share := self.share_of(host.origin)) is None:
                return None
            largest = max(share, largest or share, key=itemgetter(1))
        return largest

    def may_start(self, host: _HostEntry, now: float) -> bool:
        """Return whether a page of a host in a queue that is ready may be requested."""
        is_open = host.may_be_visited(now) and self.robots.is_fresh(host.host_id, now)
        return is_open and self._has_room(host.queue)


@dataclass(slots=True, eq=False)
class _ReadyHosts(Collection[int]):
    """Hosts that may be visited now, in the order in which their queues became ready."""

    of: Frontier
    now: float

    def __iter__(self) -> Iterator[int]:
        for queue in self.of.ready.values():
            for host in queue.hosts.values():
                if self.of.may_start(host, self.now):
                    yield host.host_id

    def __contains__(self, host_id: object) -> bool:
        host = self.of.hosts.get(host_id) if isinstance(host_id, int) else None
        is_ready = host is not None and host.queue.state.key in self.of.ready
        return host is not None and is_ready and self.of.may_start(host, self.now)

    def __len__(self) -> int:
        return sum(1 for _ in self)
