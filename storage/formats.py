"""The formats of what the store keeps as versioned bytes: each begins with its number. Read-only.

All of a kind were written by one program or by its later versions. Hence the first and the last
tell of all, and cost a look-up each.
"""

from __future__ import annotations

from enum import StrEnum

import aiosqlite


class Versioned(StrEnum):
    """What is kept as versioned bytes, as people call it."""

    SKETCHES = "sketches"
    MEMORIES = "memories"
    WALLS = "walls"


_ROWS = {
    Versioned.SKETCHES: "SELECT sketch FROM version WHERE sketch IS NOT NULL ORDER BY id",
    Versioned.MEMORIES: "SELECT data FROM memory ORDER BY page_id",
    Versioned.WALLS: "SELECT data FROM wall ORDER BY host_id",
}


async def formats(connection: aiosqlite.Connection, what: Versioned) -> list[int]:
    """The format of the first and of the last row; empty where there are none."""
    found = []
    for order in ("ASC", "DESC"):
        rows = await connection.execute_fetchall(f"{_ROWS[what]} {order} LIMIT 1")
        found += [row[0][0] for row in rows if row[0]]
    return found
