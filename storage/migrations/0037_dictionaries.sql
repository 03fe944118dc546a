-- What bodies of a host are packed with beside themselves: the id stands in the head of their frames.
CREATE TABLE dictionary (
    id      INTEGER PRIMARY KEY,
    origin  TEXT NOT NULL,
    made_at REAL NOT NULL,
    -- The host's bodies that had been counted then.
    bodies  INTEGER NOT NULL,
    zstd    BLOB NOT NULL
) STRICT;
CREATE INDEX dictionary_origin ON dictionary (origin, bodies);
