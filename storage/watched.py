"""The pages that a daemon keeps fresh, as columns and as URLs to be fetched. Read-only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from freshet.storage.records import Digests, DueUrl, Validators
from freshet.storage.words import AliasKind, Kind, Reason, Role, Rung

_PAGE = np.dtype(
    [
        ("id", np.int64),
        ("host", np.int64),
        ("since", np.float64),
        ("captured", np.bool_),
        ("gone", np.bool_),
        ("failed", np.bool_),
        ("elsewhere", np.bool_),
        ("alias", np.bool_),
        ("permanent", np.bool_),
        ("asked", np.float64),
        ("found_at", np.float64),
        ("sitemap", np.bool_),
    ]
)
#: Of the URLs that lead here for good: a page that has moved takes its place along.
_MOVED = (
    "(SELECT {} FROM page AS old WHERE old.alias_of = page.id "
    f"AND old.alias_kind = '{AliasKind.PERMANENT}')"
)
_COLUMNS = (
    f"SELECT id, host_id, coalesce(checked_at, {_MOVED.format('max(old.checked_at)')}, found_at), "
    "checked_at IS NOT NULL AND alias_kind IS NULL, "
    f"last_kind IS '{Kind.GONE}', last_kind IS '{Kind.FAILED}', "
    f"coalesce(last_kind IN ('{Kind.REDIRECTED}', '{Kind.REFUSED}', '{Kind.SKIPPED}'), 0), "
    f"alias_kind IS NOT NULL, alias_kind IS '{AliasKind.PERMANENT}', coalesce(last_at, found_at), "
    f"min(found_at, coalesce({_MOVED.format('min(old.found_at)')}, found_at)), "
    f"role = '{Role.SITEMAP}', url "
    "FROM page WHERE held_back IS NULL"
)
_LOOK = np.dtype(
    [
        ("page_id", np.int64),
        ("at", np.float64),
        ("compared", np.bool_),
        ("changed", np.bool_),
        ("gone", np.bool_),
        ("moved", np.bool_),
    ]
)
_LOOKS = (
    f"SELECT page_id, at, kind IN ('{Kind.CHANGED}', '{Kind.UNCHANGED}'), kind = '{Kind.CHANGED}', "
    f"kind = '{Kind.GONE}', kind = '{Kind.CHANGED}' OR kind = '{Kind.UNCHANGED}' "
    f"AND coalesce(rung, '') NOT IN ('{Rung.NOT_MODIFIED}', '{Rung.BODY}') "
    f"FROM finding WHERE kind IN "
    f"('{Kind.NEW}', '{Kind.CHANGED}', '{Kind.UNCHANGED}', '{Kind.GONE}')"
)
#: Whether the first content of a page was that of another URL before.
_CAME = (
    f"(SELECT kind <> '{Kind.NEW}' FROM finding WHERE page_id = {{}} AND kind IN "
    f"('{Kind.NEW}', '{Kind.CHANGED}', '{Kind.UNCHANGED}') ORDER BY id LIMIT 1)"
)
_MOVES = (
    f"SELECT alias_of, id, {_CAME.format('page.alias_of')}, {_CAME.format('page.id')} FROM page "
    f"WHERE alias_kind = '{AliasKind.PERMANENT}' AND alias_of IS NOT NULL "
    "AND version_id IS NOT NULL{} ORDER BY alias_of, checked_at DESC, id DESC"
)
_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class WatchedPages:
    """m pages in the order of their ids; all columns have length m.

    Attributes:
        page_id, host_id: as stored.
        url: canonical.
        since: Unix seconds since when the copy is kept without a look: of the last answer, or
            of when the page was found. Of a page that has moved here and was not asked for yet,
            as at its old URL.
        captured: whether there is a copy of what this URL shows.
        gone, failed, elsewhere: the page was gone, could not be fetched, or led elsewhere, was
            refused or of no use, when it was last asked for.
        alias, permanent: it is another name of a page; for good.
        asked: Unix seconds of when it was last asked for, or of when it was found.
        found_at: Unix seconds, the first of all URLs that lead here for good.
        sitemap: whether it is one.
    """

    page_id: NDArray[np.int64]
    host_id: NDArray[np.int64]
    url: list[str]
    since: NDArray[np.float64]
    captured: NDArray[np.bool_]
    gone: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    elsewhere: NDArray[np.bool_]
    alias: NDArray[np.bool_]
    permanent: NDArray[np.bool_]
    asked: NDArray[np.float64]
    found_at: NDArray[np.float64]
    sitemap: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.page_id)

    def take(self, rows: NDArray[np.bool_]) -> WatchedPages:
        """Those of these rows."""
        return WatchedPages(
            self.page_id[rows], self.host_id[rows], list(compress(self.url, rows)),
            self.since[rows], self.captured[rows], self.gone[rows], self.failed[rows],
            self.elsewhere[rows], self.alias[rows], self.permanent[rows], self.asked[rows],
            self.found_at[rows], self.sitemap[rows],
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
        moved: (m,), whether its bytes were others than before, changed or not.
    """

    page_id: NDArray[np.int64]
    at: NDArray[np.float64]
    compared: NDArray[np.bool_]
    changed: NDArray[np.bool_]
    gone: NDArray[np.bool_]
    moved: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.page_id)


async def looks(connection: aiosqlite.Connection) -> Looks:
    """All visits that found content or its end, as they are judged today.

    Those of a page that has moved are visits of the page where it stands now.
    """
    found = await _looks(connection, f"{_LOOKS} ORDER BY id", ())
    return replace(found, page_id=where_now(found.page_id, await moves(connection)))


async def moves(connection: aiosqlite.Connection, page_id: int | None = None) -> dict[int, int]:
    """The pages that have moved, to this page or to any: by their old ids the new one.

    A URL redirects to another for good, and that showed the same page when it was first asked.
    Of several that lead there it was the one with the latest copy, and so on back from that.
    """
    sql = _MOVES.format("" if page_id is None else " AND alias_of = ?")
    found: dict[int, int] = {}
    comes: dict[int, bool] = {}
    rows = await connection.execute_fetchall(sql, () if page_id is None else (page_id,))
    for new, old, new_came, old_came in rows:
        if comes.setdefault(new, bool(new_came)):
            found[old] = new
            comes[new] = bool(old_came)
    return found


def where_now(page_id: NDArray[np.int64], moved: Mapping[int, int]) -> NDArray[np.int64]:
    """(m,), the pages as which these stand now, by what has ``moved`` (:func:`moves`)."""
    if not moved:
        return page_id
    old = np.array(sorted(moved), np.int64)
    new = np.array([moved[each] for each in old.tolist()], np.int64)
    place = np.minimum(np.searchsorted(old, page_id), len(old) - 1)
    return np.where(old[place] == page_id, new[place], page_id)


async def ids(connection: aiosqlite.Connection, urls: Sequence[str]) -> list[int]:
    """The ids of those of these URLs (canonical) that are known, in any order."""
    rows = await connection.execute_fetchall(
        "SELECT p.id FROM json_each(?) AS wanted JOIN page AS p ON p.url = wanted.value",
        (json.dumps(list(urls)),),
    )
    return [row[0] for row in rows]


async def _looks(connection: aiosqlite.Connection, sql: str, parameters: tuple[str, ...]) -> Looks:
    parts: list[NDArray[np.void]] = []
    async with connection.execute(sql, parameters) as cursor:
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


async def visits(connection: aiosqlite.Connection) -> int:
    """How many observations there are."""
    rows = await connection.execute_fetchall("SELECT count(*) FROM observation")
    return int(next(iter(rows))[0])
