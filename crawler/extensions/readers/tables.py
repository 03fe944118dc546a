"""Tables of openings: what lists showed at which place, and what people opened of it.

*Invariant.* A list is kept row by row while it is among the newest 20,000 rows; after that only two
sums are left of it, by page and by place. Consequence: nothing tells who opened what, nor after a
while when or together with what.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from sqlite3 import Connection
from typing import TYPE_CHECKING, Final, TypeAlias

from aiosqlite import Connection as Reader

from freshet.crawler.read.lists import Impression, MadeFor
from freshet.storage.database import as_json, load_columns
from freshet.storage.entries import Columns, stored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Rows that are kept, and those that are left when there are more.
_MOST: Final = 20_000
_LEFT: Final = 16_000
_DAY_S: Final = 86_400
#: New pages and lists of a month count; what a store finds in its first week is not new.
_MONTH_S: Final = 30 * _DAY_S
_FIRST_S: Final = 7 * _DAY_S

#: The probability that a place, counted from 1, is seen.
ViewsAt: TypeAlias = Callable[[int], float]


@dataclass(frozen=True, slots=True)
class Openings(Columns):
    """The n pages that a list showed.

    Attributes:
        page_id: (n,), ascending.
        url: (n,).
        views: (n,), the expected number of people who saw it.
        opens: (n,).
    """

    page_id: NDArray[np.int64] = field(metadata=stored("int64"))
    url: list[str] = field(metadata=stored("object"))
    views: NDArray[np.float64] = field(metadata=stored("float64"))
    opens: NDArray[np.float64] = field(metadata=stored("float64"))


@dataclass(frozen=True, slots=True)
class ListCounts:
    """Numbers: ``lists`` ever recorded; of those that are kept, pages ``shown`` and ``opened``.

    ``promoted`` are those that ever came to their places by chance.
    """

    lists: int
    shown: int
    opened: int
    promoted: int


@dataclass(frozen=True, slots=True)
class PromotedPlaces(Columns):
    """Numbers of promoted pages ``shown`` at each ``place``, and ``opened`` there; (k,) each."""

    place: NDArray[np.int64] = field(metadata=stored("int64"))
    shown: NDArray[np.float64] = field(metadata=stored("float64"))
    opened: NDArray[np.float64] = field(metadata=stored("float64"))


def record(
    db: Connection, made_for: MadeFor, at: float, shown: Sequence[Impression], views_at: ViewsAt
) -> bool:
    """Note a list that was shown; return whether it is new.

    Of rows above the limit, the oldest lists become sums, with views as ``views_at`` counts them.
    """
    ((list_id,),) = db.execute("SELECT ifnull(max(list_id), 0) + 1 FROM showing").fetchall()
    rows = [(s.showing_id, list_id, made_for, at, s.page_id, s.place, s.promoted) for s in shown]
    sql = "INSERT OR IGNORE INTO showing VALUES (?, ?, ?, ?, ?, ?, ?, NULL)"
    is_new = db.executemany(sql, rows).rowcount > 0
    if db.execute("SELECT count(*) FROM showing").fetchone()[0] > _MOST:
        _fold(db, views_at)
    return is_new


def _fold(db: Connection, views_at: ViewsAt) -> None:
    """Turn the oldest lists into sums."""
    sql = f"SELECT list_id FROM showing ORDER BY list_id DESC LIMIT 1 OFFSET {_LEFT}"
    old = f"FROM showing WHERE list_id < ({sql})"
    rows = db.execute(
        f"SELECT page_id, place, count(*), count(opened_at) {old} GROUP BY page_id, place"
    ).fetchall()
    views, opens = defaultdict[int, float](float), defaultdict[int, int](int)
    for page_id, place, shown, opened in rows:
        views[page_id] += shown * views_at(place)
        opens[page_id] += opened
    db.executemany(
        "INSERT INTO past_openings VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
        "SET views = views + excluded.views, opens = opens + excluded.opens",
        [(page_id, views[page_id], opens[page_id]) for page_id in views],
    )
    db.execute(
        f"INSERT INTO past_promotions SELECT place, count(*), count(opened_at) {old} AND promoted "
        "GROUP BY place ON CONFLICT DO UPDATE "
        "SET shown = shown + excluded.shown, opened = opened + excluded.opened"
    )
    db.execute(f"DELETE {old}")


def page_ids(db: Connection, urls: Iterable[str]) -> dict[str, int]:
    """Return the page IDs of the known canonical URLs; of a moved page, its new page's ID."""
    rows = db.execute(
        "SELECT p.url, ifnull(p.alias_of, p.id) FROM json_each(?) JOIN page AS p ON p.url = value "
        # Pages of other shards are left to their shards.
        "WHERE p.held_back IS NOT 'shard'",
        (as_json(list(urls)),),
    )
    return dict(rows.fetchall())


def note_opening(db: Connection, showing_id: int, at: float) -> None:
    """Note that somebody opened a page of a list; only the first time counts."""
    sql = "UPDATE showing SET opened_at = ? WHERE id = ? AND opened_at IS NULL"
    db.execute(sql, (at, showing_id))


