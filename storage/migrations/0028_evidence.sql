-- Of a page: how often in a row the server has answered 304, and when it last sent what could be read; when a
-- plain request was answered where another had failed; how many visits in a row found no text, and since when.
ALTER TABLE page ADD COLUMN not_modified INTEGER NOT NULL DEFAULT 0;
ALTER TABLE page ADD COLUMN read_at REAL;
ALTER TABLE page ADD COLUMN plain_at REAL;
ALTER TABLE page ADD COLUMN no_content_visits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE page ADD COLUMN no_content_since REAL;
UPDATE page SET read_at = checked_at WHERE checked_at IS NOT NULL;
CREATE INDEX page_no_content ON page (host_id) WHERE no_content_since IS NOT NULL;
-- Of a host: plain requests in a row that were answered, and those in a row that failed as well.
ALTER TABLE host ADD COLUMN helped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE host ADD COLUMN vain INTEGER NOT NULL DEFAULT 0;
ALTER TABLE host ADD COLUMN repeated_at REAL;
