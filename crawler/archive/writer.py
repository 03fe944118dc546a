"""Writes an archive: entries in, WARC files out, on a separate thread.

*Invariant.* When :meth:`ArchiveWriter.flush` returns, all entries are on the disk, in whole
records. Consequence: a store that commits a visit afterwards never has one that the archive lacks.
"""

import asyncio
import errno
import json
import logging
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from freshet.crawler.archive.warc import (
    Fields,
    OriginalRecord,
    WarcOutput,
    WireExchange,
    finish_what_was_left,
    member,
    records,
    warcinfo,
)
from freshet.crawler.errors import ArchiveInUse, ArchiveUnwritable
from freshet.crawler.fetch.client import Accept, Fetcher, Request
from freshet.storage.connection import StoreConnection
from freshet.storage.records import DueUrl, FetchResult, Observation, Validators

# -- originals ---------------------------------------------------------------
# An SQLite file inside the archive holds the records that later answers of a URL may refer to.
# It is never ahead of the WARC files; a lost entry costs a second full record. Its lock keeps
# an archive to one writer.
log = logging.getLogger(__name__)

#: The file, inside the archive.
NAME: Final = "revisits.db"
_VERSION: Final = 2
_SCHEMA: Final = f"""
CREATE TABLE file (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, bytes INTEGER NOT NULL);
CREATE TABLE original (
    url TEXT PRIMARY KEY, record_id TEXT NOT NULL, date TEXT NOT NULL, digest TEXT NOT NULL,
    etag TEXT, last_modified TEXT, file_id INTEGER NOT NULL, asked_at REAL
) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
"""


