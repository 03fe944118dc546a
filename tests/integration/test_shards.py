"""Two shards in one program: each asks its own hosts, and links find their way across."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.errors import ShardUnreachable
from freshet.crawler.extensions.shards.shard import NOTHING, Coordinator, Shard
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.scheduler.solve.shared_price import PRICES, DemandCurve
from freshet.storage.errors import StoreError
from freshet.storage.records import StoredSeed
from freshet.storage.shards import Shards
from tests.integration.quick import quick, unwatched
from tests.integration.scripted import Page, Scripted, scripted
from tests.storage.small_store import rows

#: By the hash, docs belongs to shard 1 and shop to shard 0.
HOSTS = {
    "docs": {
        "/": Page("<title>Docs</title><a href='{origin:shop}/tea'>tea</a> <a href='/two'>2</a>"),
        "/two": Page("<title>Two</title><a href='{origin:shop}/cup'>cup</a>"),
        "/deep": Page("<title>Deep</title>What only the shop leads to."),
    },
    "shop": {
        "/": Page("<title>Shop</title>A shop."),
        "/tea": Page("<title>Tea</title><a href='{origin:docs}/deep'>deep</a>"),
        "/cup": Page("<title>Cup</title>A cup."),
    },
}


BUDGET = 10 * 864_000.0


def pages_asked(site: Scripted) -> set[tuple[str, str]]:
    """Return the pages that were asked for, by host."""
    return {(host, path) for host, path in site.log if path in HOSTS[host]}


@asynccontextmanager
async def talking(shards: Sequence[Shard], per_day: float) -> AsyncIterator[None]:
    """Carry messages between shards, and to a coordinator, which is away at first."""
    coordinator = Coordinator(per_day, len(shards), monotonic())
    calls = 0

    async def send(method: str, shard: int, message: bytes) -> bool:
        return bool(await getattr(shards[shard], method)(-1, message))

    def report_of(shard: Shard) -> Callable[..., Awaitable[tuple[float, float] | None]]:
        async def report(message: bytes, share: float | None) -> tuple[float, float] | None:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise ShardUnreachable
            return coordinator.report(shard.number, message, share, monotonic())

        return report

    tasks = [asyncio.create_task(shard.talk(send, report_of(shard))) for shard in shards]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def shards_of(site: Scripted, folder: Path) -> tuple[list[Shard], list[StoredSeed]]:
    """Return the two shards of a new folder, and the seeds."""
    made = Shards(folder, 2)
    made.write()
    seeds = seeds_from_arguments([site.origin("docs"), site.origin("shop")]).seeds
    return [Shard(made, number) for number in range(2)], list(seeds)


async def run(site: Scripted, folder: Path) -> None:
    """Keep both shards until all pages were read."""
    shards, seeds = shards_of(site, folder)
    orders = [DaemonOrder(Shards(folder, 2).path(n), seeds, BUDGET) for n in range(2)]
    tasks = [
        asyncio.create_task(keep(quick(), order, watch=unwatched, embedded=True, shard=shard))
        for order, shard in zip(orders, shards, strict=True)
    ]
    try:
        async with asyncio.timeout(60), talking(shards, BUDGET):
            while len(pages_asked(site)) < sum(map(len, HOSTS.values())):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert sum(shard.share or 0.0 for shard in shards) <= 1.25 * BUDGET
    finally:
        for shard in shards:
            if shard.running is not None:
                shard.running.pool.stop()
        await asyncio.gather(*tasks)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "crawl"


async def test_each_host_is_asked_by_its_shard_and_all_pages_are_found(folder: Path) -> None:
    async with scripted(HOSTS) as site:
        await run(site, folder)
        for name in HOSTS:
            assert site.asked(name).count("/robots.txt") == 1
    held = "SELECT replace(url, rtrim(url, replace(url, '/', '')), '') FROM page WHERE held_back"
    assert {row[0] for row in rows(folder / "0001.db", f"{held} = 'shard'")} == {"", "tea", "cup"}
    assert {row[0] for row in rows(folder / "0000.db", f"{held} = 'shard'")} == {"", "deep"}
    visited = "SELECT count(*) FROM page WHERE role = 'page' AND checked_at IS NOT NULL"
    assert rows(folder / "0000.db", visited) == rows(folder / "0001.db", visited) == [(3,)]
    for store in ("0000.db", "0001.db"):
        # Links across shards are links, and nothing waits to be told that was told.
        assert rows(folder / store, "SELECT count(*) FROM outgoing") == [(0,)]
    assert rows(
        folder / "0001.db",
        "SELECT count(*) FROM link JOIN page ON page.id = dst_id WHERE held_back = 'shard'",
    ) == [(2,)]


async def idle(shards: Sequence[Shard]) -> list[tuple[int, int]]:
    """Return of the shards that are idle what they have been told, and fetched."""
    counts = [(it.told, it.running.pool.pacer.spent if it.running else 0) for it in shards]
    return [it for it, shard in zip(counts, shards, strict=True) if await shard.idle()]


async def test_a_crawl_ends_when_no_shard_has_a_page_left(folder: Path) -> None:
    async with scripted(HOSTS) as site:
        shards, seeds = shards_of(site, folder)
        orders = [CrawlOrder(Shards(folder, 2).path(n), seeds) for n in range(2)]
        work = asyncio.gather(
            *(crawl(quick(), order, watch=unwatched, embedded=True, shard=shard)
              for order, shard in zip(orders, shards, strict=True))
        )  # fmt: skip
        async with asyncio.timeout(60), talking(shards, BUDGET):
            # Idle twice, and nothing told between: one that was asked first may have got a page.
            before, now = await idle(shards), await idle(shards)
            while before != now or len(now) < len(shards):
                await asyncio.sleep(0.02)
                before, now = now, await idle(shards)
            assert pages_asked(site) == {(host, path) for host in HOSTS for path in HOSTS[host]}
            for shard in shards:
                shard.end()
            reports = await work
    assert [report.pages for report in reports] == [3, 3]
    assert [report.silent_seeds for report in reports] == [[], []]


@pytest.mark.long
async def test_a_store_of_a_shard_is_no_store_of_another_crawl(folder: Path) -> None:
    async with scripted(HOSTS) as site:
        await run(site, folder)
        order = CrawlOrder(folder / "0001.db", [])
        with pytest.raises(StoreError, match=r"0001\.db: it is shard 1 of a store; name .*crawl"):
            await crawl(quick(), order, watch=unwatched, embedded=True)


def test_a_shard_that_is_to_have_more_waits_until_another_has_less() -> None:
    coordinator, message = Coordinator(90.0, 3, 0.0), DemandCurve(10 / PRICES).message()
    assert coordinator.report(0, message, None, 1.0) is None
    assert coordinator.report(1, message, None, 2.0) is None
    # All have reported: the last gets its share at once, the others when they report again.
    assert coordinator.report(2, message, None, 3.0) == pytest.approx((1 / 3, 30.0))
    assert coordinator.report(0, message, None, 3.0) == pytest.approx((1 / 3, 30.0))
    assert coordinator.report(1, message, None, 3.0) == pytest.approx((1 / 3, 30.0))
    for shard in (0, 2):
        coordinator.report(shard, message, 30.0, 120.0)
    # Shard 1 is down from now on: the others get its share.
    assert coordinator.report(0, message, 30.0, 153.0) == pytest.approx((2 / 9, 45.0))
    assert coordinator.report(2, message, 30.0, 153.0) == pytest.approx((2 / 9, 45.0))
    # It is back, and waits until the others have less.
    assert coordinator.report(1, message, None, 190.0) == pytest.approx((1 / 3, NOTHING))
    assert coordinator.report(0, message, 45.0, 216.0) == pytest.approx((1 / 3, 30.0), rel=0.02)
    assert coordinator.report(1, message, 1.0, 216.0) == pytest.approx((1 / 3, 15.0), rel=0.02)
    with pytest.raises(ValueError, match="a demand curve has"):
        coordinator.report(1, b"", None, 260.0)


@given(st.integers(2, 9), st.integers(0, 2**32), st.floats(0.0, 2.0))
@settings(max_examples=30)
def test_what_is_granted_sums_to_the_budget(parts: int, seed: int, drift: float) -> None:
    rng, per_day = np.random.default_rng(seed), 86_400.0
    coordinator, weight = Coordinator(per_day, parts, 0.0), np.ones(parts)
    shares = dict[int, float]()
    over = last = 0.0
    for minute in range(60):
        weight = np.clip(weight * rng.lognormal(0.0, drift, parts), 1e-6, 1e6)
        for shard in range(parts):
            now = 60.0 * (minute + shard / parts)
            granted = sum(shares.values())
            over = max(0.0, over + (granted - per_day) * (now - last) / 86_400)
            last = now
            if rng.random() < 0.03:
                shares.pop(shard, None)  # It was killed.
            curve = DemandCurve(per_day * float(weight[shard]) / PRICES / 1e9)
            answer = coordinator.report(shard, curve.message(), shares.get(shard), now)
            if answer is not None:
                shares[shard] = answer[1]
    # One request a second: half a minute's worth, and what a restart is granted meanwhile.
    assert over <= 31.0


def test_a_new_coordinator_waits_a_minute_for_what_shards_have() -> None:
    coordinator, message = Coordinator(90.0, 3, 0.0), DemandCurve(10 / PRICES).message()
    assert coordinator.report(0, message, 60.0, 10.0) is None
    assert coordinator.report(1, message, None, 59.0) is None
    assert coordinator.report(1, message, None, 61.0) == pytest.approx((2 / 9, 30.0))
    assert coordinator.report(0, message, 60.0, 70.0) == pytest.approx((2 / 9, 45.0))
