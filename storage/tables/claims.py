"""Tables ``claim_source`` and ``claim``: what others say of when pages changed. Append-only.

A source speaks of thousands of pages at a time and mostly says what it said before: a claim is
kept where it moved. Hence one statement for all that a source says at once, whose search goes by
an index, and columns for whoever learns from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import numpy as np
from aiosqlite import Connection as Reader

from freshet.storage.database import as_columns, code_of, columns_of, load_columns, row_of, row_to
from freshet.storage.entries import (
    CLAIM_KINDS,
    Claim,
    ClaimKind,
    Claims,
    Subscription,
    SubscriptionNoted,
    no_claims,
)
from freshet.storage.records import Announcement, Entry, Visit
from freshet.storage.words import Kind

_SLICE = 5_000
_KNOW = (
    "INSERT INTO claim_source (kind, host_id, page_id, url, rejected) "
    "SELECT value ->> 0, h.id, value ->> 2, coalesce(value ->> 3, h.origin), value ->> 4 "
    "FROM json_each(?) JOIN host AS h ON h.id = value ->> 1 WHERE true "
    "ON CONFLICT (kind, url) DO UPDATE SET rejected = rejected + excluded.rejected, "
    "page_id = coalesce(excluded.page_id, page_id)"
)
#: The last claim of a source on a page stands at the end of its index entry.
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
#: A clock that is out of step by less may be in step: Date tells whole seconds, late.
_IN_STEP_S = 120
#: Times by our clock, none after they were heard. Of what was pushed to us they are our own.
_SKEW = (
    "iif(s.kind IN ('sitemap', 'feed', 'last_modified') "
    f"AND abs(g.skew_s) >= {_IN_STEP_S}, g.skew_s, 0)"
)
#: A page that has moved for good is known by where it stands now.
_AFTER = (
    "SELECT "
    + columns_of(
        Claims, "c", kind=code_of(CLAIM_KINDS, "s.kind"),
        page_id="iif(p.alias_kind = 'permanent', coalesce(p.alias_of, p.id), p.id)",
        since=f"min(c.since - {_SKEW}, c.received_at)",
        until=f"min(c.until - {_SKEW}, c.received_at)",
    )
    + " FROM claim_source AS s JOIN claim AS c ON c.source_id = s.id "
    "JOIN page AS p ON p.id = c.page_id LEFT JOIN host_signals AS g ON g.host_id = s.host_id "
    "WHERE c.id > ? ORDER BY c.id"
)  # fmt: skip
_ANSWERED = f"('{Kind.NEW}', '{Kind.CHANGED}', '{Kind.UNCHANGED}')"


@dataclass(frozen=True, slots=True)
class ClaimSource:
    """A source of claims, and what it has said so far.

    ``host`` is the origin that it speaks for. ``polls`` counts the visits that it answered, None
    where it is not asked for itself (a header, a hub, pings); ``entries`` the pages of which it
    spoke, ``moved`` the claims that followed others on the same page, and ``rejected`` those
    that could not be believed.
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
    """What a source (``url``) said of a page, by its own clock: see table ``claim``."""

    kind: ClaimKind
    url: str
    since: float
    until: float
    received_at: float


@dataclass(frozen=True, slots=True)
class _Said:
    """What one source claims at a time; ``url`` is None where it is the host itself."""

    kind: ClaimKind
    host_id: int
    page_id: int | None
    url: str | None
    rejected: int
    claims: tuple[Claim, ...]
    at: float


def append(db: Connection, entries: Sequence[Entry]) -> Claims:
    """Keep what these entries claim, where it is not what the source said last; what was kept.

    After their pages exist: claims on unknown pages are dropped.
    """
    said = [each for entry in entries if (each := _said(entry)) is not None]
    if not said:
        return no_claims()
    known = [(each.kind, each.host_id, each.page_id, each.url, each.rejected) for each in said]
    db.execute(_KNOW, (json.dumps(known),))
    ((before,),) = db.execute("SELECT coalesce(max(id), 0) FROM claim").fetchall()
    kept = 0
    for rows in _slices(said):
        cursor = db.execute(_APPEND, (rows,))
        kept += cursor.rowcount
    if not kept:
        return no_claims()
    new = np.fromiter(db.execute(_AFTER, (before,)), row_of(Claims))
    return as_columns(Claims, new)


async def load(db: Reader) -> Claims:
    """All claims, in the order in which they were received."""
    return await load_columns(db, Claims, _AFTER, (0,))


async def asked(db: Reader) -> dict[int, int]:
    """Of each source that is asked for what it says: the page under which that is done."""
    cursor = await db.execute("SELECT id, page_id FROM claim_source WHERE page_id IS NOT NULL")
    return {row[0]: row[1] for row in await cursor.fetchall()}


