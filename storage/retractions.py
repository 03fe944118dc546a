"""Taking captures back: a page was taken for content, and proves to have been a wall.

Invariant: afterwards everything but table ``observation`` is as though the wall had been
recognised at once: its visits are failures, and what they captured is no version of the page.
Consequence: who reads versions, memories or sketches need not know that walls exist.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

from freshet.storage import amendments, churn, links, near_duplicates, pages
from freshet.storage.corrections import Retraction
from freshet.storage.words import Kind, Rung

#: Verdicts by which a page is the same as at the visit before, but for what differs at each.
_SAME = (Rung.NOT_MODIFIED, Rung.BODY, Rung.TEXT, Rung.VOLATILE)
#: A page's visits that saw content since it last looked otherwise, the oldest first.
_LAST_CONTENT = (
    "SELECT id, at, kind, version_id FROM finding AS f "
    "WHERE page_id = ?1 AND kind IN ('new', 'changed', 'unchanged') AND id >= coalesce("
    "  (SELECT max(id) FROM finding WHERE page_id = ?1 AND (kind IN ('new', 'changed') "
    f"   OR kind = 'unchanged' AND rung NOT IN {tuple(map(str, _SAME))})), 0) ORDER BY id"
)


@dataclass(frozen=True, slots=True)
class _Visit:
    """A visit that saw what is taken back."""

    observation_id: int
    at: float
    kind: str
    version_id: int | None


async def take_back(
    connection: aiosqlite.Connection, retraction: Retraction, now: float
) -> Kind | None:
    """Take a page's last capture back; as what its last visit had counted.

    All visits are amended that saw the same. None: the capture that is meant is not the
    page's last one, and nothing is done.
    """
    page_id = retraction.page_id
    rows = await connection.execute_fetchall(_LAST_CONTENT, (page_id,))
    visits = [_Visit(*row) for row in rows]
    if not visits or retraction.at not in {None, visits[-1].at}:
        return None
    ids = [visit.observation_id for visit in visits]
    await amendments.fail(connection, ids, retraction.reason, retraction.detail, now)
    captured = await _forget_versions(connection, visits)
    await links.forget(connection, page_id, captured)
    await churn.forget_churn(connection, page_id, captured)
    await connection.execute("DELETE FROM memory WHERE page_id = ?", (page_id,))
    await pages.take_back(connection, page_id, visits[-1].at)
    await near_duplicates.revise(connection, page_id)
    return Kind(visits[-1].kind)


async def _forget_versions(
    connection: aiosqlite.Connection, visits: Sequence[_Visit]
) -> list[float]:
    """Delete what these visits captured; when that was."""
    rows = await connection.execute_fetchall(
        "DELETE FROM version WHERE id IN (SELECT value FROM json_each(?)) RETURNING at",
        (json.dumps([visit.version_id for visit in visits]),),
    )
    return [row[0] for row in rows]
