"""Tables ``claim_source`` and ``claim``: when pages changed, as others claim. Append-only.

A source speaks of thousands of pages at a time and mostly repeats itself: a claim is kept where it
changed. Hence one statement for all claims of a source, and columns for those who learn from them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import numpy as np
from aiosqlite import Connection as Reader

from freshet.storage.database import (
    as_columns,
    as_json,
    code_of,
    columns_of,
    load_columns,
    row_of,
    row_to,
)
from freshet.storage.entries import CLAIM_KINDS, PUSHED, ClaimKind, Claims, SourceReport, no_claims
from freshet.storage.records import Entry

_SLICE = 5_000
_KNOW = (
    "INSERT INTO claim_source (kind, host_id, page_id, url, rejected) "
    "SELECT value ->> 0, h.id, value ->> 2, coalesce(value ->> 3, h.origin), value ->> 4 "
    "FROM json_each(?) JOIN host AS h ON h.id = value ->> 1 WHERE true "
    "ON CONFLICT (kind, url) DO UPDATE SET rejected = rejected + excluded.rejected, "
    "page_id = coalesce(excluded.page_id, page_id)"
)
#: The last claim of a source on a page is at the end of its index entry.
_APPEND = """
    INSERT INTO claim (source_id, page_id, since, until, received_at)
    SELECT s.id, p.id, c.value ->> 4, c.value ->> 5, c.value ->> 6
    FROM json_each(?) AS c
    CROSS JOIN claim_source AS s ON s.kind = c.value ->> 0 AND s.url = coalesce(
        c.value ->> 2, (SELECT origin FROM host WHERE id = c.value ->> 1))
    CROSS JOIN page AS p ON p.url = c.value ->> 3
    LEFT JOIN claim AS k ON k.id =
        (SELECT max(id) FROM claim WHERE source_id = s.id AND page_id = p.id)
    WHERE k.id IS NULL OR k.since <> c.value ->> 4 OR k.until <> c.value ->> 5
    ORDER BY c.value ->> 6, s.id, p.id
"""
#: A smaller skew may be an error of measurement: Date has whole seconds, and arrives late.
_IN_STEP_S = 120
#: Correction to our clock; pushed claims have times by our clock.
_SKEW = f"iif(s.kind NOT IN {PUSHED} AND abs(g.skew_s) >= {_IN_STEP_S}, g.skew_s, 0)"
#: A page that has moved for good is known by its new place.
_AFTER = (
    "SELECT "
    + columns_of(
        # In a store that somebody has edited a source may be of no kind.
        Claims, "c",
        kind=f"coalesce({code_of(CLAIM_KINDS, 's.kind')}, {CLAIM_KINDS.index('ping')})",
        page_id="iif(p.alias_kind = 'permanent', coalesce(p.alias_of, p.id), p.id)",
        since=f"min(c.since - {_SKEW}, c.received_at)",
        until=f"min(c.until - {_SKEW}, c.received_at)",
    )
    + " FROM claim_source AS s JOIN claim AS c ON c.source_id = s.id "
    "JOIN page AS p ON p.id = c.page_id LEFT JOIN host_signals AS g ON g.host_id = s.host_id "
    "WHERE c.id > ? ORDER BY c.id"
)  # fmt: skip
_ANSWERED = "('new', 'changed', 'unchanged')"


@dataclass(frozen=True, slots=True)
class ClaimSource:
    """A source of claims, and its history.

    ``host`` is the origin that it speaks for. ``polls`` counts the visits that it answered, None if
    it is not requested itself (a header, a hub, pings); ``entries`` are the pages that it
    mentioned, ``moved`` the claims that followed others on the same page, ``rejected`` those not
    believable.
    """

    source_id: int
    kind: ClaimKind
    host: str
    url: str
    polls: int | None
    polled_at: float | None
    entries: int
    moved: int
    rejected: int
    said_at: float | None


@dataclass(frozen=True, slots=True)
class HeardClaim:
    """A claim of a source (``url``) about a page, by the source's clock: see table ``claim``."""

    kind: ClaimKind
    url: str
    since: float
    until: float
    received_at: float


