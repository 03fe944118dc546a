"""Tables ``lsh``, ``lsh_page``, ``lsh_bucket``, ``lsh_group``: which pages are duplicates.

Leader algorithm (J. Hartigan, "Clustering Algorithms", 1975, ch. 3): a page that resembles a leader
joins its group, any other becomes a leader. Only leaders are in the buckets of the LSH index: a
thousand copies take a thousand rows, without a thousand comparisons each.

Invariant: every row of ``lsh_bucket`` is a key of a leader, and a row of ``lsh_page`` without a
leader waits to be placed; each function keeps it within the caller's transaction. Consequence:
after a kill the index continues from its last transaction. ``lsh.observation_id`` is the last
observation that was examined. Gone pages have observations too, but no versions.
"""

import struct
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from aiosqlite import Connection as Reader

from freshet.storage import value
from freshet.storage.database import as_json
from freshet.storage.tables import url_patterns

#: The current sketch of a page that answers and is not an alias.
_CURRENT = """
    CASE WHEN p.role = 'page' AND p.alias_of IS NULL AND p.text_digest IS NOT NULL
              AND p.last_kind NOT IN ('gone', 'redirected', 'skipped')
         THEN (SELECT max(id) FROM version WHERE page_id = p.id AND sketch IS NOT NULL) END
"""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of the index: another threshold needs another index.

    ``threshold`` is the resemblance (0 to 1) above which two pages are duplicates; the index has
    ``bands`` bands of ``band_rows`` MinHash values.
    """

    threshold: float
    bands: int
    band_rows: int


@value(frozen=True, slots=True)
class LeaderChoice:
    """The leader of a page: itself, or one that it resembles.

    ``keys`` (signed 64-bit) are the buckets of a leader, empty for any other page.
    """

    page_id: int
    leader_id: int
    resemblance: float | None = None
    resemblance_se: float | None = None
    keys: tuple[int, ...] = ()


async def parameters(db: Reader) -> Parameters | None:
    """Return the parameters of the index, or None without an index."""
    rows = await db.execute_fetchall("SELECT threshold, bands, band_rows FROM lsh")
    return next((Parameters(**row) for row in rows), None)


def begin_anew(db: Connection) -> None:
    """Empty the index, if there is one."""
    for row in db.execute("SELECT threshold, bands, band_rows FROM lsh").fetchall():
        begin(db, Parameters(*row))


def begin(db: Connection, chosen: Parameters) -> None:
    """Start an empty index with these parameters."""
    for table in ("lsh_bucket", "lsh_group", "lsh_page", "lsh"):
        db.execute(f"DELETE FROM {table}")
    sql = "INSERT INTO lsh VALUES (1, ?, ?, ?, 0)"
    db.execute(sql, (chosen.threshold, chosen.bands, chosen.band_rows))


def survey(db: Connection, limit: int) -> int:
    """Examine the next ``limit`` observations and remove the pages that they outdate.

    Pages with a text wait to be placed again, and so do the members of a group with a changed
    leader. Returns the number of observations, 0 at the end.
    """
    seen = db.execute(
        "SELECT id, page_id FROM observation WHERE id > (SELECT observation_id FROM lsh) "
        "ORDER BY id LIMIT ?",
        (limit,),
    ).fetchall()
    if seen:
        _revise(db, sorted({page_id for _, page_id in seen}))
        db.execute("UPDATE lsh SET observation_id = ?", (seen[-1][0],))
    return len(seen)


def revise(db: Connection, page_id: int) -> None:
    """Remove a page from the index after its sketch has changed or was deleted."""
    if db.execute("SELECT 1 FROM lsh_page WHERE page_id = ?", (page_id,)).fetchall():
        _revise(db, [page_id])


def _revise(db: Connection, page_ids: Sequence[int]) -> None:
    """Remove the pages that are placed by an outdated sketch."""
    seen = (as_json(page_ids),)
    touched = db.execute(
        "SELECT DISTINCT g.leader_id FROM json_each(?) AS seen "
        "CROSS JOIN lsh_page AS l ON l.page_id = seen.value "
        "CROSS JOIN lsh_group AS g ON g.leader_id = l.leader_id",
        seen,
    ).fetchall()
    stale = db.execute(
        f"SELECT p.id, {_CURRENT} AS current, l.leader_id, l.keys "
        "FROM json_each(?) AS seen CROSS JOIN page AS p ON p.id = seen.value "
        "LEFT JOIN lsh_page AS l ON l.page_id = p.id WHERE l.version_id IS NOT current",
        seen,
    ).fetchall()
    placed = [(page_id, struct.iter_unpack("<q", keys)) for page_id, _, _, keys in stale if keys]
    sql = "DELETE FROM lsh_bucket WHERE key = ? AND page_id = ?"
    db.executemany(sql, sorted((key, page_id) for page_id, keys in placed for (key,) in keys))
    # The members of a group without its leader wait for a new place, as do pages with a text.
    db.executemany(
        "UPDATE lsh_page SET leader_id = NULL, resemblance = NULL, resemblance_se = NULL, "
        "at = NULL WHERE leader_id = ? AND leader_id <> page_id",
        [(page_id,) for page_id, _, leader_id, _ in stale if leader_id == page_id],
    )
    db.executemany("DELETE FROM lsh_page WHERE page_id = ?", [(row[0],) for row in stale])
    sql = "INSERT INTO lsh_page (page_id, version_id) VALUES (?, ?)"
    db.executemany(sql, [(page_id, new) for page_id, new, _, _ in stale if new is not None])
    _choose_representatives(db, [row[0] for row in touched])


def waiting(db: Connection, after: int, limit: int) -> dict[int, bytes]:
    """Return sketches of pages that wait to be placed, by page id, from ``after`` on, in order."""
    sql = (
        "SELECT l.page_id, v.sketch FROM lsh_page AS l JOIN version AS v ON v.id = l.version_id "
        "WHERE l.leader_id IS NULL AND l.page_id > ? ORDER BY l.page_id LIMIT ?"
    )
    return {row[0]: row[1] for row in db.execute(sql, (after, limit)).fetchall()}


def buckets(db: Connection, keys: Collection[int], size: int) -> Mapping[int, list[int]]:
    """Return the ``size`` oldest leaders of each of these buckets; empty ones are left out."""
    rows = db.execute(
        "SELECT b.key, b.page_id FROM json_each(?) AS k CROSS JOIN lsh_bucket AS b "
        "ON b.key = k.value AND b.page_id IN ("
        "  SELECT page_id FROM lsh_bucket WHERE key = k.value ORDER BY page_id LIMIT ?)",
        (as_json(sorted(keys)), size),
    ).fetchall()
    found: defaultdict[int, list[int]] = defaultdict(list)
    for row in rows:
        found[row[0]].append(row[1])
    return found


def sketches(db: Connection, page_ids: Collection[int]) -> Mapping[int, bytes]:
    """Return the sketches by which these pages are placed."""
    sql = (
        "SELECT l.page_id, v.sketch FROM json_each(?) AS chosen "
        "CROSS JOIN lsh_page AS l ON l.page_id = chosen.value "
        "CROSS JOIN version AS v ON v.id = l.version_id"
    )
    return {row[0]: row[1] for row in db.execute(sql, (as_json(sorted(page_ids)),)).fetchall()}


def place(db: Connection, placements: Sequence[LeaderChoice], at: float) -> None:
    """Place waiting pages, and choose the representatives of the groups that have grown."""
    db.executemany(
        "UPDATE lsh_page SET leader_id = ?, resemblance = ?, resemblance_se = ?, at = ?, "
        "keys = ? WHERE page_id = ?",
        [
            (
                p.leader_id, p.resemblance, p.resemblance_se, at,
                struct.pack(f"<{len(p.keys)}q", *p.keys) if p.keys else None, p.page_id,
            )
            for p in placements
        ],
    )  # fmt: skip
    # In the order of the table, which touches each of its leaves once.
    sql = "INSERT INTO lsh_bucket VALUES (?, ?)"
    db.executemany(sql, sorted([(key, p.page_id) for p in placements for key in p.keys]))
    grown = {p.leader_id for p in placements if p.leader_id != p.page_id}
    _choose_representatives(db, sorted(grown))


def _choose_representatives(db: Connection, leader_ids: Sequence[int]) -> None:
    """Choose the representative of each of these groups; a single leader needs none.

    Prefer a page that a member names as canonical, then the shortest URL, https, the oldest.
    """
    sql = "DELETE FROM lsh_group WHERE leader_id = ?"
    db.executemany(sql, [(leader_id,) for leader_id in leader_ids])
    db.executemany(
        "INSERT INTO lsh_group WITH member (id) AS ("
        "  SELECT :leader WHERE EXISTS "
        "    (SELECT 1 FROM lsh_page WHERE page_id = :leader AND leader_id = :leader) "
        "  UNION ALL SELECT page_id FROM lsh_page "
        "    WHERE leader_id = :leader AND leader_id <> page_id), "
        "named (url) AS (SELECT canonical_url FROM member JOIN page USING (id) "
        "  WHERE canonical_url IS NOT NULL) "
        "SELECT :leader, id FROM member JOIN page USING (id) "
        "WHERE (SELECT count(*) FROM member) > 1 "
        "ORDER BY url IN named OR fetch_url IN named DESC, length(url) - instr(url, '://'), "
        "  url LIKE 'http:%', id LIMIT 1",
        [{"leader": leader_id} for leader_id in leader_ids],
    )


# -- duplicates: queries of view ``duplicate`` -------------------------------


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A page that duplicates its group's representative.

    ``resemblance`` (0 to 1), an estimate with its standard error, is to the text of the group's
    leader; ``at`` is the time of the comparison.
    """

    url: str
    resemblance: float
    resemblance_se: float
    at: float


