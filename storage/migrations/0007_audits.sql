-- Looks at pages drawn at random, from which a daemon's freshness is measured.
-- docs/SCHEMA.md explains every table and column.

CREATE TABLE audit (
    observation_id INTEGER PRIMARY KEY REFERENCES observation (id),
    importance     REAL NOT NULL,
    since          REAL NOT NULL,
    expected       REAL NOT NULL
) STRICT;
