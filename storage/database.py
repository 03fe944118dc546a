"""Opening the store: pragmas, migrations, and the lock that keeps it to one writer.

Invariant: at most one process writes a store. Consequence: the writer may cache row ids
and counters between its transactions.

WAL mode with ``synchronous = FULL``: a transaction that has committed survives the death
of the process and, on a disk that honours fsync, a power cut.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO

import aiosqlite

from freshet.storage.migrations import Migration, migrations, newest

# -- errors ------------------------------------------------------------------
#
# What the store says when it cannot do its work: one line, with the file's name.

#: What may pass by itself: why, and what to do about it.
_PASSING = {
    "SQLITE_FULL": ("the disk is full", "free some space and run the same command again"),
    "SQLITE_BUSY": ("another program holds a lock on it", "close that program and try again"),
    "SQLITE_LOCKED": ("another program holds a lock on it", "close that program and try again"),
}
_SENTENCES = {
    "SQLITE_NOTADB": "it is not a Freshet store (not an SQLite file)",
    "SQLITE_CORRUPT": "it is damaged; restore a backup, or salvage it with `sqlite3 FILE .recover`",
    "SQLITE_CANTOPEN": "it cannot be opened; check that the folder exists and may be written",
    "SQLITE_READONLY": "it may not be written",
    "SQLITE_PERM": "it may not be opened",
}


class StoreError(Exception):
    """The store cannot do what was asked; the message is one line for the user."""


class StoreUnavailable(StoreError):
    """The store cannot be read or written now, for a reason (``why``) that may pass."""

    def __init__(self, path: Path, why: str, advice: str = "") -> None:
        super().__init__(f"{path}: {why}; {advice}" if advice else f"{path}: {why}")
        self.why = f"{path}: {why}"


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's exceptions into :class:`StoreError`.

    A full disk, the lock of another program and failures of reading and writing, which is how
    quotas and network disks show, are a :class:`StoreUnavailable`.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise _store_error(path, error) from error


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's and the file system's exceptions into :class:`StoreError`."""
    try:
        with sqlite_errors(path):
            yield
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from error


def _store_error(path: Path, error: sqlite3.Error) -> StoreError:
    name = getattr(error, "sqlite_errorname", "")
    for prefix, (why, advice) in _PASSING.items():
        if name.startswith(prefix):
            return StoreUnavailable(path, why, advice)
    if name.startswith("SQLITE_IOERR"):
        return StoreUnavailable(path, f"the disk failed or is full ({name})")
    said = f"{error} ({name or type(error).__name__})"
    known = (sentence for prefix, sentence in _SENTENCES.items() if name.startswith(prefix))
    return StoreError(f"{path}: {next(known, said)}")


#: ``PRAGMA application_id`` of every Freshet store: "FRSH" in ASCII.
APPLICATION_ID = 0x46525348

_BUSY_TIMEOUT_MS = 10_000
_CACHE_KIB = 8_192
#: The id of a process and a word.
_OWNER_BYTES = 64


@dataclass(slots=True)
class Database:
    """An open store: ``writer`` for transactions, one at a time, ``reader`` for everything else.

    *Invariant.* ``turn`` is held by the transaction that is under way, ``next_turn`` by whoever
    follows it, ``patience`` by one of those that others may overtake, until it has ended.
    Consequence: what cannot wait waits for no more than what has begun.
    """

    path: Path
    writer: aiosqlite.Connection
    reader: aiosqlite.Connection
    lock: IO[bytes]
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    next_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    patience: asyncio.Lock = field(default_factory=asyncio.Lock)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[aiosqlite.Connection]:
        """A write transaction: committed as a whole, or rolled back and :class:`StoreError`.

        It waits for its turn; one inside another would wait for ever.
        """
        async with self.patience, self._turn():
            with store_errors(self.path):
                await self.writer.execute("BEGIN IMMEDIATE")
                try:
                    yield self.writer
                    await self.writer.execute("COMMIT")
                except BaseException:
                    # COMMIT itself may have failed and ended the transaction (disk full).
                    if self.writer.in_transaction:
                        # And one that was only cancelled here may end before its turn comes.
                        with suppress(sqlite3.OperationalError):
                            await self.writer.execute("ROLLBACK")
                    raise

    @asynccontextmanager
    async def at_once(self) -> AsyncIterator[aiosqlite.Connection]:
        """For statements that commit each by itself, before any transaction that has not begun.

        Raises:
            StoreError: one failed, and changed nothing.
        """
        async with self._turn():
            with store_errors(self.path):
                yield self.writer

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        async with self.next_turn:
            await self.turn.acquire()
        try:
            yield
        finally:
            self.turn.release()

    async def close(self) -> None:
        """Close both connections and give up the lock."""
        with store_errors(self.path):
            await self.reader.close()
            await self.writer.close()
        self.lock.close()


async def open_store(path: Path, *, owner: str = "freshet") -> Database:
    """Open a store for writing, creating or migrating it where needed.

    ``owner`` is what others are told is writing it.

    Raises:
        StoreError: the file is foreign, damaged, newer than this program, not writable,
            or written by another process.
    """
    with store_errors(path):
        lock = held(path, owner)
        try:
            refuse_foreign(path)
            writer = await _connect(path, write=True)
            try:
                await _prepare(path, writer)
                reader = await _connect(path, write=False)
            except BaseException:
                await writer.close()
                raise
        except BaseException:
            lock.close()
            raise
    return Database(path, writer, reader, lock)


