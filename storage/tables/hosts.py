"""Tables ``host``, ``robots``, ``not_content``, ``host_signals``: state of hosts across runs."""

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from sqlite3 import Connection
from typing import Final

from aiosqlite import Connection as Reader

from freshet.storage.database import as_json, columns_of, row_to, values_of
from freshet.storage.entries import HeaderSigns, Host, HostState, Repeats, RobotsRecord
from freshet.storage.extensions import dated
from freshet.storage.records import Entry, Visit

#: Times that determine the next visit, request to a hub or message, beside the times of hosts.
_DATED = {
    "page": (
        "checked_at",
        "last_at",
        "found_at",
        "alias_at",
        "rejected_at",
        "read_at",
        "plain_at",
        "no_content_since",
    ),
    "host": ("repeated_at",),
    "frontier": ("due_at",),
    "robots": ("fetched_at",),
}
#: Observations that the mean duration of requests is taken from.
_LAST = 20_000

#: A host's state is its queue's state: the last one saved for any of the queue's hosts.
#: An older store has "-Infinity" for a queue in which no request has ended.
_STATE = columns_of(
    HostState,
    "s",
    host_id="iif(s.id, h.id, NULL)",
    last_exchange_at="nullif(s.last_exchange_at, -9e999)",
)
_FROM = """
    FROM host AS h LEFT JOIN robots AS r ON r.host_id = h.id
    LEFT JOIN host AS s ON s.id = (
        SELECT id FROM host WHERE queue = h.queue ORDER BY last_exchange_at DESC, id DESC LIMIT 1)
"""
#: The parameter "whole" adds large files.
_ROBOTS = columns_of(
    RobotsRecord, "r", body="iif(:whole OR length(r.body) <= 4096, r.body, zeroblob(0))"
)
#: None where no request was repeated.
_REPEATS = columns_of(Repeats, "h", helped="iif(h.repeated_at IS NULL, NULL, h.helped)")
_COLUMNS = {"host_id": "h.id", "state": _STATE, "repeats": _REPEATS}
_SELECT = f"SELECT {columns_of(Host, 'h', robots=_ROBOTS, **_COLUMNS)} {_FROM}"


def ensure(db: Connection, origins: Iterable[str]) -> dict[str, int]:
    """Return the ids of these origins; new ones are made."""
    wanted = as_json(sorted(set(origins)))
    db.execute("INSERT OR IGNORE INTO host (origin) SELECT value FROM json_each(?)", (wanted,))
    sql = "SELECT origin, id FROM host WHERE origin IN (SELECT value FROM json_each(?))"
    return {row[0]: row[1] for row in db.execute(sql, (wanted,)).fetchall()}


async def load(db: Reader, host_ids: Sequence[int], *, whole: bool = False) -> list[Host]:
    """Return these hosts with their politeness state and robots.txt, large ones if ``whole``."""
    sql = f"{_SELECT} WHERE h.id IN (SELECT value FROM json_each(:hosts))"
    values = {"hosts": as_json(list(host_ids)), "whole": whole}
    rows = await db.execute_fetchall(sql, values)
    return list(map(row_to(Host), rows))


async def politeness(db: Reader) -> list[Host]:
    """Return all hosts by id, with their politeness state but without robots.txt."""
    no_robots = ", ".join("NULL" for _ in fields(RobotsRecord))
    columns = columns_of(Host, "h", robots=no_robots, **_COLUMNS)
    rows = await db.execute_fetchall(f"SELECT {columns} {_FROM} ORDER BY h.id")
    return list(map(row_to(Host), rows))


async def origins(db: Reader) -> dict[int, str]:
    """Return all known hosts by id."""
    rows = await db.execute_fetchall("SELECT id, origin FROM host ORDER BY id")
    return {row[0]: row[1] for row in rows}


async def last_exchange_at(db: Reader) -> float | None:
    """Return when the last request to any host ended, or None."""
    rows = await db.execute_fetchall("SELECT nullif(max(last_exchange_at), -9e999) FROM host")
    return next((row[0] for row in rows), None)


async def find(db: Reader, origin: str) -> Host | None:
    """Return the host with this origin, or None."""
    sql = f"{_SELECT} WHERE h.origin = :origin"
    rows = await db.execute_fetchall(sql, {"origin": origin, "whole": True})
    return next(map(row_to(Host), rows), None)


async def named(db: Reader, origins: Sequence[str]) -> list[Host]:
    """Return the hosts of these origins, https first; if all are unknown, 50 with an added port."""
    values = {"origins": as_json(list(origins)), "whole": True}
    for known in ("= w.value", "BETWEEN w.value || ':' AND w.value || ';'"):
        ids = f"SELECT n.id FROM json_each(:origins) AS w CROSS JOIN host AS n ON n.origin {known}"
        sql = f"{_SELECT} WHERE h.id IN ({ids} LIMIT 50) ORDER BY h.origin DESC"
        if rows := list(await db.execute_fetchall(sql, values)):
            return list(map(row_to(Host), rows))
    return []


