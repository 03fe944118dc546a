-- The robots.txt files that a host has had, each since it was first fetched: the body is packed by zlib.
CREATE TABLE past_robots (
    host_id  INTEGER NOT NULL REFERENCES host (id),
    at       REAL NOT NULL,
    standing TEXT NOT NULL,
    body     BLOB NOT NULL,
    PRIMARY KEY (host_id, at)
) STRICT, WITHOUT ROWID;
