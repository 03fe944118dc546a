"""The frontier against a model: any hosts, answers and times, politeness and liveness hold."""

from collections import defaultdict
from dataclasses import dataclass, replace
from math import inf

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from freshet.crawler.frontier.frontier import (
    ApiRequest,
    FrontierRequest,
    PageRequest,
    ProbeRequest,
    Refusal,
    RobotsReading,
    RobotsRequest,
)
from freshet.crawler.frontier.politeness import HostAnswer, PolitenessRules
from freshet.storage.entries import HostState, RobotsRecord
from freshet.storage.records import DueUrl
from tests.crawler.frontier.frontier_world import ALLOW, DAY_S, PRIVATE, SLOW, World, page, parsed


@dataclass
class QueueModel:
    """What must hold of one queue, by the answers that it was given."""

    under_way: int = 0
    not_before: float = 0.0


@dataclass
class HostModel:
    """What its robots.txt was when last fetched; ``body`` None: there is no copy."""

    queue: str
    body: bytes | None = None
    fetched_at: float = -inf
    is_unreachable: bool = False
    is_asked: bool = False


PAGE_ANSWERS = st.sampled_from(
    [
        ("fine", None),
        ("fine", None),
        ("throttled", 30.0),
        ("throttled", 1e9),
        ("throttled", None),
        ("failed", None),
        ("down", None),
        ("forbidden", None),
    ]
)
RESPONSE_S = st.sampled_from([0.0, 0.2, 3.0, 100.0])
PATHS = st.sampled_from(["", "", "private/"])
BODIES = st.sampled_from([ALLOW, PRIVATE, SLOW])
QUEUES = ("own", "shared")