async def exchange_s(db: Reader) -> dict[int, float]:
    """Return each host's mean seconds of a request, among the store's last requests."""
    sql = (
        "SELECT p.host_id, avg(o.duration_s) FROM "
        "(SELECT page_id, duration_s FROM observation WHERE kind <> ? ORDER BY id DESC LIMIT ?) "
        "AS o JOIN page AS p ON p.id = o.page_id GROUP BY p.host_id"
    )
    return {row[0]: row[1] for row in await db.execute_fetchall(sql, ("refused", _LAST))}


_SAVE_STATE: Final = (
    f"UPDATE host SET ({', '.join(each.name for each in fields(HostState)[1:])}) = "
    "(?, ?, ?, ?, ?, ?), exchanges = exchanges + ? WHERE id = ?"
)


def save_states(db: Connection, exchanged: Sequence[tuple[HostState, int]]) -> None:
    """Store these states, and add these numbers of requests."""
    db.executemany(
        _SAVE_STATE,
        [(*values_of(state)[1:], requests, state.host_id) for state, requests in exchanged],
    )


def save_repeats(db: Connection, entries: Iterable[Entry]) -> None:
    """Store the state of repeated requests at hosts."""
    sql = "UPDATE host SET helped = ?, vain = ?, repeated_at = ? WHERE id = ?"
    known = [entry.repeats for entry in entries if entry.repeats is not None]
    db.executemany(sql, [(*values_of(repeats), host_id) for host_id, repeats in known])


def bring_back(db: Connection, now: float) -> None:
    """Date what lies in the future now: it was written by a wrong clock. Pauses keep their length.

    Observations do not change; they do not delay due pages.
    """
    db.execute(
        "UPDATE host SET parked_until = parked_until - last_exchange_at + :now, "
        "last_exchange_at = :now WHERE last_exchange_at > :now",
        {"now": now},
    )
    for table, columns in (_DATED | dated()).items():
        for column in columns:
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {column} > ?", (now, now))


def save_robots(db: Connection, host_id: int, record: RobotsRecord) -> None:
    """Replace the robots.txt of a host; the body of an older copy does not change."""
    older = "(SELECT body FROM robots WHERE host_id = :id)"
    body = f"iif(:stale_since IS NULL, :body, coalesce({older}, :body))"
    db.execute(
        f"INSERT OR REPLACE INTO robots (host_id, {columns_of(RobotsRecord)}) "
        f"VALUES (:id, :standing, :fetched_at, {body}, :reason, :stale_since)",
        {"id": host_id, **asdict(record)},
    )
    if record.standing != "unreachable" and record.stale_since is None:
        _keep_robots(db, host_id, record)


#: Versions of a robots.txt that are kept of each host.
_MOST_ROBOTS: Final = 20


def _keep_robots(db: Connection, host_id: int, record: RobotsRecord) -> None:
    """Keep a robots.txt that differs from the one before, and the newest ones of its host."""
    packed = zlib.compress(record.body)
    sql = "SELECT standing, body FROM past_robots WHERE host_id = ? ORDER BY at DESC LIMIT 1"
    last = db.execute(sql, (host_id,)).fetchone()
    if last is not None and last[0] == record.standing and zlib.decompress(last[1]) == record.body:
        return
    db.execute(
        "INSERT OR REPLACE INTO past_robots VALUES (?, ?, ?, ?)",
        (host_id, record.fetched_at, record.standing, packed),
    )
    db.execute(
        "DELETE FROM past_robots WHERE host_id = ? AND at < (SELECT min(at) FROM (SELECT at "
        "FROM past_robots WHERE host_id = ? ORDER BY at DESC LIMIT ?))",
        (host_id, host_id, _MOST_ROBOTS),
    )


async def past_robots(db: Reader, host_id: int) -> list[RobotsRecord]:
    """Return the robots.txt files that a host has had, the newest first."""
    sql = "SELECT standing, at, body FROM past_robots WHERE host_id = ? ORDER BY at DESC"
    return [
        RobotsRecord(standing, at, zlib.decompress(packed))
        for standing, at, packed in await db.execute_fetchall(sql, (host_id,))
    ]


# -- hosts with many rejected pages ------------------------------------------
# Each may be a block page; if they are many, we may be blocked, or wrong.

#: Pages that need JavaScript are reported by themselves.
_REJECTING: Final = (
    "SELECT h.origin, (SELECT count(*) FROM page WHERE host_id = r.host_id AND role = 'page' "
    "  AND alias_of IS NULL AND (checked_at IS NOT NULL OR rejected_digest IS NOT NULL)) AS pages, "
    "r.rejected, (SELECT rejected_as FROM page WHERE host_id = r.host_id "
    "  AND rejected_digest IS NOT NULL AND rejected_as <> 'needs_javascript' "
    "  GROUP BY rejected_as ORDER BY count(*) DESC, rejected_as LIMIT 1) AS mostly "
    "FROM (SELECT host_id, count(*) AS rejected FROM page WHERE rejected_digest IS NOT NULL "
    "  AND rejected_as <> 'needs_javascript' AND role = 'page' AND alias_of IS NULL "
    "  AND host_id = coalesce(:host_id, host_id) GROUP BY host_id HAVING count(*) >= :least) AS r "
    "JOIN host AS h ON h.id = r.host_id WHERE r.rejected > :share * pages "
    "ORDER BY r.rejected DESC, h.origin"
)
#: Share of a host's pages from which on it is reported, and the least number of rejected ones: one
#: of five may be a mistake in a link.
_MANY: Final = {"share": 0.03, "least": 3}


