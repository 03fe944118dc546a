-- A snapshot is written in pieces, while pages are visited: its last part, "agenda", lists the ids of
-- all. What was learnt before is learnt again.
DROP TABLE snapshot;
CREATE TABLE snapshot (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT;
DROP TRIGGER page_is_altered;
DROP TABLE altered_page;
-- A page that is altered again has a larger id: it was altered after the snapshot of the former one.
CREATE TABLE altered_page (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    page_id INTEGER NOT NULL UNIQUE REFERENCES page (id)
) STRICT;
CREATE TRIGGER page_is_altered AFTER UPDATE OF held_back, alias_of, alias_kind, role ON page
WHEN OLD.held_back IS NOT NEW.held_back OR OLD.alias_of IS NOT NEW.alias_of
    OR OLD.alias_kind IS NOT NEW.alias_kind OR OLD.role IS NOT NEW.role
BEGIN
    DELETE FROM altered_page WHERE page_id = NEW.id;
    INSERT INTO altered_page (page_id) VALUES (NEW.id);
END;
