"""Archives are read into the index, file by file; what is there already is not read again."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

from freshet.crawler.replaying import index
from freshet.crawler.replaying.capture_lists import listed_captures, located
from freshet.crawler.replaying.captures import Damage, Flaw, Place
from freshet.crawler.replaying.gathering import Gathered, GatheredInfo, Gathering, key
from freshet.crawler.replaying.inputs import ArchiveFile, CaptureList, Input
from freshet.crawler.replaying.scanned import ScannedRecord
from freshet.crawler.replaying.warc_files import SeveralPerMember, scan, scan_listed

_BATCH = 2_000

Found = Gathered | GatheredInfo | Damage

#: Told of a file that is about to be read.
Progress = Callable[[str], None]


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


class Filling:
    """Makes the index that of some archives; what it knows of others goes."""

    def __init__(self, database: sqlite3.Connection, *, keep_wrong_digests: bool) -> None:
        self._db = database
        self._keeps_wrong = keep_wrong_digests

    def fill(self, inputs: Sequence[Input], progress: Progress | None) -> None:
        """Read what is not in the index yet.

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
        if self._db.execute(index.IS_FINISHED).fetchone() is None:
            with transaction(self._db):
                self._finish()

    def _wanted(self, inputs: Sequence[Input]) -> dict[ArchiveFile, int]:
        """The files to read, and for each a number of the lists that say what of it (0: all)."""
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
        """Note the captures of a list; gives back the files that it names."""
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
        """Keep what is finished and unchanged, forget the rest; gives back what is to be read.

        The numbers of sources are in the order of the inputs, for those that are new.
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
            self._db.execute(index.NOT_FINISHED)
            self._db.execute(index.NO_PROBES)
        insert = "INSERT INTO source VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, 0)"
        return [
            (int(self._db.execute(insert, row).lastrowid or 0), file, bool(row[-1]))
            for file, row in unread
        ]

    def _has_others(self, kept: Sequence[int]) -> bool:
        (count,) = self._db.execute("SELECT count(*) FROM source").fetchone()
        return bool(count != len(kept))

    def _forget(self, kept: Iterable[int]) -> None:
        """Delete what is of sources other than these."""
        self._db.execute("CREATE TEMP TABLE kept (id INTEGER PRIMARY KEY)")
        self._db.executemany("INSERT INTO kept VALUES (?)", [(each,) for each in kept])
        self._db.execute("DELETE FROM source WHERE id NOT IN (SELECT id FROM kept)")
        for table in ("exchange", "info", "damage", "skipped"):
            self._db.execute(f"DELETE FROM {table} WHERE source NOT IN (SELECT id FROM kept)")
        self._db.execute("DROP TABLE kept")

    def _read(self, number: int, file: ArchiveFile, *, is_listed: bool) -> None:
        """One file, in one transaction: it is in the index whole, or not at all."""
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
                index.INSERT, [_row(number, e) for e in batch if isinstance(e, Gathered)]
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
        """Find the originals of revisits, and make the index by time."""
        query = "SELECT EXISTS (SELECT * FROM exchange WHERE kind = 'same')"
        self._db.execute("DELETE FROM damage WHERE flaw = ?", (Flaw.UNRESOLVED,))
        if self._db.execute(query).fetchone() == (1,):
            for statement in index.LOOKUPS:
                self._db.execute(statement)
            self._db.execute(index.RESOLVE)
            self._db.execute(index.UNRESOLVED, (Flaw.UNRESOLVED,))
            for statement in index.NO_LOOKUPS:
                self._db.execute(statement)
        self._db.execute(index.PROBES)
        self._db.execute(index.IN_TIME)


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


def _columns(place: Place | None) -> tuple[int | None, int | None, int | None]:
    return (None, None, None) if place is None else (place.offset, place.length, place.nth)
