-- The schema of 0.1.0; what came before is refused. Times are Unix seconds (REAL, UTC); digests are 16-byte BLAKE2b.
-- docs/SCHEMA.md explains every table and column.

CREATE TABLE migration (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at REAL NOT NULL
) STRICT;

CREATE TABLE crawl_run (
    id         INTEGER PRIMARY KEY,
    started_at REAL NOT NULL,
    ended_at   REAL,
    state      TEXT NOT NULL CHECK (state IN ('running', 'ended', 'interrupted', 'limit')),
    fetches    INTEGER NOT NULL DEFAULT 0,
    settings   TEXT NOT NULL
) STRICT;

CREATE TABLE host (
    id               INTEGER PRIMARY KEY,
    origin           TEXT NOT NULL UNIQUE,
    queue             TEXT,
    exchanges        INTEGER NOT NULL DEFAULT 0,
    last_exchange_at REAL,
    delay_s          REAL,
    failures         INTEGER NOT NULL DEFAULT 0,
    parked_until     REAL,
    parked_reason    TEXT
) STRICT;
CREATE INDEX host_by_queue ON host (queue, last_exchange_at);

CREATE TABLE robots (
    host_id     INTEGER PRIMARY KEY REFERENCES host (id),
    standing    TEXT NOT NULL,
    fetched_at  REAL NOT NULL,
    stale_since REAL,
    reason      TEXT,
    body        BLOB NOT NULL
) STRICT;

CREATE TABLE page (
    id            INTEGER PRIMARY KEY,
    url           TEXT NOT NULL UNIQUE,
    fetch_url     TEXT NOT NULL,
    host_id       INTEGER NOT NULL REFERENCES host (id),
    role          TEXT NOT NULL DEFAULT 'page' CHECK (role IN ('page', 'sitemap', 'feed')),
    depth         INTEGER NOT NULL,
    redirects     INTEGER NOT NULL DEFAULT 0,
    found_at      REAL NOT NULL,
    found_run_id  INTEGER NOT NULL REFERENCES crawl_run (id),
    held_back     TEXT,
    alias_of      INTEGER REFERENCES page (id),
    alias_kind    TEXT CHECK (alias_kind IN ('permanent', 'temporary', 'refresh')),
    alias_at      REAL,
    last_kind     TEXT,
    last_at       REAL,
    checked_at    REAL,
    status        INTEGER,
    etag          TEXT,
    last_modified TEXT,
    -- For how long the server wishes an answer to be used without asking again.
    wish_s        REAL,
    body_digest   BLOB,
    text_digest   BLOB,
    version_id    INTEGER,
    title         TEXT,
    language      TEXT,
    canonical_url TEXT,
    noindex       INTEGER NOT NULL DEFAULT 0,
    noarchive     INTEGER NOT NULL DEFAULT 0,
    nofollow      INTEGER NOT NULL DEFAULT 0,
    still         INTEGER NOT NULL DEFAULT 0,
    pattern       TEXT,
    copy_of       INTEGER REFERENCES page (id)
) STRICT;
CREATE INDEX page_host ON page (host_id);
CREATE INDEX page_alias ON page (alias_of) WHERE alias_of IS NOT NULL;
CREATE INDEX page_pattern ON page (host_id, pattern) WHERE pattern IS NOT NULL;

CREATE VIEW alias AS
    SELECT a.url, a.alias_of AS page_id, p.url AS page_url, a.alias_kind AS kind, a.alias_at AS at
    FROM page AS a JOIN page AS p ON p.id = a.alias_of;

CREATE TABLE seed (
    id              INTEGER PRIMARY KEY,
    text            TEXT NOT NULL,
    url             TEXT NOT NULL UNIQUE,
    fallback_url    TEXT,
    root_url        TEXT,
    page_id         INTEGER REFERENCES page (id),
    importance      REAL NOT NULL DEFAULT 1.0,
    half_life_hours REAL,
    added_at        REAL NOT NULL
) STRICT;
CREATE INDEX seed_page ON seed (page_id);

CREATE TABLE frontier (
    page_id   INTEGER PRIMARY KEY REFERENCES page (id),
    host_id   INTEGER NOT NULL REFERENCES host (id),
    priority  INTEGER NOT NULL,
    due_at    REAL NOT NULL,
    reason    TEXT NOT NULL,
    attempt   INTEGER NOT NULL DEFAULT 0,
    deferred  TEXT
) STRICT;
CREATE INDEX frontier_host ON frontier (host_id, priority, page_id);

