-- The tables that extensions keep here, and the versions of their schemas. An extension makes its
-- tables itself, when a store is opened for writing by a Freshet that has it.
CREATE TABLE extension (
    name    TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    at      REAL NOT NULL
) STRICT;

-- Pages that are being forgotten in this transaction; empty outside of it. Triggers of extensions
-- on it delete what their tables hold of a page.
CREATE TABLE forgetting (
    page_id INTEGER PRIMARY KEY
) STRICT;
