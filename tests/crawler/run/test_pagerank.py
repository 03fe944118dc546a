"""PageRank is the law of a surfer who follows links and now and then jumps; shards agree on it."""

import asyncio
from contextlib import AsyncExitStack, closing
from functools import lru_cache
from pathlib import Path
from sqlite3 import connect
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.extensions.shards.shard import Shard
from freshet.crawler.run import pagerank as module
from freshet.crawler.run.pagerank import MASS, outflow, pagerank, ranked
from freshet.scheduler.arrays import Floats
from freshet.storage.database import open_store, reading
from freshet.storage.shards import Shards
from freshet.storage.tables.outgoing import take_inflow
from tests.storage.small_store import SmallStore, small_store

GRAPHS = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=30)
    )
)


def ranks(n: int, links: list[tuple[int, int]]) -> list[float]:
    source, target = (np.array([link[i] for link in links], np.int32) for i in range(2))
    rank = pagerank(np.ones(n), source, target)
    found: list[float] = (rank / rank.mean() if n else rank).tolist()
    return found


def stationary(n: int, links: list[tuple[int, int]]) -> list[float]:
    """The same by the surfer's matrix and linear algebra, without any trick."""
    surfer = np.full((n, n), 0.15 / n)
    for i in range(n):
        targets = sorted({b for a, b in links if a == i != b}) or range(n)
        surfer[i, list(targets)] += 0.85 / len(targets)
    law = np.linalg.solve(
        np.vstack([(surfer.T - np.eye(n))[:-1], np.ones(n)]), np.append(np.zeros(n - 1), 1.0)
    )
    found: list[float] = (law * n).tolist()
    return found


@given(GRAPHS)
def test_it_is_where_the_surfer_is_in_the_long_run(
    graph: tuple[int, list[tuple[int, int]]],
) -> None:
    n, links = graph
    assert ranks(n, links) == pytest.approx(stationary(n, links), abs=1e-5)


def test_a_link_that_is_there_twice_counts_once_and_one_to_itself_not_at_all() -> None:
    links = [(0, 1), (0, 2), (1, 0)]
    assert ranks(3, [*links, (0, 1), (1, 1), (2, 2)]) == ranks(3, links)


def test_pages_without_links_are_alike_and_no_pages_have_no_rank() -> None:
    assert ranks(3, []) == [1.0, 1.0, 1.0]
    assert ranks(0, []) == []


def test_a_chain_a_star_and_a_ring_come_to_an_end() -> None:
    n = 20_000
    chain = [(i, i + 1) for i in range(n - 1)]
    assert np.isfinite(ranks(n, chain)).all()
    star = ranks(n, [(i, 0) for i in range(1, n)])
    assert star[0] == pytest.approx(star[1] * (1 + 0.85 * (n - 1)))
    assert ranks(n, [*chain, (n - 1, 0)]) == pytest.approx([1.0] * n)


# -- across shards -----------------------------------------------------------


def exchanged(n: int, links: list[tuple[int, int]], shard: list[int], rounds: int) -> Floats:
    """Return the masses of all pages after so many exchanges; pages of other shards give none."""
    source, target = np.array(links, np.int32).reshape(-1, 2).T
    inflow, mass, own = np.zeros(n), np.ones(n), np.array(shard)
    for _ in range(rounds + 1):
        told = np.zeros(n)
        for number in set(shard):
            here = own == number
            found = pagerank(np.where(here, 1 + inflow, 0.0), *(
                side[here[source]] for side in (source, target)
            ))  # fmt: skip
            mass[here] = found[here]
            told[~here] += found[~here]
        inflow = told
    return mass