async def found(db: Reader, showing_id: int) -> tuple[str, bool] | None:
    """Return the URL of a page of a list, and whether it was opened; None: no such row."""
    sql = "SELECT url, opened_at IS NOT NULL FROM showing JOIN page ON page.id = page_id "
    rows = await db.execute_fetchall(f"{sql} WHERE showing.id = ?", (showing_id,))
    return next(((row[0], bool(row[1])) for row in rows), None)


async def last_list(db: Reader, made_for: MadeFor) -> tuple[float, dict[int, int]]:
    """Return when the newest list for that was shown (0: never), and its rows: ids by place."""
    rows = await db.execute_fetchall(
        "SELECT place, id, at FROM showing WHERE list_id = "
        "(SELECT max(list_id) FROM showing WHERE made_for = ?)",
        (made_for,),
    )
    return max((row[2] for row in rows), default=0.0), {row[0]: row[1] for row in rows}


async def counts(db: Reader) -> ListCounts | None:
    """Return the counts of lists, or None before the first record."""
    sql = (
        "SELECT max(list_id), count(*), count(opened_at), ifnull(sum(promoted), 0) + "
        "(SELECT ifnull(sum(shown), 0) FROM past_promotions) FROM showing"
    )
    ((lists, *others),) = await db.execute_fetchall(sql)
    return None if lists is None else ListCounts(lists, *others)


async def recent(db: Reader, now: float) -> tuple[float, float] | None:
    """Return how many pages a day were found in the last month, and how many lists were shown.

    Pages of a store's first week do not count: they are not new to the web. So in that week it is
    None.
    """
    ((first,),) = await db.execute_fetchall("SELECT ifnull(min(found_at), 0) FROM page")
    since, new_since = max(now - _MONTH_S, first), max(now - _MONTH_S, first + _FIRST_S)
    if now <= new_since:
        return None
    sql = (
        "SELECT (SELECT count(*) FROM page WHERE role = 'page' AND version_id IS NOT NULL "
        "AND found_at >= ?), (SELECT count(DISTINCT list_id) FROM showing WHERE at >= ?)"
    )
    ((pages, shown),) = await db.execute_fetchall(sql, (new_since, since))
    return pages * _DAY_S / (now - new_since), shown * _DAY_S / (now - since)


async def promoted_places(db: Reader, before: float = inf) -> PromotedPlaces:
    """Return what became of promoted pages by that time, by place."""
    sql = (
        "SELECT place, sum(shown), sum(opened) FROM (SELECT place, shown, opened "
        "FROM past_promotions UNION ALL SELECT place, 1, ifnull(opened_at < :before, 0) "
        "FROM showing WHERE promoted AND at < :before) GROUP BY place ORDER BY place"
    )
    return await load_columns(db, PromotedPlaces, sql, {"before": before})


async def openings(db: Reader, views_at: ViewsAt, before: float = inf) -> Openings:
    """Return pages with views and openings: past ones, and those of lists shown ``before``."""
    ((farthest,),) = await db.execute_fetchall("SELECT ifnull(max(place), 0) FROM showing")
    attention = f"(VALUES {', '.join(f'({i}, {views_at(i)!r})' for i in range(1, farthest + 1))})"
    if not farthest:
        attention = "(SELECT 0, 0.0)"
    sql = (
        f"WITH attention (place, view) AS {attention} "
        "SELECT p.id, p.url, sum(f.views), sum(f.opens) FROM "
        "(SELECT page_id, views, opens FROM past_openings UNION ALL "
        " SELECT page_id, view, ifnull(opened_at < :before, 0) FROM showing "
        " JOIN attention USING (place) WHERE at < :before) AS f "
        "JOIN page AS p ON p.id = f.page_id GROUP BY p.id ORDER BY p.id"
    )
    return await load_columns(db, Openings, sql, {"before": before})


@dataclass(frozen=True, slots=True)
class ShownItems(Columns):
    """The j showings that are kept of items of a source, the page that first led to them.

    ``age_s`` are seconds from when the item was found to when it was shown, ``opened`` is 1 or 0.
    """

    source_id: NDArray[np.int64] = field(metadata=stored("int64"))
    place: NDArray[np.int64] = field(metadata=stored("int64"))
    age_s: NDArray[np.float64] = field(metadata=stored("float64"))
    opened: NDArray[np.int64] = field(metadata=stored("int64"))


async def shown_items(db: Reader) -> ShownItems:
    """Return the showings of pages that came up at a page that had been visited before."""
    sql = (
        "SELECT c.page_id, s.place, s.at - p.found_at, s.opened_at IS NOT NULL "
        "FROM showing AS s CROSS JOIN page AS p ON p.id = s.page_id "
        "CROSS JOIN link AS l ON l.dst_id = p.id AND l.first_seen_at = p.found_at "
        "CROSS JOIN churn AS c ON c.page_id = l.src_id AND c.at = l.first_seen_at"
    )
    return await load_columns(db, ShownItems, sql)
