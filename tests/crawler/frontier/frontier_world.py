"""A frontier with its parts around it, for tests that drive it by hand."""

from collections import defaultdict, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random

from freshet.crawler.frontier.frontier import Frontier, FrontierRequest, PageRequest, RobotsReading
from freshet.crawler.frontier.politeness import PolitenessRules
from freshet.crawler.robots import in_force
from freshet.crawler.robots.cache import RobotsCache, RobotsRules
from freshet.storage.entries import Host, HostState, RobotsRecord
from freshet.storage.records import Acknowledged, DueUrl

DAY_S = 86_400.0
RULES = PolitenessRules()
ALLOW = b"User-agent: *\nDisallow:\n"
PRIVATE = b"User-agent: *\nDisallow: /private\n"
SLOW = b"User-agent: *\nCrawl-delay: 7\nDisallow: /private\n"


@dataclass
class Shelf:
    """An agenda in memory: due URLs by host, taken in the order of the ready hosts."""

    urls: dict[int, deque[DueUrl]] = field(default_factory=lambda: defaultdict(deque))
    #: The hosts to which others have only redirected.
    targets: dict[int, int] = field(default_factory=dict)
    #: The hosts that get no probe.
    unprobed: set[int] = field(default_factory=set)

    def put(self, due: DueUrl) -> None:
        self.urls[due.host_id].append(due)

    def next(self, ready: Collection[int], now: float) -> DueUrl | None:
        for host_id in ready:
            assert host_id in ready
            if self.urls[host_id]:
                return self.urls[host_id].popleft()
        return None

    def waiting(self, host_id: int) -> bool:
        return bool(self.urls[host_id])

    def put_back(self, due: DueUrl) -> None:
        self.urls[due.host_id].appendleft(due)

    def done(self, acknowledged: Acknowledged) -> None:
        """Nothing: the model puts retries back itself."""

    @property
    def hungry(self) -> bool:
        return False

    async def replenish(self, now: float) -> tuple[Sequence[Host], Sequence[int]]:
        return (), ()

    def wakes_at(self) -> float | None:
        return None

    def overdue_at(self) -> float:
        return inf

    def target_of(self, host_id: int) -> int | None:
        return self.targets.get(host_id)

    def take_probe(self, host_id: int) -> bool:
        return host_id not in self.unprobed


def page(page_id: int, host_id: int, path: str = "") -> DueUrl:
    url = f"http://h{host_id}/{path or page_id}"
    return DueUrl(page_id, url, url, host_id, due_at=0.0)


def parsed(body: bytes, at: float) -> RobotsRecord:
    return RobotsRecord("parsed", at, body)


class World:
    """A frontier with its parts; hosts are ``http://h<id>``."""

    def __init__(
        self, rules: PolitenessRules = RULES, seed: int = 0, strangers: Collection[str] = ()
    ) -> None:
        self.shelf = Shelf()
        self.stored: dict[int, RobotsRecord] = {}
        self.book = RobotsCache("freshet", RobotsRules(), rules, Random(seed))
        self.frontier = Frontier(
            self.shelf, self.book, rules, Random(seed),
            share_of=lambda url: ("", 2) if url in strangers else None,
        )  # fmt: skip

    def add(
        self,
        host_id: int,
        queue: str,
        robots: RobotsRecord | None = None,
        state: HostState | None = None,
    ) -> None:
        self.frontier.add_host(Host(host_id, f"http://h{host_id}", state, robots), queue)

    def supply(self, *dues: DueUrl) -> None:
        for due in dues:
            self.shelf.put(due)
            self.frontier.wake(due.host_id)

    def fine(self, queue: str, now: float, response_s: float = 0.0) -> None:
        self.frontier.ended(queue, now, response_s, "fine", None, "200")

    def settle(self, host_id: int, record: RobotsRecord, now: float) -> None:
        taken = self.book.settle(host_id, f"http://h{host_id}", record, now)
        self.stored[host_id] = record if taken is record else self.stored[host_id]
        self.frontier.robots_known(host_id, now)

    def read_robots(self, request: RobotsReading, now: float) -> None:
        """Read a file that was put away from the store."""
        record = self.stored[request.host_id]
        host = Host(request.host_id, f"http://h{request.host_id}", None, record)
        self.book.restore(host, in_force(record))
        self.frontier.robots_known(request.host_id, now)

    def requests(self, now: float) -> list[FrontierRequest]:
        found: list[FrontierRequest] = []
        while (request := self.frontier.next(now)) is not None:
            found.append(request)
        return found

    def order(self, until: float, response_s: float = 0.0) -> list[tuple[float, int]]:
        """Fetch all pages that can be fetched: when, and of which host."""
        now, order = 0.0, []
        while now <= until:
            for request in self.requests(now):
                assert isinstance(request, PageRequest)
                order.append((now, request.due.host_id))
                self.fine(request.queue, now + response_s, response_s)
            wakes_at = self.frontier.wakes_at()
            if wakes_at is None:
                break
            now = wakes_at
        return order
