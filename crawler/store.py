"""A store as programs read it: documents, histories, differences and the changefeed."""

import asyncio
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent import futures
from datetime import datetime
from math import inf
from pathlib import Path
from time import monotonic
from typing import Final, TypeAlias, TypeVar

from aiosqlite import Connection as Reader

from freshet.config.loading import load
from freshet.config.settings import Settings
from freshet.crawler.changefeed import Batch, Change, Changefeed
from freshet.crawler.documents import (
    Documents,
    StoredDocument,
    UnknownPage,
    VersionDifference,
    difference,
    final,
)
from freshet.crawler.importance import pattern
from freshet.crawler.network import parser_of
from freshet.crawler.reduce.parser_process import Parser, ParserLost
from freshet.storage.database import StoreError
from freshet.storage.queries import page
from freshet.storage.queries.page import PastObservation

T = TypeVar("T")
#: A version: its number in the history, from the end if negative, or a moment.
Version: TypeAlias = int | str | datetime

#: Seconds after which a consumer that waits looks whether the store was replaced.
_HEARTBEAT_S: Final = 60.0


class Store:
    """A store, opened read-only, also beside the program that writes it; as a context it closes.

    Any thread may call it, also one with a running event loop: it has a thread and a loop of its
    own. ``config`` is a settings file, else the usual ones.

    Raises:
        StoreError: there is no such store, or it cannot be read.
        ConfigError: a setting is wrong.
    """

    def __init__(self, path: str | Path = "crawl.db", *, config: str | Path | None = None) -> None:
        self.path = Path(path)
        settings, _ = load(None if config is None else Path(config), {})
        self._worker = _Worker(self.path, settings)
        #: Closes the store; this happens by itself if it is forgotten, or the program ends.
        self.close = weakref.finalize(self, self._worker.close)
        try:
            self._read(lambda *_: asyncio.sleep(0))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def page(self, url: str, version: Version | None = None) -> StoredDocument:
        """Return the document of a page: of its last significant version, or of the one wanted.

        Raises:
            UnknownPage: the store does not have it.
            ValueError: the URL or the version is none.
            StoreError: the store cannot be read.
        """
        return self._read(lambda db, made, _: made.find(db, url, _words(version)))

    def text(self, url: str, version: Version | None = None) -> str:
        """Return the main content as Markdown; raises as :meth:`page`, also if it is not kept."""
        found = self.page(url, version)
        if found.missing is not None:
            raise UnknownPage(f"{found.url}: {found.missing}")
        return found.markdown

    def history(self, url: str, limit: int = -1) -> list[PastObservation]:
        """Return the visits to a page, newest first; raises as :meth:`page`."""

        async def read(db: Reader, _made: Documents, _parser: Parser) -> list[PastObservation]:
            return await page.observations(db, (await final(db, url)).page_id, limit)

        return self._read(read)

    def diff(
        self,
        url: str,
        a: Version | None = None,
        b: Version | None = None,
        *,
        all: bool = False,  # noqa: A002 - the word of the command line
    ) -> VersionDifference:
        """Compare version ``a`` of a page with ``b``; without them, the last significant change.

        With ``all``, versions that differ by noise only count, too. Raises as :meth:`page`.
        """
        wanted = _words(a), _words(b)
        return self._read(lambda db, _, parser: difference(db, parser, url, *wanted, noise=all))

    def changefeed(
        self,
        since: str | None = None,
        *,
        docs: bool = True,
        wait: float | bool = False,
        match: str | None = None,
        all: bool = False,  # noqa: A002 - the word of the command line
    ) -> "_Changes":
        """Return the changes since a cursor (None: all, ``now``: none), for ``for``, ``async for``.

        ``docs`` adds their documents. At the end it waits for more until none has come for ``wait``
        seconds; True is for ever. ``match`` is a pattern of whole URLs, in which ``*`` is anything.

        Raises, when it is iterated:
            CursorGone: what changed since is not known in full: start anew.
            ValueError: ``since`` is no cursor.
            StoreError: the store cannot be read.
        """
        wanted = None if match is None else pattern(match)

        def more(place: str, wait_s: float) -> "futures.Future[Batch]":
            return self._worker.submit(
                lambda made, _: Changefeed(
                    self.path, made if docs else None, noise=all, match=wanted
                ).awaited(place, wait_s)
            )

        return _Changes(more, since or "0", inf if wait is True else float(wait))

    def _read(self, work: Callable[[Reader, Documents, Parser], Awaitable[T]]) -> T:
        async def done(made: Documents, parser: Parser) -> T:
            async with page.snapshot(self.path) as db:
                return await work(db, made, parser)

        return _result(self._worker.submit(done))


