"""The end of a crawl looks at the bodies of what was visited; what goes is what would go anyhow."""

import sqlite3
from dataclasses import dataclass, field
from functools import partial
from math import inf
from random import Random

import pytest

from freshet.storage import maintenance
from freshet.storage.database import Database, open_store
from freshet.storage.maintenance import Retention
from tests.storage.small_store import SmallStore
from tests.variants import first

DAY_S = 86_400.0
KEEP = Retention(2, 9 * DAY_S)


@pytest.fixture
def store(small: SmallStore) -> SmallStore:
    small.run(0.0)
    small.host()
    return small


@dataclass
class _History:
    """Visits of some pages, some of which share bodies."""

    chance: Random
    pages: list[int]
    now: float = 1_000 * DAY_S
    versions: list[tuple[int, int]] = field(default_factory=list)

    def happens(self, db: sqlite3.Connection) -> None:
        """Let some visits be made, and some verdicts be amended."""
        for _ in range(self.chance.randint(0, 6)):
            self._visit(db, self.chance.choice(self.pages))
        if self.versions and self.chance.random() < 0.5:
            observation, page = self.chance.choice(self.versions)
            kind = self.chance.choice(["unchanged", "changed", "failed"])
            db.execute(
                "INSERT OR REPLACE INTO amendment (observation_id, kind, reason, at) "
                "VALUES (?, ?, 'x', ?)",
                (observation, kind, self.now - self.chance.random() * 3_600.0),
            )
            db.execute(
                "INSERT OR REPLACE INTO change (page_id, kind, at, version_id) SELECT ?, 'changed',"
                " ?, max(id) FROM version WHERE page_id = ?",
                (page, self.now, page),
            )

    def _visit(self, db: sqlite3.Connection, page: int) -> None:
        at = self.now - self.chance.random() * 3_600.0
        kind = self.chance.choice(["new", "changed", "unchanged", "failed"])
        version = None
        if kind != "failed":
            digest = self.chance.randbytes(1) * 16
            db.execute("INSERT OR IGNORE INTO body VALUES (?, ?, 5, x'00')", (digest, at))
            sql = "INSERT INTO version (page_id, at, body_digest) VALUES (?, ?, ?)"
            version = db.execute(sql, (page, at, digest)).lastrowid
        sql = (
            "INSERT INTO observation (page_id, run_id, at, kind, duration_s, version_id) "
            "VALUES (?, 1, ?, ?, 0.1, ?)"
        )
        observation = db.execute(sql, (page, at, kind, version)).lastrowid
        if version is not None and observation is not None:
            self.versions.append((observation, page))


@pytest.mark.parametrize("seed", first(4, range(12)))
async def test_what_is_deleted_after_some_visits_is_what_a_look_at_all_finds(
    store: SmallStore, seed: int
) -> None:
    chance = Random(seed)
    history = _History(chance, [store.page(f"/{n}") for n in range(8)])
    database = await open_store(store.path)
    deleted = 0
    for _ in range(40):
        history.now += chance.choice([0.0, 3_600.0, DAY_S, 5 * DAY_S])
        await database.write(history.happens)
        foretold = await maintenance.doomed(store.path, KEEP, history.now)
        found = await maintenance.prune(database, KEEP, history.now)
        assert found == foretold
        deleted += found[0].rows
    await database.close()
    assert deleted


async def _steps(store: SmallStore, database: Database, others: int) -> int:
    """Steps of SQLite's machine for the end of a crawl beside so many other pages, in hundreds."""

    def add(db: sqlite3.Connection) -> None:
        (first,) = db.execute("SELECT max(id) + 1 FROM page").fetchone()
        history = _History(Random(first), [])
        for page in range(first, first + others):
            sql = (
                "INSERT INTO page (id, url, fetch_url, host_id, depth, found_at, found_run_id) "
                "VALUES (?, ?, ?, 1, 0, 0.0, 1)"
            )
            db.execute(sql, (page, f"http://one.example/other/{page}", ""))
            history._visit(db, page)
            history._visit(db, page)

    now = 2_000 * DAY_S
    await database.write(add)
    await maintenance.prune(database, KEEP, now)
    page = store.page("/visited" + str(others))
    await database.write(partial(_History(Random(1), [page])._visit, page=page))
    count = 0

    def step() -> None:
        nonlocal count
        count += 1

    await database.at_once(lambda db: db.set_progress_handler(step, 100))
    await maintenance.prune(database, KEEP, now + DAY_S)
    await database.at_once(lambda db: db.set_progress_handler(None, 0))
    return count


async def test_the_end_of_a_crawl_costs_by_its_pages(store: SmallStore) -> None:
    store.page("/one")
    database = await open_store(store.path)
    few, many = await _steps(store, database, 10), await _steps(store, database, 2_000)
    await database.close()
    assert many <= few + 20


@pytest.mark.parametrize(
    "keep", [Retention(1, 9 * DAY_S), Retention(2, DAY_S), Retention(2, inf, gone_body_age_s=0.0)]
)
async def test_other_settings_hold_for_all_bodies(store: SmallStore, keep: Retention) -> None:
    history = _History(Random(3), [store.page(f"/{n}") for n in range(3)])
    database = await open_store(store.path)
    for _ in range(30):
        history.now += 3_600.0
        await database.write(history.happens)
    await maintenance.prune(database, KEEP, history.now)
    foretold = await maintenance.doomed(store.path, keep, history.now)
    assert await maintenance.prune(database, keep, history.now) == foretold
    await database.close()


async def test_a_clock_that_was_set_back_lets_all_be_looked_at(store: SmallStore) -> None:
    history = _History(Random(4), [store.page(f"/{n}") for n in range(3)])
    database = await open_store(store.path)
    await database.write(history.happens)
    await maintenance.prune(database, KEEP, history.now + 99 * DAY_S)
    for _ in range(30):
        history.now += 3_600.0
        await database.write(history.happens)
    foretold = await maintenance.doomed(store.path, KEEP, history.now)
    assert foretold[0].rows
    assert await maintenance.prune(database, KEEP, history.now) == foretold
    await database.close()
