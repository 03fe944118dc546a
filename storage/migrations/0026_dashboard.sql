-- A dashboard asks often which hosts have URLs that wait for the next run: they are few of the frontier.
CREATE INDEX frontier_deferred ON frontier (host_id, deferred) WHERE deferred IS NOT NULL;
-- A page that is compared anew, as its text is another one by another rule, is not new.
DROP TRIGGER observation_is_counted;
CREATE TRIGGER observation_is_counted AFTER INSERT ON observation BEGIN
    INSERT INTO site_day (day, host_id, new, changed, unchanged, gone, redirected, refused, failed, skipped)
        SELECT CAST(NEW.at / 86400 AS INTEGER), host_id, NEW.kind = 'new' AND NEW.reason IS NOT 'text_version',
            NEW.kind = 'changed', NEW.kind = 'unchanged' OR NEW.reason IS 'text_version', NEW.kind = 'gone',
            NEW.kind = 'redirected', NEW.kind = 'refused', NEW.kind = 'failed', NEW.kind = 'skipped'
        FROM page WHERE id = NEW.page_id AND role = 'page'
        ON CONFLICT DO UPDATE SET new = new + excluded.new, changed = changed + excluded.changed,
            unchanged = unchanged + excluded.unchanged, gone = gone + excluded.gone,
            redirected = redirected + excluded.redirected, refused = refused + excluded.refused,
            failed = failed + excluded.failed, skipped = skipped + excluded.skipped;
END;