class _Changes(Iterator[Change], AsyncIterator[Change]):
    """Changes in their order, for one consumer; iterated again, it goes on.

    ``cursor`` is the one after the last change that was handed out.
    """

    def __init__(
        self, more: "Callable[[str, float], futures.Future[Batch]]", since: str, wait_s: float
    ) -> None:
        self.cursor = self._place = since
        self._more = more
        self._wait_s = wait_s
        self._ends_at: float | None = None
        self._changes = deque[Change]()

    def __next__(self) -> Change:
        while not self._changes:
            if not self._take(_result(self._ask())):
                raise StopIteration
        return self._given()

    async def __anext__(self) -> Change:
        while not self._changes:
            if not self._take(await asyncio.wrap_future(self._ask())):
                raise StopAsyncIteration
        return self._given()

    def _ask(self) -> "futures.Future[Batch]":
        if self._ends_at is None:
            self._ends_at = monotonic() + self._wait_s
        return self._more(self._place, max(0.0, min(self._ends_at - monotonic(), _HEARTBEAT_S)))

    def _take(self, batch: Batch) -> bool:
        """Take what came; return False at the end: nothing did within the time."""
        self._changes.extend(batch.changes)
        self._place = batch.cursor
        if batch.changes or self._ends_at is None or monotonic() < self._ends_at:
            return True
        self.cursor, self._ends_at = batch.cursor, None
        return False

    def _given(self) -> Change:
        self._ends_at = None
        change = self._changes.popleft()
        self.cursor = change.seq
        return change


class _Worker:
    """An event loop on a thread of its own, with a parser and the cache of documents."""

    def __init__(self, path: Path, settings: Settings) -> None:
        self._path = path
        self._parser = parser_of(settings)
        self._lock, self._is_closed = threading.RLock(), False
        self._told_to_close = asyncio.Event()
        self._loop = futures.Future[asyncio.AbstractEventLoop]()
        # The program's end does not wait for a daemon thread: it closes the store before.
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="freshet-store", daemon=True
        )
        self._thread.start()

    async def _serve(self) -> None:
        self._documents = Documents(self._path, self._parser)
        self._loop.set_result(asyncio.get_running_loop())
        await self._told_to_close.wait()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._documents.close()
        await self._parser.close()

    def submit(self, work: Callable[[Documents, Parser], Awaitable[T]]) -> "futures.Future[T]":
        """Begin some work; any thread may wait for its result."""

        async def done() -> T:
            try:
                return await work(self._documents, self._parser)
            except ParserLost as error:
                raise StoreError(
                    f"{self._path}: a document could not be made now ({error}); try again"
                ) from error

        loop = self._loop.result()
        with self._lock:
            if self._is_closed:
                raise StoreError(f"{self._path}: it was closed in this program")
            return asyncio.run_coroutine_threadsafe(done(), loop)

    def close(self) -> None:
        """End the work under way, the parser's processes and the thread."""
        loop = self._loop.result()
        with self._lock:
            self._is_closed = True
            loop.call_soon_threadsafe(self._told_to_close.set)
        # The garbage collector calls this in any thread, also in this one.
        if self._thread is not threading.current_thread():
            self._thread.join()


def _words(version: Version | None) -> str | None:
    return None if version is None else str(version)


def _result(work: "futures.Future[T]") -> T:
    """Wait for some work; an exception in this thread, such as Ctrl-C, ends that, too."""
    try:
        return work.result()
    except futures.CancelledError as error:
        raise StoreError("the store was closed meanwhile") from error
    except BaseException:
        work.cancel()
        raise
