"""The changefeed as consumers read it: entries in JSON, in order, with documents if wanted."""

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from aiosqlite import Connection as Reader

from freshet.crawler.errors import UsageError
from freshet.crawler.frontier.clock import calendar, iso
from freshet.crawler.read.chunks import Chunk
from freshet.crawler.read.documents import Documents, StoredDocument, forbidden
from freshet.crawler.read.library import Library, Read
from freshet.crawler.robots.preferences import USES, Preference, as_json, from_text
from freshet.storage.queries import page
from freshet.storage.records import Doubt
from freshet.storage.stores import none_answers
from freshet.storage.tables import changefeed
from freshet.storage.tables.changefeed import ChangeKind, LastChange, Position

#: Seconds after which a consumer that waits looks whether the store was replaced.
HEARTBEAT_S: Final = 60.0
#: Entries of one read. A read holds a snapshot of the store.
BATCH: Final = 200


@dataclass(frozen=True, slots=True, repr=False)
class Change:
    """The last change of a page's document.

    ``seq`` is the cursor after it, ``id`` the URL, ``at`` the time in UTC. A page that was
    ``deleted`` has no document any more; ``moved_to`` is the new URL of one that has moved for
    good. ``doc`` is None also if documents were not requested. The page has had no content since
    ``no_content_since``; it keeps its document. ``kinds`` names the parts that differ: words,
    links, images, state, order, layout, or the statements about the page's use (preferences).
    ``doubt`` is the reason why the page may not be content, ``preferences`` the statements about
    its use; a page that forbids a purpose is reported as deleted.
    ``chunks`` has the chunks of ``doc`` if requested, and ``removed`` the ids that the page had at
    the cursor and has lost; None: unknown, so delete all other chunks of the page.
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
    no_content_since: datetime | None = None
    kinds: tuple[str, ...] = ()
    doubt: Doubt | None = None
    preferences: tuple[Preference, ...] = ()
    chunks: tuple[Chunk, ...] | None = None
    removed: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"<Change {self.seq}: {self.id} {self.kind} at {self.at:%Y-%m-%d %H:%M}>"

    def as_json(self) -> dict[str, Any]:
        """Return the change in JSON, as CouchDB's feeds do."""
        entry: dict[str, Any] = {"seq": self.seq, "id": self.id}
        if self.deleted:
            entry["deleted"] = True
        if self.moved_to is not None:
            entry["moved_to"] = self.moved_to
        if self.no_content_since is not None:
            entry["no_content_since"] = iso(self.no_content_since.timestamp())
        if self.doubt is not None:
            entry["doubtful"] = asdict(self.doubt)
        if self.preferences:
            entry["preferences"] = as_json(self.preferences)
        entry["change"] = {name: getattr(self, name) for name in _OF_THE_VISIT}
        entry["change"]["at"] = iso(self.at.timestamp())
        if self.doc is not None:
            entry["doc"] = self.doc.as_json(self.chunks)
        if self.chunks is not None:
            entry["removed"] = self.removed
        return entry


_OF_THE_VISIT: Final = ("kind", "at", "resemblance", "blocks_added", "blocks_removed", "kinds")


def uses_of(names: Iterable[str], of: str) -> frozenset[str]:
    """Return uses of pages by their names; raise UsageError for another, with ``of`` before it."""
    found = frozenset(names)
    if unknown := sorted(found.difference(USES)):
        raise UsageError(f"{of} {unknown[0][:80]}: accepted are {', '.join(USES)}")
    return found


def _still_waiting(unasked: list[int], full: list[int], left: int) -> list[int]:
    """Return the shards that are asked next: those that were ``full`` may have more."""
    return unasked + full if left > 0 else []


