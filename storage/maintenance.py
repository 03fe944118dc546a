"""Upkeep of a store: compaction, retention, and checks."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from math import inf, isinf
from pathlib import Path
from typing import Final, Literal, TypeAlias

import aiosqlite

from freshet.storage.database import Database, reading
from freshet.storage.errors import StoreError
from freshet.storage.tables.observations import SIGNIFICANT

#: Room that is left free beside a copy.
SPARE_BYTES: Final = 16 * 1024 * 1024
#: Counts the pages of a store, without pages of other shards and former spellings.
PAGE_COUNT: Final = (
    "SELECT count(*) FROM page "
    "WHERE role = 'page' AND ifnull(held_back, '') NOT IN ('shard', 'spelling')"
)


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """Return a number that SQLite keeps of a store."""
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


# -- compaction --------------------------------------------------------------
# SQLite writes the store into a temporary file and from there back through the write-ahead log:
# three copies are on the disk for a moment. A kill does not change the store.

#: Folders that SQLite tries for temporary files, after the environment.
_TEMPORARY = ("/var/tmp", "/usr/tmp", "/tmp", ".")  # noqa: S108 - SQLite's choice


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes of the file of a store, and of its free pages."""

    size_bytes: int
    free_bytes: int


async def space(database: Database) -> Space:
    """Measure the file of a store and its free pages."""
    names = ("page_size", "page_count", "freelist_count")
    page, pages, free = await database.at_once(lambda db: [pragma(db, name) for name in names])
    return Space(page * pages, page * free)


async def compact(database: Database) -> None:
    """Rewrite a store without its free pages.

    Raises:
        StoreError: the disk has no room for that, or another program reads the store.
    """
    found = await space(database)
    needed = found.size_bytes - found.free_bytes + SPARE_BYTES
    # SQLite makes its temporary file in the first folder that it may write.
    named = (os.environ.get(name) for name in ("SQLITE_TMPDIR", "TMPDIR"))
    folders = (Path(each) for each in (*named, *_TEMPORARY) if each)
    writable = (each for each in folders if each.is_dir() and os.access(each, os.W_OK | os.X_OK))
    temporary = next(writable, Path())
    is_one = database.path.absolute().parent.stat().st_dev == temporary.stat().st_dev
    _require_room_to_compact(database.path, database.path.absolute().parent, needed * (1 + is_one))
    if not is_one:
        _require_room_to_compact(database.path, temporary, needed)
    await database.at_once(_vacuum)


