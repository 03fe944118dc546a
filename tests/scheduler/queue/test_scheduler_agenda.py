"""The agenda over a real store: every due URL once, in windows, whatever interleaves."""

import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.crawler.run import crawl as agenda_module
from freshet.crawler.run.crawl import BreadthFirst
from freshet.storage.records import Acknowledged, DueUrl, StoreUpdate, Visit
from freshet.storage.tables import frontier
from tests.storage.crawl_store import (
    START,
    CrawlStore,
    captured,
    crawl_store,
    targets,
    visit,
    writing,
)

LATER = START + 1_000.0


class Crawl:
    """An agenda with its store; drives both as the pool and the writer do."""

    def __init__(self, store: CrawlStore) -> None:
        self.store = store
        self.agenda = BreadthFirst(store.database.reader)

    async def find(self, *paths: str, depth: int = 0) -> None:
        for acknowledged in await self.store.apply(
            StoreUpdate(START, targets=targets(*paths, depth=depth))
        ):
            self.agenda.done(acknowledged)

    async def find_on(self, host_id: int, numbers: Collection[int]) -> None:
        await self.find(*(f"https://h{host_id}.example/{i}" for i in numbers))

    async def settle(self, *visits: Visit) -> None:
        for acknowledged in await self.store.apply(*visits):
            self.agenda.done(acknowledged)

    async def retry(self, due: DueUrl, at: float) -> None:
        await self.settle(replace(visit(due, "failed"), retry_at=at))

    async def replenish(self, now: float = START) -> None:
        """As the pool's loop does, until there is nothing to load."""
        await self.agenda.replenish(now)
        while self.agenda.hungry:
            await self.agenda.replenish(now)

    def take(self, *ready: int, now: float = START) -> list[DueUrl]:
        """All that can be taken without reading."""
        taken = []
        while (due := self.agenda.next(ready, now)) is not None:
            taken.append(due)
        return taken

    async def take_all(self, *ready: int, now: float = START) -> list[DueUrl]:
        """All that is due, settled as it is taken."""
        everything = []
        await self.replenish(now)
        while taken := self.take(*ready, now=now):
            everything += taken
            await self.settle(*(visit(due) for due in taken))
            await self.replenish(now)
        return everything

    def in_memory(self) -> int:
        return sum(map(len, self.agenda._queues.values()))


@asynccontextmanager
async def crawling(path: Path) -> AsyncIterator[Crawl]:
    async with crawl_store(path) as store:
        crawl = Crawl(store)
        await crawl.agenda.open()
        yield crawl


@pytest.fixture
async def crawl(store: CrawlStore) -> Crawl:
    made = Crawl(store)
    await made.agenda.open()
    return made


def meanwhile(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Awaitable[None]]) -> None:
    """Let something happen between a read's snapshot and the arrival of its rows, once."""
    real = frontier.load

    async def load(*arguments: Any, **options: Any) -> list[DueUrl]:
        rows = await real(*arguments, **options)
        monkeypatch.setattr(frontier, "load", real)
        await happens()
        return rows

    monkeypatch.setattr(frontier, "load", load)


async def test_every_due_url_is_handed_out_once_shallow_ones_first(crawl: Crawl) -> None:
    await crawl.find("/deep", depth=2)
    await crawl.find("/a", "/b")
    await crawl.find("/mid", depth=1)
    urls = [due.url.rpartition("/")[2] for due in await crawl.take_all(1)]
    assert urls == ["a", "b", "mid", "deep"]
    assert await crawl.store.due() == []


async def test_an_earlier_invocations_urls_are_found_at_the_opening(tmp_path: Path) -> None:
    async with crawling(tmp_path / "db") as crawl:
        await crawl.find("/a", "/b")
    async with crawling(tmp_path / "db") as crawl:
        assert not crawl.agenda.hungry
        assert crawl.agenda.wakes_at() == START
        new_hosts, host_ids = await crawl.agenda.replenish(START)
        assert [host.origin for host in new_hosts] == ["https://a.example"]
        assert host_ids == [1]
        assert len(crawl.take(1)) == 2


async def test_hosts_are_introduced_once_and_named_when_they_have_urls(crawl: Crawl) -> None:
    await crawl.find("/a")
    assert len((await crawl.agenda.replenish(START))[0]) == 1
    await crawl.find("/b")
    assert await crawl.agenda.replenish(START) == ([], [1])
    assert await crawl.agenda.replenish(START) == ((), ())


