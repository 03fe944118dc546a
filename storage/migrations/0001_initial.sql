-- The first schema. Times are Unix seconds (REAL, UTC); digests are 16-byte BLAKE2b.
-- docs/SCHEMA.md explains every table and column.

CREATE TABLE migration (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at REAL NOT NULL
) STRICT;

CREATE TABLE crawl_run (
    id         INTEGER PRIMARY KEY,
    started_at REAL NOT NULL,
    ended_at   REAL,
    state      TEXT NOT NULL CHECK (state IN ('running', 'ended', 'interrupted', 'limit')),
    fetches    INTEGER NOT NULL DEFAULT 0,
    settings   TEXT NOT NULL
) STRICT;

CREATE TABLE host (
    id               INTEGER PRIMARY KEY,
    origin           TEXT NOT NULL UNIQUE,
    lane             TEXT,
    exchanges        INTEGER NOT NULL DEFAULT 0,
    last_exchange_at REAL,
    delay_s          REAL,
    failures         INTEGER NOT NULL DEFAULT 0,
    parked_until     REAL,
    parked_reason    TEXT
) STRICT;
CREATE INDEX host_lane ON host (lane, last_exchange_at);

CREATE TABLE robots (
    host_id     INTEGER PRIMARY KEY REFERENCES host (id),
    standing    TEXT NOT NULL,
    fetched_at  REAL NOT NULL,
    stale_since REAL,
    reason      TEXT,
    body        BLOB NOT NULL
) STRICT;

CREATE TABLE page (
    id            INTEGER PRIMARY KEY,
    url           TEXT NOT NULL UNIQUE,
    fetch_url     TEXT NOT NULL,
    host_id       INTEGER NOT NULL REFERENCES host (id),
    role          TEXT NOT NULL DEFAULT 'page' CHECK (role IN ('page', 'sitemap', 'feed')),
    depth         INTEGER NOT NULL,
    redirects     INTEGER NOT NULL DEFAULT 0,
    found_at      REAL NOT NULL,
    found_run_id  INTEGER NOT NULL REFERENCES crawl_run (id),
    held_back     TEXT,
    alias_of      INTEGER REFERENCES page (id),
    alias_kind    TEXT CHECK (alias_kind IN ('permanent', 'temporary', 'refresh')),
    alias_at      REAL,
    last_kind     TEXT,
    last_at       REAL,
    checked_at    REAL,
    status        INTEGER,
    etag          TEXT,
    last_modified TEXT,
    body_digest   BLOB,
    text_digest   BLOB,
    version_id    INTEGER,
    title         TEXT,
    language      TEXT,
    canonical_url TEXT,
    noindex       INTEGER NOT NULL DEFAULT 0,
    noarchive     INTEGER NOT NULL DEFAULT 0,
    nofollow      INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX page_host ON page (host_id);
CREATE INDEX page_alias ON page (alias_of) WHERE alias_of IS NOT NULL;

CREATE VIEW alias AS
    SELECT a.url, a.alias_of AS page_id, p.url AS page_url, a.alias_kind AS kind, a.alias_at AS at
    FROM page AS a JOIN page AS p ON p.id = a.alias_of;

CREATE TABLE seed (
    id           INTEGER PRIMARY KEY,
    text         TEXT NOT NULL,
    url          TEXT NOT NULL UNIQUE,
    fallback_url TEXT,
    root_url     TEXT,
    page_id      INTEGER REFERENCES page (id),
    importance   REAL NOT NULL DEFAULT 1.0,
    added_at     REAL NOT NULL
) STRICT;
CREATE INDEX seed_page ON seed (page_id);

CREATE TABLE frontier (
    page_id   INTEGER PRIMARY KEY REFERENCES page (id),
    host_id   INTEGER NOT NULL REFERENCES host (id),
    priority  INTEGER NOT NULL,
    due_at    REAL NOT NULL,
    reason    TEXT NOT NULL,
    attempt   INTEGER NOT NULL DEFAULT 0,
    deferred  TEXT
) STRICT;
CREATE INDEX frontier_host ON frontier (host_id, priority, page_id);

CREATE TABLE observation (
    id             INTEGER PRIMARY KEY,
    page_id        INTEGER NOT NULL REFERENCES page (id),
    run_id         INTEGER NOT NULL REFERENCES crawl_run (id),
    at             REAL NOT NULL,
    kind           TEXT NOT NULL,
    rung           TEXT,
    status         INTEGER,
    reason         TEXT,
    detail         TEXT,
    resemblance    REAL,
    resemblance_se REAL,
    blocks_added   INTEGER,
    blocks_removed INTEGER,
    duration_s     REAL NOT NULL,
    size_bytes     INTEGER,
    version_id     INTEGER
) STRICT;
CREATE INDEX observation_page ON observation (page_id, at);
CREATE INDEX observation_run ON observation (run_id, kind);
CREATE TRIGGER observation_is_not_updated BEFORE UPDATE ON observation
BEGIN
    SELECT RAISE(ABORT, 'observations are append-only');
END;
CREATE TRIGGER observation_is_not_deleted BEFORE DELETE ON observation
BEGIN
    SELECT RAISE(ABORT, 'observations are append-only');
END;

CREATE TABLE version (
    id           INTEGER PRIMARY KEY,
    page_id      INTEGER NOT NULL REFERENCES page (id),
    at           REAL NOT NULL,
    body_digest  BLOB NOT NULL,
    text_digest  BLOB,
    content_type TEXT,
    encoding     TEXT,
    sketch       BLOB
) STRICT;
CREATE INDEX version_page ON version (page_id, at);
CREATE INDEX version_body ON version (body_digest);

CREATE TABLE body (
    digest     BLOB PRIMARY KEY,
    stored_at  REAL NOT NULL,
    size_bytes INTEGER NOT NULL,
    zstd       BLOB NOT NULL
) STRICT;

CREATE TABLE link (
    src_id        INTEGER NOT NULL REFERENCES page (id),
    dst_id        INTEGER NOT NULL REFERENCES page (id),
    position      INTEGER NOT NULL,
    rel           TEXT NOT NULL,
    anchor        TEXT NOT NULL,
    first_seen_at REAL NOT NULL,
    last_seen_at  REAL NOT NULL,
    gone_at       REAL,
    PRIMARY KEY (src_id, dst_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX link_dst ON link (dst_id);

CREATE TABLE offsite_link (
    src_id        INTEGER NOT NULL REFERENCES page (id),
    url           TEXT NOT NULL,
    position      INTEGER NOT NULL,
    rel           TEXT NOT NULL,
    anchor        TEXT NOT NULL,
    first_seen_at REAL NOT NULL,
    last_seen_at  REAL NOT NULL,
    gone_at       REAL,
    PRIMARY KEY (src_id, url)
) STRICT, WITHOUT ROWID;

CREATE TABLE trap (
    host_id  INTEGER NOT NULL REFERENCES host (id),
    shape    TEXT NOT NULL,
    kind     TEXT NOT NULL,
    admitted INTEGER NOT NULL DEFAULT 0,
    refused  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (host_id, shape)
) STRICT, WITHOUT ROWID;
