"""The store opens what is its own, refuses what is not, and loses nothing on the way."""

import ast
import asyncio
import builtins
import importlib
import inspect
import json
import pkgutil
import re
import shutil
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from freshet import storage
from freshet.storage import database as database_module
from freshet.storage import entries
from freshet.storage import extensions as history
from freshet.storage.connection import StoreConnection
from freshet.storage.database import (
    APPLICATION_ID,
    Database,
    as_json,
    columns_of,
    open_store,
    reading,
    row_of,
    row_to,
    values_of,
)
from freshet.storage.entries import stored
from freshet.storage.errors import StoreError
from freshet.storage.extensions import migrations, newest
from tests.storage.small_store import SmallStore, rows


@pytest.fixture
async def made(tmp_path: Path) -> Path:
    """The file of a store that was made and is not open."""
    path = tmp_path / "crawl.db"
    await (await open_store(path)).close()
    return path


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """A new store that is open."""
    opened = await open_store(tmp_path / "crawl.db")
    yield opened
    await opened.close()


def test_a_new_store_has_the_newest_schema_in_wal_mode(made: Path) -> None:
    assert rows(made, "PRAGMA user_version") == [(newest(),)]
    assert rows(made, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert rows(made, "PRAGMA journal_mode") == [("wal",)]
    assert rows(made, "SELECT max(number) FROM migration") == [(newest(),)]


async def test_a_second_writer_is_refused_also_by_another_name_of_the_store(
    database: Database, tmp_path: Path
) -> None:
    path, link, twin = (tmp_path / name for name in ("crawl.db", "link.db", "twin.db"))
    assert path.stat().st_mode & 0o777 == 0o600
    link.symlink_to(path)
    twin.hardlink_to(path)
    with pytest.raises(StoreError, match="hard links"):
        await open_store(twin)
    twin.unlink()
    for name in (path, link):
        with pytest.raises(StoreError, match=r"another freshet \(process \d+\) is writing it"):
            await open_store(name)


async def test_a_lock_that_is_another_file_is_refused_untouched(tmp_path: Path) -> None:
    path, other = tmp_path / "crawl.db.lock", tmp_path / "notes"
    other.write_text("precious")
    for make in (path.symlink_to, path.hardlink_to):
        make(other)
        with pytest.raises(StoreError, match="link"):
            await open_store(tmp_path / "crawl.db")
        path.unlink()
    assert other.read_text() == "precious"


@pytest.mark.parametrize("lost", ["crawl.db", "crawl.db-wal", "crawl.db.lock"])
async def test_nothing_is_written_to_a_store_that_was_replaced(
    database: Database, tmp_path: Path, lost: str
) -> None:
    file = tmp_path / lost

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO host (origin) VALUES ('x')")

    file.rename(tmp_path / "old")
    with pytest.raises(StoreError, match="was removed while it was being written"):
        await database.write(work)
    file.touch()
    for write in (database.write, database.at_once):
        with pytest.raises(StoreError, match="was replaced while it was being written"):
            await write(work)
    (count,) = await database.reader.execute_fetchall("SELECT count(*) FROM host")
    assert tuple(count) == (0,)


async def test_reading_beside_the_writer_keeps_its_locks_and_its_log(database: Database) -> None:
    path = database.path
    async with reading(path) as connection:
        await connection.execute_fetchall("SELECT 1")
    # The last connection to a store removes the log as it closes; the writer's is still open.
    other = f"import sqlite3; c = sqlite3.connect({str(path)!r}); c.execute('SELECT 1 FROM page')"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", f"{other}; c.close()")
    assert await process.wait() == 0
    await database.write(lambda db: db.execute("INSERT INTO host (origin) VALUES ('x')"))
    assert rows(path, "SELECT count(*) FROM host") == [(1,)]


async def test_a_reader_works_while_a_writer_is_in_a_transaction(database: Database) -> None:
    inserted, may_end = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def insert(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO host (origin) VALUES ('https://a.example')")
        loop.call_soon_threadsafe(inserted.set)
        may_end.wait()

    writing = asyncio.create_task(database.write(insert))
    await inserted.wait()
    async with reading(database.path) as reader:
        (count,) = await reader.execute_fetchall("SELECT count(*) FROM host")
    assert tuple(count) == (0,)
    may_end.set()
    await writing


async def test_a_failing_transaction_leaves_nothing_behind(database: Database) -> None:
    def write_half(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO host (origin) VALUES ('https://a.example')")
        connection.execute("INSERT INTO nowhere VALUES (1)")

    with pytest.raises(StoreError, match="no such table: nowhere"):
        await database.write(write_half)
    assert rows(database.path, "SELECT count(*) FROM host") == [(0,)]


def test_observations_can_neither_be_changed_nor_deleted(site: SmallStore) -> None:
    site.observe(site.page("/"), 0.0, "new")
    for statement in ("UPDATE observation SET kind = 'changed'", "DELETE FROM observation"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            site.execute(statement)


@pytest.mark.parametrize("content", [b"just a text file\n" * 20, b"\x89PNG" + bytes(200)])
async def test_a_file_that_is_not_sqlite_is_refused_untouched(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "notes.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not a Freshet store"):
        await open_store(path)
    assert path.read_bytes() == content


async def test_another_programs_sqlite_file_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    SmallStore(path).execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program's SQLite file"):
        await open_store(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (newest() + 1, f"schema {newest() + 1} is newer"),
        (13, "before 0.1.0 (schema 13), which this one cannot read; crawl into a new file"),
    ],
)
async def test_a_schema_that_is_not_read_is_refused_with_one_line(
    made: Path, schema: int, told: str
) -> None:
    SmallStore(made).execute(f"PRAGMA user_version = {schema}")
    for open_it in (open_store(made), reading(made).__aenter__()):
        with pytest.raises(StoreError) as caught:
            await open_it
        assert told in str(caught.value)
        assert "\n" not in str(caught.value)


async def test_a_writer_migrates_an_older_schema_and_a_reader_refuses_it(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = newest() + 1
    further = number, "notes", "CREATE TABLE note (text TEXT) STRICT;"
    both = (*migrations(), further)
    monkeypatch.setattr(history, "migrations", lambda: both)
    monkeypatch.setattr(database_module, "migrations", lambda: both)
    with pytest.raises(StoreError, match=rf"schema {number - 1} is older .* migrates it"):
        async with reading(made):
            pass
    await (await open_store(made)).close()
    async with reading(made):
        assert rows(made, "SELECT number, name FROM migration")[-1:] == [(number, "notes")]
        assert rows(made, "SELECT text FROM note") == []


async def test_a_migration_begins_only_where_the_disk_has_room_for_it(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SmallStore(made).execute(f"PRAGMA user_version = {newest() - 1}")
    SmallStore(made).execute("DROP INDEX page_refused")
    before = made.read_bytes()
    with monkeypatch.context() as patched:
        full = shutil.disk_usage(made)._replace(free=1_000)
        patched.setattr(shutil, "disk_usage", lambda _folder: full)
        with pytest.raises(StoreError, match=r"takes up to 0 MB, and .* has 0 free; free some"):
            await open_store(made)
        assert made.read_bytes() == before
    SmallStore(made).execute(
        "DELETE FROM migration WHERE number = (SELECT max(number) FROM migration)"
    )
    await (await open_store(made)).close()
    assert rows(made, "PRAGMA user_version") == [(newest(),)]


async def test_a_damaged_schema_that_is_not_utf_8_is_one_clear_line(made: Path) -> None:
    made.write_bytes(made.read_bytes().replace(b" INTEGER", b" \xffNTEGER"))
    with pytest.raises(StoreError, match="it is damaged"):
        await open_store(made)


async def test_a_damaged_file_is_one_clear_line(made: Path) -> None:
    with made.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 4000)
    with pytest.raises(StoreError, match="damaged") as caught:
        await open_store(made)
    assert "\n" not in str(caught.value)


async def test_a_missing_folder_and_a_folder_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        await open_store(tmp_path / "missing" / "crawl.db")
    with pytest.raises(StoreError, match="folder"):
        await open_store(tmp_path)


async def test_a_reader_that_is_cancelled_twice_leaves_no_thread(made: Path) -> None:
    before, reads = set(threading.enumerate()), asyncio.Event()

    async def read() -> None:
        async with reading(made) as connection:
            await connection.execute_fetchall("SELECT 1")
            reads.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(read())
    await reads.wait()
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait([task])
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()


async def test_reading_a_store_that_does_not_exist_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="freshet crawl --db"):
        async with reading(tmp_path / "none.db"):
            pass


async def test_what_cannot_wait_overtakes_the_transactions_that_have_not_begun(
    database: Database,
) -> None:
    order: list[str] = []
    begun, may_end = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def first(_: sqlite3.Connection) -> None:
        loop.call_soon_threadsafe(begun.set)
        may_end.wait()
        order.append("under way")

    def insert(connection: sqlite3.Connection, name: str) -> None:
        order.append(name)
        connection.execute("INSERT INTO host (origin) VALUES (?)", (name,))

    def note(_: sqlite3.Connection, name: str) -> None:
        order.append(name)

    tasks = [asyncio.create_task(database.write(first))]
    await begun.wait()
    names = ("second", "third")
    tasks += [asyncio.create_task(database.write(partial(note, name=name))) for name in names]
    await asyncio.sleep(0)
    names = ("http://a", "http://b")
    tasks += [asyncio.create_task(database.at_once(partial(insert, name=name))) for name in names]
    await asyncio.sleep(0)
    may_end.set()
    await asyncio.gather(*tasks)
    assert order == ["under way", "http://a", "http://b", "second", "third"]
    origins = rows(database.path, "SELECT origin FROM host ORDER BY id")
    assert origins == [("http://a",), ("http://b",)]


async def test_who_gives_up_waiting_for_a_turn_holds_up_nobody(database: Database) -> None:
    may_end = threading.Event()
    first = asyncio.create_task(database.write(lambda _: may_end.wait()))
    await asyncio.sleep(0)
    for wait in (database.write, database.at_once):
        waiting = asyncio.create_task(wait(lambda _: None))
        await asyncio.sleep(0)
        waiting.cancel()
    await asyncio.sleep(0)
    may_end.set()
    await first
    assert await database.write(lambda _: "done") == "done"


async def opened(path: Path) -> None:
    await (await open_store(path)).close()


async def read(path: Path) -> None:
    async with reading(path):
        pass


@pytest.mark.parametrize("use", [opened, read])
@pytest.mark.parametrize(
    "rest",
    [b"", b"\0" * 84, b"\xff" * 84, b"text " * 900, bytes(4_080)],
    ids=["cut off", "zeros", "ones", "text", "a page"],
)
async def test_a_damaged_file_is_left_closed(
    use: Callable[[Path], Awaitable[None]],
    rest: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python 3.13 warns of a connection that is not closed."""
    connections, closed = list[sqlite3.Connection](), list[sqlite3.Connection]()

    class Watched(sqlite3.Connection):
        def close(self) -> None:
            closed.append(self)
            super().close()

    def connect(*of: Any, **how: Any) -> sqlite3.Connection:
        connections.append(sqlite3_connect(*of, **how | {"factory": Watched}))
        return connections[-1]

    sqlite3_connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", connect)
    (tmp_path / "crawl.db").write_bytes(b"SQLite format 3\0" + rest)
    with pytest.raises(StoreError):
        await use(tmp_path / "crawl.db")
    assert connections
    assert closed == connections


@dataclass(frozen=True)
class Part:
    """A record in another one."""

    flag: bool | None = field(metadata=stored(bool))


@dataclass(frozen=True)
class Whole:
    """A record of records, the last of which may be missing."""

    first: Part = field(metadata=stored(Part))
    name: str
    last: Part | None = field(metadata=stored(Part, optional=True))


def test_rows_become_records_of_records_and_records_values() -> None:
    assert columns_of(Whole, "t", name="n") == "t.flag, n, t.flag"
    assert row_to(Whole)((None, "a", None)) == Whole(Part(None), "a", None)
    found = row_to(Whole)((1, "a", 0, "what follows"))
    assert found == Whole(Part(True), "a", Part(False))
    assert found.first.flag is True
    assert values_of(found) == (Part(True), "a", Part(False))
    assert values_of(found.first) == (True,)


def records_read_by(call: str) -> list[type[Any]]:
    """Return the records that the store's modules give to the functions of this pattern."""
    names = [each.name for each in pkgutil.walk_packages(storage.__path__, "freshet.storage.")]
    for extension in ("alerts", "push", "readers", "search"):
        package = importlib.import_module(f"freshet.crawler.extensions.{extension}")
        inside = pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
        names += [each.name for each in inside if each.name.endswith(("tables", "queries"))]
    found = dict[type[Any], None]()
    for module in map(importlib.import_module, names):
        calls = re.findall(rf"\b(?:{call})(_?[A-Z]\w+)", Path(module.__file__ or "").read_text())
        found |= {vars(module)[name]: None for name in calls}
    return [*found]


def annotations(record: type[Any]) -> list[tuple[str, str]]:
    """Return the names of a record's own fields, and their types as they are written."""
    (definition,) = ast.parse(inspect.getsource(record)).body
    return [
        (ast.unparse(each.target), ast.unparse(each.annotation))
        for each in ast.walk(definition)
        if isinstance(each, ast.AnnAssign)
    ]


COLUMNS = records_read_by(r"row_of\(|load_columns\(\s*db,\s*")


def test_the_records_of_columns_are_found() -> None:
    assert len(COLUMNS) > 10


@pytest.mark.parametrize("record", COLUMNS, ids=lambda record: record.__name__)
def test_columns_have_the_types_of_their_fields(record: Any) -> None:
    row: Any = np.dtype(row_of(record))
    for name, annotation in annotations(record):
        scalar = annotation.removeprefix("NDArray[np.").removesuffix("]")
        expected = object if annotation == "list[str]" else getattr(np, scalar)
        assert row[name] == np.dtype(expected), name


@pytest.mark.parametrize("record", records_read_by(r"row_to\("), ids=lambda record: record.__name__)
def test_a_field_says_if_it_is_a_truth_value_or_a_record(record: type[Any]) -> None:
    names = {**vars(builtins), **vars(importlib.import_module(record.__module__))}
    metadata = {each.name: each.metadata for each in fields(record)}
    for name, annotation in annotations(record):
        kind_name, *others = annotation.removeprefix("entries.").split(" | ")
        kind = names.get(kind_name) or getattr(entries, kind_name, None)
        read = kind is bool or is_dataclass(kind)
        assert metadata[name].get("stored") is (kind if read else None), name
        if is_dataclass(kind):
            assert metadata[name]["optional"] is ("None" in others), name


ROOT = Path(__file__).parents[2]
WITH_STATEMENTS = [
    path.relative_to(ROOT).as_posix()
    for folder in ("crawler", "scheduler", "scripts", "storage", "tests")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if re.search(r"\bexecute(?:many|_fetchall)?\(", path.read_text())
]


@pytest.mark.parametrize("path", WITH_STATEMENTS)
def test_no_statement_numbers_its_placeholders(path: str) -> None:
    """Of numbers with a sequence sqlite3 of Python 3.12.0 to 3.12.3 warns."""
    texts = [
        each.value
        for each in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]
    assert not [each for each in texts if re.search(r"(?:^|[\s(,=<>])\?[1-9]", each)]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("plain", "plain"), ("", ""), ("größe 東", "größe 東"), ("a\0b", "a\ufffdb"),
        ("\0", "\ufffd"),
        ("\ud800", "?"), ("a\udfffé", "a?é"), ("\udcff\0", "?\ufffd"), ("\ufffd", "\ufffd"),
        ("😀", "😀"),
    ],
)  # fmt: skip
def test_a_connection_mends_texts_that_sqlite_cannot_hold_and_no_others(
    text: str, kept: str
) -> None:
    db = sqlite3.connect(":memory:", factory=StoreConnection)
    rest = (7, 2.5, None, b"a\0b")
    db.execute("CREATE TABLE t (a, b, c, d, e)")
    db.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?)", (text, *rest))
    named = dict(zip("abcde", (text, *rest), strict=True))
    db.execute("INSERT INTO t VALUES (:a, :b, :c, :d, :e)", named)
    db.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", iter([["x", *rest], [text, *rest]]))
    db.executemany("INSERT INTO t VALUES (:a, :b, :c, :d, :e)", [named])
    found = db.execute("SELECT * FROM t WHERE a <> 'x'", ()).fetchall()
    assert found == [(kept, *rest)] * 4
    assert db.execute("SELECT count(*) FROM t WHERE a = ?", [text]).fetchone() == (4,)


@pytest.mark.parametrize(
    "value",
    [[], {}, (), [1, "a", None, 2.5, True], {"x": [{"y": ("z",)}]}, "é東😀", "\u2028'\"\\/\x7f\n",
     [1e300, -0.0, 10**30], {1: 2, None: 3}, [[], {}], "\ud800"],
)  # fmt: skip
def test_json_for_sqlite_is_that_of_the_standard_encoder(value: object) -> None:
    assert as_json(value) == json.dumps(value, ensure_ascii=False)


def test_a_nul_in_json_is_replaced_and_what_only_looks_like_one_is_kept() -> None:
    assert as_json(["a\0", "\\u0000", "\\\0"]) == '["a\\ufffd", "\\\\u0000", "\\\\\\ufffd"]'
    with pytest.raises(TypeError):
        as_json([object()])
