"""Copying a whole store, also one that is being written, to where it appears whole or not at all.

The copy is what one read transaction sees: all that was acknowledged before it began, and
nothing that came later. In WAL mode that holds no writer up, and since the transaction lasts
from the first page to the last, no commit makes SQLite begin again; only the write-ahead log
cannot be taken in meanwhile, and grows by what is written.

Pages go into a file beside the target, which is checked, synced and only then renamed: whatever
ends the process leaves the target as it was. The copy is a single file in rollback mode, so that
it can be read where nothing may be written; the store's path stands nowhere in it.

Synchronous, and for the main thread: Ctrl-C is heeded between two steps.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from freshet.storage.database import APPLICATION_ID, held, owner_of, refuse_foreign
from freshet.storage.errors import StoreError, StoreUnavailable, sqlite_errors, store_errors
from freshet.storage.migrations import newest

#: Told what is being done, and the share of it that is done.
Progress: TypeAlias = Callable[[str, float], None]

#: Pages of one step: some milliseconds of copying.
_STEP_PAGES: Final = 1_024
_BUSY_TIMEOUT_S: Final = 10.0
#: Room that is left free beside a copy.
_SPARE_BYTES: Final = 16 * 1024 * 1024
#: Steps of SQLite's machine between two looks at whether to stop.
_STEPS_A_LOOK: Final = 100_000
#: What SQLite keeps beside a file that it has open.
_BESIDE: Final = ("-wal", "-shm", "-journal")
#: What says that it is the copy that could not be written.
_WRITING: Final = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_READONLY")


@dataclass(frozen=True, slots=True)
class Copied:
    """A copy that was checked and is on the disk; ``newest_at`` is of its last observation."""

    path: Path
    size_bytes: int
    schema: int
    pages: int
    observations: int
    newest_at: float | None


def back_up(db: Path, target: Path, *, replace: bool, progress: Progress) -> Copied:
    """Copy a store, at rest or being written, to a file.

    Raises:
        StoreError: there is no store; the target is there and is not to be replaced, is the
            store itself or one that is being written; there is no room; the copy is not sound.
    """
    if (owner := owner_of(target)) is not None:
        raise StoreError(f"{target}: a freshet {owner[0]} (process {owner[1]}) is writing it")
    return _copy(db, target, replace=replace, progress=progress)


def restore(backup: Path, db: Path, *, replace: bool, progress: Progress) -> Copied:
    """Make a backup the store at ``db``, which nobody can write meanwhile.

    Raises:
        StoreError: as :func:`back_up`, and where ``db`` is being written.
    """
    with store_errors(db), closing(held(db, "restore")):
        return _copy(backup, db, replace=replace, progress=progress)


def _copy(source: Path, target: Path, *, replace: bool, progress: Progress) -> Copied:
    if not source.exists():
        raise StoreError(f"{source}: there is no such file")
    refuse_foreign(source)
    _require_target(source, target, replace=replace)
    with store_errors(target), _Partial(target) as partial:
        partial.permit(source.stat().st_mode)
        with closing(_opened(source, source, "ro")) as old:
            schema = _schema(source, old)
            _require_room(target, _bytes_of(old))
            with closing(_opened(partial.path, target, "rw")) as new:
                _fill(old, new, source, target, progress)
        copied = _checked(partial.path, target, schema, progress)
        _require_target(source, target, replace=replace)
        partial.take_place(target)
    return copied


def _require_target(source: Path, target: Path, *, replace: bool) -> None:
    """Refuse a target that is the store or its company, or is there and is not to be replaced."""
    if target.exists() and target.samefile(source):
        raise StoreError(f"{target}: it is the store itself")
    company = {source.resolve().name + ending for ending in (*_BESIDE, ".lock")}
    if target.resolve().parent == source.resolve().parent and target.name in company:
        raise StoreError(f"{target}: the store has a file of its own there")
    if target.is_dir():
        raise StoreError(f"{target}: it is a folder, not a file")
    if not target.parent.is_dir():
        raise StoreError(f"{target}: there is no folder {target.parent}")
    for ending in ("", *_BESIDE):
        file = target.with_name(target.name + ending)
        if not replace and file.exists():
            raise StoreError(f"{file}: it is there already; --force replaces it")


class _Partial:
    """A new empty file beside the target, to be renamed; gone in the end if it was not.

    Its name is always the same, and a lock is on it: what a killed process left is used again.
    """

    __slots__ = ("_handle", "path")

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(f".{target.name}.partial")
        # No symbolic link is followed: others may write into the folder, too.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._handle = os.open(self.path, flags, 0o600)

    def __enter__(self) -> _Partial:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._handle)
            raise StoreError(f"{self.path}: another freshet is writing it") from None
        os.ftruncate(self._handle, 0)
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
        """Be the target, for good, with the permissions that the owner gave to the store."""
        os.fsync(self._handle)
        for ending in _BESIDE:
            # A log of the file that is replaced would be taken for one of this one.
            target.with_name(target.name + ending).unlink(missing_ok=True)
        self.path.replace(target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def permit(self, mode: int) -> None:
        """Let as many read it as may read the original."""
        os.fchmod(self._handle, mode & 0o777)


def _opened(path: Path, blamed: Path, mode: str) -> sqlite3.Connection:
    with sqlite_errors(blamed):
        return sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True, isolation_level=None, timeout=_BUSY_TIMEOUT_S,
        )  # fmt: skip


def _schema(path: Path, connection: sqlite3.Connection) -> int:
    """The schema's number, as of a read transaction that begins here and stays open."""
    with sqlite_errors(path):
        connection.execute("BEGIN")
        version = _pragma(connection, "user_version")
        application = _pragma(connection, "application_id")
    if application != APPLICATION_ID or not version:
        raise StoreError(f"{path}: it is not a Freshet store")
    if version > newest():
        raise StoreError(
            f"{path}: its schema {version} is newer than the {newest()} this Freshet knows; "
            "upgrade Freshet"
        )
    return version


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _bytes_of(connection: sqlite3.Connection) -> int:
    return _pragma(connection, "page_count") * _pragma(connection, "page_size")


