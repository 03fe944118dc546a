-- A dashboard asks often which hosts have URLs that wait for the next run: they are few of the frontier.
CREATE INDEX frontier_deferred ON frontier (host_id, deferred) WHERE deferred IS NOT NULL;
