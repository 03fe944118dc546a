"""Documents of stored versions, as consumers get them, and the cache of their extraction.

The cache is a file beside the store (``FILE.documents``): a document for each page, by the digest
of all that it is made of and the version of the extraction. It may be deleted at any time.
"""

import asyncio
import json
import logging
import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import zstandard
from aiosqlite import Connection as Reader

from freshet.crawler.clock import iso
from freshet.crawler.reduce.document import DOCUMENT_VERSION, Document
from freshet.crawler.reduce.markup import Blocks
from freshet.crawler.reduce.parser_process import Parser, ParserLost, Unparsable
from freshet.storage.queries import page
from freshet.storage.queries.page import DocumentSource, StoredVersion
from freshet.storage.tables import changefeed

log = logging.getLogger(__name__)

_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS document "
    "(page_id INTEGER PRIMARY KEY, key BLOB NOT NULL, zstd BLOB NOT NULL) STRICT"
)
_BUSY_TIMEOUT_S: Final = 0.2
_LEVEL: Final = 1
_ID_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """The document of one version of a page; ``missing`` says why it has no content."""

    source: DocumentSource
    document: Document
    missing: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the metadata, and the content as Markdown and by blocks.

        A block has the same id in every version that has it: an index embeds again what is new.
        """
        own, made = self.source, self.document
        return {
            "url": own.url,
            "version": own.number,
            "title": made.title or own.title,
            "description": made.description,
            "language": made.language or own.language,
            "author": made.author,
            "published_at": made.published_at,
            "modified_at": made.modified_at,
            "canonical_url": made.canonical_url or own.canonical_url,
            "content_type": own.content_type,
            "fetched_at": iso(own.fetched_at),
            "changed_at": iso(own.changed_at),
            "digest": own.digest.hex(),
            "headings": [{"level": level, "text": text} for level, text in made.headings],
            "markdown": None if self.missing else made.markdown,
            "blocks": [{"id": name, "markdown": text} for name, text in _identified(made.blocks)],
            "missing": self.missing,
        }


def _identified(blocks: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each block with its id: the digest of its text, and a number if it comes again."""
    seen = Counter[str]()
    for text in blocks:
        name = blake2b(text.encode("utf-8", "replace"), digest_size=_ID_BYTES).hexdigest()
        seen[name] += 1
        yield (name if seen[name] == 1 else f"{name}-{seen[name]}"), text


class NoText(Exception):
    """A version without a comparable text; the message says why."""


def _not_kept(number: int) -> str:
    return (
        f"the bytes of version {number} are not kept "
        "(store.bodies_per_page, store.body_age_days; never of a noarchive page)"
    )


async def read_text(connection: Reader, parser: Parser, url: str, version: StoredVersion) -> Blocks:
    """Return the blocks of main text of a version, as change detection compares them.

    Raises:
        NoText: its bytes are not kept, or cannot be parsed.
    """
    body = await page.body(connection, version.version_id)
    if body is None:
        raise NoText(_not_kept(version.number))
    try:
        parsed = await parser.parse(body, url, version.content_type)
    except ParserLost as error:
        raise NoText(
            f"version {version.number} could not be parsed now: {error}; try again"
        ) from error
    if isinstance(parsed, Unparsable):
        raise NoText(f"version {version.number} cannot be parsed: {parsed.reason}")
    return parsed.blocks


def version_of(
    stored: Sequence[StoredVersion], counted: Sequence[StoredVersion], text: str
) -> StoredVersion:
    """Return a version by number, from the end of those that count if negative, or of a date.

    Raises:
        ValueError: the text is neither, or there is no such number.
        NoText: the page has no version of then.
    """
    numbers = f"1 to {len(stored)}, or from the end -1 to -{len(counted)}"
    if text.removeprefix("-").isdecimal():
        number = int(text)
        among = stored if number > 0 else counted
        if not 1 <= abs(number) <= len(among):
            raise ValueError(f"version {text}: accepted are {numbers}")
        return among[number - 1 if number > 0 else number]
    try:
        at = datetime.fromisoformat(text).astimezone().timestamp()
    except (ValueError, OverflowError) as error:
        date = "a date such as 2026-03-31T12:00"
        raise ValueError(f"version {text}: accepted are {numbers}, or {date}") from error
    then = [version for version in counted if version.at <= at]
    if not then:
        raise NoText(f"version {text}: the first is of {iso(stored[0].at)}")
    return then[-1]


