"""Which pages of a site led out of scope to which origins, and since when. Read-only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

#: What stands before the path: ``http://host:port``.
_HOST = "instr(l.url, '://')"
_ORIGIN = f"substr(l.url, 1, {_HOST} + 1 + instr(substr(l.url, {_HOST} + 3) || '/', '/'))"
_OFFSITE_LINKS = f"""
SELECT l.src_id, {_ORIGIN} AS origin, min(l.first_seen_at)
FROM page AS p JOIN offsite_link AS l ON l.src_id = p.id
WHERE p.host_id IN (SELECT value FROM json_each(?)) GROUP BY l.src_id, origin ORDER BY 3, 1, 2
"""
_FIRST = f"SELECT {_ORIGIN} AS origin, min(first_seen_at) FROM offsite_link AS l GROUP BY origin"


@dataclass(frozen=True, slots=True)
class OffsiteLink:
    """A page that led to another site's origin, and when that was first seen, in Unix seconds."""

    page_id: int
    origin: str
    seen_at: float


async def read_offsite(
    connection: aiosqlite.Connection, host_ids: Sequence[int]
) -> list[OffsiteLink]:
    """The links of the pages of some hosts, one for each page and origin, the first seen first."""
    rows = await connection.execute_fetchall(_OFFSITE_LINKS, (str(list(host_ids)),))
    return [OffsiteLink(*row) for row in rows]


async def first_seen(connection: aiosqlite.Connection) -> dict[str, float]:
    """When any page of the store first led to each origin; reads all links that leave a site."""
    return {row[0]: row[1] for row in await connection.execute_fetchall(_FIRST)}
