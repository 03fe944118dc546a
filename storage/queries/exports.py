"""Tables that can be exported from a store: names, columns and rows."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final

from aiosqlite import Connection as Reader

from freshet.storage.tables.estimates import COLUMNS

_BATCH: Final = 5_000


@dataclass(frozen=True, slots=True)
class Export:
    """A table: its columns with their SQL types, and the query that fills it."""

    columns: dict[str, str]
    sql: str


EXPORTS: Final[dict[str, Export]] = {
    "pages": Export(
        {
            "url": "TEXT", "host": "TEXT", "title": "TEXT", "language": "TEXT", "depth": "INTEGER",
            "found_at": "REAL", "checked_at": "REAL", "last_kind": "TEXT", "status": "INTEGER",
            "observations": "INTEGER", "changes": "INTEGER", "versions": "INTEGER",
            "canonical_url": "TEXT", "alias_of": "TEXT", "duplicate_of": "TEXT",
            "held_back": "TEXT",
        },
        "SELECT p.url, h.origin, p.title, p.language, p.depth, p.found_at, p.checked_at, "
        "  p.last_kind, p.status, (SELECT count(*) FROM observation WHERE page_id = p.id), "
        "  (SELECT count(*) FROM finding WHERE page_id = p.id AND kind = 'changed'), "
        "  (SELECT count(*) FROM version WHERE page_id = p.id), "
        "  p.canonical_url, a.url, r.url, p.held_back "
        "FROM page AS p JOIN host AS h ON h.id = p.host_id "
        "LEFT JOIN page AS a ON a.id = p.alias_of LEFT JOIN lsh_page AS l ON l.page_id = p.id "
        "LEFT JOIN lsh_group AS g ON g.leader_id = l.leader_id "
        "LEFT JOIN page AS r ON r.id = nullif(g.representative_id, p.id) "
        "WHERE p.role = 'page' ORDER BY p.id",
    ),
    "observations": Export(
        {
            "url": "TEXT", "at": "REAL", "kind": "TEXT", "rung": "TEXT", "status": "INTEGER",
            "reason": "TEXT", "resemblance": "REAL", "blocks_added": "INTEGER",
            "blocks_removed": "INTEGER", "size_bytes": "INTEGER", "duration_s": "REAL",
            "run": "INTEGER",
        },
        "SELECT p.url, o.at, o.kind, o.rung, o.status, o.reason, o.resemblance, o.blocks_added, "
        "  o.blocks_removed, o.size_bytes, o.duration_s, o.run_id "
        "FROM finding AS o JOIN page AS p ON p.id = o.page_id ORDER BY o.id",
    ),
    "estimates": Export(
        {"url": "TEXT"}
        | {name: "INTEGER" if name in {"claimed", "urgent"} else "REAL" for name in COLUMNS[1:]},
        f"SELECT p.url, {', '.join(f'e.{name}' for name in COLUMNS[1:])} "
        "FROM estimate AS e JOIN page AS p ON p.id = e.page_id ORDER BY e.page_id",
    ),
    "links": Export(
        {
            "source": "TEXT", "target": "TEXT", "rel": "TEXT", "anchor": "TEXT",
            "first_seen_at": "REAL", "last_seen_at": "REAL", "gone_at": "REAL",
        },
        "SELECT s.url, d.url, l.rel, l.anchor, l.first_seen_at, l.last_seen_at, l.gone_at "
        "FROM link AS l JOIN page AS s ON s.id = l.src_id JOIN page AS d ON d.id = l.dst_id "
        "ORDER BY l.src_id, l.position",
    ),
}  # fmt: skip


async def batches(db: Reader, export: Export) -> AsyncGenerator[list[tuple[object, ...]], None]:
    """Yield the rows of a table, some thousand at a time."""
    async with db.execute(export.sql) as cursor:
        while rows := list(await cursor.fetchmany(_BATCH)):
            yield [tuple(row) for row in rows]
