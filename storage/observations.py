"""Table ``observation``: what every visit found, append-only and kept for ever."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import aiosqlite

from freshet.storage.records import Visit
from freshet.storage.words import Kind

#: Kinds that saw the page's content and so refer to a version of it.
_SAW_CONTENT = frozenset({Kind.NEW, Kind.CHANGED, Kind.UNCHANGED})


async def count_at(connection: aiosqlite.Connection, page_id: int, at: float) -> int:
    """How many observations there are of a page of that time."""
    rows = await connection.execute_fetchall(
        "SELECT count(*) FROM observation WHERE page_id = ? AND at = ?", (page_id, at)
    )
    return int(next(iter(rows))[0])


async def last_at(connection: aiosqlite.Connection, run_id: int) -> float:
    """Of when the last observation of a run is, in Unix seconds; -inf: there is none."""
    rows = await connection.execute_fetchall(
        "SELECT max(at) FROM observation WHERE run_id = ?", (run_id,)
    )
    found = next(iter(rows))[0]
    return -inf if found is None else float(found)


async def append(connection: aiosqlite.Connection, run_id: int, visits: Sequence[Visit]) -> None:
    """Append the observations of these visits, after their versions were written."""
    await connection.executemany(
        "INSERT INTO observation (page_id, run_id, at, kind, rung, status, reason, detail, "
        "resemblance, resemblance_se, blocks_added, blocks_removed, duration_s, size_bytes, "
        "version_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "(SELECT max(id) FROM version WHERE page_id = ? AND ?))",
        [
            (
                o.page_id, run_id, o.at, o.kind, o.rung, o.status, o.reason, o.detail,
                o.resemblance, o.resemblance_se, o.blocks_added, o.blocks_removed, o.duration_s,
                o.size_bytes, o.page_id, o.kind in _SAW_CONTENT,
            )
            for o in (visit.observation for visit in visits)
        ],
    )  # fmt: skip