class Originals:
    """The originals of one archive, by URL. Changes count from :meth:`commit` on.

    Raises:
        ArchiveInUse: on opening, if another process has it open.
        sqlite3.Error: the file cannot be read or written.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / NAME
        try:
            self._connection = _opened(path)
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
                raise ArchiveInUse from error
            raise
        except sqlite3.DatabaseError as error:
            log.warning("%s: %s; started anew, so pages are archived in full again", path, error)
            for each in (path, *(Path(f"{path}-{end}") for end in ("wal", "shm"))):
                each.unlink(missing_ok=True)
            self._connection = _opened(path)

    def sizes(self) -> Mapping[str, int]:
        """Return the written bytes of each file at the last commit, by name."""
        return dict(self._connection.execute("SELECT name, bytes FROM file"))

    def keep(self, names: Collection[str]) -> None:
        """Forget the originals of all other files, which were deleted or damaged."""
        gone = [(name,) for name in self.sizes() if name not in names]
        self._connection.executemany(
            "DELETE FROM original WHERE file_id = (SELECT id FROM file WHERE name = ?)", gone
        )
        self._connection.executemany("DELETE FROM file WHERE name = ?", gone)
        self.commit()

    def of(self, url: str) -> OriginalRecord | None:
        """Return the original of a URL."""
        row = self._connection.execute(
            "SELECT record_id, date, digest, etag, last_modified FROM original WHERE url = ?",
            (url,),
        ).fetchone()
        if row is None:
            return None
        record_id, date, payload_digest, etag, last_modified = row
        return OriginalRecord(record_id, date, payload_digest, Validators(etag, last_modified))

    def remember(self, url: str, original: OriginalRecord, file: str) -> None:
        """Set the original of a URL; a new one is in ``file``."""
        known = original.validators
        self._connection.execute(
            "INSERT INTO original VALUES (?, ?, ?, ?, ?, ?, "
            "(SELECT id FROM file WHERE name = ?), NULL) ON CONFLICT (url) DO UPDATE SET "
            "file_id = iif(record_id = excluded.record_id, file_id, excluded.file_id), "
            "record_id = excluded.record_id, date = excluded.date, digest = excluded.digest, "
            "etag = excluded.etag, last_modified = excluded.last_modified",
            (
                url, original.record_id, original.date, original.payload_digest,
                known.etag, known.last_modified, file,
            ),
        )  # fmt: skip

    def asked(self, urls: Collection[str]) -> dict[str, tuple[float, Validators]]:
        """Return when URLs were last asked for as requisites, and what names their versions."""
        rows = self._connection.execute(
            "SELECT url, asked_at, etag, last_modified FROM original "
            "WHERE asked_at IS NOT NULL AND url IN (SELECT value FROM json_each(?))",
            (json.dumps(list(urls)),),
        )
        return {url: (at, Validators(*names)) for url, at, *names in rows}

    def ask(self, url: str, at: float) -> None:
        """Note that a requisite was asked for."""
        self._connection.execute("UPDATE original SET asked_at = ? WHERE url = ?", (at, url))

    def grown(self, file: str, size: int) -> None:
        """Note the size of the file."""
        self._connection.execute(
            "INSERT INTO file (name, bytes) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes",
            (file, size),
        )

    def commit(self) -> None:
        """Commit all changes."""
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN IMMEDIATE")

    def rollback(self) -> None:
        """Discard all changes since the last commit."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._connection.execute("BEGIN IMMEDIATE")

    def close(self) -> None:
        """Close the file; uncommitted changes are lost."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._connection.close()


def _opened(path: Path) -> sqlite3.Connection:
    # One thread at a time uses it, but not the one that opens it.
    connection = sqlite3.connect(
        path, timeout=0, isolation_level=None, check_same_thread=False, factory=StoreConnection
    )
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        # A lost commit only costs a payload that is written twice.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 1:
            connection.execute("ALTER TABLE original ADD COLUMN asked_at REAL")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        elif version != _VERSION:
            connection.execute("COMMIT")
            connection.executescript(
                f"DROP TABLE IF EXISTS file; DROP TABLE IF EXISTS original;{_SCHEMA}"
            )
            connection.execute("BEGIN IMMEDIATE")
    except BaseException:
        connection.close()
        raise
    return connection


#: Outcomes after which a requisite is in the archive.
_HAD: Final = frozenset({"fetched", "not_modified"})
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class ArchiveWriter:
    """A writer that keeps entries until they are flushed.

    A file that has ``max_file_bytes`` or more is followed by another. ``fields`` describe the
    writer, ``now`` returns Unix seconds.

    Raises:
        ArchiveInUse: on opening, if another process writes it.
        OSError, sqlite3.Error: on opening, if the folder cannot be made or written.
    """

    def __init__(
        self, folder: Path, fields: Fields, *, max_file_bytes: int, now: Callable[[], float]
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._fields = fields
        self._max_file_bytes = max_file_bytes
        self._now = now
        self._pending: deque[WireExchange] = deque()
        self._output: WarcOutput | None = None
        self._described: Fields | None = None
        self._originals = recovered(folder)
        # One thread: entries are written in their order.
        self._thread = ThreadPoolExecutor(1, "archive")

    def add(self, entry: WireExchange) -> None:
        """Keep an entry for the next flush."""
        self._pending.append(entry)

    def unasked(self, due: DueUrl, observation: Observation, accept: Accept = "page") -> None:
        """Keep a URL that was not requested, with the reason, for the next flush."""
        result = FetchResult(
            due.fetch_url,
            "failed" if observation.kind == "failed" else "refused",
            observation.at,
            duration_s=0.0,
            reason=observation.reason or "",
            detail=observation.detail or "",
        )
        self.add(WireExchange(Request(due.fetch_url, accept), result, is_asked=False))

    def describe(self, fields: Fields) -> None:
        """Set the description of the files that follow."""
        self._fields = fields

    async def asked(self, urls: Collection[str]) -> Mapping[str, tuple[float, Validators]]:
        """Work as :meth:`Originals.asked`, on flushed entries."""
        ask = partial(self._originals.asked, urls)
        return await asyncio.get_running_loop().run_in_executor(self._thread, ask)

    def keeping(self, fetcher: Fetcher) -> Fetcher:
        """Return a fetcher that adds its exchanges as they end."""
        return _ArchivingFetcher(fetcher, self.add)

    async def flush(self) -> None:
        """Write all added entries to the disk.

        Raises:
            ArchiveUnwritable: the disk is full or fails; the entries are kept.
        """
        if self._pending:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._write_pending)

    async def close(self) -> None:
        """Flush, give the last file its name, and let others write the archive."""
        try:
            await self.flush()
        finally:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
            self._thread.shutdown()

    # -- in the thread -------------------------------------------------------------

    def _write_pending(self) -> None:
        count = len(self._pending)
        output, size = self._output, self._output.size if self._output else 0
        try:
            self._write(count)
        except (OSError, sqlite3.Error) as error:
            self._take_back(output, size)
            raise ArchiveUnwritable(self._folder, _why(error)) from error
        for _ in range(count):
            self._pending.popleft()

    def _write(self, count: int) -> None:
        if self._output is not None and self._output.size >= self._max_file_bytes:
            full, self._output = self._output, None
            full.close()
        if self._output is None:
            self._output, self._described = WarcOutput(self._folder, self._now()), None
        output = self._output
        self._originals.grown(output.name, output.size)
        if self._described is not self._fields:
            self._described = self._fields
            output.append(member(warcinfo(_new_id(), self._now(), output.name, self._described)))
        for entry in islice(self._pending.copy(), count):
            original = self._originals.of(entry.result.url)
            written, remembered = records(entry, original, _new_id)
            output.append(b"".join(map(member, written)))
            if remembered is not None and remembered != original:
                self._originals.remember(entry.result.url, remembered, output.name)
            if entry.request.accept == "requisite" and entry.result.outcome in _HAD:
                self._originals.ask(entry.result.url, entry.result.ended_at)
        output.sync()
        self._originals.grown(output.name, output.size)
        self._originals.commit()

    def _take_back(self, output: WarcOutput | None, size: int) -> None:
        """Restore the state before the failed flush."""
        self._originals.rollback()
        self._described = None
        if self._output is not None:
            self._output.cut(size if self._output is output else 0)

    def _close(self) -> None:
        try:
            if self._output is not None:
                self._output.close()
        finally:
            self._originals.close()


def recovered(folder: Path) -> Originals:
    """Open the originals, reconciled with the files that exist now."""
    originals = Originals(folder)
    try:
        sizes = originals.sizes()
        finish_what_was_left(folder, sizes)
        originals.keep({name for name, size in sizes.items() if _size(folder / name) >= size})
    except BaseException:
        originals.close()
        raise
    return originals


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


def _new_id() -> str:
    """Return the id of a record, a random UUID (RFC 9562, version 4).

    The class of the standard library takes five times as long.
    """
    text = os.urandom(16).hex()
    variant = "89ab"[int(text[16], 16) & 3]
    return f"<urn:uuid:{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}>"


def _why(error: OSError | sqlite3.Error) -> str:
    is_full = getattr(error, "errno", None) in _FULL or "full" in str(error)
    return "the disk is full" if is_full else f"the disk failed ({error})"


# -- fetcher -----------------------------------------------------------------
class _ArchivingFetcher:
    """A fetcher around another one, which passes exchanges to ``keep`` as they end."""

    def __init__(self, fetcher: Fetcher, keep: Callable[[WireExchange], None]) -> None:
        self._fetcher = fetcher
        self._keep = keep

    async def fetch(self, request: Request) -> FetchResult:
        """Make the request and archive it; a cancelled exchange is not kept."""
        result = await self._fetcher.fetch(request)
        self._keep(WireExchange(request, result))
        return result
