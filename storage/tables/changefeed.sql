-- Of each page: why there is no document (by the last finding f that tells it), the newest version,
-- the last one whose document differs with its finding s and the kind of that, what consumers were
-- told, when, by which observation, and whether that is noise by now. The view finding is not joined:
-- SQLite would make all of its rows before.
SELECT p.id,
    CASE WHEN p.role <> 'page' OR coalesce(a.kind, f.kind) = 'gone' THEN 'gone'
        WHEN coalesce(a.kind, f.kind) = 'redirected' THEN 'moved'
        WHEN coalesce(a.kind, f.kind) = 'refused' THEN 'robots'
        WHEN p.version_id IS NULL THEN 'withdrawn' WHEN p.noindex THEN 'noindex' END,
    f.id, f.at, p.version_id, s.id, s.at, s.version_id, c.version_id, n.version_id,
    EXISTS (SELECT 1 FROM version WHERE id = c.version_id), c.kind, c.at, c.observation_id,
    c.kind IN ('changed', 'refreshed') AND EXISTS (SELECT 1 FROM amendment
        WHERE observation_id = c.observation_id AND kind = 'unchanged' AND kinds IS NULL),
    iif(coalesce(b.kind, s.kind) = 'unchanged', 'refreshed', coalesce(b.kind, s.kind))
FROM json_each(?) AS wanted JOIN page AS p ON p.id = wanted.value
LEFT JOIN change AS c ON c.page_id = p.id AND c.kind <> 'noise'
LEFT JOIN change AS n ON n.page_id = p.id AND n.kind = 'noise'
LEFT JOIN observation AS f ON f.id = (SELECT id FROM finding WHERE page_id = p.id
    AND (kind IN ('new', 'changed', 'unchanged', 'gone')
        OR kind = 'redirected'
            AND (reason = 'permanent' OR reason = 'out_of_scope' AND status IN (301, 308))
        OR kind = 'refused' AND reason = 'robots')
    ORDER BY at DESC, id DESC LIMIT 1)
LEFT JOIN amendment AS a ON a.observation_id = f.id
LEFT JOIN observation AS s ON s.id = (SELECT id FROM finding WHERE page_id = p.id
    AND (kind IN ('new', 'changed') OR kind = 'unchanged' AND kinds <> 'preferences')
    AND version_id IN (SELECT id FROM version)
    ORDER BY at DESC, id DESC LIMIT 1)
LEFT JOIN amendment AS b ON b.observation_id = s.id
