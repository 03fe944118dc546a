"""The stores at a path: one file, or the shards of a folder."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from freshet.config.settings import Settings
from freshet.crawler.admission.site_lists import spellings
from freshet.crawler.errors import UnknownPage
from freshet.crawler.read.documents import Documents
from freshet.crawler.reduce.parser_process import Parser
from freshet.crawler.run.network import shard_of
from freshet.storage.database import write_beside
from freshet.storage.errors import StoreError
from freshet.storage.queries import page
from freshet.storage.stores import Stores, is_folder, open_stores
from freshet.storage.tables.runs import SiteSetting, put_site_setting

T = TypeVar("T")
#: Reads one store. It may be sent to another process, so it is a function of a module or a
#: ``partial`` of one, and returns plain data.
Read: TypeAlias = Callable[[Documents], Awaitable[T]]
#: What shards answered, and why others are down.
Answers: TypeAlias = tuple[dict[int, T], dict[int, str]]

#: Redirects from shard to shard that are followed.
_HOPS: Final = 5


#: Seconds between checks for commits on behalf of waiting readers; a check takes microseconds.
_POLL_S: Final = 0.1
#: Most shards that are checked at this rate; with more, checks are rarer.
_POLLED: Final = 100
#: Concurrent reads. Each holds a snapshot and a thread.
_READERS: Final = 16


class Library:
    """The documents of the stores at ``path``; the owner calls :meth:`close`.

    Where shards are on other machines, another :meth:`each` sends the reads there.
    """

    def __init__(self, path: Path, parser: Parser, settings: Settings | None = None) -> None:
        """Read with a parser, which stays the caller's.

        By the settings groups of hosts have one shard each, and pages that forbid one of the
        purposes have no documents; without settings there are none of either.
        """
        self.path, self._parser = path, parser
        self._groups = {} if settings is None else settings.politeness.groups
        self._purposes = () if settings is None else settings.crawl.purpose
        self._documents = dict[Path, Documents]()
        #: Limits concurrent reads.
        self.turn = asyncio.Semaphore(_READERS)
        self._waiting = 0
        self._looking: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._seen: Mapping[int, object] | None = None

    @property
    def shards(self) -> Stores | None:
        """The current stores of a folder; None for a file."""
        return open_stores(self.path) if is_folder(self.path) else None

    async def each(self, read_of: Callable[[int], Read[T] | None]) -> Answers[T]:
        """Return what shards answer to the reads that are theirs; None leaves a shard out.

        A file counts as shard 0.

        Raises:
            UnknownPage: a read raised it.
            StoreError: the file cannot be read, or no shard of the folder can.
        """
        stores, found = open_stores(self.path), dict[int, T]()
        of = {path: read for shard, path in enumerate(stores.paths) if (read := read_of(shard))}
        answers = await stores.each(lambda path: self._answer(of[path], path), of)
        for shard, answer in answers.items():
            if isinstance(answer, UnknownPage):
                raise answer
            found[shard] = answer
        return found, stores.down

    async def _answer(self, read: Read[T], path: Path) -> T | UnknownPage:
        if path not in self._documents:
            self._documents[path] = Documents(path, self._parser, self._purposes)
        try:
            return await read(self._documents[path])
        except UnknownPage as error:
            # The shard is not down.
            return error

    async def one(self, shard: int, read: Read[T]) -> T:
        """Return the answer of a shard; raises StoreError also if the shard is down."""
        found, down = await self.each(lambda it: read if it == shard else None)
        if shard not in found:
            raise StoreError(f"shard {shard} is down: {down[shard]}")
        return found[shard]

    async def home(self, typed: str) -> tuple[int, str]:
        """Return the shard that has the page of a URL, also through redirects, and its URL there.

        Raises:
            UsageError: it is not a URL.
            StoreError: the shard is down.
        """
        if (shards := self.shards) is None:
            return 0, typed
        of = partial(shard_of, shards=shards, groups=self._groups)
        shard = of(spellings(typed)[0])
        for _ in range(_HOPS):
            known = await self.one(shard, asking(page.find, urls=spellings(typed)))
            if known is None or known.alias is None or of(known.alias.url) == shard:
                break
            typed, shard = known.alias.url, of(known.alias.url)
        return shard, typed

    async def commits(self) -> Mapping[int, object]:
        """Return, by shard, a value that differs after each commit."""
        return (await self.each(lambda _: _commits))[0]

    async def changed(self, before: Mapping[int, object], until: float) -> None:
        """Wait for a commit after ``before``, or for the time ``until`` of the event loop.

        One check of a store's files serves all waiting readers. Other processes commit as well, and
        they cannot set an event here.
        """
        self._waiting += 1
        if self._looking is None:
            self._seen = before
            self._looking = asyncio.create_task(self._look())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    while self._seen == before:
                        await self._changed.wait()
        finally:
            self._waiting -= 1
            if not self._waiting and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def _look(self) -> None:
        """Check the files from time to time, and wake all waiting readers when they differ."""
        # A reader that an error wakes reads, and gets the error itself.
        with suppress(StoreError):
            while True:
                await asyncio.sleep(_POLL_S * max(1.0, len(self._seen or ()) / _POLLED))
                seen = await self.commits()
                if seen != self._seen:
                    self._wake(seen)
        self._looking = None
        self._wake(None)

    def _wake(self, seen: Mapping[int, object] | None) -> None:
        self._seen, woken, self._changed = seen, self._changed, asyncio.Event()
        woken.set()

    async def keep(self, it: SiteSetting) -> None:
        """Keep a setting of sites, or a wish, in all shards.

        Raises:
            StoreError: the store, or a shard, does not have it.
        """
        note = noting(_put, it=it)
        _, down = await self.each(lambda _: note)
        for shard, why in down.items():
            raise StoreError(f"shard {shard} does not have it: {why}; send it again")

    def close(self) -> None:
        """Close the caches of documents."""
        for each in self._documents.values():
            each.close()


def asking(query: Callable[..., Awaitable[T]], /, **values: object) -> Read[T]:
    """Return a read that runs a query in one snapshot of the database."""
    return partial(_ask, query, **values)


async def _ask(query: Callable[..., Awaitable[T]], made: Documents, /, **values: object) -> T:
    async with page.snapshot(made.path) as db:
        return await query(db, **values)


def noting(note: Callable[..., Awaitable[T]], /, **values: object) -> Read[T]:
    """Return what notes something in a store, given its path."""
    return partial(_note, note, **values)


async def _note(note: Callable[..., Awaitable[T]], made: Documents, /, **values: object) -> T:
    return await note(made.path, **values)


async def _put(path: Path, it: SiteSetting) -> None:
    await asyncio.to_thread(write_beside, path, lambda db: put_site_setting(db, it))


async def _commits(made: Documents) -> list[tuple[int, int]]:
    """Return the times and sizes of a store's files, which differ after each commit.

    This needs no open connection; a folder would need one for each shard.
    """
    found = []
    for file in (made.path, made.path.with_name(f"{made.path.name}-wal")):
        with suppress(OSError):
            # A reader creates the log as well, but leaves it empty.
            if (told := file.stat()).st_size:
                found.append((told.st_mtime_ns, told.st_size))
    return found
