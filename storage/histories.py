"""The pages that are kept up to date, and all that was observed of them, as columns. Read-only.

A plan looks at every page at once. Hence columns instead of a value for each row: a million
pages with ten observations each are read in a quarter of a minute, in less than 1 GB.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from freshet.storage import watched
from freshet.storage.words import KINDS

#: Rows that SQLite hands over at once.
_ROWS = 50_000

#: A page of its own that has had content: no sitemap or feed, no alias, not held back.
_KEPT = (
    "role = 'page' AND alias_kind IS NULL AND alias_of IS NULL AND held_back IS NULL "
    "AND checked_at IS NOT NULL"
)

_OBSERVED = (
    "SELECT page_id, at, CASE kind "
    + " ".join(f"WHEN '{kind}' THEN {code}" for code, kind in enumerate(KINDS))
    + " END FROM finding"
)

_PAGE_HISTORY = np.dtype(
    [("id", np.int64), ("host", np.intp), ("at", np.float64), ("found_at", np.float64)]
)
_OBSERVATION = np.dtype([("page", np.intp), ("at", np.float64), ("kind", np.int8)])


@dataclass(frozen=True, slots=True)
class KeptPages:
    """The n pages that are kept up to date, in the order of their ids.

    Attributes:
        page_id: (n,), ascending.
        url: n canonical URLs.
        host: (n,), row of the page's host in ``hosts``.
        checked_at: (n,), Unix seconds of the last time that its content was confirmed.
        found_at: (n,), when it was found.
        hosts: every host of the store.
        gone: how many further pages were gone when last asked, and are left out.
    """

    page_id: NDArray[np.int64]
    url: list[str]
    host: NDArray[np.intp]
    checked_at: NDArray[np.float64]
    found_at: NDArray[np.float64]
    hosts: list[KeptHost]
    gone: int

    def __len__(self) -> int:
        return len(self.page_id)


@dataclass(frozen=True, slots=True)
class KeptHost:
    """A host as politeness knows it; ``lane`` and ``delay_s`` are None before an exchange.

    Hosts of one lane share its delay, the one that was in force after its last exchange.
    """

    origin: str
    lane: str | None
    delay_s: float | None


@dataclass(frozen=True, slots=True)
class PastObservations:
    """The m observations of some pages, each page's together and as they were made.

    Attributes:
        page: (m,), row of the page, ascending.
        at: (m,), Unix seconds; they fall within a page where the clock was set back.
        kind: (m,), place in :data:`freshet.storage.records.KINDS`.
    """

    page: NDArray[np.intp]
    at: NDArray[np.float64]
    kind: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.page)


async def page_histories(connection: aiosqlite.Connection) -> KeptPages:
    """The pages that are kept up to date."""
    hosts, row_of = await _hosts(connection)
    urls: list[str] = []
    pieces = []
    sql = (
        "SELECT id, host_id, checked_at, found_at, url FROM page "
        f"WHERE {_KEPT} AND last_kind IS NOT 'gone' ORDER BY id"
    )
    async for rows in _pieces(connection, sql):
        urls.extend(row[4] for row in rows)
        columns = ((row[0], row_of[row[1]], row[2], row[3]) for row in rows)
        pieces.append(np.fromiter(columns, _PAGE_HISTORY, len(rows)))
    page = _joined(pieces, _PAGE_HISTORY)
    gone = await _gone(connection)
    # Copies: what is looked up often should not stand a record's length apart.
    page_id, host, at, found_at = (page[name].copy() for name in _PAGE_HISTORY.names or ())
    return KeptPages(page_id, urls, host, at, found_at, hosts, gone)


async def observations(
    connection: aiosqlite.Connection, page_id: NDArray[np.int64]
) -> PastObservations:
    """All observations of the pages with these ids, which are ascending.

    Those of a page that has moved are observations of the page where it stands now.
    """
    pieces = []
    moved = await watched.moves(connection)
    # In the order of the table: sorting afterwards is cheaper than a look-up for each row.
    async for rows in _pieces(connection, _OBSERVED):
        piece = np.fromiter(rows, _OBSERVATION, len(rows))
        piece["page"], known = _rows_of(watched.where_now(piece["page"], moved), page_id)
        pieces.append(piece[known])
    observed = _joined(pieces, _OBSERVATION)
    # Stable: a page's observations stay in the order in which they were made.
    order = np.argsort(observed["page"], kind="stable")
    return PastObservations(observed["page"][order], observed["at"][order], observed["kind"][order])


def _rows_of(
    ids: NDArray[np.int64], page_id: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where in ``page_id`` each id stands, and whether it stands there at all."""
    if not len(page_id):
        return np.zeros(len(ids), np.intp), np.zeros(len(ids), np.bool_)
    rows = np.minimum(np.searchsorted(page_id, ids), len(page_id) - 1)
    return rows, page_id[rows] == ids


async def _hosts(connection: aiosqlite.Connection) -> tuple[list[KeptHost], dict[int, int]]:
    """All hosts with the state of their lanes, and the row of each by its id."""
    rows = await connection.execute_fetchall(
        "SELECT h.id, h.origin, h.lane, (SELECT s.delay_s FROM host AS s WHERE s.lane = h.lane "
        "  ORDER BY s.last_exchange_at DESC, s.id DESC LIMIT 1) FROM host AS h ORDER BY h.id"
    )
    hosts = [KeptHost(row[1], row[2], row[3]) for row in rows]
    return hosts, {row[0]: place for place, row in enumerate(rows)}


async def _gone(connection: aiosqlite.Connection) -> int:
    rows = await connection.execute_fetchall(
        f"SELECT count(*) FROM page WHERE {_KEPT} AND last_kind = 'gone'"
    )
    return int(next(iter(rows))[0])


async def _pieces(connection: aiosqlite.Connection, sql: str) -> AsyncIterator[tuple[Any, ...]]:
    """The rows of an answer, some at a time."""
    async with connection.execute(sql) as cursor:
        cursor.row_factory = None
        while rows := tuple(await cursor.fetchmany(_ROWS)):
            yield rows


def _joined(pieces: list[NDArray[np.void]], row: np.dtype[np.void]) -> NDArray[np.void]:
    return np.concatenate(pieces) if pieces else np.empty(0, row)
