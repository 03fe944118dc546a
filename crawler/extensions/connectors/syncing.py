"""The loop that keeps a target in step with the changefeed of a store."""

import asyncio
from array import array
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final, TypeAlias

from freshet.crawler.extensions.connectors.embedding import TEXTS_AT_ONCE, Embedder, vectors_of
from freshet.crawler.extensions.connectors.errors import TargetError, TargetLost
from freshet.crawler.extensions.connectors.targets import (
    Batch,
    PageContent,
    Target,
    TargetPlace,
    Vector,
)
from freshet.crawler.fetch.bounds import LruCache
from freshet.crawler.read.changefeed import BATCH, HEARTBEAT_S, Change, Changefeed
from freshet.crawler.read.chunks import Chunk, to_embed
from freshet.crawler.read.library import Library
from freshet.crawler.run.terminal import counted
from freshet.storage.errors import CursorGone

#: Seconds after which a target that did not answer is opened again, and how often.
_REST_S: Final = 2.0
_ATTEMPTS: Final = 60
#: Characters of a token, about.
_TOKEN_CHARS: Final = 4
#: Vectors that are remembered, more than a batch of changes has: 50 MB of 1,536 dimensions.
_REMEMBERED: Final = 4_096

Tell: TypeAlias = Callable[[str], None]


@dataclass(slots=True)
class SyncCounts:
    """The work that a synchronisation did."""

    entries: int = 0
    pages: int = 0
    chunks: int = 0
    embedded: int = 0

    @property
    def words(self) -> str:
        """The counts in words."""
        done = f"{counted(self.entries, 'change')}, {counted(self.chunks, 'passage')} written"
        return f"{done}, {self.embedded:,} embedded" if self.embedded else done


