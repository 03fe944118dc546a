CREATE TABLE ledger (
    page_id INTEGER PRIMARY KEY REFERENCES page (id),
    visits  INTEGER NOT NULL
) STRICT;
-- Whoever forgets or deletes a page, also without this extension.
CREATE TRIGGER ledger_is_forgotten AFTER INSERT ON forgetting BEGIN
    DELETE FROM ledger WHERE page_id = NEW.page_id;
END;
CREATE TRIGGER ledger_is_deleted BEFORE DELETE ON page BEGIN
    DELETE FROM ledger WHERE page_id = OLD.id;
END;
