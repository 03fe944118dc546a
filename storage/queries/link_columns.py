"""The pages and the links between them, as columns. Read-only."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from aiosqlite import Connection as Reader
from numpy.typing import NDArray

from freshet.storage.database import as_json, columns_of, load_columns, pieces, table_of
from freshet.storage.entries import Columns, Role, stored
from freshet.storage.tables.pages import FOREIGN

_PAGE = np.dtype(
    [("id", np.int64), ("host", np.int64), ("depth", np.int32)]
    + [(name, np.bool_) for name in ("links", "here")]
    + [(name, np.float64) for name in ("found_at", "checked_at")]
)  # fmt: skip
_ALIAS = np.dtype([("id", np.int64), ("of", np.int64), ("depth", np.int32), ("moved", np.bool_)])
_LINK = np.dtype([("source", np.int32), ("target", np.int32)])
_OWN = "role = 'page' AND alias_kind IS NULL AND held_back IS NULL"
_EVERYWHERE = (
    f"role = 'page' AND alias_kind IS NULL AND ifnull(held_back, '{FOREIGN}') = '{FOREIGN}'"
)


@dataclass(frozen=True, slots=True)
class LinkedPages:
    """The n actual pages: not sitemaps or feeds, not aliases, not held back.

    Those of other shards are among them where they were asked for.

    Attributes:
        page_id: (n,), ascending.
        host_id: (n,), as stored.
        depth: (n,), links from a seed; for a page that has moved, the least of all its URLs.
        row_of: row of the page of each id, or of the page of which the id is an alias; or -1.
        links: (n,), whether the page's links count: it was not gone at the last visit, and is not
            marked nofollow.
        here: (n,), whether it is a page of this store, not of another shard.
        found_at: (n,), Unix seconds.
        last_visit_at: the newest visit to any of them, Unix seconds.
    """

    page_id: NDArray[np.int64]
    host_id: NDArray[np.int64]
    depth: NDArray[np.int32]
    row_of: NDArray[np.int32]
    links: NDArray[np.bool_]
    here: NDArray[np.bool_]
    found_at: NDArray[np.float64]
    last_visit_at: float

    def __len__(self) -> int:
        return len(self.page_id)


async def pages(db: Reader, *, elsewhere: bool = False) -> LinkedPages:
    """Return all actual pages, on demand with pages of other shards."""
    own = await table_of(
        db,
        "SELECT id, host_id, depth, last_kind IS NOT 'gone' AND NOT nofollow, held_back IS NULL, "
        "found_at, ifnull(checked_at, found_at) FROM page "
        f"WHERE {_EVERYWHERE if elsewhere else _OWN} ORDER BY id",
        _PAGE,
    )
    aliases = await table_of(
        db,
        "SELECT id, alias_of, depth, alias_kind = 'permanent' FROM page WHERE alias_of IS NOT NULL",
        _ALIAS,
    )
    rows = await db.execute_fetchall("SELECT coalesce(max(id), 0) FROM page")
    row_of = np.full(int(next(iter(rows))[0]) + 1, -1, np.int32)
    row_of[own["id"]] = np.arange(len(own))
    row_of[aliases["id"]] = row_of[aliases["of"]]
    depth = own["depth"].copy()
    moved = aliases[aliases["moved"] & (row_of[aliases["of"]] >= 0)]
    np.minimum.at(depth, row_of[moved["of"]], moved["depth"])
    return LinkedPages(
        page_id=own["id"].copy(), host_id=own["host"].copy(), depth=depth, row_of=row_of,
        links=own["links"].copy(), here=own["here"].copy(), found_at=own["found_at"].copy(),
        last_visit_at=float(own["checked_at"].max(initial=0.0)),
    )  # fmt: skip


def urls(db: Reader, *, every: bool = False) -> AsyncIterator[list[tuple[Any, ...]]]:
    """Yield (id, URL) of these pages, or of ``every`` one and its aliases, ascending by ids.

    They are read some thousand at a time.
    """
    return pieces(db, f"SELECT id, url FROM page WHERE {'1' if every else _OWN} ORDER BY id")


async def links(db: Reader, among: LinkedPages) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the current links as rows of source and target, (m,) each, without rel=nofollow.

    A link to an alias leads to its page; one page may link another several times.
    """
    if not len(among):
        return np.empty(0, np.int32), np.empty(0, np.int32)
    parts = [(np.empty(0, np.int32), np.empty(0, np.int32))]
    sql = (
        "SELECT src_id, dst_id FROM link WHERE gone_at IS NULL "
        "AND (rel = '' OR ' ' || rel || ' ' NOT LIKE '% nofollow %')"
    )
    found = pieces(db, sql)
    parts += [_resolved(np.fromiter(rows, _LINK), among) async for rows in found]
    source, target = zip(*parts, strict=True)
    return np.concatenate(source), np.concatenate(target)