@dataclass(frozen=True, slots=True)
class IndexState:
    """Progress of the comparison of pages.

    ``parameters`` are None before the first one; ``unseen`` observations have not been examined,
    ``waiting`` pages have not been placed.
    """

    parameters: Parameters | None
    pages: int
    groups: int
    duplicates: int
    unseen: int
    waiting: int


async def one_of_group(db: Reader) -> dict[int, int]:
    """Return the representatives of all pages that are duplicates, by page id.

    In SQL, over all pages: ``page LEFT JOIN duplicate ON page_id = page.id`` and
    ``coalesce(representative_id, page.id)``.
    """
    rows = await db.execute_fetchall(
        "SELECT l.page_id, g.representative_id FROM lsh_page AS l "
        "CROSS JOIN lsh_group AS g ON g.leader_id = l.leader_id "
        "WHERE g.representative_id <> l.page_id"
    )
    return {row[0]: row[1] for row in rows}


async def sharing(db: Reader, page_id: int) -> tuple[int, bool]:
    """Count the pages that share one importance with this one; return whether it keeps its own.

    They are its near-duplicates or, in a closed pattern of URLs, all copies. The representative of
    near-duplicates keeps its importance.
    """
    sql = (
        "SELECT copies, of_group, EXISTS (SELECT 1 FROM lsh_group WHERE representative_id = :page) "
        "FROM (SELECT (SELECT count(*) FROM page AS me "
        "  JOIN trap AS t ON t.host_id = me.host_id AND t.shape = me.pattern "
        "  JOIN page AS p ON p.host_id = me.host_id AND p.pattern = me.pattern "
        "  WHERE me.id = :page AND me.copy_of <> me.id AND me.depth > 0 AND t.kind = :kind "
        "  AND t.closed_at IS NOT NULL AND p.copy_of <> p.id AND p.depth > 0) - 1 AS copies, "
        "(SELECT count(*) FROM lsh_page AS me JOIN lsh_page AS m ON m.leader_id = me.leader_id "
        "  WHERE me.page_id = :page AND m.leader_id <> m.page_id) AS of_group)"
    )
    values = {"page": page_id, "kind": url_patterns.KIND}
    copies, of_group, represents = next(iter(await db.execute_fetchall(sql, values)))
    return max(copies, of_group), bool(represents) and copies < 0


