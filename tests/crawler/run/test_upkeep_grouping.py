"""Catching up with the near-duplicates, whatever comes, changes, goes or interrupts."""

import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from datasketch import MinHash, MinHashLSH
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.crawler.compare.near_duplicates import THRESHOLD, bucket_keys, optimal_banding, same
from freshet.crawler.reduce.sketch import PERMUTATIONS, Sketch, sketch
from freshet.crawler.run.upkeep import Grouping, catch_up
from freshet.storage.tables import near_duplicates
from freshet.storage.tables.near_duplicates import Parameters
from tests.storage.crawl_store import writing
from tests.storage.sketched_store import SketchedStore, sketched_store

WORDS = [f"word{i}" for i in range(2_000)]


def words(seed: int, changed: int = 0, length: int = 200) -> list[str]:
    """A text of random words, the first ``changed`` of them replaced."""
    chosen = random.Random(seed).sample(WORDS, length)
    return [f"other{n}" for n in range(changed)] + chosen[changed:]


def text(seed: int, changed: int = 0, length: int = 200) -> bytes:
    return sketch([" ".join(words(seed, changed, length))]).to_bytes()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SketchedStore]:
    async with sketched_store(tmp_path / "crawl.db") as store:
        yield store


async def update(
    store: SketchedStore, threshold: float | None = None, batch: int = 100
) -> Grouping:
    return await catch_up(store.database, lambda: 9.0, threshold=threshold, batch=batch)


def done(placed: int, threshold: float, rebuilt_from: float | None = None) -> Grouping:
    return Grouping(placed=placed, threshold=threshold, rebuilt_from=rebuilt_from, complete=True)


async def copies(store: SketchedStore) -> dict[int, int]:
    return await near_duplicates.one_of_group(store.database.reader)


async def test_copies_find_each_other_and_others_stay_alone(store: SketchedStore) -> None:
    for path, sketched in [
        ("/a", text(1)), ("/b", text(2)), ("/a?x=1", text(1)), ("/a/print", text(1, changed=3)),
    ]:  # fmt: skip
        store.page(path, sketched)
    assert await update(store) == done(4, 0.9)
    assert await copies(store) == {3: 1, 4: 1}
    ((resemblance, error, at),) = await store.rows(
        "SELECT resemblance, resemblance_se, at FROM duplicate WHERE page_id = 4"
    )
    assert 0.9 <= resemblance < 1
    assert error == pytest.approx((resemblance * (1 - resemblance) / PERMUTATIONS) ** 0.5)
    assert at == 9.0


async def test_what_is_not_new_is_not_compared_again(store: SketchedStore) -> None:
    store.page("/a", text(1))
    assert (await update(store)).placed == 1
    assert (await update(store)).placed == 0
    store.observe(1, "unchanged")
    assert (await update(store)).placed == 0
    store.page("/b", text(1))
    assert (await update(store)).placed == 1
    assert await copies(store) == {2: 1}


async def test_a_page_that_changes_finds_another_group(store: SketchedStore) -> None:
    for path, seed in [("/a", 1), ("/b", 2), ("/copy", 1)]:
        store.page(path, text(seed))
    await update(store)
    store.version(3, text(2))
    await update(store)
    assert await copies(store) == {3: 2}


async def test_when_a_leader_goes_its_group_gathers_round_another(store: SketchedStore) -> None:
    for n in range(5):
        store.page(f"/{n}", text(1))
    await update(store, batch=2)
    store.observe(1, "gone")
    await update(store, batch=2)
    assert await copies(store) == {3: 2, 4: 2, 5: 2}


async def test_short_texts_must_be_equal_and_empty_ones_are_never_copies(
    store: SketchedStore,
) -> None:
    for n, short in enumerate([text(1, 0, 9), text(1, 0, 9), text(1, 1, 9), text(1, 0, 0)] * 2):
        store.page(f"/{n}", short)
    await update(store)
    assert await copies(store) == {2: 1, 5: 1, 6: 1, 7: 3}


async def test_the_parameters_stand_in_the_store(store: SketchedStore) -> None:
    await update(store)
    assert await near_duplicates.parameters(store.database.reader) == Parameters(
        THRESHOLD, *optimal_banding(THRESHOLD)
    )


async def test_another_threshold_compares_all_anew_and_stays(store: SketchedStore) -> None:
    store.page("/a", text(1))
    store.page("/b", text(1, changed=20))
    await update(store)
    assert await copies(store) == {}
    assert await update(store, 0.7) == done(2, 0.7, rebuilt_from=0.9)
    assert await copies(store) == {2: 1}
    assert await update(store) == await update(store, 0.7) == done(0, 0.7)
    assert await update(store, 0.9) == done(2, 0.9, rebuilt_from=0.7)
    assert await copies(store) == {}


