"""The pool: what it starts, what bounds it, and how a run ends, in virtual time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from math import inf
from types import SimpleNamespace

import pytest

from freshet.crawler.compare.not_content.check import Probes
from freshet.crawler.errors import NotMade
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.frontier.frontier import FrontierRequest, PageRequest, ProbeRequest, Refusal
from freshet.crawler.frontier.politeness import Pacer
from freshet.crawler.run.outages import enduring
from freshet.crawler.run.pool import FetchPool, PoolRules, Supervisor
from freshet.crawler.visit import unasked
from freshet.storage.entries import Kind
from freshet.storage.records import (
    Acknowledged,
    Entry,
    FetchResult,
    Observation,
    StoreUpdate,
    Visit,
)
from tests.crawler.frontier.frontier_world import ALLOW, DAY_S, PRIVATE, World, page, parsed

Perform = Callable[[FrontierRequest], Awaitable[Sequence[Entry]]]


def visited(request: PageRequest, at: float, kind: Kind = "new") -> Visit:
    return Visit(due=request.due, observation=Observation(request.due.page_id, at, kind))


class Crawl(Supervisor):
    """A pool whose requests take no time, and whose entries commit as soon as it waits for them.

    ``started`` are the pages in the order of their requests, with the times.
    """

    def __init__(self, rules: PoolRules | None = None, per_day: float = inf) -> None:
        self.clock = VirtualClock(0.0)
        self.world = World()
        self.world.add(1, "a", parsed(ALLOW, 0.0))
        self.world.add(2, "b", parsed(PRIVATE, 0.0))
        self.probes = Probes(self.world.frontier.probe)
        self.started: list[tuple[float, int]] = []
        self.written: list[Entry] = []
        self.growing: list[Entry] = []
        self.hanging = asyncio.Event()
        self.away_until = 0.0
        self.beginnings = 0
        self.chores: list[Callable[[float], Awaitable[None]]] = []
        self.answers: Kind = "new"
        self.pool = FetchPool(
            frontier=self.world.frontier, agenda=self.world.shelf, requester=self,
            probes=self.probes, writer=self, queues=self, clock=self.clock,
            rules=rules or PoolRules(), pacer=Pacer(per_day, 0.0), supervisor=self,
        )  # fmt: skip

    def begun(self) -> None:
        self.beginnings += 1

    async def turn(self) -> None:
        for chore in self.chores:
            await chore(self.clock.now())

    async def queue_key(self, url: str) -> str:
        return url

    async def submit(self, entry: Entry) -> None:
        self.written.append(entry)
        self.growing.append(entry)

    def hurry(self, *, soon: bool = False) -> None:
        if soon:
            return
        batch, self.growing = [Acknowledged(entry) for entry in self.growing], []
        asyncio.get_running_loop().call_soon(self.pool.acknowledged, batch)

    async def perform(self, request: FrontierRequest) -> Sequence[Entry]:
        """HostAnswer a page at once; those of paths that begin with ``hang`` never."""
        if isinstance(request, Refusal):
            seen = Observation(request.due.page_id, self.clock.now(), "refused")
            return [unasked(request.due, seen)]
        assert isinstance(request, PageRequest)
        self.started.append((self.clock.now(), request.due.page_id))
        if "/hang" in request.due.url:
            await self.hanging.wait()
        if self.clock.now() < self.away_until:
            now = self.clock.now()
            self.world.frontier.ended(
                request.queue, now, 0.0, answer="ours", retry_after_s=None, why="no network"
            )
            raise NotMade("no network", 5.0)
        if "/broken" in request.due.url:
            raise RuntimeError("a bug")
        self.world.fine(request.queue, self.clock.now())
        return [visited(request, self.clock.now(), self.answers)]

    @property
    def pages(self) -> list[int]:
        return [page_id for _, page_id in self.started]


async def test_a_run_ends_when_nothing_is_due_and_all_is_written() -> None:
    crawl = Crawl()
    crawl.world.supply(page(1, 1), page(2, 1), page(3, 2))
    assert await crawl.pool.run() == "nothing due"
    assert sorted(crawl.started) == [(0.0, 1), (0.0, 3), (1.0, 2)]
    assert len(crawl.written) == 3
    assert (crawl.pool.active, crawl.pool.unacknowledged, crawl.beginnings) == (0, 0, 1)


async def test_a_run_is_over_when_the_next_page_is_beyond_the_patience() -> None:
    crawl = Crawl(PoolRules(patience_s=10.0))
    crawl.world.add(3, "c", None)
    crawl.world.settle(3, parsed(b"User-agent: *\nCrawl-delay: 30\n", 0.0), 0.0)
    crawl.world.supply(page(1, 3), page(2, 3))
    assert await crawl.pool.run() == "nothing due"
    assert crawl.pages == [1]


@pytest.mark.parametrize(("kind", "ending", "most"), [("new", "limit", 3), ("gone", "requests", 5)])
async def test_the_limits_of_pages_and_requests_are_met_exactly(
    kind: Kind, ending: str, most: int
) -> None:
    crawl = Crawl(PoolRules(max_pages=3, max_requests=5))
    crawl.answers = kind
    crawl.world.supply(*(page(n, n % 2 + 1) for n in range(9)))
    assert await crawl.pool.run() == ending
    assert len(crawl.written) == most


async def test_the_time_limit_ends_a_run_and_the_next_goes_on() -> None:
    crawl = Crawl()
    crawl.world.supply(*(page(n, 1) for n in range(9)))
    assert await crawl.pool.run(time_limit_s=2.5) == "limit"
    assert crawl.started == [(0.0, 0), (1.0, 1), (2.0, 2)]
    assert await crawl.pool.run() == "nothing due"
    assert crawl.pages == list(range(9))
    assert crawl.beginnings == 2


async def test_requests_keep_the_budget() -> None:
    crawl = Crawl(per_day=DAY_S / 100)
    crawl.world.supply(page(1, 1), page(2, 2), page(3, 1))
    await crawl.pool.run()
    assert crawl.started == [(100.0, 1), (200.0, 2), (300.0, 3)]


async def test_no_more_requests_are_under_way_than_allowed() -> None:
    crawl = Crawl(PoolRules(concurrent_requests=1))
    crawl.world.supply(page(1, 1, "hang"), page(2, 2))
    running = asyncio.create_task(crawl.pool.run())
    await settled()
    assert (crawl.pages, crawl.pool.active) == ([1], 1)
    crawl.hanging.set()
    await running
    assert crawl.pages == [1, 2]


async def test_a_stop_lets_requests_end_and_starts_none() -> None:
    crawl = Crawl()
    crawl.world.supply(page(1, 1, "hang"), page(2, 2), page(3, 2))
    running = asyncio.create_task(crawl.pool.run())
    await settled()
    crawl.pool.stop()
    crawl.hanging.set()
    assert await running == "interrupted"
    assert sorted(crawl.pages) == [1, 2]
    assert len(crawl.written) == 2
    assert crawl.pool.told_to_stop.is_set()


async def test_a_second_signal_breaks_requests_off() -> None:
    crawl = Crawl()
    crawl.world.supply(page(1, 1, "hang"))
    running = asyncio.create_task(crawl.pool.run())
    await settled()
    crawl.pool.stop()
    crawl.pool.stop(at_once=crawl.pool.stopping)
    assert await running == "interrupted"
    assert crawl.written == []


class ImpatientClock(VirtualClock):
    """A clock that passes although something is under way."""

    async def wait(self, changed: asyncio.Event, until: float, *, idle: bool) -> bool:
        return await super().wait(changed, until, idle=until < inf)


async def test_a_drain_breaks_off_after_its_grace_unless_the_pool_goes_on() -> None:
    crawl = Crawl(PoolRules(grace_s=10.0))
    crawl.pool.clock = clock = ImpatientClock(0.0)
    crawl.world.supply(page(1, 1, "hang"))
    assert await crawl.pool.run(time_limit_s=5.0) == "limit"
    assert (clock.now(), crawl.written) == (15.0, [])


async def test_a_pool_that_goes_on_waits_for_all_before_it_pauses() -> None:
    crawl = Crawl(PoolRules(goes_on=True))
    crawl.world.supply(page(1, 1, "hang"), page(2, 1))
    running = asyncio.create_task(crawl.pool.run())
    await settled()
    crawl.pool.pause()
    await settled()
    assert not running.done()
    crawl.hanging.set()
    assert await running == "paused"
    assert crawl.pages == [1]
    assert await crawl.pool.run() == "nothing due"
    assert crawl.pages == [1, 2]


async def test_nothing_starts_while_the_store_is_away() -> None:
    crawl = Crawl()
    crawl.world.supply(page(1, 1, "hang"))
    running = asyncio.create_task(crawl.pool.run())
    await settled()
    crawl.pool.hold(while_store_is_away=True)
    crawl.world.supply(page(2, 2))
    crawl.pool.wake()
    await settled()
    assert crawl.pages == [1]
    crawl.pool.hold(while_store_is_away=False)
    await settled()
    assert crawl.pages == [1, 2]
    crawl.hanging.set()
    assert await running == "nothing due"


async def test_requests_that_were_not_made_are_made_again_after_a_pause_or_the_run_ends() -> None:
    crawl = Crawl(PoolRules(patience_s=60.0))
    crawl.world.supply(page(1, 1, "away"), page(2, 2))
    crawl.away_until = 30.0
    assert await crawl.pool.run() == "nothing due"
    # One at a time while nobody can be reached.
    assert [at for at, _ in crawl.started] == [0.0, 0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 30.0]
    assert len(crawl.written) == 2
    crawl.world.supply(page(3, 1, "away"))
    crawl.away_until = inf
    assert await crawl.pool.run() == "cut off"
    assert len(crawl.written) == 2


async def test_a_listing_is_waited_for_and_then_its_slices_one_by_one() -> None:
    crawl, waiting, most = Crawl(), 0, 0
    whole = crawl.perform

    async def rest() -> AsyncIterator[StoreUpdate]:
        for number in range(4):
            yield StoreUpdate(float(number))

    async def perform(request: FrontierRequest) -> Sequence[Entry]:
        (visit,) = await whole(request)
        assert isinstance(visit, Visit)
        return [replace(visit, role="sitemap", rest=rest())]

    async def submit(entry: Entry) -> None:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        crawl.written.append(entry)
        for _ in range(3):
            await asyncio.sleep(0)
        waiting -= 1
        # The writer may have made another visit of one that cannot be stored.
        told = replace(entry, fetches=1) if isinstance(entry, Visit) else entry
        asyncio.get_running_loop().call_soon(crawl.pool.acknowledged, [Acknowledged(told)])

    crawl.pool.requester = SimpleNamespace(perform=perform)
    crawl.pool.writer = SimpleNamespace(submit=submit, hurry=lambda **_: None)
    crawl.world.supply(page(1, 1))
    assert await crawl.pool.run() == "nothing due"
    assert [type(each) for each in crawl.written] == [Visit, *[StoreUpdate] * 4]
    assert most == 1


async def test_chores_are_done_in_their_order_before_each_turn_also_where_they_fail() -> None:
    crawl, done = Crawl(), []

    def chore(name: str) -> Callable[[float], Awaitable[None]]:
        async def note(_now: float) -> None:
            done.append((name, len(crawl.started)))
            raise KeyError(name)

        return enduring(note)

    crawl.chores += [chore("first"), chore("second")]
    crawl.world.supply(page(1, 1))
    await crawl.pool.run()
    assert done[:2] == [("first", 0), ("second", 0)]
    assert done[-1] == ("second", 1)


async def test_a_refusal_is_recorded_without_a_request() -> None:
    crawl = Crawl()
    crawl.world.supply(page(1, 2, "private/x"))
    assert await crawl.pool.run() == "nothing due"
    (visit,) = crawl.written
    assert isinstance(visit, Visit)
    assert (visit.fetches, crawl.pool.pacer.spent) == (0, 0)


async def test_a_bug_ends_the_run_and_breaks_the_others_off() -> None:
    crawl = Crawl()
    crawl.world.supply(page(1, 1, "broken"), page(2, 2, "hang"))
    with pytest.raises(RuntimeError, match="a bug"):
        await crawl.pool.run()
    await settled()
    assert crawl.pool.active == 0


async def test_a_visit_that_waits_for_a_probe_leaves_room_for_it() -> None:
    crawl = Crawl(PoolRules(concurrent_requests=1, max_pages=1))
    answer = FetchResult("http://h1/none", "gone", 0.0, 0.0, 404)
    found: list[FetchResult | None] = []

    async def perform(request: FrontierRequest) -> Sequence[Entry]:
        if isinstance(request, ProbeRequest):
            crawl.world.fine(request.queue, crawl.clock.now())
            crawl.probes.answered(request.host_id, answer)
            return []
        assert isinstance(request, PageRequest)
        crawl.world.fine(request.queue, crawl.clock.now())
        found.append(await crawl.probes.ask(1, "http://h1/none"))
        return [visited(request, crawl.clock.now())]

    crawl.perform = perform  # type: ignore[method-assign]
    crawl.world.supply(page(1, 1), page(2, 2))
    assert await crawl.pool.run() == "limit"
    assert (found, len(crawl.written)) == ([answer], 1)


async def test_a_visit_waits_for_no_probe_that_will_not_be_sent() -> None:
    crawl = Crawl(PoolRules(goes_on=True))
    found: list[FetchResult | None] = []

    async def perform(request: FrontierRequest) -> Sequence[Entry]:
        assert isinstance(request, PageRequest)
        crawl.world.fine(request.queue, crawl.clock.now())
        crawl.pool.pause()
        found.append(await crawl.probes.ask(1, "http://h1/none"))
        return [visited(request, crawl.clock.now())]

    crawl.perform = perform  # type: ignore[method-assign]
    crawl.world.supply(page(1, 1))
    assert await crawl.pool.run() == "paused"
    assert found == [None]


async def settled() -> None:
    """Let every task run until it waits."""
    for _ in range(20):
        await asyncio.sleep(0)
