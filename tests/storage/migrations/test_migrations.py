"""The schema's history: however old a store is, it ends up with the schema of a new one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from freshet.storage.database import open_store
from freshet.storage.migrations import migrations

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures").glob("schema_*.sql"))


def schema(path: Path) -> dict[str, str | None]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master")
        return {name: sql and " ".join(sql.split()) for name, sql in rows}


def test_migrations_are_numbered_without_gaps() -> None:
    assert [m.number for m in migrations()] == list(range(1, len(migrations()) + 1))


def test_every_schema_has_a_fixture() -> None:
    assert [path.stem for path in FIXTURES] == [f"schema_{m.number:04}" for m in migrations()]


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name)
async def test_a_migrated_store_has_the_schema_of_a_new_one(tmp_path: Path, fixture: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.executescript(fixture.read_text("utf-8"))
    for name in ("old.db", "new.db"):
        await (await open_store(tmp_path / name)).close()
    assert schema(tmp_path / "old.db") == schema(tmp_path / "new.db")
