-- Pages that are refused to a crawler: a status reads these alone.
CREATE INDEX page_refused ON page (host_id)
    WHERE status IN (401, 403, 429) OR rejected_as IN ('captcha', 'rate_limited_page');
