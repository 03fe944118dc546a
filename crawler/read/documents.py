"""Documents of stored versions, the cache of their extraction, and differences of versions.

The cache is a file beside the store (``FILE.documents``): a document for each page, by the digest
of all that it is made of and the version of the extraction. It may be deleted at any time. What
could not be parsed for lack of memory or time is not in it: the next reader tries again.
"""

import asyncio
import json
import logging
import os
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from difflib import SequenceMatcher
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import zstandard
from aiosqlite import Connection as Reader

from freshet.crawler.admission.site_lists import spellings
from freshet.crawler.compare.diff import AlignedBlock, align, counts, in_one_line
from freshet.crawler.compare.history import Layout, PageMemory
from freshet.crawler.errors import CrawlError, ParserLost, UnknownPage, UsageError, needs_extra
from freshet.crawler.fetch.bounds import LruCache
from freshet.crawler.frontier.clock import calendar, iso
from freshet.crawler.read.chunks import CHUNK_CHARS, Chunk, chunks_of
from freshet.crawler.reduce.blocks import Blocks, compared
from freshet.crawler.reduce.document import DOCUMENT_VERSION, Document
from freshet.crawler.reduce.formats import format_of
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.reduce.tree import SelectorHints
from freshet.crawler.robots.preferences import Preference, as_json, forbidding, from_text
from freshet.crawler.run.terminal import counted
from freshet.crawler.urls import origin
from freshet.storage.connection import StoreConnection
from freshet.storage.database import reading
from freshet.storage.entries import TEXT_CHANNELS
from freshet.storage.errors import StoreError
from freshet.storage.queries import page
from freshet.storage.queries.overview import PageChange
from freshet.storage.queries.page import DocumentSource, KnownUrl, OtherName, StoredVersion
from freshet.storage.records import PageHistory
from freshet.storage.tables import changefeed, observations, runs

log = logging.getLogger(__name__)

_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS document "
    "(page_id INTEGER PRIMARY KEY, key BLOB NOT NULL, zstd BLOB NOT NULL) STRICT"
)
_BUSY_TIMEOUT_S: Final = 0.2
_FORGETS_WITHIN_S: Final = 10.0
_LEVEL: Final = 1
#: Documents that are put into the cache together.
_KEPT_AT_ONCE: Final = 16
_ID_BYTES: Final = 8
#: Documents for which a reader remembers that it lacked memory or time.
_LACKING: Final = 1_024


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StoredDocument(Document):
    """The document of one version of a page.

    ``version`` is its number. ``fetched_at`` and ``changed_at``, the last significant change until
    then, are in UTC. ``missing`` is the reason for a lack of content, ``preferences`` has the
    statements about its use.
    """

    url: str
    version: int
    content_type: str | None
    fetched_at: datetime
    changed_at: datetime
    digest: str
    missing: str | None = None
    preferences: tuple[Preference, ...] = ()

    def __repr__(self) -> str:
        has = self.missing or f"{sum(map(len, self.blocks)):,} characters"
        return f"<StoredDocument {self.url} version {self.version}: {self.title!r}, {has}>"

    def by_id(self) -> dict[str, str]:
        """Return the blocks by their ids: a block has the same one in all versions that have it."""
        return dict(_identified(self.blocks))

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The content in passages for an index, of at most 1,200 characters."""
        return self.cut()

    def cut(self, chars: int = CHUNK_CHARS) -> tuple[Chunk, ...]:
        """Return the content in passages of at most ``chars`` characters (200 or more)."""
        headings = zip(self.headings, self.anchors, strict=True)
        outline = [(level, text, anchor) for (level, text), anchor in headings]
        return chunks_of(
            self.blocks, outline, chars, url=self.url, title=self.title, language=self.language
        )

    def as_json(self, chunks: Iterable[Chunk] | None = None) -> dict[str, Any]:
        """Return the metadata, and the content as Markdown and by blocks, or in these chunks."""
        said: dict[str, Any] = {"url": self.url, "version": self.version} | _values(self)
        for name in ("html", "anchors", "blocks"):
            del said[name]
        outline = zip(self.headings, self.anchors, strict=True)
        said |= {
            "preferences": as_json(self.preferences),
            "fetched_at": iso(self.fetched_at.timestamp()),
            "changed_at": iso(self.changed_at.timestamp()),
            "headings": [{"level": it[0], "text": it[1], "id": name} for it, name in outline],
        }
        if chunks is not None:
            return said | {"chunks": [each.as_json() for each in chunks]}
        return said | {
            "markdown": None if self.missing else self.markdown,
            "blocks": [{"id": name, "markdown": text} for name, text in self.by_id().items()],
        }


def _stored(of: DocumentSource, made: Document, missing: str | None = None) -> StoredDocument:
    said = _values(made)
    for name in ("title", "language", "canonical_url"):
        said[name] = said[name] or getattr(of, name)
    return StoredDocument(
        **said,
        url=of.url,
        version=of.number,
        content_type=of.content_type,
        fetched_at=calendar(of.fetched_at),
        changed_at=calendar(of.changed_at),
        digest=of.digest.hex(),
        missing=missing,
        preferences=from_text(of.preferences),
    )


def _values(made: Document | Unparsable) -> dict[str, Any]:
    # Not asdict(), which copies every text: half of the time of a document from the cache.
    return {each.name: getattr(made, each.name) for each in fields(made)}


_FIELDS: Final = tuple(each.name for each in fields(Document))


def _identified(blocks: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each block with its id: the digest of its text, and a number if it is repeated."""
    seen = Counter[str]()
    for text in blocks:
        octets = compared(text).encode("utf-8", "replace")
        name = blake2b(octets, digest_size=_ID_BYTES).hexdigest()
        seen[name] += 1
        yield (name if seen[name] == 1 else f"{name}-{seen[name]}"), text


