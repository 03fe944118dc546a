-- How a daemon's requests were shared between finding pages and keeping them fresh, and how many
-- pages it thinks are there that it does not know. Outlooks of before did not say.
-- docs/SCHEMA.md explains every table and column.

ALTER TABLE outlook ADD COLUMN first_looks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outlook ADD COLUMN revealing_looks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outlook ADD COLUMN refreshing_looks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outlook ADD COLUMN unknown_pages REAL NOT NULL DEFAULT 0;
ALTER TABLE outlook ADD COLUMN new_per_day REAL NOT NULL DEFAULT 0;
