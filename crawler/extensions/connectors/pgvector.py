"""``postgresql://…``: a table of passages in PostgreSQL, with a column of pgvector.

Table ``freshet_chunk`` has the passages and their vectors, ``freshet_place`` the cursor. A batch is
one transaction.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from typing import Any, Final

from freshet.crawler.extensions.connectors.errors import TargetError, TargetLost, stale
from freshet.crawler.extensions.connectors.targets import (
    COLUMNS,
    Batch,
    HeldPassage,
    TargetPlace,
    require,
)

_TYPES: Final = {"LIST": "text[]", "TIME": "timestamptz"}
_NAMES: Final = (*COLUMNS, "generation")
_DECLARED: Final = ", ".join(f'"{name}" {_TYPES.get(kind, kind)}' for name, kind in COLUMNS.items())
_TABLES: Final = f"""
CREATE TABLE IF NOT EXISTS freshet_chunk ({_DECLARED}, generation bigint, PRIMARY KEY (id));
CREATE INDEX IF NOT EXISTS freshet_chunk_page ON freshet_chunk (page_url);
CREATE INDEX IF NOT EXISTS freshet_chunk_text ON freshet_chunk (md5(markdown));
CREATE TABLE IF NOT EXISTS freshet_place (cursor text, generation bigint, is_whole boolean,
  chunk_chars bigint, model text, dimensions bigint)
"""
_VALUES: Final = ", ".join(
    f"to_timestamp(%({name})s)" if COLUMNS.get(name) == "TIME" else f"%({name})s" for name in _NAMES
)
_QUOTED: Final = ", ".join(f'"{name}"' for name in _NAMES)
_WRITE: Final = (
    f"INSERT INTO freshet_chunk ({_QUOTED}) VALUES ({_VALUES}) ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f'"{name}" = EXCLUDED."{name}"' for name in _NAMES if name != "id")
)
_HAS_VECTORS: Final = (
    "SELECT 1 FROM pg_attribute WHERE attrelid = 'freshet_chunk'::regclass "
    "AND attname = 'embedding'"
)
_HELD: Final = (
    "SELECT id, headings, markdown, embedding::text FROM freshet_chunk WHERE embedding IS NOT NULL "
    "AND (page_url = ANY(%s) "
    "OR md5(markdown) = ANY(ARRAY(SELECT md5(it) FROM unnest(%s::text[]) AS it)))"
)
_CONNECTS_WITHIN_S: Final = 10


def connect(address: str) -> "PgvectorTarget":
    """Connect to the database of an address, and make the tables if they are not there."""
    require("PostgreSQL", "pgvector", "psycopg")
    return PgvectorTarget(address)


class PgvectorTarget:
    """Passages and vectors in PostgreSQL; as a :class:`.targets.Target`."""

    def __init__(self, address: str) -> None:
        import psycopg  # noqa: PLC0415 - an extra
        from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 - an extra

        self._psycopg = psycopg
        self._name = address.partition("@")[2] or address.partition("//")[2]
        with self._told():
            said: dict[str, Any] = {"connect_timeout": _CONNECTS_WITHIN_S} | conninfo_to_dict(
                address
            )
            self._db: Any = psycopg.connect(**said)
            with self._db.transaction():
                self._db.execute(_TABLES)

    @contextmanager
    def _told(self) -> Iterator[None]:
        errors = self._psycopg.errors
        try:
            yield
        except errors.DiskFull as error:
            raise TargetError(f"{self._name}: the disk of the server is full; make room") from error
        except self._psycopg.OperationalError as error:
            raise TargetLost(f"{self._name}: {_line(error)}") from error
        except self._psycopg.Error as error:
            raise TargetError(f"{self._name}: {_line(error)}") from error

    def place(self) -> TargetPlace | None:
        """Return the place of the database."""
        with self._told(), self._db.transaction():
            row = self._db.execute("SELECT * FROM freshet_place").fetchone()
        return None if row is None else TargetPlace(*row)

    def held(self, urls: Sequence[str], texts: Sequence[str]) -> list[HeldPassage]:
        """Return the passages of these pages, and the passages with these texts, by digest."""
        with self._told(), self._db.transaction():
            if self._db.execute(_HAS_VECTORS).fetchone() is None:
                return []
            found = self._db.execute(_HELD, ([*urls], [*texts])).fetchall()
        return [HeldPassage(name, tuple(it), text, json.loads(v)) for name, it, text, v in found]

    def apply(self, batch: Batch) -> None:
        """Replace pages in one transaction."""
        rows = [row for page in batch.pages for row in page.rows()]
        for row in rows:
            # PostgreSQL takes a tuple for a row.
            row |= {"headings": [*row["headings"]], "generation": batch.after.generation}
        urls, ids = [page.url for page in batch.pages], [row["id"] for row in rows]
        with self._told(), self._db.transaction(), self._db.cursor() as cursor:
            self._keep(batch.before, batch.after)
            gone = "DELETE FROM freshet_chunk WHERE page_url = ANY(%s) AND id <> ALL(%s)"
            cursor.execute(gone, (urls, ids))
            cursor.executemany(_WRITE, rows)
            if batch.vectors:
                cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
                cursor.execute(
                    "ALTER TABLE freshet_chunk ADD COLUMN IF NOT EXISTS embedding "
                    f"vector({batch.after.dimensions})"
                )
                vectors = (
                    (f"[{','.join(map(str, it))}]", id_) for id_, it in batch.vectors.items()
                )
                sql = "UPDATE freshet_chunk SET embedding = %s::vector WHERE id = %s"
                cursor.executemany(sql, vectors)

    def finish(self, before: TargetPlace, after: TargetPlace) -> None:
        """Delete the rows of older generations in one transaction."""
        with self._told(), self._db.transaction():
            self._keep(before, after)
            gone = "DELETE FROM freshet_chunk WHERE generation < %s"
            self._db.execute(gone, (after.generation,))

    def _keep(self, before: TargetPlace, after: TargetPlace) -> None:
        # Nobody writes between.
        self._db.execute("LOCK TABLE freshet_place IN EXCLUSIVE MODE")
        sql = "DELETE FROM freshet_place RETURNING cursor, generation"
        deleted = self._db.execute(sql).fetchall()
        if deleted not in ([], [(before.cursor, before.generation)]):
            raise stale(self._name)
        marks = ", ".join(["%s"] * len(fields(after)))
        self._db.execute(f"INSERT INTO freshet_place VALUES ({marks})", astuple(after))

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def _line(error: Exception) -> str:
    """Return the first line of an error."""
    return next(iter(str(error).splitlines()), type(error).__name__)
