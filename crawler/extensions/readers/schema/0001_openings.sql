-- What lists showed at which place, and what was opened of it. Nothing tells by whom. Stores of
-- before have the tables.
CREATE TABLE IF NOT EXISTS showing (
    id        INTEGER PRIMARY KEY,
    list_id   INTEGER NOT NULL,
    made_for  TEXT NOT NULL CHECK (made_for IN ('terminal', 'http', 'digest', 'file')),
    at        REAL NOT NULL,
    page_id   INTEGER NOT NULL REFERENCES page (id),
    place     INTEGER NOT NULL CHECK (place > 0),
    promoted  INTEGER NOT NULL CHECK (promoted IN (0, 1)),
    opened_at REAL
) STRICT;
CREATE INDEX IF NOT EXISTS showing_of_list ON showing (list_id, place);
-- Of lists that are no longer kept: what is left of a page, and of a place of promoted pages.
CREATE TABLE IF NOT EXISTS past_openings (
    page_id INTEGER PRIMARY KEY REFERENCES page (id),
    views   REAL NOT NULL,
    opens   INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS past_promotions (
    place  INTEGER PRIMARY KEY,
    shown  INTEGER NOT NULL,
    opened INTEGER NOT NULL
) STRICT;
-- Whoever forgets or deletes a page, also without this extension.
CREATE TRIGGER showing_is_forgotten AFTER INSERT ON forgetting BEGIN
    DELETE FROM showing WHERE page_id = NEW.page_id;
    DELETE FROM past_openings WHERE page_id = NEW.page_id;
END;
