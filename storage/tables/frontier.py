"""Table ``frontier``: the URLs that are due in the current run.

Invariant: a URL that is due stands here from the transaction that found it to the one
that settles it. Consequence: a killed run goes on where it was, and what was in flight is
fetched again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

import aiosqlite

from freshet.storage.records import Digests, DueUrl, Validators, Visit
from freshet.storage.words import Reason, Role

#: The priority of URLs that a former run deferred; others have their depth plus one.
_DEFERRED = 0


async def begin_run(connection: aiosqlite.Connection, now: float, recheck_before: float) -> None:
    """Make every known page due, the deferred ones first.

    A permanent redirect seen since ``recheck_before`` is taken as still standing.
    """
    await connection.execute(
        "UPDATE frontier SET priority = ?, due_at = ?, attempt = 0, deferred = NULL",
        (_DEFERRED, now),
    )
    await connection.execute(
        "INSERT OR IGNORE INTO frontier (page_id, host_id, priority, due_at, reason) "
        "SELECT id, host_id, depth + 1, ?, iif(checked_at IS NULL, ?, ?) FROM page "
        "WHERE held_back IS NULL "
        "AND NOT (alias_of IS NOT NULL AND alias_kind = 'permanent' AND alias_at >= ?)",
        (now, Reason.DISCOVERY, Reason.REFRESH, recheck_before),
    )


async def resume_run(connection: aiosqlite.Connection, now: float) -> None:
    """Make the URLs that an earlier invocation deferred due again, first of all."""
    await connection.execute(
        "UPDATE frontier SET priority = ?, due_at = min(due_at, ?), attempt = 0, deferred = NULL "
        "WHERE deferred IS NOT NULL",
        (_DEFERRED, now),
    )


async def add(
    connection: aiosqlite.Connection, page_ids: Collection[int], now: float, reason: Reason
) -> None:
    """Make these pages due; those that are due already stay as they are."""
    await connection.execute(
        "INSERT OR IGNORE INTO frontier (page_id, host_id, priority, due_at, reason) "
        "SELECT id, host_id, depth + 1, ?, ? FROM page "
        "WHERE id IN (SELECT value FROM json_each(?))",
        (now, reason, json.dumps(list(page_ids))),
    )


async def settle(connection: aiosqlite.Connection, visits: Sequence[Visit]) -> None:
    """Take visited URLs out; those to be retried wait for their time."""
    await connection.executemany(
        "DELETE FROM frontier WHERE page_id = ?",
        [(v.due.page_id,) for v in visits if v.retry_at is None],
    )
    await connection.executemany(
        "UPDATE frontier SET due_at = ?, attempt = attempt + ? WHERE page_id = ?",
        [(v.retry_at, int(v.charged), v.due.page_id) for v in visits if v.retry_at is not None],
    )


async def defer(connection: aiosqlite.Connection, reasons: Mapping[int, str]) -> int:
    """Mark what is left of a run as deferred, with the reason of its host; how many."""
    cursor = await connection.execute(
        "UPDATE frontier SET deferred = coalesce("
        "(SELECT r.value FROM json_each(?) AS r WHERE r.key = CAST(host_id AS TEXT)), ?)",
        (json.dumps({str(host): why for host, why in reasons.items()}), "retry is not due yet"),
    )
    return cursor.rowcount


async def wake_times(connection: aiosqlite.Connection) -> list[tuple[int, float]]:
    """The hosts that have URLs here, with the time of the first and of every retry."""
    rows = await connection.execute_fetchall(
        "SELECT host_id, min(due_at) FROM frontier GROUP BY host_id "
        "UNION SELECT host_id, due_at FROM frontier WHERE attempt > 0"
    )
    return [(row[0], row[1]) for row in rows]


_DUE = (
    "SELECT p.id, p.url, p.fetch_url, p.host_id, coalesce(f.due_at, 0.0), "
    f"coalesce(f.reason, '{Reason.REFRESH}'), p.role, p.depth, coalesce(f.attempt, 0), "
    "p.redirects, p.etag, p.last_modified, p.body_digest, p.text_digest, "
    "(SELECT min(id) FROM seed WHERE page_id = p.id), "
    "(SELECT text_version FROM version WHERE id = p.version_id) FROM page AS p "
)


async def of_url(connection: aiosqlite.Connection, url: str) -> DueUrl | None:
    """A page by its canonical URL as it would be asked for, whether it is due or not."""
    rows = await connection.execute_fetchall(
        f"{_DUE} LEFT JOIN frontier AS f ON f.page_id = p.id WHERE p.url = ?", (url,)
    )
    row = next(iter(rows), None)
    return None if row is None else _due_url(row)


async def load(
    connection: aiosqlite.Connection, host_ids: Collection[int], now: float, limit: int
) -> list[DueUrl]:
    """The first ``limit`` due URLs of each of these hosts, in their order."""
    rows = await connection.execute_fetchall(
        "SELECT f.page_id, p.url, p.fetch_url, f.host_id, f.due_at, f.reason, p.role, p.depth, "
        "f.attempt, p.redirects, p.etag, p.last_modified, p.body_digest, p.text_digest, "
        "(SELECT min(id) FROM seed WHERE page_id = f.page_id), "
        "(SELECT text_version FROM version WHERE id = p.version_id) "
        "FROM json_each(?) AS h CROSS JOIN frontier AS f "
        "  ON f.page_id IN (SELECT page_id FROM frontier WHERE host_id = h.value AND due_at <= ? "
        "                   ORDER BY priority, page_id LIMIT ?) "
        "CROSS JOIN page AS p ON p.id = f.page_id "
        "ORDER BY f.host_id, f.priority, f.page_id",
        (json.dumps(list(host_ids)), now, limit),
    )
    return [_due_url(row) for row in rows]


def _due_url(row: aiosqlite.Row) -> DueUrl:
    digests = Digests(row[12], row[13], row[15]) if row[12] is not None else None
    return DueUrl(
        page_id=row[0], url=row[1], fetch_url=row[2], host_id=row[3], due_at=row[4],
        reason=Reason(row[5]), role=Role(row[6]), depth=row[7], attempt=row[8],
        redirects=row[9], validators=Validators(row[10], row[11]), digests=digests,
        seed_id=row[14],
    )  # fmt: skip
