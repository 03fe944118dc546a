"""An index of archived exchanges by time: its tables, its construction and its queries."""

import json
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice, starmap
from pathlib import Path
from typing import Any, Final

from freshet.crawler.archive.exchanges import ExchangeGatherer, IndexEntry, key
from freshet.crawler.archive.inputs import ArchiveFile, listed_captures, located
from freshet.crawler.archive.records import Damage
from freshet.crawler.archive.scan import ScannedRecord, scan, scan_listed
from freshet.crawler.errors import CrawlError
from freshet.storage.connection import StoreConnection
from freshet.storage.errors import trouble

#: Ours, so that no other database is overwritten: "FrIx".
APPLICATION: Final = 0x46724978
#: Incremented with each change of the tables; an index of another version is built again.
VERSION: Final = 8

#: An exchange has its number, the columns of its entry, and the number of its original.
_COLUMNS: Final = IndexEntry._fields[:-3]
_TABLES: Final = f"""
CREATE TABLE source (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL, member TEXT, start INTEGER NOT NULL, size INTEGER,
    bytes INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
    listed INTEGER NOT NULL, finished INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE exchange (id INTEGER PRIMARY KEY, {", ".join(_COLUMNS)}, original INTEGER);
CREATE TABLE damage (
    source INTEGER NOT NULL, at INTEGER NOT NULL, reason TEXT NOT NULL, flaw TEXT NOT NULL
);
CREATE TABLE skipped (source INTEGER NOT NULL, kind TEXT NOT NULL, count INTEGER NOT NULL);
CREATE TABLE listed (
    file INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (file, at)
) WITHOUT ROWID;
"""

_INSERT: Final = f"INSERT INTO exchange VALUES (NULL{', ?' * len(_COLUMNS)}, NULL)"
#: Rows are inserted without an index. It is created last, so it also marks completeness.
_IN_TIME: Final = "CREATE INDEX exchange_in_time ON exchange (ended_at, source, offset, nth)"
_PROBES: Final = "CREATE INDEX probe ON exchange (url, ended_at) WHERE accept = 'probe'"
_IS_FINISHED: Final = "SELECT 1 FROM sqlite_schema WHERE name = 'exchange_in_time'"
#: Indexes that only revisits need, while they are resolved.
_LOOKUPS: Final = {
    "original_by_record": "record_key",
    "original_by_url": "url_key, started_at",
    "original_by_digest": "digest",
}
_FITS = """ifnull(o.digest = r.digest
    OR substr(o.digest, 1, instr(o.digest, ':')) <> substr(r.digest, 1, instr(r.digest, ':')), 1)"""
#: The record that a revisit names, the capture of its URL and time, or any of the same payload;
#: never one with a different digest of the same kind.
_RESOLVE: Final = f"""
UPDATE exchange AS r SET original = coalesce(
    (SELECT o.id FROM exchange o
        WHERE o.record_key = r.refers_record AND o.kind = 'response' AND {_FITS}
        ORDER BY o.id LIMIT 1),
    (SELECT id FROM (
        SELECT o.id AS id, abs(o.started_at - r.refers_started) AS gap FROM exchange o
        WHERE o.url_key = r.refers_url AND o.kind = 'response' AND {_FITS}
            AND o.started_at BETWEEN r.refers_started - 1 AND r.refers_started + 1)
        ORDER BY gap, id LIMIT 1),
    (SELECT o.id FROM exchange o
        WHERE o.digest = r.digest AND o.kind = 'response' ORDER BY o.id LIMIT 1))
WHERE r.kind = 'same'
"""
_UNRESOLVED: Final = """
INSERT INTO damage SELECT source, offset,
    'the original of this revisit is in none of the archives', 'unresolved_revisit'
FROM exchange WHERE kind = 'same' AND original IS NULL ORDER BY id
"""
_SELECT: Final = f"""
SELECT {", ".join(f"r.{name}" for name in _COLUMNS)}, o.source, o.offset, o.nth
FROM exchange r LEFT JOIN exchange o ON o.id = r.original WHERE """
#: A page of the order; a revisit without its original cannot be read. Requisites that Freshet
#: archived for display are not pages.
_READ: Final = f"""{_SELECT} r.kind <> 'info' AND (r.kind <> 'same' OR o.id IS NOT NULL)
AND r.accept IS NOT 'requisite'
AND (r.ended_at, r.source, r.offset, r.nth) > (?, ?, ?, ?)
ORDER BY r.ended_at, r.source, r.offset, r.nth LIMIT ?
"""
#: The next probe of a host: URLs from one up to, not including, another; and a time.
_NEXT_PROBE: Final = f"""{_SELECT} r.accept = 'probe' AND r.url >= ? AND r.url < ?
AND r.ended_at >= ? ORDER BY r.ended_at LIMIT 1
"""
_INFOS: Final = f"{_SELECT} r.kind = 'info' ORDER BY r.ended_at, r.source, r.offset, r.nth"
_COUNT: Final = """
SELECT count(*) FROM exchange WHERE kind <> 'info' AND (kind <> 'same' OR original IS NOT NULL)
AND accept IS NOT 'requisite'
"""
_SKIPPED: Final = """
SELECT kind, sum(count) AS n FROM skipped GROUP BY kind ORDER BY n DESC, kind
"""

