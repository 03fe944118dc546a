"""Join pages: what a store held as several pages, and holds as one by the rule of identity now.

Of such pages the one with the newest document stays, and takes over the observations, versions and
links of the others, in the order of time. Consumers of the changefeed are told that the old URLs
have moved. A migration: it depends on no function that writes tables of the newest schema.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from sqlite3 import Connection
from typing import Final

from freshet.storage.identity import identity

_SQL: Final = (files(__package__) / "joining.sql").read_text("utf-8")
_CHOICE, _HISTORIES, _URLS, _NAMES = (part.split(";\n") for part in _SQL.split("\n-- then\n"))
#: Tables whose rows do not simply go to the page that stays.
_APART: Final = frozenset(
    {"page", "link", "offsite_link", "change", "past_openings", "search_page"}
    | {"lsh_page", "lsh_group"}
)


def join(db: Connection, now: float) -> None:
    """Give each page its identity, and join those that have one, in the caller's transaction."""
    db.create_function("identity", 1, identity, deterministic=True)
    with _unguarded(db):
        _execute(db, _CHOICE)
        if db.execute("SELECT 1 FROM temp.moved").fetchone():
            _join_histories(db)
            _empty_search_index(db)
        if db.execute("SELECT 1 FROM temp.joined").fetchone():
            _execute(db, _URLS, {"now": now})
        _execute(db, _NAMES)


def _empty_search_index(db: Connection) -> None:
    """Let the next crawl index all documents anew."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'search_index'").fetchone():
        db.execute("INSERT INTO search_words (search_words) VALUES ('delete-all')")
        db.execute("DELETE FROM search_page")
        db.execute("UPDATE search_index SET pages = 0, words = 0")


def _execute(db: Connection, statements: Iterable[str], values: Mapping[str, object] = {}) -> None:
    for sql in statements:
        db.execute(sql, values)


def _join_histories(db: Connection) -> None:
    _execute(db, _HISTORIES)
    for table, column in _references(db):
        of_joined = f"{column} IN (SELECT old FROM temp.moved)"
        new = f"(SELECT new FROM temp.moved WHERE old = {column})"
        db.execute(f"UPDATE OR IGNORE {table} SET {column} = {new} WHERE {of_joined}")
        # The page that stays has such a row itself.
        db.execute(f"DELETE FROM {table} WHERE {of_joined}")


def _references(db: Connection) -> list[tuple[str, str]]:
    """Return the columns that refer to pages, with their tables."""
    names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return [
        (name, row[3])
        for name in names
        if name not in _APART
        for row in db.execute(f"PRAGMA foreign_key_list({name})").fetchall()
        if row[2] == "page"
    ]


@contextmanager
def _unguarded(db: Connection) -> Iterator[None]:
    """Let rows of append-only tables be given to other pages; the guards are back then."""
    sql = "SELECT name, sql FROM sqlite_master WHERE name LIKE '%_is_not_updated' OR "
    guards = db.execute(sql + "name LIKE '%_is_not_deleted'").fetchall()
    for name, _ in guards:
        db.execute(f"DROP TRIGGER {name}")
    yield
    for _, guard in guards:
        db.execute(guard)
