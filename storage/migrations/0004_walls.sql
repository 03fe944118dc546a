-- What is known of a host's pages that are no content: its answers to probes, and their likes.
-- docs/SCHEMA.md explains every table and column.

CREATE TABLE wall (
    host_id INTEGER PRIMARY KEY REFERENCES host (id),
    data    BLOB NOT NULL
) STRICT;
