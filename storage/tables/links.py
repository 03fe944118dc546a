"""Tables ``link`` and ``offsite_link``: which page linked where, and between which times.

``last_seen_at`` is the last parse that saw the link. A page with the same bytes is not parsed
again: its links with ``gone_at IS NULL`` hold at ``page.checked_at``.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from sqlite3 import Connection

from aiosqlite import Connection as Reader

from freshet.storage.database import as_json
from freshet.storage.records import Churn, Links, Visit

_UPSERT = """
    ON CONFLICT DO UPDATE SET position = excluded.position, rel = excluded.rel,
        anchor = excluded.anchor, last_seen_at = excluded.last_seen_at, gone_at = NULL
"""
_INSIDE = f"""
    INSERT INTO link (src_id, dst_id, position, rel, anchor, first_seen_at, last_seen_at)
    SELECT :page, p.id, l.value ->> 3, l.value ->> 1, l.value ->> 2, :at, :at
    FROM json_each(:links) AS l CROSS JOIN page AS p ON p.url = l.value ->> 0 WHERE true {_UPSERT}
"""
_OFFSITE = f"""
    INSERT INTO offsite_link (src_id, url, position, rel, anchor, first_seen_at, last_seen_at)
    SELECT :page, value ->> 0, value ->> 3, value ->> 1, value ->> 2, :at, :at
    FROM json_each(:links) WHERE true {_UPSERT}
"""

_VISITED = """
    SELECT p.id FROM json_each(?) AS w CROSS JOIN page AS p ON p.id = w.value
    WHERE p.last_at IS NOT NULL
"""


def record(db: Connection, visits: Iterable[Visit]) -> None:
    """Replace the current out-links of the visits that parsed a page."""
    inside, offsite, parses = [], [], []
    for visit in visits:
        if visit.links is not None:
            parse = {"page": visit.due.page_id, "at": visit.observation.at}
            found = _rows(visit.links)
            if visit.offsite:
                outside = [row for row in found if row[3] in visit.offsite]
                offsite.append({**parse, "links": as_json(outside)})
                found = [row for row in found if row[3] not in visit.offsite]
            inside.append({**parse, "links": as_json(found)})
            parses.append(parse)
    db.executemany(_INSIDE, inside)
    db.executemany(_OFFSITE, offsite)
    _end(db, parses)


def _end(db: Connection, parses: Sequence[Mapping[str, float]]) -> None:
    """End the links that these parses did not see; a page not visited before has no links."""
    if not parses:
        return
    ids = as_json([parse["page"] for parse in parses])
    again = {row[0] for row in db.execute(_VISITED, (ids,))}
    parses = [parse for parse in parses if parse["page"] in again]
    gone = "SET gone_at = :at WHERE src_id = :page AND last_seen_at <> :at AND gone_at IS NULL"
    for table in ("link", "offsite_link"):
        db.executemany(f"UPDATE {table} {gone}", parses)


def _rows(links: Links) -> list[tuple[str, str, str, int]]:
    return list(zip(links.urls, links.rels, links.anchors, range(len(links)), strict=True))


def forget(db: Connection, page_id: int, parses: Iterable[float]) -> None:
    """Undo the effect of parses of a page at these times on links and churn: they saw no links."""
    times = [(page_id, at) for at in sorted(parses, reverse=True)]
    for table in ("link", "offsite_link"):
        db.executemany(f"DELETE FROM {table} WHERE src_id = ? AND first_seen_at = ?", times)
        db.executemany(f"UPDATE {table} SET gone_at = NULL WHERE src_id = ? AND gone_at = ?", times)
    db.executemany("DELETE FROM churn WHERE page_id = ? AND at = ?", times)


async def offsite_at(db: Reader, src_url: str, origin: str) -> list[tuple[str, int]]:
    """Return the URLs at an origin to which a page leads out of scope, and its depth.

    The page is the one at ``src_url``, or that to which it redirects.
    """
    rows = await db.execute_fetchall(
        "SELECT l.url, p.depth FROM page AS p "
        "JOIN offsite_link AS l ON l.src_id = coalesce(p.alias_of, p.id) "
        "WHERE p.url = ? AND l.gone_at IS NULL AND l.url >= ? AND l.url < ? ORDER BY l.position",
        # '0' follows '/' in ASCII: the range has all URLs with the origin and a slash at the start.
        (src_url, f"{origin}/", f"{origin}0"),
    )
    return [(row[0], row[1]) for row in rows]


# -- churn: links that a visit saw and the one before did not ----------------
# A link has *appeared* if it was not there at the visit before and its target was unknown: new on
# the site, not newly listed. ``dropped`` counts the links that disappeared, ``stayed`` those still
# there of all that appeared since the first visit: if none of them stayed, more may have appeared
# and disappeared.

#: ``checked_at`` is the visit before until ``page`` is updated; without one, no link is looked at.
_APPEARED = """
    SELECT p.id, w.value ->> 1, p.checked_at, count(*)
    FROM json_each(?) AS w CROSS JOIN page AS p ON p.id = w.value ->> 0
    CROSS JOIN link AS l ON l.src_id = p.id AND l.first_seen_at = w.value ->> 1
    CROSS JOIN page AS d ON d.id = l.dst_id
    WHERE p.checked_at IS NOT NULL AND d.found_at > p.checked_at AND d.held_back IS NULL
        AND d.role = 'page'
    GROUP BY p.id
