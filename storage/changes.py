"""The significant changes of all pages, in the order of time. Read-only questions."""

from __future__ import annotations

from dataclasses import dataclass

import aiosqlite


@dataclass(frozen=True, slots=True)
class PageChange:
    """A page that changed, appeared or vanished.

    ``resemblance`` is that with the text before; ``version_id`` is the version after the
    change, ``before_id`` the one before it: None where there is none.
    """

    at: float
    url: str
    kind: str
    title: str | None
    resemblance: float | None
    blocks_added: int | None
    blocks_removed: int | None
    version_id: int | None
    before_id: int | None


async def since(
    connection: aiosqlite.Connection, at: float, limit: int, *, all_kinds: bool = False
) -> list[PageChange]:
    """The newest ``limit`` changes after a moment (Unix seconds), newest first.

    Without ``all_kinds`` only changes of main text; with it pages that appeared and pages
    that went, too.
    """
    kinds = "('changed', 'new', 'gone')" if all_kinds else "('changed')"
    rows = await connection.execute_fetchall(
        "SELECT o.at, p.url, o.kind, p.title, o.resemblance, o.blocks_added, o.blocks_removed, "
        "       o.version_id, (SELECT max(v.id) FROM version AS v "
        "         WHERE v.page_id = o.page_id AND v.id < o.version_id) "
        "FROM finding AS o JOIN page AS p ON p.id = o.page_id "
        f"WHERE o.kind IN {kinds} AND o.at > ? AND p.role = 'page' "
        # A page that was gone before is not gone again.
        "AND (o.kind <> 'gone' OR (SELECT b.kind FROM finding AS b "
        "  WHERE b.page_id = o.page_id AND b.id < o.id ORDER BY b.id DESC LIMIT 1) "
        "  IN ('new', 'changed', 'unchanged')) "
        "ORDER BY o.at DESC, o.id DESC LIMIT ?",
        (at, limit),
    )
    return [PageChange(*row) for row in rows]


async def count_since(connection: aiosqlite.Connection, at: float) -> int:
    """How many changes of main text there are after a moment."""
    rows = await connection.execute_fetchall(
        "SELECT count(*) FROM finding AS o JOIN page AS p ON p.id = o.page_id "
        "WHERE o.kind = 'changed' AND o.at > ? AND p.role = 'page'",
        (at,),
    )
    return int(next(iter(rows))[0])
