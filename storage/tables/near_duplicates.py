"""Tables ``lsh``, ``lsh_page``, ``lsh_bucket``, ``lsh_group``: which pages are one page.

Pages gather round *leaders* (the leader algorithm, J. Hartigan, "Clustering Algorithms",
1975, ch. 3): a page whose text a leader's resembles joins that leader's group, any other is a
leader itself. Only leaders stand in the buckets of the LSH index, so that a thousand copies
take a thousand rows and no thousand comparisons each.

Invariant: every row of ``lsh_bucket`` is a key of a page that leads, and a row of
``lsh_page`` without a leader waits to be placed. Each function here keeps it inside the
transaction that the caller holds. Consequence: killed at any moment, the index goes on
from its last transaction.

The table ``observation`` is the list of what may have changed: ``lsh.observation_id`` is the
last one that was looked at. Gone pages have observations too, but no versions.
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from aiosqlite import Connection as Reader

from freshet.storage.tables import url_patterns

#: The current sketch of a page that answers and is no other page's alias.
_CURRENT = """
    CASE WHEN p.role = 'page' AND p.alias_of IS NULL AND p.text_digest IS NOT NULL
              AND p.last_kind NOT IN ('gone', 'redirected', 'skipped')
         THEN (SELECT max(id) FROM version WHERE page_id = p.id AND sketch IS NOT NULL) END
