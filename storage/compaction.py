"""Giving free pages back to the file system.

SQLite writes the store anew into a temporary file and from there back, through the write-ahead log:
for a moment three of them are on the disk. Killed at any time, the store is as it was.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from freshet.storage.database import Database
from freshet.storage.errors import StoreError, store_errors

#: Beside what is known to be needed.
_SPARE_BYTES = 16 * 1024 * 1024
#: Where SQLite looks for a place for temporary files, after the environment.
_TEMPORARY = ("/var/tmp", "/usr/tmp", "/tmp", ".")  # noqa: S108 - SQLite's choice


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes of a store's file, and those of its pages that hold nothing."""

    size_bytes: int
    free_bytes: int


async def space(database: Database) -> Space:
    """How much of a store holds nothing."""
    with store_errors(database.path):
        sizes = []
        for name in ("page_size", "page_count", "freelist_count"):
            rows = await database.writer.execute_fetchall(f"PRAGMA {name}")
            sizes.append(int(next(iter(rows))[0]))
    page, pages, free = sizes
    return Space(page * pages, page * free)


async def compact(database: Database) -> None:
    """Write a store anew without its free pages.

    Raises:
        StoreError: the disk has no room for that, or another program reads the store.
    """
    found = await space(database)
    needed = found.size_bytes - found.free_bytes + _SPARE_BYTES
    temporary = _temporary()
    is_one = database.path.absolute().parent.stat().st_dev == temporary.stat().st_dev
    _require_room_to_compact(database.path, database.path.absolute().parent, needed * (1 + is_one))
    if not is_one:
        _require_room_to_compact(database.path, temporary, needed)
    with store_errors(database.path):
        await database.writer.execute("VACUUM")
        await database.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _temporary() -> Path:
    """The folder in which SQLite makes its temporary file."""
    named = (os.environ.get(name) for name in ("SQLITE_TMPDIR", "TMPDIR"))
    for each in (*named, *_TEMPORARY):
        if each and Path(each).is_dir() and os.access(each, os.W_OK | os.X_OK):
            return Path(each)
    return Path()


def _require_room_to_compact(path: Path, folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise StoreError(
            f"{path}: to give space back, {needed / 1e6:,.0f} MB must be free in {folder}, and "
            f"{free / 1e6:,.0f} are; what was thrown away leaves room for what comes"
        )
