"""Table ``seed``: the site list as given, and where each seed's scope has moved."""

from __future__ import annotations

from collections.abc import Sequence

import aiosqlite

from freshet.storage.records import SeedLine, StoredSeed


async def add(
    connection: aiosqlite.Connection,
    seeds: Sequence[SeedLine],
    now: float,
) -> None:
    """Add seeds; one whose URL is known takes what the line says now."""
    await connection.executemany(
        "INSERT INTO seed (text, url, fallback_url, importance, half_life_hours, added_at) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (url) DO UPDATE SET text = excluded.text, "
        "importance = excluded.importance, half_life_hours = excluded.half_life_hours",
        [(*seed, now) for seed in seeds],
    )


async def load(connection: aiosqlite.Connection) -> list[StoredSeed]:
    """All seeds of the store, in the order of the list."""
    rows = await connection.execute_fetchall(
        "SELECT id, text, url, fallback_url, root_url, page_id, importance, half_life_hours "
        "FROM seed ORDER BY id"
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