def _vacuum(connection: sqlite3.Connection) -> None:
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _require_room_to_compact(path: Path, folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise StoreError(
            f"{path}: compacting needs {needed / 1e6:,.0f} MB free in {folder}, which has "
            f"{free / 1e6:,.0f}; free some space, or let new rows fill the free pages"
        )


# -- retention ---------------------------------------------------------------
# *Law.* Visits that found content or its end are never deleted, nor their amendments, audits and
# pages: a daemon knows the same before and after. Rows go in transactions of some thousands. The
# caller must be the only writer, else doomed rows might be needed again.
#
# *Law.* :func:`prune` deletes exactly the rows that :func:`doomed` counts. It checks the bodies of
# all pages once; then, while the settings stay, of pages that were visited or judged again since,
# and bodies that have become too old. Consequence: the end of a crawl costs in proportion to its
# pages.

#: Rows of one transaction; bodies have some 10 kB each.
_BATCH: Final = 2_000
#: About the bytes of a row's header and its index entries.
_ROW_BYTES: Final = 60
#: Days for which the figures of sites are kept.
_FIGURES: Final = 90

_TAUGHT_NOTHING: Final = "'failed', 'refused', 'skipped', 'redirected'"
#: Pages that are gone and were last seen before :gone.
_GONE: Final = "SELECT id FROM page WHERE last_kind = 'gone' AND checked_at < :gone"
_SENT: Final = "m.state = 'sent' AND m.settled_at < :alert"


@dataclass(frozen=True, slots=True)
class Retention:
    """Rules for the age and number of rows that are kept.

    Attributes:
        bodies_per_page: newest significant versions of a page that keep their bodies.
        body_age_s: age at which bodies are deleted; the newest and the last significant one stay.
        gone_body_age_s: time since the last visit after which bodies of a gone page are deleted.
        sketches_per_page: newest versions of a page that keep their sketch.
        failure_age_s: age at which visits without content are deleted, except a page's last one.
        link_age_s: time since a link disappeared after which it is deleted.
        alert_age_s: time since a message was delivered after which it and its alerts are deleted.
        deletion_age_s: age from which the changefeed no longer reports a deletion.
    """

    bodies_per_page: int
    body_age_s: float
    gone_body_age_s: float = inf
    sketches_per_page: float = inf
    failure_age_s: float = inf
    link_age_s: float = inf
    alert_age_s: float = inf
    deletion_age_s: float = inf

    def cuts(self, now: float) -> dict[str, float]:
        """Return the bounds by the names that the rules use."""
        return {
            "per_page": self.bodies_per_page,
            "body": now - self.body_age_s,
            "gone": now - self.gone_body_age_s,
            "sketches": self.sketches_per_page,
            "failure": now - self.failure_age_s,
            "link": now - self.link_age_s,
            "alert": now - self.alert_age_s,
            "deletion": now - self.deletion_age_s,
        }


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Rows that are deleted, or would be, with about ``size_bytes`` bytes."""

    what: str
    table: str
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule: ``doomed`` selects two columns that identify the rows, and their size.

    ``lately`` does so among what :func:`_look` has listed.
    """

    what: str
    table: str
    doomed: str
    deed: str
    lately: str | None = None


def _links(table: str, target: str, what: str) -> _Rule:
    return _Rule(
        what,
        table,
        f"SELECT src_id, {target}, length(anchor) + length(rel) + 2 * {_ROW_BYTES} "
        f"FROM {table} WHERE gone_at < :link",
        f"DELETE FROM {table} WHERE (src_id, {target}) IN (SELECT a, b FROM {{}})",
    )


def _bodies(among: str, of: str) -> str:
    """Return the SQL of doomed bodies ``among`` some, by the versions and changes ``of`` pages."""
    return (
        f"SELECT digest, NULL, length(zstd) + {_ROW_BYTES} FROM body "
        f"WHERE {among} AND digest NOT IN (SELECT body_digest FROM ("
        "  SELECT body_digest, at, significant, "
        "    row_number() OVER (PARTITION BY page_id ORDER BY id DESC) AS n, "
        "    row_number() OVER (PARTITION BY page_id, significant ORDER BY id DESC) AS m "
        f"  FROM (SELECT *, id IN ({SIGNIFICANT} AND {of}) AS significant FROM version "
        f"    WHERE {of})) "
        "WHERE n = 1 OR (significant AND (m = 1 OR m <= :per_page AND at >= :body))) "
        "AND digest NOT IN (SELECT v.body_digest FROM (SELECT version_id FROM change "
        f"  WHERE {of}) AS c JOIN version AS v ON v.id = c.version_id)"
    )


_RULES: Final = (
    _Rule(
        "bodies",
        "body",
        _bodies("true", f"page_id NOT IN ({_GONE})"),
        "DELETE FROM body WHERE digest IN (SELECT a FROM {})",
        lately=_bodies(
            "digest IN (SELECT body_digest FROM version "
            "WHERE page_id IN (SELECT page_id FROM temp.looked WHERE is_touched))",
            "page_id IN (SELECT page_id FROM temp.looked)",
        ),
    ),
    _Rule(
        "sketches",
        "version",
        "SELECT id, NULL, size FROM (SELECT id, length(sketch) AS size, "
        "    row_number() OVER (PARTITION BY page_id ORDER BY id DESC) AS n "
        "  FROM version WHERE sketch IS NOT NULL) "
        "WHERE n > :sketches AND id NOT IN (SELECT version_id FROM lsh_page)",
        "UPDATE version SET sketch = NULL WHERE id IN (SELECT a FROM {})",
    ),
    _Rule(
        "failures",
        "observation",
        f"SELECT id, NULL, coalesce(length(detail), 0) + 2 * {_ROW_BYTES} FROM observation AS o "
        f"WHERE kind IN ({_TAUGHT_NOTHING}) AND at < :failure "
        "AND id < (SELECT max(id) FROM observation WHERE page_id = o.page_id) "
        "AND id NOT IN (SELECT observation_id FROM amendment) "
        "AND id NOT IN (SELECT observation_id FROM audit) "
        # The last crawl is reported and may be resumed; a daemon's run has no end.
        "AND (run_id < (SELECT max(id) FROM crawl_run) OR run_id IN (SELECT run_id FROM outlook))",
        "DELETE FROM observation WHERE id IN (SELECT a FROM {})",
    ),
    _links("link", "dst_id", "removed links"),
    _links("offsite_link", "url", "removed links, off site"),
    _Rule(
        "alerts sent",
        "alert",
        f"SELECT a.id, NULL, length(a.key) + length(a.rule) + 3 * {_ROW_BYTES} FROM alert AS a "
        f"JOIN alert_message AS m ON m.id = a.message_id WHERE {_SENT}",
        "DELETE FROM alert WHERE id IN (SELECT a FROM {})",
    ),
    # After their alerts.
    _Rule(
        "messages sent",
        "alert_message",
        f"SELECT m.id, NULL, length(m.key) + length(m.rule) + 3 * {_ROW_BYTES} "
        f"FROM alert_message AS m WHERE {_SENT}",
        "DELETE FROM alert_message WHERE id IN (SELECT a FROM {})",
    ),
    _Rule(
        "reported deletions",
        "change",
        f"SELECT seq, NULL, {2 * _ROW_BYTES} FROM change "
        "WHERE version_id IS NULL AND at < :deletion",
        "DELETE FROM change WHERE seq IN (SELECT a FROM {})",
    ),
)


async def doomed(path: Path, retention: Retention, now: float) -> list[DeletedRows]:
    """Count the rows that :func:`prune` would delete; another process may be writing the store."""
    async with reading(path) as reader:
        return [await _counted(reader, rule, retention.cuts(now)) for rule in _RULES]


async def prune(
    database: Database, retention: Retention, now: float, *, whole: bool = False
) -> list[DeletedRows]:
    """Delete the rows that are not to be kept, and count them, but for old figures of sites.

    ``whole``: check all bodies, also those that were checked before.
    """
    sql, day = "DELETE FROM site_day WHERE day < ?", now // 86_400 - _FIGURES
    await database.write(lambda db: db.execute(sql, (day,)))
    cuts = retention.cuts(now)
    kept = json.dumps([retention.bodies_per_page, retention.body_age_s])
    look = partial(_look, cuts=cuts, kept=kept, now=now, whole=whole)
    newest, is_lately = await database.at_once(look)
    pruned = [await _prune(database, rule, cuts, is_lately=is_lately) for rule in _RULES]
    note = "INSERT OR REPLACE INTO pruned (id, observation_id, at, kept) VALUES (1, ?, ?, ?)"
    await database.write(lambda db: db.execute(note, (newest, now, kept)))
    return pruned


#: The pages with several versions and a body that events since the last time may doom
#: (``is_touched``), and the pages with one of the same bodies.
_LOOKED: Final = "CREATE TEMP TABLE looked (page_id INTEGER PRIMARY KEY, is_touched INTEGER)"
_TOUCHED: Final = (
    "INSERT INTO temp.looked SELECT page_id, 1 FROM version WHERE page_id IN ("
    "  SELECT page_id FROM observation WHERE id > :last UNION "
    "  SELECT o.page_id FROM amendment AS a JOIN observation AS o ON o.id = a.observation_id "
    "  WHERE a.at >= :since UNION "
    "  SELECT page_id FROM version WHERE at >= :was AND at < :body) "
    "GROUP BY page_id HAVING count(*) > 1"
)
_SHARING: Final = (
    "INSERT OR IGNORE INTO temp.looked SELECT o.page_id, 0 FROM temp.looked AS t CROSS JOIN "
    "version AS v ON v.page_id = t.page_id CROSS JOIN version AS o ON o.body_digest = v.body_digest"
)
#: Verdicts are amended as of the time of a visit, which may have lasted.
_OVERLAP_S: Final = 86_400.0


def _look(
    db: sqlite3.Connection, cuts: Mapping[str, float], kept: str, now: float, *, whole: bool
) -> tuple[int, bool]:
    """List the pages with bodies to check; return the newest observation.

    Return as well whether a list exists: it is all pages at first, after the settings or the
    clock changed, and where bodies of gone pages go.
    """
    (newest,) = db.execute("SELECT coalesce(max(id), 0) FROM observation").fetchone()
    last = db.execute("SELECT observation_id, at, kept FROM pruned").fetchone()
    if whole or last is None or last[2] != kept or last[1] > now or not isinf(cuts["gone"]):
        return newest, False
    bounds = {
        "last": last[0],
        "since": last[1] - _OVERLAP_S,
        "was": cuts["body"] - (now - last[1]),
        "body": cuts["body"],
    }
    db.execute("DROP TABLE IF EXISTS temp.looked")
    db.execute(_LOOKED)
    db.execute(_TOUCHED, bounds)
    db.execute(_SHARING)
    return newest, True


async def _counted(
    reader: aiosqlite.Connection, rule: _Rule, cuts: Mapping[str, float]
) -> DeletedRows:
    count, size, bounds = 0, 0.0, _bounds(rule, cuts)
    if bounds is not None:
        sql = (
            f"WITH doomed (a, b, size) AS ({rule.doomed}) SELECT count(*), total(size) FROM doomed"
        )
        ((count, size),) = await reader.execute_fetchall(sql, bounds)
    return DeletedRows(rule.what, rule.table, count, int(size))


def _bounds(rule: _Rule, cuts: Mapping[str, float]) -> dict[str, float] | None:
    """Return the bounds that the rule names; None if it keeps everything."""
    bounds = {name: cut for name, cut in cuts.items() if f":{name}" in rule.doomed}
    return None if all(map(isinf, bounds.values())) else bounds


async def _prune(
    database: Database, rule: _Rule, cuts: Mapping[str, float], *, is_lately: bool
) -> DeletedRows:
    bounds = _bounds(rule, cuts)
    if bounds is None:
        return DeletedRows(rule.what, rule.table, 0, 0)
    sql = (rule.lately if is_lately else None) or rule.doomed
    count, size = await database.at_once(partial(_doom, doomed=sql, bounds=bounds))
    for first in range(0, count, _BATCH):
        await database.write(partial(_throw_away, rule=rule, first=first))
    await database.at_once(lambda db: db.execute("DROP TABLE temp.doomed"))
    return DeletedRows(rule.what, rule.table, count, size)


def _doom(db: sqlite3.Connection, doomed: str, bounds: Mapping[str, float]) -> tuple[int, int]:
    """List the rows to delete in a temporary table; return their number and size."""
    db.execute("CREATE TEMP TABLE IF NOT EXISTS doomed (a, b, size)")
    db.execute("DELETE FROM temp.doomed")
    db.execute(f"INSERT INTO temp.doomed {doomed}", bounds)
    count, size = db.execute("SELECT count(*), total(size) FROM temp.doomed").fetchone()
    return count, int(size)


def _throw_away(connection: sqlite3.Connection, rule: _Rule, first: int) -> None:
    """Delete a slice of the rows."""
    deed = rule.deed.format(f"temp.doomed WHERE rowid > {first} AND rowid <= {first + _BATCH}")
    with unguarded(connection, rule.table) if rule.table == "observation" else nullcontext():
        connection.execute(deed)


@contextmanager
def unguarded(connection: sqlite3.Connection, table: str) -> Iterator[None]:
    """Let rows of an append-only table be deleted; its guard is back at the commit."""
    name = f"{table}_is_not_deleted"
    sql = "SELECT sql FROM sqlite_master WHERE name = ?"
    (guard,) = connection.execute(sql, (name,)).fetchone()
    connection.execute(f"DROP TRIGGER {name}")
    yield
    connection.execute(guard)


# -- health ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoreHealth:
    """Result of a check of a store.

    Attributes:
        problems: sentences from SQLite or from our checks; empty for a sound store.
        size_bytes: of the file; ``wal_bytes`` of the write-ahead log beside it.
        pages: URLs known as pages.
        newest_at: the time of the newest observation (Unix seconds), if any.
        open_run: the run that has not ended, if any.
    """

    problems: tuple[str, ...]
    size_bytes: int
    wal_bytes: int
    pages: int
    newest_at: float | None
    open_run: int | None


async def examine(path: Path, *, thorough: bool = False) -> StoreHealth:
    """Read and check the whole file; ``thorough`` also compares indexes with their tables.

    Raises:
        StoreError: the file does not exist or cannot be read at all.
    """
    async with reading(path) as connection:
        check = f"PRAGMA {'integrity' if thorough else 'quick'}_check"
        found = await connection.execute_fetchall(check)
        problems = [
            *[" ".join(str(row[0]).split()) for row in found if row[0] != "ok"],
            *await _dangling(connection),
        ]
        (row,) = await connection.execute_fetchall(
            f"SELECT ({PAGE_COUNT}) AS pages, "
            "(SELECT max(at) FROM observation) AS newest_at, "
            "(SELECT max(id) FROM crawl_run WHERE ended_at IS NULL) AS open_run"
        )
    wal = path.with_name(path.name + "-wal")
    wal_bytes = wal.stat().st_size if wal.exists() else 0
    return StoreHealth(tuple(problems), path.stat().st_size, wal_bytes, **row)


async def _dangling(connection: aiosqlite.Connection) -> list[str]:
    """Describe the rows that refer to rows that do not exist."""
    sql = 'SELECT "table", parent, count(*) FROM pragma_foreign_key_check GROUP BY 1, 2'
    rows = await connection.execute_fetchall(sql)
    return [f"{row[2]:,} rows of {row[0]} refer to a missing {row[1]}" for row in rows]


# -- formats of versioned bytes, whose first byte is the format's number

#: Data kept as versioned bytes, in the words that users read.
VersionedData: TypeAlias = Literal["sketches", "memories", "not_content"]

_ROWS: Final[dict[VersionedData, str]] = {
    "sketches": "SELECT sketch FROM version WHERE sketch IS NOT NULL ORDER BY id",
    "memories": "SELECT data FROM memory ORDER BY page_id",
    "not_content": "SELECT data FROM not_content ORDER BY host_id",
}


async def formats(connection: aiosqlite.Connection, what: VersionedData) -> list[int]:
    """Return the formats of the first and the last row, empty without rows.

    Rows are appended by one program or its later versions: these two tell of all.
    """
    found = []
    for order in ("ASC", "DESC"):
        rows = await connection.execute_fetchall(f"{_ROWS[what]} {order} LIMIT 1")
        found += [row[0][0] for row in rows if row[0]]
    return found
