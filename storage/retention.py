"""What of the past is kept, and throwing away the rest: by the daemon, after a crawl, by hand.

*Law.* What is learnt from stays: no look that found content or its end is ever thrown away, nor
its amendment, audit or page. So a daemon knows the same before and after, and at its next start.

Rows go in transactions of some thousands, so that a reader or a kill finds little undone. Whoever
calls is the only writer: what was doomed when it began would otherwise be needed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isinf
from pathlib import Path
from typing import Final

import aiosqlite

from freshet.storage.database import Database, reading
from freshet.storage.words import Kind

#: Rows of one transaction; bodies have some 10 kB each.
_BATCH: Final = 2_000
#: What the header of a row and its place in the indexes take, about.
_ROW_BYTES: Final = 60

#: The trigger that refuses to delete observations.
_GUARD: Final = "observation_is_not_deleted"
_TAUGHT_NOTHING: Final = ", ".join(
    f"'{kind}'" for kind in (Kind.FAILED, Kind.REFUSED, Kind.SKIPPED, Kind.REDIRECTED)
)
#: Pages that are gone and were last seen before :gone.
_GONE: Final = f"SELECT id FROM page WHERE last_kind = '{Kind.GONE}' AND checked_at < :gone"
_SENT: Final = "m.state = 'sent' AND m.settled_at < :alert"


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of the past is kept.

    Attributes:
        bodies_per_page: of a page's versions the newest, whose bodies are kept.
        body_age_s: bodies of older versions go; a page's newest stays.
        gone_body_age_s: unless it is gone, and was last seen so long ago.
        sketches_per_page: of a page's versions with a sketch the newest, which keep it.
        failure_age_s: visits that found neither content nor its end, but a page's last visit.
        link_age_s: links that are no longer there, since they are not.
        alert_age_s: alerts in messages that were taken, and these, since they were.
    """

    bodies_per_page: int
    body_age_s: float
    gone_body_age_s: float = inf
    sketches_per_page: float = inf
    failure_age_s: float = inf
    link_age_s: float = inf
    alert_age_s: float = inf

    def cuts(self, now: float) -> dict[str, float]:
        """The bounds by the names that the rules have for them."""
        return {
            "per_page": self.bodies_per_page,
            "body": now - self.body_age_s,
            "gone": now - self.gone_body_age_s,
            "sketches": self.sketches_per_page,
            "failure": now - self.failure_age_s,
            "link": now - self.link_age_s,
            "alert": now - self.alert_age_s,
        }


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that are thrown away, or would be; ``size_bytes`` is about what they take."""

    what: str
    table: str
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Rule:
    """Which rows go: ``doomed`` gives two columns that name them, and their size."""

    what: str
    table: str
    doomed: str
    deed: str


def _links(table: str, target: str, what: str) -> _Rule:
    return _Rule(
        what,
        table,
        f"SELECT src_id, {target}, length(anchor) + length(rel) + 2 * {_ROW_BYTES} "
        f"FROM {table} WHERE gone_at < :link",
        f"DELETE FROM {table} WHERE (src_id, {target}) IN (SELECT a, b FROM {{}})",
    )


_RULES: Final = (
    _Rule(
        "bodies",
        "body",
        f"SELECT digest, NULL, length(zstd) + {_ROW_BYTES} FROM body "
        "WHERE digest NOT IN (SELECT body_digest FROM ("
        "  SELECT body_digest, at, row_number() OVER (PARTITION BY page_id ORDER BY id DESC) AS n "
        f"  FROM version WHERE page_id NOT IN ({_GONE})) "
        "WHERE n = 1 OR (n <= :per_page AND at >= :body))",
        "DELETE FROM body WHERE digest IN (SELECT a FROM {})",
    ),
    _Rule(
        "sketches",
        "version",
        "SELECT id, NULL, size FROM ("
        "  SELECT id, length(sketch) AS size, "
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
        # The last crawl is reported on, and may be gone on with; a daemon's run has no end.
        "AND (run_id < (SELECT max(id) FROM crawl_run) OR run_id IN (SELECT run_id FROM outlook))",
        "DELETE FROM observation WHERE id IN (SELECT a FROM {})",
    ),
    _links("link", "dst_id", "links that went"),
    _links("offsite_link", "url", "links that went, off site"),
    _Rule(
        "alerts sent",
        "alert",
        f"SELECT a.id, NULL, length(a.key) + length(a.rule) + 3 * {_ROW_BYTES} FROM alert AS a "
        f"JOIN alert_message AS m ON m.id = a.message_id WHERE {_SENT}",
        "DELETE FROM alert WHERE id IN (SELECT a FROM {})",
    ),
    # After those that are in them.
    _Rule(
        "messages sent",
        "alert_message",
        f"SELECT m.id, NULL, length(m.key) + length(m.rule) + 3 * {_ROW_BYTES} "
        f"FROM alert_message AS m WHERE {_SENT}",
        "DELETE FROM alert_message WHERE id IN (SELECT a FROM {})",
    ),
)


async def doomed(path: Path, retention: Retention, now: float) -> list[Rows]:
    """What would be thrown away; the store may be being written.

    Raises:
        StoreError: there is no store, or it cannot be read.
    """
    async with reading(path) as connection:
        return [await _counted(connection, rule, retention.cuts(now)) for rule in _RULES]


async def prune(database: Database, retention: Retention, now: float) -> list[Rows]:
    """Throw away what is not to be kept; what that was.

    Raises:
        StoreError: the store cannot be written.
    """
    return [await _prune(database, rule, retention.cuts(now)) for rule in _RULES]


async def _counted(
    connection: aiosqlite.Connection, rule: _Rule, cuts: Mapping[str, float]
) -> Rows:
    bounds = _bounds(rule, cuts)
    if bounds is None:
        return Rows(rule.what, rule.table, 0, 0)
    rows = await connection.execute_fetchall(
        f"WITH doomed (a, b, size) AS ({rule.doomed}) SELECT count(*), total(size) FROM doomed",
        bounds,
    )
    count, size = next(iter(rows))
    return Rows(rule.what, rule.table, count, int(size))


def _bounds(rule: _Rule, cuts: Mapping[str, float]) -> dict[str, float] | None:
    """The bounds that the rule has, SQLite wants no others; None where it keeps everything."""
    bounds = {name: cut for name, cut in cuts.items() if f":{name}" in rule.doomed}
    return None if all(map(isinf, bounds.values())) else bounds


async def _prune(database: Database, rule: _Rule, cuts: Mapping[str, float]) -> Rows:
    bounds = _bounds(rule, cuts)
    if bounds is None:
        return Rows(rule.what, rule.table, 0, 0)
    # Found once: looking again for every transaction would take as long each time.
    async with database.at_once() as writer:
        await writer.execute("CREATE TEMP TABLE IF NOT EXISTS doomed (a, b, size)")
        await writer.execute("DELETE FROM temp.doomed")
        await writer.execute(f"INSERT INTO temp.doomed {rule.doomed}", bounds)
        rows = await writer.execute_fetchall("SELECT count(*), total(size) FROM temp.doomed")
        count, size = next(iter(rows))
    for first in range(0, count, _BATCH):
        some = f"temp.doomed WHERE rowid > {first} AND rowid <= {first + _BATCH}"
        async with database.transaction() as connection:
            await _throw_away(connection, rule, rule.deed.format(some))
    async with database.at_once() as writer:
        await writer.execute("DROP TABLE temp.doomed")
    return Rows(rule.what, rule.table, count, int(size))


async def _throw_away(connection: aiosqlite.Connection, rule: _Rule, deed: str) -> None:
    """Do it; observations have a guard, which is back when others can see the table again."""
    if rule.table != "observation":
        await connection.execute(deed)
        return
    rows = await connection.execute_fetchall(
        "SELECT sql FROM sqlite_master WHERE name = ?", (_GUARD,)
    )
    guard = str(next(iter(rows))[0])
    await connection.execute(f"DROP TRIGGER {_GUARD}")
    await connection.execute(deed)
    await connection.execute(guard)
