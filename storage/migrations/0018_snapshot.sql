-- What a daemon has learnt from observations, as of its last note. It can be learnt from these again.
CREATE TABLE snapshot (
    name TEXT PRIMARY KEY,
    data BLOB NOT NULL
) STRICT;
-- Pages that came to stand elsewhere since, or are held back or not any more.
CREATE TABLE altered_page (
    page_id INTEGER PRIMARY KEY REFERENCES page (id)
) STRICT;
CREATE TRIGGER page_is_altered AFTER UPDATE OF held_back, alias_of, alias_kind, role ON page
WHEN OLD.held_back IS NOT NEW.held_back OR OLD.alias_of IS NOT NEW.alias_of
    OR OLD.alias_kind IS NOT NEW.alias_kind OR OLD.role IS NOT NEW.role
BEGIN
    INSERT OR IGNORE INTO altered_page VALUES (NEW.id);
END;
