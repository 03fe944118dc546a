-- What a daemon expects, noted from time to time, and what an audit was to count at most as.
-- docs/SCHEMA.md explains every table and column.

CREATE TABLE outlook (
    at           REAL PRIMARY KEY,
    run_id       INTEGER NOT NULL REFERENCES crawl_run (id),
    began_at     REAL NOT NULL,
    fetches      INTEGER NOT NULL,
    budget       REAL NOT NULL,
    policy       TEXT NOT NULL,
    flowed       REAL NOT NULL,
    forgone      REAL NOT NULL,
    watched      INTEGER NOT NULL,
    captured     INTEGER NOT NULL,
    waiting      INTEGER NOT NULL,
    gone         INTEGER NOT NULL,
    stale        REAL,
    harmonic     REAL,
    price        REAL,
    daily        INTEGER NOT NULL,
    weekly       INTEGER NOT NULL,
    monthly      INTEGER NOT NULL,
    yearly       INTEGER NOT NULL,
    rarer        INTEGER NOT NULL,
    clocked      REAL NOT NULL,
    next_at      REAL NOT NULL,
    next_page_id INTEGER REFERENCES page (id)
) STRICT;

CREATE TABLE capped_lane (
    outlook_at REAL NOT NULL REFERENCES outlook (at) ON DELETE CASCADE,
    lane       TEXT NOT NULL,
    most       REAL NOT NULL,
    wanted     REAL NOT NULL,
    pages      INTEGER NOT NULL,
    PRIMARY KEY (outlook_at, lane)
) STRICT, WITHOUT ROWID;

-- The changes expected since the last look; NULL in rows of before: they follow from "expected".
ALTER TABLE audit ADD COLUMN hazard REAL;
