"""Exchanges of archives in the order in which they ended, as an index on the disk.

One streaming pass over each file writes a row an exchange; they are read back in the order of
time, ties by file and offset. Memory does not grow with the archives. The index is SQLite and
stands beside what is made of it: a pass that was killed goes on with the file that it was in,
and a file that is finished and has not changed is not read again.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from freshet.crawler.errors import CrawlError
from freshet.crawler.replaying import index
from freshet.crawler.replaying.captures import CaptureKind, Damage, Flaw, Place, Position
from freshet.crawler.replaying.filling import Filling, Progress, transaction
from freshet.crawler.replaying.inputs import ArchiveFile, Input

_PAGE = 500
#: What SQLite keeps of the index in memory.
_CACHE_KIB = 32 * 1024
#: Before everything.
START = Position(-math.inf, 0, 0)


@dataclass(frozen=True, slots=True)
class Entry:
    """An exchange in the index, and where its records are.

    ``original`` is where the answer with the body stands, if another one's: source and place.
    """

    position: Position
    kind: CaptureKind
    url: str
    started_at: float
    status: int | None
    digest: str | None
    outcome: str | None
    answer: Place | None
    request: Place | None
    facts: Place | None
    original: tuple[int, Place] | None


class Order:
    """The index at a path, made if there is none.

    ``keep_wrong_digests`` reads answers whose digests are wrong like others; they are told of
    all the same.

    Raises:
        CrawlError: the file is something else, or cannot be written.
    """

    def __init__(self, path: Path, *, keep_wrong_digests: bool = False) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            self._prepare(2 * index.VERSION + keep_wrong_digests)
        except sqlite3.Error as error:
            self.close()
            raise self._failed(error) from error
        except CrawlError:
            self.close()
            raise
        self._filling = Filling(self._db, keep_wrong_digests=keep_wrong_digests)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._db is not None:
            self._db.close()

    def build(self, inputs: Sequence[Input], progress: Progress | None = None) -> None:
        """Make the index that of these archives; what it knows of others goes.

        Raises:
            CrawlError: a list of captures cannot be read, the index cannot be written, or there
                is no exchange in any of the archives.
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
        """How many exchanges can be read."""
        return int(self._rows(index.COUNT)[0][0])

    @property
    def sources(self) -> dict[int, ArchiveFile]:
        """The files, by their numbers."""
        rows = self._rows("SELECT id, path, member, start, size FROM source ORDER BY id")
        return {n: ArchiveFile(Path(path), *rest) for n, path, *rest in rows}

    def damages(self) -> Iterator[Damage]:
        """What could not be read, by file and offset."""
        names = {number: file.name for number, file in self.sources.items()}
        for source, at, reason, flaw in self._rows(index.DAMAGES):
            yield Damage(names[source], at, reason, Flaw(flaw))

    def flaws(self) -> dict[Flaw, int]:
        """How many damages of each kind there are."""
        return {Flaw(flaw): n for flaw, n in self._rows(index.FLAWS)}

    def skipped(self) -> dict[str, int]:
        """How many records were no exchange of HTTP, by kind, the most first."""
        return dict(self._rows(index.SKIPPED))

    def infos(self) -> list[tuple[Position, Place]]:
        """Where the files say who wrote them, in the order of time."""
        return [
            (Position(at, source, offset, nth), Place(offset, length, nth))
            for at, source, offset, nth, length in self._rows(index.INFOS)
        ]

    def entries(self, after: Position = START) -> Iterator[Entry]:
        """The exchanges behind a position, in order."""
        while page := self._rows(
            index.READ, (after.ended_at, after.source, after.offset, after.nth, _PAGE)
        ):
            for row in page:
                entry = _entry(row)
                after = entry.position
                yield entry

    def next_probe(self, at_origin: str, after: float) -> Entry | None:
        """What a host (``http://HOST``) was sent first from a time on to see how it says no."""
        # What comes behind all that begin with a slash.
        rows = self._rows(index.NEXT_PROBE, (f"{at_origin}/", f"{at_origin}0", after))
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
        if names and application != index.APPLICATION:
            raise CrawlError(f"{self._path}: not an index of archives, it is left as it is")
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
            for statement in index.TABLES.split(";"):
                self._rows(statement)
            self._rows(f"PRAGMA application_id = {index.APPLICATION}")
            self._rows(f"PRAGMA user_version = {version}")

    def _failed(self, error: sqlite3.Error) -> CrawlError:
        return CrawlError(f"{self._path}: the index of the archives: {error}")

    def _nothing(self, inputs: Sequence[Input]) -> str:
        """Why there is nothing to read, in one line."""
        first = next(self.damages(), None)
        if first is not None:
            return f"{first} (no exchange in {len(inputs)} archives)"
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.skipped().items())
        names = ", ".join(str(each.path) for each in inputs[:3])
        return f"{names}: no exchange of HTTP in it ({kinds or 'no records'})"


def _entry(row: Sequence[Any]) -> Entry:
    ended, source, at, nth, kind, url, started, status, digest, outcome, length = row[:11]
    where, how = Place(at, length, nth), CaptureKind(kind)
    is_bare = how is CaptureKind.BARE
    origin = _place(row[18:21])
    return Entry(
        Position(ended, source, at, nth), how, url, started, status, digest, outcome,
        None if is_bare else where, _place(row[11:14]), _place(row[14:17]),
        None if origin is None else (row[17], origin),
    )  # fmt: skip


def _place(columns: Sequence[int | None]) -> Place | None:
    offset, length, nth = columns
    return None if offset is None else Place(offset, length or 0, nth or 0)