def forbidden(preferences: str | None, purposes: Collection[str]) -> str | None:
    """Return why a page is not delivered for these purposes, or None."""
    found = forbidding(from_text(preferences), purposes) if preferences and purposes else None
    return None if found is None else f"the site forbids {found.use} ({found.where}: {found.text})"


class NoHistory(UnknownPage):
    """A page that has not changed, so that no two versions can be compared."""


def _not_kept(number: int) -> str:
    return (
        f"the bytes of version {number} are not kept "
        "(store.bodies_per_page, store.body_age_days; never of a noarchive page)"
    )


async def read_text(
    connection: Reader,
    parser: Parser,
    url: str,
    version: StoredVersion,
    hints: SelectorHints | None = None,
) -> Blocks:
    """Return the blocks of main text of a version, as change detection would compare them now.

    ``hints`` replace the selectors of the settings and of the store.

    Raises:
        UnknownPage: its bytes are not kept, or cannot be parsed.
    """
    body = await page.body(connection, version.version_id)
    if body is None:
        raise UnknownPage(f"{url}: {_not_kept(version.number)}")
    hints = hints or parser.hints(url, tuple(await runs.site_settings(connection)))
    try:
        parsed = await parser.parse(body, url, version.content_type, hints)
    except ParserLost as error:
        raise UnknownPage(
            f"{url}: version {version.number} could not be parsed now: {error}; try again"
        ) from error
    if isinstance(parsed, Unparsable):
        raise UnknownPage(
            f"{url}: version {version.number} cannot be parsed: {parsed.reason}; give another"
        )
    return parsed.blocks