@asynccontextmanager
async def reading(path: Path) -> AsyncIterator[aiosqlite.Connection]:
    """A read-only connection to a store that may be being written at the same time.

    Raises:
        StoreError: there is no such file, or it is not a store of this schema.
    """
    if not path.exists():
        raise StoreError(f"{path}: there is no such file; `freshet crawl --db {path}` makes one")
    with store_errors(path):
        refuse_foreign(path)
        connection = await _connect(path, write=False)
        try:
            await _check_version(path, connection, exact=True)
            yield connection
        finally:
            await connection.close()


@asynccontextmanager
async def beside(path: Path) -> AsyncIterator[aiosqlite.Connection]:
    """A write transaction beside whoever else writes the store.

    Only for what nobody keeps in memory between transactions: the state of messages.

    Raises:
        StoreError: as for :func:`reading`, or it cannot be written.
    """
    async with reading(path):
        with store_errors(path):
            connection = await _connect(path, write=True)
            try:
                await connection.execute("BEGIN IMMEDIATE")
                yield connection
                await connection.execute("COMMIT")
            finally:
                await connection.close()


def owner_of(path: Path) -> tuple[str, int] | None:
    """What is writing a store, and the id of its process; None if nothing is."""
    file = _lock_file(path)
    if not file.exists():
        return None
    with file.open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            number, _, owner = lock.read(_OWNER_BYTES).decode("ascii", "replace").partition(" ")
            return (owner or "freshet", int(number)) if number.isdigit() else None
    return None


def _lock_file(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def held(path: Path, owner: str) -> IO[bytes]:
    """Hold ``FILE.lock`` until it is closed; the kernel lets go of it however the process ends.

    Raises:
        StoreError: another process holds it.
    """
    lock = _lock_file(path).open("a+b")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        number, _, who = lock.read(_OWNER_BYTES).decode("ascii", "replace").partition(" ")
        lock.close()
        whose = f"a freshet {who}" if who and who != "freshet" else "another freshet"
        raise StoreError(f"{path}: {whose} (process {number or 'unknown'}) is writing it") from None
    lock.truncate(0)
    lock.write(f"{os.getpid()} {owner}".encode("ascii"))
    lock.flush()
    return lock


def refuse_foreign(path: Path) -> None:
    """Refuse what SQLite would silently adopt: a file that is not ours, read untouched."""
    if not path.exists():
        return
    if path.is_dir():
        raise StoreError(f"{path}: it is a folder, not a file")
    with path.open("rb") as file:
        header = file.read(100)
    if header and not header.startswith(b"SQLite format 3\x00"):
        raise StoreError(f"{path}: it is not a Freshet store (not an SQLite file)")


async def _connect(path: Path, *, write: bool) -> aiosqlite.Connection:
    mode = "rwc" if write else "ro"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = await aiosqlite.connect(uri, uri=True, isolation_level=None)
    try:
        connection.row_factory = aiosqlite.Row
        await connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
        await connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        if not write:
            await connection.execute("PRAGMA query_only = ON")
    except BaseException:
        await connection.close()
        raise
    return connection


async def _prepare(path: Path, writer: aiosqlite.Connection) -> None:
    version = await _check_version(path, writer, exact=False)
    await writer.execute("PRAGMA journal_mode = WAL")
    await writer.execute("PRAGMA synchronous = FULL")
    for migration in migrations():
        if migration.number > version:
            await _migrate(writer, migration)


async def _check_version(path: Path, connection: aiosqlite.Connection, *, exact: bool) -> int:
    application = await _pragma(connection, "application_id")
    version = await _pragma(connection, "user_version")
    tables = await connection.execute_fetchall("SELECT count(*) FROM sqlite_master")
    empty = not next(iter(tables))[0]
    if application != APPLICATION_ID and not (empty and not exact):
        raise StoreError(f"{path}: it is not a Freshet store (another program's SQLite file)")
    if version > newest():
        raise StoreError(
            f"{path}: its schema {version} is newer than the {newest()} this Freshet knows; "
            "upgrade Freshet"
        )
    if exact and version < newest():
        raise StoreError(
            f"{path}: its schema {version} is older than {newest()}; `freshet crawl` migrates it"
        )
    return version


async def _pragma(connection: aiosqlite.Connection, name: str) -> int:
    rows = await connection.execute_fetchall(f"PRAGMA {name}")
    return int(next(iter(rows))[0])


async def _migrate(writer: aiosqlite.Connection, migration: Migration) -> None:
    """Apply one migration and record it, in one transaction."""
    record = f"INSERT INTO migration VALUES ({migration.number}, '{migration.name}', {time.time()})"
    await writer.executescript(
        f"BEGIN IMMEDIATE;\n{migration.sql}\n{record};\n"
        f"PRAGMA application_id = {APPLICATION_ID};\n"
        f"PRAGMA user_version = {migration.number};\nCOMMIT;"
    )


# -- formats -----------------------------------------------------------------
#
# The formats of what the store keeps as versioned bytes: each begins with its number. Read-only.
#
# All of a kind were written by one program or by its later versions. Hence the first and the last
# tell of all, and cost a look-up each.


class Versioned(StrEnum):
    """What is kept as versioned bytes, as people call it."""

    SKETCHES = "sketches"
    MEMORIES = "memories"
    WALLS = "walls"


_ROWS = {
    Versioned.SKETCHES: "SELECT sketch FROM version WHERE sketch IS NOT NULL ORDER BY id",
    Versioned.MEMORIES: "SELECT data FROM memory ORDER BY page_id",
    Versioned.WALLS: "SELECT data FROM wall ORDER BY host_id",
}


async def formats(connection: aiosqlite.Connection, what: Versioned) -> list[int]:
    """The format of the first and of the last row; empty where there are none."""
    found = []
    for order in ("ASC", "DESC"):
        rows = await connection.execute_fetchall(f"{_ROWS[what]} {order} LIMIT 1")
        found += [row[0][0] for row in rows if row[0]]
    return found
