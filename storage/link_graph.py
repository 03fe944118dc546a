"""The pages and the links between them, as columns: what is linked how often. Read-only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from freshet.storage.words import AliasKind, Kind, Role

#: Rows that SQLite hands over at once: a moment's work for whoever waits meanwhile.
_ROWS = 20_000

_PAGE = np.dtype([("id", np.int64), ("host", np.int64), ("depth", np.int32), ("links", np.bool_)])
_ALIAS = np.dtype([("id", np.int64), ("of", np.int64), ("depth", np.int32), ("moved", np.bool_)])
_LINK = np.dtype([("source", np.int32), ("target", np.int32)])


@dataclass(frozen=True, slots=True)
class LinkedPages:
    """The n pages in their own right: no sitemaps or feeds, no aliases, not held back.

    Attributes:
        page_id: (n,), ascending.
        host_id: (n,), as stored.
        depth: (n,), links from a seed; of a page that has moved, the least of all its places.
        row_of: the row of the page that each id stands for, its own or that of which it is an
            alias; -1: none.
        links: (n,), whether the page has links that count: it was not gone when last asked, and
            does not ask that they are not followed.
    """

    page_id: NDArray[np.int64]
    host_id: NDArray[np.int64]
    depth: NDArray[np.int32]
    row_of: NDArray[np.int32]
    links: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.page_id)


async def pages(connection: aiosqlite.Connection) -> LinkedPages:
    """All pages in their own right."""
    own = await _table(
        connection,
        f"SELECT id, host_id, depth, last_kind IS NOT '{Kind.GONE}' AND NOT nofollow FROM page "
        f"WHERE role = '{Role.PAGE}' AND alias_kind IS NULL AND held_back IS NULL ORDER BY id",
        _PAGE,
    )
    aliases = await _table(
        connection,
        f"SELECT id, alias_of, depth, alias_kind = '{AliasKind.PERMANENT}' FROM page "
        "WHERE alias_of IS NOT NULL",
        _ALIAS,
    )
    rows = await connection.execute_fetchall("SELECT coalesce(max(id), 0) FROM page")
    row_of = np.full(int(next(iter(rows))[0]) + 1, -1, np.int32)
    row_of[own["id"]] = np.arange(len(own))
    row_of[aliases["id"]] = row_of[aliases["of"]]
    depth = own["depth"].copy()
    moved = aliases[aliases["moved"] & (row_of[aliases["of"]] >= 0)]
    np.minimum.at(depth, row_of[moved["of"]], moved["depth"])
    return LinkedPages(own["id"].copy(), own["host"].copy(), depth, row_of, own["links"].copy())


async def links(
    connection: aiosqlite.Connection, among: LinkedPages
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The links that stand, as rows of their pages, (m,) each; none of rel=nofollow.

    What leads to an alias leads to its page; one page may link another several times.
    """
    if not len(among):
        return np.empty(0, np.int32), np.empty(0, np.int32)
    parts = [(np.empty(0, np.int32), np.empty(0, np.int32))]
    sql = (
        "SELECT src_id, dst_id FROM link WHERE gone_at IS NULL "
        "AND (rel = '' OR ' ' || rel || ' ' NOT LIKE '% nofollow %')"
    )
    parts += [_resolved(found, among) async for found in _pieces(connection, sql, _LINK)]
    source, target = zip(*parts, strict=True)
    return np.concatenate(source), np.concatenate(target)


def _resolved(
    found: NDArray[np.void], among: LinkedPages
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    row_of = among.row_of
    # What was found meanwhile is not among them yet.
    found = found[np.maximum(found["source"], found["target"]) < len(row_of)]
    source, target = row_of[found["source"]], row_of[found["target"]]
    # What an alias links is what its page linked once.
    own = (source >= 0) & (among.page_id[source] == found["source"]) & among.links[source]
    kept = own & (target >= 0)
    return source[kept], target[kept]


async def _table(
    connection: aiosqlite.Connection, sql: str, row: np.dtype[np.void]
) -> NDArray[np.void]:
    parts = [np.empty(0, row)]
    parts += [piece async for piece in _pieces(connection, sql, row)]
    return np.concatenate(parts)


async def _pieces(
    connection: aiosqlite.Connection, sql: str, row: np.dtype[np.void]
) -> AsyncIterator[NDArray[np.void]]:
    """The rows of an answer, some at a time."""
    async with connection.execute(sql) as cursor:
        cursor.row_factory = None
        while rows := tuple(await cursor.fetchmany(_ROWS)):
            yield np.fromiter(rows, row, len(rows))
