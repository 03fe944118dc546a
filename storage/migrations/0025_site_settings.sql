-- What was set in a browser: settings of sites as in [[sites]], in JSON; "visit" is a wish to have a page visited.
CREATE TABLE site_setting (
    match TEXT NOT NULL,
    key   TEXT NOT NULL,
    value TEXT NOT NULL,
    at    REAL NOT NULL,
    PRIMARY KEY (match, key)
) STRICT, WITHOUT ROWID;