async def test_only_ready_hosts_are_served_the_longest_ready_first(crawl: Crawl) -> None:
    for host_id in (1, 2, 3):
        await crawl.find_on(host_id, range(2))
    await crawl.replenish()
    assert [d.host_id for d in crawl.take(3, 1)] == [3, 3, 1, 1]
    assert crawl.agenda.waiting(2)
    assert not crawl.agenda.waiting(1)
    assert crawl.agenda.next([], START) is None


async def test_windows_are_bounded_and_refilled_before_they_are_empty(crawl: Crawl) -> None:
    await crawl.find_on(1, range(500))
    await crawl.replenish()
    assert crawl.in_memory() == 64
    handed_out = []
    while (due := crawl.agenda.next([1], START)) is not None:
        handed_out.append(due.page_id)
        if crawl.agenda.hungry:
            assert crawl.agenda.waiting(1)
            await crawl.replenish()
            # All handed out so far are under way.
            assert crawl.in_memory() <= 64
    assert handed_out == sorted(set(handed_out))
    assert len(handed_out) == 500


async def test_what_is_in_memory_or_under_way_is_not_read_again(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    await crawl.find_on(1, range(300))
    load, read = frontier.load, Counter[int]()

    async def counted(*arguments: Any, **named: Any) -> list[DueUrl]:
        loaded = await load(*arguments, **named)
        read.update(due.page_id for due in loaded)
        return loaded

    monkeypatch.setattr(frontier, "load", counted)
    await crawl.replenish()
    for _ in range(300):
        assert crawl.agenda.next([1], START) is not None
        await crawl.replenish()
    assert len(read) == 300
    # Only what found no place beside the last ones of a window: read is a window at a time.
    assert read.total() < 300 * 64 / 48


async def test_the_windows_of_many_hosts_are_bounded_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agenda_module, "_IN_MEMORY", 200)
    async with crawling(tmp_path / "db") as crawl:
        for host_id in range(1, 41):
            await crawl.find_on(host_id, range(30))
        await crawl.replenish()
        assert crawl.in_memory() <= 200 + 2 * 40
        assert all(crawl.agenda.waiting(host_id) for host_id in range(1, 41))
        assert len(await crawl.take_all(*range(1, 41))) == 40 * 30


async def test_a_host_with_many_under_way_does_not_widen_the_windows_of_others(
    crawl: Crawl,
) -> None:
    await crawl.find_on(1, range(500))
    await crawl.find_on(2, range(500))
    await crawl.agenda.replenish(START)
    for _ in range(3):
        assert len(crawl.take(1)) == 64
        await crawl.agenda.replenish(START)
    crawl.take(1, 2)
    await crawl.agenda.replenish(START)
    assert {host: len(queue) for host, queue in crawl.agenda._queues.items()} == {1: 64, 2: 64}


async def test_a_retry_comes_back_at_its_time_and_not_before(crawl: Crawl) -> None:
    await crawl.find("/a")
    await crawl.replenish()
    (due,) = crawl.take(1)
    await crawl.retry(due, START + 60)
    assert crawl.agenda.wakes_at() == START + 60
    await crawl.replenish(START + 59)
    assert crawl.take(1) == []
    await crawl.replenish(START + 60)
    (again,) = crawl.take(1)
    assert (again.page_id, again.attempt) == (due.page_id, 1)
    assert crawl.agenda.wakes_at() is None


async def test_retries_left_by_an_earlier_invocation_come_back_each_at_its_time(
    tmp_path: Path,
) -> None:
    async with crawling(tmp_path / "db") as crawl:
        await crawl.find("/a", "/b", "/c")
        await crawl.replenish()
        for due, wait in zip(crawl.take(1), (60.0, 600.0, 0.0), strict=True):
            await crawl.retry(due, START + wait)
    async with crawling(tmp_path / "db") as crawl:
        for now, number in ((START, 3), (START + 60, 1), (START + 600, 2)):
            assert crawl.agenda.wakes_at() == now
            await crawl.replenish(now)
            assert [due.page_id for due in crawl.take(1)] == [number]
        assert crawl.agenda.wakes_at() is None


async def test_a_retry_finds_its_place_although_the_window_is_full(crawl: Crawl) -> None:
    await crawl.find_on(1, range(300))
    await crawl.replenish()
    first = crawl.agenda.next([1], START)
    assert first is not None
    await crawl.retry(first, START + 1)
    pages = [due.page_id for due in await crawl.take_all(1, now=START + 1)]
    assert sorted(pages) == list(range(1, 301))
    assert pages.index(first.page_id) < 150