class Documents:
    """Reader of the documents of one store, at ``path``; the owner calls :meth:`close`."""

    def __init__(self, path: Path, parser: Parser, purposes: Collection[str] = ()) -> None:
        """Read the documents of the store at ``path``; ``parser`` stays the caller's.

        Pages that forbid one of the ``purposes`` have no content.
        """
        self.path, self.parser, self.purposes = path, parser, frozenset(purposes)
        self._cache: sqlite3.Connection | None = None
        self._is_open, self._keeping = False, asyncio.Lock()
        self._unpacker = zstandard.ZstdDecompressor()
        self._lacking = LruCache[bytes, Unparsable](_LACKING)

    async def read(
        self, db: Reader, version_ids: Sequence[int], *, caches: bool = True
    ) -> dict[int, StoredDocument]:
        """Return the documents of these versions, by version; retracted ones are left out.

        Without ``caches`` those that are made now do not take the place of others in the cache.

        Raises:
            StoreError: the store is damaged or cannot be read, or the parser's process failed.
        """
        sources = await page.document_sources(db, version_ids)
        if not self._is_open:
            # Now it is known that there is a store.
            self._cache, self._is_open = _opened(cache_of(self.path)), True
        kept = tuple(await runs.site_settings(db))
        found, made = dict[int, StoredDocument](), _Made()
        try:
            for each in sources.values():
                try:
                    hints = self.parser.hints(each.url, kept)
                    found[each.version_id] = await self._read(db, each, hints, made)
                except ParserLost as error:
                    why = f"the text of {each.url} could not be made now ({error}); try again"
                    raise StoreError(f"{self.path}: {why}") from error
                if not caches:
                    made.clear()
                elif len(made) == _KEPT_AT_ONCE:
                    await self._keep(made)
                # Others have a turn between: a document may be long.
                await asyncio.sleep(0)
        finally:
            await self._keep(made)
        return found

    async def find(self, db: Reader, typed: str, wanted: str | None = None) -> StoredDocument:
        """Return the document of a page: of its last significant version, or of the one wanted.

        Raises as :func:`known` and :func:`version_of`.
        """
        it = await final(db, typed)
        version = await document_version(db, it, wanted)
        return (await self.read(db, [version.version_id]))[version.version_id]

    async def _read(
        self, db: Reader, source: DocumentSource, hints: SelectorHints, made: "_Made"
    ) -> StoredDocument:
        if (why := forbidden(source.preferences, self.purposes)) is not None:
            return _stored(source, Document(), why)
        key = self._key(source, hints)
        found = self._lacking.get(key) or self._cached(source.page_id, key)
        if found is None:
            try:
                body = await page.body(db, source.version_id)
            except StoreError:
                # Of this page alone: all others are read.
                why = f"the kept bytes of version {source.number} are damaged"
                return _stored(source, Document(), why)
            if body is None:
                return _stored(source, Document(), _not_kept(source.number))
            if (lacks := format_of(source.content_type).lacks) is not None:
                why = needs_extra(*lacks)
                return _stored(source, Document(), why)
            found = await self.parser.document(body, source.url, source.content_type, hints)
            if isinstance(found, Unparsable) and found.is_lack:
                self._lacking[key] = found
            else:
                made[source.version_id] = key, found
        if isinstance(found, Unparsable):
            why = f"version {source.number} cannot be parsed: {found.reason}"
            return _stored(source, Document(), why)
        return _stored(source, found)

    def _key(self, source: DocumentSource, hints: SelectorHints) -> bytes:
        """Return the key of a document: a digest of its sources and of its format."""
        of = source.url, source.content_type, source.digest.hex()
        parts = DOCUMENT_VERSION, _FIELDS, hints.include, hints.ignore, *of
        return blake2b(json.dumps(parts).encode(), digest_size=16).digest()

    def _cached(self, page_id: int, key: bytes) -> Document | Unparsable | None:
        if self._cache is None:
            return None
        with suppress(sqlite3.Error, zstandard.ZstdError, ValueError, TypeError, KeyError):
            sql = "SELECT zstd FROM document WHERE page_id = ? AND key = ?"
            if (row := self._cache.execute(sql, (page_id, key)).fetchone()) is not None:
                said = json.loads(self._unpacker.decompress(row[0]))
                if "reason" in said:
                    return Unparsable(**said)
                said["headings"] = tuple(map(tuple, said["headings"]))
                texts = {name: tuple(said[name]) for name in ("anchors", "blocks")}
                return Document(**said | texts)
        return None

    async def _keep(self, made: "_Made") -> None:
        """Move new documents into the cache, except for versions that the store has deleted."""
        cache, rows = self._cache, []
        if cache is None or not made:
            return
        async with self._keeping:
            try:
                # First: `forget` empties the store before it waits for this.
                cache.execute("BEGIN IMMEDIATE")
                async with reading(self.path) as db:
                    now = await page.document_sources(db, list(made))
                    kept = tuple(await runs.site_settings(db))
                for version_id, source in now.items():
                    key, found = made[version_id]
                    if key == self._key(source, self.parser.hints(source.url, kept)):
                        words = json.dumps(_values(found), ensure_ascii=False)
                        packed = zstandard.compress(words.encode("utf-8", "replace"), _LEVEL)
                        rows.append((source.page_id, key, packed))
                cache.executemany("INSERT OR REPLACE INTO document VALUES (?, ?, ?)", rows)
            except (sqlite3.Error, StoreError) as error:
                log.debug("documents are not cached: %s", error)
            finally:
                made.clear()
                with suppress(sqlite3.Error):
                    cache.execute("COMMIT")

    def close(self) -> None:
        """Close the cache."""
        if self._cache is not None:
            self._cache.close()


