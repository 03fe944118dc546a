"""Table ``frontier``: the URLs that are due in the current run.

Invariant: a due URL is here from the transaction that found it to the one that settles it.
Consequence: a killed run is resumed, and requests in flight are made again.
"""

from collections.abc import Collection, Mapping, Sequence
from sqlite3 import Connection

from aiosqlite import Connection as Reader

from freshet.storage.database import as_json, columns_of, row_to
from freshet.storage.entries import Reason
from freshet.storage.records import DueUrl, Visit

#: The priority of URLs that a former run deferred; others have their depth plus one.
_DEFERRED = 0
#: When a dead link of ``page AS p`` is asked again: when it was dead for as long again, or a year.
#: Likewise a block page that stays the same, after a month at most, unless a browser may help. A
#: run that begins a little early does not leave it to the next one. NULL for other pages.
ASKED_AGAIN = (
    "iif(p.id IN (SELECT page_id FROM seed WHERE page_id > 0), NULL, CASE p.last_kind WHEN 'gone' "
    "THEN p.last_at + 0.8 * min(p.last_at - coalesce(p.checked_at, p.found_at), 31536000.0) "
    "WHEN 'failed' THEN iif(p.rejected_as <> 'needs_javascript', "
    "p.last_at + 0.8 * min(p.last_at - p.rejected_at, 2592000.0), NULL) END)"
)


def begin_run(db: Connection, now: float, recheck_before: float) -> None:
    """Make every known page due, the deferred ones first.

    A permanent redirect seen since ``recheck_before`` is assumed to hold. A page that was gone
    or is a block page waits by :data:`ASKED_AGAIN`: the pauses double.
    """
    sql = "UPDATE frontier SET priority = ?, due_at = ?, attempt = 0, deferred = NULL"
    db.execute(sql, (_DEFERRED, now))
    db.execute(
        "INSERT OR IGNORE INTO frontier (page_id, host_id, priority, due_at, reason) "
        "SELECT id, host_id, depth + 1, ?, iif(checked_at IS NULL, ?, ?) FROM page AS p "
        "WHERE held_back IS NULL "
        "AND NOT (alias_of IS NOT NULL AND alias_kind = 'permanent' AND alias_at >= ?) "
        f"AND coalesce({ASKED_AGAIN}, 0.0) <= ?",
        (now, "discovery", "refresh", recheck_before, now),
    )


def resume_run(db: Connection, now: float) -> None:
    """Make the URLs that an earlier invocation deferred due again, first of all."""
    db.execute(
        "UPDATE frontier SET priority = ?, due_at = min(due_at, ?), attempt = 0, deferred = NULL "
        "WHERE deferred IS NOT NULL",
        (_DEFERRED, now),
    )


def add(db: Connection, page_ids: Collection[int], now: float, reason: Reason) -> None:
    """Make these pages due; pages that are due already do not change."""
    if not page_ids:
        return
    db.execute(
        "INSERT OR IGNORE INTO frontier (page_id, host_id, priority, due_at, reason) "
        "SELECT id, host_id, depth + 1, ?, ? FROM page "
        "WHERE id IN (SELECT value FROM json_each(?))",
        (now, reason, as_json(list(page_ids))),
    )


def discover(db: Connection, found: Mapping[int, float]) -> None:
    """Make new pages due from the times at which they were found."""
    if found:
        db.execute(
            "INSERT OR IGNORE INTO frontier (page_id, host_id, priority, due_at, reason) "
            "SELECT p.id, p.host_id, p.depth + 1, w.value ->> 1, 'discovery' "
            "FROM json_each(?) AS w CROSS JOIN page AS p ON p.id = w.value ->> 0",
            (as_json(list(found.items())),),
        )


def return_to(db: Connection, page_ids: Collection[int], now: float) -> None:
    """Make these pages due once more, even those whose visits have begun."""
    if not page_ids:
        return
    add(db, page_ids, now, "return")
    sql = "UPDATE frontier SET reason = 'return' WHERE page_id IN (SELECT value FROM json_each(?))"
    db.execute(sql, (as_json(list(page_ids)),))


def settle(db: Connection, visits: Sequence[Visit]) -> dict[int, int]:
    """Remove visited URLs; those to be retried wait for their time.

    A URL to which a redirect has led back since its visit began stays due. Return the hosts of
    such URLs by page.
    """
    over = [(v.due.page_id, v.due.reason) for v in visits if v.retry_at is None]
    sql = "DELETE FROM frontier WHERE page_id = ? AND (reason <> 'return' OR ? = 'return')"
    db.executemany(sql, over)
    db.executemany(
        "UPDATE frontier SET due_at = ?, attempt = attempt + ? WHERE page_id = ?",
        [(v.retry_at, int(v.charged), v.due.page_id) for v in visits if v.retry_at is not None],
    )
    # Once only: a visit that takes no reason from here, as a daemon's, settles it the next time.
    sql = (
        "UPDATE frontier SET reason = 'refresh' WHERE reason = 'return' "
        "AND page_id IN (SELECT value FROM json_each(?)) RETURNING page_id, host_id"
    )
    return dict(db.execute(sql, (as_json([page_id for page_id, _ in over]),)).fetchall())


