"""All that visits found of pages, as columns: what a replay asks policies about. Read-only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from freshet.storage import watched
from freshet.storage.words import KINDS, Kind, Role

_ROWS = 50_000

_PAGES = (
    "SELECT id, host_id, found_at, url FROM page "
    f"WHERE role = '{Role.PAGE}' AND alias_kind IS NULL AND held_back IS NULL ORDER BY id"
)
_CONTENT = [KINDS.index(kind) for kind in (Kind.NEW, Kind.UNCHANGED, Kind.CHANGED)]
#: The content that a visit showed for the first time, by eight bytes of its digest; else 0.
_VISITS = (
    "SELECT f.page_id, f.at, CASE f.kind "
    + " ".join(f"WHEN '{kind}' THEN {code}" for code, kind in enumerate(KINDS))
    + f" END, CASE WHEN f.kind IN ('{Kind.NEW}', '{Kind.CHANGED}') "
    "THEN substr(coalesce(v.text_digest, v.body_digest), 1, 8) END "
    "FROM finding AS f LEFT JOIN version AS v ON v.id = f.version_id ORDER BY f.id"
)
_PAST_PAGE = np.dtype([("id", np.int64), ("host", np.int64), ("found", np.float64)])
_VISIT = np.dtype(
    [("page", np.int64), ("at", np.float64), ("kind", np.int8), ("digest", np.uint64)]
)


@dataclass(frozen=True, slots=True)
class PastPages:
    """The n pages, in the order of their ids.

    Attributes:
        page_id, host_id: (n,), as stored.
        url: n canonical URLs.
        found_at: (n,), Unix seconds when it became known: by a link, a sitemap, or a seed.
    """

    page_id: NDArray[np.int64]
    host_id: NDArray[np.int64]
    url: list[str]
    found_at: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.page_id)


@dataclass(frozen=True, slots=True)
class PastVisits:
    """The m visits of these pages, as they are judged today, in the order of their ids.

    Attributes:
        page: (m,), row of the page as which it stands now.
        at: (m,), Unix seconds.
        kind: (m,), place in :data:`freshet.storage.records.KINDS`.
        digest: (m,), of the content that the visit showed first; 0: it showed none, or the
            content is not known any more.
    """

    page: NDArray[np.intp]
    at: NDArray[np.float64]
    kind: NDArray[np.int8]
    digest: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.page)


async def read(connection: aiosqlite.Connection) -> tuple[PastPages, PastVisits]:
    """The pages that ever had content, and their visits."""
    moved = await watched.moves(connection)
    pages, urls = await _pages(connection)
    visit = await _visits(connection)
    owner = watched.where_now(visit["page"], moved)
    had = np.unique(owner[np.isin(visit["kind"], _CONTENT)])
    kept = np.isin(pages["id"], had)
    pages = pages[kept]
    row = np.searchsorted(pages["id"], owner)
    mine = row < len(pages)
    mine[mine] = pages["id"][row[mine]] == owner[mine]
    found = pages["found"].copy()
    visit, row = visit[mine], row[mine]
    np.minimum.at(found, row, visit["at"])
    urls = [url for url, is_kept in zip(urls, kept.tolist(), strict=True) if is_kept]
    return (
        PastPages(pages["id"].copy(), pages["host"].copy(), urls, found),
        PastVisits(row, visit["at"].copy(), visit["kind"].copy(), visit["digest"].copy()),
    )


async def _pages(connection: aiosqlite.Connection) -> tuple[NDArray[np.void], list[str]]:
    parts, urls = [np.empty(0, _PAST_PAGE)], []
    async for rows in _pieces(connection, _PAGES):
        urls += [row[3] for row in rows]
        parts.append(np.fromiter(((row[0], row[1], row[2]) for row in rows), _PAST_PAGE, len(rows)))
    return np.concatenate(parts), urls


async def _visits(connection: aiosqlite.Connection) -> NDArray[np.void]:
    parts = [np.empty(0, _VISIT)]
    async for rows in _pieces(connection, _VISITS):
        told = ((page, at, kind, _number(digest)) for page, at, kind, digest in rows)
        parts.append(np.fromiter(told, _VISIT, len(rows)))
    return np.concatenate(parts)


def _number(digest: bytes | None) -> int:
    return 0 if digest is None else int.from_bytes(digest, "big")


async def _pieces(connection: aiosqlite.Connection, sql: str) -> AsyncIterator[tuple[Any, ...]]:
    """The rows of an answer, some at a time."""
    async with connection.execute(sql) as cursor:
        cursor.row_factory = None
        while rows := tuple(await cursor.fetchmany(_ROWS)):
            yield rows
