"""A store as programs read it: documents, histories, differences, search and the changefeed."""

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from concurrent import futures
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from heapq import merge
from itertools import chain, islice
from math import inf
from operator import itemgetter
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from freshet.config.loading import load
from freshet.config.settings import Settings
from freshet.config.sites import pattern
from freshet.crawler.admission.site_lists import spellings
from freshet.crawler.compare.near_duplicates import THRESHOLD, decoded, index_of, optimal_banding
from freshet.crawler.errors import UnknownPage
from freshet.crawler.frontier.clock import calendar, moment_of
from freshet.crawler.read.changefeed import HEARTBEAT_S, Change, Changefeed, uses_of
from freshet.crawler.read.chunks import CHUNK_CHARS, Chunk
from freshet.crawler.read.documents import (
    Documents,
    StoredDocument,
    VersionDifference,
    difference,
    final,
)
from freshet.crawler.read.library import Library, asking
from freshet.crawler.reduce.sketch import Sketch
from freshet.crawler.run.hooks import SearchRequest, searching
from freshet.crawler.run.network import parser_of
from freshet.storage.errors import CursorGone, StoreError
from freshet.storage.queries import overview, page
from freshet.storage.queries.overview import PageChange
from freshet.storage.queries.page import PastObservation
from freshet.storage.tables import near_duplicates

if TYPE_CHECKING:
    from datasketch import MinHashLSH

    from freshet.crawler.read.lists import SearchResult

T = TypeVar("T")
#: A read of the store, done by the worker's thread.
Work: TypeAlias = Callable[[Library], Awaitable[T]]
#: Changes in their order, and the cursor after them.
Batch: TypeAlias = tuple[list[Change], str]
#: A version: its number in the history, from the end if negative, or a moment.
Version: TypeAlias = int | str | datetime

_BEGINS_WITHIN_S: Final = 0.1
_SIGNALS_WITHIN_S: Final = 0.5
#: Pages that are listed by one query.
_LISTED: Final = 1_000
_CLOSED: Final = "the store was closed in this program; open it again"


