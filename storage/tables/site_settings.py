"""Table ``site_setting``: settings of sites, and wishes, that were made in a browser.

A wish (``visit``) holds until its page has been visited since. Each shard has all rows.
"""

from sqlite3 import Connection
from typing import Final, NamedTuple

from aiosqlite import Connection as Reader

VISIT: Final = "visit"
_MET: Final = (
    "key = 'visit' AND EXISTS (SELECT 1 FROM page WHERE url = match AND last_at >= site_setting.at)"
)


class SiteSetting(NamedTuple):
    """A key of ``[[sites]]`` where a URL matches, its ``value`` in JSON, and when it was set."""

    match: str
    key: str
    value: str
    at: float


def put(db: Connection, it: SiteSetting) -> None:
    """Set a key, or take it back if the value is empty; wishes that have been met go."""
    db.execute(f"DELETE FROM site_setting WHERE (match, key) = (?, ?) OR {_MET}", it[:2])
    if it.value:
        db.execute("INSERT INTO site_setting VALUES (?, ?, ?, ?)", it)


async def load(db: Reader) -> list[SiteSetting]:
    """Return what is set, and the wishes that have not been met."""
    sql = f"SELECT match, key, value, at FROM site_setting WHERE NOT ({_MET}) ORDER BY match, key"
    return [SiteSetting(*row) for row in await db.execute_fetchall(sql)]


def put_first(db: Connection, now: float) -> None:
    """Let the pages that are to be visited now be due in this run, before all others."""
    db.execute(
        "INSERT INTO frontier (page_id, host_id, priority, due_at, reason) "
        "SELECT p.id, p.host_id, -1, ?, 'signal' FROM site_setting JOIN page AS p ON p.url = match "
        f"WHERE key = 'visit' AND NOT ({_MET}) AND p.held_back IS NULL "
        "ON CONFLICT DO UPDATE SET priority = -1, due_at = min(due_at, excluded.due_at)",
        (now,),
    )
