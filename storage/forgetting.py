"""Forget pages: delete what a store holds of them, overwrite it, and refuse them from then on.

What stays is the address: consumers of the changefeed must be told that it is gone, and a refused
page must be known. Each transaction forgets some hundred pages wholly: a kill leaves the rest as it
was, and the same command goes on.
"""

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Final

from aiosqlite import Connection as Reader

from freshet.storage.database import Database, as_json
from freshet.storage.extensions import index
from freshet.storage.maintenance import compact, unguarded
from freshet.storage.tables import changefeed, near_duplicates, observations

#: Pages of one transaction.
_BATCH: Final = 500
#: What is executed for the pages of a transaction.
_DEEDS: Final = (files(__package__) / "forgetting.sql").read_text("utf-8").split(";\n")
_UNVISITED: Final = "DELETE FROM {} WHERE host_id NOT IN (SELECT host_id FROM page WHERE last_at)"
_UNSENT: Final = (
    "SELECT id FROM alert_message WHERE body IS NOT NULL AND id IN (SELECT message_id FROM alert "
    "JOIN observation AS o ON o.id = alert.observation_id "
    "WHERE o.page_id IN (SELECT value FROM json_each(:ids)))"
)


@dataclass(frozen=True, slots=True)
class Forgettable:
    """A page to forget, or another name of it; ``versions`` are counted."""

    page_id: int
    url: str
    fetch_url: str
    versions: int


async def forgettable(
    db: Reader, *, urls: Sequence[str] = (), prefixes: Sequence[str] = ()
) -> list[Forgettable]:
    """Return the pages at these canonical URLs, with their other names, and those that begin so."""
    rows = await db.execute_fetchall(
        "SELECT p.id, p.url, p.fetch_url, (SELECT count(*) FROM version WHERE page_id = p.id) "
        "FROM page AS p WHERE p.url IN (SELECT value FROM json_each(:urls)) OR p.alias_of IN "
        "(SELECT id FROM page WHERE url IN (SELECT value FROM json_each(:urls))) OR EXISTS "
        "(SELECT 1 FROM json_each(:prefixes) WHERE substr(p.url, 1, length(value)) = value) "
        "ORDER BY p.id",
        {"urls": as_json(list(urls)), "prefixes": as_json(list(prefixes))},
    )
    return [Forgettable(*row) for row in rows]


async def forget(
    database: Database,
    pages: Sequence[Forgettable],
    now: float,
    *,
    refused: bool,
    prefixes: Sequence[str] = (),
    origins: Collection[str] = (),
) -> None:
    """Forget pages, and write the file anew without what was deleted now and before.

    The dictionaries of these ``origins`` go, too: they hold pieces of any of their pages. If
    ``refused``, neither the pages nor what begins with one of the ``prefixes`` is fetched again,
    else they may be.

    Raises:
        StoreError: the store cannot be written, or the disk has no room to write it anew.
    """
    await database.write(partial(_refuse, prefixes=prefixes, now=now, refused=refused))
    ids = [each.page_id for each in pages]
    for first in range(0, len(ids), _BATCH):
        some = ids[first : first + _BATCH]
        await database.write(partial(_forget, ids=some, now=now, refused=refused))
    await _forget_dictionaries(database, origins)
    figures = ("site_day", "site_outlook")
    await database.write(lambda db: [db.execute(_UNVISITED.format(each)) for each in figures])
    if (indexed := index()) is not None:
        await database.write(indexed.compact)
    await compact(database)


async def _forget_dictionaries(database: Database, origins: Collection[str]) -> None:
    """Delete the dictionaries of these origins, once the bodies that need them are packed anew."""
    keys = await database.write(partial(observations.dictionaries_of, origins=origins))
    if not keys:
        return
    digests = await database.write(partial(observations.packed_with, keys=keys))
    for first in range(0, len(digests), _BATCH):
        some = digests[first : first + _BATCH]
        await database.write(partial(observations.unpack, digests=some))
    await database.write(partial(observations.drop_dictionaries, keys=keys))


def _refuse(db: sqlite3.Connection, prefixes: Sequence[str], now: float, *, refused: bool) -> None:
    if refused:
        db.executemany("INSERT OR REPLACE INTO refusal VALUES (?, ?)", [(p, now) for p in prefixes])
    else:
        db.executemany("DELETE FROM refusal WHERE prefix = ?", [(p,) for p in prefixes])


def _forget(db: sqlite3.Connection, ids: Sequence[int], now: float, *, refused: bool) -> None:
    values: dict[str, object] = {"ids": as_json(list(ids)), "refused": refused}
    values["unsent"] = as_json([row[0] for row in db.execute(_UNSENT, values)])
    if (indexed := index()) is not None:
        indexed.forget(db, ids)
    with unguarded(db, "observation"), unguarded(db, "claim"):
        for deed in _DEEDS:
            db.execute(deed, values)
    for page_id in ids:
        near_duplicates.revise(db, page_id)
    changefeed.forget(db, ids, now)
