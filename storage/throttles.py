"""Which URLs of a site are known and not crawled, by what they have in common. Read-only."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

import aiosqlite

from freshet.storage.copies import KIND


@dataclass(frozen=True, slots=True)
class Reach:
    """How many pages of a site are ``known``: ``asked`` for, ``waiting`` to be, ``held`` back."""

    known: int
    asked: int
    waiting: int
    held: int


@dataclass(frozen=True, slots=True)
class Throttle:
    """URLs of a host that are ``held`` back for one reason, ``kind`` (``trap: …``, ``nofollow`` …).

    ``shape`` is what they have in common, None for what is no trap. Of those with it ``crawled``
    were let through; of a closed pattern they were read, ``copies`` is how many of them showed
    nothing of their own, and ``sampled`` how many were asked for since ``closed_at``. ``example``
    is one of those held back, None where the store alone cannot say.
    """

    host_id: int
    kind: str
    shape: str | None
    crawled: int
    held: int
    copies: int = 0
    sampled: int = 0
    closed_at: float | None = None
    example: str | None = None


async def reach(connection: aiosqlite.Connection, host_ids: Collection[int]) -> Reach:
    """How far the pages of these hosts were crawled."""
    rows = await connection.execute_fetchall(
        "SELECT count(*), sum(held_back IS NULL AND last_at IS NOT NULL), "
        "  sum(held_back IS NULL AND last_at IS NULL), sum(held_back IS NOT NULL) "
        "FROM json_each(?) AS k CROSS JOIN page AS p ON p.host_id = k.value WHERE role = 'page'",
        (_list(host_ids),),
    )
    ((known, *others),) = rows
    return Reach(known, *(count or 0 for count in others))


async def throttles(connection: aiosqlite.Connection, host_ids: Collection[int]) -> list[Throttle]:
    """What holds URLs of these hosts back, that which holds most of them first."""
    found = [
        *await _closed(connection, host_ids),
        *await _capped(connection, host_ids),
        *await _others(connection, host_ids),
    ]
    return sorted(found, key=lambda each: (-each.held, each.kind, each.shape or ""))


async def held(connection: aiosqlite.Connection, host_id: int, kind: str, limit: int) -> list[str]:
    """The first URLs of a host that are held back for a reason."""
    rows = await connection.execute_fetchall(
        "SELECT url FROM page WHERE host_id = ? AND held_back = ? ORDER BY id LIMIT ?",
        (host_id, kind, limit),
    )
    return [row[0] for row in rows]


async def _closed(connection: aiosqlite.Connection, host_ids: Collection[int]) -> list[Throttle]:
    rows = await connection.execute_fetchall(
        "SELECT t.host_id, t.kind, t.shape, t.admitted, t.refused, t.copies, "
        "  (SELECT count(*) FROM page AS p WHERE p.host_id = t.host_id AND p.pattern = t.shape "
        "     AND p.last_at > t.closed_at AND p.found_at > t.closed_at), t.closed_at, "
        "  (SELECT url FROM page AS p WHERE p.host_id = t.host_id AND p.pattern = t.shape "
        "     AND p.held_back = t.kind ORDER BY p.id LIMIT 1) "
        "FROM json_each(?) AS k CROSS JOIN trap AS t ON t.host_id = k.value "
        "WHERE t.kind = ? AND t.closed_at IS NOT NULL",
        (_list(host_ids), KIND),
    )
    return [Throttle(*row) for row in rows]


async def _capped(connection: aiosqlite.Connection, host_ids: Collection[int]) -> list[Throttle]:
    rows = await connection.execute_fetchall(
        "SELECT t.host_id, t.kind, t.shape, t.admitted, t.refused "
        "FROM json_each(?) AS k CROSS JOIN trap AS t ON t.host_id = k.value "
        "WHERE t.kind <> ? AND t.refused > 0",
        (_list(host_ids), KIND),
    )
    return [Throttle(*row) for row in rows]


async def _others(connection: aiosqlite.Connection, host_ids: Collection[int]) -> list[Throttle]:
    rows = await connection.execute_fetchall(
        # Beside min() SQLite takes the other columns from the row that has it.
        "SELECT p.host_id, p.held_back, count(*), p.url, min(p.id) "
        "FROM json_each(?) AS k CROSS JOIN page AS p ON p.host_id = k.value "
        "WHERE p.held_back NOT LIKE 'trap: %' GROUP BY 1, 2",
        (_list(host_ids),),
    )
    return [Throttle(row[0], row[1], None, 0, row[2], example=row[3]) for row in rows]


def _list(host_ids: Collection[int]) -> str:
    return json.dumps(sorted(host_ids))
