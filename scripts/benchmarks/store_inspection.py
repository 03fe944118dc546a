"""What a store holds, read with SQLite alone: a second pair of eyes, not the crawler's own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

_GOOD = frozenset({"new", "changed", "unchanged"})


@dataclass(frozen=True, slots=True)
class StoreState:
    """A store at rest.

    ``observations`` are pairs of URL and time; ``observed`` and ``answered`` are the URLs
    that the latest run has an observation of, and a good one; ``digests`` are the pages'.
    """

    problems: tuple[str, ...] = ()
    run_id: int = 0
    observations: frozenset[tuple[str, float]] = frozenset()
    observed: frozenset[str] = frozenset()
    answered: frozenset[str] = frozenset()
    digests: frozenset[tuple[str, bytes]] = frozenset()


@contextmanager
def reading(store: Path) -> Iterator[sqlite3.Connection]:
    """A connection that writes nothing."""
    with closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        yield connection


def inspect(store: Path) -> StoreState:
    """The state of a store that nobody writes; empty where there is none yet."""
    if not store.exists():
        return StoreState()
    with reading(store) as connection:
        problems = _problems(connection)
        if problems or not connection.execute("PRAGMA user_version").fetchone()[0]:
            return StoreState(problems)
        run_id = connection.execute("SELECT coalesce(max(id), 0) FROM crawl_run").fetchone()[0]
        pages = "SELECT p.url, o.at, o.kind, o.run_id FROM observation o JOIN page p ON "
        rows = connection.execute(f"{pages} p.id = o.page_id").fetchall()
        digests = "SELECT url, body_digest FROM page WHERE body_digest IS NOT NULL"
        return StoreState(
            run_id=run_id,
            observations=frozenset((url, round(at, 6)) for url, at, _, _ in rows),
            observed=frozenset(url for url, _, _, run in rows if run == run_id),
            answered=frozenset(u for u, _, kind, run in rows if run == run_id and kind in _GOOD),
            digests=frozenset(connection.execute(digests).fetchall()),
        )


def _problems(connection: sqlite3.Connection) -> tuple[str, ...]:
    integrity = [row[0] for row in connection.execute("PRAGMA integrity_check")]
    integrity += _index_problems(connection)
    broken = [f"foreign key: {row}" for row in connection.execute("PRAGMA foreign_key_check")]
    return tuple([line for line in integrity if line != "ok"] + broken)


def _index_problems(connection: sqlite3.Connection) -> list[str]:
    """Where the search index, if there is one, differs from the changefeed."""
    there = "SELECT count(*) FROM sqlite_master WHERE name = 'search_page'"
    if not connection.execute(there).fetchone()[0]:
        return []
    told = set(
        connection.execute(
            "SELECT page_id, version_id FROM change WHERE kind <> 'noise' AND version_id > 0"
        )
    )
    held = set(connection.execute("SELECT page_id, version_id FROM search_page"))
    rows = {(row[0],) for row in held} ^ set(
        connection.execute("SELECT id FROM search_words_docsize")
    )
    differing = len(told ^ held) + len(rows)
    return [f"search index: {differing} rows differ"] if differing else []
