"""Copies of a whole store, and their way back.

A copy is one read transaction: all that was acknowledged before it began, and nothing later. In WAL
mode it does not block the writer; only the write-ahead log grows meanwhile. Pages go into a file
beside the target, which is checked, synced and only then renamed: a kill leaves the target as it
was. The copy is one file in rollback mode, readable on a read-only disk. Synchronous, for the main
thread: Ctrl-C works between two steps.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from dataclasses import replace as replaced
from pathlib import Path
from typing import Final, TypeAlias

from freshet.storage.connection import StoreConnection
from freshet.storage.database import (
    SHARDS_FILE,
    held,
    owner_of,
    schema_of,
    sqlite_errors,
    store_errors,
    sync,
    write_beside,
)
from freshet.storage.entries import summed
from freshet.storage.errors import StoreError, StoreUnavailable
from freshet.storage.maintenance import PAGE_COUNT, SPARE_BYTES, pragma
from freshet.storage.stores import is_folder, open_stores, shards_of
from freshet.storage.tables import changefeed
from freshet.storage.tables.pages import FOREIGN

#: Called with the step and the share of it that is done.
Progress: TypeAlias = Callable[[str, float], None]

#: Pages of one step: some milliseconds of copying.
_STEP_PAGES: Final = 1_024
_BUSY_TIMEOUT_S: Final = 10.0
#: Steps of SQLite's machine between two checks for an interruption.
_STEPS_A_CHECK: Final = 100_000
#: Endings of the files that SQLite keeps beside an open one.
_BESIDE: Final = ("-wal", "-shm", "-journal")
#: Errors that concern the copy, not the store.
_WRITING: Final = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_READONLY")


@dataclass(frozen=True, slots=True)
class BackupCopy:
    """A checked copy on the disk; ``newest_at`` is the time of its last observation."""

    path: Path
    size_bytes: int
    schema: int
    pages: int
    observations: int
    newest_at: float | None


def back_up(
    db: Path,
    target: Path,
    *,
    replace: bool,
    progress: Progress,
    mark: Callable[[sqlite3.Connection], object] = changefeed.begin_epoch,
) -> BackupCopy:
    """Copy a store to a file; another process may be writing the store. ``mark`` marks the copy.

    Raises:
        StoreError: the store does not exist; the target exists and ``replace`` is False, is the
            store itself or is being written; the disk has no room; the copy is damaged.
    """
    if is_folder(db):
        return _copy_shards(db, target, replace=replace, restores=False, progress=progress)
    if not db.exists():
        raise StoreError(f"{db}: there is no such file; --db names the store")
    if (owner := owner_of(target)) is not None:
        who = f"a freshet {owner.name} (process {owner.process})"
        raise StoreError(f"{target}: {who} is writing it; end that first")
    return _copy(db, target, replace=replace, progress=progress, mark=mark)


def restore(backup: Path, db: Path, *, replace: bool, progress: Progress) -> BackupCopy:
    """Make a backup the store at ``db``, locked meanwhile. Raises StoreError as :func:`back_up`."""
    if is_folder(backup):
        return _copy_shards(backup, db, replace=replace, restores=True, progress=progress)
    with store_errors(db), closing(held(db, "restore")):
        if not is_folder(db.parent):
            return _copy(backup, db, replace=replace, progress=progress)
        for shard in open_stores(db.parent).paths:
            if shard.exists() and shard.name != db.name:
                write_beside(shard, lambda other: other.execute(_TELL_ALL))
        return _copy(backup, db, _TELL_ALL, replace=replace, progress=progress)


# *A folder* has been copied when it has ``shards.toml``. Its copies are of different moments: a
# page that one shard told another between them waits in neither. So a shard that is restored tells
# its pages of other shards again, and is told theirs: what is known there stays as it is.

_TELL_ALL: Final = (
    f"INSERT OR IGNORE INTO outgoing (page_id) SELECT id FROM page WHERE held_back = '{FOREIGN}'"
)
#: The folder of copies that are not in their places yet; locked.
PARTIAL: Final = ".partial"


def _shards_there(source: Path, target: Path, *, replace: bool) -> Sequence[Path]:
    """Return the shards in a folder that a copy replaces.

    Raises:
        StoreError: nothing may be written there.
    """
    if target.exists() and not target.is_dir():
        raise StoreError(f"{target}: it is a file; name a folder, for a store with shards")
    if target.exists() and target.samefile(source):
        raise StoreError(f"{target}: it is the store itself; name another file")
    there = sorted(target.glob("[0-9][0-9][0-9][0-9].db"))
    if not replace and (there or is_folder(target)):
        raise StoreError(f"{target}: it is there already; --force replaces it")
    return there


def _put_in_place(copies: Sequence[BackupCopy], target: Path, instead_of: Sequence[Path]) -> None:
    """Replace the shards of a folder, which tells of none until that is done."""
    (target / SHARDS_FILE).unlink(missing_ok=True)
    for path in instead_of:
        for ending in ("", *_BESIDE):
            path.with_name(path.name + ending).unlink(missing_ok=True)
    for copy in copies:
        copy.path.replace(target / copy.path.name)
    sync(target)


def _copy_shards(
    source: Path, target: Path, *, replace: bool, restores: bool, progress: Progress
) -> BackupCopy:
    """Copy and check all shards of a folder before the first of another folder is replaced."""
    shards = shards_of(source)
    shards.require_settled()
    whose, deed = ("restore", _TELL_ALL) if restores else ("backup", "")
    there = _shards_there(source, target, replace=replace)
    with ExitStack() as stack, store_errors(target):
        is_new = not target.exists()
        target.mkdir(exist_ok=True)
        if is_new:
            stack.callback(_remove_empty, target)
        for path in there:
            stack.enter_context(closing(held(path, whose)))
        partial = target / PARTIAL
        partial.mkdir(exist_ok=True)
        stack.enter_context(closing(held(partial / "all", whose)))
        stack.callback(shutil.rmtree, partial, ignore_errors=True)
        copies = [
            _copy(path, partial / path.name, deed, replace=True, progress=progress)
            for path in shards.paths()
        ]
        _put_in_place(copies, target, instead_of=there)
        replaced(shards, folder=target).write()
        sync(target / SHARDS_FILE)
        sync(target)
    newest = [copy.newest_at for copy in copies if copy.newest_at is not None]
    return summed(copies, path=target, schema=copies[0].schema, newest_at=max(newest, default=None))


def _remove_empty(folder: Path) -> None:
    # It would be taken for a folder of backups.
    with suppress(OSError):
        folder.rmdir()


def _copy(
    source: Path,
    target: Path,
    deed: str = "",
    *,
    replace: bool,
    progress: Progress,
    mark: Callable[[sqlite3.Connection], object] = changefeed.begin_epoch,
) -> BackupCopy:
    """Copy a store; ``deed`` is done in the copy."""
    if not source.exists():
        raise StoreError(f"{source}: there is no such file; name a backup")
    if source.is_dir():
        raise StoreError(
            f"{source}: it is a folder without {SHARDS_FILE}; name a store or a backup"
        )
    _require_target(source, target, replace=replace)
    with store_errors(target), _Partial(target, source.stat().st_mode) as partial:
        with sqlite_errors(source), closing(_opened(source, source, "ro")) as old:
            schema = _schema(source, old)
            free, needed = shutil.disk_usage(target.parent).free, _bytes_of(old)
            if free < needed + SPARE_BYTES:
                why = f"the disk has {free / 1e6:,.0f} MB free, and the copy takes"
                raise StoreUnavailable(target, f"{why} {needed / 1e6:,.0f}", "free some space")
            with closing(_opened(partial.path, target, "rw")) as new:
                _fill(old, new, source, target, progress)
                mark(new)
                new.execute(deed)
        copied = _checked(partial.path, target, schema, progress)
        _require_target(source, target, replace=replace)
        partial.take_place(target)
    return copied


def _require_target(source: Path, target: Path, *, replace: bool) -> None:
    """Refuse a target that is a file of the store, or that exists unless ``replace``."""
    if target.exists() and target.samefile(source):
        raise StoreError(f"{target}: it is the store itself; name another file")
    company = {os.path.realpath(source) + ending for ending in (*_BESIDE, ".lock")}
    if os.path.realpath(target) in company:
        raise StoreError(f"{target}: the store has a file of its own there; name another")
    if target.exists() and not target.is_file():
        raise StoreError(f"{target}: it is a folder or a device; name a file")
    if not target.parent.is_dir():
        raise StoreError(f"{target}: there is no folder {target.parent}; make it, or name another")
    if not replace:
        _require_free(target)


def _require_free(target: Path) -> None:
    for ending in ("", *_BESIDE):
        file = target.with_name(target.name + ending)
        if file.exists():
            raise StoreError(f"{file}: it is there already; --force replaces it")


class _Partial:
    """A new empty file beside the target, to be renamed; deleted in the end if it was not.

    Its name is always the same and it is locked: a killed process's file is used again. ``mode``
    has its permissions, which are the original's.
    """

    __slots__ = ("_handle", "_mode", "path")

    def __init__(self, target: Path, mode: int) -> None:
        self.path = target.with_name(f".{target.name}.partial")
        self._mode = mode & 0o777
        # O_NOFOLLOW: others may write into the folder, too.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._handle = os.open(self.path, flags, 0o600)

    def __enter__(self) -> _Partial:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._handle)
            raise StoreError(
                f"{self.path}: another freshet is writing it; end that first"
            ) from None
        os.ftruncate(self._handle, 0)
        os.fchmod(self._handle, self._mode)
        return self

    def __exit__(self, *_: object) -> None:
        # Once it has been renamed, the name is no longer this file's.
        with suppress(FileNotFoundError):
            if os.path.samestat(self.path.stat(), os.fstat(self._handle)):
                self.path.unlink()
        for ending in _BESIDE:
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        os.close(self._handle)

    def take_place(self, target: Path) -> None:
        """Replace the target, durably."""
        os.fsync(self._handle)
        for ending in _BESIDE:
            # SQLite would apply the replaced file's log to the new one.
            target.with_name(target.name + ending).unlink(missing_ok=True)
        self.path.replace(target)
        sync(target.parent)


def _opened(path: Path, blamed: Path, mode: str) -> sqlite3.Connection:
    with sqlite_errors(blamed):
        return sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True, isolation_level=None, timeout=_BUSY_TIMEOUT_S, factory=StoreConnection,
        )  # fmt: skip


def _schema(path: Path, connection: sqlite3.Connection) -> int:
    """Begin a read transaction and return the number of the schema."""
    with sqlite_errors(path):
        connection.execute("BEGIN")
        return schema_of(path, connection)


def _bytes_of(connection: sqlite3.Connection) -> int:
    return pragma(connection, "page_count") * pragma(connection, "page_size")


def _fill(
    old: sqlite3.Connection, new: sqlite3.Connection, source: Path, target: Path, progress: Progress
) -> None:
    """Copy page by page within the open read transaction, into one file without a log."""

    def report(_: int, remaining: int, total: int) -> None:
        progress("copying", 1 - remaining / max(1, total))

    try:
        # A crash would lose only a file that was not renamed yet.
        new.execute("PRAGMA synchronous = OFF")
        new.execute("PRAGMA journal_mode = OFF")
        old.backup(new, pages=_STEP_PAGES, progress=report)
        new.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        with sqlite_errors(target if name.startswith(_WRITING) else source):
            raise


def _checked(whole: Path, target: Path, schema: int, progress: Progress) -> BackupCopy:
    """Check a whole copy and count its contents."""
    progress("checking", 0.0)
    with sqlite_errors(target), closing(_opened(whole, target, "ro")) as copy:
        if _schema(target, copy) != schema:
            raise StoreError(f"{target}: the copy has another schema than the store; run it again")
        if problems := _problems(copy):
            raise StoreError(
                f"{target}: not written, because the store is damaged: {problems[0]}; restore an "
                "older backup"
            )
        row = copy.execute(f"SELECT ({PAGE_COUNT}), count(*), max(at) FROM observation").fetchone()
        return BackupCopy(target, _bytes_of(copy), schema, *row)


def _problems(connection: sqlite3.Connection) -> list[str]:
    """Return SQLite's complaints about the file."""
    # Python sees an interruption only when SQLite calls back.
    connection.set_progress_handler(lambda: 0, _STEPS_A_CHECK)
    try:
        rows = connection.execute("PRAGMA quick_check").fetchall()
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
            raise KeyboardInterrupt from None
        raise
    return [" ".join(str(row[0]).split()) for row in rows if row[0] != "ok"]
