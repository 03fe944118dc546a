"""When the pages of a site were found and looked at, and links first seen. Read-only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from freshet.storage.words import Kind, Role

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


async def read(connection: aiosqlite.Connection, host_ids: Sequence[int]) -> SitePages:
    """What is known of the pages of some hosts."""
    hosts = (str(list(host_ids)),)
    pages = list(await connection.execute_fetchall(_PAGES, hosts))
    ids = np.array([row[0] for row in pages], np.int64)
    links = _columns(await connection.execute_fetchall(_LINKS, hosts), 3)
    looks = _columns(await connection.execute_fetchall(_LOOKS, hosts), 2)
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


async def leading_to(connection: aiosqlite.Connection, page_ids: Sequence[int]) -> Leading:
    """What leads to these pages, and when it was first seen to."""
    rows = await connection.execute_fetchall(_LEADING_TO, (json.dumps(list(page_ids)),))
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
