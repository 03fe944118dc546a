-- Near-duplicates: an LSH index over the current sketches, and the groups that it leads to.
-- docs/SCHEMA.md explains every table and column.

CREATE TABLE lsh (
    id             INTEGER PRIMARY KEY CHECK (id = 1),
    threshold      REAL NOT NULL,
    bands          INTEGER NOT NULL,
    band_rows      INTEGER NOT NULL,
    observation_id INTEGER NOT NULL
) STRICT;

CREATE TABLE lsh_page (
    page_id        INTEGER PRIMARY KEY REFERENCES page (id),
    version_id     INTEGER NOT NULL REFERENCES version (id),
    leader_id      INTEGER REFERENCES page (id),
    resemblance    REAL,
    resemblance_se REAL,
    at             REAL,
    keys           BLOB
) STRICT;
CREATE INDEX lsh_page_waiting ON lsh_page (page_id) WHERE leader_id IS NULL;
CREATE INDEX lsh_page_member ON lsh_page (leader_id) WHERE leader_id <> page_id;

CREATE TABLE lsh_bucket (
    key     INTEGER NOT NULL,
    page_id INTEGER NOT NULL,
    PRIMARY KEY (key, page_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE lsh_group (
    leader_id         INTEGER PRIMARY KEY REFERENCES page (id),
    representative_id INTEGER NOT NULL REFERENCES page (id)
) STRICT;
CREATE INDEX lsh_group_representative ON lsh_group (representative_id);

-- The members of a group but its representative. A leader was compared with none: what counts
-- is how its representative resembles it.
CREATE VIEW duplicate AS
    SELECT m.page_id, g.representative_id, m.resemblance, m.resemblance_se, m.at
    FROM lsh_group AS g JOIN lsh_page AS m ON m.leader_id = g.leader_id
    WHERE m.leader_id <> m.page_id AND m.page_id <> g.representative_id
    UNION ALL
    SELECT g.leader_id, g.representative_id, r.resemblance, r.resemblance_se, r.at
    FROM lsh_group AS g JOIN lsh_page AS r ON r.page_id = g.representative_id
    WHERE g.leader_id <> g.representative_id;