class Store:
    """A store, opened read-only, also beside the program that writes it; as a context it closes.

    Any thread may call it, also one with a running event loop: it has a thread and a loop of its
    own. ``config`` is a settings file, else the usual ones. Raises StoreError, and ConfigError for
    a wrong setting. For a folder of shards, ``down`` names the shards that could not be read
    lately, with reasons.
    """

    def __init__(self, path: str | Path = "crawl.db", *, config: str | Path | None = None) -> None:
        self.path, self.down = Path(path), dict[int, str]()
        settings, _ = load(None if config is None else Path(config), {})
        self._settings = settings
        self._worker = _Worker(self.path, settings)
        #: Closes the store; this happens by itself if it is forgotten, or the program ends.
        self.close = weakref.finalize(self, self._worker.close)
        try:
            opening = asking(page.find, urls=[])
            self._worker.result(lambda library: library.each(lambda _: opening))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {self.path}>"

    def page(self, url: str, version: Version | None = None) -> StoredDocument:
        """Return the document of a page: of its last significant version, or of the one wanted.

        Raises UnknownPage, a StoreError, and ValueError for an invalid URL or version.
        """
        return self._read(url, partial(_found, version=_words(version)))

    def text(self, url: str, version: Version | None = None) -> str:
        """Return the main content as Markdown; raises as :meth:`page`, also if it is not kept."""
        found = self.page(url, version)
        if found.missing is not None:
            raise UnknownPage(f"{found.url}: {found.missing}")
        return found.markdown

    def pages(self, prefix: str = "") -> "Iterator[PageEntry]":
        """Yield the known pages with this ``prefix`` of their URLs, in the order of URLs.

        Raises a StoreError.
        """
        after: str | None = ""
        while after is not None:
            asked = asking(page.listed, prefix=prefix, after=after, limit=_LISTED)

            async def read(library: Library, asked: Any = asked) -> list[dict[str, Any]]:
                parts, self.down = await library.each(lambda _: asked)
                return list(islice(merge(*parts.values(), key=itemgetter("url")), _LISTED))

            found = self._worker.result(read)
            yield from map(_listed, found)
            after = found[-1]["url"] if len(found) == _LISTED else None

    def changes(
        self,
        since: str | datetime = "7d",
        *,
        limit: int = 1_000,
        all: bool = False,  # noqa: A002 - the word of the command line
    ) -> list[PageChange]:
        """Return the changes since 2d, 1w or a date, newest first, at most ``limit``.

        With ``all`` also pages that appeared or were deleted, refreshed ones, and noise. Raises a
        StoreError, and ValueError for an invalid time.
        """
        at = since.timestamp() if isinstance(since, datetime) else moment_of(since, time())
        asked = asking(overview.since, at=at, limit=limit, all_kinds=all)

        async def read(library: Library) -> list[PageChange]:
            parts, self.down = await library.each(lambda _: asked)
            merged = merge(*(found for found, _ in parts.values()), key=lambda it: -it.at)
            return list(islice(merged, limit))

        return self._worker.result(read)

    def chunks(self, prefix: str = "", chars: int = CHUNK_CHARS) -> Iterator[Chunk]:
        """Yield the chunks of all pages with this ``prefix`` of their URLs, page by page.

        Raises a StoreError, and ValueError for less than 200 characters.
        """
        for change in self.changefeed(match=f"{prefix}*"):
            if change.doc is not None and change.id.startswith(prefix):
                yield from change.doc.cut(chars)

    def history(self, url: str, limit: int = -1) -> list[PastObservation]:
        """Return the visits to a page, newest first; raises as :meth:`page`."""
        return self._read(url, partial(_history, limit=limit))

    def diff(
        self,
        url: str,
        a: Version | None = None,
        b: Version | None = None,
        *,
        all: bool = False,  # noqa: A002 - the word of the command line
    ) -> VersionDifference:
        """Compare version ``a`` of a page with ``b``; without them, the last significant change.

        With ``all``, versions that differ by noise only count as well. Raises as :meth:`page`.
        """
        return self._read(url, partial(difference, before=_words(a), after=_words(b), noise=all))

    def explain(self, url: str) -> list[str]:
        """Return in sentences when a page is visited next, and why; also of a URL without a page.

        Raises a StoreError, and ValueError for an invalid URL.
        """
        return self._read(url, partial(_outlook, settings=self._settings))

    def search(
        self,
        query: str,
        *,
        site: str | None = None,
        since: str | datetime | None = None,
        limit: int = 10,
        offset: int = 0,
        by_importance: bool = False,
    ) -> "list[SearchResult]":
        """Return the pages that match a query best, the best one first, at most ``limit``.

        The query is as on the command line; ``since`` is 2d, 1w or a date. Raises a StoreError
        also where the store has no index, and ValueError for a wrong query.
        """
        asked = SearchRequest(
            query, time(), site=site, since=_words(since), limit=limit, offset=offset,
            by_importance=by_importance,
        )  # fmt: skip

        async def read(library: Library) -> "list[SearchResult]":
            found, self.down = await searching().found(library, self._settings, asked)
            return found

        return self._worker.result(read)

    def sketches(self) -> dict[str, Sketch]:
        """Return the sketch of each page's main text, by URL: `minhash()` is datasketch's object.

        Deleted pages and redirects have none, nor pages that were not visited since an upgrade that
        changed the format. Raises a StoreError.
        """

        async def read(library: Library) -> dict[str, Sketch]:
            found, self.down = await library.each(lambda _: asking(near_duplicates.current))
            return decoded(chain.from_iterable(some.items() for some in found.values()))

        return self._worker.result(read)

    def lsh(self, threshold: float = THRESHOLD) -> "MinHashLSH":
        """Return datasketch's index of the pages by main text, with URLs as keys.

        A query with a page's MinHash gives the candidates that resemble it by ``threshold`` (0 to
        1) or more. Texts of fewer than 20 shingles are left out. Raises a StoreError, and
        ValueError for a threshold that allows one band only.
        """
        return index_of(self.sketches(), optimal_banding(threshold))

    def changefeed(
        self,
        since: str | None = None,
        *,
        docs: bool = True,
        wait: float | bool = False,
        match: str | None = None,
        all: bool = False,  # noqa: A002 - the word of the command line
        chunk_chars: int | None = None,
        usage: Iterable[str] = (),
        start_anew: Callable[[], object] | None = None,
    ) -> "_Changes":
        """Return the changes since a cursor (None: all, ``now``: none), for ``for``, ``async for``.

        ``docs`` adds their documents, ``chunk_chars`` also their ``chunks`` of at most this many
        characters, and the ``removed`` ids. At the end it waits for more until ``wait`` seconds
        pass without a change; True waits for ever. ``match`` is a pattern of whole URLs, in which
        ``*`` is anything. Pages that forbid one of the uses ``usage`` (``"ai-train"`` …) are
        reported as deleted.

        Iterating raises CursorGone if the changes since the cursor are no longer known in full.
        With ``start_anew`` it calls this function, which must empty the consumer's copy, and begins
        at the start. It raises ValueError for an invalid cursor, and StoreError.
        """
        wanted = None if match is None else pattern(match)
        uses = uses_of(usage, "usage")

        def more(place: str, wait_s: float) -> "Work[Batch]":
            return lambda library: Changefeed(
                library,
                docs,
                noise=all,
                match=wanted,
                chunk_chars=chunk_chars,
                usage=uses,
                down=self.down,
            ).awaited(place, wait_s)

        place, wait_s = "0" if since is None else since, inf if wait is True else float(wait)
        return _Changes(self._worker, more, place, wait_s, start_anew)

    def _read(self, url: str, read: Callable[..., Awaitable[T]]) -> T:
        async def done(library: Library) -> T:
            shard, typed = await library.home(url)
            return await library.one(shard, partial(read, typed=typed))

        return self._worker.result(done)