"""
#: Materialized: the thousands of links of a busy page are scanned once.
_FIRST = "(SELECT min(first_seen_at) FROM link WHERE src_id = value ->> 0) AS first"
_APPEND = f"""
    WITH visit AS MATERIALIZED (
        SELECT value ->> 0 AS id, value ->> 1 AS at, value ->> 2 AS since, value ->> 3 AS appeared,
            {_FIRST}
        FROM json_each(?)
    )
    INSERT OR REPLACE INTO churn (page_id, at, since, appeared, dropped, stayed)
    SELECT visit.id, visit.at, since, appeared, total(l.gone_at IS visit.at),
        total(l.gone_at IS NULL AND l.first_seen_at < visit.at AND l.first_seen_at > first)
    FROM visit CROSS JOIN link AS l ON l.src_id = visit.id
    GROUP BY visit.id RETURNING page_id, since, appeared, dropped, stayed
"""


def append(db: Connection, visits: Iterable[Visit]) -> Mapping[int, Churn]:
    """Store the churn seen by these visits, and return it by page."""
    parses = [(v.due.page_id, v.observation.at) for v in visits if v.links is not None]
    found = db.execute(_APPEARED, (as_json(parses),)).fetchall() if parses else []
    noted = db.execute(_APPEND, (as_json(found),)).fetchall() if found else []
    return {row[0]: Churn(*row[1:]) for row in noted}


#: Links that a visit saw and the one before did not, to pages that were gone before the second half
#: of the time between: most likely the link did not exist then.
_SHOWN_AGAIN = """
    SELECT p.id, d.id, d.host_id
    FROM json_each(?) AS w CROSS JOIN page AS p ON p.id = w.value ->> 0
    CROSS JOIN link AS l ON l.src_id = p.id AND l.first_seen_at = w.value ->> 1
    CROSS JOIN page AS d ON d.id = l.dst_id
    WHERE d.last_kind = 'gone' AND d.last_at < (p.checked_at + l.first_seen_at) / 2
        AND d.held_back IS NULL
"""


def shown_again(db: Connection, visits: Iterable[Visit]) -> Mapping[int, dict[int, int]]:
    """Return by page the dead links, with their hosts, that it got after they had been tried."""
    parses = [
        (visit.due.page_id, visit.observation.at)
        for visit in visits
        if visit.links is not None and visit.observation.kind != "new"
    ]
    found: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for source, target, host in db.execute(_SHOWN_AGAIN, (as_json(parses),)) if parses else ():
        found[source][target] = host
    return found
