"""Whether a store is sound: what SQLite says of the file, and what the tables say of each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import aiosqlite

from freshet.storage.database import reading


@dataclass(frozen=True, slots=True)
class StoreHealth:
    """What was found in a store.

    Attributes:
        problems: sentences, as SQLite or a check of ours says them; none: it is sound.
        size_bytes: of the file; ``wal_bytes`` of the write-ahead log beside it.
        pages: URLs known as pages.
        newest_at: the time of the newest observation (Unix seconds), if there is one.
        open_run: the run that has not ended, if there is one.
    """

    problems: tuple[str, ...]
    size_bytes: int
    wal_bytes: int
    pages: int
    newest_at: float | None
    open_run: int | None


async def examine(path: Path, *, thorough: bool = False) -> StoreHealth:
    """Read the whole file and check it; ``thorough`` compares the indexes with their tables, too.

    Raises:
        StoreError: there is no such file, or it cannot be read at all.
    """
    async with reading(path) as connection:
        problems = [
            *await _words(connection, f"PRAGMA {'integrity' if thorough else 'quick'}_check"),
            *await _dangling(connection),
        ]
        one = "SELECT (SELECT count(*) FROM page WHERE role = 'page'), "
        rows = await connection.execute_fetchall(
            f"{one} (SELECT max(at) FROM observation), "
            "(SELECT max(id) FROM crawl_run WHERE ended_at IS NULL)"
        )
        pages, newest_at, open_run = next(iter(rows))
    wal = path.with_name(path.name + "-wal")
    return StoreHealth(
        tuple(problems), path.stat().st_size, wal.stat().st_size if wal.exists() else 0, pages,
        newest_at, open_run,
    )  # fmt: skip


async def _words(connection: aiosqlite.Connection, pragma: str) -> list[str]:
    """What SQLite complains of."""
    rows = await connection.execute_fetchall(pragma)
    return [str(row[0]) for row in rows if row[0] != "ok"]


async def _dangling(connection: aiosqlite.Connection) -> list[str]:
    """Rows that point to rows that are not there."""
    rows = await connection.execute_fetchall(
        'SELECT "table", parent, count(*) FROM pragma_foreign_key_check GROUP BY 1, 2'
    )
    return [f"{row[2]:,} rows of {row[0]} point to a {row[1]} that is not there" for row in rows]