async def test_a_page_settled_while_a_read_is_under_way_is_not_handed_out_again(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    await crawl.find("/a", "/b")
    await crawl.replenish()
    first, second = crawl.take(1)
    await crawl.find("/c")
    meanwhile(monkeypatch, lambda: crawl.settle(visit(first), visit(second)))
    await crawl.replenish()
    assert [due.url.rpartition("/")[2] for due in crawl.take(1)] == ["c"]


async def test_a_retry_granted_while_a_read_is_under_way_comes_back_once(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    await crawl.find("/a")
    await crawl.replenish()
    (due,) = crawl.take(1)
    await crawl.find("/b")
    meanwhile(monkeypatch, lambda: crawl.retry(due, START))
    await crawl.replenish()
    await crawl.replenish()
    taken = crawl.take(1)
    assert sorted(d.url.rpartition("/")[2] for d in taken) == ["a", "b"]
    assert {d.page_id: d.attempt for d in taken}[due.page_id] == 1


@pytest.mark.parametrize("before", [1, 40])
async def test_urls_found_while_a_read_is_under_way_are_not_forgotten(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    await crawl.find_on(1, range(before))
    await crawl.replenish()
    first = crawl.agenda.next([1], START)
    assert first is not None
    # A retry makes the agenda read although the queue is far from empty.
    await crawl.retry(first, START)
    meanwhile(monkeypatch, lambda: crawl.find_on(1, range(1_000, 1_010)))
    await crawl.agenda.replenish(START)
    assert len(await crawl.take_all(1)) == before + 10


async def test_deferred_urls_come_first(crawl: Crawl) -> None:
    await crawl.find("/a", "/b")
    await crawl.find("/deep", depth=5)
    for path in ("/a", "/b"):
        await crawl.settle(captured(await crawl.store.taken(path)))
    with writing(crawl.store.database) as connection:
        frontier.defer(connection, {1: "dns"})
    await crawl.store.new_run(LATER)
    again = Crawl(crawl.store)
    await again.agenda.open()
    await again.replenish(LATER)
    taken = [due.url.rpartition("/")[2] for due in again.take(1)]
    assert taken == ["deep", "a", "b"]


async def test_what_is_done_on_unknown_hosts_does_no_harm(crawl: Crawl) -> None:
    stranger = DueUrl(77, "https://x.example/", "https://x.example/", 99, START)
    for retry_at in (None, START):
        entry = replace(visit(stranger), retry_at=retry_at)
        crawl.agenda.done(Acknowledged(entry, frozenset({98}), (7,)))
    await crawl.replenish()
    assert crawl.take(98, 99) == []
    assert crawl.agenda.wakes_at() is None


async def test_nothing_is_kept_of_hosts_that_are_finished(crawl: Crawl) -> None:
    for host_id in range(1, 11):
        await crawl.find_on(host_id, range(3))
    await crawl.take_all(*range(1, 11))
    agenda = crawl.agenda
    assert (agenda._queues, agenda._taken, agenda._held) == ({}, {}, 0)
    assert (agenda._more, agenda._to_refill, agenda._later) == (set(), {}, [])


async def test_a_frontier_of_100_000_urls_takes_little_memory(crawl: Crawl) -> None:
    await crawl.find("/")
    with writing(crawl.store.database) as connection:
        connection.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
            "INSERT INTO page (url, fetch_url, host_id, depth, found_at, found_run_id) "
            "SELECT 'https://a.example/' || i, 'https://a.example/' || i, 1, 1, 0, 1 FROM n"
        )
        connection.execute(
            "INSERT OR IGNORE INTO frontier (page_id, host_id, priority, due_at, reason) "
            "SELECT id, host_id, 1, ?, 'refresh' FROM page",
            (START,),
        )
    tracemalloc.start()
    agenda = BreadthFirst(crawl.store.database.reader)
    await agenda.open()
    for _ in range(200):
        await agenda.replenish(START)
        assert agenda.next([1], START) is not None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000


async def test_sitemaps_wait_while_a_host_has_very_many_urls(
    store: CrawlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agenda_module, "_OF_A_SITEMAP", 12)
    crawl = Crawl(store)
    crawl.agenda = BreadthFirst(store.database.reader, 20)
    maps = [f"/{n}.xml" for n in range(3)]
    for acknowledged in await store.apply(
        StoreUpdate(START, targets=targets(*maps, role="sitemap"))
    ):
        crawl.agenda.done(acknowledged)
    most, seen = 0, []
    await crawl.replenish()
    while (due := crawl.agenda.next([1], START)) is not None:
        seen.append(due.role)
        name = due.url.rpartition("/")[2].removesuffix(".xml")
        listed = targets(*(f"/{name}/{n}" for n in range(12)), depth=1)
        found = listed if due.role == "sitemap" else None
        await crawl.settle(replace(visit(due), role=due.role, targets=found))
        await crawl.replenish()
        most = max(most, sum((await frontier.due_by_host(store.database.reader)).values()))
    assert (seen.count("sitemap"), seen.count("page")) == (3, 36)
    assert most <= 20 + 3


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["find", "take", "take", "settle", "retry", "read", "wait"]),
        st.integers(1, 4),
        st.integers(1, 9),
    ),
    max_size=30,
)


