-- What is to be told of observations, and the messages that tell it. Stores have these tables from
-- the first migration of the core.
CREATE TABLE IF NOT EXISTS alert_message (
    id         INTEGER PRIMARY KEY,
    key        TEXT NOT NULL UNIQUE,
    rule       TEXT NOT NULL,
    made_at    REAL NOT NULL,
    body       TEXT,
    state      TEXT NOT NULL,
    since      REAL NOT NULL,
    tries      INTEGER NOT NULL DEFAULT 0,
    next_at    REAL NOT NULL,
    settled_at REAL,
    said       TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS alert_message_rule ON alert_message (rule, state, id);

-- AUTOINCREMENT: what was deleted while a message was being composed must not come back as another.
CREATE TABLE IF NOT EXISTS alert (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    key            TEXT NOT NULL UNIQUE,
    rule           TEXT NOT NULL,
    observation_id INTEGER NOT NULL REFERENCES observation (id),
    kind           TEXT NOT NULL,
    at             REAL NOT NULL,
    message_id     INTEGER REFERENCES alert_message (id)
) STRICT;
CREATE INDEX IF NOT EXISTS alert_waiting ON alert (rule, at) WHERE message_id IS NULL;
CREATE INDEX IF NOT EXISTS alert_observation ON alert (observation_id);
CREATE INDEX IF NOT EXISTS alert_told ON alert (message_id) WHERE message_id IS NOT NULL;

CREATE TABLE IF NOT EXISTS alert_review (
    observation_id INTEGER PRIMARY KEY REFERENCES observation (id)
) STRICT;
-- Whoever amends a verdict, and however: the alerts that rest on it are visited again.
CREATE TRIGGER IF NOT EXISTS amendment_is_reviewed AFTER INSERT ON amendment BEGIN
    INSERT OR IGNORE INTO alert_review VALUES (NEW.observation_id);
END;
