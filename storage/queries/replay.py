"""Every look that a store has written down, as it was made, for replays. Read-only.

A connection that is given here should be one snapshot: looks, versions and bodies fit together.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import aiosqlite

from freshet.storage.records import SeedLine, Validators
from freshet.storage.words import KINDS, Kind, Role

_ROWS = 500
_KINDS = ", ".join(f"'{kind}'" for kind in KINDS)
_CONTENT = f"('{Kind.NEW}', '{Kind.CHANGED}', '{Kind.UNCHANGED}')"
#: Before the year 10000: what is not was never a time.
_TIMES = "BETWEEN 0 AND 253402300799"

_RUNS = (
    "SELECT id, started_at, EXISTS (SELECT 1 FROM outlook WHERE run_id = r.id) FROM crawl_run AS r "
    f"WHERE started_at {_TIMES} ORDER BY started_at, id"
)
_IDS = (
    f"SELECT id FROM observation WHERE run_id = ? AND at >= ? AND at {_TIMES} "
    "AND duration_s BETWEEN 0 AND at ORDER BY at, id"
)
#: A capture that was taken back has no version any more, and another one may have its id by now.
_SEEN = (
    f"LEFT JOIN amendment AS a ON a.observation_id = o.id AND a.kind = '{Kind.FAILED}' "
    f"  AND o.kind IN {_CONTENT} "
    "LEFT JOIN version AS v ON v.id = o.version_id AND v.page_id = o.page_id AND a.kind IS NULL "
    "LEFT JOIN body AS b ON b.digest = v.body_digest "
)
#: The validators are those of the last answer that had a body, the directives of the last content.
_LOOKS = (
    "SELECT o.at, o.kind, o.rung, o.status, coalesce(a.reason, o.reason), "
    "  coalesce(a.detail, o.detail), o.duration_s, a.kind IS NOT NULL, "
    "  p.url, p.fetch_url, p.role, p.depth, p.host_id, h.origin, t.fetch_url, "
    "  v.id, v.body_digest, v.content_type, b.digest IS NOT NULL, "
    "  v.id IS p.version_id AND p.noindex, v.id IS p.version_id AND p.nofollow, "
    "  v.id IS p.version_id AND p.noarchive, p.etag, p.last_modified, "
    "  (p.etag IS NOT NULL OR p.last_modified IS NOT NULL) AND NOT EXISTS ("
    "    SELECT 1 FROM observation AS l WHERE l.page_id = o.page_id AND l.at > o.at "
    "    AND l.status BETWEEN 200 AND 299) "
    "FROM json_each(?) AS w CROSS JOIN observation AS o ON o.id = w.value "
    "JOIN page AS p ON p.id = o.page_id JOIN host AS h ON h.id = p.host_id "
    f"{_SEEN} LEFT JOIN page AS t ON o.kind = '{Kind.REDIRECTED}' AND t.url = o.detail "
    "ORDER BY w.key"
)
_EXTENT = (
    "SELECT count(*), total(is_odd), "
    f"  total(NOT is_odd AND kind IN {_CONTENT} AND NOT is_kept AND NOT is_taken_back), "
    "  total(NOT is_odd AND is_taken_back) "
    "FROM (SELECT o.kind, b.digest IS NOT NULL AS is_kept, a.kind IS NOT NULL AS is_taken_back, "
    f"    r.started_at IS NULL OR r.started_at NOT {_TIMES} OR o.at NOT {_TIMES} "
    "     OR o.duration_s NOT BETWEEN 0 AND o.at OR h.id IS NULL "
    f"    OR o.kind NOT IN ({_KINDS}) AS is_odd "
    "  FROM observation AS o LEFT JOIN crawl_run AS r ON r.id = o.run_id "
    "  LEFT JOIN page AS p ON p.id = o.page_id LEFT JOIN host AS h ON h.id = p.host_id "
    f" {_SEEN})"
)


@dataclass(frozen=True, slots=True)
class LookRun:
    """A run; ``is_lasting``: a daemon's, for only these note what they expect."""

    run_id: int
    began_at: float
    is_lasting: bool


@dataclass(frozen=True, slots=True)
class LookPage:
    """What was looked at, as the store knows it now; ``origin`` is that of its host."""

    url: str
    fetch_url: str
    role: Role
    depth: int
    host_id: int
    origin: str


