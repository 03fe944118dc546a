"""The pages that a daemon keeps fresh, as columns and as URLs to be fetched. Read-only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from storage.records import Digests, DueUrl, Kind, Reason, Role, Validators

_PAGE = np.dtype(
    [
        ("id", np.int64),
        ("host", np.int64),
        ("since", np.float64),
        ("captured", np.bool_),
        ("gone", np.bool_),
        ("failed", np.bool_),
        ("asked", np.float64),
        ("found_at", np.float64),
    ]
)
_COLUMNS = (
    "SELECT id, host_id, coalesce(checked_at, found_at), checked_at IS NOT NULL, "
    f"last_kind IS '{Kind.GONE}', last_kind IS '{Kind.FAILED}', coalesce(last_at, found_at), "
    "found_at, url FROM page WHERE held_back IS NULL"
)
_LOOK = np.dtype(
    [
        ("page_id", np.int64),
        ("at", np.float64),
        ("compared", np.bool_),
        ("changed", np.bool_),
        ("gone", np.bool_),
    ]
)
_LOOKS = (
    f"SELECT page_id, at, kind IN ('{Kind.CHANGED}', '{Kind.UNCHANGED}'), kind = '{Kind.CHANGED}', "
    f"kind = '{Kind.GONE}' FROM finding WHERE kind IN ('{Kind.NEW}', '{Kind.CHANGED}', "
    f"'{Kind.UNCHANGED}', '{Kind.GONE}') ORDER BY id"
)
_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class WatchedPages:
    """m pages in the order of their ids; all columns have length m.

    Attributes:
        page_id, host_id: as stored.
        url: canonical.
        since: Unix seconds since when the copy is kept without a look: of the last answer, or
            of when the page was found.
        captured: whether there is a copy.
        gone, failed: the page was gone, or could not be fetched, when it was last asked for.
        asked: Unix seconds of that, or of when it was found.
        found_at: Unix seconds.
    """

    page_id: NDArray[np.int64]
    host_id: NDArray[np.int64]
    url: list[str]
    since: NDArray[np.float64]
    captured: NDArray[np.bool_]
    gone: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    asked: NDArray[np.float64]
    found_at: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.page_id)

    def take(self, rows: NDArray[np.bool_]) -> WatchedPages:
        """Those of these rows."""
        return WatchedPages(
            self.page_id[rows], self.host_id[rows], list(compress(self.url, rows)),
            self.since[rows], self.captured[rows], self.gone[rows], self.failed[rows],
            self.asked[rows], self.found_at[rows],
        )  # fmt: skip


async def pages(
    connection: aiosqlite.Connection, page_ids: Sequence[int] | None = None
) -> WatchedPages:
    """All pages that are not held back, or those of these ids."""
    chosen = "" if page_ids is None else " AND id IN (SELECT value FROM json_each(?))"
    values = () if page_ids is None else (json.dumps(list(page_ids)),)
    parts: list[NDArray[np.void]] = []
    urls: list[str] = []
    async with connection.execute(f"{_COLUMNS}{chosen} ORDER BY id", values) as cursor:
        while rows := await cursor.fetchmany(_ROWS):
            parts.append(np.array([tuple(row)[:-1] for row in rows], _PAGE))
            urls += [row[-1] for row in rows]
    table = np.concatenate(parts) if parts else np.empty(0, _PAGE)
    page_id, host_id, *rest = (table[name].copy() for name in _PAGE.names or ())
    return WatchedPages(page_id, host_id, urls, *rest)


@dataclass(frozen=True, slots=True)
class Looks:
    """m visits that found a page's state, in the order in which they were made.

    Attributes:
        page_id: (m,).
        at: (m,), Unix seconds.
        compared: (m,), whether there was something to compare with.
        changed: (m,), whether it had changed; False where nothing was compared.
        gone: (m,), whether it was gone.
    """

    page_id: NDArray[np.int64]
    at: NDArray[np.float64]
    compared: NDArray[np.bool_]
    changed: NDArray[np.bool_]
    gone: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.page_id)


async def looks(connection: aiosqlite.Connection) -> Looks:
    """All visits that found content or its end, as they are judged today."""
    parts: list[NDArray[np.void]] = []
    async with connection.execute(_LOOKS) as cursor:
        while rows := await cursor.fetchmany(_ROWS):
            parts.append(np.array([tuple(row) for row in rows], _LOOK))
    table = np.concatenate(parts) if parts else np.empty(0, _LOOK)
    return Looks(*(table[name].copy() for name in _LOOK.names or ()))


async def due_urls(
    connection: aiosqlite.Connection, page_ids: Sequence[int], now: float
) -> list[DueUrl]:
    """Those of these pages that may still be fetched, in any order."""
    rows = await connection.execute_fetchall(
        "SELECT p.id, p.url, p.fetch_url, p.host_id, p.checked_at, p.role, p.depth, p.redirects, "
        "p.etag, p.last_modified, p.body_digest, p.text_digest, "
        "(SELECT min(id) FROM seed WHERE page_id = p.id) "
        "FROM json_each(?) AS wanted JOIN page AS p ON p.id = wanted.value "
        "WHERE p.held_back IS NULL",
        (json.dumps(list(page_ids)),),
    )
    return [_due_url(row, now) for row in rows]


def _due_url(row: aiosqlite.Row, now: float) -> DueUrl:
    return DueUrl(
        page_id=row[0], url=row[1], fetch_url=row[2], host_id=row[3], due_at=now,
        reason=Reason.DISCOVERY if row[4] is None else Reason.REFRESH,
        role=Role(row[5]), depth=row[6], redirects=row[7],
        validators=Validators(row[8], row[9]),
        digests=Digests(row[10], row[11]) if row[10] is not None else None,
        seed_id=row[12],
    )  # fmt: skip