async def current(db: Reader) -> dict[str, bytes]:
    """Return the sketches of all pages that answer and are not aliases, by URL."""
    sql = f"SELECT p.url, v.sketch FROM page AS p JOIN version AS v ON v.id = {_CURRENT}"
    return {url: bytes(sketch) for url, sketch in await db.execute_fetchall(sql)}


async def groups(db: Reader, limit: int) -> dict[str, list[Duplicate]]:
    """Return the largest groups, at most ``limit``: their duplicates by representative URL."""
    rows = await db.execute_fetchall(
        "SELECT g.representative_id, p.url FROM lsh_group AS g "
        "JOIN page AS p ON p.id = g.representative_id "
        "ORDER BY (SELECT count(*) FROM lsh_page AS m WHERE m.leader_id = g.leader_id "
        "          AND m.leader_id <> m.page_id) DESC, p.url LIMIT ?",
        (limit,),
    )
    return {row[1]: await _duplicates(db, row[0]) for row in rows}


async def _duplicates(db: Reader, representative_id: int) -> list[Duplicate]:
    sql = (
        "SELECT p.url, d.resemblance, d.resemblance_se, d.at FROM duplicate AS d "
        "JOIN page AS p ON p.id = d.page_id WHERE d.representative_id = ? ORDER BY p.url"
    )
    return [Duplicate(**row) for row in await db.execute_fetchall(sql, (representative_id,))]


async def state(db: Reader) -> IndexState:
    """Return the progress and results of the comparison."""
    rows = await db.execute_fetchall(
        "SELECT (SELECT count(*) FROM lsh_page), (SELECT count(*) FROM lsh_group), "
        "(SELECT count(*) FROM duplicate), (SELECT count(*) FROM observation WHERE id > coalesce("
        "  (SELECT observation_id FROM lsh), 0)), "
        "(SELECT count(*) FROM lsh_page WHERE leader_id IS NULL)"
    )
    return IndexState(await parameters(db), *next(iter(rows)))