class Synchronisation:
    """Synchronisation of one target; ``counts`` has the numbers of rows written and deleted."""

    def __init__(
        self,
        library: Library,
        connect: Callable[[], Target],
        embedder: Embedder | None,
        chunk_chars: int,
        tell: Tell,
    ) -> None:
        """Read from a library, and write to the target that ``connect`` opens."""
        self._connect, self._embedder, self._tell = connect, embedder, tell
        self._changes = Changefeed(library, docs=True, chunk_chars=chunk_chars)
        self._chars, self._was_there = chunk_chars, False
        #: Vectors by text. They are needed again for a lost target, and for a page that moves,
        #: returns or repeats another one's text.
        self._made: LruCache[str, Vector] = LruCache(_REMEMBERED)
        self.counts = SyncCounts()

    async def run(self, *, once: bool) -> None:
        """Write the changes since the target's place; without ``once`` continue with new changes.

        A target whose connection is lost is opened again, and continues from its place.

        Raises:
            TargetError: the target cannot be written, or stays unavailable.
            StoreError: the store cannot be read.
        """
        attempts, entries = 0, -1
        while True:
            try:
                target = self._connect()
                try:
                    await self._follow(target, once=once)
                    return
                finally:
                    target.close()
            except TargetLost as error:
                attempts = attempts + 1 if entries == self.counts.entries else 1
                # One that was never reached has a wrong address.
                if attempts == _ATTEMPTS or not self._was_there:
                    raise
                entries = self.counts.entries
                self._tell(f"{error}; trying again")
                await asyncio.sleep(_REST_S)

    async def _follow(self, target: Target, *, once: bool) -> None:
        # What the target has, and where to go on: they differ where a generation begins.
        had = target.place()
        self._was_there = True
        place = self._begun(had)
        while True:
            try:
                found, cursor = await self._more(place, once=once)
            except CursorGone:
                place = _anew(place)
                self._tell("the place in the changefeed is lost: all pages are written again")
                continue
            if not found and (place.is_whole or self._changes.down):
                # What a shard has that is down stays until it is back.
                if once:
                    return
                continue
            after = replace(place, cursor=cursor)
            if found:
                had = place = await self._write(target, found, had or place, after)
            else:
                had = place = self._finished(target, had or place, after)

    async def _more(self, place: TargetPlace, *, once: bool) -> tuple[list[Change], str]:
        """Return the changes after a place; without any, wait for one unless ``once``."""
        try:
            if once or not (place.is_whole or self._changes.down):
                return await self._changes.read(place.cursor, BATCH)
            return await self._changes.awaited(place.cursor, HEARTBEAT_S, BATCH)
        except ValueError as error:
            raise TargetError(f"the target has a wrong cursor: {error}") from error

    def _finished(self, target: Target, had: TargetPlace, after: TargetPlace) -> TargetPlace:
        """End a generation; return the place that the target has now."""
        after = replace(after, is_whole=True)
        target.finish(had, after)
        self._tell(f"in step: {self.counts.words}")
        return after

    def _begun(self, had: TargetPlace | None) -> TargetPlace:
        """Return the place to continue from, given the one in the target."""
        name = self._embedder.name if self._embedder is not None else ""
        if had is None:
            return TargetPlace(chunk_chars=self._chars, model=name)
        if had.model != name:
            filled = f"with vectors of {had.model}" if had.model else "without vectors"
            raise TargetError(f"the target was filled {filled}; keep to that, or name another one")
        if had.chunk_chars != self._chars:
            self._tell("passages have another length: all pages are written again")
            return replace(_anew(had), chunk_chars=self._chars)
        return had

    async def _write(
        self, target: Target, found: Sequence[Change], had: TargetPlace, after: TargetPlace
    ) -> TargetPlace:
        held = self._held(target, found) if self._embedder is not None else set()
        portions = [*_portions(found, held, TEXTS_AT_ONCE if self._embedder is not None else inf)]
        for some in portions:
            cursor = after.cursor if some is portions[-1] else some[-1].seq
            place = replace(after, cursor=cursor, dimensions=had.dimensions)
            had = await self._write_portion(target, some, had, place, held=held)
        return had

    def _held(self, target: Target, found: Sequence[Change]) -> set[str]:
        """Return the ids of the passages that the target has, and remember their vectors.

        A passage that is deleted now and returns later has its vector then, as has a moved page.
        """
        texts = {each.markdown: None for change in found for each in change.chunks or ()}
        held = target.held([each.id for each in found], [*texts])
        for each in held:
            if each.vector is not None:
                self._made[to_embed(each.headings, each.markdown)] = array("d", each.vector)
        return {each.id for each in held}

    async def _write_portion(
        self,
        target: Target,
        found: Sequence[Change],
        had: TargetPlace,
        after: TargetPlace,
        *,
        held: Container[str],
    ) -> TargetPlace:
        """Write some changes; return the place that the target has now."""
        pages = [*_contents(found)]
        vectors, dimensions = dict[str, Vector](), after.dimensions
        if self._embedder is not None:
            new = [each for page in pages for each in page.chunks if each.id not in held]
            vectors, embedded = await self._vectors(self._embedder, new, dimensions)
            self.counts.embedded += embedded
            dimensions = dimensions or len(next(iter(vectors.values()), ()))
        after = replace(after, dimensions=dimensions)
        target.apply(Batch(pages, had, after, vectors))
        self.counts.entries += len(found)
        self.counts.pages += len(pages)
        self.counts.chunks += sum(len(page.chunks) for page in pages)
        return after

    async def _vectors(
        self, embedder: Embedder, new: Sequence[Chunk], dimensions: int
    ) -> tuple[dict[str, Vector], int]:
        """Return the vectors of passages by id, and the number that was computed now."""
        known = {it.to_embed: self._made.use(it.to_embed) for it in new}
        texts = [text for text, vector in known.items() if vector is None]
        vectors = {text: vector for text, vector in known.items() if vector is not None}
        if texts:
            made = await vectors_of(embedder, texts, dimensions)
            for text, vector in zip(texts, made, strict=True):
                vectors[text] = self._made[text] = array("d", vector)
        return {each.id: vectors[each.to_embed] for each in new}, len(texts)


def _anew(place: TargetPlace) -> TargetPlace:
    """Return the beginning of the next generation."""
    return replace(place, cursor="0", generation=place.generation + 1, is_whole=False)


def _portions(found: Sequence[Change], held: Container[str], most: float) -> Iterator[list[Change]]:
    """Yield changes with about this many passages to embed: a kill loses at most their vectors.

    A page is not divided.
    """
    some, count = list[Change](), 0
    for change in found:
        new = sum(each.id not in held for each in change.chunks or ())
        if some and count + new > most:
            yield some
            some, count = [], 0
        some.append(change)
        count += new
    if some:
        yield some


def _contents(found: Sequence[Change]) -> Iterator[PageContent]:
    """Yield the pages of changes, each once in a batch."""
    for change in found:
        if change.doc is None:
            yield PageContent(change.id)
        else:
            at = change.doc.fetched_at.timestamp(), change.doc.changed_at.timestamp()
            yield PageContent(change.id, change.chunks or (), *at)


async def count_tokens(library: Library, chunk_chars: int) -> tuple[int, int]:
    """Return the number of passages of all pages, and about how many tokens they have."""
    changes = Changefeed(library, docs=True, chunk_chars=chunk_chars)
    chunks, chars, place = 0, 0, "0"
    while True:
        found, place = await changes.read(place, BATCH)
        if not found:
            return chunks, chars // _TOKEN_CHARS
        for change in found:
            chunks += len(change.chunks or ())
            chars += sum(len(each.to_embed) for each in change.chunks or ())
