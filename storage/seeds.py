"""Table ``seed``: the site list as given, and where each seed's scope has moved."""

from __future__ import annotations

from collections.abc import Sequence

import aiosqlite

from storage.records import StoredSeed


async def add(
    connection: aiosqlite.Connection,
    seeds: Sequence[tuple[str, str, str | None, float]],
    now: float,
) -> None:
    """Add (text, url, fallback URL, importance); a known URL takes the new importance."""
    await connection.executemany(
        "INSERT INTO seed (text, url, fallback_url, importance, added_at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (url) DO UPDATE SET text = excluded.text, importance = excluded.importance",
        [(*seed, now) for seed in seeds],
    )


async def load(connection: aiosqlite.Connection) -> list[StoredSeed]:
    """All seeds of the store, in the order of the list."""
    rows = await connection.execute_fetchall(
        "SELECT id, text, url, fallback_url, root_url, page_id, importance FROM seed ORDER BY id"
    )
    return [StoredSeed(*row) for row in rows]


async def settle(connection: aiosqlite.Connection, seed_id: int, url: str) -> None:
    """A seed is crawled at this URL from now on."""
    await connection.execute(
        "UPDATE seed SET root_url = ?1, page_id = (SELECT id FROM page WHERE url = ?1) "
        "WHERE id = ?2",
        (url, seed_id),
    )


async def move(connection: aiosqlite.Connection, page_id: int, url: str) -> None:
    """A page has redirected: all seeds that stand at it stand at this URL from now on."""
    await connection.execute(
        "UPDATE seed SET root_url = ?1, page_id = (SELECT id FROM page WHERE url = ?1) "
        "WHERE page_id = ?2",
        (url, page_id),
    )