@settings(max_examples=40)
@given(steps=STEPS, interleaved=st.sampled_from(["find", "settle", "retry"]))
async def test_whatever_interleaves_every_url_is_handed_out_once_for_each_time_it_is_due(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]], interleaved: str
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(agenda_module, "_WINDOW", 4)
        monkeypatch.setattr(agenda_module, "_LOW_WATER", 2)
        monkeypatch.setattr(agenda_module, "_IN_MEMORY", 10)
        async with crawling(tmp_path_factory.mktemp("agenda") / "db") as crawl:
            await Play(crawl, monkeypatch, interleaved).play(steps)


class Play:
    """Random work with an agenda, and the accounts of it."""

    def __init__(self, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, interleaved: str) -> None:
        self.crawl = crawl
        self.monkeypatch = monkeypatch
        self.interleaved = interleaved
        self.now = START
        self.found = 0
        self.granted: Counter[int] = Counter()
        self.handed_out: Counter[int] = Counter()
        self.under_way: list[DueUrl] = []

    async def play(self, steps: list[tuple[str, int, int]]) -> None:
        for step, host_id, n in steps:
            if step == "read":
                await self.read(host_id, n)
            else:
                await self.do(step, host_id, n)
        await self.finish()

    async def read(self, host_id: int, n: int) -> None:
        real = frontier.load
        meanwhile(self.monkeypatch, lambda: self.do(self.interleaved, host_id, n))
        await self.crawl.agenda.replenish(self.now)
        # Where there was nothing to load, nothing happens at a later read either.
        self.monkeypatch.setattr(frontier, "load", real)

    async def do(self, step: str, host_id: int, n: int) -> None:
        match step:
            case "find":
                await self.crawl.find_on(host_id, range(self.found, self.found + n))
                self.found += n
            case "take":
                for _ in range(n):
                    self.take(host_id)
            case "settle" | "retry" if self.under_way:
                due = self.under_way.pop(n % len(self.under_way))
                if step == "retry":
                    self.granted[due.page_id] += 1
                    await self.crawl.retry(due, self.now + n)
                else:
                    await self.crawl.settle(visit(due))
            case "wait":
                self.now += n

    def take(self, *ready: int) -> bool:
        due = self.crawl.agenda.next(ready, self.now)
        if due is None:
            return False
        assert due.page_id not in {other.page_id for other in self.under_way}
        assert due.due_at <= self.now
        self.handed_out[due.page_id] += 1
        self.under_way.append(due)
        return True

    async def finish(self) -> None:
        """Let time pass and settle everything."""
        self.now += 1_000
        await self.crawl.replenish(self.now)
        while self.take(1, 2, 3, 4) or self.under_way:
            if self.under_way:
                await self.crawl.settle(visit(self.under_way.pop()))
            await self.crawl.replenish(self.now)
        assert await self.crawl.store.due(self.now) == []
        pages = range(1, self.found + 1)
        assert self.handed_out == Counter({page: 1 + self.granted[page] for page in pages})


async def test_what_is_withdrawn_is_not_handed_out(crawl: Crawl) -> None:
    await crawl.find(*(f"/{n}" for n in range(5)))
    await crawl.replenish()
    assert crawl.agenda.next([1], START) is not None
    settled = StoreUpdate(START, targets=targets())
    withdrawn = ((1, frozenset({2, 3, 5})), (9, frozenset({7})))
    crawl.agenda.done(Acknowledged(settled, withdrawn=withdrawn))
    assert [due.page_id for due in crawl.take(1)] == [4]
    assert crawl.in_memory() == crawl.agenda._held == 0


async def test_where_all_is_withdrawn_one_keeps_the_place(crawl: Crawl) -> None:
    await crawl.find(*(f"/{n}" for n in range(5)))
    await crawl.replenish()
    settled = StoreUpdate(START, targets=targets())
    crawl.agenda.done(Acknowledged(settled, withdrawn=((1, frozenset(range(1, 6))),)))
    assert crawl.agenda.waiting(1)
    assert [due.page_id for due in crawl.take(1)] == [1]
