-- What daemons expect of sites; and by day (of 1970, UTC) all requests, those for robots.txt, and visits to pages.
CREATE TABLE site_day (
    day INTEGER NOT NULL, host_id INTEGER NOT NULL REFERENCES host (id), requests INTEGER NOT NULL DEFAULT 0,
    robots INTEGER NOT NULL DEFAULT 0, new INTEGER NOT NULL DEFAULT 0, changed INTEGER NOT NULL DEFAULT 0,
    unchanged INTEGER NOT NULL DEFAULT 0, gone INTEGER NOT NULL DEFAULT 0, redirected INTEGER NOT NULL DEFAULT 0,
    refused INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0, skipped INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, host_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX site_day_host ON site_day (host_id);
CREATE TABLE site_outlook (
    host_id INTEGER PRIMARY KEY REFERENCES host (id), at REAL NOT NULL, captured INTEGER NOT NULL,
    waiting INTEGER NOT NULL, gone INTEGER NOT NULL, stale REAL, wanted REAL, most REAL, capped INTEGER NOT NULL
) STRICT;
-- Findings that readers see as changes; gone is said once, noise is a version that came with no change.
CREATE VIEW site_finding AS
    SELECT p.host_id, f.kind, f.at, f.id FROM finding AS f CROSS JOIN page AS p ON p.id = f.page_id
    WHERE p.role = 'page' AND CASE f.kind WHEN 'changed' THEN true WHEN 'new' THEN f.reason IS NOT 'text_version'
        WHEN 'gone' THEN (SELECT b.kind FROM finding AS b WHERE b.page_id = f.page_id AND b.id < f.id
            ORDER BY b.at DESC, b.id DESC LIMIT 1) IN ('new', 'changed', 'unchanged')
        WHEN 'unchanged' THEN f.at = (SELECT at FROM version WHERE id = f.version_id) END;
CREATE TABLE site_change (
    host_id INTEGER NOT NULL REFERENCES host (id), kind TEXT NOT NULL, at REAL NOT NULL,
    observation_id INTEGER NOT NULL REFERENCES observation (id), PRIMARY KEY (host_id, kind, at, observation_id)
) STRICT, WITHOUT ROWID;
-- By id: in another order the file would be read here and there.
INSERT INTO site_change SELECT * FROM site_finding WHERE id > 0 ORDER BY 1, 2, 3, 4;
CREATE INDEX site_change_at ON site_change (kind, at, observation_id);
-- Of older stores the visits to pages in the last 30 days are counted.
INSERT INTO site_day
    SELECT CAST(f.at / 86400 AS INTEGER), p.host_id, sum(f.kind <> 'refused'), 0, sum(f.kind = 'new'),
        sum(f.kind = 'changed'), sum(f.kind = 'unchanged'), sum(f.kind = 'gone'), sum(f.kind = 'redirected'),
        sum(f.kind = 'refused'), sum(f.kind = 'failed'), sum(f.kind = 'skipped')
    FROM finding AS f CROSS JOIN page AS p ON p.id = f.page_id
    WHERE p.role = 'page' AND f.at >= (SELECT max(at) FROM observation) - 30 * 86400 GROUP BY 1, 2;
CREATE TRIGGER observation_is_counted AFTER INSERT ON observation BEGIN
    INSERT INTO site_day (day, host_id, new, changed, unchanged, gone, redirected, refused, failed, skipped)
        SELECT CAST(NEW.at / 86400 AS INTEGER), host_id, NEW.kind = 'new', NEW.kind = 'changed',
            NEW.kind = 'unchanged', NEW.kind = 'gone', NEW.kind = 'redirected', NEW.kind = 'refused',
            NEW.kind = 'failed', NEW.kind = 'skipped' FROM page WHERE id = NEW.page_id AND role = 'page'
        ON CONFLICT DO UPDATE SET new = new + excluded.new, changed = changed + excluded.changed,
            unchanged = unchanged + excluded.unchanged, gone = gone + excluded.gone,
            redirected = redirected + excluded.redirected, refused = refused + excluded.refused,
            failed = failed + excluded.failed, skipped = skipped + excluded.skipped;
END;
CREATE TRIGGER observation_is_a_change AFTER INSERT ON observation
WHEN NEW.kind IN ('new', 'changed', 'gone') OR NEW.kind = 'unchanged' AND ifnull(NEW.rung, '') NOT IN ('304', 'body') BEGIN
    INSERT INTO site_change SELECT * FROM site_finding WHERE id = NEW.id;
END;
-- Before: the verdict that it replaces is still there.
CREATE TRIGGER amendment_is_counted BEFORE INSERT ON amendment BEGIN
    UPDATE site_day SET new = new - (f.kind = 'new') + (NEW.kind = 'new'),
        changed = changed - (f.kind = 'changed') + (NEW.kind = 'changed'),
        unchanged = unchanged - (f.kind = 'unchanged') + (NEW.kind = 'unchanged'),
        failed = failed - (f.kind = 'failed') + (NEW.kind = 'failed')
    FROM finding AS f JOIN page AS p ON p.id = f.page_id WHERE f.id = NEW.observation_id AND p.role = 'page'
        AND site_day.day = CAST(f.at / 86400 AS INTEGER) AND site_day.host_id = p.host_id;
    UPDATE site_change SET kind = NEW.kind
    FROM finding AS f JOIN page AS p ON p.id = f.page_id WHERE f.id = NEW.observation_id AND observation_id = f.id
        AND site_change.host_id = p.host_id AND site_change.kind = f.kind AND site_change.at = f.at;
END;
CREATE TRIGGER host_is_asked AFTER UPDATE OF exchanges ON host
WHEN NEW.exchanges > OLD.exchanges AND NEW.last_exchange_at BEGIN
    INSERT INTO site_day (day, host_id, requests)
        VALUES (CAST(NEW.last_exchange_at / 86400 AS INTEGER), NEW.id, NEW.exchanges - OLD.exchanges)
        ON CONFLICT DO UPDATE SET requests = requests + excluded.requests;
END;
CREATE TRIGGER robots_are_read AFTER INSERT ON robots BEGIN
    INSERT INTO site_day (day, host_id, robots)
        VALUES (CAST(coalesce(NEW.stale_since, NEW.fetched_at) / 86400 AS INTEGER), NEW.host_id, 1)
        ON CONFLICT DO UPDATE SET robots = robots + 1;
END;