def defer(db: Connection, reasons: Mapping[int, str]) -> int:
    """Mark the rest of a run as deferred, with the reason of each host; return their number."""
    cursor = db.execute(
        "UPDATE frontier SET deferred = coalesce("
        "(SELECT r.value FROM json_each(?) AS r WHERE r.key = CAST(host_id AS TEXT)), ?)",
        (as_json({str(host): why for host, why in reasons.items()}), "retry is not due yet"),
    )
    return cursor.rowcount


async def wake_times(db: Reader) -> list[tuple[int, float]]:
    """Return the hosts with URLs here, with the time of the first and of every retry."""
    rows = await db.execute_fetchall(
        "SELECT host_id, min(due_at) FROM frontier GROUP BY host_id "
        "UNION SELECT host_id, due_at FROM frontier WHERE attempt > 0"
    )
    return [(row[0], row[1]) for row in rows]


async def due_by_host(db: Reader) -> dict[int, int]:
    """Count the URLs of each host that are due in this run."""
    sql = "SELECT host_id, count(*) FROM frontier WHERE deferred IS NULL GROUP BY host_id"
    return {row[0]: row[1] for row in await db.execute_fetchall(sql)}


def due_columns(**given: str) -> str:
    """Return the columns of a :class:`DueUrl` of ``page AS p``; the frontier's as given."""
    return columns_of(
        DueUrl, "p", page_id="p.id", digests="p.body_digest, p.text_digest, "
        "(SELECT text_version FROM version WHERE id = p.version_id)",
        rejected="p.rejected_digest, p.rejected_as, p.rejected_at",
        doubt="p.doubtful_as, p.doubtful_p, p.doubtful_why",
        audit="NULL, NULL, NULL, NULL", repeat_of="NULL",
        seed_id="(SELECT min(id) FROM seed WHERE page_id = p.id)", **given,
    )  # fmt: skip


_DUE = "SELECT " + due_columns(
    due_at="coalesce(f.due_at, 0.0)",
    reason="coalesce(f.reason, 'refresh')",
    attempt="coalesce(f.attempt, 0)",
)


async def of_urls(db: Reader, urls: Collection[str]) -> list[DueUrl]:
    """Return pages by their canonical URLs as due URLs, even if they are not due."""
    sql = (
        f"{_DUE} FROM json_each(?) AS u CROSS JOIN page AS p ON p.url = u.value "
        "LEFT JOIN frontier AS f ON f.page_id = p.id"
    )
    return list(map(row_to(DueUrl), await db.execute_fetchall(sql, (as_json(list(urls)),))))


async def due_count(db: Reader, host_id: int, now: float) -> int:
    """Count the due URLs of a host."""
    sql = "SELECT count(*) FROM frontier WHERE host_id = ? AND due_at <= ?"
    return int(next(iter(await db.execute_fetchall(sql, (host_id, now))))[0])


async def load(
    db: Reader,
    host_ids: Collection[int],
    now: float,
    limit: int,
    *,
    without_pages: Collection[int] = (),
    without_sitemaps: Collection[int] = (),
) -> list[DueUrl]:
    """Return the first ``limit`` due URLs of each of these hosts, in their order.

    Pages with these ids are left out, and so are sitemaps of these hosts.
    """
    rows = await db.execute_fetchall(
        f"{_DUE} FROM json_each(:hosts) AS h CROSS JOIN frontier AS f "
        "  ON f.page_id IN (SELECT page_id FROM frontier WHERE host_id = h.value "
        "                   AND due_at <= :now "
        "                   AND page_id NOT IN (SELECT value FROM json_each(:without_pages)) "
        "                   AND NOT (h.value IN (SELECT value FROM json_each(:without_sitemaps)) "
        "                     AND (SELECT role FROM page WHERE id = page_id) = 'sitemap') "
        "                   ORDER BY priority, page_id LIMIT :limit) "
        "CROSS JOIN page AS p ON p.id = f.page_id ORDER BY f.host_id, f.priority, f.page_id",
        {
            "hosts": as_json(list(host_ids)),
            "now": now,
            "limit": limit,
            "without_pages": as_json(list(without_pages)),
            "without_sitemaps": as_json(list(without_sitemaps)),
        },
    )
    return list(map(row_to(DueUrl), rows))
