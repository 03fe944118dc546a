-- The search index. The words of each indexed page are kept packed: FTS5 needs them to delete them.
CREATE TABLE search_page (
    page_id    INTEGER PRIMARY KEY REFERENCES page (id),
    version_id INTEGER NOT NULL,
    words      BLOB NOT NULL
) STRICT;
CREATE TABLE search_index (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    format INTEGER NOT NULL,
    pages  INTEGER NOT NULL DEFAULT 0,
    words  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE VIRTUAL TABLE search_words
    USING fts5 (title, headings, body, content = '', tokenize = 'ascii');
-- A crawl commits some pages at a time: to merge them later saves a fifth of FTS5's work.
INSERT INTO search_words (search_words, rank) VALUES ('automerge', 16);
-- What was searched, if search.remember is on: sorted words, and how often.
CREATE TABLE IF NOT EXISTS search_asked (
    terms TEXT PRIMARY KEY,
    times INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- Of a page that is forgotten, or deleted, without this extension: FTS5 needs its words to delete
-- them, so all goes, and the next run with the extension indexes anew.
CREATE TRIGGER IF NOT EXISTS search_is_forgotten AFTER INSERT ON forgetting
WHEN EXISTS (SELECT 1 FROM search_page WHERE page_id = NEW.page_id) BEGIN
    INSERT INTO search_words (search_words) VALUES ('delete-all');
    DELETE FROM search_page;
    UPDATE search_index SET pages = 0, words = 0;
END;
CREATE TRIGGER IF NOT EXISTS search_goes_with_its_page BEFORE DELETE ON page
WHEN EXISTS (SELECT 1 FROM search_page WHERE page_id = OLD.id) BEGIN
    INSERT INTO search_words (search_words) VALUES ('delete-all');
    DELETE FROM search_page;
    UPDATE search_index SET pages = 0, words = 0;
END;
