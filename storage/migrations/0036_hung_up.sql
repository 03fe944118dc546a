-- Servers that hung up without a word have a reason of their own: "protocol" is what is no HTTP.
DROP TRIGGER observation_is_not_updated;
UPDATE observation SET reason = 'hung_up'
    WHERE reason = 'protocol' AND status IS NULL AND detail GLOB 'the server hung up*';
CREATE TRIGGER observation_is_not_updated BEFORE UPDATE ON observation
BEGIN
    SELECT RAISE(ABORT, 'observations are append-only');
END;
