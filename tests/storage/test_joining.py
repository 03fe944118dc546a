"""Pages that are one by their canonical URLs are joined, with all that a store holds of them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.crawler.extensions.search import tables as search
from freshet.storage import extensions
from freshet.storage.database import APPLICATION_ID, open_store
from freshet.storage.extensions import migrations, newest
from freshet.storage.identity import identity
from freshet.storage.joining import join
from freshet.storage.tables import changefeed
from tests.storage.small_store import SmallStore, rows

HOST = "https://example.org"
#: Of each page its spellings; of the last one none is the canonical one.
PAGES = (
    ("/%E3%81%82", "/%e3%81%82", "/%E3%81%82?utm_source=x", "/(S(a1))/%e3%81%82"),
    ("/~joe/", "/%7Ejoe/", "/%7ejoe/"),
    ("/plain", f"/(s({'lit3' * 6}))/plain"),
    ("/%ce%bd", "/%CE%bd"),
)
SPELT = [spelling for page in PAGES for spelling in page]
#: What a store holds, by the identities of pages.
HELD = """
SELECT identity(p.url), o.id, o.at, o.kind, o.version_id
FROM observation AS o JOIN page AS p ON p.id = o.page_id ORDER BY o.id;
SELECT identity(p.url), v.id, v.at, v.body_digest
FROM version AS v JOIN page AS p ON p.id = v.page_id ORDER BY v.id;
SELECT DISTINCT identity(s.url), identity(d.url)
FROM link JOIN page AS s ON s.id = src_id JOIN page AS d ON d.id = dst_id ORDER BY 1, 2;
SELECT DISTINCT identity(url) FROM page ORDER BY 1
""".split(";")
TRIGGERS = "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
KINDS = ("new", "same", "noise", "gone", "moved", "noindex", "failed")


@dataclass
class Store:
    """A store in memory, and a consumer of its changefeed: its copies are versions by URL."""

    db: sqlite3.Connection
    seq: int = 0
    copies: dict[str, int] = field(default_factory=dict)
    at: float = 0.0

    def page(self, path: str) -> int:
        sql = (
            "INSERT INTO page (url, fetch_url, host_id, depth, found_at, found_run_id) "
            "VALUES (?, ?, 1, ?, ?, 1) ON CONFLICT DO UPDATE SET depth = depth RETURNING id"
        )
        url = HOST + path
        ((page_id,),) = self.db.execute(sql, (url, url, len(path), self.at)).fetchall()
        return int(page_id)

    def visit(self, path: str, kind: str) -> None:
        """Write what a visit writes, as far as the changefeed depends on it."""
        page_id, self.at = self.page(path), self.at + 1.0
        known = self.value("SELECT version_id FROM page WHERE id = ?", page_id)
        version, seen = known, "unchanged"
        rung: str | None = "304"
        reason: str | None = None
        if kind in {"new", "noise", "noindex"}:
            seen, rung = ("changed", "blocks") if known else ("new", None)
            if kind == "noise" and known:
                seen, rung = "unchanged", "volatile"
            version = self.insert(
                "version", page_id=page_id, at=self.at, body_digest=b"%d" % self.at
            )
        elif kind != "same" or known is None:
            seen, reason = {
                "gone": ("gone", None), "moved": ("redirected", "permanent")
            }.get(kind, ("failed", "timeout"))  # fmt: skip
            rung = None
        self.insert(
            "observation", page_id=page_id, run_id=1, at=self.at, kind=seen, rung=rung,
            reason=reason, duration_s=0.1, version_id=version,
        )  # fmt: skip
        self.db.execute(
            "UPDATE page SET version_id = ?, last_kind = ?, last_at = ?, noindex = ?, "
            "checked_at = iif(? IN ('new', 'changed', 'unchanged'), ?, checked_at) WHERE id = ?",
            (version, seen, self.at, kind == "noindex", seen, self.at, page_id),
        )
        changefeed.tell(self.db, [page_id], self.at)

    def insert(self, table: str, **columns: object) -> int:
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"
        return self.db.execute(sql, tuple(columns.values())).lastrowid or 0

    def value(self, sql: str, *values: object) -> int | None:
        return next((row[0] for row in self.db.execute(sql, values)), None)

    def consume(self) -> None:
        sql = (
            "SELECT c.seq, p.url, c.version_id FROM change AS c JOIN page AS p ON p.id = c.page_id "
            "WHERE c.seq > ? AND c.kind <> 'noise' ORDER BY c.seq"
        )
        for seq, url, version in self.db.execute(sql, (self.seq,)).fetchall():
            self.seq = seq
            if version is None:
                self.copies.pop(url, None)
            else:
                self.copies[url] = version

    def documents(self) -> dict[str, int]:
        sql = "SELECT p.url, c.version_id FROM change AS c JOIN page AS p ON p.id = c.page_id "
        return dict(self.db.execute(sql + "WHERE c.version_id AND c.kind <> 'noise'").fetchall())


@pytest.fixture(scope="module")
def schema() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for _, _, sql in migrations():
            db.executescript(sql)
        extensions.migrate(Path("store"), db)
        search.create(db)
        db.execute("INSERT INTO host (id, origin) VALUES (1, ?)", (HOST,))
        db.execute(
            "INSERT INTO crawl_run (id, started_at, state, settings) VALUES (1,0,'ended','')"
        )
        yield db


VISITS = st.lists(st.tuples(st.sampled_from(SPELT), st.sampled_from(KINDS)), max_size=14)
LINKS = st.lists(st.tuples(st.sampled_from(SPELT), st.sampled_from(SPELT)), max_size=6)


@given(VISITS, VISITS, LINKS)
@settings(deadline=None, max_examples=30)
def test_no_observation_no_capture_and_no_link_is_lost_and_consumers_end_with_the_copies(
    schema: sqlite3.Connection,
    before: list[tuple[str, str]],
    after: list[tuple[str, str]],
    links: list[tuple[str, str]],
) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        schema.backup(db)
        store = Store(db)
        for path, kind in before:
            store.visit(path, kind)
        store.consume()
        for path, kind in after:
            store.visit(path, kind)
        for number, (src, dst) in enumerate(links):
            ends = store.page(src), store.page(dst)
            row = (*ends, number, "", "", number, number + 1.0, None if number % 2 else number + 2)
            db.execute("INSERT OR REPLACE INTO link VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        db.create_function("identity", 1, identity)
        guards = db.execute(TRIGGERS).fetchall()
        held = [db.execute(sql).fetchall() for sql in HELD]
        had = {identity(url) for url in store.documents()}

        db.execute("BEGIN")
        join(db, store.at)
        db.execute("COMMIT")

        assert [db.execute(sql).fetchall() for sql in HELD] == held
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        assert db.execute(TRIGGERS).fetchall() == guards
        names = [row[0] for row in db.execute("SELECT url FROM page WHERE held_back IS NULL")]
        assert sorted(names) == [row[0] for row in held[3]]
        # Of pages with a text the newest stands, and is told to all consumers alike.
        assert set(store.documents()) == had
        store.consume()
        assert store.copies == store.documents()
        anew = Store(db)
        anew.consume()
        assert anew.copies == store.copies
        # The crawl goes on: visits to pages are told, and none is told of what was.
        for path, kind in [("/%E3%81%82", "new"), ("/~joe/", "gone"), ("/%CE%BD", "new")]:
            store.visit(path, kind)
        store.consume()
        assert store.copies == store.documents()
        assert f"{HOST}/%E3%81%82" in store.copies
        assert f"{HOST}/~joe/" not in store.copies


#: What each table has of the page 2, which is joined to 1, and how many rows 1 has then.
KEPT = {
    "frontier": 1, "memory": 1, "estimate": 1, "subscription": 1, "outgoing": 1, "search_use": 1,
    "search_before": 1, "churn": 2, "claim": 2, "showing": 2, "quality_change": 2, "version": 2,
    "observation": 2, "past_openings": 1, "seed": 2, "lsh_page": 0, "lsh_group": 0, "change": 1,
    "search_page": 0, "altered_page": 1, "claim_source": 2, "preference": 2,
}  # fmt: skip


def value(column: sqlite3.Row, number: int) -> object:
    if column["name"] in {"id", "seq", "claim_source_id"}:
        return None
    words = zstandard.compress(b"title\n\nbody")
    chosen = {
        "words": words,
        "kind": "new",
        "state": "active",
        "made_for": "file",
        "promoted": 0,
        "host_id": 1,
        "run_id": 1,
    }
    if column["name"] in chosen:
        return chosen[column["name"]]
    return {"INTEGER": number, "REAL": float(number), "BLOB": b"%d" % number}.get(
        column["type"], f"{HOST}/{number}"
    )


def test_each_table_gives_what_it_has_of_a_page_to_the_one_that_stays(
    schema: sqlite3.Connection,
) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        schema.backup(db)
        store = Store(db)
        # The second has the newer content.
        assert [store.page("/%e3%81%82"), store.page("/%E3%81%82")] == [1, 2]
        db.execute("UPDATE page SET version_id = iif(id = 1, 2, 1)")
        db.row_factory = sqlite3.Row
        tables = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        filled = set()
        for number in (1, 2):
            words = "INSERT INTO search_words (rowid, title, headings, body) VALUES (?, ?, ?, ?)"
            db.execute(words, (number, "title", "", "body"))
        for table in tables:
            refers = {
                r["from"]
                for r in db.execute(f"PRAGMA foreign_key_list({table})")
                if r["table"] == "page"
            }
            if not refers or table in {"page", "link", "offsite_link", "outlook"}:
                continue
            filled.add(table)
            for number in (1, 2):
                columns = {
                    r["name"]: value(r, number) for r in db.execute(f"PRAGMA table_info({table})")
                }
                columns |= dict.fromkeys(refers, number)
                if table == "claim_source":
                    columns["kind"] = "sitemap"
                store.insert(table, **{k: v for k, v in columns.items() if v is not None})
        assert filled == KEPT.keys()
        db.row_factory = None

        join(db, 9.0)

        found = {
            table: store.value(
                f"SELECT count(*) FROM {table} WHERE "
                f"{'leader_id' if table == 'lsh_group' else 'page_id'} = 1"
            )
            for table in KEPT
        }
        assert found == KEPT
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        of_page = "SELECT url, alias_of, held_back FROM page ORDER BY id"
        assert db.execute(of_page).fetchall() == [
            (f"{HOST}/%E3%81%82", None, None),
            (f"{HOST}/%e3%81%82", 1, "spelling"),
        ]
        assert db.execute("SELECT views, opens FROM past_openings").fetchall() == [(3.0, 3)]


def store_before(migration: str, path: Path) -> SmallStore:
    """Make a store as it was before a migration."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for number, name, sql in migrations():
            if name == migration:
                break
            db.executescript(sql)
            db.execute("INSERT INTO migration VALUES (?, ?, 0.0)", (number, name))
            db.execute(f"PRAGMA user_version = {number}")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    store = SmallStore(path)
    store.run(0.0)
    store.host(HOST)
    return store


