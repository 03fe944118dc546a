-- The mass of PageRank that flows from each other shard to pages here, as that shard told it last.
CREATE TABLE inflow (shard INTEGER PRIMARY KEY, masses BLOB NOT NULL) STRICT;
