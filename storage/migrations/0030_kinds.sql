-- Kinds of change: what a visit found to differ (words, links, images, state, order, layout; with spaces between),
-- also where that does not count as a change. NULL: nothing, or it is not known.
ALTER TABLE observation ADD COLUMN kinds TEXT;
ALTER TABLE amendment ADD COLUMN kinds TEXT;
-- Digests of what the document of a version shows, for comparison with the next; NULL: not made yet.
ALTER TABLE version ADD COLUMN channels BLOB;

DROP VIEW finding;
CREATE VIEW finding AS
    SELECT o.id, o.page_id, o.run_id, o.at, coalesce(a.kind, o.kind) AS kind,
           iif(a.kind IS NULL, o.rung, a.rung) AS rung, o.status,
           coalesce(a.reason, o.reason) AS reason, coalesce(a.detail, o.detail) AS detail,
           iif(a.kind IS 'failed', NULL, o.resemblance) AS resemblance,
           iif(a.kind IS 'failed', NULL, o.resemblance_se) AS resemblance_se,
           iif(a.kind IS 'failed', NULL, o.blocks_added) AS blocks_added,
           iif(a.kind IS 'failed', NULL, o.blocks_removed) AS blocks_removed,
           o.duration_s, o.size_bytes,
           iif(a.kind IS 'failed', NULL, o.version_id) AS version_id, o.kind AS first_kind,
           iif(a.kind IS NULL, o.kinds, a.kinds) AS kinds
    FROM observation AS o LEFT JOIN amendment AS a ON a.observation_id = o.id;

-- Refreshed: the document differs, and no kind of that counts as a change.
DROP VIEW site_finding;
CREATE VIEW site_finding AS
    SELECT p.host_id, iif(f.kind = 'unchanged' AND f.kinds IS NOT NULL, 'refreshed', f.kind) AS kind, f.at, f.id
    FROM finding AS f CROSS JOIN page AS p ON p.id = f.page_id
    WHERE p.role = 'page' AND CASE f.kind WHEN 'changed' THEN true WHEN 'new' THEN f.reason IS NOT 'text_version'
        WHEN 'gone' THEN (SELECT b.kind FROM finding AS b WHERE b.page_id = f.page_id AND b.id < f.id
            ORDER BY b.at DESC, b.id DESC LIMIT 1) IN ('new', 'changed', 'unchanged')
        WHEN 'unchanged' THEN f.at = (SELECT at FROM version WHERE id = f.version_id) END;
DROP TRIGGER amendment_is_counted;
CREATE TRIGGER amendment_is_counted BEFORE INSERT ON amendment BEGIN
    UPDATE site_day SET new = new - (f.kind = 'new') + (NEW.kind = 'new'),
        changed = changed - (f.kind = 'changed') + (NEW.kind = 'changed'),
        unchanged = unchanged - (f.kind = 'unchanged') + (NEW.kind = 'unchanged'),
        failed = failed - (f.kind = 'failed') + (NEW.kind = 'failed')
    FROM finding AS f JOIN page AS p ON p.id = f.page_id WHERE f.id = NEW.observation_id AND p.role = 'page'
        AND site_day.day = CAST(f.at / 86400 AS INTEGER) AND site_day.host_id = p.host_id;
    UPDATE site_change SET kind = iif(NEW.kind = 'unchanged' AND NEW.kinds IS NOT NULL, 'refreshed', NEW.kind)
    FROM finding AS f JOIN page AS p ON p.id = f.page_id WHERE f.id = NEW.observation_id AND observation_id = f.id
        AND site_change.host_id = p.host_id AND site_change.at = f.at
        AND site_change.kind = iif(f.kind = 'unchanged' AND f.kinds IS NOT NULL, 'refreshed', f.kind);
END;

-- The changefeed tells of them, too. Of several entries of a page one is left: findings has the observations that
-- they told, each with the number of its entry (JSON); changed_at is when an entry before "refreshed" was made.
CREATE TABLE change_with_kinds (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    page_id        INTEGER NOT NULL REFERENCES page (id),
    kind           TEXT NOT NULL CHECK (kind IN ('new', 'changed', 'refreshed', 'noise', 'gone', 'moved',
                       'noindex', 'robots', 'withdrawn', 'forgotten')),
    at             REAL NOT NULL,
    -- NULL: no document of the page exists.
    version_id     INTEGER,
    observation_id INTEGER,
    -- What was known without the bytes then: a document does not change without a new number.
    title          TEXT,
    language       TEXT,
    canonical_url  TEXT,
    changed_at     REAL,
    findings       TEXT
) STRICT;
INSERT INTO change_with_kinds (seq, page_id, kind, at, version_id, observation_id, title, language, canonical_url)
    SELECT seq, page_id, kind, at, version_id, observation_id, title, language, canonical_url FROM change ORDER BY seq;
-- No number is given twice, also where the last one was deleted.
DELETE FROM sqlite_sequence WHERE name = 'change_with_kinds';
INSERT INTO sqlite_sequence (name, seq) SELECT 'change_with_kinds', seq FROM sqlite_sequence WHERE name = 'change';
DROP TABLE change;
ALTER TABLE change_with_kinds RENAME TO change;
CREATE UNIQUE INDEX change_page ON change (page_id, kind = 'noise');
CREATE INDEX change_version ON change (version_id) WHERE version_id IS NOT NULL;
CREATE TRIGGER change_is_pruned AFTER DELETE ON change WHEN OLD.version_id IS NULL
BEGIN
    UPDATE changefeed SET kept_from = max(kept_from, OLD.seq);
END;
