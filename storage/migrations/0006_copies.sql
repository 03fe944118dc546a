-- Patterns whose URLs turn out to be copies: the evidence, and when they were closed.
-- docs/SCHEMA.md explains every table and column.

ALTER TABLE page ADD COLUMN pattern TEXT;
ALTER TABLE page ADD COLUMN copy_of INTEGER REFERENCES page (id);
CREATE INDEX page_pattern ON page (host_id, pattern) WHERE pattern IS NOT NULL;

-- One URL may count towards patterns of two kinds with the same shape.
CREATE TABLE trap_by_kind (
    host_id   INTEGER NOT NULL REFERENCES host (id),
    shape     TEXT NOT NULL,
    kind      TEXT NOT NULL,
    admitted  INTEGER NOT NULL DEFAULT 0,
    refused   INTEGER NOT NULL DEFAULT 0,
    copies    INTEGER NOT NULL DEFAULT 0,
    closed_at REAL,
    PRIMARY KEY (host_id, shape, kind)
) STRICT, WITHOUT ROWID;
INSERT INTO trap_by_kind (host_id, shape, kind, admitted, refused)
    SELECT host_id, shape, kind, admitted, refused FROM trap;
DROP TABLE trap;
ALTER TABLE trap_by_kind RENAME TO trap;