async def document_version(db: Reader, page_id: int, wanted: str | None = None) -> StoredVersion:
    """Return the version of a page's document, or the one wanted, as :func:`version_of` does.

    Raises:
        ValueError, NoText: as there; and the store has no content of the page.
    """
    stored = await page.versions(db, page_id)
    if not stored:
        raise NoText("the store has no content of this page")
    if wanted is not None:
        return version_of(stored, [each for each in stored if each.significant], wanted)
    told = await changefeed.document_of(db, page_id)
    return next((each for each in stored if each.version_id == told), stored[-1])


class Documents:
    """Reader of the documents of one store; the owner calls :meth:`close`."""

    def __init__(self, path: Path, parser: Parser) -> None:
        """Read the documents of the store at ``path``; ``parser`` stays the caller's."""
        self._parser = parser
        self._cache = _opened(cache_of(path))

    async def read(self, db: Reader, version_ids: Sequence[int]) -> dict[int, StoredDocument]:
        """Return the documents of these versions, by version; retracted ones are left out.

        Raises:
            StoreError: the store is damaged or cannot be read.
            ParserLost: the parser's process failed, not the page: try again later.
        """
        sources = await page.document_sources(db, version_ids)
        found = {}
        for each in sources.values():
            found[each.version_id] = await self._read(db, each)
            # Others have a turn between: a document may be long.
            await asyncio.sleep(0)
        return found

    async def _read(self, db: Reader, source: DocumentSource) -> StoredDocument:
        key = _key(source)
        if (cached := self._cached(source.page_id, key)) is not None:
            return StoredDocument(source, cached)
        body = await page.body(db, source.version_id)
        if body is None:
            return StoredDocument(source, Document(), _not_kept(source.number))
        made = await self._parser.document(body, source.url, source.content_type)
        if isinstance(made, Unparsable):
            why = f"version {source.number} cannot be parsed: {made.reason}"
            return StoredDocument(source, Document(), why)
        self._keep(source.page_id, key, made)
        return StoredDocument(source, made)

    def _cached(self, page_id: int, key: bytes) -> Document | None:
        if self._cache is None:
            return None
        with suppress(sqlite3.Error, zstandard.ZstdError, ValueError, TypeError):
            sql = "SELECT zstd FROM document WHERE page_id = ? AND key = ?"
            if (row := self._cache.execute(sql, (page_id, key)).fetchone()) is not None:
                return Document(**json.loads(zstandard.decompress(row[0])))
        return None

    def _keep(self, page_id: int, key: bytes, made: Document) -> None:
        if self._cache is None:
            return
        words = json.dumps(asdict(made), ensure_ascii=False).encode("utf-8", "replace")
        packed = zstandard.compress(words, _LEVEL)
        try:
            sql = "INSERT OR REPLACE INTO document VALUES (?, ?, ?)"
            self._cache.execute(sql, (page_id, key, packed))
        except sqlite3.Error as error:
            log.debug("a document is not cached: %s", error)

    def close(self) -> None:
        """Close the cache."""
        if self._cache is not None:
            self._cache.close()


def forget_documents(store: Path, page_ids: Iterable[int]) -> None:
    """Delete the cached documents of pages, and overwrite them."""
    if not cache_of(store).exists() or (cache := _opened(cache_of(store))) is None:
        return
    with closing(cache):
        ids = [(page_id,) for page_id in page_ids]
        cache.executemany("DELETE FROM document WHERE page_id = ?", ids)
        cache.execute("VACUUM")
        cache.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def cache_of(store: Path) -> Path:
    """Return the file beside a store that caches its documents."""
    whole = store.resolve()
    return whole.with_name(whole.name + ".documents")


def _opened(file: Path) -> sqlite3.Connection | None:
    """Open the cache, or make it; None where that cannot be done: documents are made each time."""
    for _ in range(2):
        try:
            with suppress(FileExistsError):
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
            cache = sqlite3.connect(file, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
            cache.execute("PRAGMA journal_mode = WAL")
            # Losing some documents to a power cut costs nothing.
            cache.execute("PRAGMA synchronous = OFF")
            cache.execute(_SCHEMA)
        except sqlite3.OperationalError as error:
            log.debug("%s: documents are not cached: %s", file, error)
            return None
        except sqlite3.DatabaseError:
            # Damaged: it is only a cache.
            file.unlink()
        except OSError as error:
            log.debug("%s: documents are not cached: %s", file, error.strerror)
            return None
        else:
            return cache
    return None


def _key(source: DocumentSource) -> bytes:
    parts = DOCUMENT_VERSION, source.url, source.content_type, source.digest.hex()
    return blake2b(json.dumps(parts).encode(), digest_size=16).digest()