#: Results by version: the key, and the document or the reason for a lack of it.
_Made: TypeAlias = dict[int, tuple[bytes, Document | Unparsable]]


def forget_documents(store: Path, page_ids: Iterable[int]) -> None:
    """Delete the cached documents of pages, and overwrite them.

    Raises:
        CrawlError: another program does not let go of the cache.
    """
    if not cache_of(store).exists():
        return
    if (cache := _opened(cache_of(store), _FORGETS_WITHIN_S)) is None:
        raise CrawlError(f"{cache_of(store)}: cannot be emptied; end what reads it, and run again")
    with closing(cache):
        ids = [(page_id,) for page_id in page_ids]
        cache.executemany("DELETE FROM document WHERE page_id = ?", ids)
        cache.execute("VACUUM")
        cache.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def cache_of(store: Path) -> Path:
    """Return the file beside a store that caches its documents."""
    whole = store.resolve()
    return whole.with_name(whole.name + ".documents")


def _opened(file: Path, timeout_s: float = _BUSY_TIMEOUT_S) -> sqlite3.Connection | None:
    """Open the cache, or make it; None where that cannot be done: documents are made each time."""
    for _ in range(2):
        try:
            with suppress(FileExistsError):
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
            return _prepared(
                sqlite3.connect(
                    file, timeout=timeout_s, isolation_level=None, factory=StoreConnection
                )
            )
        except sqlite3.OperationalError as error:
            log.debug("%s: documents are not cached: %s", file, error)
            return None
        except sqlite3.DatabaseError:
            # Damaged: it is only a cache.
            file.unlink()
        except OSError as error:
            log.debug("%s: documents are not cached: %s", file, error.strerror)
            return None
    return None


def _prepared(cache: sqlite3.Connection) -> sqlite3.Connection:
    try:
        cache.execute("PRAGMA journal_mode = WAL")
        # Documents that a power cut destroys are made again.
        cache.execute("PRAGMA synchronous = OFF")
        cache.execute(_SCHEMA)
    except BaseException:
        cache.close()
        raise
    return cache


# -- pages -------------------------------------------------------------------
_NEAREST: Final = 3


async def known(db: Reader, typed: str) -> KnownUrl:
    """Return the store's knowledge of a URL as it was typed.

    Raises:
        UsageError: it is not a URL.
        UnknownPage: the store does not know it; the message names the nearest URLs.
    """
    urls = spellings(typed)
    found = await page.find(db, urls)
    if found is None:
        raise UnknownPage(unknown(typed, await nearest(db, urls[0])))
    return found


async def final(db: Reader, typed: str) -> KnownUrl | OtherName:
    """Return the page of a URL, following redirects; raises as :func:`known`."""
    found = await known(db, typed)
    return found.alias or found


async def nearest(db: Reader, url: str) -> list[str]:
    """Return the known URLs on the host of ``url``, http and https, that are most like it."""
    schemes = [f"{scheme}{url[url.index(':') :]}" for scheme in ("https", "http")]
    near = [
        known
        for spelling in schemes
        for known in await page.neighbours(db, str(origin(spelling)), spelling)
    ]
    return sorted(near, key=lambda known: -_similarity(known, url))[:_NEAREST]


def unknown(url: str, near: Sequence[str]) -> str:
    """Return the message about a URL that the store does not know."""
    if not near:
        return f"{url} is not known, nor any other URL on that host; `freshet crawl {url}` adds it"
    return f"{url} is not known; the nearest on that host: {', '.join(near)}"


def _similarity(one: str, other: str) -> float:
    """Return the similarity from 0 to 1, ignoring schemes."""
    return SequenceMatcher(
        None, one.partition(":")[2], other.partition(":")[2], autojunk=False
    ).ratio()


# -- versions ----------------------------------------------------------------


def version_of(
    stored: list[StoredVersion], counted: list[StoredVersion], wanted: str
) -> StoredVersion:
    """Return a version by number, from the end of those that count if negative, or of a date.

    Raises:
        UsageError: ``wanted`` is an unknown number, or neither a number nor a date.
        UnknownPage: the page had no version then.
    """
    numbers = f"1 to {len(stored)}, or from the end -1 to -{len(counted)}"
    if wanted.removeprefix("-").isdecimal():
        number = int(wanted)
        among = stored if number > 0 else counted
        if not 1 <= abs(number) <= len(among):
            raise UsageError(f"version {wanted}: accepted are {numbers}")
        return among[number - 1 if number > 0 else number]
    try:
        at = datetime.fromisoformat(wanted).astimezone().timestamp()
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{wanted}: no version or time; accepted are {numbers}, or such as 2026-03-31T12:00"
        ) from error
    then = [version for version in counted if version.at <= at]
    if not then:
        first = calendar(stored[0].at).astimezone()
        raise UnknownPage(f"{wanted}: no version then; the first is of {first:%Y-%m-%d %H:%M:%S}")
    return then[-1]