async def last_words(db: Reader, page_id: int, limit: int) -> list[HeardClaim]:
    """What each source said last of a page, the latest first."""
    rows = await db.execute_fetchall(
        f"SELECT {columns_of(HeardClaim, 'c', kind='s.kind', url='s.url')} FROM claim_source AS s "
        "JOIN claim AS c "
        "ON c.id = (SELECT max(id) FROM claim WHERE source_id = s.id AND page_id = ?1) "
        "ORDER BY c.id DESC LIMIT ?2",
        (page_id, limit),
    )
    return list(map(row_to(HeardClaim), rows))


async def sources(db: Reader, host_id: int | None = None) -> list[ClaimSource]:
    """All sources, or those that speak for a host, by kind and URL."""
    rows = await db.execute_fetchall(
        "SELECT s.id, s.kind, h.origin, s.url, "
        "iif(s.kind IN ('sitemap', 'feed'), (SELECT count(*) FROM finding AS f "
        f"  WHERE f.page_id = s.page_id AND f.kind IN {_ANSWERED}), NULL), "
        "iif(s.kind IN ('sitemap', 'feed'), (SELECT max(f.at) FROM finding AS f "
        f"  WHERE f.page_id = s.page_id AND f.kind IN {_ANSWERED}), NULL), "
        "count(DISTINCT c.page_id), count(c.id) - count(DISTINCT c.page_id), s.rejected, "
        "max(c.received_at) "
        "FROM claim_source AS s JOIN host AS h ON h.id = s.host_id "
        "LEFT JOIN claim AS c ON c.source_id = s.id WHERE ?1 IS NULL OR s.host_id = ?1 "
        "GROUP BY s.id ORDER BY h.origin, s.kind, s.url",
        (host_id,),
    )
    return list(map(row_to(ClaimSource), rows))


def _said(entry: Entry) -> _Said | None:
    """What an entry claims, and whose word it is; None where it is nobody's."""
    match entry:
        case Visit(claim_kind=ClaimKind.LAST_MODIFIED as kind, due=due):
            # The header speaks for its host, a sitemap or feed for itself.
            own, url = None, None
        case Visit(claim_kind=ClaimKind() as kind, due=due):
            own, url = due.page_id, due.url
        case Announcement(kind=kind, host_id=host_id, url=url, claims=claims, at=at):
            return _Said(kind, host_id, None, url, 0, claims, at)
        case _:
            return None
    at = entry.observation.at
    return _Said(kind, due.host_id, own, url, entry.claims_rejected, entry.claims, at)


def _slices(said: Iterable[_Said]) -> Iterator[str]:
    """The claims as JSON, a slice at a time, so that no more than that is in memory.

    Of several of one answer on a page the first counts, else the last.
    """
    chosen: dict[tuple[ClaimKind, int, str | None, str], tuple[float, float, float]] = {}
    for each in said:
        source = each.kind, each.host_id, each.url
        for first in range(0, len(each.claims), _SLICE):
            for claim in reversed(each.claims[first : first + _SLICE]):
                chosen[*source, claim.url] = float(claim.since), float(claim.until), float(each.at)
            if len(chosen) >= _SLICE:
                yield json.dumps([(*key, *times) for key, times in chosen.items()])
                chosen.clear()
    if chosen:
        yield json.dumps([(*key, *times) for key, times in chosen.items()])


# -- subscriptions -----------------------------------------------------------
#
# Table ``subscription``: what is agreed with the hubs of pages.


def record(db: Connection, noted: Sequence[SubscriptionNoted]) -> None:
    """Write how these subscriptions stand; the last word on each counts."""
    for each in noted:
        s = each.subscription
        if each.ended:
            db.execute("DELETE FROM subscription WHERE page_id = ?", (s.page_id,))
            continue
        db.execute(
            "INSERT OR REPLACE INTO subscription (page_id, hub, topic, token, secret, state, "
            "next_at, pending_until, lease_until, failures, detail) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (s.page_id, s.hub, s.topic, s.token, s.secret, s.state, s.next_at, s.pending_until,
             s.lease_until, s.failures, s.detail),
        )  # fmt: skip


async def load_subscriptions(db: Reader) -> list[Subscription]:
    """All subscriptions."""
    rows = await db.execute_fetchall(
        f"SELECT {columns_of(Subscription, 's', host_id='p.host_id', url='p.url')} "
        "FROM subscription AS s JOIN page AS p ON p.id = s.page_id ORDER BY s.page_id"
    )
    return list(map(row_to(Subscription), rows))
