"""Table ``memory``: what change detection remembers of a page beside its last sketch."""

from __future__ import annotations

from collections.abc import Iterable

import aiosqlite

from freshet.storage.records import PageHistory, Visit
from freshet.storage.words import Kind

#: The sketch of a page's last text, in the row of ``page AS p``.
_SKETCH = (
    "(SELECT sketch FROM version WHERE page_id = p.id AND sketch IS NOT NULL "
    "ORDER BY at DESC, id DESC LIMIT 1)"
)


async def load(connection: aiosqlite.Connection, page_id: int) -> PageHistory | None:
    """What a page's next text is to be compared with; None where it has had no text."""
    histories = await _histories(connection, "p.id = ?", (page_id,))
    return next(iter(histories), None)


async def predecessor(connection: aiosqlite.Connection, page_id: int) -> PageHistory | None:
    """What a page was before it moved here: under the last URL that redirects permanently."""
    histories = await _histories(
        connection,
        "p.id = (SELECT id FROM page WHERE alias_of = ? AND alias_kind = 'permanent' "
        "AND version_id IS NOT NULL ORDER BY checked_at DESC LIMIT 1)",
        (page_id,),
    )
    return next(iter(histories), None)


async def sample(connection: aiosqlite.Connection, host_id: int, limit: int) -> list[PageHistory]:
    """The histories of up to ``limit`` pages of a host, spread over all of them."""
    return await _histories(
        connection,
        "p.id IN (SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS n, "
        "         count(*) OVER () AS total FROM page "
        "         WHERE host_id = ?1 AND role = 'page' AND text_digest IS NOT NULL) "
        "         WHERE (n * ?2) / total > ((n - 1) * ?2) / total)",
        (host_id, limit),
    )


async def record(connection: aiosqlite.Connection, visits: Iterable[Visit]) -> None:
    """Keep the new memories, and count the visits at which nothing differed."""
    await connection.executemany(
        "INSERT OR REPLACE INTO memory VALUES (?, ?)",
        [(v.due.page_id, v.memory) for v in visits if v.memory is not None],
    )
    await connection.executemany(
        "UPDATE page SET still = iif(?, 0, still + 1) WHERE id = ?",
        [
            (v.memory is not None, v.due.page_id)
            for v in visits
            if v.memory is not None or v.observation.kind is Kind.UNCHANGED
        ],
    )


async def _histories(
    connection: aiosqlite.Connection, condition: str, parameters: tuple[int, ...]
) -> list[PageHistory]:
    rows = await connection.execute_fetchall(
        f"SELECT {_SKETCH}, m.data, p.still FROM page AS p "
        f"LEFT JOIN memory AS m ON m.page_id = p.id WHERE {condition}",
        parameters,
    )
    return [PageHistory(*row) for row in rows if row[0] is not None]
