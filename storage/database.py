"""Open stores: pragmas, migrations, the lock of the single writer, and columns by record fields.

Invariant: at most one process writes a store. Consequence: the writer may cache row ids and
counters between its transactions.

The writer runs plain functions of an :class:`sqlite3.Connection` on a separate thread, a whole
transaction per call. Readers use aiosqlite. In WAL mode with ``synchronous = FULL`` a committed
transaction survives a crash of the process and, on a disk that honours fsync, a power failure.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, partial
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

import aiosqlite

from freshet.storage import extensions
from freshet.storage.connection import StoreConnection, encodable
from freshet.storage.errors import StoreError, StoreUnavailable, trouble
from freshet.storage.extensions import migrations, newest, oldest

# -- errors: one line for the user, with the file's name ---------------------

#: Temporary errors: the reason, and advice.
_PASSING = {
    "SQLITE_FULL": ("the disk is full", "free some space and run the same command again"),
    "SQLITE_BUSY": ("another program holds a lock on it", "close that program and try again"),
    "SQLITE_LOCKED": ("another program holds a lock on it", "close that program and try again"),
}
_SENTENCES = {
    "SQLITE_NOTADB": "it is not a Freshet store (not an SQLite file); --db names another",
    "SQLITE_CORRUPT": "it is damaged; restore a backup, or salvage it with `sqlite3 FILE .recover`",
    "SQLITE_CANTOPEN": "it cannot be opened; check that it is a file in a folder for writing",
    "SQLITE_READONLY": "it may not be written; check its permissions and its folder's",
    "SQLITE_PERM": "it may not be opened; check its permissions",
}


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's exceptions into :class:`StoreError`.

    A full disk, another program's lock and I/O errors (quotas, network disks) become
    :class:`StoreUnavailable`.
    """
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _store_error(path, error) from error


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's and the file system's exceptions into :class:`StoreError`."""
    try:
        with sqlite_errors(path):
            yield
    except OSError as error:
        raise StoreError(trouble(path, error)) from error


def _store_error(path: Path, error: Exception) -> StoreError:
    # SQLite's message may quote a damaged schema that Python cannot decode.
    damaged = isinstance(error, UnicodeDecodeError)
    name = "SQLITE_CORRUPT" if damaged else getattr(error, "sqlite_errorname", "")
    for prefix, (why, advice) in _PASSING.items():
        if name.startswith(prefix):
            return StoreUnavailable(path, why, advice)
    if name.startswith("SQLITE_IOERR"):
        return StoreUnavailable(path, f"the disk failed or is full ({name})", "check the disk")
    unknown = f"{error} ({name or type(error).__name__}); `freshet doctor` checks it"
    known = (sentence for prefix, sentence in _SENTENCES.items() if name.startswith(prefix))
    return StoreError(f"{path}: {next(known, unknown)}")


#: ``PRAGMA application_id`` of every Freshet store: "FRSH" in ASCII.
APPLICATION_ID = 0x46525348

#: The file that makes a folder a sharded store.
SHARDS_FILE: Final = "shards.toml"

_BUSY_TIMEOUT_MS = 10_000
_CACHE_KIB = 8_192
_LOG_BYTES = 1 << 26
#: Rows that a reader fetches at once when it iterates over a cursor.
_CHUNK = 64
_OWNER_BYTES = 1_024


#: NUL in JSON: an escape that is not itself escaped.
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
_encode = json.JSONEncoder(ensure_ascii=False).encode
#: The C encoder, made once: ``encode`` makes one per value. Some Python builds lack it.
_maker = getattr(json.encoder, "c_make_encoder", None)
_parts = _maker and _maker(
    markers=None, default=json.JSONEncoder().default, encoder=json.encoder.encode_basestring,
    indent=None, key_separator=": ", item_separator=", ", sort_keys=False, skipkeys=False,
    allow_nan=True,
)  # fmt: skip


def as_json(value: object) -> str:
    """Return JSON for ``json_each``; texts are not escaped to ASCII (see :func:`encodable`)."""
    text = "".join(_parts(value, 0)) if _parts else _encode(value)
    # SQLite cuts texts from JSON at a NUL.
    return _NUL.sub(r"\1\\ufffd", text) if "\\u0000" in text else text


T = TypeVar("T")


@dataclass(slots=True)
class Database:
    """An open store: a connection that writes on a separate thread, and a ``reader``.

    *Invariant.* The thread runs calls in order, and at most one transaction waits for it.
    Consequence: :meth:`at_once` waits only for a call that has begun.

    Commits wait while another task holds ``patience``. They fail after another process has taken
    the ``lease`` of a shard, because a file lock may be lost on a network disk or with a copy.
    """

    path: Path
    reader: aiosqlite.Connection
    lock: IO[bytes]
    thread: Executor
    connection: sqlite3.Connection
    files: dict[Path, os.stat_result]
    owner: str
    lease: int | None = None
    patience: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work`` in a transaction that is committed as a whole or rolled back.

        If the caller is cancelled before COMMIT, the transaction is rolled back. Raises StoreError,
        also if the opened file was removed or replaced: data written to it would be lost.
        """
        async with self.patience:
            with store_errors(self.path):
                given_up = threading.Event()
                commit = partial(transact, work, self.connection, given_up, self._require_own)
                return await _run(self.thread, commit, given_up)

    async def at_once(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work`` before any waiting transaction; each statement commits by itself.

        A statement that raises StoreError has no effect.
        """
        with store_errors(self.path):
            self._require_file()
            return await _run(self.thread, partial(work, self.connection))

    def answer(self, words: str) -> None:
        """Write a message for processes that read the store's owner; replace the last message."""
        answer(self.lock, self.owner, words)

    async def close(self) -> None:
        """Close both connections and release the lock, even if the caller is cancelled."""
        await _finished(self._close())

    async def _close(self) -> None:
        with store_errors(self.path):
            await self.reader.close()
            await _run(self.thread, self.connection.close)
        self.thread.shutdown()
        self.lock.close()

    def _require_own(self) -> None:
        """Raise StoreError, inside a transaction, if another process has taken over the store."""
        self._require_file()
        if self.lease is not None:
            (epoch,) = self.connection.execute("SELECT epoch FROM lease").fetchone() or (0,)
            if epoch != self.lease:
                raise StoreError(f"{self.path}: another process has taken over this shard")

    def _require_file(self) -> None:
        """Raise StoreError if a file of the store was removed or replaced."""
        for file, known in self.files.items():
            try:
                now = file.stat()
            except OSError:
                now = None
            if now is None or (now.st_ino, now.st_dev) != (known.st_ino, known.st_dev):
                how = "removed" if now is None else "replaced"
                raise StoreError(
                    f"{file}: it was {how} while it was being written; "
                    "put the store back, or run the same command again"
                )


def transact(
    work: Callable[[sqlite3.Connection], T],
    connection: sqlite3.Connection,
    given_up: threading.Event | None = None,
    require_own: Callable[[], None] | None = None,
) -> T:
    """Run ``work`` in a transaction that is committed as a whole or rolled back."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        done = work(connection)
        if require_own is not None:
            require_own()
        connection.execute("ROLLBACK" if given_up and given_up.is_set() else "COMMIT")
    except BaseException:
        # COMMIT itself may have failed and ended the transaction (disk full).
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise
    return done


async def _run(
    thread: Executor, work: Callable[[], T], given_up: threading.Event | None = None
) -> T:
    """Run ``work`` on a thread; a cancelled caller sets ``given_up`` and waits for the end."""
    running = asyncio.get_running_loop().run_in_executor(thread, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if given_up is not None:
            given_up.set()
        with suppress(Exception):
            await _finished(running)
        raise


async def open_store(path: Path, *, owner: str = "freshet") -> Database:
    """Open a store for writing; create or migrate it if needed. Other processes see ``owner``.

    Raises:
        StoreError: the file is foreign, damaged, older than the first release or newer than this
            program, not writable, or written by another process.
    """
    thread = ThreadPoolExecutor(1, "freshet-writer")
    with store_errors(path):
        lock = held(path, owner)
        try:
            _refuse_foreign(path)
            writer = await _run(thread, partial(_writable, path))
            try:
                reader = await _reader(path)
            except BaseException:
                await _run(thread, writer.close)
                raise
        except BaseException:
            thread.shutdown()
            lock.close()
            raise
    files = {each: each.stat() for each in (path, Path(f"{path.resolve()}-wal"), Path(lock.name))}
    return Database(path, reader, lock, thread, writer, files=files, owner=owner)


@asynccontextmanager
async def reading(path: Path) -> AsyncIterator[aiosqlite.Connection]:
    """Open a read-only connection to a store; another process may be writing it.

    Raises:
        StoreError: the file does not exist, or it is not a store of this schema.
    """
    _require(path)
    with store_errors(path):
        connection = _reader(path)
        try:
            await _finished(connection)
            yield connection
        finally:
            await _finished(connection.close())


async def _finished(work: Awaitable[object]) -> None:
    """Await the end of ``work`` even if the caller is cancelled; then raise CancelledError.

    A connection's thread needs a running event loop for its results, and the exit of the program
    waits for that thread.
    """
    working, cancelled = asyncio.ensure_future(work), None
    while not working.done():
        try:
            await asyncio.wait([working])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    await working


def write_beside(path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """Run ``work`` in a transaction beside the process that writes the store.

    Use it only for tables that the writer does not cache between transactions: the state of
    messages, counts of searches, clicks, settings of sites, seeds, and pages to send to other
    shards. Raises StoreError.
    """
    _require(path)
    with store_errors(path):
        readable(path).close()
        with closing(_connect(path, "rw")) as connection:
            return transact(work, connection)


@contextmanager
def opened(path: Path, mode: str = "rw") -> Iterator[sqlite3.Connection]:
    """Open a store of the newest schema while a writer holds its lock. Raises StoreError."""
    _require(path)
    with store_errors(path), closing(_connect(path, mode)) as connection:
        schema_of(path, connection, migrates=False)
        yield connection


class Owner(NamedTuple):
    """The program that writes a store, its process, and its last answer (see :class:`Database`)."""

    name: str
    process: int
    answer: str = ""


def owner_of(path: Path) -> Owner | None:
    """Return the owner of a store that is being written, or None."""
    file = _lock_file(path)
    if not file.exists():
        return None
    with file.open("rb") as lock:
        owner, number, answer = _holder(lock, fcntl.LOCK_SH) or ("", "", "")
        return Owner(owner, int(number), answer) if number.isdigit() else None


def _lock_file(path: Path) -> Path:
    # In the folder of the store itself, not of a symbolic link, like SQLite's files.
    return Path(f"{os.path.realpath(path)}.lock")


def _holder(lock: IO[bytes], kind: int) -> tuple[str, str, str] | None:
    """Lock the file; if it is locked, return the owner, its process id, and its last message."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        words = lock.read(_OWNER_BYTES).rstrip(b"\0").decode("utf-8", "replace")
        line, _, answer = words.partition("\n")
        number, _, owner = line.partition(" ")
        return owner or "freshet", number, answer
    return None


def held(path: Path, owner: str) -> IO[bytes]:
    """Lock ``FILE.lock`` until the file is closed; the kernel releases it when the process dies.

    Raises:
        StoreError: another process holds the lock, or the store or the lock has further hard links,
            through which another process could write it.
    """
    _refuse_folder(path)
    file = _lock_file(path)
    if file.is_symlink():
        raise StoreError(f"{file}: it is a symbolic link, not a lock; remove it")
    _require_one_name(path)
    _require_one_name(file)
    # O_NOFOLLOW is what protects: the file may change after the check above, which only makes the
    # message clear.
    lock = open(  # noqa: SIM115 - the caller closes it
        file, "r+b", opener=lambda name, how: os.open(name, how | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    )
    if (holder := _holder(lock, fcntl.LOCK_EX)) is not None:
        lock.close()
        who, number, _ = holder
        whose = f"a freshet {who}" if who != "freshet" else "another freshet"
        raise StoreError(
            f"{path}: {whose} (process {number or 'unknown'}) is writing it; end it, or name "
            "another store with --db"
        )
    _sign(lock, owner)
    return lock


def answer(lock: IO[bytes], owner: str, words: str) -> None:
    """Write a message into a lock for processes that read its owner; replace the last message."""
    _sign(lock, owner, f"{time.time():.3f} {words}")


def _sign(lock: IO[bytes], owner: str, answer: str = "") -> None:
    words = encodable(f"{os.getpid()} {owner}\n{answer}").encode()[:_OWNER_BYTES]
    lock.seek(0)
    # One write of constant length: a concurrent reader gets a complete message.
    lock.write(words.ljust(_OWNER_BYTES, b"\0"))
    lock.flush()


def _require_one_name(path: Path) -> None:
    if path.is_file() and (names := path.stat().st_nlink) > 1:
        raise StoreError(f"{path}: it has {names} names (hard links); remove all but one")


def _refuse_foreign(path: Path) -> None:
    """Raise StoreError for a file that is not a store and that SQLite would adopt; only read it.

    Call only before SQLite opens the file: POSIX drops all locks of a process on a file when the
    process closes any handle of it.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        header = file.read(100)
    if header and not header.startswith(b"SQLite format 3\x00"):
        raise StoreError(
            f"{path}: it is not a Freshet store (not an SQLite file); --db names another"
        )


def _require(path: Path) -> None:
    """Refuse a path without a store."""
    if not path.exists():
        raise StoreError(f"{path}: there is no such file; `freshet crawl --db {path}` makes one")
    _refuse_folder(path)


def _refuse_folder(path: Path) -> None:
    if (path / SHARDS_FILE).is_file():
        first = path / "0000.db"
        raise StoreError(f"{path}: this works on one shard of a sharded store, such as {first}")
    if path.is_dir():
        raise StoreError(f"{path}: it is a folder, not a file; --db names a file")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=mode != "ro", factory=StoreConnection
    )
    try:
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
        # It reads the file, which may be no database.
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    except BaseException:
        connection.close()
        raise
    return connection


def _reader(path: Path) -> aiosqlite.Connection:
    # Opened here: aiosqlite's thread would outlive the event loop if that failed there.
    connection = readable(path)
    return aiosqlite.Connection(lambda: connection, _CHUNK)


def readable(path: Path, *, is_known: bool = False) -> sqlite3.Connection:
    """Open a store of the newest schema, as is checked unless it ``is_known``, from any thread."""
    connection = _connect(path, "ro")
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA query_only = ON")
        if not is_known:
            schema_of(path, connection, migrates=False)
    except BaseException:
        connection.close()
        raise
    return connection


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, onto the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


#: Migrations after which pages are joined: they changed the rule of identity.
_JOINING: Final = frozenset({"identity", "lower_case_sessions"})
#: Migrations enlarge a store by at most one part in this number.
_MIGRATED_SHARE: Final = 10


def _writable(path: Path) -> sqlite3.Connection:
    """Open a store for writing; create or migrate it."""
    with suppress(FileExistsError):
        # The store has the secrets of subscriptions; SQLite copies the mode to its WAL files.
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL, 0o600))
    connection = _connect(path, "rw")
    try:
        is_new = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        version = 0 if is_new else schema_of(path, connection)
        if not is_new and version < newest():
            _require_room_to_migrate(path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        # Its log shrinks again after a large transaction.
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
        for number, name, sql in migrations():
            if number > version:
                # Each is applied and recorded in one transaction.
                now = time.time()
                connection.executescript(f"BEGIN IMMEDIATE;\n{sql}")
                if name in _JOINING and not is_new:
                    from freshet.storage.joining import join  # noqa: PLC0415 - it imports this

                    join(connection, now)
                connection.execute("INSERT INTO migration VALUES (?, ?, ?)", (number, name, now))
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {number}")
                connection.execute("COMMIT")
        extensions.migrate(path, connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _require_room_to_migrate(path: Path) -> None:
    """Raise StoreError if the disk lacks room for new indexes and their part of the WAL."""
    needed, free = path.stat().st_size / _MIGRATED_SHARE, shutil.disk_usage(path.parent).free
    if free < needed:
        raise StoreError(
            f"{path}: to bring it to a new schema takes up to {needed / 1e6:,.0f} MB, and "
            f"{path.parent} has {free / 1e6:,.0f} free; free some space and run the same command "
            "again"
        )


def schema_of(path: Path, connection: sqlite3.Connection, *, migrates: bool = True) -> int:
    """Return the number of a store's schema; an older one is accepted if ``migrates``.

    Raises:
        StoreError: this program can neither read nor migrate it.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise StoreError(
            f"{path}: it is not a Freshet store (another program's SQLite file); --db names another"
        )
    if version > newest():
        raise StoreError(
            f"{path}: its schema {version} is newer than the {newest()} this Freshet knows; "
            "upgrade Freshet"
        )
    if version < oldest():
        raise StoreError(
            f"{path}: it was made by a version of Freshet before 0.1.0 (schema {version}), which "
            "this one cannot read; crawl into a new file"
        )
    if version < newest() and not migrates:
        raise StoreError(
            f"{path}: its schema {version} is older than {newest()}; `freshet crawl` migrates it"
        )
    return int(version)


# -- columns -----------------------------------------------------------------

if TYPE_CHECKING:
    import numpy as np
    from _typeshed import DataclassInstance
    from numpy.typing import DTypeLike, NDArray

Record = TypeVar("Record", bound="DataclassInstance")
#: Of a statement: of its question marks in their order, or by the names of its placeholders.
Values: TypeAlias = Sequence[Any] | Mapping[str, Any]
_Reader: TypeAlias = Callable[[Sequence[Any]], Any]

#: Rows that SQLite hands over at once: other coroutines wait only a moment.
_ROWS_COLUMNS: Final = 20_000


@cache
def columns_of(record: type[DataclassInstance], table: str = "", /, **given: str) -> str:
    """Return a SELECT list: for each field the expression ``given``, or its column of ``table``.

    A field that is a record is replaced by its fields.

    >>> from freshet.storage.records import Validators
    >>> columns_of(Validators, "p", etag="NULL")
    'NULL, p.last_modified'
    """
    before = f"{table}." if table else ""
    columns = []
    for each in fields(record):
        inner: type[Any] | None = each.metadata.get("stored")
        own = columns_of(inner, table) if is_dataclass(inner) else before + each.name
        columns.append(given.get(each.name) or own)
    return ", ".join(columns)


def code_of(words: Sequence[str], column: str) -> str:
    """Return an SQL expression for the index of a column's word in ``words``."""
    cases = " ".join(f"WHEN '{word}' THEN {code}" for code, word in enumerate(words))
    return f"CASE {column} {cases} END"


def values_of(record: DataclassInstance) -> tuple[Any, ...]:
    """Return the values of a record in the order of :func:`columns_of`."""
    return _values_of(type(record))(record)


@cache
def _values_of(record: type[DataclassInstance]) -> Callable[[DataclassInstance], tuple[Any, ...]]:
    names = [each.name for each in fields(record)]
    # With a single name, attrgetter returns a bare value, not a tuple.
    return attrgetter(*names) if len(names) > 1 else lambda one: (getattr(one, names[0]),)


@cache
def row_to(record: type[Record]) -> Callable[[Sequence[Any]], Record]:
    """Return a function that makes a record from a row of :func:`columns_of`.

    Fields with another type than their column's values are marked by
    :func:`freshet.storage.entries.stored`.
    """
    return _record_reader(record, 0, optional=False)[0]


def _record_reader(
    kind: type[DataclassInstance], first: int, *, optional: bool
) -> tuple[_Reader, int]:
    """Return a reader of a record from a row's columns from ``first`` on, and their end."""
    readers: list[_Reader] = []
    end = first
    for each in fields(kind):
        inner: type[Any] | None = each.metadata.get("stored")
        if is_dataclass(inner):
            read, end = _record_reader(inner, end, optional=each.metadata["optional"])
            readers.append(read)
        else:
            readers.append(partial(_read_flag, end) if inner is bool else itemgetter(end))
            end += 1

    def made(row: Sequence[Any]) -> Any:
        return kind(*[read(row) for read in readers])

    def made_or_none(row: Sequence[Any]) -> Any:
        return None if readers[0](row) is None else made(row)

    return made_or_none if optional else made, end


def _read_flag(place: int, row: Sequence[Any]) -> bool | None:
    value = row[place]
    return None if value is None else bool(value)


async def pieces(
    connection: aiosqlite.Connection, sql: str, values: Values = ()
) -> AsyncIterator[list[tuple[Any, ...]]]:
    """Yield the rows of a query, some thousand at a time."""
    async with connection.execute(sql, values) as cursor:
        cursor.row_factory = None
        while rows := list(await cursor.fetchmany(_ROWS_COLUMNS)):
            yield rows  # type: ignore[misc]  # without a row factory, rows are tuples


async def table_of(
    connection: aiosqlite.Connection, sql: str, row: DTypeLike, values: Values = ()
) -> NDArray[np.void]:
    """Return all rows of a query as a structured array."""
    import numpy as np  # noqa: PLC0415 - slow to import

    parts = [np.fromiter(rows, row) async for rows in pieces(connection, sql, values)]
    return np.concatenate([np.empty(0, row), *parts])


async def load_columns(
    connection: aiosqlite.Connection, record: type[Record], sql: str, values: Values = ()
) -> Record:
    """Return the rows of ``sql``, which selects :func:`columns_of` the record, as columns.

    The fields of the record are arrays, or lists of texts.
    """
    return as_columns(record, await table_of(connection, sql, row_of(record), values))


def as_columns(record: type[Record], table: NDArray[np.void]) -> Record:
    """Return the columns of a table as a record of arrays and lists."""
    # Copies: contiguous columns are faster to search.
    columns = {
        name: table[name].tolist() if table.dtype[name].hasobject else table[name].copy()
        for name in table.dtype.names or ()
    }
    return record(**columns)


@cache
def row_of(record: type[DataclassInstance]) -> DTypeLike:
    """Return the numpy type of a row with a column for each field of a record.

    The field's metadata has the type: see :func:`freshet.storage.entries.stored`.
    """
    return [(each.name, each.metadata["stored"]) for each in fields(record)]