def _resolved(
    found: NDArray[np.void], among: LinkedPages
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    row_of = among.row_of
    # Pages found since then are left out.
    found = found[np.maximum(found["source"], found["target"]) < len(row_of)]
    source, target = row_of[found["source"]], row_of[found["target"]]
    # The links of an alias are old links of its page.
    own = (source >= 0) & (among.page_id[source] == found["source"]) & among.links[source]
    kept = own & (target >= 0)
    return source[kept], target[kept]


# -- sightings: discovery of pages, visits, and links first seen -------------

#: ``gone_at`` of a page that is not gone.
STAYS: Final = 1e308
_CONTENT = "'new', 'changed', 'unchanged'"

#: Pages with content that are not copies. Sitemaps and feeds count from the beginning.
_PAGES = f"""
SELECT id, CASE role WHEN 'page' THEN found_at ELSE -1e308 END AS found, url, role,
    CASE last_kind WHEN 'gone' THEN coalesce((
        SELECT min(at) FROM observation
        WHERE page_id = page.id AND kind = 'gone' AND at > coalesce((
            SELECT max(at) FROM observation
            WHERE page_id = page.id AND kind IN ({_CONTENT})
        ), -1e308)
    ), checked_at, -1e308) ELSE {STAYS} END
FROM page
WHERE host_id IN (SELECT value FROM json_each(?)) AND alias_kind IS NULL AND held_back IS NULL
    AND copy_of IS NULL AND version_id IS NOT NULL
ORDER BY found, id
"""
_LINKS = """
SELECT l.src_id, coalesce(d.alias_of, l.dst_id), l.first_seen_at
FROM link AS l JOIN page AS s ON s.id = l.src_id JOIN page AS d ON d.id = l.dst_id
WHERE s.host_id IN (SELECT value FROM json_each(?))
"""
_VISITS = f"""
SELECT o.page_id, o.at
FROM observation AS o JOIN page AS p ON p.id = o.page_id
WHERE p.host_id IN (SELECT value FROM json_each(?))
    AND o.kind IN ({_CONTENT})
ORDER BY o.at
"""

#: A redirect led to a page if no link was seen when the page was found.
_LEADING_TO = """
SELECT l.src_id, l.dst_id, l.first_seen_at
FROM json_each(:pages) AS w JOIN link AS l ON l.dst_id = w.value
UNION ALL
SELECT a.id, p.id, p.found_at
FROM json_each(:pages) AS w JOIN page AS p ON p.id = w.value JOIN page AS a ON a.alias_of = p.id
WHERE NOT EXISTS (SELECT 1 FROM link WHERE dst_id = p.id AND first_seen_at = p.found_at)
"""


@dataclass(frozen=True, slots=True)
class SitePages:
    """The pages of a site, numbered in the order of discovery.

    Attributes:
        page_id: (n,), as stored.
        url, role: n of each; canonical URLs.
        found_at: (n,), Unix seconds; -1e308 for sitemaps and feeds.
        gone_at: (n,), when it was first found gone since its last content; STAYS if it is not gone.
        source, target, seen_at: a row for each link between them, and when it was first seen.
        visit_page, visit_at: a row for each visit to one of them, in the order of time.
    """

    page_id: NDArray[np.int64]
    url: list[str]
    role: list[Role]
    found_at: NDArray[np.float64]
    gone_at: NDArray[np.float64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    seen_at: NDArray[np.float64]
    visit_page: NDArray[np.int64]
    visit_at: NDArray[np.float64]


async def read(db: Reader, host_ids: Sequence[int]) -> SitePages:
    """Return the pages of some hosts, their links and visits."""
    hosts = (str(list(host_ids)),)
    pages = list(await db.execute_fetchall(_PAGES, hosts))
    ids = np.array([row[0] for row in pages], np.int64)
    links = _columns(await db.execute_fetchall(_LINKS, hosts), 3)
    visits = _columns(await db.execute_fetchall(_VISITS, hosts), 2)
    source, has_source = _places(ids, links[0])
    target, has_target = _places(ids, links[1])
    is_known = has_source & has_target
    page, has_page = _places(ids, visits[0])
    return SitePages(
        page_id=ids,
        url=[row[2] for row in pages],
        role=[row[3] for row in pages],
        found_at=np.array([row[1] for row in pages], np.float64),
        gone_at=np.array([row[4] for row in pages], np.float64),
        source=source[is_known],
        target=target[is_known],
        seen_at=links[2][is_known],
        visit_page=page[has_page],
        visit_at=visits[1][has_page],
    )


async def leading_to(
    db: Reader, page_ids: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return source and target (ids) of the links and redirects to these pages, and first times."""
    rows = await db.execute_fetchall(_LEADING_TO, {"pages": as_json(list(page_ids))})
    source, target, seen_at = _columns(rows, 3)
    return source.astype(np.int64), target.astype(np.int64), seen_at


async def seen_by(
    db: Reader, page_ids: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return source and target (ids) of the links on these pages, and first times."""
    sql = (
        "SELECT src_id, dst_id, first_seen_at FROM link "
        "WHERE src_id IN (SELECT value FROM json_each(?))"
    )
    rows = await db.execute_fetchall(sql, (as_json(list(page_ids)),))
    source, target, seen_at = _columns(rows, 3)
    return source.astype(np.int64), target.astype(np.int64), seen_at


def _columns(rows: Any, count: int) -> NDArray[np.float64]:
    return np.array([tuple(row) for row in rows], np.float64).reshape(-1, count).T


def _places(
    ids: NDArray[np.int64], wanted: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the position of each wanted id, and whether it has one."""
    order = np.argsort(ids)
    at = np.searchsorted(ids[order], wanted)
    is_one = at < ids.size
    is_one[is_one] = ids[order[at[is_one]]] == wanted[is_one]
    found = np.zeros(wanted.size, np.int64)
    found[is_one] = order[at[is_one]]
    return found, is_one


# -- churn: links that a visit saw and the one before did not ----------------

_SHOWN = """
    WITH source AS MATERIALIZED (SELECT value ->> 0 AS id,
        (SELECT min(first_seen_at) FROM link WHERE src_id = value ->> 0) AS first FROM json_each(?))
    SELECT l.src_id, l.dst_id FROM source CROSS JOIN link AS l ON l.src_id = source.id
    WHERE l.first_seen_at > first
"""


@dataclass(frozen=True, slots=True)
class _StoredChurn(Columns):
    """m visits in the order of their times; every column has length m.

    Attributes:
        page_id: as stored.
        at, since: Unix seconds of the visit, and of the one before.
        appeared, dropped, stayed: links; see :mod:`freshet.storage.tables.links`.
    """

    page_id: NDArray[np.int64] = field(metadata=stored("int64"))
    at: NDArray[np.float64] = field(metadata=stored("float64"))
    since: NDArray[np.float64] = field(metadata=stored("float64"))
    appeared: NDArray[np.int64] = field(metadata=stored("int64"))
    dropped: NDArray[np.int64] = field(metadata=stored("int64"))
    stayed: NDArray[np.int64] = field(metadata=stored("int64"))


async def shown(db: Reader, page_ids: Sequence[int]) -> NDArray[np.int64]:
    """Return (m, 2), page and target of each link new on these pages since the first visit."""
    wanted = as_json([[page_id] for page_id in page_ids])
    rows = await db.execute_fetchall(_SHOWN, (wanted,))
    return np.array([tuple(row) for row in rows], np.int64).reshape(-1, 2)


async def churn(db: Reader, page_ids: Sequence[int] | None = None) -> _StoredChurn:
    """Return all churn, or the churn of these pages, as :func:`links.append` stored it."""
    chosen = "" if page_ids is None else "WHERE page_id IN (SELECT value FROM json_each(?)) "
    values = () if page_ids is None else (as_json(list(page_ids)),)
    sql = f"SELECT {columns_of(_StoredChurn)} FROM churn {chosen}ORDER BY at, page_id"
    return await load_columns(db, _StoredChurn, sql, values)


# -- offsite: links out of scope by origin -----------------------------------

#: ``http://host:port``, the URL up to its path.
_HOST = "instr(l.url, '://')"
_ORIGIN = f"substr(l.url, 1, {_HOST} + 1 + instr(substr(l.url, {_HOST} + 3) || '/', '/'))"
_OFFSITE_LINKS = f"""
SELECT l.src_id AS page_id, {_ORIGIN} AS origin, min(l.first_seen_at) AS seen_at
FROM page AS p JOIN offsite_link AS l ON l.src_id = p.id
WHERE p.host_id IN (SELECT value FROM json_each(?)) GROUP BY l.src_id, origin ORDER BY 3, 1, 2
"""
_FIRST = f"SELECT {_ORIGIN} AS origin, min(first_seen_at) FROM offsite_link AS l GROUP BY origin"


async def read_offsite(db: Reader, host_ids: Sequence[int]) -> list[tuple[int, str, float]]:
    """Return page, origin and first time of links out of scope of some hosts, oldest first."""
    rows = await db.execute_fetchall(_OFFSITE_LINKS, (str(list(host_ids)),))
    return [(row[0], row[1], row[2]) for row in rows]


async def first_seen(db: Reader) -> dict[str, float]:
    """Return when any page first led to each origin; reads all links that leave a site."""
    return {row[0]: row[1] for row in await db.execute_fetchall(_FIRST)}
