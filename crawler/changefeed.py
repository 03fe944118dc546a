"""The changefeed as consumers read it: entries in JSON, in order, with documents if wanted."""

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aiosqlite import Connection as Reader

from freshet.crawler.clock import iso
from freshet.crawler.documents import Documents, StoredDocument
from freshet.storage.database import reading
from freshet.storage.queries import page
from freshet.storage.tables import changefeed
from freshet.storage.tables.changefeed import Change, Position

#: How often a waiting consumer looks whether something was committed: microseconds of work.
_POLL_S: Final = 0.1
#: Entries of one read: a snapshot of the store is held for so long.
BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class Batch:
    """Entries in their order, and the cursor after them, which the consumer is to keep."""

    entries: list[dict[str, Any]]
    cursor: str


@dataclass(frozen=True, slots=True)
class Changefeed:
    """The changes of a store's documents: each page once, by its last state (as in CouchDB).

    ``documents`` are read along if given. ``noise`` asks also for versions that differ by noise
    only, ``match`` for the changes of pages whose whole URL matches.
    """

    path: Path
    documents: Documents | None = None
    noise: bool = False
    match: re.Pattern[str] | None = None

    async def read(self, since: str, limit: int = BATCH) -> Batch:
        """Return up to ``limit`` changes after a cursor, after ``0`` (all) or ``now`` (none).

        Raises:
            ValueError: ``since`` is no cursor.
            CursorGone: what changed since is not known in full: start anew.
            StoreError: the store cannot be read.
            ParserLost: a document could not be made now: try again later.
        """
        async with page.snapshot(self.path) as db:
            after = await changefeed.position(db, since)
            found, after = await changefeed.changes(
                db, after, limit, noise=self.noise, match=self.match
            )
            made: dict[int, StoredDocument] = {}
            if self.documents is not None:
                wanted = [each.version_id for each in found if each.version_id is not None]
                made = await self.documents.read(db, wanted)
        entries = []
        for each in found:
            document = made.get(each.version_id or 0)
            entries.append(_entry(each, str(Position(after.epoch, each.seq)), document))
            if document is not None:
                await asyncio.sleep(0)
        return Batch(entries, str(after))

    async def awaited(self, since: str, wait_s: float, limit: int = BATCH) -> Batch:
        """Return the changes after a cursor; where there are none, wait for some for so long.

        Raises as :meth:`read`.
        """
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + wait_s
        async with reading(self.path) as db:
            while True:
                # Before the read: no commit falls between that and the wait.
                before = await _commits(db)
                batch = await self.read(since, limit)
                if batch.entries or loop.time() >= give_up_at:
                    return batch
                since = batch.cursor
                # Other processes commit, too: nothing would set an event.
                while await _commits(db) == before and loop.time() < give_up_at:  # noqa: ASYNC110
                    await asyncio.sleep(_POLL_S)


async def _commits(db: Reader) -> int:
    """Return a number that differs after each commit by others."""
    ((number,),) = await db.execute_fetchall("PRAGMA data_version")
    return int(number)


def _entry(change: Change, cursor: str, document: StoredDocument | None) -> dict[str, Any]:
    """Return a change in JSON, as CouchDB's feeds do."""
    entry: dict[str, Any] = {"seq": cursor, "id": change.url}
    if change.version_id is None:
        entry["deleted"] = True
    if change.moved_to is not None:
        entry["moved_to"] = change.moved_to
    entry["change"] = {
        "kind": change.kind,
        "at": iso(change.at),
        "resemblance": change.resemblance,
        "blocks_added": change.blocks_added,
        "blocks_removed": change.blocks_removed,
    }
    if document is not None:
        entry["doc"] = document.as_json()
    return entry
