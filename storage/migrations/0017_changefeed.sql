-- The changefeed: the last state of each page of which consumers of the store are told.
CREATE TABLE changefeed (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    -- A copy of the store has another one: it will count on differently.
    epoch     TEXT NOT NULL,
    -- Deletions up to this number are not told any more.
    kept_from INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO changefeed (id, epoch) VALUES (1, lower(hex(randomblob(8))));

-- AUTOINCREMENT: no number comes twice. A page has one row, and one of the kind noise
-- where its newest version differs from the last significant one by noise only.
CREATE TABLE change (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    page_id        INTEGER NOT NULL REFERENCES page (id),
    kind           TEXT NOT NULL CHECK (kind IN ('new', 'changed', 'noise', 'gone', 'moved',
                       'noindex', 'robots', 'withdrawn', 'forgotten')),
    at             REAL NOT NULL,
    -- NULL: no document of the page exists.
    version_id     INTEGER,
    observation_id INTEGER,
    -- What was known without the bytes then: a document does not change without a new number.
    title          TEXT,
    language       TEXT,
    canonical_url  TEXT
) STRICT;
CREATE UNIQUE INDEX change_page ON change (page_id, kind = 'noise');
CREATE INDEX change_version ON change (version_id) WHERE version_id IS NOT NULL;
-- A row that is replaced fires no trigger: only retention deletes deletions.
CREATE TRIGGER change_is_pruned AFTER DELETE ON change WHEN OLD.version_id IS NULL
BEGIN
    UPDATE changefeed SET kept_from = max(kept_from, OLD.seq);
END;

INSERT INTO change (page_id, kind, at, version_id, observation_id, title, language, canonical_url)
    SELECT p.id, 'new', coalesce(s.at, f.at), coalesce(s.version_id, p.version_id),
        coalesce(s.id, f.id), p.title, p.language, p.canonical_url
    FROM page AS p JOIN finding AS f ON f.id = (SELECT id FROM finding WHERE page_id = p.id
        AND (kind IN ('new', 'changed', 'unchanged', 'gone')
            OR kind = 'redirected' AND reason = 'permanent'
            OR kind = 'refused' AND reason = 'robots')
        ORDER BY at DESC, id DESC LIMIT 1)
    LEFT JOIN finding AS s ON s.id = (SELECT id FROM finding WHERE page_id = p.id
        AND kind IN ('new', 'changed') AND version_id IN (SELECT id FROM version)
        ORDER BY at DESC, id DESC LIMIT 1)
    WHERE p.role = 'page' AND NOT p.noindex AND p.version_id IS NOT NULL
    AND f.kind IN ('new', 'changed', 'unchanged') ORDER BY 3;

-- What begins so was forgotten and is not to be fetched again.
CREATE TABLE refusal (
    prefix TEXT PRIMARY KEY,
    at     REAL NOT NULL
) STRICT, WITHOUT ROWID;
