"""A state that reads its snapshot, and what came since, is that which learns all observations."""

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from math import inf
from pathlib import Path
from sqlite3 import Connection
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from freshet.config.loading import load
from freshet.crawler.run.state import DaemonState, load_state
from freshet.scheduler.queue import site_clock_ranker
from freshet.scheduler.queue.site_clock_ranker import SiteClockRanker
from freshet.storage.database import Database, open_store
from freshet.storage.forgetting import forget, forgettable
from freshet.storage.records import Observation
from freshet.storage.tables import snapshots

DAY_S = 86_400.0
PAGES, HOSTS = 24, 2
SETTINGS = load(None, {"daemon.budget": "24/day", "daemon.policy": "site_clock"})[0]


def begun(db: Connection) -> None:
    db.execute("INSERT INTO crawl_run VALUES (1, 0.0, NULL, 'running', 0, '{}')")
    for host in range(1, HOSTS + 1):
        db.execute("INSERT INTO host (id, origin) VALUES (?, ?)", (host, f"http://h{host}.example"))
        origin = f"http://h{host}.example"
        found(db, origin + "/sitemap.xml", host, 0.0, role="sitemap")
        db.execute(
            "INSERT INTO claim_source (id, kind, host_id, page_id, url) "
            "VALUES (?, 'sitemap', ?, (SELECT max(id) FROM page), ?)",
            (host, host, origin),
        )


def found(db: Connection, url: str, host: int, at: float, role: str = "page") -> None:
    db.execute(
        "INSERT INTO page (url, fetch_url, host_id, depth, found_at, found_run_id, role) "
        "VALUES (?, ?, ?, 1, ?, 1, ?)",
        (url, url, host, at, role),
    )


def lived(db: Connection, seed: int, first: int, last: int) -> None:
    """Record the visits of some hours: pages are found, change, go, fail, and are claimed of."""
    for hour in range(first, last):
        rng, at = np.random.default_rng([seed, hour]), hour * 3_600.0
        (count,) = db.execute("SELECT count(*) FROM page").fetchone()
        if count < PAGES + HOSTS and rng.random() < 0.5:
            host = int(rng.integers(HOSTS)) + 1
            found(db, f"http://h{host}.example/{count % 3}/{count}", host, at)
            source = host
            if db.execute("SELECT checked_at FROM page WHERE id = ?", (source,)).fetchone()[0]:
                sees(db, source, count + 1, at)
        page = int(rng.integers(1, count + 1))
        visited(db, page, at, rng)


def visited(db: Connection, page: int, at: float, rng: np.random.Generator) -> None:
    role, checked = db.execute("SELECT role, checked_at FROM page WHERE id = ?", (page,)).fetchone()
    chances = (0.5, 0.9, 0.95) if checked else (1.0, 1.0, 1.0)
    place = sum(rng.random() > chance for chance in chances)
    kind = ("changed", "unchanged", "gone", "failed")[place] if checked else "new"
    db.execute(
        "INSERT INTO observation (page_id, run_id, at, kind, rung, duration_s) "
        "VALUES (?, 1, ?, ?, ?, 0.1)",
        (page, at, kind, "blocks" if kind == "changed" else None),
    )
    db.execute("UPDATE page SET last_kind = ?, last_at = ? WHERE id = ?", (kind, at, page))
    if kind in {"new", "changed", "unchanged"}:
        db.execute("UPDATE page SET checked_at = ?, body_digest = x'00' WHERE id = ?", (at, page))
    if role == "sitemap":
        for other in rng.integers(1, PAGES, 3).tolist():
            db.execute(
                "INSERT INTO claim (source_id, page_id, since, until, received_at) "
                "SELECT ?, id, ?, ?, ? FROM page WHERE id = ?",
                (page, at - 3_600.0, at - 60.0, at, other),
            )


def sees(db: Connection, source: int, target: int, at: float) -> None:
    db.execute(
        "INSERT INTO observation (page_id, run_id, at, kind, rung, duration_s) "
        "VALUES (?, 1, ?, 'changed', 'blocks', 0.1)",
        (source, at),
    )
    db.execute("UPDATE page SET last_kind = 'changed', last_at = ?, checked_at = ?, "
        "body_digest = x'00' WHERE id = ?", (at, at, source))  # fmt: skip
    db.execute("INSERT INTO link VALUES (?, ?, 0, '', '', ?, ?, NULL)", (source, target, at, at))
    db.execute("INSERT OR REPLACE INTO churn VALUES (?, ?, ?, 1, 0, 3)", (source, at, at - 60.0))


