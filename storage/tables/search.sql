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
    USING fts5 (title, headings, body, content = '', tokenize = 'ascii')
