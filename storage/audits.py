"""Table ``audit``: looks at pages that were drawn at random, by which freshness is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p

import aiosqlite

from freshet.storage.records import Visit
from freshet.storage.words import Kind

_ALMOST_ONE = 1 - 1e-15
_SEEN = f"'{Kind.CHANGED}', '{Kind.UNCHANGED}', '{Kind.GONE}'"


@dataclass(frozen=True, slots=True)
class AuditResult:
    """An audit as judged today: whether the copy was stale, and how likely that had been taken.

    ``hazard`` is how many changes were expected since the look before.
    """

    at: float
    importance: float
    expected: float
    hazard: float
    stale: bool


async def append_audit(connection: aiosqlite.Connection, visits: Sequence[Visit]) -> None:
    """Mark the observations of these visits that are audits, after they were appended."""
    await connection.executemany(
        "INSERT OR REPLACE INTO audit (observation_id, importance, since, expected, hazard) "
        "SELECT max(id), ?, ?, ?, ? FROM observation WHERE page_id = ? AND at = ? HAVING max(id)",
        [
            (a.importance, a.since, a.expected, a.hazard, v.due.page_id, v.observation.at)
            for v in visits
            if (a := v.due.audit) is not None
        ],
    )


async def results(connection: aiosqlite.Connection, since: float) -> list[AuditResult]:
    """The audits from a time on that were answered, in their order."""
    rows = await connection.execute_fetchall(
        "SELECT f.at, a.importance, a.expected, a.hazard, f.kind <> ? FROM audit AS a "
        "JOIN finding AS f ON f.id = a.observation_id "
        f"WHERE f.at >= ? AND f.kind IN ({_SEEN}) ORDER BY f.id",
        (Kind.UNCHANGED, since),
    )
    return [
        AuditResult(at, importance, expected, _hazard(hazard, expected), bool(stale))
        for at, importance, expected, hazard, stale in rows
    ]


async def was_drawn(connection: aiosqlite.Connection, page_id: int) -> bool:
    """Whether the last visit of a page was an audit."""
    rows = await connection.execute_fetchall(
        "SELECT 1 FROM audit WHERE observation_id = "
        "(SELECT max(id) FROM observation WHERE page_id = ?)",
        (page_id,),
    )
    return bool(list(rows))


def _hazard(hazard: float | None, expected: float) -> float:
    """As noted, or, of audits before it was, the one by which a copy is as likely to be stale."""
    return -log1p(-min(expected, _ALMOST_ONE)) if hazard is None else hazard