_BATCH = 2_000
_PAGE = 500
#: What SQLite keeps of the index in memory.
_CACHE_KIB = 32 * 1024

#: Told of a file that is about to be read.
Progress = Callable[[str], None]


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Commit the block's changes together, or roll all of them back."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


class ArchiveIndex:
    """The index at a path, created if missing.

    One pass over each file writes a row for each exchange; reading is by time, ties by file and
    offset. The index is a SQLite file: an interrupted pass resumes with its file, and an unchanged
    finished file is not read again.

    Raises:
        CrawlError: the file is something else, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._db = sqlite3.connect(path, isolation_level=None, factory=StoreConnection)
        except sqlite3.Error as error:
            raise self._failed(error) from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            self.close()
            raise self._failed(error) from error
        except CrawlError:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @property
    def exchanges(self) -> int:
        """The number of readable exchanges."""
        return int(self._rows(_COUNT)[0][0])

    @property
    def sources(self) -> dict[int, ArchiveFile]:
        """The files, by their numbers."""
        rows = self._rows("SELECT id, path, member, start, size FROM source ORDER BY id")
        return {n: ArchiveFile(Path(path), *rest) for n, path, *rest in rows}

    def damages(self) -> Iterator[Damage]:
        """Yield the damages, by file and offset."""
        names = {number: file.name for number, file in self.sources.items()}
        query = "SELECT source, at, reason, flaw FROM damage ORDER BY source, at, rowid"
        for source, *damage in self._rows(query):
            yield Damage(names[source], *damage)

    def skipped(self) -> dict[str, int]:
        """Count the records that are not HTTP exchanges, by kind, most frequent first."""
        return dict(self._rows(_SKIPPED))

    def infos(self) -> list[IndexEntry]:
        """Return the warcinfo records, in the order of time."""
        return list(starmap(IndexEntry, self._rows(_INFOS)))

    def entries(self, since: float = -math.inf) -> Iterator[IndexEntry]:
        """Yield the exchanges that ended at a time or later, in order."""
        after: tuple[float, int, int, int] = (since, -1, -1, -1)
        while page := self._rows(_READ, (*after, _PAGE)):
            for entry in starmap(IndexEntry, page):
                after = entry[:4]
                yield entry

    def next_probe(self, at_origin: str, after: float) -> IndexEntry | None:
        """Return the first soft-404 probe that a host (``http://HOST``) was sent after a time."""
        # The key after all that begin with a slash.
        rows = self._rows(_NEXT_PROBE, (f"{at_origin}/", f"{at_origin}0", after))
        return IndexEntry(*rows[0]) if rows else None

    def build(self, inputs: Sequence[ArchiveFile], progress: Progress | None = None) -> None:
        """Index these archives, and drop the rows of others.

        Raises:
            CrawlError: a list of captures cannot be read, the index cannot be written, or no
                archive contains an exchange.
        """
        try:
            with transaction(self._db):
                unread = self._match(self._wanted(inputs))
            for number, file, is_listed in unread:
                if progress is not None:
                    progress(file.name)
                with transaction(self._db):
                    self._read(number, file, is_listed=is_listed)
            if self._db.execute(_IS_FINISHED).fetchone() is None:
                with transaction(self._db):
                    self._finish()
        except sqlite3.Error as error:
            raise self._failed(error) from error
        except OSError as error:
            raise CrawlError(trouble(error.filename, error)) from error
        if self.exchanges == 0:
            raise CrawlError(self._nothing(inputs))

    def _wanted(self, inputs: Sequence[ArchiveFile]) -> dict[ArchiveFile, int]:
        """Return the files to read, each with a hash of the lists that select from it (0: all)."""
        listed: dict[ArchiveFile, int] = {}
        self._db.execute("DELETE FROM listed")
        for each in inputs:
            if each.is_list:
                stat = each.path.stat()
                number = key(each.path, stat.st_size, stat.st_mtime_ns)
                for file in self._list(each.path):
                    listed[file] = key(listed.get(file, 0), number)
        return listed | dict.fromkeys((each for each in inputs if not each.is_list), 0)

    def _list(self, path: Path) -> Iterable[ArchiveFile]:
        """Note the captures of a list; return the files that it names."""
        files: dict[str, ArchiveFile] = {}
        captures = listed_captures(path)
        while batch := list(islice(captures, _BATCH)):
            for capture in batch:
                if capture.filename not in files:
                    files[capture.filename] = ArchiveFile(located(path, capture))
            self._db.executemany(
                "INSERT OR IGNORE INTO listed VALUES (?, ?)",
                [(key(files[each.filename].name), each.offset) for each in batch],
            )
        return set(files.values())

    def _match(self, wanted: Mapping[ArchiveFile, int]) -> list[tuple[int, ArchiveFile, bool]]:
        """Keep finished, unchanged files, forget the others, and return those to be read.

        New sources are numbered in the order of the inputs.
        """
        columns = "path, member, start, size, bytes, mtime_ns, listed, id"
        rows = self._db.execute(f"SELECT {columns} FROM source WHERE finished")
        known = {tuple(row[:-1]): row[-1] for row in rows}
        kept: list[int] = []
        unread: list[tuple[ArchiveFile, tuple[Any, ...]]] = []
        for file, number in wanted.items():
            stat = file.path.stat()
            row = (
                str(file.path), file.member, file.start, file.size,
                stat.st_size, stat.st_mtime_ns, number,
            )  # fmt: skip
            if row in known:
                kept.append(known[row])
            else:
                unread.append((file, row))
        (count,) = self._db.execute("SELECT count(*) FROM source").fetchone()
        if unread or count != len(kept):
            self._forget_others(kept)
        insert = "INSERT INTO source VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, 0)"
        return [
            (int(self._db.execute(insert, row).lastrowid or 0), file, bool(row[-1]))
            for file, row in unread
        ]

    def _forget_others(self, kept: Iterable[int]) -> None:
        """Delete the rows of all other sources, and the indexes of the whole."""
        numbers = json.dumps(list(kept))
        for table in ("source", "exchange", "damage", "skipped"):
            column = "id" if table == "source" else "source"
            others = f"{column} NOT IN (SELECT value FROM json_each(?))"
            self._db.execute(f"DELETE FROM {table} WHERE {others}", (numbers,))
        for index in ("exchange_in_time", "probe"):
            self._db.execute(f"DROP INDEX IF EXISTS {index}")

    def _read(self, number: int, file: ArchiveFile, *, is_listed: bool) -> None:
        """Read one file in one transaction, so that the index holds all of it or none."""
        gathering = ExchangeGatherer(number, file.name)
        try:
            with closing(file.open()) as source:
                query = "SELECT at FROM listed WHERE file = ? ORDER BY at"
                offsets = (at for (at,) in self._db.execute(query, (key(file.name),)))
                if is_listed:
                    scanned = scan_listed(source, file.name, offsets)
                else:
                    scanned = scan(source, file.name)
                self._insert(number, _gathered(gathering, scanned))
        except OSError as error:
            self._insert(number, iter([Damage(file.name, 0, str(error), "unreadable")]))
        self._db.executemany(
            "INSERT INTO skipped VALUES (?, ?, ?)",
            [(number, kind, count) for kind, count in sorted(gathering.skipped.items())],
        )
        self._db.execute("UPDATE source SET finished = 1 WHERE id = ?", (number,))

    def _insert(self, number: int, found: Iterator[IndexEntry | Damage]) -> None:
        while batch := list(islice(found, _BATCH)):
            entries = [each[: len(_COLUMNS)] for each in batch if isinstance(each, IndexEntry)]
            self._db.executemany(_INSERT, entries)
            self._db.executemany(
                "INSERT INTO damage VALUES (?, ?, ?, ?)",
                [(number, e.offset, e.reason, e.flaw) for e in batch if isinstance(e, Damage)],
            )

    def _finish(self) -> None:
        """Resolve revisits to their originals, and create the index by time."""
        query = "SELECT EXISTS (SELECT * FROM exchange WHERE kind = 'same')"
        self._db.execute("DELETE FROM damage WHERE flaw = 'unresolved_revisit'")
        if self._db.execute(query).fetchone() == (1,):
            for name, columns in _LOOKUPS.items():
                self._db.execute(
                    f"CREATE INDEX {name} ON exchange ({columns}) WHERE kind = 'response'"
                )
            self._db.execute(_RESOLVE)
            self._db.execute(_UNRESOLVED)
            for name in _LOOKUPS:
                self._db.execute(f"DROP INDEX {name}")
        self._db.execute(_PROBES)
        self._db.execute(_IN_TIME)

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def _prepare(self) -> None:
        application = self._rows("PRAGMA application_id")[0][0]
        found = self._rows("PRAGMA user_version")[0][0]
        names = [row[0] for row in self._rows("SELECT name FROM sqlite_schema WHERE type='table'")]
        if names and application != APPLICATION:
            raise CrawlError(
                f"{self._path}: not an index of archives; name another store with --db"
            )
        self._rows("PRAGMA journal_mode = WAL")
        # What a power cut takes of an index is read again.
        self._rows("PRAGMA synchronous = NORMAL")
        self._rows(f"PRAGMA cache_size = -{_CACHE_KIB}")
        if names and found == VERSION:
            return
        with transaction(self._db):
            for name in names:
                self._rows(f"DROP TABLE {name}")
            for statement in _TABLES.split(";"):
                self._rows(statement)
            self._rows(f"PRAGMA application_id = {APPLICATION}")
            self._rows(f"PRAGMA user_version = {VERSION}")

    def _failed(self, error: sqlite3.Error) -> CrawlError:
        why = f"the index of the archives failed: {error}"
        return CrawlError(f"{self._path}: {why}; free some space, or name another store with --db")

    def _nothing(self, inputs: Sequence[ArchiveFile]) -> str:
        """Return the reason why the archives cannot be read, in one line."""
        first = next(self.damages(), None)
        if first is not None:
            return f"{first} (no exchange in {len(inputs)} archives); name others"
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.skipped().items())
        names = ", ".join(str(each.path) for each in inputs[:3])
        return f"{names}: no HTTP exchange in it ({kinds or 'no records'}); name others"


def _gathered(
    gathering: ExchangeGatherer, scanned: Iterable[ScannedRecord | Damage]
) -> Iterator[IndexEntry | Damage]:
    for each in scanned:
        if isinstance(each, Damage):
            yield each
        else:
            yield from gathering.add(each)
    yield from gathering.close()
