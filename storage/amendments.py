"""Table ``amendment`` and view ``finding``: observations as later ones show them.

Observations are never changed; what is known better by now stands beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import aiosqlite

from freshet.storage.corrections import Amendment
from freshet.storage.records import Visit
from freshet.storage.words import Kind, Rung


@dataclass(frozen=True, slots=True)
class Move:
    """A page that was new at ``at``, and what the URL that redirects to it last was."""

    page_id: int
    at: float
    old_sketch: bytes
    new_sketch: bytes


#: Verdicts that a run's end may still turn: changes by blocks, and changes of the frame.
_OPEN = f"(o.kind = '{Kind.CHANGED}' AND o.rung = '{Rung.BLOCKS}') OR o.rung = '{Rung.FRAME}'"


async def append_amendment(connection: aiosqlite.Connection, visits: Iterable[Visit]) -> None:
    """Write what these visits say of earlier observations of their pages."""
    for visit in visits:
        for amendment in visit.amendments:
            await amend(connection, visit.due.page_id, amendment, visit.observation.at)


async def amend(
    connection: aiosqlite.Connection, page_id: int, amendment: Amendment, now: float
) -> None:
    """See an observation otherwise from ``now`` on; the last word counts."""
    await connection.execute(
        "INSERT OR REPLACE INTO amendment (observation_id, kind, rung, reason, at) "
        "SELECT id, ?, ?, ?, ? FROM observation WHERE page_id = ? AND at = ?",
        (amendment.kind, amendment.rung, amendment.reason, now, page_id, amendment.at),
    )
    await connection.execute(
        "UPDATE page SET last_kind = ? WHERE id = ? AND last_at = ?",
        (amendment.kind, page_id, amendment.at),
    )


async def fail(
    connection: aiosqlite.Connection,
    observation_ids: Sequence[int],
    reason: str,
    detail: str,
    now: float,
) -> None:
    """See observations as failures from ``now`` on: what they saw was no content."""
    await connection.executemany(
        "INSERT OR REPLACE INTO amendment (observation_id, kind, reason, detail, at) "
        "VALUES (?, ?, ?, ?, ?)",
        [(each, Kind.FAILED, reason, detail, now) for each in observation_ids],
    )


async def open_hosts(connection: aiosqlite.Connection, run_id: int) -> list[tuple[int, int]]:
    """The hosts with verdicts of a run that its end may turn, and their pages visited."""
    rows = await connection.execute_fetchall(
        "SELECT p.host_id, count(DISTINCT o.page_id) FROM observation AS o "
        "JOIN page AS p ON p.id = o.page_id "
        "WHERE o.run_id = ? AND o.kind IN ('new', 'changed', 'unchanged') AND p.role = 'page' "
        "AND o.id NOT IN (SELECT observation_id FROM amendment WHERE kind = 'failed') "
        f"GROUP BY p.host_id HAVING max({_OPEN})",
        (run_id,),
    )
    return [(row[0], row[1]) for row in rows]


async def open_memories(
    connection: aiosqlite.Connection, run_id: int, host_id: int
) -> list[tuple[int, bytes | None, bytes]]:
    """The pages of a host with such verdicts: id, digest of the text now, and memory."""
    rows = await connection.execute_fetchall(
        "SELECT m.page_id, p.text_digest, m.data "
        "FROM memory AS m JOIN page AS p ON p.id = m.page_id "
        "WHERE p.host_id = ? AND p.role = 'page' AND EXISTS (SELECT 1 FROM observation AS o "
        f"  WHERE o.page_id = m.page_id AND o.run_id = ? AND ({_OPEN}))",
        (host_id, run_id),
    )
    return [(row[0], row[1], row[2]) for row in rows]


async def moves(connection: aiosqlite.Connection, run_id: int) -> list[Move]:
    """The pages that were new in a run and to which an older page now redirects for good.

    Those whose verdict has been amended since are left out.
    """
    sketch = (
        "(SELECT sketch FROM version WHERE page_id = {} AND sketch IS NOT NULL "
        " ORDER BY at DESC, id DESC LIMIT 1)"
    )
    rows = await connection.execute_fetchall(
        f"SELECT o.page_id, o.at, {sketch.format('x.id')}, {sketch.format('o.page_id')} "
        "FROM observation AS o JOIN page AS x ON x.alias_of = o.page_id "
        "WHERE o.run_id = ? AND o.kind = 'new' AND x.alias_kind = 'permanent' "
        "AND x.version_id IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM amendment WHERE observation_id = o.id) "
        "GROUP BY o.page_id HAVING max(x.checked_at)",
        (run_id,),
    )
    return [Move(*row) for row in rows if row[2] is not None and row[3] is not None]


async def any_since(connection: aiosqlite.Connection, at: float) -> bool:
    """Whether a verdict was amended from this time on."""
    rows = await connection.execute_fetchall("SELECT 1 FROM amendment WHERE at >= ? LIMIT 1", (at,))
    return bool(list(rows))
