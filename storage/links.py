"""Tables ``link`` and ``offsite_link``: which page linked where, and between which times.

``last_seen_at`` is the last parse that saw the link. A page whose bytes did not change is
not parsed again: its links with ``gone_at IS NULL`` stand as of ``page.checked_at``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import compress

import aiosqlite

from freshet.storage.records import Visit
from freshet.storage.targets import Links

_UPSERT = """
    ON CONFLICT DO UPDATE SET position = excluded.position, rel = excluded.rel,
        anchor = excluded.anchor, last_seen_at = excluded.last_seen_at, gone_at = NULL
"""
_INSIDE = f"""
    INSERT INTO link (src_id, dst_id, position, rel, anchor, first_seen_at, last_seen_at)
    SELECT ?1, p.id, l.value ->> 3, l.value ->> 1, l.value ->> 2, ?2, ?2
    FROM json_each(?3) AS l CROSS JOIN page AS p ON p.url = l.value ->> 0 WHERE true {_UPSERT}
"""
_OFFSITE = f"""
    INSERT INTO offsite_link (src_id, url, position, rel, anchor, first_seen_at, last_seen_at)
    SELECT ?1, value ->> 0, value ->> 3, value ->> 1, value ->> 2, ?2, ?2
    FROM json_each(?3) WHERE true {_UPSERT}
"""


async def record(connection: aiosqlite.Connection, visits: Iterable[Visit]) -> None:
    """Replace the current out-links of the visits that parsed a page."""
    inside, offsite, parses = [], [], []
    for visit in visits:
        if visit.links is not None:
            parse = visit.due.page_id, visit.observation.at
            is_inside = [i not in visit.offsite for i in range(len(visit.links))]
            inside.append((*parse, _rows(visit.links, is_inside)))
            offsite.append((*parse, _rows(visit.links, [not i for i in is_inside])))
            parses.append(parse)
    await connection.executemany(_INSIDE, inside)
    await connection.executemany(_OFFSITE, offsite)
    for table in ("link", "offsite_link"):
        await _retire(connection, table, parses)


def _rows(links: Links, chosen: list[bool]) -> str:
    columns = zip(links.urls, links.rels, links.anchors, range(len(links)), strict=True)
    return json.dumps(list(compress(columns, chosen)))


async def _retire(
    connection: aiosqlite.Connection, table: str, parses: Iterable[tuple[int, float]]
) -> None:
    """Mark the links that these parses did not see."""
    await connection.executemany(
        f"UPDATE {table} SET gone_at = ?2 "
        "WHERE src_id = ?1 AND last_seen_at <> ?2 AND gone_at IS NULL",
        parses,
    )


async def forget(connection: aiosqlite.Connection, page_id: int, parses: Iterable[float]) -> None:
    """Undo what parses of a page at these times said of its links: it was no content."""
    times = [(page_id, at) for at in sorted(parses, reverse=True)]
    for table in ("link", "offsite_link"):
        await connection.executemany(
            f"DELETE FROM {table} WHERE src_id = ? AND first_seen_at = ?", times
        )
        await connection.executemany(
            f"UPDATE {table} SET gone_at = NULL WHERE src_id = ? AND gone_at = ?", times
        )


async def offsite_at(
    connection: aiosqlite.Connection, src_url: str, origin: str
) -> list[tuple[str, int]]:
    """The URLs at an origin to which this page leads out of scope, and the page's depth."""
    rows = await connection.execute_fetchall(
        "SELECT l.url, p.depth FROM page AS p JOIN offsite_link AS l ON l.src_id = p.id "
        "WHERE p.url = ? AND l.gone_at IS NULL AND l.url >= ? AND l.url < ? ORDER BY l.position",
        # '0' comes right after '/': everything that starts with the origin and a slash.
        (src_url, f"{origin}/", f"{origin}0"),
    )
    return [(row[0], row[1]) for row in rows]
