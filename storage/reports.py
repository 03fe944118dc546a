"""What people ask of the store: read-only questions, each one query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

_GOOD = "('new', 'changed', 'unchanged')"


@dataclass(frozen=True, slots=True)
class ChangedPage:
    """A page whose main text changed; ``resemblance`` with the text before."""

    url: str
    at: float
    resemblance: float | None
    blocks_added: int | None
    blocks_removed: int | None


@dataclass(frozen=True, slots=True)
class DeferredHost:
    """A host whose URLs a run left for the next one."""

    origin: str
    urls: int
    reason: str


@dataclass(frozen=True, slots=True)
class SilentSeed:
    """A line of the site list that gave no page in a run, and why."""

    text: str
    url: str
    reason: str


@dataclass(frozen=True, slots=True)
class BoundedPattern:
    """A URL pattern that was bounded: ``refused`` of its URLs were not crawled."""

    origin: str
    kind: str
    shape: str
    admitted: int
    refused: int


@dataclass(frozen=True, slots=True)
class MovedSeed:
    """A seed whose scope stands elsewhere than its line says."""

    text: str
    root_url: str


async def changed(connection: aiosqlite.Connection, run_id: int) -> list[ChangedPage]:
    """The pages that changed significantly in a run, newest first."""
    rows = await connection.execute_fetchall(
        "SELECT p.url, o.at, o.resemblance, o.blocks_added, o.blocks_removed "
        "FROM finding AS o JOIN page AS p ON p.id = o.page_id "
        "WHERE o.run_id = ? AND o.kind = 'changed' AND p.role = 'page' ORDER BY o.at DESC, o.id",
        (run_id,),
    )
    return [ChangedPage(*row) for row in rows]


async def appeared(connection: aiosqlite.Connection, run_id: int) -> list[str]:
    """The pages that were fetched for the first time in a run."""
    return await _urls(
        connection,
        "SELECT p.url FROM finding AS o JOIN page AS p ON p.id = o.page_id "
        "WHERE o.run_id = ? AND o.kind = 'new' AND p.role = 'page' ORDER BY o.id",
        (run_id,),
    )


async def vanished(connection: aiosqlite.Connection, run_id: int) -> list[str]:
    """The pages that a run found gone and that were there when last asked."""
    return await _urls(
        connection,
        "SELECT p.url FROM observation AS o JOIN page AS p ON p.id = o.page_id "
        "WHERE o.run_id = ? AND o.kind = 'gone' AND p.role = 'page' AND ("
        f"  SELECT b.kind IN {_GOOD} FROM finding AS b "
        "  WHERE b.page_id = o.page_id AND b.id < o.id AND b.kind NOT IN ('failed', 'refused') "
        "  ORDER BY b.id DESC LIMIT 1) ORDER BY o.id",
        (run_id,),
    )


async def deferred(connection: aiosqlite.Connection) -> list[DeferredHost]:
    """The hosts with URLs that wait for the next run."""
    rows = await connection.execute_fetchall(
        "SELECT h.origin, count(*), max(f.deferred) FROM frontier AS f "
        "JOIN host AS h ON h.id = f.host_id WHERE f.deferred IS NOT NULL "
        "GROUP BY h.id ORDER BY h.origin"
    )
    return [DeferredHost(*row) for row in rows]


async def silent_seeds(connection: aiosqlite.Connection, run_id: int) -> list[SilentSeed]:
    """The seeds whose host gave no page in a run, with the last word on each."""
    rows = await connection.execute_fetchall(
        "SELECT s.text, coalesce(s.root_url, s.url), f.deferred, o.kind, o.reason, o.detail, "
        "       o.status, p.held_back "
        "FROM seed AS s LEFT JOIN page AS p ON p.id = s.page_id "
        "LEFT JOIN frontier AS f ON f.page_id = p.id "
        "LEFT JOIN finding AS o ON o.id = ("
        "  SELECT max(id) FROM observation WHERE page_id = p.id AND run_id = ?1) "
        "WHERE NOT EXISTS (SELECT 1 FROM page AS q WHERE q.host_id = p.host_id "
        "  AND q.role = 'page' "
        "  AND q.checked_at >= (SELECT started_at FROM crawl_run WHERE id = ?1)) ORDER BY s.id",
        (run_id,),
    )
    return [SilentSeed(row[0], row[1], _why_silent(row)) for row in rows]


async def moved_seeds(connection: aiosqlite.Connection) -> list[MovedSeed]:
    """The seeds that redirected: their scope has moved."""
    rows = await connection.execute_fetchall(
        "SELECT text, root_url FROM seed WHERE root_url IS NOT NULL AND root_url <> url "
        "AND root_url <> coalesce(fallback_url, '') ORDER BY id"
    )
    return [MovedSeed(*row) for row in rows]


async def bounded(connection: aiosqlite.Connection) -> list[BoundedPattern]:
    """The URL patterns of which some were not crawled."""
    rows = await connection.execute_fetchall(
        "SELECT h.origin, t.kind, t.shape, t.admitted, t.refused FROM trap AS t "
        "JOIN host AS h ON h.id = t.host_id WHERE t.refused > 0 ORDER BY t.refused DESC"
    )
    return [BoundedPattern(*row) for row in rows]


async def held_back(connection: aiosqlite.Connection) -> dict[str, int]:
    """How many known URLs are not crawled, by reason."""
    return await _counts(
        connection, "SELECT held_back, count(*) FROM page WHERE held_back IS NOT NULL GROUP BY 1"
    )


async def kinds(connection: aiosqlite.Connection, run_id: int) -> dict[str, int]:
    """How many observations a run made, by kind."""
    return await _counts(
        connection,
        "SELECT kind, count(*) FROM finding WHERE run_id = ? GROUP BY kind ORDER BY kind",
        (run_id,),
    )


async def _counts(
    connection: aiosqlite.Connection, sql: str, parameters: Sequence[object] = ()
) -> dict[str, int]:
    return {row[0]: row[1] for row in await connection.execute_fetchall(sql, parameters)}


async def _urls(
    connection: aiosqlite.Connection, sql: str, parameters: Sequence[object]
) -> list[str]:
    return [row[0] for row in await connection.execute_fetchall(sql, parameters)]


def _why_silent(row: aiosqlite.Row) -> str:
    _, _, deferred_why, kind, reason, detail, status, held = row
    if deferred_why is not None:
        return str(deferred_why)
    if kind is None:
        return str(held) if held else "it was not reached"
    words = [str(kind)]
    if status is not None:
        words.append(f"HTTP {status}")
    if detail or reason:
        words.append(str(detail or reason))
    return ": ".join(words)
