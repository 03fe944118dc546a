-- Choose: temp.joined gives pages a new URL. page_id is a page, into_id that which stays (itself, or the one
-- that it is joined to), was and url their URLs until now and from now on. :now is the time.
CREATE TEMP TABLE named (page_id INTEGER PRIMARY KEY, url TEXT);
INSERT INTO temp.named SELECT id, identity(url) FROM page
WHERE held_back IS NOT 'spelling' AND identity(url) <> url;
INSERT OR IGNORE INTO temp.named SELECT id, url FROM page WHERE url IN (SELECT url FROM temp.named);
CREATE TEMP TABLE joined (page_id INTEGER PRIMARY KEY, into_id INTEGER, was TEXT, url TEXT);
INSERT INTO temp.joined
SELECT n.page_id, first_value(n.page_id) OVER (PARTITION BY n.url
    ORDER BY c.version_id IS NULL, p.version_id DESC, p.checked_at DESC, p.last_at DESC,
        p.held_back IS NOT NULL, p.id), p.url, n.url
FROM temp.named AS n JOIN page AS p ON p.id = n.page_id
LEFT JOIN change AS c ON c.page_id = p.id AND c.kind <> 'noise';
CREATE INDEX temp.joined_into ON joined (into_id);
CREATE TEMP TABLE moved (old INTEGER PRIMARY KEY, new INTEGER);
INSERT INTO temp.moved SELECT page_id, into_id FROM temp.joined WHERE page_id <> into_id;
CREATE INDEX temp.moved_new ON moved (new)
-- then
-- The sketch of the text that a page had last stays the newest: a version equal to the one before has none.
UPDATE version SET sketch = (SELECT sketch FROM version AS v
    WHERE v.page_id = version.page_id AND v.sketch IS NOT NULL ORDER BY v.id DESC LIMIT 1)
WHERE sketch IS NULL AND text_digest IS NOT NULL AND id IN
    (SELECT p.version_id FROM temp.moved AS m JOIN page AS p ON p.id = m.new);
-- What is known of how the page was found.
UPDATE page SET
    (found_at, found_run_id) = (SELECT p.found_at, p.found_run_id FROM temp.joined AS j
        JOIN page AS p ON p.id = j.page_id WHERE j.into_id = page.id ORDER BY p.found_at, p.id LIMIT 1),
    (depth, redirects) = (SELECT min(p.depth), min(p.redirects) FROM temp.joined AS j
        JOIN page AS p ON p.id = j.page_id WHERE j.into_id = page.id),
    held_back = iif(EXISTS (SELECT 1 FROM temp.joined AS j JOIN page AS p ON p.id = j.page_id
        WHERE j.into_id = page.id AND p.held_back = 'forgotten'), 'forgotten', held_back)
WHERE id IN (SELECT new FROM temp.moved);
-- A link stands where one of those that become one does, unless the page that is joined had it alone.
INSERT INTO link
SELECT coalesce(s.new, l.src_id), coalesce(d.new, l.dst_id), l.position, l.rel, l.anchor, l.first_seen_at,
    l.last_seen_at, coalesce(l.gone_at, (SELECT checked_at FROM page WHERE id = s.new))
FROM link AS l LEFT JOIN temp.moved AS s ON s.old = l.src_id LEFT JOIN temp.moved AS d ON d.old = l.dst_id
WHERE s.old IS NOT NULL OR d.old IS NOT NULL ORDER BY 1, 2
ON CONFLICT DO UPDATE SET first_seen_at = min(first_seen_at, excluded.first_seen_at),
    last_seen_at = max(last_seen_at, excluded.last_seen_at),
    -- max() of NULL is NULL.
    gone_at = max(gone_at, excluded.gone_at);
DELETE FROM link WHERE src_id IN (SELECT old FROM temp.moved) OR dst_id IN (SELECT old FROM temp.moved);
INSERT INTO offsite_link
SELECT s.new, l.url, l.position, l.rel, l.anchor, l.first_seen_at, l.last_seen_at,
    coalesce(l.gone_at, (SELECT checked_at FROM page WHERE id = s.new))
FROM temp.moved AS s JOIN offsite_link AS l ON l.src_id = s.old WHERE true
ON CONFLICT DO UPDATE SET first_seen_at = min(first_seen_at, excluded.first_seen_at),
    last_seen_at = max(last_seen_at, excluded.last_seen_at), gone_at = max(gone_at, excluded.gone_at);