def _require_room(target: Path, size_bytes: int) -> None:
    free = shutil.disk_usage(target.parent).free
    if free < size_bytes + _SPARE_BYTES:
        raise StoreUnavailable(
            target,
            f"the disk has {free / 1e6:,.0f} MB free, and the copy takes {size_bytes / 1e6:,.0f}",
        )


def _fill(
    old: sqlite3.Connection,
    new: sqlite3.Connection,
    source: Path,
    target: Path,
    progress: Progress,
) -> None:
    """Copy page by page within the open read transaction, into one file without a log."""

    def told(_: int, remaining: int, total: int) -> None:
        progress("copying", 1 - remaining / max(1, total))

    try:
        # What would be lost in a crash of the machine is a file that was not renamed yet.
        new.execute("PRAGMA synchronous = OFF")
        new.execute("PRAGMA journal_mode = OFF")
        old.backup(new, pages=_STEP_PAGES, progress=told)
        new.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        with sqlite_errors(target if name.startswith(_WRITING) else source):
            raise


def _checked(whole: Path, target: Path, schema: int, progress: Progress) -> Copied:
    """What is in the copy, once SQLite has read all of it and found it sound."""
    progress("checking", 0.0)
    with sqlite_errors(target), closing(_opened(whole, target, "ro")) as copy:
        if _schema(target, copy) != schema:
            raise StoreError(f"{target}: the copy has another schema than the store")
        if problems := _problems(copy):
            raise StoreError(f"{target}: not made: what was copied is damaged: {problems[0]}")
        pages, observations, newest_at = copy.execute(
            "SELECT (SELECT count(*) FROM page WHERE role = 'page'), count(*), max(at) "
            "FROM observation"
        ).fetchone()
        return Copied(target, _bytes_of(copy), schema, pages, observations, newest_at)


def _problems(connection: sqlite3.Connection) -> list[str]:
    """What SQLite complains of."""
    # Back in Python from time to time, an interruption is noticed; SQLite then says that it was.
    connection.set_progress_handler(lambda: 0, _STEPS_A_LOOK)
    try:
        rows = connection.execute("PRAGMA quick_check").fetchall()
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
            raise KeyboardInterrupt from None
        raise
    return [" ".join(str(row[0]).split()) for row in rows if row[0] != "ok"]