CREATE TABLE observation (
    id             INTEGER PRIMARY KEY,
    page_id        INTEGER NOT NULL REFERENCES page (id),
    run_id         INTEGER NOT NULL REFERENCES crawl_run (id),
    at             REAL NOT NULL,
    kind           TEXT NOT NULL,
    rung           TEXT,
    status         INTEGER,
    reason         TEXT,
    detail         TEXT,
    resemblance    REAL,
    resemblance_se REAL,
    blocks_added   INTEGER,
    blocks_removed INTEGER,
    duration_s     REAL NOT NULL,
    size_bytes     INTEGER,
    version_id     INTEGER
) STRICT;
CREATE INDEX observation_page ON observation (page_id, at);
CREATE INDEX observation_run ON observation (run_id, kind);
CREATE TRIGGER observation_is_not_updated BEFORE UPDATE ON observation
BEGIN
    SELECT RAISE(ABORT, 'observations are append-only');
END;
CREATE TRIGGER observation_is_not_deleted BEFORE DELETE ON observation
BEGIN
    SELECT RAISE(ABORT, 'observations are append-only');
END;

-- What is known better of earlier visits. Captures that prove to be no content are taken back: their
-- observations are amended into failures, which have no rung, a sentence of their own, and nothing
-- that a comparison found.
CREATE TABLE amendment (
    observation_id INTEGER PRIMARY KEY REFERENCES observation (id),
    kind           TEXT NOT NULL,
    rung           TEXT,
    reason         TEXT NOT NULL,
    detail         TEXT,
    at             REAL NOT NULL
) STRICT;

-- Observations as they are seen today.
CREATE VIEW finding AS
    SELECT o.id, o.page_id, o.run_id, o.at, coalesce(a.kind, o.kind) AS kind,
           iif(a.kind IS NULL, o.rung, a.rung) AS rung, o.status,
           coalesce(a.reason, o.reason) AS reason, coalesce(a.detail, o.detail) AS detail,
           iif(a.kind IS 'failed', NULL, o.resemblance) AS resemblance,
           iif(a.kind IS 'failed', NULL, o.resemblance_se) AS resemblance_se,
           iif(a.kind IS 'failed', NULL, o.blocks_added) AS blocks_added,
           iif(a.kind IS 'failed', NULL, o.blocks_removed) AS blocks_removed,
           o.duration_s, o.size_bytes,
           iif(a.kind IS 'failed', NULL, o.version_id) AS version_id, o.kind AS first_kind
    FROM observation AS o LEFT JOIN amendment AS a ON a.observation_id = o.id;

-- Looks at pages drawn at random, from which a daemon's freshness is measured.
CREATE TABLE audit (
    observation_id INTEGER PRIMARY KEY REFERENCES observation (id),
    importance     REAL NOT NULL,
    since          REAL NOT NULL,
    expected       REAL NOT NULL,
    -- The changes expected since the last visit.
    hazard         REAL
) STRICT;

CREATE TABLE version (
    id           INTEGER PRIMARY KEY,
    page_id      INTEGER NOT NULL REFERENCES page (id),
    at           REAL NOT NULL,
    body_digest  BLOB NOT NULL,
    text_digest  BLOB,
    content_type TEXT,
    encoding     TEXT,
    sketch       BLOB,
    text_version TEXT
) STRICT;
CREATE INDEX version_page ON version (page_id, at);
CREATE INDEX version_body ON version (body_digest);

CREATE TABLE body (
    digest     BLOB PRIMARY KEY,
    stored_at  REAL NOT NULL,
    size_bytes INTEGER NOT NULL,
    zstd       BLOB NOT NULL
) STRICT;

