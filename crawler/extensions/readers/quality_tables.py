"""Tables of search quality: the queries, what pages contribute, and what visits changed of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.resources import files
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any, Final

from aiosqlite import Connection as Reader

from freshet.crawler.extensions.search.tables import unpacked
from freshet.storage.database import as_json, code_of, columns_of, load_columns, row_to, values_of
from freshet.storage.entries import KINDS, Columns, stored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Statements; those of a trigger are indented.
_CREATE: Final = re.split(
    r";\n(?=[C-])", (files(__package__) / "quality.sql").read_text("utf-8").rstrip(";\n")
)
_TABLES: Final = (
    "search_query", "quality_change", "search_use", "search_choice", "search_before",
    "search_quality",
)  # fmt: skip
#: Pages whose copies of before are read at most.
_MOST_BEFORE: Final = 20_000


@dataclass(frozen=True, slots=True)
class HostChoice:
    """The losses of two orders of a host's visits (:mod:`.search_orders`), as judged ``at``.

    ``plain`` and ``marked`` are None where its past shows too little.
    """

    host_id: int
    at: float
    plain: float | None
    marked: float | None
    error: float | None
    changes: int
    is_gain: bool = field(metadata=stored(bool))


# -- search quality ----------------------------------------------------------


def create(db: Connection) -> None:
    """Make the tables where they are not there."""
    for sql in _CREATE:
        db.execute(sql)


def drop(db: Connection) -> None:
    """Delete the tables."""
    db.execute("DROP TRIGGER IF EXISTS quality_is_forgotten")
    for name in _TABLES:
        db.execute(f"DROP TABLE IF EXISTS {name}")


def forget(db: Connection, page_ids: Iterable[int]) -> None:
    """Delete the measurements of these pages."""
    ids = as_json(list(page_ids))
    for name in ("quality_change", "search_use", "search_before"):
        sql = f"DELETE FROM {name} WHERE page_id IN (SELECT value FROM json_each(?))"
        db.execute(sql, (ids,))


def keep_before(db: Connection, page_id: int, packed: bytes) -> None:
    """Keep the packed lines that a page had until now."""
    db.execute("INSERT OR REPLACE INTO search_before VALUES (?, ?)", (page_id, packed))


def append_changes(db: Connection, changes: Iterable[tuple[int, float, float]]) -> None:
    """Enter quality changes that visits measured: page, time of the visit, and change."""
    db.executemany(
        "INSERT OR REPLACE INTO quality_change SELECT o.id, o.page_id, o.at - coalesce("
        "(SELECT max(at) FROM observation WHERE page_id = o.page_id AND at < o.at "
        " AND kind IN ('new', 'changed', 'unchanged')), o.at), ? "
        "FROM observation AS o WHERE o.page_id = ? AND o.at = ? ORDER BY o.id DESC LIMIT 1",
        [(change, page_id, at) for page_id, at, change in changes],
    )


def set_queries(
    db: Connection, queries: Mapping[str, float], made: Mapping[str, float], pages: int
) -> None:
    """Replace the queries by these, sorted words with their shares of all searches.

    ``made`` are those that were made of so many ``pages``, with their shares of these.
    """
    db.execute("DELETE FROM search_query")
    rows = [(terms, f, made.get(terms), pages) for terms, f in queries.items()]
    sql = "INSERT INTO search_query (terms, frequency, made, pages) VALUES (?, ?, ?, ?)"
    db.executemany(sql, rows)


def note_use(db: Connection, usefulness: Sequence[tuple[int, float]]) -> None:
    """Replace what pages contribute to a search."""
    db.execute("DELETE FROM search_use")
    db.executemany("INSERT INTO search_use VALUES (?, ?)", usefulness)


def note_quality(db: Connection, at: float, quality: float) -> None:
    """Replace the search quality of the copies."""
    db.execute("INSERT OR REPLACE INTO search_quality VALUES (1, ?, ?)", (at, quality))


async def are_there(db: Reader) -> bool:
    """Return whether a store has the tables."""
    sql = "SELECT count(*) FROM sqlite_master WHERE name = 'search_quality'"
    return bool((await _rows(db, sql))[0][0])


async def noted_quality(db: Reader) -> tuple[float, float] | None:
    """Return the time and value of the last recorded search quality, or None."""
    return next(iter(await _rows(db, "SELECT at, quality FROM search_quality")), None)


async def before(db: Reader) -> list[tuple[int, str, str | None, float, float]]:
    """Return the pages that their last visit found changed or gone.

    Each has its lines before that visit and now, the seconds between that visit and the one before
    it, and when it was.
    """
    rows = await _rows(
        db,
        "SELECT b.page_id, b.words, s.words, q.gap_s, max(o.at) FROM search_before AS b "
        "JOIN quality_change AS q ON q.page_id = b.page_id "
        "JOIN observation AS o ON o.id = q.observation_id JOIN page AS p ON p.id = b.page_id "
        "LEFT JOIN search_page AS s ON s.page_id = b.page_id GROUP BY b.page_id "
        "HAVING ifnull(p.checked_at, 0) <= max(o.at) "
        f"ORDER BY max(o.at) DESC, b.page_id LIMIT {_MOST_BEFORE}",
    )
    return [
        (page_id, unpacked(old), None if new is None else unpacked(new), gap_s, at)
        for page_id, old, new, gap_s, at in rows
    ]


def note_choice(db: Connection, choice: HostChoice) -> None:
    """Replace the judgement of a host."""
    marks = ", ".join("?" * len(fields(HostChoice)))
    db.execute(f"INSERT OR REPLACE INTO search_choice VALUES ({marks})", values_of(choice))


async def queries(db: Reader) -> dict[str, float]:
    """Return the queries by which quality is measured, with their shares of searches."""
    return dict(await _rows(db, "SELECT terms, frequency FROM search_query ORDER BY id"))


async def made_queries(db: Reader) -> tuple[dict[str, float], int]:
    """Return the queries that were made, with their shares of these, and of how many pages."""
    sql = "SELECT terms, made, pages FROM search_query WHERE made IS NOT NULL ORDER BY id"
    rows = await _rows(db, sql)
    return {row[0]: row[1] for row in rows}, max((row[2] for row in rows), default=0)


async def sampled(db: Reader, most: int) -> dict[int, str]:
    """Return the lines of at most so many indexed pages, evenly spread over all, by page."""
    rows = await db.execute_fetchall(
        "SELECT s.page_id, s.words FROM search_page AS s WHERE "
        "s.page_id % ((SELECT pages FROM search_index) / ? + 1) = 0 LIMIT ?",
        (most, most),
    )
    return {page_id: unpacked(packed) for page_id, packed in rows}


async def anchors(db: Reader, page_ids: Iterable[int]) -> list[tuple[int, str]]:
    """Return each distinct anchor of links to these pages, with the page."""
    rows = await db.execute_fetchall(
        "SELECT DISTINCT dst_id, anchor FROM json_each(?) JOIN link ON dst_id = value "
        "WHERE gone_at IS NULL AND anchor <> ''",
        (as_json(list(page_ids)),),
    )
    return [(row[0], row[1]) for row in rows]


async def _rows(db: Reader, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await db.execute_fetchall(sql)]


# -- measurements of visits --------------------------------------------------


@dataclass(frozen=True, slots=True)
class MeasuredPages(Columns):
    """The n indexed pages, by id, with their estimates.

    Attributes:
        page_id, host_id: (n,), as stored.
        usefulness: (n,), contribution of each page to a search.
        rate: (n,), changes a day; nan: not estimated yet.
        hazard: (n,), changes expected since the last visit, at the time of the estimate ``at``.
        at: (n,), Unix seconds.
        days: (n,), from when a page was found to its last good visit.
    """

    page_id: NDArray[np.int64] = field(metadata=stored("int64"))
    host_id: NDArray[np.int64] = field(metadata=stored("int64"))
    usefulness: NDArray[np.float64] = field(metadata=stored("float64"))
    rate: NDArray[np.float64] = field(metadata=stored("float64"))
    hazard: NDArray[np.float64] = field(metadata=stored("float64"))
    at: NDArray[np.float64] = field(metadata=stored("float64"))
    days: NDArray[np.float64] = field(metadata=stored("float64"))


@dataclass(frozen=True, slots=True)
class MeasuredChanges(Columns):
    """The k quality changes that visits measured.

    Attributes:
        page_id: (k,).
        gap: (k,), days since the page was seen before.
        change: (k,), ΔQ_A.
    """

    page_id: NDArray[np.int64] = field(metadata=stored("int64"))
    gap: NDArray[np.float64] = field(metadata=stored("float64"))
    change: NDArray[np.float64] = field(metadata=stored("float64"))


@dataclass(frozen=True, slots=True)
class HostPast(Columns):
    """The m visits to a host's pages that told anything, by page and time.

    Attributes:
        page_id: (m,).
        at: (m,), Unix seconds.
        kind: (m,), places in :data:`~freshet.storage.entries.KINDS`.
        change: (m,), the measured quality change; 0: none.
    """

    page_id: NDArray[np.int64] = field(metadata=stored("int64"))
    at: NDArray[np.float64] = field(metadata=stored("float64"))
    kind: NDArray[np.int8] = field(metadata=stored("int8"))
    change: NDArray[np.float64] = field(metadata=stored("float64"))


async def measured(db: Reader) -> tuple[MeasuredPages, MeasuredChanges]:
    """Return the indexed pages, and all quality changes of these."""
    columns = columns_of(
        MeasuredPages, "e", page_id="p.id", host_id="p.host_id",
        usefulness="ifnull(u.usefulness, 0)",
        days="(p.checked_at - p.found_at) / 86400",
    )  # fmt: skip
    pages = await load_columns(
        db,
        MeasuredPages,
        f"SELECT {columns} FROM search_page AS s JOIN page AS p ON p.id = s.page_id "
        "LEFT JOIN search_use AS u ON u.page_id = p.id LEFT JOIN estimate AS e ON e.page_id = p.id "
        "ORDER BY p.id",
    )
    sql = (
        "SELECT q.page_id, q.gap_s / 86400, q.change FROM quality_change AS q "
        "JOIN search_page AS s ON s.page_id = q.page_id "
        # Later visits may have shown that it was a block page, or only the frame.
        "LEFT JOIN amendment AS a ON a.observation_id = q.observation_id "
        "WHERE ifnull(a.kind, 'changed') IN ('changed', 'gone')"
    )
    return pages, await load_columns(db, MeasuredChanges, sql)


async def past(db: Reader, host_id: int, since: float) -> HostPast:
    """Return the visits to the indexed pages of a host since a time."""
    kinds = code_of(KINDS, "coalesce(a.kind, o.kind)")
    sql = (
        f"SELECT o.page_id, o.at, {kinds}, ifnull(q.change, 0) FROM page AS p "
        "JOIN search_page AS s ON s.page_id = p.id JOIN observation AS o ON o.page_id = p.id "
        "LEFT JOIN amendment AS a ON a.observation_id = o.id "
        "LEFT JOIN quality_change AS q ON q.observation_id = o.id "
        "WHERE p.host_id = ? AND o.at >= ? AND coalesce(a.kind, o.kind) IN "
        "('new', 'changed', 'unchanged', 'gone', 'failed') ORDER BY o.page_id, o.at"
    )
    return await load_columns(db, HostPast, sql, (host_id, since))


async def choices(db: Reader) -> dict[int, HostChoice]:
    """Return the judgements of hosts, by host ID."""
    rows = await db.execute_fetchall(f"SELECT {columns_of(HostChoice)} FROM search_choice")
    return {each.host_id: each for each in map(row_to(HostChoice), rows)}


async def next_to_judge(db: Reader, before: float) -> int | None:
    """Return the host judged longest ago, and before that time, with new measured changes."""
    rows = await db.execute_fetchall(
        "SELECT p.host_id FROM quality_change AS q JOIN page AS p ON p.id = q.page_id "
        "LEFT JOIN search_choice AS c ON c.host_id = p.host_id "
        "WHERE ifnull(c.at, 0) < ? AND q.change > 0 GROUP BY p.host_id "
        "ORDER BY ifnull(c.at, 0), p.host_id LIMIT 1",
        (before,),
    )
    return next((row[0] for row in rows), None)
