-- Pages of other shards of the store that were found here, and are not told there yet.
CREATE TABLE outgoing (page_id INTEGER PRIMARY KEY REFERENCES page (id)) STRICT;
CREATE TRIGGER page_is_of_another_shard AFTER INSERT ON page WHEN NEW.held_back = 'shard'
BEGIN
    INSERT INTO outgoing (page_id) VALUES (NEW.id);
END;
