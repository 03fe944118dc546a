"""A store that somebody has edited: each verb tells what it can, or one line, and no traceback."""

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.console import freshet
from tests.integration.test_daemon import Stage

#: What a column of a kind is set to; the schema refuses some of it.
VALUES = {
    "INTEGER": (None, 0, -1, 7, 2**62, -(2**63)),
    "REAL": (None, 0.0, -1.0, 1e18, 1e300, -1e300, float("inf")),
    "TEXT": (
        None,
        "",
        "x",
        "\x1b[31m\u202e",
        "[]",
        "{}",
        "http://",
        "\udc80".encode("utf-8", "ignore").decode(),
    ),
    "BLOB": (None, b"", b"\0", b"\xff" * 40),
    "ANY": (None, -1, "x", b"\xff"),
}


class Edit(NamedTuple):
    """A value of a row that is set by hand."""

    table: str
    rowid: int
    column: str
    value: object


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    stage = Stage(tmp_path_factory.mktemp("edited") / "crawl.db", audit_share=0.1)
    asyncio.run(stage.keep(480.0, 1.5, ["news", "docs"], search__index="on"))
    with closing(sqlite3.connect(stage.db)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return stage.db


def edits(db: Path, rng: Random) -> Iterator[Edit]:
    """Yield edits of all columns of all tables with rows, in any order."""
    with closing(sqlite3.connect(db)) as connection:
        sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
        tables = [name for (name,) in connection.execute(sql) if not name.startswith("sqlite_")]
        found = []
        for table in tables:
            try:
                ids = [row for (row,) in connection.execute(f"SELECT rowid FROM {table}")]
            except sqlite3.OperationalError:
                continue
            for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({table})"):
                found += [
                    Edit(table, rng.choice(ids), column, value)
                    for value in VALUES.get(kind, VALUES["ANY"])
                    if ids
                ]
    rng.shuffle(found)
    yield from found


def verbs(url: str) -> Iterator[tuple[str, ...]]:
    yield from (("status",), ("changes", "--all"), ("signals",), ("duplicates",), ("alerts",))
    yield from ((verb, url) for verb in ("explain", "history", "text", "diff"))
    yield from (("search", "the"), ("changefeed",), ("doctor",), ("open", "1"))
    yield from (("export", kind, "-o", "-") for kind in ("observations", "pages"))
    yield from (("status", "--json"), ("explain", url, "--json"), ("changes", "--all", "--json"))


@contextmanager
def by_hand(db: Path) -> Iterator[sqlite3.Connection]:
    """Open a store for somebody whom its constraints and triggers do not stop."""
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        sql = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        triggers = connection.execute(sql).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, text in triggers:
            connection.execute(text)


def applied(edit: Edit, db: Path) -> str | None:
    """Edit a store; return the URL of a page that the edit may concern, None: it is refused."""
    with by_hand(db) as connection:
        table, rowid, column, value = edit
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        try:
            key = "id" if table == "page" else "page_id" if "page_id" in names else None
            sql = f"SELECT {key or 'NULL'} FROM {table} WHERE rowid = ?"
            ((page_id,),) = connection.execute(sql, (rowid,)).fetchall()
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, rowid))
        except sqlite3.Error:
            return None
        sql = "SELECT url FROM page WHERE id = ? OR checked_at IS NOT NULL ORDER BY id = ? DESC"
        row = connection.execute(sql, (page_id, page_id)).fetchone()
    return str(row[0]) if row and row[0] else "http://news.localhost/"


def faults(edit: Edit, db: Path) -> list[str]:
    """Return what verbs tell of an edited store in more than a line, or with a traceback."""
    if (url := applied(edit, db)) is None:
        return []
    found = []
    for verb in verbs(url):
        result = freshet(*verb, "--db", db)
        raised = result.exception is not None and not isinstance(result.exception, SystemExit)
        told = [line for line in result.stderr.splitlines() if line.startswith("freshet:")]
        if raised or len(told) > 1 or "Traceback" in result.stderr:
            found.append(f"{edit}: {' '.join(verb)}: {result.exception!r} {told}")
        elif result.exit_code == 1 and not result.output.strip():
            found.append(f"{edit}: {' '.join(verb)}: exit 1 without a word")
    return found


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 40))]
)
def test_an_edited_store_gives_one_line_in_every_verb(
    whole: Path, tmp_path: Path, seed: int
) -> None:
    for edit in islice(edits(whole, Random(seed)), 6):
        db = tmp_path / "crawl.db"
        shutil.copy(whole, db)
        assert faults(edit, db) == []