def known(state: DaemonState) -> dict[str, Any]:
    """Return all that a state has learnt, by the names of the parts."""
    ranker, agenda = state.ranker, state.agenda
    assert isinstance(ranker, SiteClockRanker)
    for learner in ranker._learners:
        learner.is_altered = True
    for trust in ranker._trust._sites.values():
        trust.is_altered = True
    parts = dict(ranker.written())
    whole = slice(len(agenda.pages))
    parts["pages"] = {"rows": agenda.pages.written(whole), **ranker.columns(whole)}
    parts["hubs"] = dict(agenda.learner.hubs.written())
    parts["turned"] = {"turned": agenda.pages.turned}
    parts["hosts"] = {"hosts": np.array(agenda.learner.hosts.ids)}
    return {f"{part}.{name}": array for part, it in parts.items() for name, array in it.items()}


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Compare all bits, but for those between the members of a record."""
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.dtype == other[name].dtype, name
        columns = array.dtype.names or (...,)
        unlike = [c for c in columns if array[c].tobytes() != other[name][c].tobytes()]
        assert unlike == [], name


async def stored(database: Database, *works: Any) -> None:
    for work in works:
        await database.write(work)


async def learnt(database: Database, *, anew: bool = False) -> DaemonState:
    state = await load_state(database.reader, SETTINGS)
    assert (state.snapshots.is_current) != anew
    return state


@pytest.fixture
async def database(tmp_path: Path) -> Any:
    database = await open_store(tmp_path / "crawl.db")
    await stored(database, begun, partial(lived, seed=1, first=0, last=400))
    yield database
    await database.close()


async def write_in_pieces(
    state: DaemonState,
    database: Database,
    between: Iterator[Callable[[Connection], object]],
    pieces: float = inf,
) -> None:
    """Write one part a transaction, others between them, up to a kill after that many pieces."""
    # What is committed after that is not of the moment that is written.
    await snapshots.prune(database)
    write, left = Database.write, count(pieces, -1)

    async def interrupted(self: Database, work: Callable[[Connection], Any]) -> Any:
        if next(left) <= 0:
            raise OSError("killed")
        await write(self, next(between))
        return await write(self, work)

    with patch.object(Database, "write", interrupted), patch.object(snapshots, "_PIECE", 1):
        await state.write(database)


@settings(max_examples=20, deadline=None)
@example(5_841_676, [(341, 9)])  # a page comes back that was gone, then linked anew, before
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 25)), min_size=1, max_size=3).map(
        sorted
    ),
)
@pytest.mark.long
async def test_what_came_since_or_meanwhile_is_learnt_as_if_with_all(
    seed: int, written: Sequence[tuple[int, int]]
) -> None:
    with TemporaryDirectory() as folder:
        database = await open_store(Path(folder) / "crawl.db")
        try:
            await stored(database, begun)
            first = 0
            for hour, pieces in written:
                await stored(database, partial(lived, seed=seed, first=first, last=hour))
                state = await load_state(database.reader, SETTINGS)
                hours = count(max(first, hour))
                between = (partial(lived, seed=seed, first=at, last=at + 1) for at in hours)
                with suppress(OSError):
                    await write_in_pieces(state, database, between, pieces)
                first = next(hours)
            await stored(database, partial(lived, seed=seed, first=first, last=1_000))
            state = await load_state(database.reader, SETTINGS)
            found = known(state)
            await state.write(database)
            assert_same(known(await learnt(database)), found)
            listed = await snapshots.newest(database.reader)
            parts = await database.reader.execute_fetchall("SELECT id FROM snapshot")
            assert listed is not None
            assert {row[0] for row in parts} == set(listed[1].values())
            await stored(database, lambda db: db.execute("DELETE FROM snapshot"))
            assert_same(found, known(await learnt(database, anew=True)))
        finally:
            await database.close()


async def test_others_commit_between_the_parts(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "_PIECE", 1)
    writing = asyncio.create_task((await learnt(database, anew=True)).write(database))
    counted, seen = "SELECT count(*) FROM snapshot", set()
    while not writing.done():
        seen.add(await database.write(lambda db: db.execute(counted).fetchone()[0]))
    await writing
    # The hubs, the places of URLs, a part of pages, three of each host, and the list of these.
    assert seen == set(range(3 + 3 * HOSTS + 2))


@pytest.mark.parametrize(("before", "between"), [(True, False), (False, True), (True, True)])
async def test_a_page_that_is_altered_while_it_is_written_is_learnt_anew(
    database: Database, before: bool, between: bool
) -> None:
    def alter(db: Connection, hold: bool) -> None:
        kind = "depth" if hold else None
        db.execute("UPDATE page SET held_back = ? WHERE id = 5", (kind,))

    await stored(database, partial(alter, hold=before))
    state = await learnt(database, anew=True)
    works = (partial(alter, hold=before != (between and turn > 0)) for turn in count())
    await write_in_pieces(state, database, works)
    await learnt(database, anew=between)


async def test_sites_that_learn_in_a_file_learn_what_those_in_memory_do(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = known(await learnt(database, anew=True))
    monkeypatch.setattr(site_clock_ranker, "_AWAKE", 1)
    state = await load_state(database.reader, SETTINGS)
    ranker = state.ranker
    assert isinstance(ranker, SiteClockRanker)
    assert [learner.is_aside for learner in ranker._learners].count(True) == HOSTS - 1
    assert_same(known(state), expected)
    await state.write(database)
    assert_same(known(state), expected)


async def test_where_no_file_can_be_made_sites_learn_in_memory(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected = known(await learnt(database, anew=True))
    monkeypatch.setattr(site_clock_ranker, "_AWAKE", 1)
    monkeypatch.setenv("TMPDIR", "/nowhere")
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    assert_same(known(await learnt(database, anew=True)), expected)
    assert "stay in memory until the next snapshot" in caplog.text


async def test_a_state_that_goes_on_is_that_which_was_written(database: Database) -> None:
    state = await learnt(database, anew=True)
    expected = known(state)
    await state.write(database)
    assert_same(known(state), expected)
    assert_same(known(await learnt(database)), expected)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE snapshot SET data = CAST(substr(data, 1, 99) AS BLOB) WHERE name = 'site/1'",
        "UPDATE snapshot SET data = CAST(x'FF' || substr(data, 2) AS BLOB) WHERE name = 'hubs'",
        "UPDATE snapshot SET data = x'01' WHERE name = 'agenda'",
        "DELETE FROM snapshot WHERE name = 'agenda'",
        "DELETE FROM snapshot WHERE name = 'site/1'",
        "UPDATE page SET held_back = 'depth' WHERE id = 5",
        "INSERT INTO amendment VALUES (9, 'failed', NULL, 'x', NULL, 0.0, NULL)",
    ],
)
async def test_what_is_damaged_or_corrected_is_learnt_anew(database: Database, damage: str) -> None:
    await (await learnt(database, anew=True)).write(database)
    await database.write(lambda db: db.execute(damage))
    await learnt(database, anew=True)


@pytest.mark.parametrize("noted", [False, True])
async def test_a_part_that_is_damaged_later_is_learnt_anew(database: Database, noted: bool) -> None:
    await (await learnt(database, anew=True)).write(database)
    state = await learnt(database)
    expected = known(await learnt(database))
    await stored(
        database, lambda db: db.execute("UPDATE snapshot SET data = x'01' WHERE name > 'b'")
    )
    state.agenda.learner.evidence.seen(
        2, Observation(3, 401 * 3_600.0, "unchanged", duration_s=0.1)
    )
    if noted:
        state.agenda.do_at_rest(partial(state.write, database))
        state.agenda._many = 0
        assert await state.agenda.replenish(401 * 3_600.0) == ((), ())
        await state.agenda.rest()
    assert await state.agenda.replenish(401 * 3_600.0) == ((), ())
    assert isinstance(state.ranker, SiteClockRanker)
    assert state.ranker is state.agenda.ranker
    found = known(state)
    assert_same(found, expected)


async def test_another_budget_or_importance_is_learnt_anew(database: Database) -> None:
    await (await learnt(database, anew=True)).write(database)
    other = load(None, {"daemon.budget": "25/day", "daemon.policy": "site_clock"})[0]
    assert (await load_state(database.reader, other)).snapshots.is_current is False


async def test_what_was_learnt_of_forgotten_pages_is_forgotten(database: Database) -> None:
    await (await learnt(database, anew=True)).write(database)
    page = await forgettable(database.reader, prefixes=["http://h1.example/1/"])
    await forget(database, page[:1], 0.0, refused=True)
    await learnt(database, anew=True)
