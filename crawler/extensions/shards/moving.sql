-- What all shards have. The runs of another shard are no requests of this one.
INSERT INTO main.crawl_run (id, started_at, ended_at, state, fetches, settings)
SELECT id, started_at, ended_at, state, 0, settings FROM old.crawl_run
WHERE NOT EXISTS (SELECT 1 FROM main.crawl_run);
INSERT OR IGNORE INTO main.seed
    (text, url, fallback_url, root_url, importance, half_life_hours, added_at)
SELECT text, url, fallback_url, root_url, importance, half_life_hours, added_at
FROM old.seed ORDER BY id;
INSERT OR IGNORE INTO main.refusal SELECT * FROM old.refusal;
INSERT OR IGNORE INTO main.site_setting SELECT * FROM old.site_setting
-- then
-- What is copied beside the rows of moved tables. temp.to_… leads from ids of the store "old" to those here.
INSERT OR IGNORE INTO main.host (id, origin)
SELECT m.new, h.origin FROM temp.to_host AS m JOIN old.host AS h ON h.id = m.old;
INSERT OR IGNORE INTO main.page
    (id, url, fetch_url, host_id, role, depth, redirects, found_at, found_run_id, held_back)
SELECT m.new, p.url, p.fetch_url, h.new, p.role, p.depth, p.redirects, p.found_at, r.new, 'shard'
FROM temp.to_page AS m JOIN old.page AS p ON p.id = m.old JOIN temp.to_host AS h ON h.old = p.host_id
JOIN temp.to_crawl_run AS r ON r.old = p.found_run_id
WHERE NOT m.moves;
DELETE FROM main.outgoing WHERE page_id IN (SELECT new FROM temp.to_page WHERE moves);
INSERT OR IGNORE INTO main.outgoing
SELECT m.new FROM temp.to_page AS m JOIN old.outgoing AS o ON o.page_id = m.old
JOIN main.page AS p ON p.id = m.new
WHERE p.held_back = 'shard';
INSERT OR IGNORE INTO main.body
SELECT * FROM old.body WHERE digest IN
    (SELECT v.body_digest FROM temp.to_version AS m JOIN old.version AS v ON v.id = m.old);
-- A message goes with the last of its alerts. Without its body it is one that the old store sends.
INSERT INTO main.alert_message
    (id, key, rule, made_at, body, state, since, tries, next_at, settled_at, said)
SELECT m.new, s.key, s.rule, s.made_at, iif(m.is_last, s.body, NULL), iif(m.is_last, s.state, 'sent'),
    s.since, s.tries, s.next_at, s.settled_at, s.said
FROM (SELECT x.old, x.new, NOT EXISTS (
        SELECT 1 FROM old.alert AS a JOIN old.observation AS o ON o.id = a.observation_id
        WHERE a.message_id = x.old AND o.page_id NOT IN (SELECT old FROM temp.to_page WHERE moves)
    ) AS is_last FROM temp.to_alert_message AS x) AS m
JOIN old.alert_message AS s ON s.id = m.old
WHERE true
ON CONFLICT (id) DO UPDATE SET body = excluded.body, state = excluded.state
WHERE excluded.body IS NOT NULL;
UPDATE main.seed SET root_url = s.root_url, page_id = m.new
FROM old.seed AS s JOIN temp.to_page AS m ON m.old = s.page_id
WHERE s.url = seed.url AND m.moves;
DELETE FROM main.inflow;
DELETE FROM main.snapshot;
DELETE FROM main.pruned
-- then
-- What is deleted before the rows of moved tables.
DELETE FROM alert_message WHERE id IN (
    SELECT a.message_id FROM alert AS a JOIN observation AS o ON o.id = a.observation_id
    WHERE o.page_id IN (SELECT old FROM temp.to_page) AND a.message_id IS NOT NULL
) AND id NOT IN (
    SELECT a.message_id FROM alert AS a JOIN observation AS o ON o.id = a.observation_id
    WHERE o.page_id NOT IN (SELECT old FROM temp.to_page) AND a.message_id IS NOT NULL
);
DELETE FROM body
WHERE digest IN (SELECT body_digest FROM version WHERE page_id IN (SELECT old FROM temp.to_page))
    AND NOT EXISTS (
        SELECT 1 FROM version AS v
        WHERE v.body_digest = body.digest AND v.page_id NOT IN (SELECT old FROM temp.to_page)
    );
UPDATE outlook SET next_page_id = NULL WHERE next_page_id IN (SELECT old FROM temp.to_page);
DELETE FROM altered_page WHERE page_id IN (SELECT old FROM temp.to_page);
DELETE FROM inflow;
DELETE FROM snapshot;
DELETE FROM pruned
-- then
-- What is deleted after them, but for stubs, which are kept.
DELETE FROM page
WHERE id IN (SELECT old FROM temp.to_page) AND id NOT IN (SELECT id FROM temp.kept);
INSERT OR REPLACE INTO page
    (id, url, fetch_url, host_id, role, depth, redirects, found_at, found_run_id, held_back)
SELECT id, url, fetch_url, host_id, role, depth, redirects, found_at, found_run_id, 'shard'
FROM page WHERE id IN (SELECT old FROM temp.to_page);
DELETE FROM host
WHERE id IN (SELECT host_id FROM temp.moving)
    AND id NOT IN (SELECT host_id FROM page);
INSERT OR REPLACE INTO host (id, origin)
SELECT id, origin FROM host WHERE id IN (SELECT host_id FROM temp.moving);
-- An id that is free again may be given to an observation that the index has not seen.
UPDATE lsh SET observation_id =
    min(observation_id, (SELECT coalesce(max(id), 0) FROM observation))
