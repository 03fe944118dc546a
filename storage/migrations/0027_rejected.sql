-- A page whose last response was no content: a version of the rules and the digest of its bytes, its kind,
-- and since when they are the same. The validators of the page are those of this response then.
ALTER TABLE page ADD COLUMN rejected_digest BLOB;
ALTER TABLE page ADD COLUMN rejected_as TEXT;
ALTER TABLE page ADD COLUMN rejected_at REAL;
CREATE INDEX page_rejected ON page (host_id, rejected_as) WHERE rejected_digest IS NOT NULL;