@dataclass(frozen=True, slots=True)
class Changefeed:
    """The changes of a store's documents: each page once, by its last state (as in CouchDB).

    ``docs`` are read along if wanted, with ``chunk_chars`` cut into chunks of at most this many
    characters. ``noise`` adds versions that differ by noise only, ``match`` selects pages by their
    whole URL. Pages that forbid one of the uses ``usage``, or a purpose of the settings, are
    reported as deleted. For a folder of shards the cursor has a place for each; ``down`` names the
    shards that could not be read lately, with the reason. They keep their places.
    """

    library: Library
    docs: bool = False
    noise: bool = False
    match: re.Pattern[str] | None = None
    chunk_chars: int | None = None
    usage: frozenset[str] = frozenset()
    down: dict[int, str] = field(default_factory=dict)

    async def read(self, since: str, limit: int = BATCH) -> tuple[list[Change], str]:
        """Return up to ``limit`` changes after a cursor, ``0`` (all) or ``now`` (none).

        The second value is the cursor after them; the consumer stores it.

        Raises:
            ValueError: ``since`` is not a cursor.
            CursorGone: the changes since are no longer known in full: start again at ``0``.
            StoreError: the store cannot be read, or a document cannot be made now.
        """
        # Of a thousand readers that a commit wakes few read at a time.
        async with self.library.turn:
            return await self._read(since, limit)

    async def _read(self, since: str, limit: int) -> tuple[list[Change], str]:
        if (stores := self.library.shards) is None:
            found, after, made = await self.library.one(0, self._reading(since, limit))
            return [_change(it, str(replace(after, seq=it.seq)), made) for it in found], str(after)
        count, (places, turn) = len(stores.paths), changefeed.unpacked(since)
        places = {shard: place for shard, place in places.items() if shard < count}
        return await self._read_shards(count, places, turn, since=since, limit=limit)

    async def _read_shards(
        self, count: int, places: dict[int, str], turn: int, *, since: str, limit: int
    ) -> tuple[list[Change], str]:
        """Return the changes of all shards, each of which has its part of the limit."""
        told, left = list[Change](), limit
        # Each shard in turn, then the rest of the limit that others did not use.
        waiting = [(turn + n) % count for n in range(count)]
        while waiting:
            # Without a limit all are asked, for their places.
            asked = waiting[:left] or waiting
            share = left // len(asked)
            found_of = await self._from(asked, places, since, share)
            for shard, (found, after, made) in found_of.items():
                turn = (shard + 1) % count if found else turn
                for it in found:
                    places[shard] = str(replace(after, seq=it.seq))
                    told.append(_change(it, changefeed.packed(places, turn), made))
                places[shard] = str(after)
                left -= len(found)
            full = [it for it in asked if it in found_of and len(found_of[it][0]) == share]
            waiting = _still_waiting(waiting[len(asked) :], full, left)
        if len(self.down) == count:
            raise none_answers(self.down)
        return told, changefeed.packed(places, turn)

    async def _from(
        self, asked: Collection[int], places: Mapping[int, str], since: str, limit: int
    ) -> "dict[int, _Found]":
        """Read these shards; one without a place in the cursor begins at 0."""
        anew = since if since == "now" else "0"
        found, down = await self.library.each(
            lambda it: self._reading(places.get(it, anew), limit) if it in asked else None
        )
        for shard in found:
            self.down.pop(shard, None)
        self.down.update(down)
        return found

    def _reading(self, since: str, limit: int) -> "Read[_Found]":
        return partial(
            _changes, since=since, limit=limit, docs=self.docs, noise=self.noise, match=self.match,
            chunk_chars=self.chunk_chars, usage=self.usage,
        )  # fmt: skip

    async def awaited(
        self, since: str, wait_s: float, limit: int = BATCH
    ) -> tuple[list[Change], str]:
        """Return the changes after a cursor; without any, wait for some up to this time.

        Raises as :meth:`read`.
        """
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + wait_s
        while True:
            # Before the read: no commit falls between that and the wait.
            before = await self.library.commits()
            found, since = await self.read(since, limit)
            if found or loop.time() >= give_up_at:
                return found, since
            await self.library.changed(before, give_up_at)


class _Content(NamedTuple):
    """A document as delivered: with its chunks and the ids of removed ones."""

    doc: StoredDocument
    chunks: tuple[Chunk, ...] | None = None
    removed: tuple[str, ...] | None = None


#: Changes of one store, the place after them, and documents by version.
_Found: TypeAlias = tuple[list[LastChange], Position, dict[int, _Content]]


async def _changes(
    made: Documents,
    since: str,
    limit: int,
    *,
    docs: bool,
    noise: bool,
    match: re.Pattern[str] | None,
    chunk_chars: int | None,
    usage: frozenset[str],
) -> _Found:
    async with page.snapshot(made.path) as db:
        place = await changefeed.position(db, since)
        found, after = await changefeed.changes(db, place, limit, noise=noise, match=match)
        found = [_permitted(it, made.purposes | usage) for it in found]
        if chunk_chars is not None:
            # The store does not record which noise a consumer has received.
            told = {} if noise else await changefeed.told_versions(db, place, found)
            return found, after, await _chunked(made, db, found, told, chunk_chars)
        wanted = [each.version_id for each in found if docs and each.version_id is not None]
        read = await made.read(db, wanted) if docs else {}
    return found, after, {version: _Content(doc) for version, doc in read.items()}


def _permitted(it: LastChange, purposes: Collection[str]) -> LastChange:
    """Return a change, as a deletion if the page forbids one of the purposes."""
    is_forbidden = forbidden(it.preferences, purposes) is not None
    return replace(it, version_id=None) if is_forbidden else it


async def _chunked(
    made: Documents,
    db: Reader,
    found: Iterable[LastChange],
    told: Mapping[int, int | None],
    chars: int,
) -> dict[int, _Content]:
    """Return the contents of changes; ``told`` has the consumer's versions, by page."""
    # First, so that the cache has the documents of now.
    had = await made.read(db, [it for it in told.values() if it is not None], caches=False)
    versions = {it.version_id: it.page_id for it in found if it.version_id is not None}
    contents = dict[int, _Content]()
    for version, doc in (await made.read(db, list(versions))).items():
        page_id, chunks = versions[version], doc.cut(chars)
        before = told.get(page_id)
        old = _ids(had.get(before), chars) if before is not None else ()
        removed = None
        if page_id in told and old is not None:
            stay = {each.id for each in chunks}
            removed = tuple(each for each in old if each not in stay)
        contents[version] = _Content(doc, chunks, removed)
        # Others have a turn between.
        await asyncio.sleep(0)
    return contents


def _ids(doc: StoredDocument | None, chars: int) -> tuple[str, ...] | None:
    """Return the ids of a document's chunks, None where its content is not kept."""
    if doc is None or doc.missing is not None:
        return None
    return tuple(each.id for each in doc.cut(chars))


def _change(it: LastChange, seq: str, made: Mapping[int, _Content]) -> Change:
    content = made.get(it.version_id or 0)
    return Change(
        seq=seq,
        id=it.url,
        deleted=it.version_id is None,
        moved_to=it.moved_to,
        kind=it.kind,
        at=calendar(it.at),
        resemblance=it.resemblance,
        blocks_added=it.blocks_added,
        blocks_removed=it.blocks_removed,
        doc=content and content.doc,
        no_content_since=None if it.no_content_since is None else calendar(it.no_content_since),
        kinds=it.channels,
        doubt=None if it.version_id is None else it.doubt,
        preferences=from_text(it.preferences),
        chunks=content and content.chunks,
        removed=content and content.removed,
    )
