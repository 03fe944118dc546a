-- Captures that prove to be walls are taken back: their observations are amended into failures,
-- which have no rung, a sentence of their own, and nothing that a comparison found.
-- docs/SCHEMA.md explains every table and column.

DROP VIEW finding;
ALTER TABLE amendment RENAME TO amendment_before;
CREATE TABLE amendment (
    observation_id INTEGER PRIMARY KEY REFERENCES observation (id),
    kind           TEXT NOT NULL,
    rung           TEXT,
    reason         TEXT NOT NULL,
    detail         TEXT,
    at             REAL NOT NULL
) STRICT;
INSERT INTO amendment (observation_id, kind, rung, reason, at)
    SELECT observation_id, kind, rung, reason, at FROM amendment_before;
DROP TABLE amendment_before;

-- Observations as they are seen today.
CREATE VIEW finding AS
    SELECT o.id, o.page_id, o.run_id, o.at, coalesce(a.kind, o.kind) AS kind,
           iif(a.kind IS NULL, o.rung, a.rung) AS rung, o.status,
           coalesce(a.reason, o.reason) AS reason, coalesce(a.detail, o.detail) AS detail,
           iif(a.kind IS 'failed', NULL, o.resemblance) AS resemblance,
           iif(a.kind IS 'failed', NULL, o.resemblance_se) AS resemblance_se,
           iif(a.kind IS 'failed', NULL, o.blocks_added) AS blocks_added,
           iif(a.kind IS 'failed', NULL, o.blocks_removed) AS blocks_removed,
           o.duration_s, o.size_bytes,
           iif(a.kind IS 'failed', NULL, o.version_id) AS version_id, o.kind AS first_kind
    FROM observation AS o LEFT JOIN amendment AS a ON a.observation_id = o.id;