def append(db: Connection, entries: Sequence[Entry]) -> Claims:
    """Keep the claims of these entries that differ from their source's last; return them.

    Claims on unknown pages are dropped.
    """
    said = [(entry.said, entry.at) for entry in entries if entry.said is not None]
    if not said:
        return no_claims()
    known = [(each.kind, each.host_id, each.page_id, each.url, each.rejected) for each, _ in said]
    db.execute(_KNOW, (as_json(known),))
    (before,) = db.execute("SELECT coalesce(max(id), 0) FROM claim").fetchone()
    if not sum([db.execute(_APPEND, (rows,)).rowcount for rows in _slices(said)]):
        return no_claims()
    return as_columns(Claims, np.fromiter(db.execute(_AFTER, (before,)), row_of(Claims)))


async def load(db: Reader, after: int = 0) -> Claims:
    """Return all claims, or those after one (its id), in the order of their receipt."""
    return await load_columns(db, Claims, _AFTER, (after,))


async def asked(db: Reader) -> dict[int, int]:
    """Return the page under which each source that is requested itself is visited."""
    cursor = await db.execute("SELECT id, page_id FROM claim_source WHERE page_id IS NOT NULL")
    return {row[0]: row[1] for row in await cursor.fetchall()}


async def has_news(db: Reader) -> bool:
    """Return whether a source other than the headers of pages has reported a change."""
    cursor = await db.execute("SELECT 1 FROM claim_source WHERE kind <> 'last_modified' LIMIT 1")
    return await cursor.fetchone() is not None


async def last_words(db: Reader, page_id: int, limit: int) -> list[HeardClaim]:
    """Return each source's last claim on a page, the latest first."""
    sql = (
        f"SELECT {columns_of(HeardClaim, 'c', kind='s.kind', url='s.url')} FROM claim_source AS s "
        "JOIN claim AS c "
        "ON c.id = (SELECT max(id) FROM claim WHERE source_id = s.id AND page_id = ?) "
        "ORDER BY c.id DESC LIMIT ?"
    )
    return list(map(row_to(HeardClaim), await db.execute_fetchall(sql, (page_id, limit))))


async def heard(db: Reader, page_id: int, host_id: int, limit: int) -> list[HeardClaim]:
    """Return the claims on a page by the sources of its host, the latest first."""
    sql = (
        f"SELECT {columns_of(HeardClaim, 'c', kind='s.kind', url='s.url')} FROM claim_source AS s "
        "CROSS JOIN claim AS c ON c.source_id = s.id AND c.page_id = ? WHERE s.host_id = ? "
        "ORDER BY c.id DESC LIMIT ?"
    )
    return list(map(row_to(HeardClaim), await db.execute_fetchall(sql, (page_id, host_id, limit))))


async def sources(db: Reader, host_id: int | None = None) -> list[ClaimSource]:
    """Return all sources, or those that speak for a host, by kind and URL."""
    sql = (
        "SELECT s.id, s.kind, h.origin, s.url, "
        "iif(s.kind IN ('sitemap', 'feed'), (SELECT count(*) FROM finding AS f "
        f"  WHERE f.page_id = s.page_id AND f.kind IN {_ANSWERED}), NULL), "
        "iif(s.kind IN ('sitemap', 'feed'), (SELECT max(f.at) FROM finding AS f "
        f"  WHERE f.page_id = s.page_id AND f.kind IN {_ANSWERED}), NULL), "
        "count(DISTINCT c.page_id), count(c.id) - count(DISTINCT c.page_id), s.rejected, "
        "max(c.received_at) FROM claim_source AS s JOIN host AS h ON h.id = s.host_id "
        "LEFT JOIN claim AS c ON c.source_id = s.id WHERE s.host_id = coalesce(?, s.host_id) "
        "GROUP BY s.id ORDER BY h.origin, s.kind, s.url"
    )
    return list(map(row_to(ClaimSource), await db.execute_fetchall(sql, (host_id,))))


def _slices(said: Iterable[tuple[SourceReport, float]]) -> Iterator[str]:
    """Yield the claims as JSON, a slice at a time to bound memory.

    Of several claims on a page the first of a response counts, else the last.
    """
    chosen: dict[tuple[ClaimKind, int, str | None, str], tuple[float, float, float]] = {}
    for each, at in said:
        source = each.kind, each.host_id, each.url
        for first in range(0, len(each.claims), _SLICE):
            for claim in reversed(each.claims[first : first + _SLICE]):
                chosen[*source, claim.url] = float(claim.since), float(claim.until), float(at)
            if len(chosen) >= _SLICE:
                yield as_json([(*key, *times) for key, times in chosen.items()])
                chosen.clear()
    if chosen:
        yield as_json([(*key, *times) for key, times in chosen.items()])
