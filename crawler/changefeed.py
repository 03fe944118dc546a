"""The changefeed as consumers read it: entries in JSON, in order, with documents if wanted."""

import asyncio
import re
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from aiosqlite import Connection as Reader

from freshet.crawler.clock import calendar, iso
from freshet.crawler.documents import Documents, StoredDocument
from freshet.storage.database import reading
from freshet.storage.queries import page
from freshet.storage.tables import changefeed
from freshet.storage.tables.changefeed import ChangeKind

#: How often a waiting consumer looks whether something was committed: microseconds of work.
_POLL_S: Final = 0.1
#: Seconds after which a consumer that waits looks whether the store was replaced.
HEARTBEAT_S: Final = 60.0
#: Entries of one read: a snapshot of the store is held for so long.
BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class Change:
    """The last change of a page's document.

    ``seq`` is the cursor after it, ``id`` the URL, ``at`` the time in UTC. A page that was
    ``deleted`` has no document any more; ``moved_to`` is the new URL of one that has moved for
    good. ``doc`` is None also where documents were not asked for.
    """

    seq: str
    id: str
    deleted: bool
    moved_to: str | None
    kind: ChangeKind
    at: datetime
    resemblance: float | None
    blocks_added: int | None
    blocks_removed: int | None
    doc: StoredDocument | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the change in JSON, as CouchDB's feeds do."""
        entry: dict[str, Any] = {"seq": self.seq, "id": self.id}
        if self.deleted:
            entry["deleted"] = True
        if self.moved_to is not None:
            entry["moved_to"] = self.moved_to
        entry["change"] = {name: getattr(self, name) for name in _OF_THE_VISIT}
        entry["change"]["at"] = iso(self.at.timestamp())
        if self.doc is not None:
            entry["doc"] = self.doc.as_json()
        return entry


_OF_THE_VISIT: Final = ("kind", "at", "resemblance", "blocks_added", "blocks_removed")


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

    async def read(self, since: str, limit: int = BATCH) -> tuple[list[Change], str]:
        """Return up to ``limit`` changes after a cursor, ``0`` (all) or ``now`` (none).

        With them comes the cursor after them, which the consumer is to keep.

        Raises:
            ValueError: ``since`` is no cursor.
            CursorGone: what changed since is not known in full: start anew.
            StoreError: the store cannot be read, or a document cannot be made now.
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
        told = [
            Change(
                seq=str(replace(after, seq=each.seq)),
                id=each.url,
                deleted=each.version_id is None,
                moved_to=each.moved_to,
                kind=each.kind,
                at=calendar(each.at),
                resemblance=each.resemblance,
                blocks_added=each.blocks_added,
                blocks_removed=each.blocks_removed,
                doc=made.get(each.version_id or 0),
            )
            for each in found
        ]
        return told, str(after)

    async def awaited(
        self, since: str, wait_s: float, limit: int = BATCH
    ) -> tuple[list[Change], str]:
        """Return the changes after a cursor; where there are none, wait for some for so long.

        Raises as :meth:`read`.
        """
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + wait_s
        async with reading(self.path) as db:
            while True:
                # Before the read: no commit falls between that and the wait.
                before = await _commits(db)
                found, since = await self.read(since, limit)
                if found or loop.time() >= give_up_at:
                    return found, since
                # Other processes commit, too: nothing would set an event.
                while await _commits(db) == before and loop.time() < give_up_at:  # noqa: ASYNC110
                    await asyncio.sleep(_POLL_S)


async def _commits(db: Reader) -> int:
    """Return a number that differs after each commit by others."""
    ((number,),) = await db.execute_fetchall("PRAGMA data_version")
    return int(number)
