-- The shard whose store this is, and how often a process has taken it: who took it last may write.
CREATE TABLE lease (
    id INTEGER PRIMARY KEY CHECK (id = 1), shard INTEGER NOT NULL, epoch INTEGER NOT NULL
) STRICT;
