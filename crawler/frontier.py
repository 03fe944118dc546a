"""The frontier: chooses the next request over all hosts (BUbiNG's visit states).

Invariant: a request leaves the frontier only on a lane that may start, for a host whose
robots.txt is known and fresh and allows it. Consequence: politeness and robots hold for
every page, however it was found.

Pure state machine: no clock, no I/O. The shell calls :meth:`Frontier.next` until it gets
None, performs each request, and reports its end.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from math import inf
from random import Random

from freshet.crawler.politeness import Answer, Lane, PolitenessRules
from freshet.crawler.requests import (
    ApiRequest,
    FrontierRequest,
    PageRequest,
    ProbeRequest,
    Refusal,
    RobotsRequest,
)
from freshet.crawler.robots.cache import RobotsCache
from freshet.storage.entries import Host, HostState
from freshet.storage.records import Agenda, DueUrl


@dataclass(slots=True, eq=False)
class _LaneEntry:
    """``hosts`` in the order of their turns; ``requests`` go before any page."""

    state: Lane
    hosts: OrderedDict[int, _HostEntry] = field(default_factory=OrderedDict)
    requests: list[RobotsRequest | ProbeRequest | ApiRequest] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _HostEntry:
    """``asked_on`` is the lane on which its robots.txt is being asked for, if it is."""

    host_id: int
    origin: str
    lane: _LaneEntry
    crawl_delay_s: float
    asked_on: _LaneEntry | None = None
    closed_until: float = 0.0
    closed_reason: str | None = None


class Frontier:
    """Lanes of hosts, each ready, waiting for its time, full, or without work.

    Invariant: whatever gives a lane work, takes it away or moves its time ends in
    ``_schedule``. Consequence: no lane with work is forgotten, and a lane in ``_ready``
    has a page that may be asked for.

    ``robots_url_of`` gives an origin's robots.txt; ``book`` what is known of it.
    """

    def __init__(
        self,
        agenda: Agenda,
        book: RobotsCache,
        rules: PolitenessRules,
        rng: Random,
        *,
        robots_url_of: Callable[[str], str],
    ) -> None:
        self._agenda = agenda
        self._book = book
        self._rules = rules
        self._rng = rng
        self._robots_url_of = robots_url_of
        self._hosts: dict[int, _HostEntry] = {}
        self._by_origin: dict[str, int] = {}
        self._lanes: dict[str, _LaneEntry] = {}
        self._ready: OrderedDict[str, _LaneEntry] = OrderedDict()
        self._requests_ready: OrderedDict[str, _LaneEntry] = OrderedDict()
        # A heap; an entry counts while ``_wake_at`` has its time.
        self._waiting: list[tuple[float, int, str]] = []
        self._wake_at: dict[str, float] = {}
        self._sequence = count()
        # No robots.txt that a ready lane relies on grows old before this.
        self._fades_at = inf

    # -- hosts -------------------------------------------------------------------

    @property
    def host_count(self) -> int:
        """Number of hosts that are known."""
        return len(self._hosts)

    def knows(self, host_id: int) -> bool:
        """Return whether :meth:`add_host` was called for a host."""
        return host_id in self._hosts

    def add_host(self, host: Host, lane_key: str) -> None:
        """Make a host known, on its lane, as an earlier run left it."""
        lane = self._lane(lane_key)
        self._book.learn(host)
        delay_s = self._book.crawl_delay_s(host.host_id)
        entry = _HostEntry(host.host_id, host.origin, lane, delay_s)
        self._hosts[host.host_id] = lane.hosts[host.host_id] = entry
        self._by_origin[host.origin] = host.host_id
        if host.state is not None:
            lane.state.restore(host.state)
        lane.state.obey_crawl_delay(max(lane.state.crawl_delay_s, delay_s))

    def obey(self, rules: PolitenessRules) -> None:
        """Treat hosts by these rules from now on; pauses under way last as long as they were to."""
        self._rules = rules
        for lane in self._lanes.values():
            lane.state.rules = rules
            self._schedule(lane)

    def wake(self, host_id: int) -> None:
        """Note that the agenda has URLs of this host."""
        lane = self._hosts[host_id].lane
        # A lane that is ready keeps its place.
        if lane.state.key not in self._ready and lane.state.key not in self._requests_ready:
            self._schedule(lane)

    def ask_robots(self, host_id: int) -> None:
        """Fetch this host's robots.txt even though no URL of it is due yet."""
        entry = self._hosts[host_id]
        if entry.asked_on is None:
            self._ask(entry)
            self._schedule(entry.lane)

    def follow(self, request: RobotsRequest) -> None:
        """Queue a redirect hop of a robots.txt on the lane of its target."""
        lane = self._lane(request.lane)
        self._hosts[request.host_id].asked_on = lane
        lane.requests.append(request)
        self._schedule(lane)

    def probe(self, host_id: int, url: str) -> bool:
        """Queue a probe on the host's lane, unless its robots.txt forbids that."""
        lane = self._hosts[host_id].lane
        if not self._book.verdict(host_id, url).allowed:
            return False
        lane.requests.append(ProbeRequest(host_id, url, lane.state.key))
        self._schedule(lane)
        return True

    def queue(self, request: ApiRequest) -> None:
        """Queue a request that is for no page, on its lane."""
        lane = self._lane(request.lane)
        lane.requests.append(request)
        self._schedule(lane)

    def host_of(self, origin: str) -> tuple[int, str] | None:
        """Return the id and the lane of the host of an origin, None if it is not known."""
        host_id = self._by_origin.get(origin)
        return None if host_id is None else (host_id, self._hosts[host_id].lane.state.key)

    def permits(self, host_id: int, url: str, now: float) -> bool | None:
        """Return whether a host's robots.txt allows a URL; None: unknown, and being asked for."""
        entry = self._hosts[host_id]
        if entry.closed_until > now:
            return False
        if not self._book.is_fresh(host_id, now):
            self.ask_robots(host_id)
            return None
        return self._book.verdict(host_id, url).allowed

    # -- the cycle of a request --------------------------------------------------

    def next(self, now: float, *, pages: bool = True) -> FrontierRequest | None:
        """Take the next request that may start now, or None; see :meth:`wakes_at`.

        Without ``pages`` no due URL is taken.
        """
        self._promote(now)
        if self._requests_ready:
            _, lane = self._requests_ready.popitem(last=False)
            request = lane.requests.pop(0)
            self._start(lane)
            return request
        if not pages:
            return None
        ready = _ReadyHosts(self._ready, self._hosts, lambda host: self._is_open(host, now))
        due = self._agenda.next(ready, now)
        return None if due is None else self._page_request(due)

    def ended(
        self,
        lane_key: str,
        now: float,
        response_s: float,
        answer: Answer,
        retry_after_s: float | None,
        why: str,
    ) -> None:
        """Note that a request on this lane has ended."""
        lane = self._lanes[lane_key]
        lane.state.end(now, response_s, answer, retry_after_s, why)
        self._schedule(lane)

    def turned_away(self, host_id: int, now: float, retry_after_s: float | None, why: str) -> None:
        """Note that a page of this host says what a status should have: too many requests."""
        lane = self._hosts[host_id].lane
        lane.state.refused(now, retry_after_s, why)
        self._schedule(lane)

    def robots_known(self, host_id: int, now: float) -> None:
        """Open a host whose robots.txt the book has by now, or close it for a while."""
        entry = self._hosts[host_id]
        entry.asked_on = None
        entry.crawl_delay_s = self._book.crawl_delay_s(host_id)
        entry.closed_until, entry.closed_reason = self._book.closed(host_id, now)
        lane = entry.lane
        lane.state.obey_crawl_delay(max(h.crawl_delay_s for h in lane.hosts.values()))
        self._schedule(lane)

    # -- reports -----------------------------------------------------------------

    def wakes_at(self) -> float | None:
        """Return the time at which the next lane with work becomes ready; None: no lane has work.

        Call only after :meth:`next` returned None: lanes that are ready now are not considered.
        """
        while self._waiting:
            at, _, key = self._waiting[0]
            if self._wake_at.get(key) == at:
                return at
            heappop(self._waiting)
        return None

    def host_state(self, host_id: int) -> HostState:
        """Return what politeness must remember of a host."""
        return self._hosts[host_id].lane.state.state(host_id)

    def waits(self, now: float) -> dict[int, str]:
        """Return the hosts that have work and are kept from it, with the reason."""
        reasons = {}
        for entry in self._hosts.values():
            if reason := self._wait_reason(entry, now):
                reasons[entry.host_id] = reason
        return reasons

    def parked(self, now: float) -> int:
        """Count the lanes that are left alone for their trouble."""
        return sum(lane.state.parked_until > now for lane in self._lanes.values())

    def active(self, now: float) -> int:
        """Count the hosts that are being asked, or will be as soon as their delay is over."""
        return sum(
            (entry.lane.state.in_flight > 0 or self._agenda.waiting(entry.host_id))
            and self._wait_reason(entry, now) is None
            for entry in self._hosts.values()
        )

    def _wait_reason(self, entry: _HostEntry, now: float) -> str | None:
        if not self._agenda.waiting(entry.host_id):
            return None
        if entry.closed_until > now:
            return entry.closed_reason
        lane = (entry.asked_on or entry.lane).state
        return lane.parked_reason if lane.parked_until > now else None

    # -- lanes -------------------------------------------------------------------

    def _lane(self, key: str) -> _LaneEntry:
        if key not in self._lanes:
            self._lanes[key] = _LaneEntry(Lane(key, self._rules, self._rng))
        return self._lanes[key]

    def _schedule(self, lane: _LaneEntry) -> None:
        """Put a lane where it belongs: asleep until its time, or out of the way."""
        key = lane.state.key
        self._ready.pop(key, None)
        self._requests_ready.pop(key, None)
        at = None if lane.state.is_full else self._work_at(lane)
        if at is None:
            self._wake_at.pop(key, None)
            return
        at = max(at, lane.state.ready_at)
        if self._wake_at.get(key) != at:
            self._wake_at[key] = at
            heappush(self._waiting, (at, next(self._sequence), key))

    def _work_at(self, lane: _LaneEntry) -> float | None:
        """Return the time of the lane's next work, politeness aside; None: it has none."""
        if lane.requests:
            return 0.0
        times = [
            host.closed_until
            for host in lane.hosts.values()
            if host.asked_on is None and self._agenda.waiting(host.host_id)
        ]
        return min(times, default=None)

    def _promote(self, now: float) -> None:
        """Make the lanes ready whose time has come."""
        if now >= self._fades_at:
            self._fades_at = inf
            for lane in list(self._ready.values()):
                self._schedule(lane)
        while self._waiting and self._waiting[0][0] <= now:
            at, _, key = heappop(self._waiting)
            if self._wake_at.get(key) == at:
                del self._wake_at[key]
                self._make_ready(self._lanes[key], now)

    def _make_ready(self, lane: _LaneEntry, now: float) -> None:
        """Make a lane ready for what its first host with work needs: robots.txt, or a page."""
        if not lane.requests:
            turn = next((h for h in lane.hosts.values() if self._has_work(h, now)), None)
            if turn is not None and not self._book.is_fresh(turn.host_id, now):
                self._ask(turn)
        if lane.requests:
            self._requests_ready[lane.state.key] = lane
        else:
            self._ready[lane.state.key] = lane
            fresh = [
                self._book.fresh_until(h.host_id)
                for h in lane.hosts.values()
                if self._is_open(h, now)
            ]
            self._fades_at = min([self._fades_at, *fresh])

    def _ask(self, host: _HostEntry) -> None:
        """Queue the request for a host's robots.txt on the host's own lane."""
        host.asked_on = host.lane
        url, key = self._robots_url_of(host.origin), host.lane.state.key
        host.lane.requests.append(RobotsRequest(host.host_id, host.origin, url, key))

    def _page_request(self, due: DueUrl) -> FrontierRequest:
        """Ask for the URL as found; where only that spelling is forbidden, for the canonical."""
        lane = self._hosts[due.host_id].lane
        for fetch_url in (due.fetch_url, due.url):
            if self._book.verdict(due.host_id, fetch_url).allowed:
                lane.hosts.move_to_end(due.host_id)
                self._start(lane)
                return PageRequest(replace(due, fetch_url=fetch_url), lane.state.key)
        self._schedule(lane)
        return Refusal(due, self._book.verdict(due.host_id, due.url).rule or "")

    def _start(self, lane: _LaneEntry) -> None:
        """Start a request; the lane stays ready only for further connections."""
        lane.state.start()
        self._schedule(lane)

    def _has_work(self, host: _HostEntry, now: float) -> bool:
        return _may_be_asked(host, now) and self._agenda.waiting(host.host_id)

    def _is_open(self, host: _HostEntry, now: float) -> bool:
        return _may_be_asked(host, now) and self._book.is_fresh(host.host_id, now)


def _may_be_asked(host: _HostEntry, now: float) -> bool:
    return host.asked_on is None and host.closed_until <= now


class _ReadyHosts(Collection[int]):
    """The hosts that may be asked for a page now, those of the longest ready lane first."""

    def __init__(
        self,
        ready: Mapping[str, _LaneEntry],
        hosts: Mapping[int, _HostEntry],
        is_open: Callable[[_HostEntry], bool],
    ) -> None:
        self._ready = ready
        self._hosts = hosts
        self._is_open = is_open

    def __iter__(self) -> Iterator[int]:
        for lane in self._ready.values():
            for host in lane.hosts.values():
                if self._is_open(host):
                    yield host.host_id

    def __contains__(self, host_id: object) -> bool:
        entry = self._hosts.get(host_id) if isinstance(host_id, int) else None
        return entry is not None and entry.lane.state.key in self._ready and self._is_open(entry)

    def __len__(self) -> int:
        return sum(1 for _ in self)