@given(GRAPHS, st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_shards_that_exchange_masses_come_to_the_ranks_of_one_store(
    graph: tuple[int, list[tuple[int, int]]], shards: list[int]
) -> None:
    n, links = graph
    with pytest.MonkeyPatch.context() as patch:
        # Each solves exactly, so that only the exchange is judged.
        patch.setattr(module, "_STILL", 1e-12)
        patch.setattr(module, "_STEPS", 1_000)
        whole = exchanged(n, links, [0] * n, 0)
        for rounds in (0, 1, 5):
            mass = exchanged(n, links, shards[:n], rounds)
            # The bound of a graph all of whose links cross.
            assert abs(mass - whole).sum() <= 0.85**rounds * whole.sum() + 1e-9
            assert (mass <= whole + 1e-9).all(), "masses grow to what they are"
        assert exchanged(n, links, shards[:n], 100) == pytest.approx(whole, abs=1e-6)


#: Three shards by the first letter, each page with where it leads to. b1 has moved to b2.
LINKS = {
    "a1": ["a2", "b1", "b3"], "a2": ["a1", "c1"], "a3": ["a1"], "b2": ["b3", "c1"],
    "b3": ["a3", "b2"], "c1": ["a1", "c2"], "c2": ["b1"],
}  # fmt: skip


def url(page: str) -> str:
    return f"http://{page[0]}.example/{page}"


async def stored(path: Path, shard: str) -> SmallStore:
    """Return the store of the pages whose names begin so, with the links that leave it."""
    store = await small_store(path)
    store.run(0.0)
    store.host()
    names = {page for each, linked in LINKS.items() if each[0] in shard for page in [each, *linked]}
    ids = dict[str, int]()
    for name in sorted(names | ({"b1"} if "b" in shard else set())):
        elsewhere = None if name[0] in shard else "shard"
        ids[name] = store.page(url(name), held_back=elsewhere)
    if "b" in shard:
        store.execute(
            "UPDATE page SET alias_of = ?, alias_kind = 'permanent', alias_at = 1 WHERE id = ?",
            ids["b2"], ids["b1"],
        )  # fmt: skip
    for source in ids.keys() & LINKS.keys():
        if source[0] in shard:
            for target in LINKS[source]:
                store.link(ids[source], ids[target], 1.0)
    return store


async def masses(store: SmallStore) -> dict[str, float]:
    async with reading(store.path) as reader:
        pages, mass = await ranked(reader)
    names = [name for (name,) in rows_of(store, "SELECT url FROM page")]
    return {names[page - 1]: mass[row] for row, page in enumerate(pages.page_id) if pages.here[row]}


def rows_of(store: SmallStore, sql: str) -> list[tuple[str]]:
    with closing(connect(store.path)) as db:
        return db.execute(sql).fetchall()


async def exchange(stores: list[SmallStore]) -> int:
    """Tell each shard what flows to it; return how many bytes were told."""
    told = 0
    for shard, store in enumerate(stores):
        async with reading(store.path) as reader:
            messages = await outflow(reader, lambda at: "abc".index(at.split("/")[3][0]))
        for other, message in messages.items():
            assert other != shard
            told += len(message)
            with closing(connect(stores[other].path)) as db, db:
                take_inflow(db, shard, message)
    return told


async def test_stores_that_exchange_masses_come_to_the_ranks_of_one_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = [await stored(tmp_path / f"{name}.db", name) for name in "abc"]
    whole = await stored(tmp_path / "whole.db", "abc")
    assert not await exchange([whole])
    errors, expected = list[float](), await masses(whole)
    for _ in range(30):
        found = dict[str, float]()
        for store in stores:
            found |= await masses(store)
        assert found.keys() == expected.keys()
        errors.append(sum(abs(found[each] - expected[each]) for each in found))
        assert await exchange(stores) == 12 * (3 + 2 + 2)
    assert errors[:10] == sorted(errors[:10], reverse=True)
    assert errors[-1] < 1e-5 * sum(expected.values())
    monkeypatch.setattr(module, "_MOST", 1)
    # Of b1 and b3 only the one with more mass.
    assert await exchange(stores) == 12 * (2 + 2 + 2)


async def test_a_message_that_is_none_of_masses_is_refused(tmp_path: Path) -> None:
    store = await small_store(tmp_path / "store.db")
    told = np.array([(7, 0.5)], MASS).tobytes()
    with closing(connect(store.path)) as db, db:
        take_inflow(db, 1, told)
        with pytest.raises(ValueError, match="12 bytes a page, not 13"):
            take_inflow(db, 1, told + b" ")
    # Nobody has a page of this hash, and the store has none at all.
    assert await masses(store) == {}


async def test_a_running_shard_tells_all_others_and_keeps_what_it_is_told(tmp_path: Path) -> None:
    stores = [await stored(tmp_path / f"{name}.db", name) for name in "ab"]
    said = SimpleNamespace(settings=SimpleNamespace(daemon=SimpleNamespace(importance="pagerank")))
    shards = [Shard(Shards(tmp_path, 3), number) for number in range(2)]
    told = list[tuple[int, int]]()
    async with AsyncExitStack() as stack:
        for shard, store in zip(shards, stores, strict=True):
            database = await open_store(store.path)
            stack.push_async_callback(database.close)
            shard.of = lru_cache(lambda at: "abc".index(at.split("/")[3][0]))
            shard.running = cast(Any, SimpleNamespace(database=database, state=said))

        async def send(to: int, message: bytes) -> bool:
            told.append((to, len(message)))
            return to != 1 or await shards[1].take_masses(0, message)

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await shards[0].exchange(send)
        shards[1].running = None
        assert not await shards[1].take_masses(0, b"")
    # b1 and b3; c1. It will tell them tomorrow.
    assert told == [(1, 24), (2, 12)]
    assert [len(row[0]) for row in rows_of(stores[1], "SELECT masses FROM inflow")] == [24]