CREATE TABLE link (
    src_id        INTEGER NOT NULL REFERENCES page (id),
    dst_id        INTEGER NOT NULL REFERENCES page (id),
    position      INTEGER NOT NULL,
    rel           TEXT NOT NULL,
    anchor        TEXT NOT NULL,
    first_seen_at REAL NOT NULL,
    last_seen_at  REAL NOT NULL,
    gone_at       REAL,
    PRIMARY KEY (src_id, dst_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX link_dst ON link (dst_id);

CREATE TABLE offsite_link (
    src_id        INTEGER NOT NULL REFERENCES page (id),
    url           TEXT NOT NULL,
    position      INTEGER NOT NULL,
    rel           TEXT NOT NULL,
    anchor        TEXT NOT NULL,
    first_seen_at REAL NOT NULL,
    last_seen_at  REAL NOT NULL,
    gone_at       REAL,
    PRIMARY KEY (src_id, url)
) STRICT, WITHOUT ROWID;

-- What change detection remembers of a page beside its last sketch.
CREATE TABLE memory (
    page_id INTEGER PRIMARY KEY REFERENCES page (id),
    data    BLOB NOT NULL
) STRICT;

-- What visits showed of how the links of a page churn.
CREATE TABLE churn (
    page_id  INTEGER NOT NULL REFERENCES page (id),
    at       REAL NOT NULL,
    since    REAL NOT NULL,
    appeared INTEGER NOT NULL,
    dropped  INTEGER NOT NULL,
    stayed   INTEGER NOT NULL,
    PRIMARY KEY (page_id, at)
) STRICT, WITHOUT ROWID;

-- Bounded patterns of URLs. One URL may count towards patterns of two kinds with the same shape.
CREATE TABLE trap (
    host_id   INTEGER NOT NULL REFERENCES host (id),
    shape     TEXT NOT NULL,
    kind      TEXT NOT NULL,
    admitted  INTEGER NOT NULL DEFAULT 0,
    refused   INTEGER NOT NULL DEFAULT 0,
    copies    INTEGER NOT NULL DEFAULT 0,
    closed_at REAL,
    PRIMARY KEY (host_id, shape, kind)
) STRICT, WITHOUT ROWID;

-- What is known of a host's pages that are no content: its answers to probes, and their likes.
CREATE TABLE not_content (
    host_id INTEGER PRIMARY KEY REFERENCES host (id),
    data    BLOB NOT NULL
) STRICT;

-- Near-duplicates: an LSH index over the current sketches, and the groups that it leads to.
CREATE TABLE lsh (
    id             INTEGER PRIMARY KEY CHECK (id = 1),
    threshold      REAL NOT NULL,
    bands          INTEGER NOT NULL,
    band_rows      INTEGER NOT NULL,
    observation_id INTEGER NOT NULL
) STRICT;

CREATE TABLE lsh_page (
    page_id        INTEGER PRIMARY KEY REFERENCES page (id),
    version_id     INTEGER NOT NULL REFERENCES version (id),
    leader_id      INTEGER REFERENCES page (id),
    resemblance    REAL,
    resemblance_se REAL,
    at             REAL,
    keys           BLOB
) STRICT;
CREATE INDEX lsh_page_waiting ON lsh_page (page_id) WHERE leader_id IS NULL;
CREATE INDEX lsh_page_member ON lsh_page (leader_id) WHERE leader_id <> page_id;

CREATE TABLE lsh_bucket (
    key     INTEGER NOT NULL,
    page_id INTEGER NOT NULL,
    PRIMARY KEY (key, page_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE lsh_group (
    leader_id         INTEGER PRIMARY KEY REFERENCES page (id),
    representative_id INTEGER NOT NULL REFERENCES page (id)
) STRICT;
CREATE INDEX lsh_group_representative ON lsh_group (representative_id);

-- The members of a group but its representative. A leader was compared with none: what counts
-- is how its representative resembles it.
CREATE VIEW duplicate AS
    SELECT m.page_id, g.representative_id, m.resemblance, m.resemblance_se, m.at
    FROM lsh_group AS g JOIN lsh_page AS m ON m.leader_id = g.leader_id
    WHERE m.leader_id <> m.page_id AND m.page_id <> g.representative_id
    UNION ALL
    SELECT g.leader_id, g.representative_id, r.resemblance, r.resemblance_se, r.at
    FROM lsh_group AS g JOIN lsh_page AS r ON r.page_id = g.representative_id
    WHERE g.leader_id <> g.representative_id;

-- What others say of when pages changed, and what the headers of hosts are worth.
CREATE TABLE claim_source (
    id       INTEGER PRIMARY KEY,
    kind     TEXT NOT NULL CHECK (kind IN ('sitemap', 'feed', 'last_modified', 'websub', 'ping')),
    host_id  INTEGER NOT NULL REFERENCES host (id),
    page_id  INTEGER REFERENCES page (id),
    url      TEXT NOT NULL,
    rejected INTEGER NOT NULL DEFAULT 0,
    UNIQUE (kind, url)
) STRICT;
CREATE INDEX claim_source_host ON claim_source (host_id);

CREATE TABLE claim (
    id          INTEGER PRIMARY KEY,
    source_id   INTEGER NOT NULL REFERENCES claim_source (id),
    page_id     INTEGER NOT NULL REFERENCES page (id),
    since       REAL NOT NULL,
    until       REAL NOT NULL CHECK (since <= until),
    received_at REAL NOT NULL
) STRICT;
CREATE INDEX claim_last ON claim (source_id, page_id);
CREATE TRIGGER claim_is_not_updated BEFORE UPDATE ON claim
BEGIN
    SELECT RAISE(ABORT, 'claims are append-only');
END;
CREATE TRIGGER claim_is_not_deleted BEFORE DELETE ON claim
BEGIN
    SELECT RAISE(ABORT, 'claims are append-only');
END;

CREATE TABLE host_signals (
    host_id        INTEGER PRIMARY KEY REFERENCES host (id),
    dated          INTEGER NOT NULL DEFAULT 0,
    skew_s         REAL,
    modified_now   INTEGER NOT NULL DEFAULT 0,
    modified_past  INTEGER NOT NULL DEFAULT 0,
    etag_right     INTEGER NOT NULL DEFAULT 0,
    etag_idle      INTEGER NOT NULL DEFAULT 0,
    etag_missed    INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Alerts: what is to be told of observations, and the messages that tell it.
CREATE TABLE alert_message (
    id         INTEGER PRIMARY KEY,
    key        TEXT NOT NULL UNIQUE,
    rule       TEXT NOT NULL,
    made_at    REAL NOT NULL,
    body       TEXT,
    state      TEXT NOT NULL,
    since      REAL NOT NULL,
    tries      INTEGER NOT NULL DEFAULT 0,
    next_at    REAL NOT NULL,
    settled_at REAL,
    said       TEXT
) STRICT;
CREATE INDEX alert_message_rule ON alert_message (rule, state, id);

-- AUTOINCREMENT: what was deleted while a message was being composed must not come back as another.
CREATE TABLE alert (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    key            TEXT NOT NULL UNIQUE,
    rule           TEXT NOT NULL,
    observation_id INTEGER NOT NULL REFERENCES observation (id),
    kind           TEXT NOT NULL,
    at             REAL NOT NULL,
    message_id     INTEGER REFERENCES alert_message (id)
) STRICT;
CREATE INDEX alert_waiting ON alert (rule, at) WHERE message_id IS NULL;
CREATE INDEX alert_observation ON alert (observation_id);
CREATE INDEX alert_told ON alert (message_id) WHERE message_id IS NOT NULL;

CREATE TABLE alert_review (
    observation_id INTEGER PRIMARY KEY REFERENCES observation (id)
) STRICT;
-- Whoever amends a verdict, and however: the alerts that rest on it are visited again.
CREATE TRIGGER amendment_is_reviewed AFTER INSERT ON amendment BEGIN
    INSERT OR IGNORE INTO alert_review VALUES (NEW.observation_id);
END;

-- What a daemon expects, noted from time to time.
CREATE TABLE outlook (
    at           REAL PRIMARY KEY,
    run_id       INTEGER NOT NULL REFERENCES crawl_run (id),
    began_at     REAL NOT NULL,
    fetches      INTEGER NOT NULL,
    budget       REAL NOT NULL,
    policy       TEXT NOT NULL,
    flowed       REAL NOT NULL,
    forgone      REAL NOT NULL,
    watched      INTEGER NOT NULL,
    captured     INTEGER NOT NULL,
    waiting      INTEGER NOT NULL,
    gone         INTEGER NOT NULL,
    stale        REAL,
    harmonic     REAL,
    price        REAL,
    daily        INTEGER NOT NULL,
    weekly       INTEGER NOT NULL,
    monthly      INTEGER NOT NULL,
    yearly       INTEGER NOT NULL,
    rarer        INTEGER NOT NULL,
    clocked      REAL NOT NULL,
    next_at      REAL NOT NULL,
    next_page_id INTEGER REFERENCES page (id),
    first_visits      INTEGER NOT NULL DEFAULT 0,
    revealing_visits  INTEGER NOT NULL DEFAULT 0,
    refreshing_visits INTEGER NOT NULL DEFAULT 0,
    unknown_pages    REAL NOT NULL DEFAULT 0,
    new_per_day      REAL NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE capped_queue (
    outlook_at REAL NOT NULL REFERENCES outlook (at) ON DELETE CASCADE,
    queue       TEXT NOT NULL,
    most       REAL NOT NULL,
    wanted     REAL NOT NULL,
    pages      INTEGER NOT NULL,
    PRIMARY KEY (outlook_at, queue)
) STRICT, WITHOUT ROWID;

-- What the daemon believes of each page, as of its last notes.
CREATE TABLE estimate (
    page_id         INTEGER PRIMARY KEY REFERENCES page (id),
    at              REAL NOT NULL,
    visited_at      REAL NOT NULL,
    rate            REAL NOT NULL,
    low             REAL NOT NULL,
    high            REAL NOT NULL,
    hazard          REAL NOT NULL,
    importance      REAL NOT NULL,
    clocked         REAL NOT NULL,
    claimed         INTEGER,
    worth           REAL,
    urgent          INTEGER NOT NULL,
    reveals         REAL NOT NULL,
    arrival_rate    REAL,
    half_life_hours REAL,
    planned         REAL,
    not_before      REAL,
    due_at          REAL,
    paid            REAL
) STRICT;
