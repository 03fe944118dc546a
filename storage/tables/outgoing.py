"""Tables ``outgoing`` and ``inflow``: messages to other shards, and from them.

``outgoing`` are pages that were found here and belong to other shards; ``inflow`` is the mass of
PageRank that flows from other shards to pages here.

*Invariant.* A page of another shard is stored here as held back, with the links to it, and in this
table until that shard has acknowledged it. A trigger enters it in the transaction of the visit that
found it. Consequence: no link is lost at a crash; the other shard knows a page that is sent twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from sqlite3 import Connection

from aiosqlite import Connection as Reader

from freshet.storage.database import as_json, columns_of, row_to
from freshet.storage.entries import Role

#: Bytes of the hash of a page's URL and of the mass that flows to it.
_MASS_BYTES = 12


@dataclass(frozen=True, slots=True)
class OutgoingPage:
    """A page to send to another shard; ``fetch_url`` is the URL as it was written."""

    page_id: int
    url: str
    fetch_url: str
    role: Role
    depth: int
    redirects: int


async def waiting(db: Reader, after: int, limit: int) -> list[OutgoingPage]:
    """Return the pages after an id that wait longest, at most this many."""
    columns = columns_of(OutgoingPage, "p", page_id="p.id")
    sql = (
        f"SELECT {columns} FROM outgoing AS o JOIN page AS p ON p.id = o.page_id "
        "WHERE o.page_id > ? ORDER BY o.page_id LIMIT ?"
    )
    return list(map(row_to(OutgoingPage), await db.execute_fetchall(sql, (after, limit))))


def acknowledge(db: Connection, page_ids: Iterable[int]) -> None:
    """Delete messages about pages that their shards have committed."""
    sql = "DELETE FROM outgoing WHERE page_id IN (SELECT value FROM json_each(?))"
    db.execute(sql, (as_json(list(page_ids)),))


def take_inflow(db: Connection, shard: int, message: bytes) -> None:
    """Replace the last message of a shard (:mod:`crawler.run.pagerank`).

    Raises:
        ValueError: the message is none of masses.
    """
    if len(message) % _MASS_BYTES:
        raise ValueError(f"a message of masses has {_MASS_BYTES} bytes a page, not {len(message)}")
    db.execute("INSERT OR REPLACE INTO inflow VALUES (?, ?)", (shard, message))


async def inflow(db: Reader) -> bytes:
    """Return the last messages of all other shards."""
    rows = await db.execute_fetchall("SELECT masses FROM inflow ORDER BY shard")
    return b"".join(row[0] for row in rows)