def page_of_one_version(store: SmallStore, path: str) -> int:
    page = store.page(HOST + path, version_id=None)
    version = store.insert("version", page_id=page, at=float(page), body_digest=b"1")
    store.execute("UPDATE page SET version_id = ? WHERE id = ?", version, page)
    store.insert("change", page_id=page, kind="new", at=float(page), version_id=version)
    return page


CHANGES = (
    "SELECT p.url, c.kind, t.url FROM change AS c JOIN page AS p ON p.id = c.page_id "
    "LEFT JOIN page AS t ON t.id = p.alias_of ORDER BY c.seq"
)


async def test_pages_whose_paths_have_sessions_in_small_letters_are_joined(tmp_path: Path) -> None:
    store = store_before("lower_case_sessions", tmp_path / "crawl.db")
    sessions = [f"/(s({letter * 24}))" for letter in "ab"]
    for path in (*(f"{session}/a.aspx" for session in sessions), f"{sessions[0]}/b.aspx", "/plain"):
        page_of_one_version(store, path)
    await (await open_store(store.path)).close()
    assert rows(store.path, "PRAGMA user_version") == [(newest(),)]
    sql = "SELECT url, fetch_url FROM page WHERE held_back IS NULL ORDER BY url"
    assert rows(store.path, sql) == [
        (f"{HOST}/a.aspx", f"{HOST}{sessions[1]}/a.aspx"),
        (f"{HOST}/b.aspx", f"{HOST}{sessions[0]}/b.aspx"),
        (f"{HOST}/plain", f"{HOST}/plain"),
    ]
    histories = "SELECT count(*) FROM version AS v JOIN page AS p ON p.id = v.page_id WHERE url = "
    assert rows(store.path, f"{histories} '{HOST}/a.aspx'") == [(2,)]
    told = rows(store.path, CHANGES)
    assert set(told) == {
        (f"{HOST}/plain", "new", None),
        (f"{HOST}/a.aspx", "new", None),
        (f"{HOST}/b.aspx", "new", None),
        (f"{HOST}{sessions[0]}/a.aspx", "moved", f"{HOST}/a.aspx"),
        (f"{HOST}{sessions[1]}/a.aspx", "moved", f"{HOST}/a.aspx"),
        (f"{HOST}{sessions[0]}/b.aspx", "moved", f"{HOST}/b.aspx"),
    }
    assert told[0] == (f"{HOST}/plain", "new", None)


