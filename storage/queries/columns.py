"""Pages and observations of a whole store as columns, for daemon, plan and replay. Read-only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
from aiosqlite import Connection as Reader
from numpy.typing import NDArray

from freshet.storage.database import (
    as_columns,
    as_json,
    code_of,
    columns_of,
    load_columns,
    pieces,
    row_of,
    row_to,
    table_of,
)
from freshet.storage.entries import KINDS, Audit, Columns, Host, stored
from freshet.storage.records import DueUrl
from freshet.storage.tables.frontier import due_columns
from freshet.storage.tables.hosts import politeness

#: Of the URLs that lead here for good.
_MOVED = (
    "(SELECT {} FROM page AS old WHERE old.alias_of = page.id AND old.alias_kind = 'permanent')"
)
#: Whether another URL had the first content of a page before.
_CAME = (
    "(SELECT kind <> 'new' FROM finding WHERE page_id = {} AND kind IN "
    "('new', 'changed', 'unchanged') ORDER BY id LIMIT 1)"
)
_MOVES = (
    f"SELECT alias_of, id, {_CAME.format('page.alias_of')}, {_CAME.format('page.id')} FROM page "
    f"WHERE alias_kind = 'permanent' AND alias_of IS NOT NULL "
    "AND version_id IS NOT NULL{} ORDER BY alias_of, checked_at DESC, id DESC"
)


@dataclass(frozen=True, slots=True)
class WatchedPages(Columns):
    """m pages in the order of their ids; all columns have length m.

    Attributes:
        page_id, host_id: as stored.
        url: canonical.
        since: Unix seconds of the last check of the copy: of the last response, or of the page's
            discovery. A page that has moved here and was not visited yet has its old URL's.
        captured: whether the store has a copy of this URL's content.
        gone, failed, elsewhere: at the last visit the page was gone (and no page has got a link to
            it since), could not be fetched, or redirected, was refused or skipped.
        alias, permanent: it is an alias of a page; a permanent one.
        leads_to: the id of the page to which it redirects, −1 if unknown.
        had: whether the store once had a copy of this URL's content.
        asked: Unix seconds of the last visit, or of the discovery.
        found_at: Unix seconds, the first of all URLs that lead here for good.
        is_list: whether it is a sitemap or a feed.
        depth: links from a seed to it.
    """

    page_id: NDArray[np.int64] = field(metadata=stored("int64"))
    host_id: NDArray[np.int64] = field(metadata=stored("int64"))
    url: list[str] = field(metadata=stored("object"))
    since: NDArray[np.float64] = field(metadata=stored("float64"))
    captured: NDArray[np.bool_] = field(metadata=stored("bool"))
    gone: NDArray[np.bool_] = field(metadata=stored("bool"))
    failed: NDArray[np.bool_] = field(metadata=stored("bool"))
    elsewhere: NDArray[np.bool_] = field(metadata=stored("bool"))
    alias: NDArray[np.bool_] = field(metadata=stored("bool"))
    permanent: NDArray[np.bool_] = field(metadata=stored("bool"))
    leads_to: NDArray[np.int64] = field(metadata=stored("int64"))
    had: NDArray[np.bool_] = field(metadata=stored("bool"))
    asked: NDArray[np.float64] = field(metadata=stored("float64"))
    found_at: NDArray[np.float64] = field(metadata=stored("float64"))
    is_list: NDArray[np.bool_] = field(metadata=stored("bool"))
    depth: NDArray[np.int64] = field(metadata=stored("int64"))


#: As :func:`freshet.storage.tables.links.shown_again` has it.
_SHOWN_AGAIN = (
    "EXISTS (SELECT 1 FROM link AS l WHERE l.dst_id = page.id AND l.first_seen_at > page.last_at "
    "AND l.first_seen_at + (SELECT max(o.at) FROM observation AS o WHERE o.page_id = l.src_id "
    "AND o.kind IN ('new', 'changed', 'unchanged') AND o.at < l.first_seen_at) > 2 * page.last_at)"
)
_PAGES = (
    "SELECT "
    + columns_of(
        WatchedPages,
        page_id="id",
        since=f"coalesce(checked_at, {_MOVED.format('max(old.checked_at)')}, found_at)",
        captured="checked_at IS NOT NULL AND alias_kind IS NULL",
        # Not AND, which would look at the links of every page.
        gone=f"iif(last_kind IS 'gone', NOT {_SHOWN_AGAIN}, false)",
        failed="last_kind IS 'failed'",
        elsewhere="coalesce(last_kind IN ('redirected', 'refused', 'skipped'), 0)",
        alias="alias_kind IS NOT NULL",
        permanent="alias_kind IS 'permanent'",
        had="checked_at IS NOT NULL",
        leads_to="iif(alias_kind IN ('permanent', 'temporary'), coalesce(alias_of, -1), -1)",
        asked="coalesce(last_at, found_at)",
        found_at=f"min(found_at, coalesce({_MOVED.format('min(old.found_at)')}, found_at))",
        is_list="role <> 'page'",
        depth="depth",
    )
    + " FROM page WHERE held_back IS NULL"
)


async def pages(db: Reader, page_ids: Sequence[int] | None = None) -> WatchedPages:
    """Return all pages that are not held back, or the pages with these ids."""
    chosen = "" if page_ids is None else " AND id IN (SELECT value FROM json_each(?))"
    values = () if page_ids is None else (as_json(list(page_ids)),)
    return await load_columns(db, WatchedPages, f"{_PAGES}{chosen} ORDER BY id", values)


async def watched(db: Reader) -> int:
    """Count the pages that are not held back, and not gone."""
    text = "SELECT count(*) FROM page WHERE held_back IS NULL AND last_kind IS NOT 'gone'"
    return int(next(iter(await db.execute_fetchall(text)))[0])


async def known(db: Reader) -> int:
    """Count pages as users do: URLs with content, or not requested yet.

    Left out are sitemaps and feeds, other names of pages, and URLs without content.
    """
    text = (
        "SELECT count(*) FROM page WHERE held_back IS NULL AND role = 'page' "
        "AND alias_kind IS NULL "
        "AND (last_kind IS NULL OR checked_at IS NOT NULL AND last_kind <> 'gone')"
    )
    return int(next(iter(await db.execute_fetchall(text)))[0])


@dataclass(frozen=True, slots=True)
class VisitColumns(Columns):
    """m visits that found content or its end, in their order; every column has length m.

    Attributes:
        page_id: as stored.
        at: Unix seconds.
        compared: whether a version to compare with existed.
        changed: whether the page had changed; False without a comparison.
        gone: whether the page was gone.
        moved: whether its bytes had changed, with the text or not.
    """

    page_id: NDArray[np.int64] = field(metadata=stored("int64"))
    at: NDArray[np.float64] = field(metadata=stored("float64"))
    compared: NDArray[np.bool_] = field(metadata=stored("bool"))
    changed: NDArray[np.bool_] = field(metadata=stored("bool"))
    gone: NDArray[np.bool_] = field(metadata=stored("bool"))
    moved: NDArray[np.bool_] = field(metadata=stored("bool"))


_SEEN = (
    "SELECT "
    + columns_of(
        VisitColumns,
        compared="kind IN ('changed', 'unchanged')",
        changed="kind = 'changed'",
        gone="kind = 'gone'",
        moved="kind = 'changed' OR kind = 'unchanged' "
        "AND coalesce(rung, '') NOT IN ('304', 'body')",
    )
    + " FROM finding WHERE kind IN ('new', 'changed', 'unchanged', 'gone')"
)


async def visit_columns(db: Reader, page_id: int | None = None, *, after: int = 0) -> VisitColumns:
    """Return all visits that found content or its end, with current verdicts; or one page's visits.

    ``after`` an observation: only later ones.
    Visits of a page that has moved count for the page at its new place.
    """
    moved = await moves(db, page_id)
    chosen, values = f" AND id > {int(after)}", tuple[str, ...]()
    if page_id is not None:
        chosen += " AND page_id IN (SELECT value FROM json_each(?))"
        values = (as_json([page_id, *moved]),)
    found = await load_columns(db, VisitColumns, f"{_SEEN}{chosen} ORDER BY id", values)
    return replace(found, page_id=where_now(found.page_id, moved))


async def moves(db: Reader, page_id: int | None = None) -> dict[int, int]:
    """Return the new page of each page that has moved, to this page or to any.

    A page has moved if its URL redirects to another for good, which showed the same page at its
    first visit. Of several such URLs it is the one with the latest copy, and so on back from that.
    """
    sql = _MOVES.format("" if page_id is None else " AND alias_of = ?")
    found: dict[int, int] = {}
    comes: dict[int, bool] = {}
    rows = await db.execute_fetchall(sql, () if page_id is None else (page_id,))
    for new, old, new_came, old_came in rows:
        if comes.setdefault(new, bool(new_came)):
            found[old] = new
            comes[new] = bool(old_came)
    return found


def where_now(page_id: NDArray[np.int64], moved: Mapping[int, int]) -> NDArray[np.int64]:
    """Return (m,), the pages at the new places of these, by ``moved`` (:func:`moves`)."""
    if not moved:
        return page_id
    old = np.array(sorted(moved), np.int64)
    new = np.array([moved[each] for each in old.tolist()], np.int64)
    place = np.minimum(np.searchsorted(old, page_id), len(old) - 1)
    return np.where(old[place] == page_id, new[place], page_id)


async def ids(db: Reader, urls: Sequence[str]) -> list[int]:
    """Return the ids of the known ones of these URLs (canonical), in any order."""
    sql = "SELECT p.id FROM json_each(?) AS wanted JOIN page AS p ON p.url = wanted.value"
    return [row[0] for row in await db.execute_fetchall(sql, (as_json(list(urls)),))]


async def due_urls(db: Reader, page_ids: Sequence[int], now: float) -> list[DueUrl]:
    """Return the pages among these that may still be fetched, in any order."""
    columns = due_columns(
        due_at=":now", reason="iif(p.checked_at IS NULL, 'discovery', 'refresh')", attempt="0"
    )
    rows = await db.execute_fetchall(
        f"SELECT {columns} FROM json_each(:pages) AS wanted JOIN page AS p ON p.id = wanted.value "
        "WHERE p.held_back IS NULL",
        {"now": now, "pages": as_json(list(page_ids))},
    )
    return list(map(row_to(DueUrl), rows))


async def visits(db: Reader) -> int:
    """Count the observations."""
    return int(next(iter(await db.execute_fetchall("SELECT count(*) FROM observation")))[0])


# -- histories: all observations of the pages that are kept up to date, for a plan
# As columns a million pages with ten observations each are read in 15 s and less than 1 GB.

#: A page that has had content: not a sitemap or feed, not an alias, not held back.
_KEPT = (
    "role = 'page' AND alias_kind IS NULL AND alias_of IS NULL AND held_back IS NULL "
    "AND checked_at IS NOT NULL"
)

_OBSERVED = f"SELECT page_id, at, {code_of(KINDS, 'kind')}, 0 FROM finding"


@dataclass(frozen=True, slots=True)
class KeptPages(Columns):
    """The n pages that are kept up to date, in the order of their ids.

    Attributes:
        page_id: (n,), ascending.
        url: n canonical URLs.
        host: (n,), row of the page's host in ``hosts``.
        checked_at: (n,), Unix seconds of the last confirmation of its content.
        found_at: (n,), Unix seconds of its discovery.
        hosts: every host of the store, without robots.txt.
        gone: number of pages left out that were gone at the last visit.
    """

    page_id: NDArray[np.int64]
    url: list[str]
    host: NDArray[np.intp]
    checked_at: NDArray[np.float64]
    found_at: NDArray[np.float64]
    hosts: list[Host]
    gone: int


@dataclass(frozen=True, slots=True)
class PastObservations(Columns):
    """The m observations of some pages, as judged today, each page's in their order.

    Attributes:
        page: (m,), row of the page at its present place.
        at: (m,), Unix seconds; they decrease within a page where the clock was set back.
        kind: (m,), index in :data:`freshet.storage.entries.KINDS`.
        digest: (m,), of the content that the visit showed first; 0 without one, or if not read.
    """

    page: NDArray[np.intp] = field(metadata=stored("intp"))
    at: NDArray[np.float64] = field(metadata=stored("float64"))
    kind: NDArray[np.int8] = field(metadata=stored("int8"))
    digest: NDArray[np.uint64] = field(metadata=stored("uint64"))


@dataclass(frozen=True, slots=True)
class _PastPages(Columns):
    """n pages in the order of their ids, with the attributes of :class:`KeptPages`."""

    page_id: NDArray[np.int64] = field(metadata=stored("int64"))
    host_id: NDArray[np.int64] = field(metadata=stored("int64"))
    url: list[str] = field(metadata=stored("object"))
    checked_at: NDArray[np.float64] = field(metadata=stored("float64"))
    found_at: NDArray[np.float64] = field(metadata=stored("float64"))


async def _past_pages(db: Reader, which: str) -> _PastPages:
    columns = columns_of(_PastPages, page_id="id", checked_at="coalesce(checked_at, found_at)")
    sql = f"SELECT {columns} FROM page WHERE {which} ORDER BY id"
    return await load_columns(db, _PastPages, sql)


async def page_histories(db: Reader) -> KeptPages:
    """Return the pages that are kept up to date."""
    hosts = await politeness(db)
    page = await _past_pages(db, f"{_KEPT} AND last_kind IS NOT 'gone'")
    gone = f"SELECT count(*) FROM page WHERE {_KEPT} AND last_kind = 'gone'"
    ((gone_count,),) = await db.execute_fetchall(gone)
    host = np.searchsorted([host.host_id for host in hosts], page.host_id)
    return KeptPages(
        page.page_id, page.url, host, page.checked_at, page.found_at, hosts=hosts, gone=gone_count
    )


async def observations(db: Reader, page_id: NDArray[np.int64]) -> PastObservations:
    """Return all observations of the pages with these ids, which are ascending.

    Observations of a page that has moved count for the page at its new place.
    """
    moved = await moves(db)
    # In the order of the table: sorting afterwards is cheaper than an index search for each row.
    observed = await load_columns(db, PastObservations, _OBSERVED)
    page, known = _rows_of(where_now(observed.page, moved), page_id)
    # Stable: a page's observations stay in the order in which they were made.
    order = np.flatnonzero(known)[np.argsort(page[known], kind="stable")]
    return replace(observed, page=page).take(order)


def _rows_of(
    ids: NDArray[np.int64], page_id: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the row of each id in ``page_id``, and whether it has one."""
    if not len(page_id):
        return np.zeros(len(ids), np.intp), np.zeros(len(ids), np.bool_)
    rows = np.minimum(np.searchsorted(page_id, ids), len(page_id) - 1)
    return rows, page_id[rows] == ids


