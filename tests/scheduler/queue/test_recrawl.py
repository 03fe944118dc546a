"""The agenda of a daemon takes over what the terms say of pages."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from random import Random

import numpy as np
import pytest

from freshet.scheduler.arrays import Ints
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.queue.hooks import NoHooks
from freshet.scheduler.queue.page_rules import DiscoveryTerms, PageRules
from freshet.scheduler.queue.rankers import PolicyRanker
from freshet.scheduler.queue.recrawl import RecrawlAgenda
from freshet.scheduler.queue.site_clock_ranker import SiteClockRanker
from freshet.storage.database import reading
from freshet.storage.entries import CLAIM_KINDS, no_claims
from freshet.storage.records import (
    Acknowledged,
    Churn,
    Digests,
    DueUrl,
    Observation,
    StoreUpdate,
    Targets,
    Visit,
)
from tests.storage.small_store import HOST, SmallStore


@dataclass(slots=True)
class Said:
    """Terms by page; what is not said weighs 1, and 0 is never asked for."""

    importance: dict[int, float] = field(default_factory=dict)
    half_life: dict[int, float] = field(default_factory=dict)

    def __call__(self, page_id: Ints, urls: Sequence[str], origins: Sequence[str]) -> PageRules:
        assert [url.startswith(origin) for url, origin in zip(urls, origins, strict=True)]
        n = len(urls)
        weights = np.array([self.importance.get(each, 1.0) for each in page_id.tolist()])
        never, most = weights == 0, np.full(n, np.inf)
        half_life = np.array([self.half_life.get(each, np.nan) for each in page_id.tolist()])
        return PageRules(np.zeros(n, np.intp), weights, never, np.zeros(n), most, half_life, never)


async def test_pages_weigh_anew_and_what_is_not_watched_stays_away(site: SmallStore) -> None:
    for path in ("/a", "/never", "/b"):
        site.page(path, checked_at=86_400.0)
    said, ranker = Said({2: 0.0}), PolicyRanker(GreedyIndex().index)
    async with reading(site.path) as connection:
        agenda = RecrawlAgenda(connection, ranker, said, Random(0))
        await agenda.open()
        before = ranker.values(9.0)
        site.page(f"{HOST}/new")  # the agenda has not heard of it
        said.importance = {1: 3.0, 2: 5.0, 3: 0.5}
        await agenda.learner.reweigh(None)
        said.importance = {1: 9.0, 3: 0.25}
        await agenda.learner.reweigh([2, 3])
    assert agenda.pages["page_id"].tolist() == [1, 3]
    assert agenda.pages["importance"].tolist() == [3.0, 0.25]
    assert ranker.values(9.0) / before == pytest.approx([3.0, 0.25])


class Around(NoHooks):
    """A run in which some requests are saved; it counts how often it is woken."""

    def __init__(self, requests: float = 0.0) -> None:
        self.requests = requests
        self.woken = 0

    def saved(self, now: float) -> float:
        return self.requests

    def wake(self) -> None:
        self.woken += 1


async def supplied(agenda: RecrawlAgenda, now: float) -> tuple[set[int], list[str]]:
    """The hosts of a supply, once threads have ended, and all pages in the order of their worth."""
    _, host_ids = await agenda.replenish(now)
    found = set(host_ids)
    if agenda._work is not None:
        await asyncio.wait_for(agenda.at_rest(), 60)
        found |= set((await agenda.replenish(now))[1])
    urls = []
    while (due := agenda.next(frozenset({1}), now)) is not None:
        urls.append(due.url)
    return found, urls


async def test_a_closed_host_offers_nothing_until_a_session_is_saved_or_a_push_calls(
    site: SmallStore,
) -> None:
    for number in range(1, 31):
        site.page(f"/{number}", checked_at=86_400.0)
        site.observe(number, 86_400.0, "new")
    pushed = np.array([CLAIM_KINDS.index("ping")])
    claims = replace(
        no_claims(), page_id=np.array([1]), kind=pushed, source_id=np.array([9]),
        since=np.zeros(1), until=np.zeros(1), received_at=np.zeros(1),
    )  # fmt: skip
    async with reading(site.path) as connection:
        around = Around(3.0)
        agenda = RecrawlAgenda(connection, SiteClockRanker(0.5), Said(), Random(0), hooks=around)
        agenda.budget = 0.5
        await agenda.open()

        async def opened(day: float) -> bool:
            agenda.times.is_due = True
            _, hosts = await agenda.replenish(day * 86_400.0)
            assert agenda.waiting(1) == (agenda.offered() > 0)
            return 1 in hosts

        assert not await opened(2.0)
        # Nothing is due, so nobody takes the daemon for stuck.
        assert (agenda.offered(), agenda.waiting(1)) == (0, False)
        agenda.done(Acknowledged(StoreUpdate(0.0), claims=claims))
        assert agenda.hungry
        assert await opened(2.1)
        agenda.done(Acknowledged(StoreUpdate(0.0), claims=claims))  # it is open already
        assert not await opened(3.0)
        assert not await opened(4.0)
        # What a closed host left in the ready queue is not offered.
        assert (len(agenda.queue), agenda.offered(), agenda.waiting(1)) == (2, 0, False)
        around.requests = agenda.sessions.saves
        assert around.requests == pytest.approx(2 * 30**0.5 + 1)
        assert await opened(5.0)
        assert agenda.offered() == 2


async def test_in_a_thread_the_same_is_worth_the_most(site: SmallStore) -> None:
    for day in range(9, 0, -1):
        site.page(f"/{day}", checked_at=day * 86_400.0)
        site.observe(10 - day, day * 86_400.0, "new")
    found = []
    for many in (np.inf, 1):
        async with reading(site.path) as connection:
            around = Around()
            agenda = RecrawlAgenda(
                connection,
                PolicyRanker(GreedyIndex().index),
                Said(),
                Random(0),
                many=many,
                hooks=around,
            )
            await agenda.open()
            found.append(await supplied(agenda, 20 * 86_400.0))
            assert (around.woken > 0) == (many == 1)
    assert found[0] == found[1]
    assert found[0] == ({1}, [f"{HOST}/1", f"{HOST}/2"])


@pytest.mark.parametrize("note", [None, partial(asyncio.sleep, 0)], ids=["valuation", "snapshot"])
async def test_what_comes_while_a_thread_works_waits_and_is_not_lost(
    site: SmallStore, note: Callable[[], Awaitable[None]] | None
) -> None:
    site.page("/a", checked_at=86_400.0)
    async with reading(site.path) as connection:
        agenda = RecrawlAgenda(
            connection, PolicyRanker(GreedyIndex().index), Said(), Random(0), many=1
        )
        await agenda.open()
        if note is not None:
            agenda.do_at_rest(note)
        await agenda.replenish(9 * 86_400.0)
        assert not agenda.hungry
        assert agenda.wakes_at() == np.inf
        # It is at work: a page that is found is taken in only when it has ended.
        new = site.page("/new", found_at=8 * 86_400.0)
        due = DueUrl(1, f"{HOST}/a", f"{HOST}/a", 1, 0.0)
        visit = Visit(due, Observation(1, 9 * 86_400.0, "unchanged"))
        agenda.done(Acknowledged(visit, pages=(new,)))
        assert len(agenda.pages) == 1
        await agenda.at_rest()
        for later in (1.0, 61.0, 62.0):
            await supplied(agenda, 9 * 86_400.0 + later)
        await agenda.rest()
    assert agenda.pages["page_id"].tolist() == [1, new]
    assert float(agenda.pages["since"][0]) == 9.0


async def test_a_snapshot_that_is_being_written_is_broken_off(site: SmallStore) -> None:
    async with reading(site.path) as connection:
        agenda = RecrawlAgenda(
            connection, PolicyRanker(GreedyIndex().index), Said(), Random(0), many=0
        )
        agenda.do_at_rest(partial(asyncio.sleep, 1e9))
        await agenda.replenish(0.0)
        await agenda.close()
        assert agenda.hungry


@pytest.mark.parametrize(("recognise", "first"), [(True, "/item"), (False, "/old")])
async def test_a_new_item_of_a_source_comes_before_what_has_waited_long(
    site: SmallStore, recognise: bool, first: str
) -> None:
    day = 86_400.0
    front = site.page("/", checked_at=20.0 * day)
    site.observe(front, 9.0 * day, "new")
    for visit in range(10, 21):
        site.observe(front, visit * day, "changed")
        site.insert(
            "churn", page_id=front, at=visit * day, since=(visit - 1) * day, appeared=3, dropped=3,
            stayed=5,
        )  # fmt: skip
    site.page("/old", found_at=day)
    item = site.page("/item", found_at=20.0 * day)
    site.link(front, item, 20.0 * day)
    async with reading(site.path) as connection:
        agenda = RecrawlAgenda(connection, PolicyRanker(GreedyIndex().index), Said(), Random(0))
        agenda.quota.terms = DiscoveryTerms(recognise=recognise)
        agenda.budget = 10.0
        await agenda.open()
        _, urls = await supplied(agenda, 20.1 * day)
    assert urls[0] == f"{HOST}{first}"


async def test_what_appears_at_a_source_makes_way_in_the_window(site: SmallStore) -> None:
    day = 86_400.0
    front = site.page("/", checked_at=20.0 * day)
    site.observe(front, 20.0 * day, "new")
    for path in ("/a", "/b"):
        site.observe(site.page(path, checked_at=2 * day), 2 * day, "new")
    said = Said(half_life={front: 0.25})
    async with reading(site.path) as connection:
        agenda = RecrawlAgenda(connection, PolicyRanker(GreedyIndex().index), said, Random(0))
        await agenda.open()
        await agenda.replenish(21.0 * day)
        assert len(agenda.queue) == 2
        # The front page is visited, and shows an item while the window is full.
        item = site.page("/item", found_at=21.0 * day)
        site.link(front, item, 21.0 * day)
        due = DueUrl(front, f"{HOST}/", f"{HOST}/", 1, 0.0, digests=Digests(b"", None))
        rest = None, None, None, 0, None
        shown = Targets([(f"{HOST}/item", f"{HOST}/item", HOST, "page", 1, 0, *rest)])
        visit = Visit(due, Observation(front, 21.0 * day, "changed"), targets=shown)
        churn = Churn(20.0 * day, appeared=1, dropped=0, stayed=0)
        agenda.done(Acknowledged(visit, pages=(item,), churn=churn))
        await agenda.replenish(21.0 * day + 1.0)
        first = agenda.next(frozenset({1}), 21.0 * day + 1.0)
    assert first is not None
    assert first.url == f"{HOST}/item"


async def test_a_daemon_that_begins_anew_knows_no_costs_of_hosts(site: SmallStore) -> None:
    site.page("/", checked_at=86_400.0)
    async with reading(site.path) as connection:
        agenda = RecrawlAgenda(connection, PolicyRanker(GreedyIndex().index), Said(), Random(0))
        await agenda.open()
        # Of hosts that have nothing to be asked for any more.
        agenda.learner.hosts.costs = np.full(3, 5.0)
        await agenda.forget(PolicyRanker(GreedyIndex().index))
        await agenda.open()
        found, _ = await supplied(agenda, 9 * 86_400.0)
    assert found == {1}


@pytest.mark.parametrize("bound_days", [inf, 30.0])
async def test_a_list_that_has_told_nothing_waits_but_for_a_bound_of_its_interval(
    site: SmallStore, monkeypatch: pytest.MonkeyPatch, bound_days: float
) -> None:
    for number in range(1, 5):
        site.page(f"/{number}", checked_at=86_400.0)
        site.observe(number, 86_400.0, "new")
    monkeypatch.setattr(
        SiteClockRanker, "polled", lambda _, confirmed: np.array([] if confirmed else [0], np.intp)
    )
    async with reading(site.path) as connection:
        agenda = RecrawlAgenda(
            connection, SiteClockRanker(100.0), Said(), Random(0), hooks=Around(100.0)
        )
        agenda.budget = 100.0
        await agenda.open()
        agenda.pages["most"][0] = bound_days
        agenda.quota.aside.silent_lists = np.array([0])
        for _ in range(3):
            agenda.quota.aside.took(1, 0)
        urls: list[str] = []
        for minute in range(6):
            agenda.times.is_due = True
            urls += (await supplied(agenda, 60 * 86_400.0 + 60.0 * minute))[1]
    assert (f"{HOST}/1" in urls) == (bound_days < inf)
    assert {f"{HOST}/{number}" for number in (2, 3, 4)} <= set(urls)


@pytest.mark.parametrize("pages", [1, 2, 3, 7])
async def test_a_host_whose_pages_are_all_in_the_ready_queue_opens_again(
    site: SmallStore, pages: int
) -> None:
    for number in range(1, pages + 1):
        site.page(f"/{number}", checked_at=86_400.0)
        site.observe(number, 86_400.0, "new")
    async with reading(site.path) as connection:
        around = Around(9.0)
        ranker = SiteClockRanker(0.2)
        agenda = RecrawlAgenda(connection, ranker, Said(), Random(0), hooks=around)
        agenda.budget = 0.2
        await agenda.open()
        await agenda.replenish(60 * 86_400.0)
        assert agenda.queue.count(1) == min(pages, 2)
        # The session ends before anything was asked, and the next one is due.
        for hour in range(3):
            agenda.times.is_due = True
            await agenda.replenish(100 * 86_400.0 + 3_600.0 * hour)
        assert agenda.waiting(1)


async def test_probes_and_lists_that_tell_nothing_share_a_twentieth(site: SmallStore) -> None:
    async with reading(site.path) as connection:
        agenda = RecrawlAgenda(connection, SiteClockRanker(100.0), Said(), Random(0))
        probes, aside = 0, agenda.quota.aside
        aside.silent_lists = np.array([3])
        for turn in range(2_000):
            if turn % 2 and not aside.is_spent(1):
                aside.took(1, 3)
            elif agenda.take_probe(1):
                probes += 1
            else:
                aside.took(1, 1)
    assert 0 < probes <= 101
    assert aside._aside[1] == pytest.approx(100, abs=2)
