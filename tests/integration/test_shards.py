"""Two shards in one program: each asks its own hosts, and links find their way across."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.crawler.run.shards import Coordinator, Shard
from freshet.scheduler.solve.shared_price import PRICES, DemandCurve
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


async def tell(shards: Sequence[Shard]) -> int:
    """Carry the pages that wait to their shards; return how many were told."""
    told = 0
    for shard in shards:
        for number, (page_ids, message) in (await shard.outgoing()).items():
            assert number != shard.number
            if await shards[number].take(message):
                await shard.acknowledge(page_ids)
                told += len(page_ids)
    return told


async def share(shards: Sequence[Shard], per_day: float) -> None:
    """Divide a budget, as the coordinator does."""
    if any(shard.daemon is None for shard in shards):
        return
    coordinator = Coordinator(per_day)
    for shard in shards:
        coordinator.told(shard.number, await shard.demand(), 0.0)
    price, found = coordinator.divided(0.0)
    assert sum(found.values()) == pytest.approx(per_day)
    for number, one in found.items():
        shards[number].follow(price, one)


def pages_asked(site: Scripted) -> set[tuple[str, str]]:
    """Return the pages that were asked for, by host."""
    return {(host, path) for host, path in site.log if path in HOSTS[host]}


async def run(site: Scripted, folder: Path) -> None:
    """Run both shards until all pages were read."""
    made = Shards(folder, 2)
    made.write()
    shards = [Shard(made, number) for number in range(2)]
    seeds = seeds_from_arguments([site.origin("docs"), site.origin("shop")]).seeds
    orders = [DaemonOrder(made.path(n), seeds, 864_000.0) for n in range(2)]
    tasks = [
        asyncio.create_task(
            keep(quick(), order, watch=unwatched, embedded=True, shard=shard)
        )
        for order, shard in zip(orders, shards, strict=True)
    ]  # fmt: skip
    try:
        async with asyncio.timeout(60):
            while len(pages_asked(site)) < sum(map(len, HOSTS.values())):
                await share(shards, 10 * 864_000.0)
                await tell(shards)
                await asyncio.sleep(0.02)
    finally:
        for shard in shards:
            if shard.daemon is not None:
                shard.daemon.pool.stop()
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


def test_a_shard_that_is_silent_has_no_share_until_it_tells_again() -> None:
    coordinator, message = Coordinator(90.0), DemandCurve(10 / PRICES).message()
    assert coordinator.divided(0.0) == (0.0, {})
    for shard in range(3):
        coordinator.told(shard, message, 0.0)
    price, shares = coordinator.divided(60.0)
    assert price == pytest.approx(1 / 3)
    assert shares == pytest.approx({0: 30.0, 1: 30.0, 2: 30.0})
    for shard in (0, 2):
        coordinator.told(shard, message, 120.0)
    assert coordinator.divided(180.0)[1] == pytest.approx({0: 45.0, 2: 45.0})
    coordinator.told(1, message, 190.0)
    assert coordinator.divided(190.0)[1].keys() == {0, 1, 2}
    with pytest.raises(ValueError, match="a demand curve has"):
        coordinator.told(1, b"", 200.0)
