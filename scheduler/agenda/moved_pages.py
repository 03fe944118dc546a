"""Pages that move: the history of the old URL is handed on to the new one.

A redirect says where a page may stand now; that it is the same page is known when the target has
been visited, and its first copy was found to be that of the old URL.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

import aiosqlite

from freshet.scheduler.agenda.pages import Watchlist
from freshet.storage.queries import columns
from freshet.storage.records import Visit
from freshet.storage.words import AliasKind, Kind

_DAY_S: Final = 86_400.0


class Heir(Protocol):
    """A learner of pages, which have rows."""

    def inherit(self, old: int, new: int) -> None:
        """Hand the state of one row on to another, where its page stands now."""
        ...


def has_come(pages: Watchlist, visit: Visit) -> bool:
    """Return whether a page's first copy was compared with one of its old URL."""
    row = pages.row(visit.due.page_id)
    if row is None or pages["captured"][row] or visit.due.digests is not None:
        return False
    return visit.observation.kind in {Kind.CHANGED, Kind.UNCHANGED}


async def inherit(
    reader: aiosqlite.Connection,
    pages: Watchlist,
    learners: Collection[Heir],
    page_ids: Collection[int],
) -> None:
    """Hand on to pages what was learnt at their old URLs."""
    for page_id in page_ids:
        row = pages.row(page_id)
        if row is None:
            continue
        for old in await columns.moves(reader, page_id):
            before = pages.row(old)
            if before is not None:
                for each in learners:
                    each.inherit(before, row)


async def follow(reader: aiosqlite.Connection, pages: Watchlist, visits: Collection[Visit]) -> None:
    """Move pages that redirect for good to the targets of these visits."""
    for visit in visits:
        row, alias = pages.row(visit.due.page_id), visit.alias
        if row is None or alias is None or alias.kind is not AliasKind.PERMANENT:
            continue
        for page_id in await columns.ids(reader, [alias.url]):
            target = pages.row(page_id)
            if target is not None:
                since, at = float(pages["since"][row]), visit.observation.at / _DAY_S
                pages.led_to(target, since, at)
