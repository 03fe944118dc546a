-- Since when a run reaches no host at all: status says so while the run goes on.
CREATE TABLE no_network (
    run_id INTEGER PRIMARY KEY,
    since  REAL NOT NULL
) STRICT;
