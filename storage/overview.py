"""What the whole store holds: counts, and the hosts that need attention. Read-only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import aiosqlite

from freshet.storage.words import RobotsStanding


@dataclass(frozen=True, slots=True)
class Holdings:
    """How much of everything there is; sizes in bytes.

    ``pages`` were captured at least once and are no aliases; ``links`` are current ones.
    ``body_bytes`` are the kept bodies as decoded, ``stored_bytes`` the same compressed.
    """

    urls: int
    pages: int
    aliases: int
    hosts: int
    links: int
    offsite_links: int
    observations: int
    versions: int
    bodies: int
    body_bytes: int
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class FrontierCounts:
    """The URLs of the frontier: due now, waiting for their time (retries), left for later."""

    due: int
    waiting: int
    deferred: int


@dataclass(frozen=True, slots=True)
class BusyHost:
    """A host with URLs that are due."""

    origin: str
    due: int


@dataclass(frozen=True, slots=True)
class ParkedHost:
    """A host that is left alone for a while; ``urls`` of it are in the frontier."""

    origin: str
    until: float
    reason: str | None
    urls: int


@dataclass(frozen=True, slots=True)
class UnreachableRobots:
    """A host whose robots.txt could not be fetched at the last try.

    ``standing`` is ``unreachable`` (nothing may be fetched) or ``parsed`` or
    ``allow_all`` where an older copy is in use; ``since`` is when that began.
    """

    origin: str
    standing: RobotsStanding
    since: float
    reason: str | None


async def holdings(connection: aiosqlite.Connection) -> Holdings:
    """Count what the store holds."""
    rows = await connection.execute_fetchall(
        "SELECT p.urls, p.pages, p.aliases, "
        "       (SELECT count(*) FROM host), "
        "       (SELECT count(*) FROM link WHERE gone_at IS NULL), "
        "       (SELECT count(*) FROM offsite_link WHERE gone_at IS NULL), "
        "       (SELECT count(*) FROM observation), "
        "       (SELECT count(*) FROM version), "
        "       b.bodies, b.decoded, b.packed "
        "FROM (SELECT count(*) AS urls, count(alias_of) AS aliases, count(*) FILTER ("
        "        WHERE role = 'page' AND alias_of IS NULL AND checked_at IS NOT NULL) AS pages "
        "      FROM page) AS p, "
        "     (SELECT count(*) AS bodies, coalesce(sum(size_bytes), 0) AS decoded, "
        "             coalesce(sum(length(zstd)), 0) AS packed FROM body) AS b"
    )
    return Holdings(*next(iter(rows)))


async def frontier_counts(connection: aiosqlite.Connection, now: float) -> FrontierCounts:
    """Count the URLs of the frontier."""
    rows = await connection.execute_fetchall(
        "SELECT count(*) FILTER (WHERE deferred IS NULL AND due_at <= ?1), "
        "       count(*) FILTER (WHERE deferred IS NULL AND due_at > ?1), "
        "       count(deferred) FROM frontier",
        (now,),
    )
    return FrontierCounts(*next(iter(rows)))


async def busiest(connection: aiosqlite.Connection, now: float, limit: int) -> list[BusyHost]:
    """The hosts with the most URLs due now."""
    rows = await connection.execute_fetchall(
        "SELECT h.origin, d.n FROM (SELECT host_id, count(*) AS n FROM frontier "
        "  WHERE deferred IS NULL AND due_at <= ? GROUP BY host_id) AS d "
        "JOIN host AS h ON h.id = d.host_id ORDER BY d.n DESC, h.origin LIMIT ?",
        (now, limit),
    )
    return [BusyHost(*row) for row in rows]


async def parked(connection: aiosqlite.Connection, now: float) -> list[ParkedHost]:
    """The hosts that are parked now, those that are free first at the top."""
    rows = await connection.execute_fetchall(
        "SELECT origin, parked_until, parked_reason, "
        "       (SELECT count(*) FROM frontier WHERE host_id = host.id) "
        "FROM host WHERE parked_until > ? ORDER BY parked_until, origin",
        (now,),
    )
    return [ParkedHost(*row) for row in rows]


async def unreachable_robots(connection: aiosqlite.Connection) -> list[UnreachableRobots]:
    """The hosts whose robots.txt cannot be reached, whether or not a copy stands in."""
    rows = await connection.execute_fetchall(
        "SELECT h.origin, r.standing, coalesce(r.stale_since, r.fetched_at), r.reason "
        "FROM robots AS r JOIN host AS h ON h.id = r.host_id "
        "WHERE r.standing = ? OR r.stale_since IS NOT NULL ORDER BY h.origin",
        (RobotsStanding.UNREACHABLE,),
    )
    return [UnreachableRobots(row[0], RobotsStanding(row[1]), row[2], row[3]) for row in rows]


async def last_sign_of_life(connection: aiosqlite.Connection, run_id: int) -> float | None:
    """When the newest observation of the store was made, if it is of this run."""
    rows = await connection.execute_fetchall(
        "SELECT at FROM observation WHERE id = (SELECT max(id) FROM observation) AND run_id = ?",
        (run_id,),
    )
    return next((float(row[0]) for row in rows), None)


def file_bytes(path: Path) -> int:
    """The size of the store on disk, its write-ahead log included."""
    log = path.with_name(path.name + "-wal")
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)
