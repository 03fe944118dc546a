-- What a site states of the use of a page, in JSON (crawler/robots/preferences.py); NULL: nothing.
ALTER TABLE page ADD COLUMN preferences TEXT;
-- The same at each visit at which it was another than before; '' where nothing was stated any more.
CREATE TABLE preference (
    page_id    INTEGER NOT NULL REFERENCES page (id),
    at         REAL NOT NULL,
    statements TEXT NOT NULL,
    PRIMARY KEY (page_id, at)
) STRICT, WITHOUT ROWID;