@dataclass(frozen=True, slots=True)
class SeenVersion:
    """The content that a look found.

    Attributes:
        version_id: its row.
        body_digest: of its bytes, 16 bytes (BLAKE2b).
        content_type: as the server said.
        is_kept: whether its bytes are in the store.
        directives: words of meta robots and X-Robots-Tag, where it is the page's last content;
            of an earlier one they are not known.
    """

    version_id: int
    body_digest: bytes
    content_type: str | None
    is_kept: bool
    directives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """An observation as it was made.

    Attributes:
        at: when it ended (Unix seconds); it took ``duration_s``.
        kind, rung: words, not checked.
        status, reason, detail: as observed; reason and detail of a capture that was taken back are
            those for which it was.
        is_taken_back: it was seen to be no content, and what it captured is no longer there.
        target: of a redirect the URL that it leads to as that is asked for, where it is known.
        version: what it saw; None: no content, or it is not known.
        validators: the server's own words for it; none where they are not known.
    """

    at: float
    kind: str
    rung: str | None
    status: int | None
    reason: str | None
    detail: str | None
    duration_s: float
    is_taken_back: bool
    page: LookPage
    target: str | None
    version: SeenVersion | None
    validators: Validators


@dataclass(frozen=True, slots=True)
class Extent:
    """How many looks a store has, and of how many it has not all.

    Attributes:
        looks: all of them.
        odd: of no kind, time, run, page or host that there could be.
        not_kept: saw content that is not kept.
        taken_back: of what they saw only the word is left that it was no content.
    """

    looks: int
    odd: int
    not_kept: int
    taken_back: int


async def born_at(connection: aiosqlite.Connection) -> float:
    """When a store was made, by which it and its copies are known."""
    rows = await connection.execute_fetchall("SELECT applied_at FROM migration WHERE number = 1")
    return next((float(row[0]) for row in rows), 0.0)


async def records_of_runs(connection: aiosqlite.Connection) -> list[str]:
    """What each run says of its settings (JSON)."""
    rows = await connection.execute_fetchall("SELECT settings FROM crawl_run")
    return [row[0] for row in rows]


async def runs(connection: aiosqlite.Connection) -> list[LookRun]:
    """The runs in the order in which they began."""
    rows = await connection.execute_fetchall(_RUNS)
    return [LookRun(row[0], row[1], bool(row[2])) for row in rows]


async def seeds(connection: aiosqlite.Connection, before: float) -> list[SeedLine]:
    """The seeds that were added before a time."""
    rows = await connection.execute_fetchall(
        "SELECT text, url, fallback_url, importance, half_life_hours FROM seed "
        "WHERE added_at < ? ORDER BY id",
        (before,),
    )
    return [SeedLine(*row) for row in rows]


async def found_at(connection: aiosqlite.Connection, url: str) -> float | None:
    """When the page at a canonical URL became known, or None: it is not."""
    rows = await connection.execute_fetchall("SELECT found_at FROM page WHERE url = ?", (url,))
    return next((row[0] for row in rows), None)


async def extent(connection: aiosqlite.Connection) -> Extent:
    """How much there is, and is not; reads all looks."""
    rows = await connection.execute_fetchall(_EXTENT)
    return Extent(*map(int, next(iter(rows))))


async def looks(
    connection: aiosqlite.Connection, run_id: int, after: float
) -> AsyncIterator[list[Look]]:
    """The looks of a run from a time on, in the order in which they ended, some at a time.

    Those without a page are left out. SQLite sorts the ids, on the disk if need be.
    """
    async with connection.execute(_IDS, (run_id, after)) as cursor:
        cursor.row_factory = None
        while ids := [row[0] for row in await cursor.fetchmany(_ROWS)]:
            yield await _read(connection, ids)


async def _read(connection: aiosqlite.Connection, ids: Sequence[int]) -> list[Look]:
    async with connection.execute(_LOOKS, (json.dumps(ids),)) as cursor:
        cursor.row_factory = None
        return [_look(tuple(row)) for row in await cursor.fetchall()]


def _look(row: Sequence[Any]) -> Look:
    at, kind, rung, status, reason, detail, duration_s, taken_back = row[:8]
    url, fetch_url, role, depth, host_id, origin, target = row[8:15]
    etag, last_modified, is_last = row[22:]
    return Look(
        at, kind, rung, status, reason, detail, duration_s, bool(taken_back),
        LookPage(url, fetch_url, Role(role), depth, host_id, origin), target, _version(row[15:22]),
        Validators(etag, last_modified) if is_last else Validators(),
    )  # fmt: skip


def _version(row: Sequence[Any]) -> SeenVersion | None:
    version_id, digest, content_type, is_kept, *flags = row
    if version_id is None:
        return None
    words = ("noindex", "nofollow", "noarchive")
    said = tuple(word for word, is_set in zip(words, flags, strict=True) if is_set)
    return SeenVersion(version_id, digest, content_type, bool(is_kept), said)
