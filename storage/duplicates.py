"""View ``duplicate``: which pages are copies of which. Read-only."""

from __future__ import annotations

from dataclasses import dataclass

import aiosqlite

from freshet.storage import near_duplicates
from freshet.storage.near_duplicates import Parameters


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A page that is the same as its group's representative.

    ``resemblance`` (0 to 1) is with the text round which the group formed, an estimate
    with its standard error; ``at`` is when it was compared.
    """

    url: str
    resemblance: float
    resemblance_se: float
    at: float


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Pages that count as one, under the URL that stands for them."""

    representative: str
    duplicates: list[Duplicate]


@dataclass(frozen=True, slots=True)
class IndexState:
    """How far the pages have been compared.

    ``parameters`` are None before the first time; ``unseen`` observations have not been
    looked at, and ``waiting`` pages have not been placed.
    """

    parameters: Parameters | None
    pages: int
    groups: int
    duplicates: int
    unseen: int
    waiting: int


async def one_of_group(connection: aiosqlite.Connection) -> dict[int, int]:
    """The representatives of all pages that are duplicates, by the ids of these.

    A page that is left out stands for itself. In SQL, over all pages: ``page LEFT JOIN
    duplicate ON page_id = page.id`` and ``coalesce(representative_id, page.id)``.
    """
    rows = await connection.execute_fetchall(
        "SELECT l.page_id, g.representative_id FROM lsh_page AS l "
        "CROSS JOIN lsh_group AS g ON g.leader_id = l.leader_id "
        "WHERE g.representative_id <> l.page_id"
    )
    return {row[0]: row[1] for row in rows}


async def groups(connection: aiosqlite.Connection, limit: int) -> list[DuplicateGroup]:
    """The largest groups, at most ``limit``; the duplicates by URL."""
    rows = await connection.execute_fetchall(
        "SELECT g.representative_id, p.url FROM lsh_group AS g "
        "JOIN page AS p ON p.id = g.representative_id "
        "ORDER BY (SELECT count(*) FROM lsh_page AS m WHERE m.leader_id = g.leader_id "
        "          AND m.leader_id <> m.page_id) DESC, p.url LIMIT ?",
        (limit,),
    )
    return [DuplicateGroup(row[1], await _duplicates(connection, row[0])) for row in rows]


async def _duplicates(connection: aiosqlite.Connection, representative_id: int) -> list[Duplicate]:
    rows = await connection.execute_fetchall(
        "SELECT p.url, d.resemblance, d.resemblance_se, d.at FROM duplicate AS d "
        "JOIN page AS p ON p.id = d.page_id WHERE d.representative_id = ? ORDER BY p.url",
        (representative_id,),
    )
    return [Duplicate(*row) for row in rows]


async def state(connection: aiosqlite.Connection) -> IndexState:
    """How far the pages have been compared, and what that gave."""
    rows = await connection.execute_fetchall(
        "SELECT (SELECT count(*) FROM lsh_page), (SELECT count(*) FROM lsh_group), "
        "(SELECT count(*) FROM duplicate), "
        "(SELECT count(*) FROM observation WHERE id > coalesce("
        "  (SELECT observation_id FROM lsh), 0)), "
        "(SELECT count(*) FROM lsh_page WHERE leader_id IS NULL)"
    )
    return IndexState(await near_duplicates.parameters(connection), *next(iter(rows)))
