-- What is agreed with the hubs of pages (W3C WebSub). Stores of before schema 33 have the table.
CREATE TABLE IF NOT EXISTS subscription (
    page_id       INTEGER PRIMARY KEY REFERENCES page (id),
    hub           TEXT NOT NULL,
    topic         TEXT NOT NULL,
    token         TEXT NOT NULL UNIQUE,
    secret        TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('wanted', 'active', 'denied', 'leaving')),
    next_at       REAL NOT NULL,
    pending_until REAL,
    lease_until   REAL,
    failures      INTEGER NOT NULL,
    detail        TEXT
) STRICT;
-- Whoever forgets or deletes a page, also without this extension.
CREATE TRIGGER subscription_is_forgotten AFTER INSERT ON forgetting BEGIN
    DELETE FROM subscription WHERE page_id = NEW.page_id;
END;
CREATE TRIGGER subscription_goes_with_its_page AFTER DELETE ON page BEGIN
    DELETE FROM subscription WHERE page_id = OLD.id;
END;
