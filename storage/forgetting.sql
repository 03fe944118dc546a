-- Delete all that is held of the pages :ids, but for their addresses; :unsent are messages that are
-- not sent yet and hold texts of them: others' alerts in these go into new ones. Extensions delete
-- theirs by triggers on the table forgetting.
INSERT INTO forgetting SELECT value FROM json_each(:ids);
DELETE FROM forgetting;
DELETE FROM alert
WHERE observation_id IN
    (SELECT id FROM observation WHERE page_id IN (SELECT value FROM json_each(:ids)));
UPDATE alert SET message_id = NULL WHERE message_id IN (SELECT value FROM json_each(:unsent));
DELETE FROM alert_message WHERE id IN (SELECT value FROM json_each(:unsent));
DELETE FROM alert_review
WHERE observation_id IN
    (SELECT id FROM observation WHERE page_id IN (SELECT value FROM json_each(:ids)));
DELETE FROM site_change WHERE (host_id, kind, at, observation_id) IN
    (SELECT p.host_id, f.kind, f.at, f.id FROM finding AS f JOIN page AS p ON p.id = f.page_id
    WHERE p.id IN (SELECT value FROM json_each(:ids)));
DELETE FROM amendment
WHERE observation_id IN
    (SELECT id FROM observation WHERE page_id IN (SELECT value FROM json_each(:ids)));
DELETE FROM audit
WHERE observation_id IN
    (SELECT id FROM observation WHERE page_id IN (SELECT value FROM json_each(:ids)));
DELETE FROM body
WHERE digest IN
    (SELECT body_digest FROM version WHERE page_id IN (SELECT value FROM json_each(:ids)))
    AND NOT EXISTS (
        SELECT 1 FROM version AS v
        WHERE v.body_digest = body.digest
            AND v.page_id NOT IN (SELECT value FROM json_each(:ids))
    );
DELETE FROM version WHERE page_id IN (SELECT value FROM json_each(:ids));
DELETE FROM memory WHERE page_id IN (SELECT value FROM json_each(:ids));
DELETE FROM churn WHERE page_id IN (SELECT value FROM json_each(:ids));
DELETE FROM snapshot;
DELETE FROM pruned;
DELETE FROM estimate WHERE page_id IN (SELECT value FROM json_each(:ids));
DELETE FROM frontier WHERE page_id IN (SELECT value FROM json_each(:ids));
DELETE FROM preference WHERE page_id IN (SELECT value FROM json_each(:ids));
DELETE FROM claim WHERE page_id IN (SELECT value FROM json_each(:ids));
DELETE FROM observation WHERE page_id IN (SELECT value FROM json_each(:ids));
DELETE FROM link
WHERE src_id IN (SELECT value FROM json_each(:ids))
    OR dst_id IN (SELECT value FROM json_each(:ids));
DELETE FROM offsite_link WHERE src_id IN (SELECT value FROM json_each(:ids));
UPDATE page SET
    alias_of = NULL, alias_kind = NULL, alias_at = NULL, last_kind = NULL, last_at = NULL,
    checked_at = NULL, status = NULL, etag = NULL, last_modified = NULL, wish_s = NULL,
    body_digest = NULL, text_digest = NULL, version_id = NULL, title = NULL, language = NULL,
    canonical_url = NULL, noindex = 0, noarchive = 0, nofollow = 0, still = 0, preferences = NULL,
    held_back = CASE
        WHEN held_back = 'shard' THEN 'shard'
        ELSE iif(:refused, 'forgotten', nullif(held_back, 'forgotten'))
    END
WHERE id IN (SELECT value FROM json_each(:ids));
-- The shard of a page keeps its address; here it is known by links alone, or as a seed.
DELETE FROM page
WHERE id IN (SELECT value FROM json_each(:ids)) AND held_back = 'shard'
    AND NOT EXISTS (SELECT 1 FROM seed WHERE seed.page_id = page.id)
    AND NOT EXISTS (SELECT 1 FROM page AS a WHERE a.alias_of = page.id OR a.copy_of = page.id);
DELETE FROM outgoing WHERE page_id NOT IN (SELECT id FROM page);
