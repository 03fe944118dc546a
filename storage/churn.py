"""Table ``churn``: looks at a page that showed links to pages which were new since the last one.

A link has *appeared* if it was not there at the look before, when the page that it leads to was not
known either: what is new on a site, not what is listed anew. Of links that come and go it is told
beside that how many *dropped* off, and how many *stayed* of those that came since the first look:
where none did, more may have come and gone unseen. A first look says nothing of churn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from freshet.storage.records import Visit
from freshet.storage.targets import Churn
from freshet.storage.words import Role

#: The page itself has the time of the look before until it takes in this one.
_APPEARED = f"""
    SELECT p.id, w.value ->> 1, p.checked_at, count(*)
    FROM json_each(?) AS w CROSS JOIN page AS p ON p.id = w.value ->> 0
    CROSS JOIN link AS l ON l.src_id = p.id AND l.first_seen_at = w.value ->> 1
    CROSS JOIN page AS d ON d.id = l.dst_id
    WHERE d.found_at > p.checked_at AND d.held_back IS NULL AND d.role = '{Role.PAGE}'
    GROUP BY p.id
"""
#: Materialized: a busy page has thousands of links, which are gone through once for that.
_FIRST = "(SELECT min(first_seen_at) FROM link WHERE src_id = value ->> 0) AS first"
_APPEND = f"""
    WITH look AS MATERIALIZED (
        SELECT value ->> 0 AS id, value ->> 1 AS at, value ->> 2 AS since, value ->> 3 AS appeared,
            {_FIRST}
        FROM json_each(?)
    )
    INSERT OR REPLACE INTO churn (page_id, at, since, appeared, dropped, stayed)
    SELECT look.id, look.at, since, appeared, total(l.gone_at IS look.at),
        total(l.gone_at IS NULL AND l.first_seen_at < look.at AND l.first_seen_at > first)
    FROM look CROSS JOIN link AS l ON l.src_id = look.id
    GROUP BY look.id RETURNING page_id, since, appeared, dropped, stayed
"""
_SHOWN = f"""
    WITH source AS MATERIALIZED (SELECT value ->> 0 AS id, {_FIRST} FROM json_each(?))
    SELECT l.src_id, l.dst_id FROM source CROSS JOIN link AS l ON l.src_id = source.id
    WHERE l.first_seen_at > first
"""
_COLUMNS = np.dtype(
    [
        ("page_id", np.int64),
        ("at", np.float64),
        ("since", np.float64),
        ("appeared", np.int64),
        ("dropped", np.int64),
        ("stayed", np.int64),
    ]
)
_ROWS = 50_000


async def append(connection: aiosqlite.Connection, visits: Iterable[Visit]) -> Mapping[int, Churn]:
    """Note what these visits showed, after their links and before their pages; by page."""
    parses = [
        (visit.due.page_id, visit.observation.at) for visit in visits if visit.links is not None
    ]
    if not parses:
        return {}
    found = await connection.execute_fetchall(_APPEARED, (json.dumps(parses),))
    if not (rows := [tuple(row) for row in found]):
        return {}
    noted = await connection.execute_fetchall(_APPEND, (json.dumps(rows),))
    return {row[0]: Churn(*row[1:]) for row in noted}


async def forget_churn(
    connection: aiosqlite.Connection, page_id: int, parses: Iterable[float]
) -> None:
    """Undo what parses of a page at these times said: it was no content."""
    await connection.executemany(
        "DELETE FROM churn WHERE page_id = ? AND at = ?", [(page_id, at) for at in parses]
    )


@dataclass(frozen=True, slots=True)
class StoredChurn:
    """m looks in the order of their times; every column has length m.

    Attributes:
        page_id: as stored.
        at, since: Unix seconds of the look, and of the one before.
        appeared, dropped, stayed: links; see the module's text.
    """

    page_id: NDArray[np.int64]
    at: NDArray[np.float64]
    since: NDArray[np.float64]
    appeared: NDArray[np.int64]
    dropped: NDArray[np.int64]
    stayed: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.page_id)


async def shown(connection: aiosqlite.Connection, page_ids: Sequence[int]) -> NDArray[np.int64]:
    """(m, 2), which of these pages has shown a link to which since its first look."""
    wanted = json.dumps([[page_id] for page_id in page_ids])
    rows = await connection.execute_fetchall(_SHOWN, (wanted,))
    return np.array([tuple(row) for row in rows], np.int64).reshape(-1, 2)


async def load(connection: aiosqlite.Connection) -> StoredChurn:
    """All that is known."""
    parts: list[NDArray[np.void]] = []
    names = ", ".join(_COLUMNS.names or ())
    async with connection.execute(f"SELECT {names} FROM churn ORDER BY at, page_id") as cursor:
        while rows := await cursor.fetchmany(_ROWS):
            parts.append(np.array([tuple(row) for row in rows], _COLUMNS))
    table = np.concatenate(parts) if parts else np.empty(0, _COLUMNS)
    return StoredChurn(*(table[name].copy() for name in _COLUMNS.names or ()))
