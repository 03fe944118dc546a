-- What change detection remembers of a page, and what is known better of earlier visits.
-- docs/SCHEMA.md explains every table and column.

ALTER TABLE page ADD COLUMN still INTEGER NOT NULL DEFAULT 0;

CREATE TABLE memory (
    page_id INTEGER PRIMARY KEY REFERENCES page (id),
    data    BLOB NOT NULL
) STRICT;

CREATE TABLE amendment (
    observation_id INTEGER PRIMARY KEY REFERENCES observation (id),
    kind           TEXT NOT NULL,
    rung           TEXT NOT NULL,
    reason         TEXT NOT NULL,
    at             REAL NOT NULL
) STRICT;

-- Observations as they are seen today.
CREATE VIEW finding AS
    SELECT o.id, o.page_id, o.run_id, o.at, coalesce(a.kind, o.kind) AS kind,
           coalesce(a.rung, o.rung) AS rung, o.status, coalesce(a.reason, o.reason) AS reason,
           o.detail, o.resemblance, o.resemblance_se, o.blocks_added, o.blocks_removed,
           o.duration_s, o.size_bytes, o.version_id, o.kind AS first_kind
    FROM observation AS o LEFT JOIN amendment AS a ON a.observation_id = o.id;
