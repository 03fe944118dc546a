-- What others say of when pages changed, and what the headers of hosts are worth.
-- docs/SCHEMA.md explains every table and column.

CREATE TABLE claim_source (
    id       INTEGER PRIMARY KEY,
    kind     TEXT NOT NULL CHECK (kind IN ('sitemap', 'feed', 'last_modified', 'websub', 'ping')),
    host_id  INTEGER NOT NULL REFERENCES host (id),
    page_id  INTEGER REFERENCES page (id),
    url      TEXT NOT NULL,
    rejected INTEGER NOT NULL DEFAULT 0,
    UNIQUE (kind, url)
) STRICT;
CREATE INDEX claim_source_host ON claim_source (host_id);

CREATE TABLE claim (
    id          INTEGER PRIMARY KEY,
    source_id   INTEGER NOT NULL REFERENCES claim_source (id),
    page_id     INTEGER NOT NULL REFERENCES page (id),
    since       REAL NOT NULL,
    until       REAL NOT NULL CHECK (since <= until),
    received_at REAL NOT NULL
) STRICT;
CREATE INDEX claim_last ON claim (source_id, page_id);
CREATE TRIGGER claim_is_not_updated BEFORE UPDATE ON claim
BEGIN
    SELECT RAISE(ABORT, 'claims are append-only');
END;
CREATE TRIGGER claim_is_not_deleted BEFORE DELETE ON claim
BEGIN
    SELECT RAISE(ABORT, 'claims are append-only');
END;

CREATE TABLE host_signals (
    host_id        INTEGER PRIMARY KEY REFERENCES host (id),
    dated          INTEGER NOT NULL DEFAULT 0,
    skew_s         REAL,
    modified_now   INTEGER NOT NULL DEFAULT 0,
    modified_past  INTEGER NOT NULL DEFAULT 0,
    etag_right     INTEGER NOT NULL DEFAULT 0,
    etag_idle      INTEGER NOT NULL DEFAULT 0,
    etag_missed    INTEGER NOT NULL DEFAULT 0
) STRICT;

-- For how long the server wishes an answer to be used without asking again; NULL: it says nothing.
ALTER TABLE page ADD COLUMN wish_s REAL;