# -- audits: visits to random samples ------------------------------------------


async def audits(db: Reader, since: float) -> NDArray[np.void]:
    """Return the audits since a time that were answered.

    The fields are ``at``, in Unix seconds, ``stale`` (whether the copy was), and the fields of
    :class:`Audit`.
    """
    row = np.dtype([("at", "f8"), ("stale", "?"), *((it.name, "f8") for it in fields(Audit))])
    sql = (
        f"SELECT f.at, f.kind <> 'unchanged', {columns_of(Audit, 'a')} FROM audit AS a "
        "CROSS JOIN finding AS f ON f.id = a.observation_id "
        "WHERE f.at >= ? AND f.kind IN ('changed', 'unchanged', 'gone') ORDER BY f.id"
    )
    return await table_of(db, sql, row, (since,))


# -- past: all results of visits, for a replay of policies -------------------

_CONTENT = [KINDS.index(kind) for kind in ("new", "unchanged", "changed")]
#: The content that a visit showed for the first time, by eight bytes of its digest; else 0.
_VISITS = (
    f"SELECT f.page_id, f.at, {code_of(KINDS, 'f.kind')}, "
    f"CASE WHEN f.kind IN ('new', 'changed') THEN "
    "substr(coalesce(v.text_digest, v.body_digest), 1, 8) END "
    "FROM finding AS f LEFT JOIN version AS v ON v.id = f.version_id ORDER BY f.id"
)


async def read(db: Reader) -> tuple[_PastPages, PastObservations]:
    """Return the pages that ever had content, and their visits in the order of their ids."""
    moved = await moves(db)
    pages = await _past_pages(db, "role = 'page' AND alias_kind IS NULL AND held_back IS NULL")
    row, parts = row_of(PastObservations), []
    async for rows in pieces(db, _VISITS):
        coded = ((page, at, kind, int.from_bytes(digest or b"")) for page, at, kind, digest in rows)
        parts.append(np.fromiter(coded, row, len(rows)))
    visit = as_columns(PastObservations, np.concatenate([np.empty(0, row), *parts]))
    owner = where_now(visit.page, moved)
    had = np.unique(owner[np.isin(visit.kind, _CONTENT)])
    pages = pages.take(np.isin(pages.page_id, had))
    place, mine = _rows_of(owner, pages.page_id)
    visit = replace(visit, page=place).take(mine)
    np.minimum.at(pages.found_at, visit.page, visit.at)
    return pages, visit