async def test_the_candidates_are_those_of_minhash_lsh(store: SketchedStore) -> None:
    # Equal but for two bands of 2**64 that share a hash. Pages of 0.99 and less lead here.
    stored = [text(seed, changed) for seed in range(8) for changed in range(0, 60, 6)]
    for n, each in enumerate(stored):
        store.page(f"/{n}", each)
    await update(store, 0.99)
    leaders = {row[0] for row in await store.rows("SELECT DISTINCT page_id FROM lsh_bucket")}
    chosen = await near_duplicates.parameters(store.database.reader)
    assert chosen is not None
    lsh = MinHashLSH(num_perm=PERMUTATIONS, params=(chosen.bands, chosen.band_rows))
    for page_id in leaders:
        lsh.insert(page_id, minhash(stored[page_id - 1]))
    met = 0
    for each in stored + [text(seed, 4) for seed in range(8)]:
        keys = bucket_keys(Sketch.from_bytes(each), (chosen.bands, chosen.band_rows))
        with writing(store.database) as connection:
            found = near_duplicates.buckets(connection, keys, 99)
        candidates = {page_id for page_ids in found.values() for page_id in page_ids}
        assert candidates == set(lsh.query(minhash(each)))
        met += len(candidates)
    assert met > len(stored)


def minhash(sketched: bytes) -> MinHash:
    return MinHash(hashvalues=Sketch.from_bytes(sketched).minima, scheme="affine32")


async def test_who_looks_on_can_stop_it_between_two_transactions(store: SketchedStore) -> None:
    for n in range(6):
        store.page(f"/{n}", text(n % 2))
    calls = iter([False, False, True])
    watch = Grouping(lambda: next(calls))
    found = await catch_up(store.database, lambda: 9.0, batch=2, watch=watch)
    assert (found.placed, found.complete) == (4, False)
    found = await update(store)
    assert (found.placed, found.complete) == (2, True)
    assert await copies(store) == {3: 1, 4: 2, 5: 1, 6: 2}


class Killed(Exception):
    pass


async def interrupted(store: SketchedStore, batch: int, after: int) -> None:
    """Catch up, and stop as if killed inside the transaction that follows ``after`` others."""
    calls = iter(range(after + 1))

    def clock() -> float:
        if next(calls) == after:
            raise Killed
        return 9.0

    with pytest.raises(Killed):
        await catch_up(store.database, clock, batch=batch)


@pytest.mark.parametrize("after", range(4))
async def test_whoever_interrupts_the_groups_are_the_same(
    store: SketchedStore, tmp_path: Path, after: int
) -> None:
    async with sketched_store(tmp_path / "other.db") as undisturbed:
        for each in (store, undisturbed):
            for n in range(12):
                each.page(f"/{n}", text(n % 3, changed=n % 2))
        await interrupted(store, 3, after)
        await update(store, batch=3)
        await update(undisturbed, batch=3)
        await is_whole(store)
        for table in ("lsh", "lsh_page", "lsh_bucket", "lsh_group"):
            query = f"SELECT * FROM {table} ORDER BY 1, 2"
            assert await store.rows(query) == await undisturbed.rows(query)


async def is_whole(store: SketchedStore) -> None:
    """Every live page is placed, by its newest sketch, with a leader that it resembles."""
    rows = await store.rows(
        "SELECT l.page_id, l.leader_id, v.sketch, v.id = ("
        "  SELECT max(id) FROM version WHERE page_id = l.page_id AND sketch IS NOT NULL) "
        "FROM lsh_page AS l JOIN version AS v ON v.id = l.version_id"
    )
    live = await store.rows("SELECT id FROM page WHERE last_kind <> 'gone'")
    assert {row[0] for row in rows} == {row[0] for row in live}
    assert all(newest for *_, newest in rows)
    sketches = {page_id: Sketch.from_bytes(stored) for page_id, _, stored, _ in rows}
    leaders = {leader_id for _, leader_id, _, _ in rows}
    for page_id, leader_id, _, _ in rows:
        assert page_id == leader_id or page_id not in leaders
        assert page_id == leader_id or same(sketches[page_id], sketches[leader_id], THRESHOLD)
    expected = {(key, i) for i in leaders for key in bucket_keys(sketches[i], (9, 14))}
    assert set(await store.rows("SELECT key, page_id FROM lsh_bucket")) == expected
    groups = {leader_id for page_id, leader_id, _, _ in rows if page_id != leader_id}
    assert {row[0] for row in await store.rows("SELECT leader_id FROM lsh_group")} == groups


_Step = Callable[[SketchedStore], Awaitable[object]]
_TEXTS = [text(seed, changed) for seed in range(3) for changed in (0, 2, 5)]


def a_visit(page: int, kind: str, chosen: bytes) -> _Step:
    async def step(store: SketchedStore) -> None:
        known = {row[0] for row in await store.rows("SELECT id FROM page")}
        if page not in known:
            store.page(f"/{len(known)}", chosen)
        elif kind == "changed":
            store.version(page, chosen)
        else:
            store.observe(page, kind)

    return step


def an_update(batch: int) -> _Step:
    return lambda store: update(store, batch=batch)


_STEPS = st.one_of(
    st.builds(
        a_visit,
        st.integers(1, 8),
        st.sampled_from(["changed", "changed", "gone", "unchanged"]),
        st.sampled_from(_TEXTS),
    ),
    st.builds(an_update, st.integers(1, 5)),
)


@settings(max_examples=8)
@given(st.lists(_STEPS, min_size=5, max_size=15))
async def test_after_any_history_the_index_is_whole(steps: Sequence[_Step]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with sketched_store(Path(directory) / "crawl.db") as store:
            for step in steps:
                await step(store)
            await update(store)
            await is_whole(store)
