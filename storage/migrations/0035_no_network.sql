-- Since when a run reaches no host at all: status says so while the run goes on.
ALTER TABLE crawl_run ADD COLUMN no_network_since REAL;