DELETE FROM offsite_link WHERE src_id IN (SELECT old FROM temp.moved);
INSERT INTO past_openings
SELECT m.new, sum(o.views), sum(o.opens) FROM temp.moved AS m JOIN past_openings AS o ON o.page_id = m.old
GROUP BY m.new
ON CONFLICT DO UPDATE SET views = views + excluded.views, opens = opens + excluded.opens;
DELETE FROM past_openings WHERE page_id IN (SELECT old FROM temp.moved);
-- The index of near-duplicates is made anew.
DELETE FROM lsh_bucket;
DELETE FROM lsh_group;
DELETE FROM lsh_page;
UPDATE lsh SET observation_id = 0
-- then
-- The URLs. Those of a pair may change places. What was learnt of pages is learnt anew.
DELETE FROM snapshot;
DELETE FROM inflow;
UPDATE page SET alias_of = (SELECT new FROM temp.moved WHERE old = alias_of)
WHERE alias_of IN (SELECT old FROM temp.moved);
UPDATE page SET alias_of = NULL, alias_kind = NULL, alias_at = NULL WHERE alias_of = id;
UPDATE page SET copy_of = (SELECT new FROM temp.moved WHERE old = copy_of)
WHERE copy_of IN (SELECT old FROM temp.moved);
DELETE FROM change WHERE kind = 'noise' AND page_id IN (SELECT page_id FROM temp.joined);
DELETE FROM page WHERE id IN (SELECT old FROM temp.moved WHERE old NOT IN (SELECT page_id FROM change));
UPDATE page SET url = ' ' || id WHERE id IN (SELECT old FROM temp.moved);
UPDATE page SET url = (SELECT url FROM temp.joined WHERE page_id = page.id)
WHERE id IN (SELECT page_id FROM temp.joined WHERE page_id = into_id AND url <> was);
UPDATE page SET url = iif(j.was = j.url, k.was, j.was)
FROM temp.joined AS j JOIN temp.joined AS k ON k.page_id = j.into_id
WHERE j.page_id = page.id AND j.into_id <> page.id;
-- Consumers of the changefeed were told the old URLs: a page of that name tells them that it has moved.
UPDATE page SET
    held_back = 'spelling', alias_of = m.new, alias_kind = 'permanent', alias_at = :now, last_kind = NULL,
    last_at = NULL, checked_at = NULL, status = NULL, etag = NULL, last_modified = NULL, wish_s = NULL,
    body_digest = NULL, text_digest = NULL, version_id = NULL, title = NULL, language = NULL,
    canonical_url = NULL, noindex = 0, noarchive = 0, nofollow = 0, still = 0, pattern = NULL,
    copy_of = NULL, rejected_digest = NULL, rejected_as = NULL, rejected_at = NULL, not_modified = 0,
    read_at = NULL, plain_at = NULL, no_content_visits = 0, no_content_since = NULL
FROM temp.moved AS m WHERE m.old = page.id;
INSERT OR IGNORE INTO page
    (url, fetch_url, host_id, depth, redirects, found_at, found_run_id, held_back, alias_of, alias_kind, alias_at)
SELECT j.was, j.was, p.host_id, p.depth, p.redirects, p.found_at, p.found_run_id, 'spelling', p.id, 'permanent', :now
FROM temp.joined AS j JOIN page AS p ON p.id = j.page_id
WHERE j.page_id = j.into_id AND j.url <> j.was AND p.id IN (SELECT page_id FROM change);
INSERT OR REPLACE INTO change (page_id, kind, at)
SELECT o.id, 'moved', :now FROM page AS o
WHERE o.held_back = 'spelling' AND o.alias_of IN (SELECT into_id FROM temp.joined)
ORDER BY o.id;
-- And the page of the new URL what stands there.
INSERT OR REPLACE INTO change (page_id, kind, at, version_id, observation_id, title, language, canonical_url)
SELECT c.page_id, c.kind, c.at, c.version_id, c.observation_id, c.title, c.language, c.canonical_url
FROM temp.joined AS j JOIN change AS c ON c.page_id = j.page_id
WHERE j.page_id = j.into_id AND j.url <> j.was ORDER BY c.seq;
DELETE FROM altered_page WHERE page_id NOT IN (SELECT id FROM page)
-- then
-- URLs that stand beside the pages. Of two that become one the first stays.
INSERT INTO offsite_link
SELECT src_id, identity(url), position, rel, anchor, first_seen_at, last_seen_at, gone_at
FROM offsite_link WHERE identity(url) <> url
ON CONFLICT DO UPDATE SET first_seen_at = min(first_seen_at, excluded.first_seen_at),
    last_seen_at = max(last_seen_at, excluded.last_seen_at), gone_at = max(gone_at, excluded.gone_at);
DELETE FROM offsite_link WHERE identity(url) <> url;
UPDATE OR IGNORE claim_source SET url = identity(url) WHERE page_id IS NOT NULL AND identity(url) <> url;
UPDATE claim SET source_id = (SELECT t.id FROM claim_source AS s JOIN claim_source AS t
    ON t.kind = s.kind AND t.url = identity(s.url) WHERE s.id = source_id)
WHERE source_id IN (SELECT id FROM claim_source WHERE page_id IS NOT NULL AND identity(url) <> url);
DELETE FROM claim_source WHERE page_id IS NOT NULL AND identity(url) <> url;
UPDATE seed SET root_url = identity(root_url) WHERE root_url IS NOT NULL;
UPDATE OR REPLACE refusal SET prefix = identity(prefix) WHERE identity(prefix) <> prefix;
DROP TABLE temp.named;
DROP TABLE temp.joined;
DROP TABLE temp.moved
