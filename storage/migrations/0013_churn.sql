-- What looks showed of how the links of a page churn: links to pages that were not known at the
-- look before, and those that dropped off. Looks of before did not say. And of a seed, how fast
-- what appears there loses its worth. docs/SCHEMA.md explains every table and column.

CREATE TABLE churn (
    page_id  INTEGER NOT NULL REFERENCES page (id),
    at       REAL NOT NULL,
    since    REAL NOT NULL,
    appeared INTEGER NOT NULL,
    dropped  INTEGER NOT NULL,
    stayed   INTEGER NOT NULL,
    PRIMARY KEY (page_id, at)
) STRICT, WITHOUT ROWID;

ALTER TABLE seed ADD COLUMN half_life_hours REAL;

-- By which extraction the main text was taken from the bytes.
ALTER TABLE version ADD COLUMN text_version TEXT;
