-- Up to where bodies were looked at, so that the end of a crawl looks at what came since.
CREATE TABLE pruned (
    id             INTEGER PRIMARY KEY CHECK (id = 1),
    -- The newest observation then.
    observation_id INTEGER NOT NULL,
    at             REAL NOT NULL,
    -- What was kept, as JSON.
    kept           TEXT NOT NULL
) STRICT;

-- Few rows of large tables that the start and the end of each run ask for.
CREATE INDEX version_at ON version (at);
CREATE INDEX amendment_at ON amendment (at);
CREATE INDEX page_held_back ON page (held_back) WHERE held_back IS NOT NULL;
CREATE INDEX page_role ON page (role) WHERE role <> 'page';
