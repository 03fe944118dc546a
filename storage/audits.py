"""Table ``audit``: looks at pages that were drawn at random, by which freshness is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

from storage.records import Kind, Visit

_SEEN = f"'{Kind.CHANGED}', '{Kind.UNCHANGED}', '{Kind.GONE}'"


@dataclass(frozen=True, slots=True)
class AuditResult:
    """An audit as judged today: whether the copy was stale, and how likely that had been taken."""

    at: float
    importance: float
    expected: float
    stale: bool


async def append(connection: aiosqlite.Connection, visits: Sequence[Visit]) -> None:
    """Mark the observations of these visits that are audits, after they were appended."""
    await connection.executemany(
        "INSERT OR REPLACE INTO audit (observation_id, importance, since, expected) "
        "SELECT max(id), ?, ?, ? FROM observation WHERE page_id = ? AND at = ? HAVING max(id)",
        [
            (a.importance, a.since, a.expected, v.due.page_id, v.observation.at)
            for v in visits
            if (a := v.due.audit) is not None
        ],
    )


async def results(connection: aiosqlite.Connection, since: float) -> list[AuditResult]:
    """The audits from a time on that were answered, in their order."""
    rows = await connection.execute_fetchall(
        "SELECT f.at, a.importance, a.expected, f.kind <> ? FROM audit AS a "
        "JOIN finding AS f ON f.id = a.observation_id "
        f"WHERE f.at >= ? AND f.kind IN ({_SEEN}) ORDER BY f.id",
        (Kind.UNCHANGED, since),
    )
    return [AuditResult(row[0], row[1], row[2], bool(row[3])) for row in rows]