class FrontierMachine(RuleBasedStateMachine):
    """Drives a frontier as the pool does, with any timing and any answers."""

    @initialize(
        queues=st.lists(st.sampled_from(QUEUES), min_size=1, max_size=5),
        connections=st.integers(1, 3),
        seed=st.integers(0, 3),
        room_bytes=st.sampled_from([2_000, 1_000_000]),
    )
    def begin(self, queues: list[str], connections: int, seed: int, room_bytes: int) -> None:
        self.politeness = PolitenessRules(connections_per_host=connections, forbidden_burst=2)
        self.seed = seed
        self.now = 1_000.0
        self.page_ids = 0
        self.handed_out: set[int] = set()
        self.retries: list[tuple[float, DueUrl]] = []
        self.under_way: list[PageRequest | RobotsRequest] = []
        self.queues: dict[str, QueueModel] = defaultdict(QueueModel)
        self.hosts = {
            host_id: HostModel(f"queue {host_id}" if queue == "own" else queue)
            for host_id, queue in enumerate(queues)
        }
        self.world = World(self.politeness, seed)
        # Room for one file or for all.
        self.world.book.room_bytes = room_bytes
        for host_id, host in self.hosts.items():
            self.world.add(host_id, host.queue)
            self.links_are_found(host_id, ["", "private/", ""])

    # -- what happens outside ----------------------------------------------------

    @rule(pick=st.integers(0, 4), paths=st.lists(PATHS, max_size=3))
    def links_are_found(self, pick: int, paths: list[str]) -> None:
        host_id = pick % len(self.hosts)
        for path in paths:
            self.page_ids += 1
            self.supply(page(self.page_ids, host_id, f"{path}{self.page_ids}"))

    @rule(pick=st.integers(0, 4))
    def a_seed_asks_for_robots(self, pick: int) -> None:
        self.world.frontier.ask_robots(pick % len(self.hosts))

    @rule(seconds=st.sampled_from([0.5, 20.0, 3_600.0, DAY_S, 31 * DAY_S]))
    def time_passes(self, seconds: float) -> None:
        self.advance(self.now + seconds)

    @rule(n=st.integers(1, 3))
    def a_full_pool_takes_a_few(self, n: int) -> None:
        """Ready queues may stay ready."""
        for _ in range(n):
            request = self.world.frontier.next(self.now)
            if request is not None:
                self.check(request)

    @rule()
    def the_pool_takes_all_it_can_get(self) -> None:
        if not self.launch() and not self.under_way:
            self.wake()

    def wake(self) -> None:
        """Wait as the pool does, until something can start."""
        wakes_at = self.world.frontier.wakes_at()
        if wakes_at is not None:
            self.advance(wakes_at)
            assert self.launch() > 0

    def launch(self) -> int:
        """Start what may start; how many requests that were."""
        n = 0
        while (request := self.world.frontier.next(self.now)) is not None:
            self.check(request)
            n += 1
            assert n <= 1_000
        self.check_quiet()
        return n

    @precondition(lambda self: self.under_way)
    @rule(pick=st.integers(0, 9), answer=PAGE_ANSWERS, response_s=RESPONSE_S, body=BODIES)
    def an_exchange_ends(
        self, pick: int, answer: tuple[HostAnswer, float | None], response_s: float, body: bytes
    ) -> None:
        request = self.under_way[pick % len(self.under_way)]
        if isinstance(request, PageRequest):
            self.end_page(request, *answer, response_s)
        else:
            self.end_robots(request, *answer, response_s, body)
        self.launch()

    @precondition(lambda self: any(isinstance(e, RobotsRequest) for e in self.under_way))
    @rule(queue=st.sampled_from(["shared", "elsewhere"]), response_s=RESPONSE_S)
    def a_robots_txt_redirects(self, queue: str, response_s: float) -> None:
        request = next(e for e in self.under_way if isinstance(e, RobotsRequest))
        self.end(request, "fine", None, response_s)
        hop = replace(request, url="http://else/robots.txt", queue=queue, redirects=1)
        self.world.frontier.follow(hop)

    @rule()
    def the_process_is_killed_and_started_again(self) -> None:
        old, self.world = self.world, World(self.politeness, self.seed)
        self.world.book.room_bytes = old.book.room_bytes
        self.world.stored = old.stored
        for host_id in self.hosts:
            state = old.frontier.host_state(host_id)
            entry = old.book._entries.get(host_id)
            self.expect_restored(state)
            self.world.add(
                host_id, self.hosts[host_id].queue, entry.record if entry else None,
                state if state.last_exchange_at else None,
            )  # fmt: skip
        for request in self.under_way:
            if isinstance(request, PageRequest):
                self.handed_out.discard(request.due.page_id)
                old.shelf.put(request.due)
        self.under_way = []
        for host in self.hosts.values():
            host.is_asked = False
        # A queue is remembered with its hosts: not that of a redirect to a stranger.
        known = {host.queue for host in self.hosts.values()}
        self.queues = defaultdict(QueueModel, {k: m for k, m in self.queues.items() if k in known})
        for queue in self.queues.values():
            queue.under_way = 0
        for urls in old.shelf.urls.values():
            self.supply(*urls)

    def expect_restored(self, state: HostState) -> None:
        """Of several connections' pauses the store keeps that of the last to end."""
        if self.politeness.connections_per_host > 1:
            queue = self.queues[state.queue]
            kept = max((state.last_exchange_at or -inf) + state.delay_s, state.parked_until or -inf)
            queue.not_before = min(queue.not_before, kept)

    def teardown(self) -> None:
        """Liveness: once the web behaves well, every URL is fetched or refused."""
        if not hasattr(self, "world"):
            return
        for _ in range(10_000):
            self.launch()
            if self.under_way:
                request = self.under_way[0]
                if isinstance(request, PageRequest):
                    self.end_page(request, "fine", None, 0.1)
                else:
                    self.end_robots(request, "fine", None, 0.1, PRIVATE)
                continue
            times = [at for at, _ in self.retries]
            if (wakes_at := self.world.frontier.wakes_at()) is not None:
                times.append(wakes_at)
            if not times:
                break
            self.advance(min(times))
        assert not any(self.world.shelf.urls.values())
        assert self.world.frontier.waits(self.now) == {}

    # -- how the world answers ---------------------------------------------------

    def supply(self, *dues: DueUrl) -> None:
        self.world.supply(*dues)

    def advance(self, now: float) -> None:
        self.now = max(self.now, now)
        due = [d for at, d in self.retries if at <= self.now]
        self.retries = [(at, d) for at, d in self.retries if at > self.now]
        self.supply(*due)

    def end(
        self,
        request: PageRequest | RobotsRequest,
        answer: HostAnswer,
        retry_after_s: float | None,
        response_s: float,
    ) -> None:
        self.under_way.remove(request)
        self.advance(self.now + response_s)
        queue = self.queues[request.queue]
        queue.under_way -= 1
        pauses = [
            self.politeness.delay_s,
            min(retry_after_s or 0.0, self.politeness.retry_after_cap_s),
        ]
        if answer != "down":
            pauses.append(min(response_s * self.politeness.slow_factor, self.politeness.slow_cap_s))
        if answer == "down" or (answer == "throttled" and not retry_after_s):
            pauses.append(self.politeness.back_off_initial_s)
        queue.not_before = max(queue.not_before, self.now + max(pauses))
        self.world.frontier.ended(
            request.queue, self.now, response_s, answer, retry_after_s, str(answer)
        )

    def end_page(
        self,
        request: PageRequest,
        answer: HostAnswer,
        retry_after_s: float | None,
        response_s: float,
    ) -> None:
        self.end(request, answer, retry_after_s, response_s)
        if answer in ("throttled", "failed", "down"):
            self.handed_out.remove(request.due.page_id)
            self.retries.append((self.now + 5.0 * (answer != "down"), request.due))
            self.advance(self.now)

    def end_robots(
        self,
        request: RobotsRequest,
        answer: HostAnswer,
        retry_after_s: float | None,
        response_s: float,
        body: bytes,
    ) -> None:
        self.end(request, answer, retry_after_s, response_s)
        host = self.hosts[request.host_id]
        host.is_asked = False
        host.is_unreachable = answer not in ("fine", "forbidden")
        if not host.is_unreachable:
            host.body, host.fetched_at = body, self.now
            record = parsed(body, self.now)
        else:
            if self.now - host.fetched_at > 30 * DAY_S:
                host.body = None
            record = RobotsRecord("unreachable", self.now, b"", str(answer))
        self.world.settle(request.host_id, record, self.now)

    # -- what must hold ----------------------------------------------------------

    def check(self, request: FrontierRequest) -> None:
        if isinstance(request, Refusal):
            self.check_robots(request.due, is_allowed=False)
            self.hand_out(request.due)
            return
        if isinstance(request, RobotsReading):
            self.world.read_robots(request, self.now)
            return
        # No rule here sends a probe or a call.
        assert not isinstance(request, ProbeRequest | ApiRequest)
        queue = self.queues[request.queue]
        assert queue.under_way < self.politeness.connections_per_host
        assert self.now >= queue.not_before
        queue.under_way += 1
        self.under_way.append(request)
        if isinstance(request, PageRequest):
            self.check_crawl_delay(request)
            self.check_robots(request.due, is_allowed=True)
            self.hand_out(request.due)
        elif not request.redirects:
            assert not self.hosts[request.host_id].is_asked
            self.hosts[request.host_id].is_asked = True

    def check_crawl_delay(self, request: PageRequest) -> None:
        if self.hosts[request.due.host_id].body == SLOW:
            last_end_at = self.world.frontier._queues[request.queue].state.last_end_at
            assert self.now >= last_end_at + 7.0

    def check_robots(self, due: DueUrl, *, is_allowed: bool) -> None:
        host = self.hosts[due.host_id]
        assert host.body is not None
        forbidden = host.body != ALLOW and "/private" in due.url
        assert is_allowed is not forbidden
        assert host.is_unreachable or self.now - host.fetched_at < DAY_S

    def hand_out(self, due: DueUrl) -> None:
        assert due.page_id not in self.handed_out
        self.handed_out.add(due.page_id)

    def check_quiet(self) -> None:
        """Nothing may start now: then something wakes the frontier, or nothing is to do."""
        wakes_at = self.world.frontier.wakes_at()
        assert wakes_at is None or wakes_at > self.now
        if any(self.world.shelf.urls.values()) and not self.under_way:
            assert wakes_at is not None


TestFrontierMachine = FrontierMachine.TestCase
TestFrontierMachine.settings = settings(max_examples=120, stateful_step_count=40)
