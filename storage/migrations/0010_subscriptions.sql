-- What is agreed with the hubs of pages (W3C WebSub).
-- docs/SCHEMA.md explains every table and column.

CREATE TABLE subscription (
    page_id       INTEGER PRIMARY KEY REFERENCES page (id),
    hub           TEXT NOT NULL,
    topic         TEXT NOT NULL,
    token         TEXT NOT NULL UNIQUE,
    secret        TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('wanted', 'active', 'denied', 'leaving')),
    next_at       REAL NOT NULL,
    pending_until REAL,
    lease_until   REAL,
    failures      INTEGER NOT NULL,
    detail        TEXT
) STRICT;
