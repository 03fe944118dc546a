"""What an archive holds already: the record that later answers of a URL may refer to.

It stands in an SQLite file inside the archive, so that a crawl refers to what the one before it
wrote, at a bounded memory. It is an index of the WARC files and never ahead of them: what it lacks
is written in full once more. Its lock keeps an archive to one writer.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from freshet.crawler.archiving.warc import Original
from freshet.storage.records import Validators

log = logging.getLogger(__name__)

#: The file, inside the archive.
NAME: Final = "revisits.db"
_VERSION: Final = 1
_SCHEMA: Final = f"""
CREATE TABLE file (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, bytes INTEGER NOT NULL);
CREATE TABLE original (
    url TEXT PRIMARY KEY, record_id TEXT NOT NULL, date TEXT NOT NULL, digest TEXT NOT NULL,
    etag TEXT, last_modified TEXT, file_id INTEGER NOT NULL
) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
"""


class ArchiveInUse(Exception):
    """Another process writes this archive."""


class Originals:
    """The originals of one archive, by URL. Changes count from :meth:`commit` on.

    Raises:
        ArchiveInUse: on opening, if another process has it open.
        sqlite3.Error: if the file cannot be read or written.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / NAME
        try:
            self._connection = _opened(path)
        except sqlite3.OperationalError as error:
            if _name(error).startswith("SQLITE_BUSY"):
                raise ArchiveInUse from error
            raise
        except sqlite3.DatabaseError as error:
            log.warning("%s: %s; begun anew, so pages are kept in full once more", path, error)
            for each in (path, *(Path(f"{path}-{end}") for end in ("wal", "shm"))):
                each.unlink(missing_ok=True)
            self._connection = _opened(path)

    def sizes(self) -> Mapping[str, int]:
        """How much of each file had been written at the last commit, bytes by name."""
        return dict(self._connection.execute("SELECT name, bytes FROM file"))

    def keep(self, names: Collection[str]) -> None:
        """Forget what stands in other files than these: those have gone, or were damaged."""
        gone = [(name,) for name in self.sizes() if name not in names]
        self._connection.executemany(
            "DELETE FROM original WHERE file_id = (SELECT id FROM file WHERE name = ?)", gone
        )
        self._connection.executemany("DELETE FROM file WHERE name = ?", gone)
        self.commit()

    def of(self, url: str) -> Original | None:
        """The original of a URL."""
        row = self._connection.execute(
            "SELECT record_id, date, digest, etag, last_modified FROM original WHERE url = ?",
            (url,),
        ).fetchone()
        if row is None:
            return None
        record_id, date, payload_digest, etag, last_modified = row
        return Original(record_id, date, payload_digest, Validators(etag, last_modified))

    def remember(self, url: str, original: Original, file: str) -> None:
        """From now on this is the original, which stands in ``file`` unless it was one before."""
        known = original.validators
        self._connection.execute(
            "INSERT INTO original VALUES (?1, ?2, ?3, ?4, ?5, ?6, "
            "(SELECT id FROM file WHERE name = ?7)) ON CONFLICT (url) DO UPDATE SET "
            "file_id = iif(record_id = excluded.record_id, file_id, excluded.file_id), "
            "record_id = excluded.record_id, date = excluded.date, digest = excluded.digest, "
            "etag = excluded.etag, last_modified = excluded.last_modified",
            (
                url, original.record_id, original.date, original.payload_digest,
                known.etag, known.last_modified, file,
            ),
        )  # fmt: skip

    def grown(self, file: str, size: int) -> None:
        """The file has this many bytes."""
        self._connection.execute(
            "INSERT INTO file (name, bytes) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes",
            (file, size),
        )

    def commit(self) -> None:
        """Keep all changes."""
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN IMMEDIATE")

    def rollback(self) -> None:
        """Forget all changes since the last commit."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._connection.execute("BEGIN IMMEDIATE")

    def close(self) -> None:
        """Let go of the file; what was not committed is forgotten."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._connection.close()


def _opened(path: Path) -> sqlite3.Connection:
    # One thread at a time uses it, but not the one that opens it.
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        # A lost commit costs a payload that is written twice, nothing else.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            connection.execute("COMMIT")
            connection.executescript(
                f"DROP TABLE IF EXISTS file; DROP TABLE IF EXISTS original;{_SCHEMA}"
            )
            connection.execute("BEGIN IMMEDIATE")
    except BaseException:
        connection.close()
        raise
    return connection


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "")