"""


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the index was built with: another threshold needs another index.

    ``threshold`` is the resemblance (0 to 1) above which two pages are one page; the index
    has ``bands`` bands of ``band_rows`` MinHash values.
    """

    threshold: float
    bands: int
    band_rows: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a page belongs: to itself, or to the leader that it resembles.

    ``keys`` (signed 64-bit) are the buckets of a page that leads, empty for any other.
    """

    page_id: int
    leader_id: int
    resemblance: float | None = None
    resemblance_se: float | None = None
    keys: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Stale:
    """A page that is placed by a sketch that it no longer has; ``version_id`` is its new one."""

    page_id: int
    version_id: int | None
    leader_id: int | None
    keys: bytes | None


async def parameters(db: Reader) -> Parameters | None:
    """What the index was built with, or None: there is none yet."""
    rows = await db.execute_fetchall("SELECT threshold, bands, band_rows FROM lsh")
    return next((Parameters(**row) for row in rows), None)


def begin_anew(db: Connection) -> None:
    """Empty the index, if there is one: its pages are to be added again."""
    rows = db.execute("SELECT threshold, bands, band_rows FROM lsh").fetchall()
    for row in rows:
        begin(db, Parameters(*row))


def begin(db: Connection, chosen: Parameters) -> None:
    """Start an empty index with these parameters, in place of one that there is."""
    for table in ("lsh_bucket", "lsh_group", "lsh_page", "lsh"):
        db.execute(f"DELETE FROM {table}")
    db.execute(
        "INSERT INTO lsh VALUES (1, ?, ?, ?, 0)", (chosen.threshold, chosen.bands, chosen.band_rows)
    )


def survey(db: Connection, limit: int) -> int:
    """Look at the next ``limit`` observations, and take out the pages that they outdate.

    Those that have a text wait to be placed again; so do the members of a group whose
    leader has changed. Returns how many observations there were, 0 at the end.
    """
    rows = db.execute(
        "SELECT id, page_id FROM observation WHERE id > (SELECT observation_id FROM lsh) "
        "ORDER BY id LIMIT ?",
        (limit,),
    ).fetchall()
    seen = [(row[0], row[1]) for row in rows]
    if seen:
        _revise(db, sorted({page_id for _, page_id in seen}))
        db.execute("UPDATE lsh SET observation_id = ?", (seen[-1][0],))
    return len(seen)


def revise(db: Connection, page_id: int) -> None:
    """Take a page out of the index whose sketch has gone, or was another before."""
    rows = db.execute("SELECT 1 FROM lsh_page WHERE page_id = ?", (page_id,)).fetchall()
    if list(rows):
        _revise(db, [page_id])


def _revise(db: Connection, page_ids: Sequence[int]) -> None:
    """Take out the pages that are placed by a sketch that they no longer have."""
    touched = _leaders_of(db, page_ids)
    _take_out(db, _stale(db, page_ids))
    _choose_representatives(db, touched)


def _stale(db: Connection, page_ids: Sequence[int]) -> list[_Stale]:
    rows = db.execute(
        f"SELECT p.id, {_CURRENT} AS current, l.leader_id, l.keys "
        "FROM json_each(?) AS seen CROSS JOIN page AS p ON p.id = seen.value "
        "LEFT JOIN lsh_page AS l ON l.page_id = p.id WHERE l.version_id IS NOT current",
        (json.dumps(page_ids),),
    ).fetchall()
    return [_Stale(*row) for row in rows]


def _leaders_of(db: Connection, page_ids: Sequence[int]) -> list[int]:
    """The leaders of the groups to which these pages belong."""
    rows = db.execute(
        "SELECT DISTINCT g.leader_id FROM json_each(?) AS seen "
        "CROSS JOIN lsh_page AS l ON l.page_id = seen.value "
        "CROSS JOIN lsh_group AS g ON g.leader_id = l.leader_id",
        (json.dumps(page_ids),),
    ).fetchall()
    return [row[0] for row in rows]


def _take_out(db: Connection, stale: Sequence[_Stale]) -> None:
    """Let pages leave their groups and buckets; those with a text wait for a new place."""
    db.executemany(
        "DELETE FROM lsh_bucket WHERE key = ? AND page_id = ?",
        sorted((key, s.page_id) for s in stale if s.keys for key in _unpacked(s.keys)),
    )
    db.executemany(
        "UPDATE lsh_page SET leader_id = NULL, resemblance = NULL, resemblance_se = NULL, "
        "at = NULL WHERE leader_id = ?1 AND leader_id <> page_id",
        [(s.page_id,) for s in stale if s.leader_id == s.page_id],
    )
    db.executemany("DELETE FROM lsh_page WHERE page_id = ?", [(s.page_id,) for s in stale])
    db.executemany(
        "INSERT INTO lsh_page (page_id, version_id) VALUES (?, ?)",
        [(s.page_id, s.version_id) for s in stale if s.version_id is not None],
    )


def waiting(db: Connection, after: int, limit: int) -> dict[int, bytes]:
    """The sketches of pages that wait to be placed, by page id from ``after`` on, in order."""
    rows = db.execute(
        "SELECT l.page_id, v.sketch FROM lsh_page AS l JOIN version AS v ON v.id = l.version_id "
        "WHERE l.leader_id IS NULL AND l.page_id > ? ORDER BY l.page_id LIMIT ?",
        (after, limit),
    ).fetchall()
    return {row[0]: row[1] for row in rows}


def buckets(db: Connection, keys: Collection[int], size: int) -> Mapping[int, list[int]]:
    """The leaders in these buckets, the ``size`` oldest of each; empty ones are left out."""
    rows = db.execute(
        "SELECT b.key, b.page_id FROM json_each(?) AS k CROSS JOIN lsh_bucket AS b "
        "ON b.key = k.value AND b.page_id IN ("
        "  SELECT page_id FROM lsh_bucket WHERE key = k.value ORDER BY page_id LIMIT ?)",
        (json.dumps(sorted(keys)), size),
    ).fetchall()
    found: defaultdict[int, list[int]] = defaultdict(list)
    for row in rows:
        found[row[0]].append(row[1])
    return found


def sketches(db: Connection, page_ids: Collection[int]) -> Mapping[int, bytes]:
    """The sketches by which these pages are placed."""
    rows = db.execute(
        "SELECT l.page_id, v.sketch FROM json_each(?) AS chosen "
        "CROSS JOIN lsh_page AS l ON l.page_id = chosen.value "
        "CROSS JOIN version AS v ON v.id = l.version_id",
        (json.dumps(sorted(page_ids)),),
    ).fetchall()
    return {row[0]: row[1] for row in rows}


def place(db: Connection, placements: Sequence[Placement], at: float) -> None:
    """Put pages that wait where they belong, and name the groups that have grown."""
    db.executemany(
        "UPDATE lsh_page SET leader_id = ?, resemblance = ?, resemblance_se = ?, at = ?, "
        "keys = ? WHERE page_id = ?",
        [
            (
                p.leader_id, p.resemblance, p.resemblance_se, at,
                _packed(p.keys) if p.keys else None, p.page_id,
            )
            for p in placements
        ],
    )  # fmt: skip
    # In the order of the table, which touches each of its leaves once.
    db.executemany(
        "INSERT INTO lsh_bucket VALUES (?, ?)",
        sorted((key, p.page_id) for p in placements for key in p.keys),
    )
    grown = {p.leader_id for p in placements if p.leader_id != p.page_id}
    _choose_representatives(db, sorted(grown))


def _choose_representatives(db: Connection, leader_ids: Sequence[int]) -> None:
    """Name the page that stands for each of these groups; a leader left alone has none.

    It is one that a member names as canonical, then the one with the shortest URL, https
    before http, then the oldest.
    """
    db.executemany(
        "DELETE FROM lsh_group WHERE leader_id = ?", [(leader_id,) for leader_id in leader_ids]
    )
    db.executemany(
        "INSERT INTO lsh_group "
        "WITH member (id) AS ("
        "  SELECT ?1 WHERE EXISTS (SELECT 1 FROM lsh_page WHERE page_id = ?1 AND leader_id = ?1) "
        "  UNION ALL SELECT page_id FROM lsh_page WHERE leader_id = ?1 AND leader_id <> page_id), "
        "named (url) AS (SELECT canonical_url FROM member JOIN page USING (id) "
        "  WHERE canonical_url IS NOT NULL) "
        "SELECT ?1, id FROM member JOIN page USING (id) WHERE (SELECT count(*) FROM member) > 1 "
        "ORDER BY url IN named OR fetch_url IN named DESC, length(url) - instr(url, '://'), "
        "  url LIKE 'http:%', id LIMIT 1",
        [(leader_id,) for leader_id in leader_ids],
    )


def _packed(keys: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(keys)}q", *keys)


def _unpacked(keys: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(keys) // 8}q", keys)


# -- duplicates --------------------------------------------------------------
#
# View ``duplicate``: which pages are copies of which. Read-only.


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A page that is the same as its group's representative.

    ``resemblance`` (0 to 1) is with the text round which the group formed, an estimate
    with its standard error; ``at`` is when it was compared.
    """

    url: str
    resemblance: float
    resemblance_se: float
    at: float


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Pages that count as one, under the URL that stands for them."""

    representative: str
    duplicates: list[Duplicate]


@dataclass(frozen=True, slots=True)
class IndexState:
    """How far the pages have been compared.

    ``parameters`` are None before the first time; ``unseen`` observations have not been
    looked at, and ``waiting`` pages have not been placed.
    """

    parameters: Parameters | None
    pages: int
    groups: int
    duplicates: int
    unseen: int
    waiting: int


async def one_of_group(db: Reader) -> dict[int, int]:
    """The representatives of all pages that are duplicates, by the ids of these.

    A page that is left out stands for itself. In SQL, over all pages: ``page LEFT JOIN
    duplicate ON page_id = page.id`` and ``coalesce(representative_id, page.id)``.
    """
    rows = await db.execute_fetchall(
        "SELECT l.page_id, g.representative_id FROM lsh_page AS l "
        "CROSS JOIN lsh_group AS g ON g.leader_id = l.leader_id "
        "WHERE g.representative_id <> l.page_id"
    )
    return {row[0]: row[1] for row in rows}


async def sharing(db: Reader, page_id: int) -> int:
    """Count the pages that share one page's importance with this one, as weighing has it.

    They are its near-duplicates or, in a closed pattern of URLs, all copies.
    """
    rows = await db.execute_fetchall(
        "SELECT max((SELECT count(*) FROM page AS me "
        "  JOIN trap AS t ON t.host_id = me.host_id AND t.shape = me.pattern "
        "  JOIN page AS p ON p.host_id = me.host_id AND p.pattern = me.pattern "
        "  WHERE me.id = ?1 AND me.copy_of <> me.id AND me.depth > 0 AND t.kind = ?2 "
        "  AND t.closed_at IS NOT NULL AND p.copy_of <> p.id AND p.depth > 0) - 1, "
        "(SELECT count(*) FROM lsh_page AS me JOIN lsh_page AS m ON m.leader_id = me.leader_id "
        "  WHERE me.page_id = ?1 AND m.leader_id <> m.page_id))",
        (page_id, url_patterns.KIND),
    )
    return int(next(iter(rows))[0])


async def groups(db: Reader, limit: int) -> list[DuplicateGroup]:
    """The largest groups, at most ``limit``; the duplicates by URL."""
    rows = await db.execute_fetchall(
        "SELECT g.representative_id, p.url FROM lsh_group AS g "
        "JOIN page AS p ON p.id = g.representative_id "
        "ORDER BY (SELECT count(*) FROM lsh_page AS m WHERE m.leader_id = g.leader_id "
        "          AND m.leader_id <> m.page_id) DESC, p.url LIMIT ?",
        (limit,),
    )
    return [DuplicateGroup(row[1], await _duplicates(db, row[0])) for row in rows]


async def _duplicates(db: Reader, representative_id: int) -> list[Duplicate]:
    rows = await db.execute_fetchall(
        "SELECT p.url, d.resemblance, d.resemblance_se, d.at FROM duplicate AS d "
        "JOIN page AS p ON p.id = d.page_id WHERE d.representative_id = ? ORDER BY p.url",
        (representative_id,),
    )
    return [Duplicate(**row) for row in rows]


async def state(db: Reader) -> IndexState:
    """How far the pages have been compared, and what that gave."""
    rows = await db.execute_fetchall(
        "SELECT (SELECT count(*) FROM lsh_page), (SELECT count(*) FROM lsh_group), "
        "(SELECT count(*) FROM duplicate), "
        "(SELECT count(*) FROM observation WHERE id > coalesce("
        "  (SELECT observation_id FROM lsh), 0)), "
        "(SELECT count(*) FROM lsh_page WHERE leader_id IS NULL)"
    )
    return IndexState(await parameters(db), *next(iter(rows)))