async def document_version(
    db: Reader, it: KnownUrl | OtherName, wanted: str | None = None
) -> StoredVersion:
    """Return the version of a page's document, or the one wanted; raises as :func:`version_of`."""
    stored = await page.versions(db, it.page_id)
    if not stored:
        raise UnknownPage(f"{it.url}: no visit brought content; `freshet history` shows the visits")
    if wanted is not None:
        return version_of(stored, [each for each in stored if each.significant], wanted)
    told = await changefeed.document_of(db, it.page_id)
    return next((each for each in stored if each.version_id == told), stored[-1])


# -- differences -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VersionDifference:
    """Two versions of a page, aligned; ``volatile`` are positions in the later one."""

    url: str
    before: StoredVersion
    after: StoredVersion
    blocks: tuple[AlignedBlock, ...]
    volatile: frozenset[int] = frozenset()

    def is_volatile(self, block: AlignedBlock) -> bool:
        """Return whether the block is in a slot that differs at every visit."""
        return block.after in self.volatile

    @property
    def is_empty(self) -> bool:
        """True if no block of main text differs."""
        return all(block.change == "kept" for block in self.blocks)

    def around_changes(self, context: int) -> Iterator[AlignedBlock | int]:
        """Yield all changes with unchanged blocks around them, and the number of those between."""
        near: set[int] = set()
        for place, block in enumerate(self.blocks):
            if block.change != "kept":
                near.update(range(place - context, place + context + 1))
        left_out = 0
        for place, block in enumerate(self.blocks):
            if place in near:
                if left_out:
                    yield left_out
                left_out = 0
                yield block
            else:
                left_out += 1
        if left_out:
            yield left_out

    @property
    def why(self) -> str | None:
        """Return why the difference is minor, or that it is a return; None of distant versions."""
        return self.after.why if self.after.number == self.before.number + 1 else None

    def as_json(self) -> dict[str, object]:
        """Return the difference as JSON values; unchanged blocks are only counted."""
        return {
            "url": self.url,
            "before": asdict(self.before),
            "after": asdict(self.after),
            "counts": counts(self.blocks),
            "blocks": [
                asdict(b) | {"volatile": self.is_volatile(b)}
                for b in self.blocks
                if b.change != "kept"
            ],
        }


def volatile_blocks(history: PageHistory, blocks: Blocks) -> frozenset[int]:
    """Return the positions of the blocks at slots that differ at every visit."""
    if history.memory is None:
        return frozenset()
    volatile = PageMemory.from_bytes(history.memory).volatile
    items = Layout.made(blocks.places, blocks.places).items()
    return frozenset(i for i, item in enumerate(items) if not volatile.isdisjoint(item.slots))


async def difference(
    made: Documents, typed: str, before: str | None = None, after: str | None = None,
    *, noise: bool = False,
) -> VersionDifference:  # fmt: skip
    """Compare two versions of a page; without names the last significant one with that before it.

    Raises as :meth:`Documents.find`, and UnknownPage also where their bytes are not kept.
    """
    async with page.snapshot(made.path) as db:
        it = await final(db, typed)
        stored = await page.versions(db, it.page_id)
        old, new = _chosen(it.url, stored, (before, after), noise=noise)
        texts = [await read_text(db, made.parser, it.url, each) for each in (old, new)]
        history = await observations.load(db, it.page_id)
    volatile = volatile_blocks(history, texts[1]) if history is not None else frozenset()
    blocks = align(texts[0].texts, texts[1].texts)
    return VersionDifference(it.url, old, new, blocks, volatile)


