"""The schema's history has no gaps, and docs/SCHEMA.md knows every table and column."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from freshet.crawler.extensions.search import tables as search
from freshet.storage import extensions
from freshet.storage.extensions import migrations, newest, oldest

SCHEMA = Path(__file__).parents[3] / "docs" / "SCHEMA.md"
#: The schema's number in the first release; stores of before are refused.
FIRST = 15
_INHERITS = r"the\s+columns\s+of\s+`(\w+)`"


def described() -> dict[str, set[str]]:
    """Of each table and view that docs/SCHEMA.md names: the words in code type about it."""
    words: dict[str, set[str]] = {}
    for text in re.split(r"\n(?=\*\*`)", SCHEMA.read_text("utf-8")):
        if not (head := re.match(r"(\*\*`\w+`\*\*(?:,\s+)?)+", text)):
            continue
        code = {
            word for each in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", each)
        }
        for table in re.findall(r"\w+", head[0]):
            words[table] = code.union(*(words[each] for each in re.findall(_INHERITS, text)))
    return words


def test_migrations_are_numbered_without_gaps_from_the_first_release_on() -> None:
    assert [number for number, _, _ in migrations()] == list(range(FIRST, newest() + 1))
    assert oldest() == FIRST


def test_every_table_and_column_is_described() -> None:
    words = described()
    with closing(sqlite3.connect(":memory:")) as connection:
        for _, _, sql in migrations():
            connection.executescript(sql)
        extensions.migrate(SCHEMA, connection)
        search.create(connection)
        tables = connection.execute(
            "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'search_words_%'"
        ).fetchall()
        assert words.keys() == {name for name, _ in tables}
        for name, _ in tables:
            columns = {row[1] for row in connection.execute(f"PRAGMA table_info({name})")}
            assert columns - words[name] - {"id"} == set(), name


KINDS = (
    "soft_404", "error_page", "login_wall", "consent_wall", "captcha", "rate_limited_page",
    "needs_javascript",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_visit_decides_on_pages_that_other_rules_refused(kind: str) -> None:
    (sql,) = [sql for number, _, sql in migrations() if number == 31]
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(
            "CREATE TABLE page (id INTEGER PRIMARY KEY, host_id, rejected_digest, rejected_as);"
            "CREATE TABLE not_content (host_id, data);"
            "INSERT INTO not_content VALUES (1, x'02');"
        )
        rows = [(1, b"\x01digest", kind), (2, b"", kind), (3, None, None)]
        db.executemany("INSERT INTO page VALUES (?, 1, ?, ?)", rows)
        db.executescript(sql)
        found = db.execute("SELECT rejected_digest, rejected_as FROM page ORDER BY id").fetchall()
        assert found == [(b"", kind), (b"", kind), (None, None)]
        assert db.execute("SELECT doubtful_as FROM page").fetchall() == [(None,)] * 3
        assert db.execute("SELECT * FROM not_content").fetchall() == []


FAILURES = {
    "the server hung up without a response": "hung_up",
    "the server hung up at once": "hung_up",
    "not a response of HTTP/1: b'SSH'": "protocol",
    "a NUL in the head of the response": "protocol",
}


def test_servers_that_hung_up_have_a_reason_of_their_own_in_older_stores() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        for number, _, sql in migrations():
            if number == 36:
                db.execute("PRAGMA foreign_keys = off")
                db.executemany(
                    "INSERT INTO observation (page_id, run_id, at, kind, reason, detail, "
                    "duration_s) VALUES (1, 1, 0, 'failed', 'protocol', ?, 0)",
                    [(detail,) for detail in FAILURES],
                )
                db.commit()
            db.executescript(sql)
        assert dict(db.execute("SELECT detail, reason FROM observation")) == FAILURES
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute("UPDATE observation SET reason = 'protocol'")
