"""``sqlite-vec:FILE``: tables of passages and vectors in an SQLite file.

Table ``chunk`` has the passages, ``vector`` the vectors (sqlite-vec), ``place`` the cursor. A batch
is one transaction.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from typing import Any, Final

from freshet.crawler.extensions.connectors.errors import TargetError, TargetLost, stale
from freshet.crawler.extensions.connectors.targets import (
    COLUMNS,
    Batch,
    HeldPassage,
    TargetPlace,
    require,
)
from freshet.storage.database import APPLICATION_ID

_TYPES: Final = {"LIST": "TEXT", "TIME": "REAL"}
_NAMES: Final = (*COLUMNS, "generation")
_DECLARED: Final = ", ".join(f'"{name}" {_TYPES.get(kind, kind)}' for name, kind in COLUMNS.items())
_TABLES: Final = f"""
CREATE TABLE IF NOT EXISTS chunk ({_DECLARED}, generation INTEGER, PRIMARY KEY (id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS chunk_page ON chunk (page_url);
CREATE INDEX IF NOT EXISTS chunk_text ON chunk (substr(markdown, 1, 64));
CREATE TABLE IF NOT EXISTS place (cursor TEXT, generation INTEGER, is_whole INTEGER,
  chunk_chars INTEGER, model TEXT, dimensions INTEGER);
"""
_WRITE: Final = f"INSERT OR REPLACE INTO chunk VALUES ({', '.join(f':{name}' for name in _NAMES)})"
_OF_PAGES: Final = "page_url IN (SELECT value FROM json_each(?))"
_OF_TEXT: Final = "substr(markdown, 1, 64) = substr(:text, 1, 64) AND markdown = :text"
_HELD: Final = "SELECT id, headings, markdown, embedding FROM chunk JOIN vector USING (id) WHERE {}"
_BUSY_MS: Final = 10_000


def connect(address: str) -> "SqliteVecTarget":
    """Open the file of an address, or make it."""
    require("sqlite-vec", "sqlite-vec", "apsw", "sqlite_vec")
    return SqliteVecTarget(address.partition(":")[2])


class SqliteVecTarget:
    """Passages and vectors in an SQLite file; as a :class:`.targets.Target`."""

    def __init__(self, path: str) -> None:
        import apsw  # noqa: PLC0415 - an extra
        import sqlite_vec  # noqa: PLC0415 - an extra

        self._path, self._error, self._busy = path, apsw.Error, apsw.BusyError
        self._full = apsw.FullError
        with self._told():
            self._db = apsw.Connection(path)
            self._db.set_busy_timeout(_BUSY_MS)
            if self._db.execute("PRAGMA application_id").get == APPLICATION_ID:
                raise TargetError(f"{path}: it is a Freshet store; name another file")
            self._db.enable_load_extension(True)
            self._db.load_extension(sqlite_vec.loadable_path())
            self._db.enable_load_extension(False)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute(_TABLES)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except self._busy as error:
            raise TargetLost(f"{self._path}: another program holds it") from error
        except self._full as error:
            raise TargetError(f"{self._path}: the disk is full; make room") from error
        except self._error as error:
            raise TargetError(f"{self._path}: {error}; name another file") from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            # SQLite itself takes back a transaction for which the disk has no room.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def place(self) -> TargetPlace | None:
        """Return the place of the file."""
        with self._told():
            row = self._db.execute("SELECT * FROM place").fetchone()
        if row is None:
            return None
        cursor, generation, is_whole, *others = row
        return TargetPlace(cursor, generation, bool(is_whole), *others)

    def held(self, urls: Sequence[str], texts: Sequence[str]) -> list[HeldPassage]:
        """Return the passages of these pages, and the passages that begin with these texts."""
        with self._told():
            if not self._has_vectors():
                return []
            found = [*self._db.execute(_HELD.format(_OF_PAGES), (json.dumps(urls),))]
            for text in texts:
                found += self._db.execute(_HELD.format(_OF_TEXT), {"text": text})
        return [
            HeldPassage(name, tuple(json.loads(said)), text, memoryview(packed).cast("f").tolist())
            for name, said, text, packed in found
        ]

    def _has_vectors(self) -> bool:
        return bool(self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'vector'").get)

    def apply(self, batch: Batch) -> None:
        """Replace pages in one transaction."""
        rows = [row for page in batch.pages for row in page.rows()]
        urls, ids = ([page.url for page in batch.pages], [row["id"] for row in rows])
        generation = {"generation": batch.after.generation}
        with self._told(), self._transaction():
            self._keep(batch.before, batch.after)
            # No passage of a page that it does not have any more.
            gone = f"{_OF_PAGES} AND id NOT IN (SELECT value FROM json_each(?))"
            self._delete(gone, (json.dumps(urls), json.dumps(ids)))
            lists = ({"headings": json.dumps(row["headings"], ensure_ascii=False)} for row in rows)
            self._db.executemany(
                _WRITE, (row | each | generation for row, each in zip(rows, lists, strict=True))
            )
            if batch.vectors:
                self._write_vectors(batch)

    def _write_vectors(self, batch: Batch) -> None:
        import sqlite_vec  # noqa: PLC0415 - an extra

        self._db.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS vector USING vec0(id TEXT PRIMARY KEY, "
            f"embedding float[{batch.after.dimensions}] distance_metric=cosine)"
        )
        packed = (
            (name, bytes(sqlite_vec.serialize_float32(list(vector))))
            for name, vector in batch.vectors.items()
        )
        self._db.executemany("INSERT INTO vector VALUES (?, ?)", packed)

    def _delete(self, where: str, values: tuple[Any, ...]) -> None:
        if self._has_vectors():
            ids = [*self._db.execute(f"SELECT id FROM chunk WHERE {where}", values)]
            self._db.executemany("DELETE FROM vector WHERE id = ?", ids)
        self._db.execute(f"DELETE FROM chunk WHERE {where}", values)

    def finish(self, before: TargetPlace, after: TargetPlace) -> None:
        """Delete the rows of older generations in one transaction."""
        with self._told(), self._transaction():
            self._keep(before, after)
            self._delete("generation < ?", (after.generation,))

    def _keep(self, before: TargetPlace, after: TargetPlace) -> None:
        deleted = self._db.execute("DELETE FROM place RETURNING cursor, generation").fetchall()
        if deleted not in ([], [(before.cursor, before.generation)]):
            raise stale(self._path)
        self._db.execute("INSERT INTO place VALUES (?, ?, ?, ?, ?, ?)", astuple(after))

    def close(self) -> None:
        """Close the file."""
        self._db.close()
