-- Queries by which search quality is measured: sorted words, and the share of all searches. Made
-- ones have a share of these, and the number of pages of which they were made.
CREATE TABLE IF NOT EXISTS search_query (
    id        INTEGER PRIMARY KEY,
    terms     TEXT NOT NULL UNIQUE,
    frequency REAL NOT NULL,
    made      REAL,
    pages     INTEGER
) STRICT;
-- What visits that found a page changed or gone added to search quality, and the time since the
-- page was seen before.
CREATE TABLE IF NOT EXISTS quality_change (
    observation_id INTEGER PRIMARY KEY,
    page_id        INTEGER NOT NULL REFERENCES page (id),
    gap_s          REAL NOT NULL,
    change         REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS quality_change_page ON quality_change (page_id);
-- What pages that stand among the first results contribute to a search, on the mean.
CREATE TABLE IF NOT EXISTS search_use (
    page_id    INTEGER PRIMARY KEY REFERENCES page (id),
    usefulness REAL NOT NULL
) STRICT;
-- The lines of a page's copy before the last visit that found it changed or gone, packed.
CREATE TABLE IF NOT EXISTS search_before (
    page_id INTEGER PRIMARY KEY REFERENCES page (id),
    words   BLOB NOT NULL
) STRICT;
-- One row: the search quality of the copies, as the visits until then tell.
CREATE TABLE IF NOT EXISTS search_quality (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    at      REAL NOT NULL,
    quality REAL NOT NULL
) STRICT;
-- Of each host whose past was judged: what two orders of its visits would have lost.
CREATE TABLE IF NOT EXISTS search_choice (
    host_id INTEGER PRIMARY KEY REFERENCES host (id),
    at      REAL NOT NULL,
    plain   REAL,
    marked  REAL,
    error   REAL,
    changes INTEGER NOT NULL,
    is_gain INTEGER NOT NULL
) STRICT;
CREATE TRIGGER IF NOT EXISTS quality_is_forgotten AFTER INSERT ON forgetting BEGIN
    DELETE FROM quality_change WHERE page_id = NEW.page_id;
    DELETE FROM search_use WHERE page_id = NEW.page_id;
    DELETE FROM search_before WHERE page_id = NEW.page_id;
END;