async def selector_in(made: Documents, url: str, of: Sequence[str], block: str) -> tuple[str, str]:
    """Return the URL of a page, and a selector of a block that differs, "" if none is fit.

    ``of`` are both versions, ``block`` the first 2,000 characters. Raises as :func:`difference`.
    """
    it = await difference(made, url, *of)
    found = [b for b in it.blocks if b.change != "kept" and b.text[:2_000] == block]
    if not found:
        raise UnknownPage(f"{it.url}: this block does not differ any more; load the page again")
    old = "".join(run.before for run in found[0].runs) or found[0].text
    texts = old * (found[0].before is not None), found[0].text * (found[0].after is not None)
    async with page.snapshot(made.path) as db:
        hints = made.parser.hints(it.url, tuple(await runs.site_settings(db)))
        bodies = [await page.body(db, each.version_id) or b"" for each in (it.before, it.after)]
    kinds = it.before.content_type, it.after.content_type
    sides = list(zip(bodies, kinds, texts, strict=True))
    try:
        told = await made.parser.selector(it.url, sides, hints)
    except ParserLost as error:
        raise StoreError(f"{it.url}: could not be parsed now: {error}; try again") from error
    return it.url, "" if isinstance(told, Unparsable) else told.get("selector", "")


def _require_two(url: str, stored: int, counted: int) -> None:
    """Raise an error without two versions, or without two that differ in a kind that counts."""
    if stored < 2:
        had = "one version" if stored else "no version"
        raise NoHistory(f"{url}: has {had} in the store; a diff needs two: crawl it again later")
    if counted < 2:
        why = f"has not changed significantly; --all compares its {stored} versions"
        raise NoHistory(f"{url}: {why}")


def _chosen(
    url: str, stored: list[StoredVersion], wanted: tuple[str | None, str | None], *, noise: bool
) -> tuple[StoredVersion, StoredVersion]:
    counted = stored if noise else [each for each in stored if each.significant]
    _require_two(url, len(stored), len(counted) if None in wanted else 2)
    before, after = wanted
    last = counted[-1] if after is None else version_of(stored, counted, after)
    if before is not None:
        return version_of(stored, counted, before), last
    earlier = [each for each in counted if each.number < last.number]
    return (earlier or [last])[-1], last


# -- change summary ----------------------------------------------------------
# From the stored bytes, or from the counts where these are not kept.


class SummarisedChange(Protocol):
    """A change to be summarised: its versions, the one before first, and counts of blocks."""

    @property
    def url(self) -> str:
        """The URL of the page."""

    @property
    def kind(self) -> str:
        """The kind of its observation."""

    @property
    def kinds(self) -> str | None:
        """The kinds of change, separated by spaces."""

    @property
    def before_id(self) -> int | None:
        """The version before."""

    @property
    def version_id(self) -> int | None:
        """The version after."""

    @property
    def blocks_added(self) -> int | None:
        """The number of blocks that are new."""

    @property
    def blocks_removed(self) -> int | None:
        """The number of removed blocks."""


async def change_summary(
    connection: Reader, parser: Parser, change: SummarisedChange, width: int
) -> str:
    """Summarise a change in at most about ``width`` characters."""
    why = change.reason if isinstance(change, PageChange) else None
    if not is_of_text(change):
        return why or in_kinds(change.kinds)
    blocks = await change_blocks(connection, parser, change)
    said = in_one_line(blocks, width) if blocks else in_counts(change)
    return said if why is None else f"{said}  ({why})"


async def change_blocks(
    db: Reader, parser: Parser, it: SummarisedChange
) -> tuple[AlignedBlock, ...]:
    """Align both texts of a change; empty if their bytes are not kept or cannot be parsed."""
    ids = [each for each in (it.before_id, it.version_id) if each is not None]
    if len(found := await page.by_id(db, *ids)) == 2:
        with suppress(UnknownPage):
            old, new = [await read_text(db, parser, it.url, each) for each in found]
            return align(old.texts, new.texts)
    return ()


def is_of_text(change: SummarisedChange) -> bool:
    """Return whether the text changed; of older findings no kinds are known."""
    kinds = set((change.kinds or "words").split())
    return change.kind == "changed" and not kinds.isdisjoint(TEXT_CHANNELS)


def in_kinds(kinds: str | None) -> str:
    """Return kinds of change in words.

    >>> in_kinds("links images")
    'links, images'
    """
    return ", ".join((kinds or "").split())


def in_counts(change: SummarisedChange) -> str:
    """Return a text with the numbers of added and removed blocks."""
    if not change.blocks_added and not change.blocks_removed:
        return "words changed within blocks"
    added = counted(change.blocks_added or 0, "block")
    return f"{added} added, {change.blocks_removed or 0} removed"
