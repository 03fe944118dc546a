-- How often each bound on what sites can make a crawler do has held something back.
CREATE TABLE bound (
    run_id INTEGER NOT NULL REFERENCES crawl_run (id),
    name   TEXT NOT NULL,
    met    INTEGER NOT NULL,
    PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;
