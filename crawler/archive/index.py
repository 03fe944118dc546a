"""An index of archived exchanges by time: its tables, its construction and its queries."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, Self

from freshet.crawler.archive.exchanges import Gathered, GatheredInfo, Gathering, key
from freshet.crawler.archive.inputs import ArchiveFile, CaptureList, Input, listed_captures, located
from freshet.crawler.archive.records import CaptureKind, Damage, Flaw, Position, RecordPlace
from freshet.crawler.archive.scan import ScannedRecord, SeveralPerMember, scan, scan_listed
from freshet.crawler.tally import CrawlError

#: Ours, so that no other database is overwritten: "FrIx".
APPLICATION: Final = 0x46724978
#: Counted up with every change of the tables; an index of another version is made anew.
VERSION: Final = 2

TABLES: Final = """
CREATE TABLE source (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL, member TEXT, start INTEGER NOT NULL, size INTEGER,
    bytes INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
    listed INTEGER NOT NULL, finished INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE exchange (
    id INTEGER PRIMARY KEY,
    ended REAL NOT NULL, source INTEGER NOT NULL, at INTEGER NOT NULL, nth INTEGER NOT NULL,
    kind TEXT NOT NULL, url TEXT NOT NULL, started REAL NOT NULL, status INTEGER,
    digest TEXT, outcome TEXT, accept TEXT, length INTEGER NOT NULL,
    request_at INTEGER, request_length INTEGER, request_nth INTEGER,
    facts_at INTEGER, facts_length INTEGER, facts_nth INTEGER,
    record_key INTEGER NOT NULL, url_key INTEGER NOT NULL,
    refers_record INTEGER, refers_url INTEGER, refers_started REAL, original INTEGER
);
CREATE TABLE info (
    at REAL NOT NULL, source INTEGER NOT NULL, offset INTEGER NOT NULL, nth INTEGER NOT NULL,
    length INTEGER NOT NULL
);
CREATE TABLE damage (
    source INTEGER NOT NULL, at INTEGER NOT NULL, reason TEXT NOT NULL, flaw TEXT NOT NULL
);
CREATE TABLE skipped (source INTEGER NOT NULL, kind TEXT NOT NULL, count INTEGER NOT NULL);
CREATE TABLE listed (
    file INTEGER NOT NULL, at INTEGER NOT NULL, length INTEGER NOT NULL, PRIMARY KEY (file, at)
) WITHOUT ROWID;
"""

INSERT: Final = f"INSERT INTO exchange VALUES (NULL{', ?' * 24})"
#: Rows go in without an index. It is made when all are there, so it also says that they are.
IN_TIME: Final = "CREATE INDEX exchange_in_time ON exchange (ended, source, at, nth)"
PROBES: Final = "CREATE INDEX probe ON exchange (url, ended) WHERE accept = 'probe'"
NO_PROBES: Final = "DROP INDEX IF EXISTS probe"
NOT_FINISHED: Final = "DROP INDEX IF EXISTS exchange_in_time"
IS_FINISHED: Final = "SELECT 1 FROM sqlite_schema WHERE name = 'exchange_in_time'"
#: What only revisits need, while they are resolved.
LOOKUPS: Final = (
    "CREATE INDEX original_by_record ON exchange (record_key) WHERE kind = 'response'",
    "CREATE INDEX original_by_url ON exchange (url_key, started) WHERE kind = 'response'",
    "CREATE INDEX original_by_digest ON exchange (digest) WHERE kind = 'response'",
)
NO_LOOKUPS: Final = (
    "DROP INDEX original_by_record",
    "DROP INDEX original_by_url",
    "DROP INDEX original_by_digest",
)
_FITS = """ifnull(o.digest = r.digest
    OR substr(o.digest, 1, instr(o.digest, ':')) <> substr(r.digest, 1, instr(r.digest, ':')), 1)"""
#: The record that a revisit names, the capture of its URL and time, or any of the same payload;
#: never one whose digest of the same kind is another.
RESOLVE: Final = f"""
UPDATE exchange AS r SET original = coalesce(
    (SELECT o.id FROM exchange o
        WHERE o.record_key = r.refers_record AND o.kind = 'response' AND {_FITS}
        ORDER BY o.id LIMIT 1),
    (SELECT id FROM (
        SELECT o.id AS id, abs(o.started - r.refers_started) AS gap FROM exchange o
        WHERE o.url_key = r.refers_url AND o.kind = 'response' AND {_FITS}
            AND o.started BETWEEN r.refers_started - 1 AND r.refers_started + 1)
        ORDER BY gap, id LIMIT 1),
    (SELECT o.id FROM exchange o
        WHERE o.digest = r.digest AND o.kind = 'response' ORDER BY o.id LIMIT 1))
WHERE r.kind = 'same'
"""
UNRESOLVED: Final = """
INSERT INTO damage SELECT source, at, 'the original of this revisit is in none of the archives', ?
FROM exchange WHERE kind = 'same' AND original IS NULL ORDER BY id
"""
#: A page of the order; a revisit without its original is none that can be read.
_COLUMNS: Final = """
SELECT r.ended, r.source, r.at, r.nth, r.kind, r.url, r.started, r.status, r.digest, r.outcome,
    r.length, r.request_at, r.request_length, r.request_nth,
    r.facts_at, r.facts_length, r.facts_nth, o.source, o.at, o.length, o.nth
FROM exchange r LEFT JOIN exchange o ON o.id = r.original
WHERE (r.kind <> 'same' OR o.id IS NOT NULL) AND """
READ: Final = f"""{_COLUMNS} (r.ended, r.source, r.at, r.nth) > (?, ?, ?, ?)
ORDER BY r.ended, r.source, r.at, r.nth LIMIT ?
"""
#: The next probe of a host: URLs from one up to, not including, another; and a time.
NEXT_PROBE: Final = f"""{_COLUMNS} r.accept = 'probe' AND r.url >= ? AND r.url < ? AND r.ended >= ?
ORDER BY r.ended LIMIT 1
"""
INFOS: Final = "SELECT at, source, offset, nth, length FROM info ORDER BY 1, 2, 3, 4"
COUNT: Final = "SELECT count(*) FROM exchange WHERE kind <> 'same' OR original IS NOT NULL"
DAMAGES: Final = "SELECT source, at, reason, flaw FROM damage ORDER BY source, at, rowid"
FLAWS: Final = "SELECT flaw, count(*) FROM damage GROUP BY flaw ORDER BY flaw"
SKIPPED: Final = """
SELECT kind, sum(count) AS n FROM skipped GROUP BY kind ORDER BY n DESC, kind
"""


# -- filling -----------------------------------------------------------------
_BATCH = 2_000

Found = Gathered | GatheredInfo | Damage

#: Told of a file that is about to be read.
Progress = Callable[[str], None]


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Commit the block's changes together, or none of them."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


class IndexBuilder:
    """Builds the index of some archives and drops entries of others."""

    def __init__(self, database: sqlite3.Connection, *, keep_wrong_digests: bool) -> None:
        self._db = database
        self._keeps_wrong = keep_wrong_digests

    def fill(self, inputs: Sequence[Input], progress: Progress | None) -> None:
        """Read the archives that the index does not contain yet.

        Raises:
            CrawlError: a list of captures cannot be read.
            sqlite3.Error: the index cannot be written.
        """
        with transaction(self._db):
            unread = self._match(self._wanted(inputs))
        for number, file, is_listed in unread:
            if progress is not None:
                progress(file.name)
            self._read(number, file, is_listed=is_listed)
        if self._db.execute(IS_FINISHED).fetchone() is None:
            with transaction(self._db):
                self._finish()

    def _wanted(self, inputs: Sequence[Input]) -> dict[ArchiveFile, int]:
        """Return the files to read, each with a hash of the lists that select from it (0: all)."""
        whole = dict.fromkeys((each for each in inputs if isinstance(each, ArchiveFile)), 0)
        listed: dict[ArchiveFile, int] = {}
        self._db.execute("DELETE FROM listed")
        for each in inputs:
            if isinstance(each, CaptureList):
                stat = each.path.stat()
                number = key(each.path, stat.st_size, stat.st_mtime_ns)
                for file in self._list(each.path):
                    listed[file] = key(listed.get(file, 0), number)
        return listed | whole

    def _list(self, path: Path) -> Iterable[ArchiveFile]:
        """Note the captures of a list; return the files that it names."""
        files: dict[str, ArchiveFile] = {}
        captures = listed_captures(path)
        while batch := list(islice(captures, _BATCH)):
            for capture in batch:
                if capture.filename not in files:
                    files[capture.filename] = ArchiveFile(located(path, capture))
            self._db.executemany(
                "INSERT OR IGNORE INTO listed VALUES (?, ?, ?)",
                [(key(files[c.filename].name), c.offset, c.length) for c in batch],
            )
        return set(files.values())

    def _match(self, wanted: Mapping[ArchiveFile, int]) -> list[tuple[int, ArchiveFile, bool]]:
        """Keep finished, unchanged files, forget the others, and return those to be read.

        New sources are numbered in the order of the inputs.
        """
        rows = self._db.execute(
            "SELECT path, member, start, size, bytes, mtime_ns, listed, id FROM source"
            " WHERE finished"
        )
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
        if unread or self._has_others(kept):
            self._forget(kept)
            self._db.execute(NOT_FINISHED)
            self._db.execute(NO_PROBES)
        insert = "INSERT INTO source VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, 0)"
        return [
            (int(self._db.execute(insert, row).lastrowid or 0), file, bool(row[-1]))
            for file, row in unread
        ]

    def _has_others(self, kept: Sequence[int]) -> bool:
        (count,) = self._db.execute("SELECT count(*) FROM source").fetchone()
        return bool(count != len(kept))

    def _forget(self, kept: Iterable[int]) -> None:
        """Delete the rows of all other sources."""
        self._db.execute("CREATE TEMP TABLE kept (id INTEGER PRIMARY KEY)")
        self._db.executemany("INSERT INTO kept VALUES (?)", [(each,) for each in kept])
        self._db.execute("DELETE FROM source WHERE id NOT IN (SELECT id FROM kept)")
        for table in ("exchange", "info", "damage", "skipped"):
            self._db.execute(f"DELETE FROM {table} WHERE source NOT IN (SELECT id FROM kept)")
        self._db.execute("DROP TABLE kept")

    def _read(self, number: int, file: ArchiveFile, *, is_listed: bool) -> None:
        """Read one file in one transaction: the index holds all of it, or nothing."""
        try:
            with transaction(self._db):
                self._store(number, file, is_listed=is_listed, as_stream=False)
        except SeveralPerMember:
            with transaction(self._db):
                self._store(number, file, is_listed=is_listed, as_stream=True)

    def _store(self, number: int, file: ArchiveFile, *, is_listed: bool, as_stream: bool) -> None:
        gathering = Gathering(file.name, keep_wrong_digests=self._keeps_wrong)
        try:
            with file.open() as source:
                scanned = (
                    scan_listed(source, file.name, self._places(file))
                    if is_listed
                    else scan(source, file.name, as_stream=as_stream)
                )
                found = chain(chain.from_iterable(map(_adding(gathering), scanned)))
                self._insert(number, chain(found, gathering.close()))
        except OSError as error:
            self._insert(number, [Damage(file.name, 0, str(error), Flaw.UNREADABLE)])
        self._db.executemany(
            "INSERT INTO skipped VALUES (?, ?, ?)",
            [(number, kind, count) for kind, count in sorted(gathering.skipped.items())],
        )
        self._db.execute("UPDATE source SET finished = 1 WHERE id = ?", (number,))

    def _places(self, file: ArchiveFile) -> Iterator[tuple[int, int]]:
        query = "SELECT at, length FROM listed WHERE file = ? ORDER BY at"
        yield from self._db.execute(query, (key(file.name),))

    def _insert(self, number: int, found: Iterable[Found]) -> None:
        rows = iter(found)
        while batch := list(islice(rows, _BATCH)):
            self._db.executemany(
                INSERT, [_row(number, e) for e in batch if isinstance(e, Gathered)]
            )
            infos = [e for e in batch if isinstance(e, GatheredInfo)]
            self._db.executemany(
                "INSERT INTO info VALUES (?, ?, ?, ?, ?)",
                [(e.at, number, e.place.offset, e.place.nth, e.place.length) for e in infos],
            )
            self._db.executemany(
                "INSERT INTO damage VALUES (?, ?, ?, ?)",
                [(number, e.offset, e.reason, e.flaw) for e in batch if isinstance(e, Damage)],
            )

    def _finish(self) -> None:
        """Resolve revisits to their originals, and create the index by time."""
        query = "SELECT EXISTS (SELECT * FROM exchange WHERE kind = 'same')"
        self._db.execute("DELETE FROM damage WHERE flaw = ?", (Flaw.UNRESOLVED,))
        if self._db.execute(query).fetchone() == (1,):
            for statement in LOOKUPS:
                self._db.execute(statement)
            self._db.execute(RESOLVE)
            self._db.execute(UNRESOLVED, (Flaw.UNRESOLVED,))
            for statement in NO_LOOKUPS:
                self._db.execute(statement)
        self._db.execute(PROBES)
        self._db.execute(IN_TIME)


def _adding(
    gathering: Gathering,
) -> Callable[[ScannedRecord | Damage], Iterable[Found]]:
    def add(found: ScannedRecord | Damage) -> Iterable[Found]:
        return [found] if isinstance(found, Damage) else gathering.add(found)

    return add


def _row(number: int, gathered: Gathered) -> tuple[Any, ...]:
    at = gathered.at
    return (
        gathered.ended_at, number, at.offset, at.nth, gathered.kind, gathered.url,
        gathered.started_at, gathered.status, gathered.digest, gathered.outcome,
        gathered.accept, at.length,
        *_columns(gathered.request), *_columns(gathered.facts),
        gathered.record, key(gathered.url), *gathered.refers, None,
    )  # fmt: skip


def _columns(place: RecordPlace | None) -> tuple[int | None, int | None, int | None]:
    return (None, None, None) if place is None else (place.offset, place.length, place.nth)


# -- order -------------------------------------------------------------------
# One pass over each file writes a row for each exchange; reading is by time, ties by file and
# offset. The index is a SQLite file beside its result: an interrupted pass resumes with its
# file, and an unchanged finished file is not read again.
_PAGE = 500
#: What SQLite keeps of the index in memory.
_CACHE_KIB = 32 * 1024
#: Before everything.
START = Position(-math.inf, 0, 0)


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """An exchange in the index, and the positions of its records.

    ``original`` is the source and position of another record if that holds the body.
    """

    position: Position
    kind: CaptureKind
    url: str
    started_at: float
    status: int | None
    digest: str | None
    outcome: str | None
    answer: RecordPlace | None
    request: RecordPlace | None
    facts: RecordPlace | None
    original: tuple[int, RecordPlace] | None


class ArchiveIndex:
    """The index at a path, created if missing.

    ``keep_wrong_digests`` also reads answers with wrong digests; they are reported in any case.

    Raises:
        CrawlError: the file is something else, or cannot be written.
    """

    def __init__(self, path: Path, *, keep_wrong_digests: bool = False) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            self._prepare(2 * VERSION + keep_wrong_digests)
        except sqlite3.Error as error:
            self.close()
            raise self._failed(error) from error
        except CrawlError:
            self.close()
            raise
        self._filling = IndexBuilder(self._db, keep_wrong_digests=keep_wrong_digests)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()

    def build(self, inputs: Sequence[Input], progress: Progress | None = None) -> None:
        """Index these archives, and drop what the index knows of others.

        Raises:
            CrawlError: a list of captures cannot be read, the index cannot be written, or no
                archive contains an exchange.
        """
        try:
            self._filling.fill(inputs, progress)
        except sqlite3.Error as error:
            raise self._failed(error) from error
        except OSError as error:
            raise CrawlError(f"{error.filename}: {error.strerror or error}") from error
        if self.exchanges == 0:
            raise CrawlError(self._nothing(inputs))

    @property
    def exchanges(self) -> int:
        """The number of readable exchanges."""
        return int(self._rows(COUNT)[0][0])

    @property
    def sources(self) -> dict[int, ArchiveFile]:
        """The files, by their numbers."""
        rows = self._rows("SELECT id, path, member, start, size FROM source ORDER BY id")
        return {n: ArchiveFile(Path(path), *rest) for n, path, *rest in rows}

    def damages(self) -> Iterator[Damage]:
        """Yield the damages, by file and offset."""
        names = {number: file.name for number, file in self.sources.items()}
        for source, at, reason, flaw in self._rows(DAMAGES):
            yield Damage(names[source], at, reason, Flaw(flaw))

    def flaws(self) -> dict[Flaw, int]:
        """Count the damages by kind."""
        return {Flaw(flaw): n for flaw, n in self._rows(FLAWS)}

    def skipped(self) -> dict[str, int]:
        """Count the records that are not HTTP exchanges, by kind, most frequent first."""
        return dict(self._rows(SKIPPED))

    def infos(self) -> list[tuple[Position, RecordPlace]]:
        """Return the positions of the warcinfo records, in the order of time."""
        return [
            (Position(at, source, offset, nth), RecordPlace(offset, length, nth))
            for at, source, offset, nth, length in self._rows(INFOS)
        ]

    def entries(self, after: Position = START) -> Iterator[IndexEntry]:
        """Yield the exchanges behind a position, in order."""
        while page := self._rows(
            READ, (after.ended_at, after.source, after.offset, after.nth, _PAGE)
        ):
            for row in page:
                entry = _entry(row)
                after = entry.position
                yield entry

    def next_probe(self, at_origin: str, after: float) -> IndexEntry | None:
        """Return the first soft-404 probe that a host (``http://HOST``) was sent after a time."""
        # What comes behind all that begin with a slash.
        rows = self._rows(NEXT_PROBE, (f"{at_origin}/", f"{at_origin}0", after))
        return _entry(rows[0]) if rows else None

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        assert self._db is not None  # noqa: S101 - narrows the type
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def _prepare(self, version: int) -> None:
        application = self._rows("PRAGMA application_id")[0][0]
        found = self._rows("PRAGMA user_version")[0][0]
        names = [row[0] for row in self._rows("SELECT name FROM sqlite_schema WHERE type='table'")]
        if names and application != APPLICATION:
            raise CrawlError(f"{self._path}: not an index of archives; it was not changed")
        assert self._db is not None  # noqa: S101 - narrows the type
        self._rows("PRAGMA journal_mode = WAL")
        # What a power cut takes of an index is read again.
        self._rows("PRAGMA synchronous = NORMAL")
        self._rows(f"PRAGMA cache_size = -{_CACHE_KIB}")
        if names and found == version:
            return
        with transaction(self._db):
            for name in names:
                self._rows(f"DROP TABLE {name}")
            for statement in TABLES.split(";"):
                self._rows(statement)
            self._rows(f"PRAGMA application_id = {APPLICATION}")
            self._rows(f"PRAGMA user_version = {version}")

    def _failed(self, error: sqlite3.Error) -> CrawlError:
        return CrawlError(f"{self._path}: the index of the archives failed: {error}")

    def _nothing(self, inputs: Sequence[Input]) -> str:
        """Say in one line why nothing can be read."""
        first = next(self.damages(), None)
        if first is not None:
            return f"{first} (no exchange in {len(inputs)} archives)"
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.skipped().items())
        names = ", ".join(str(each.path) for each in inputs[:3])
        return f"{names}: no HTTP exchange in it ({kinds or 'no records'})"


def _entry(row: Sequence[Any]) -> IndexEntry:
    ended, source, at, nth, kind, url, started, status, digest, outcome, length = row[:11]
    where, how = RecordPlace(at, length, nth), CaptureKind(kind)
    is_bare = how is CaptureKind.BARE
    origin = _place(row[18:21])
    return IndexEntry(
        position=Position(ended, source, at, nth), kind=how, url=url, started_at=started,
        status=status, digest=digest, outcome=outcome, answer=None if is_bare else where,
        request=_place(row[11:14]), facts=_place(row[14:17]),
        original=None if origin is None else (row[17], origin),
    )  # fmt: skip


def _place(columns: Sequence[int | None]) -> RecordPlace | None:
    offset, length, nth = columns
    return None if offset is None else RecordPlace(offset, length or 0, nth or 0)
