"""What the patterns of URLs yield: how many of those read were pages of their own. Read-only.

A pattern's yield is the share of its URLs that were asked for and gave a page of their own: no
copy, no barren page, not gone, no failure. Of few URLs it says little; :attr:`Yield.shrunk` draws
it to that of its host, as if so many of the host's had been read with them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import aiosqlite

from freshet.storage.copies import KIND

#: So many URLs of a pattern weigh as much as all others of its host: half of those that close it.
STRENGTH: Final = 15.0


@dataclass(frozen=True, slots=True)
class Yield:
    """Of the URLs of a pattern (None: those in none) ``read`` were asked for, ``own`` were pages.

    ``of_host`` is the share of pages of their own among all URLs of the host that were asked for.
    """

    host_id: int
    pattern: str | None
    read: int
    own: int
    of_host: float

    @property
    def shrunk(self) -> float:
        """The share of ``own``, drawn to that of the host; from 0 to 1."""
        return (self.own + STRENGTH * self.of_host) / (self.read + STRENGTH)


async def yields(connection: aiosqlite.Connection, host_ids: Collection[int]) -> list[Yield]:
    """Of these hosts all patterns of which a URL was asked for; None among them."""
    rows = await connection.execute_fetchall(
        "SELECT p.host_id, p.pattern, count(*), "
        "  sum(p.last_kind IN ('new', 'changed', 'unchanged') AND coalesce(p.copy_of, p.id) = p.id)"
        "FROM json_each(?) AS k CROSS JOIN page AS p ON p.host_id = k.value "
        "WHERE p.role = 'page' AND p.last_kind NOT IN ('redirected', 'refused', 'skipped') "
        "GROUP BY p.host_id, p.pattern ORDER BY p.host_id, p.pattern",
        (json.dumps(sorted(host_ids)),),
    )
    read, own = defaultdict[int, int](int), defaultdict[int, int](int)
    for host_id, _, count, pages in rows:
        read[host_id] += count
        own[host_id] += pages
    return [
        Yield(host_id, pattern, count, pages, own[host_id] / read[host_id])
        for host_id, pattern, count, pages in rows
    ]


async def representatives(connection: aiosqlite.Connection) -> dict[int, int]:
    """The copies in closed patterns; of each the first of its pattern, which stands for all.

    What is endless counts for one page, however many of its pages were read before it was closed.
    """
    rows = await connection.execute_fetchall(
        "SELECT p.id, min(p.id) OVER (PARTITION BY t.host_id, t.shape) FROM trap AS t "
        "JOIN page AS p ON p.host_id = t.host_id AND p.pattern = t.shape "
        "WHERE t.kind = ? AND t.closed_at IS NOT NULL AND p.copy_of <> p.id AND p.depth > 0",
        (KIND,),
    )
    return {row[0]: row[1] for row in rows}
