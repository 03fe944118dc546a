"""The tables of the index, and the statements that fill them."""

from __future__ import annotations

from typing import Final

#: Ours, so that no other database is overwritten: "FrIx".
APPLICATION: Final = 0x46724978
#: Counted up with every change of the tables; an index of another version is made anew.
VERSION: Final = 2

TABLES: Final = """
CREATE TABLE source (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL, member TEXT, start INTEGER NOT NULL, size INTEGER,
    bytes INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
    listed INTEGER NOT NULL, finished INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE exchange (
    id INTEGER PRIMARY KEY,
    ended REAL NOT NULL, source INTEGER NOT NULL, at INTEGER NOT NULL, nth INTEGER NOT NULL,
    kind TEXT NOT NULL, url TEXT NOT NULL, started REAL NOT NULL, status INTEGER,
    digest TEXT, outcome TEXT, accept TEXT, length INTEGER NOT NULL,
    request_at INTEGER, request_length INTEGER, request_nth INTEGER,
    facts_at INTEGER, facts_length INTEGER, facts_nth INTEGER,
    record_key INTEGER NOT NULL, url_key INTEGER NOT NULL,
    refers_record INTEGER, refers_url INTEGER, refers_started REAL, original INTEGER
);
CREATE TABLE info (
    at REAL NOT NULL, source INTEGER NOT NULL, offset INTEGER NOT NULL, nth INTEGER NOT NULL,
    length INTEGER NOT NULL
);
CREATE TABLE damage (
    source INTEGER NOT NULL, at INTEGER NOT NULL, reason TEXT NOT NULL, flaw TEXT NOT NULL
);
CREATE TABLE skipped (source INTEGER NOT NULL, kind TEXT NOT NULL, count INTEGER NOT NULL);
CREATE TABLE listed (
    file INTEGER NOT NULL, at INTEGER NOT NULL, length INTEGER NOT NULL, PRIMARY KEY (file, at)
) WITHOUT ROWID;
"""

INSERT: Final = f"INSERT INTO exchange VALUES (NULL{', ?' * 24})"
#: Rows go in without an index. It is made when all are there, so it also says that they are.
IN_TIME: Final = "CREATE INDEX exchange_in_time ON exchange (ended, source, at, nth)"
PROBES: Final = "CREATE INDEX probe ON exchange (url, ended) WHERE accept = 'probe'"
NO_PROBES: Final = "DROP INDEX IF EXISTS probe"
NOT_FINISHED: Final = "DROP INDEX IF EXISTS exchange_in_time"
IS_FINISHED: Final = "SELECT 1 FROM sqlite_schema WHERE name = 'exchange_in_time'"
#: What only revisits need, while they are resolved.
LOOKUPS: Final = (
    "CREATE INDEX original_by_record ON exchange (record_key) WHERE kind = 'response'",
    "CREATE INDEX original_by_url ON exchange (url_key, started) WHERE kind = 'response'",
    "CREATE INDEX original_by_digest ON exchange (digest) WHERE kind = 'response'",
)
NO_LOOKUPS: Final = (
    "DROP INDEX original_by_record",
    "DROP INDEX original_by_url",
    "DROP INDEX original_by_digest",
)
_FITS = """ifnull(o.digest = r.digest
    OR substr(o.digest, 1, instr(o.digest, ':')) <> substr(r.digest, 1, instr(r.digest, ':')), 1)"""
#: The record that a revisit names, the capture of its URL and time, or any of the same payload;
#: never one whose digest of the same kind is another.
RESOLVE: Final = f"""
UPDATE exchange AS r SET original = coalesce(
    (SELECT o.id FROM exchange o
        WHERE o.record_key = r.refers_record AND o.kind = 'response' AND {_FITS}
        ORDER BY o.id LIMIT 1),
    (SELECT id FROM (
        SELECT o.id AS id, abs(o.started - r.refers_started) AS gap FROM exchange o
        WHERE o.url_key = r.refers_url AND o.kind = 'response' AND {_FITS}
            AND o.started BETWEEN r.refers_started - 1 AND r.refers_started + 1)
        ORDER BY gap, id LIMIT 1),
    (SELECT o.id FROM exchange o
        WHERE o.digest = r.digest AND o.kind = 'response' ORDER BY o.id LIMIT 1))
WHERE r.kind = 'same'
"""
UNRESOLVED: Final = """
INSERT INTO damage SELECT source, at, 'the original of this revisit is in none of the archives', ?
FROM exchange WHERE kind = 'same' AND original IS NULL ORDER BY id
"""
#: A page of the order; a revisit without its original is none that can be read.
_COLUMNS: Final = """
SELECT r.ended, r.source, r.at, r.nth, r.kind, r.url, r.started, r.status, r.digest, r.outcome,
    r.length, r.request_at, r.request_length, r.request_nth,
    r.facts_at, r.facts_length, r.facts_nth, o.source, o.at, o.length, o.nth
FROM exchange r LEFT JOIN exchange o ON o.id = r.original
WHERE (r.kind <> 'same' OR o.id IS NOT NULL) AND """
READ: Final = f"""{_COLUMNS} (r.ended, r.source, r.at, r.nth) > (?, ?, ?, ?)
ORDER BY r.ended, r.source, r.at, r.nth LIMIT ?
"""
#: The next probe of a host: URLs from one up to, not including, another; and a time.
NEXT_PROBE: Final = f"""{_COLUMNS} r.accept = 'probe' AND r.url >= ? AND r.url < ? AND r.ended >= ?
ORDER BY r.ended LIMIT 1
"""
INFOS: Final = "SELECT at, source, offset, nth, length FROM info ORDER BY 1, 2, 3, 4"
COUNT: Final = "SELECT count(*) FROM exchange WHERE kind <> 'same' OR original IS NOT NULL"
DAMAGES: Final = "SELECT source, at, reason, flaw FROM damage ORDER BY source, at, rowid"
FLAWS: Final = "SELECT flaw, count(*) FROM damage GROUP BY flaw ORDER BY flaw"
SKIPPED: Final = """
SELECT kind, sum(count) AS n FROM skipped GROUP BY kind ORDER BY n DESC, kind
"""