async def test_opening_a_store_of_before_joins_its_pages_and_a_failure_leaves_it_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_before("identity", tmp_path / "crawl.db")
    for path in ("/%e3", "/%E3", "/%7Ejoe", "/plain"):
        page = page_of_one_version(store, path)
        store.link(page, f"https://other.example/%7E?{page}", 1.0)
    before = rows(store.path, "SELECT * FROM page")

    def fail(db: sqlite3.Connection, now: float) -> None:
        join(db, now)
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr("freshet.storage.joining.join", fail)
        with pytest.raises(Exception, match="disk I/O error"):
            await open_store(store.path)
    assert rows(store.path, "PRAGMA user_version") == [(28,)]
    assert rows(store.path, "SELECT * FROM page") == before

    await (await open_store(store.path)).close()
    assert rows(store.path, "PRAGMA user_version") == [(newest(),)]
    sql = "SELECT url, fetch_url FROM page WHERE held_back IS NULL ORDER BY url"
    assert rows(store.path, sql) == [
        (f"{HOST}/%E3", f"{HOST}/%E3"),
        (f"{HOST}/plain", f"{HOST}/plain"),
        # What is requested stays what was found.
        (f"{HOST}/~joe", f"{HOST}/%7Ejoe"),
    ]
    assert rows(store.path, CHANGES) == [
        (f"{HOST}/%E3", "new", None),
        (f"{HOST}/plain", "new", None),
        (f"{HOST}/%e3", "moved", f"{HOST}/%E3"),
        (f"{HOST}/%7Ejoe", "moved", f"{HOST}/~joe"),
        (f"{HOST}/~joe", "new", None),
    ]
    assert rows(store.path, "SELECT url FROM offsite_link ORDER BY url") == [
        (f"https://other.example/~?{page}",) for page in range(1, 5)
    ]
