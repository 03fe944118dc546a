-- A page whose last content may be none: the kind of block page, the probability (0 to 1) and the reason.
ALTER TABLE page ADD COLUMN doubtful_as TEXT;
ALTER TABLE page ADD COLUMN doubtful_p REAL;
ALTER TABLE page ADD COLUMN doubtful_why TEXT;
CREATE INDEX page_doubtful ON page (host_id, doubtful_as) WHERE doubtful_as IS NOT NULL;

-- Pages that the rules before refused: no bytes have this digest, so that the next visit reads and decides.
UPDATE page SET rejected_digest = zeroblob(0) WHERE rejected_digest IS NOT NULL;
-- What was learnt of hosts is in the form of the rules before, and is learnt anew.
DELETE FROM not_content;