@dataclass(frozen=True, slots=True)
class RejectingHost:
    """A host with many ``pages`` that were not content when last visited, ``mostly`` of a kind."""

    origin: str
    pages: int
    rejected: int
    mostly: str

    @property
    def words(self) -> str:
        """Say it in words."""
        share = 100 * self.rejected / self.pages
        return (
            f"{self.rejected:,} of {self.pages:,} pages of {self.origin} ({share:.0f} %) are no "
            f"content, mostly {self.mostly}"
        )


async def rejecting(db: Reader) -> list[RejectingHost]:
    """Return the hosts with many pages that are not content, the most pages first."""
    rows = await db.execute_fetchall(_REJECTING, {**_MANY, "host_id": None})
    return list(map(row_to(RejectingHost), rows))


def is_rejecting(db: Connection, host_id: int) -> bool:
    """Return whether many pages of a host are not content."""
    return db.execute(_REJECTING, {**_MANY, "host_id": host_id}).fetchone() is not None


async def unreachable_robots(db: Reader) -> list[tuple[str, RobotsRecord]]:
    """Return the origins with an unreachable robots.txt, with or without an older copy.

    The records are without their bodies.
    """
    rows = await db.execute_fetchall(
        f"SELECT h.origin, {columns_of(RobotsRecord, 'r', body='zeroblob(0)')} "
        "FROM robots AS r JOIN host AS h ON h.id = r.host_id "
        "WHERE r.standing = ? OR r.stale_since IS NOT NULL ORDER BY h.origin",
        ("unreachable",),
    )
    return [(row[0], row_to(RobotsRecord)(row[1:])) for row in rows]


def save_not_content(db: Connection, visits: Iterable[Visit]) -> None:
    """Replace the known block pages of hosts (versioned bytes)."""
    sql = "INSERT OR REPLACE INTO not_content (host_id, data) VALUES (?, ?)"
    db.executemany(sql, [(v.due.host_id, v.not_content) for v in visits if v.not_content])


async def not_content(db: Reader, host_id: int) -> bytes | None:
    """Return the known block pages of a host (versioned bytes), or None."""
    rows = await db.execute_fetchall("SELECT data FROM not_content WHERE host_id = ?", (host_id,))
    return next((row[0] for row in rows), None)


# -- host signals: the worth of headers as evidence --------------------------


@dataclass(frozen=True, slots=True)
class HostSignals:
    """Evidence from the headers of a host (``origin``).

    ``dated`` responses had a Date, by which the host's clock is ``skew_s`` ahead of ours (median of
    the last ones). Last-Modified was the time of the response ``modified_now`` times, else an
    earlier one. At second visits the ETag was ``etag_right`` (it changed with the page or not at
    all), ``etag_idle`` (it changed without the page) or ``etag_missed`` (the page changed without
    it).
    """

    origin: str
    dated: int
    skew_s: float | None
    modified_now: int
    modified_past: int
    etag_right: int
    etag_idle: int
    etag_missed: int


_COUNT = (
    "INSERT INTO host_signals VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (host_id) DO UPDATE SET "
    "skew_s = coalesce(excluded.skew_s, skew_s), "
) + ", ".join(
    f"{each.name} = {each.name} + excluded.{each.name}"
    for each in fields(HostSignals)
    if each.name not in {"origin", "skew_s"}
)


def count(db: Connection, visits: Sequence[Visit]) -> None:
    """Add the evidence of these visits."""
    by_host: dict[int, list[HeaderSigns]] = {}
    for visit in visits:
        if visit.signs is not None:
            by_host.setdefault(visit.due.host_id, []).append(visit.signs)
    db.executemany(_COUNT, [_row(*each) for each in by_host.items()])


async def load_signals(db: Reader) -> list[HostSignals]:
    """Return the evidence of all hosts, by origin."""
    sql = (
        f"SELECT {columns_of(HostSignals, 's', origin='h.origin')} "
        "FROM host_signals AS s JOIN host AS h ON h.id = s.host_id ORDER BY h.origin"
    )
    return list(map(row_to(HostSignals), await db.execute_fetchall(sql)))


def _row(host_id: int, signs: Sequence[HeaderSigns]) -> tuple[int | float | None, ...]:
    skews = [each.skew_s for each in signs if each.skew_s is not None]
    modified = Counter(each.modified_now for each in signs)
    etags = Counter(
        (each.etag_moved, each.text_moved)
        for each in signs
        if each.etag_moved is not None and each.text_moved is not None
    )
    return (
        host_id,
        len(skews),
        skews[-1] if skews else None,
        modified[True],
        modified[False],
        etags[True, True] + etags[False, False],
        etags[True, False],
        etags[False, True],
    )
