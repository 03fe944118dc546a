"""The pool and the agenda of a daemon: for any supply of pages they make progress, or they wait."""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from random import Random
from typing import cast

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from freshet.crawler.compare.not_content.check import Probes
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.frontier.frontier import Frontier, FrontierRequest, PageRequest
from freshet.crawler.frontier.politeness import Pacer, PolitenessRules
from freshet.crawler.robots.cache import RobotsCache, RobotsRules
from freshet.crawler.run.pool import FetchPool, PoolRules
from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.queue.page_rules import PageRules
from freshet.scheduler.queue.rankers import PolicyRanker
from freshet.scheduler.queue.recrawl import RecrawlAgenda
from freshet.storage.database import reading
from freshet.storage.entries import Kind, RobotsRecord
from freshet.storage.records import Acknowledged, Entry, Observation, Visit
from tests.storage.small_store import SmallStore, small_store

DAY_S = 86_400.0
SECONDS = 60.0
#: A window of four pages is doubled ten times until it is full.
MOST_VALUATIONS = 12


@dataclass(frozen=True, slots=True)
class Site:
    """A host: its pages, the seconds between requests, and what its pages answer in turn."""

    pages: int
    delay_s: float
    answers: tuple[Kind, ...]
    least_s: float


class Counting(PolicyRanker):
    """Counts valuations since the last request, or since time has passed."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(GreedyIndex().index)
        self.clock, self.since = clock, -inf
        self.valuations = self.in_all = 0

    def progress(self) -> None:
        self.valuations = 0

    def values(self, now: float) -> Floats:
        if self.clock.now() > self.since:
            self.since, self.valuations = self.clock.now(), 0
        self.valuations += 1
        self.in_all += 1
        assert self.valuations <= MOST_VALUATIONS, "values pages again and again"
        return super().values(now)


class Calm:
    """Nobody probes."""

    def begin(self, _queued: object) -> None: ...

    waiting = 0

    def give_up(self) -> None: ...


@dataclass(slots=True)
class Hosts:
    """Answers at once, and notes when it was asked."""

    sites: Sequence[Site]
    clock: VirtualClock
    ranker: Counting
    frontier: Frontier = field(init=False)
    asked: list[list[float]] = field(default_factory=list)

    async def perform(self, request: FrontierRequest) -> list[Entry]:
        assert isinstance(request, PageRequest)
        now, host = self.clock.now(), request.due.host_id - 1
        self.ranker.progress()
        kind = self.sites[host].answers[len(self.asked[host]) % len(self.sites[host].answers)]
        self.asked[host].append(now)
        self.frontier.ended(
            request.queue, now, response_s=0.0, answer="fine", retry_after_s=None, why=""
        )
        return [Visit(request.due, Observation(request.due.page_id, now, kind))]


async def serve(sites: Sequence[Site], budget: float, store: SmallStore) -> tuple[Hosts, Counting]:
    """Let a pool ask these hosts for a minute."""
    clock = VirtualClock(10 * DAY_S)
    store.run(0.0)
    for number, site in enumerate(sites, 1):
        origin = f"http://h{number}"
        store.host(origin)
        for page in range(site.pages):
            captured = page % 2
            new = store.page(f"{origin}/{page}", host=number, checked_at=DAY_S * captured or None)
            if captured:
                store.observe(new, DAY_S, "new")
    ranker = Counting(clock)
    hosts = Hosts(sites, clock, ranker, asked=[[] for _ in sites])

    def terms(page_id: Ints, urls: Sequence[str], origins: Sequence[str]) -> PageRules:
        n = len(urls)
        least = np.array([sites[int(o.removeprefix("http://h")) - 1].least_s for o in origins])
        every, none = np.zeros(n, np.intp), np.zeros(n, np.bool_)
        return PageRules(every, np.ones(n), none, least / DAY_S, np.full(n, inf), np.zeros(n), none)

    async with reading(store.path) as reader:
        agenda = RecrawlAgenda(reader, ranker, terms, Random(0))
        agenda.budget = budget
        rules = PolitenessRules(delay_s=0.0, slow_factor=0.0)
        book = RobotsCache("freshet", RobotsRules(), rules, Random(0))
        frontier = Frontier(agenda, book, rules, Random(0))
        hosts.frontier = frontier

        class Store:
            """Takes all at once; each host has a queue."""

            async def submit(self, entry: Entry) -> None:
                pool.acknowledged([Acknowledged(entry)])

            def hurry(self, *, soon: bool = False) -> None:
                """All is written at once."""

            async def queue_key(self, url: str) -> str:
                return url

        store_of = Store()
        pool = FetchPool(
            frontier=frontier, agenda=agenda, requester=hosts, probes=cast(Probes, Calm()),
            writer=store_of, queues=store_of, clock=clock, rules=PoolRules(patience_s=inf),
            pacer=Pacer(budget, clock.now()),
        )  # fmt: skip
        await agenda.open()
        new_hosts, host_ids = await agenda.replenish(clock.now())
        for host in new_hosts:
            delay_s = sites[host.host_id - 1].delay_s
            body = f"User-agent: *\nCrawl-delay: {delay_s}\n".encode()
            robots = RobotsRecord("parsed", clock.now(), body)
            frontier.add_host(replace(host, robots=robots), host.origin)
        for host_id in host_ids:
            frontier.wake(host_id)
        await pool.run(time_limit_s=SECONDS)
    return hosts, ranker


ANSWERS = st.lists(
    st.sampled_from(["new", "changed", "unchanged", "gone", "failed"]),
    min_size=1, max_size=3,
).map(tuple)  # fmt: skip
SITES = st.lists(
    st.builds(
        Site, st.integers(1, 5), st.sampled_from([0.5, 1.0, 5.0]), ANSWERS,
        st.sampled_from([0.0, 0.0, 20.0]),
    ),
    min_size=1, max_size=4,
)  # fmt: skip
KNOWN: tuple[Kind, ...] = ("unchanged",)


@pytest.mark.long
@given(SITES, st.sampled_from([inf, 1e6, 1e5, 1e3]))
@example([Site(5, 1.0, KNOWN, 0.0)] * 3, 1e6)
@example([Site(5, 5.0, KNOWN, 0.0)] * 2, 1e6)
@example([Site(1, 1.0, KNOWN, 0.0)] * 3, inf)
@settings(max_examples=25, deadline=None)
def test_it_makes_progress_or_it_waits_and_asks_for_what_is_polite(
    sites: list[Site], budget: float
) -> None:
    with tempfile.TemporaryDirectory() as folder:

        async def run() -> tuple[Hosts, Counting]:
            store = await small_store(Path(folder) / "crawl.db")
            return await asyncio.wait_for(serve(sites, budget, store), 60)

        hosts, ranker = asyncio.run(run())
    requests = sum(len(asked) for asked in hosts.asked)
    # Two for a request (it is taken, it commits), and one a minute.
    assert ranker.in_all <= 2 * requests + MOST_VALUATIONS
    polite = [SECONDS / site.delay_s for site in sites]
    # A page that was visited at this very moment is worth nothing: one is not enough for a host.
    if all(site.least_s == 0 and site.pages > 1 and site.answers == KNOWN for site in sites):
        assert requests >= 0.9 * min(sum(polite), budget * SECONDS / DAY_S) - 1
    for site, asked in zip(sites, hosts.asked, strict=True):
        assert np.diff(asked).min(initial=inf) >= site.delay_s - 1e-6