# -- reads of one store ------------------------------------------------------


async def _found(made: Documents, typed: str, version: str | None) -> StoredDocument:
    async with page.snapshot(made.path) as db:
        return await made.find(db, typed, version)


async def _history(made: Documents, typed: str, limit: int) -> list[PastObservation]:
    async with page.snapshot(made.path) as db:
        return await page.observations(db, (await final(db, typed)).page_id, limit)


async def _outlook(made: Documents, typed: str, settings: Settings) -> list[str]:
    from freshet.crawler.run import explanation  # noqa: PLC0415 - few need it

    async with page.snapshot(made.path) as db:
        told = await explanation.read(db, spellings(typed), settings, time(), brief=True)
        return list(explanation.next_visit_lines(*told, made.path))


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A known page: its URL and title, and its last visit (None: never) with the result."""

    url: str
    title: str | None
    visited_at: datetime | None
    last_kind: str | None
    has_document: bool


def _listed(row: dict[str, Any]) -> PageEntry:
    at = row["checked_at"]
    visited_at = None if at is None else calendar(at)
    return PageEntry(row["url"], row["title"], visited_at, row["last_kind"], row["has_document"])


class _Changes:
    """Changes in order; a second iteration continues after the last one that was handed out.

    ``cursor`` is the one to go on from.
    """

    def __init__(
        self,
        worker: "_Worker",
        more: "Callable[[str, float], Work[Batch]]",
        since: str,
        wait_s: float,
        start_anew: Callable[[], object] | None,
    ) -> None:
        self.cursor = since
        self._worker, self._more = worker, more
        self._wait_s, self._start_anew = wait_s, start_anew
        self._ends_at: float | None = None

    def __iter__(self) -> Iterator[Change]:
        self._ends_at = None
        while (work := self._next()) is not None:
            try:
                batch = self._worker.result(work)
            except CursorGone as error:
                batch = self._from_the_start(error)
            yield from self._told(batch)

    async def __aiter__(self) -> AsyncIterator[Change]:
        self._ends_at = None
        while (work := self._next()) is not None:
            try:
                batch = await asyncio.wrap_future(self._worker.submit(work))
            except asyncio.CancelledError as error:
                if (task := asyncio.current_task()) is None or task.cancelling():
                    raise
                raise StoreError(_CLOSED) from error
            except CursorGone as error:
                batch = self._from_the_start(error)
            for change in self._told(batch):
                yield change

    def _from_the_start(self, error: CursorGone) -> Batch:
        if self._start_anew is None:
            raise error
        self._start_anew()
        self._ends_at = None
        return [], "0"

    def _next(self) -> "Work[Batch] | None":
        """Return the read of more changes, or None after the whole time without a change."""
        now = monotonic()
        if self._ends_at is None:
            self._ends_at = now + self._wait_s
        elif now >= self._ends_at:
            return None
        return self._more(self.cursor, min(self._ends_at - now, HEARTBEAT_S))

    def _told(self, batch: Batch) -> Iterator[Change]:
        changes, cursor = batch
        for change in changes:
            self.cursor = change.seq
            yield change
        self.cursor = cursor
        if changes:
            self._ends_at = None


class _Worker:
    """An event loop on a separate thread, with a parser and the cache of documents."""

    def __init__(self, path: Path, settings: Settings) -> None:
        self._parser = parser_of(settings)
        self._library = Library(path, self._parser, settings)
        self._lock, self._is_closed = threading.RLock(), False
        self._tasks = set[asyncio.Task[Any]]()
        self._told_to_close = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        # The program's end does not wait for a daemon thread: it closes the store before.
        self._thread = threading.Thread(target=self._run, name="freshet-store", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        await self._told_to_close.wait()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            # Also those that have begun since; each once, so that it can close its connection.
            for task in self._tasks:
                if not task.cancelling():
                    task.cancel()
            await asyncio.wait(others, timeout=_BEGINS_WITHIN_S)
        self._library.close()
        await self._parser.close()

    def submit(
        self, work: Work[T], told: "Callable[[futures.Future[T]], object] | None" = None
    ) -> "futures.Future[T]":
        """Begin some work; ``told`` is called in this worker's thread when it ends."""

        async def done() -> T:
            task = cast(asyncio.Task[Any], asyncio.current_task())
            self._tasks.add(task)
            try:
                return await work(self._library)
            finally:
                self._tasks.discard(task)

        with self._lock:
            if self._is_closed:
                raise StoreError(_CLOSED)
            begun = asyncio.run_coroutine_threadsafe(done(), self._loop)
            if told is not None:
                self._loop.call_soon_threadsafe(begun.add_done_callback, told)
            return begun

    def result(self, work: Work[T]) -> T:
        """Do some work, and wait for it; an exception here, such as Ctrl-C, cancels it.

        Ctrl-C may come at any instruction. One that left a future's lock held would stop the
        worker's thread, and with that the program's end: this thread takes no such lock before
        the work has ended.
        """
        ended = threading.Lock()
        ended.acquire()
        begun: futures.Future[T] | None = None
        try:
            begun = self.submit(work, lambda _: ended.release())
            # A signal that arrives just before a wait is handled only when the wait ends.
            while not ended.acquire(timeout=_SIGNALS_WITHIN_S):
                pass
        except BaseException:
            # The loop is closed where another thread closed the store.
            with suppress(RuntimeError):
                if begun is not None:
                    self._loop.call_soon_threadsafe(begun.cancel)
            raise
        try:
            return begun.result()
        except futures.CancelledError as error:
            raise StoreError(_CLOSED) from error

    def close(self) -> None:
        """End the work under way, the parser's processes and the thread."""
        with self._lock:
            self._is_closed = True
            self._loop.call_soon_threadsafe(self._told_to_close.set)
        # The garbage collector calls this in any thread, also in this one.
        if self._thread is not threading.current_thread():
            self._thread.join()


def _words(version: Version | None) -> str | None:
    return None if version is None else str(version)
