"""The pages and the links between them, as columns: what is linked how often. Read-only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from aiosqlite import Connection as Reader
from numpy.typing import NDArray

from freshet.storage.database import pieces, table_of
from freshet.storage.words import AliasKind, Kind, Role

_PAGE = np.dtype([("id", np.int64), ("host", np.int64), ("depth", np.int32), ("links", np.bool_)])
_ALIAS = np.dtype([("id", np.int64), ("of", np.int64), ("depth", np.int32), ("moved", np.bool_)])
_LINK = np.dtype([("source", np.int32), ("target", np.int32)])


@dataclass(frozen=True, slots=True)
class LinkedPages:
    """The n pages in their own right: no sitemaps or feeds, no aliases, not held back.

    Attributes:
        page_id: (n,), ascending.
        host_id: (n,), as stored.
        depth: (n,), links from a seed; of a page that has moved, the least of all its places.
        row_of: the row of the page that each id stands for, its own or that of which it is an
            alias; -1: none.
        links: (n,), whether the page has links that count: it was not gone when last asked, and
            does not ask that they are not followed.
    """

    page_id: NDArray[np.int64]
    host_id: NDArray[np.int64]
    depth: NDArray[np.int32]
    row_of: NDArray[np.int32]
    links: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.page_id)


async def pages(db: Reader) -> LinkedPages:
    """All pages in their own right."""
    own = await table_of(
        db,
        f"SELECT id, host_id, depth, last_kind IS NOT '{Kind.GONE}' AND NOT nofollow FROM page "
        f"WHERE role = '{Role.PAGE}' AND alias_kind IS NULL AND held_back IS NULL ORDER BY id",
        _PAGE,
    )
    aliases = await table_of(
        db,
        f"SELECT id, alias_of, depth, alias_kind = '{AliasKind.PERMANENT}' FROM page "
        "WHERE alias_of IS NOT NULL",
        _ALIAS,
    )
    rows = await db.execute_fetchall("SELECT coalesce(max(id), 0) FROM page")
    row_of = np.full(int(next(iter(rows))[0]) + 1, -1, np.int32)
    row_of[own["id"]] = np.arange(len(own))
    row_of[aliases["id"]] = row_of[aliases["of"]]
    depth = own["depth"].copy()
    moved = aliases[aliases["moved"] & (row_of[aliases["of"]] >= 0)]
    np.minimum.at(depth, row_of[moved["of"]], moved["depth"])
    return LinkedPages(own["id"].copy(), own["host"].copy(), depth, row_of, own["links"].copy())


async def links(db: Reader, among: LinkedPages) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The links that stand, as rows of their pages, (m,) each; none of rel=nofollow.

    What leads to an alias leads to its page; one page may link another several times.
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
    # What was found meanwhile is not among them yet.
    found = found[np.maximum(found["source"], found["target"]) < len(row_of)]
    source, target = row_of[found["source"]], row_of[found["target"]]
    # What an alias links is what its page linked once.
    own = (source >= 0) & (among.page_id[source] == found["source"]) & among.links[source]
    kept = own & (target >= 0)
    return source[kept], target[kept]


# -- sightings ---------------------------------------------------------------
#
# When the pages of a site were found and looked at, and links first seen. Read-only.

#: When a page is gone that is not.
STAYS: Final = 1e308
_CONTENT = f"'{Kind.NEW}', '{Kind.CHANGED}', '{Kind.UNCHANGED}'"

#: Pages that had content, and that are none of those that count for another. What only lists
#: pages is there from the beginning: it is no page that anybody wants to find.
_PAGES = f"""
SELECT id, CASE role WHEN '{Role.PAGE}' THEN found_at ELSE -1e308 END AS found, url, role,
    CASE last_kind WHEN '{Kind.GONE}' THEN coalesce((
        SELECT min(at) FROM observation
        WHERE page_id = page.id AND kind = '{Kind.GONE}' AND at > coalesce((
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
_LOOKS = f"""
SELECT o.page_id, o.at
FROM observation AS o JOIN page AS p ON p.id = o.page_id
WHERE p.host_id IN (SELECT value FROM json_each(?))
    AND o.kind IN ({_CONTENT})
ORDER BY o.at
"""


#: A page to which another one redirects was found there, where no link was seen at that time.
_LEADING_TO = """
SELECT l.src_id, l.dst_id, l.first_seen_at
FROM json_each(?1) AS w JOIN link AS l ON l.dst_id = w.value
UNION ALL
SELECT a.id, p.id, p.found_at
FROM json_each(?1) AS w JOIN page AS p ON p.id = w.value JOIN page AS a ON a.alias_of = p.id
WHERE NOT EXISTS (SELECT 1 FROM link WHERE dst_id = p.id AND first_seen_at = p.found_at)
"""


@dataclass(frozen=True, slots=True)
class SitePages:
    """The pages of a site, numbered in the order in which they were found.

    Attributes:
        page_id: (n,), as stored.
        url, role: n of each; canonical URLs.
        found_at: (n,), Unix seconds; -1e308 for sitemaps and feeds.
        gone_at: (n,), when it was first found gone since it last had content; STAYS: it is there.
        source, target, seen_at: a row for each link between them, and when it was first seen.
        look_page, look_at: a row for each look at one of them, in the order of time.
    """

    page_id: NDArray[np.int64]
    url: list[str]
    role: list[Role]
    found_at: NDArray[np.float64]
    gone_at: NDArray[np.float64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    seen_at: NDArray[np.float64]
    look_page: NDArray[np.int64]
    look_at: NDArray[np.float64]


async def read(db: Reader, host_ids: Sequence[int]) -> SitePages:
    """What is known of the pages of some hosts."""
    hosts = (str(list(host_ids)),)
    pages = list(await db.execute_fetchall(_PAGES, hosts))
    ids = np.array([row[0] for row in pages], np.int64)
    links = _columns(await db.execute_fetchall(_LINKS, hosts), 3)
    looks = _columns(await db.execute_fetchall(_LOOKS, hosts), 2)
    source, has_source = _places(ids, links[0])
    target, has_target = _places(ids, links[1])
    is_known = has_source & has_target
    page, has_page = _places(ids, looks[0])
    return SitePages(
        ids,
        [row[2] for row in pages],
        [Role(row[3]) for row in pages],
        np.array([row[1] for row in pages], np.float64),
        np.array([row[4] for row in pages], np.float64),
        source[is_known], target[is_known], links[2][is_known],
        page[has_page], looks[1][has_page],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Leading:
    """m links and redirects; ``source`` and ``target`` are ids, ``seen_at`` Unix seconds."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    seen_at: NDArray[np.float64]


async def leading_to(db: Reader, page_ids: Sequence[int]) -> Leading:
    """What leads to these pages, and when it was first seen to."""
    rows = await db.execute_fetchall(_LEADING_TO, (json.dumps(list(page_ids)),))
    found = _columns(rows, 3)
    return Leading(found[0].astype(np.int64), found[1].astype(np.int64), found[2])


def _columns(rows: Any, count: int) -> NDArray[np.float64]:
    return np.array([tuple(row) for row in rows], np.float64).reshape(-1, count).T


def _places(
    ids: NDArray[np.int64], wanted: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Which place each id has, and whether it has one."""
    order = np.argsort(ids)
    at = np.searchsorted(ids[order], wanted)
    is_one = at < ids.size
    is_one[is_one] = ids[order[at[is_one]]] == wanted[is_one]
    found = np.zeros(wanted.size, np.int64)
    found[is_one] = order[at[is_one]]
    return found, is_one


# -- offsite -----------------------------------------------------------------
#
# Which pages of a site led out of scope to which origins, and since when. Read-only.

#: What stands before the path: ``http://host:port``.
_HOST = "instr(l.url, '://')"
_ORIGIN = f"substr(l.url, 1, {_HOST} + 1 + instr(substr(l.url, {_HOST} + 3) || '/', '/'))"
_OFFSITE_LINKS = f"""
SELECT l.src_id AS page_id, {_ORIGIN} AS origin, min(l.first_seen_at) AS seen_at
FROM page AS p JOIN offsite_link AS l ON l.src_id = p.id
WHERE p.host_id IN (SELECT value FROM json_each(?)) GROUP BY l.src_id, origin ORDER BY 3, 1, 2
"""
_FIRST = f"SELECT {_ORIGIN} AS origin, min(first_seen_at) FROM offsite_link AS l GROUP BY origin"


@dataclass(frozen=True, slots=True)
class OffsiteLink:
    """A page that led to another site's origin, and when that was first seen, in Unix seconds."""

    page_id: int
    origin: str
    seen_at: float


async def read_offsite(db: Reader, host_ids: Sequence[int]) -> list[OffsiteLink]:
    """The links of the pages of some hosts, one for each page and origin, the first seen first."""
    rows = await db.execute_fetchall(_OFFSITE_LINKS, (str(list(host_ids)),))
    return [OffsiteLink(**row) for row in rows]


async def first_seen(db: Reader) -> dict[str, float]:
    """When any page of the store first led to each origin; reads all links that leave a site."""
    return {row[0]: row[1] for row in await db.execute_fetchall(_FIRST)}
