"""All that the store knows of one URL, its observations and versions. Read-only."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import zstandard
from aiosqlite import Connection as Reader

from freshet.storage import value
from freshet.storage.database import as_json, columns_of, reading, row_to
from freshet.storage.entries import AliasKind, Reason, Role, stored
from freshet.storage.errors import StoreError
from freshet.storage.records import Digests, Doubt, Observation, Validators
from freshet.storage.tables.frontier import ASKED_AGAIN
from freshet.storage.tables.observations import (
    IS_EXPLAINED,
    SIGNIFICANT,
    dictionary,
    dictionary_id,
    unpacked,
)
from freshet.storage.tables.pages import NO_CONTENT_SINCE

_NEIGHBOURS = 40


@dataclass(frozen=True, slots=True)
class OtherName:
    """The other end of a redirect seen ``at`` then; ``page_id`` is the page it leads to."""

    page_id: int
    url: str
    kind: AliasKind
    at: float


@dataclass(frozen=True, slots=True)
class KnownUrl:
    """A URL that the store knows.

    ``visited_at`` is the last visit of any kind. ``alias`` is None unless the URL is an alias.
    ``wish_s`` is the lifetime in seconds that the server gave its last response, or None.
    A dead link or a block page is left alone by new runs until ``asked_again_at``. Visits have
    found no content ``no_content_since`` then, and only a plain request was answered at
    ``plain_at``. ``doubt`` is the doubt about its last content. ``preferences`` has the statements
    about its use, as stored.
    """

    page_id: int
    url: str
    fetch_url: str
    host_id: int
    role: Role
    depth: int
    redirects: int
    found_at: float
    held_back: str | None
    visited_at: float | None
    validators: Validators = field(metadata=stored(Validators))
    alias: OtherName | None = field(metadata=stored(OtherName, optional=True))
    wish_s: float | None
    asked_again_at: float | None
    no_content_since: float | None
    plain_at: float | None
    doubt: Doubt | None = field(default=None, metadata=stored(Doubt, optional=True))
    preferences: str | None = None


@dataclass(frozen=True, slots=True)
class GoodCapture:
    """A page's last content.

    ``checked_at`` is when the server last confirmed it, ``since`` when these bytes were first seen.
    ``size_bytes`` are decoded; ``body_kept`` is True if the store still has them.
    """

    checked_at: float
    since: float
    size_bytes: int | None
    content_type: str | None
    encoding: str | None
    title: str | None
    language: str | None
    canonical_url: str | None
    noindex: bool = field(metadata=stored(bool))
    noarchive: bool = field(metadata=stored(bool))
    nofollow: bool = field(metadata=stored(bool))
    versions: int
    body_kept: bool = field(metadata=stored(bool))


@value(frozen=True, slots=True)
class PastObservation(Observation):
    """A stored observation, its run, and the number of the version that the page had then."""

    run: int = 0
    version: int | None = None


@dataclass(frozen=True, slots=True)
class FrontierPlace:
    """A URL's place in the frontier; ``attempt`` counts failed tries in this run."""

    due_at: float
    reason: Reason
    attempt: int
    deferred: str | None


@dataclass(frozen=True, slots=True)
class InLink:
    """A link to the URL in question, or from it: the URL at the other end."""

    url: str
    role: Role
    rel: str
    anchor: str
    first_seen_at: float
    gone_at: float | None


@asynccontextmanager
async def snapshot(path: Path) -> AsyncIterator[Reader]:
    """Open one snapshot of a store for several queries; raises as :func:`reading`."""
    async with reading(path) as db:
        await db.execute("BEGIN")
        yield db


async def find(db: Reader, urls: Sequence[str]) -> KnownUrl | None:
    """Return the first of these canonical URLs that the store knows, or None."""
    columns = columns_of(
        KnownUrl, "p", page_id="p.id", visited_at="p.last_at", asked_again_at=ASKED_AGAIN,
        alias="a.id, a.url, p.alias_kind, p.alias_at", no_content_since=NO_CONTENT_SINCE,
        doubt="p.doubtful_as, p.doubtful_p, p.doubtful_why",
    )  # fmt: skip
    rows = await db.execute_fetchall(
        f"SELECT {columns} "
        "FROM json_each(?) AS wanted CROSS JOIN page AS p ON p.url = wanted.value "
        "LEFT JOIN page AS a ON a.id = p.alias_of ORDER BY wanted.key LIMIT 1",
        (as_json(list(urls)),),
    )
    return next(map(row_to(KnownUrl), rows), None)


async def digests(db: Reader, page_id: int) -> Digests | None:
    """Return the digests of the last good capture of a page, or None."""
    sql = (
        "SELECT p.body_digest, p.text_digest, v.text_version "
        "FROM page AS p LEFT JOIN version AS v ON v.id = p.version_id "
        "WHERE p.id = ? AND p.body_digest IS NOT NULL"
    )
    return next((Digests(*row) for row in await db.execute_fetchall(sql, (page_id,))), None)


async def good_capture(db: Reader, page_id: int) -> GoodCapture | None:
    """Return the content of the last good capture of a page, or None."""
    columns = columns_of(
        GoodCapture,
        "p",
        since="v.at",
        size_bytes="coalesce(b.size_bytes, (SELECT o.size_bytes FROM finding AS o "
        "  WHERE o.page_id = p.id AND o.version_id = v.id AND o.size_bytes IS NOT NULL "
        "  ORDER BY o.id LIMIT 1))",
        content_type="v.content_type",
        encoding="v.encoding",
        versions="(SELECT count(*) FROM version WHERE page_id = p.id)",
        body_kept="b.digest IS NOT NULL",
    )
    sql = (
        f"SELECT {columns} FROM page AS p JOIN version AS v ON v.id = p.version_id "
        "LEFT JOIN body AS b ON b.digest = v.body_digest "
        "WHERE p.id = ? AND p.checked_at IS NOT NULL"
    )
    return next(map(row_to(GoodCapture), await db.execute_fetchall(sql, (page_id,))), None)


async def observations(db: Reader, page_id: int, limit: int) -> list[PastObservation]:
    """Return a page's last observations, newest first."""
    sql = (
        # Counted once, not for each observation.
        "WITH numbered AS MATERIALIZED (SELECT id, row_number() OVER (ORDER BY id) AS number "
        "  FROM version WHERE page_id = :page) "
        f"SELECT {columns_of(PastObservation, 'f', run='f.run_id', version='n.number')} "
        "FROM finding AS f LEFT JOIN numbered AS n ON n.id = f.version_id "
        "WHERE f.page_id = :page ORDER BY f.at DESC, f.id DESC LIMIT :limit"
    )
    rows = await db.execute_fetchall(sql, {"page": page_id, "limit": limit})
    return list(map(row_to(PastObservation), rows))


async def observation_count(db: Reader, page_id: int) -> int:
    """Count the observations of a page."""
    sql = "SELECT count(*) FROM observation WHERE page_id = ?"
    return int(next(iter(await db.execute_fetchall(sql, (page_id,))))[0])


async def frontier_place(db: Reader, page_id: int) -> FrontierPlace | None:
    """Return the place of a URL in the frontier, or None if it is not due in this run."""
    sql = f"SELECT {columns_of(FrontierPlace)} FROM frontier WHERE page_id = ?"
    return next(map(row_to(FrontierPlace), await db.execute_fetchall(sql, (page_id,))), None)


async def first_link(db: Reader, page_id: int) -> InLink | None:
    """Return the first link to a URL from a page, sitemap or feed, or None.

    With more than 2,000 links, the links of the pages known longest are read.
    """
    links = f"(SELECT * FROM link WHERE dst_id = :target AND src_id <> :target LIMIT {_LOOKED})"
    return await _first(db, links, "true", page_id)


async def first_link_out_of_scope(db: Reader, url: str) -> InLink | None:
    """Return the first link out of scope to this canonical URL, or None.

    Reads the whole table, which has no index of targets.
    """
    return await _first(db, "offsite_link", "l.url = :target", url)


async def _first(db: Reader, table: str, where: str, target: int | str) -> InLink | None:
    sql = (
        f"SELECT {columns_of(InLink, 'l', url='s.url', role='s.role')} "
        f"FROM {table} AS l JOIN page AS s ON s.id = l.src_id "
        f"WHERE {where} ORDER BY l.first_seen_at, l.src_id LIMIT 1"
    )
    rows = await db.execute_fetchall(sql, {"target": target})
    return next(map(row_to(InLink), rows), None)


#: Links of a page that are looked at.
_LOOKED = 2_000
_LINK = "rel, l.anchor, l.first_seen_at, l.gone_at FROM"
_LINKS_IN: Final = (
    f"SELECT s.url, s.role, l.{_LINK} link AS l JOIN page AS s ON s.id = l.src_id "
    "WHERE l.dst_id = :page AND l.src_id <> :page"
)
#: Links to pages that the store does not have are last, without a role.
_LINKS_OUT: Final = (
    f"SELECT d.url, d.role, l.{_LINK} link AS l JOIN page AS d ON d.id = l.dst_id "
    "WHERE l.src_id = :page AND l.gone_at IS NULL UNION ALL "
    f"SELECT l.url, '', l.{_LINK} offsite_link AS l WHERE l.src_id = :page AND l.gone_at IS NULL"
)


async def links(db: Reader, page_id: int, limit: int, *, inward: bool) -> tuple[list[InLink], int]:
    """Return the first links to a page or from it, and how many there are, up to 2,000."""
    sql = _LINKS_IN if inward else _LINKS_OUT
    rows = list(await db.execute_fetchall(f"{sql} LIMIT {_LOOKED}", {"page": page_id}))
    return [InLink(*row) for row in rows[:limit]], len(rows)


async def seed_text(db: Reader, known: KnownUrl) -> str | None:
    """Return the line of the site list that named this URL, or the line with its scope there."""
    rows = await db.execute_fetchall(
        "SELECT text FROM seed WHERE page_id = :page OR url IN (:url, :fetch_url) "
        "OR fallback_url IN (:url, :fetch_url) ORDER BY id LIMIT 1",
        {"page": known.page_id, "url": known.url, "fetch_url": known.fetch_url},
    )
    return next((str(row[0]) for row in rows), None)


async def other_names(db: Reader, page_id: int, limit: int) -> list[OtherName]:
    """Return the other names of a page, the oldest first."""
    sql = f"SELECT {columns_of(OtherName)} FROM alias WHERE page_id = ? ORDER BY at, url LIMIT ?"
    return list(map(row_to(OtherName), await db.execute_fetchall(sql, (page_id, limit))))


async def neighbours(db: Reader, origin: str, url: str) -> list[str]:
    """Return known URLs of an origin next to ``url`` in alphabetical order.

    They share the longest beginnings with it, and an index finds them at any size.
    """
    return [
        row[0]
        for compared, order in (("<", "DESC"), (">", "ASC"))
        for row in await db.execute_fetchall(
            # "0" is the character after "/".
            f"SELECT url FROM page WHERE url >= :origin || '/' AND url < :origin || '0' "
            f"AND url {compared} :url ORDER BY url {order} LIMIT {_NEIGHBOURS}",
            {"origin": origin, "url": url},
        )
    ]


async def listed(db: Reader, prefix: str, after: str, limit: int) -> list[dict[str, Any]]:
    """Return the pages with this ``prefix`` of their URLs, after the URL ``after``, in order.

    Each with its last visit, and whether it has a document.
    """
    sql = (
        "SELECT p.url, p.last_kind, p.checked_at, p.title, c.version_id IS NOT NULL "
        "FROM page AS p LEFT JOIN change AS c ON c.page_id = p.id AND c.kind <> 'noise' "
        # Pages of other shards are reported by them, former spellings by their pages.
        "WHERE p.role = 'page' AND ifnull(p.held_back, '') NOT IN ('shard', 'spelling') "
        # Beyond every character that a URL has.
        "AND p.url >= :first AND p.url < :prefix || char(1114111) "
        "ORDER BY p.url LIMIT :limit"
    )
    names = ("url", "last_kind", "checked_at", "title", "has_document")
    values = {"prefix": prefix, "first": _first_url(prefix, after), "limit": limit}
    rows = await db.execute_fetchall(sql, values)
    return [dict(zip(names, (*row[:4], bool(row[4])), strict=True)) for row in rows]


def _first_url(prefix: str, after: str) -> str:
    """Return the text from which on URLs are behind ``after`` and may begin with ``prefix``."""
    # One bound: of two the index would use only the first.
    return max(prefix, f"{after}\0") if after else prefix


#: URLs that are looked at for those with a result: some 20 ms.
_LOOKED_AT: Final = 10_000


async def with_result(
    db: Reader, prefix: str, after: str, kind: str, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    """Return pages as :func:`listed` with this result of the last visit; "": no visit yet.

    One call searches a part of the URLs in their order. The second value is the URL after which
    the next call continues, None at the end.
    """
    looked = (
        "SELECT id, url, last_kind, checked_at, title, role, held_back FROM page "
        "WHERE url >= :first AND url < :prefix || char(1114111) "
        f"ORDER BY url LIMIT {_LOOKED_AT}"
    )
    sql = (
        "SELECT p.url, p.last_kind, p.checked_at, p.title, c.version_id IS NOT NULL "
        f"FROM ({looked}) AS p LEFT JOIN change AS c ON c.page_id = p.id AND c.kind <> 'noise' "
        "WHERE p.role = 'page' AND ifnull(p.held_back, '') NOT IN ('shard', 'spelling') "
        "AND ifnull(p.last_kind, '') = :kind ORDER BY p.url LIMIT :limit"
    )
    first = _first_url(prefix, after)
    values = {"prefix": prefix, "first": first, "kind": kind, "limit": limit}
    rows = list(await db.execute_fetchall(sql, values))
    names = ("url", "last_kind", "checked_at", "title", "has_document")
    found = [dict(zip(names, (*row[:4], bool(row[4])), strict=True)) for row in rows]
    if len(found) == limit:
        return found, found[-1]["url"]
    values = {"prefix": prefix, "first": first}
    ((last, count),) = await db.execute_fetchall(
        f"SELECT max(url), count(*) FROM ({looked})", values
    )
    return found, last if count == _LOOKED_AT else None


# -- versions of a page ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A content of a page that differs from the one before.

    Attributes:
        number: 1 for the page's first version, and so on.
        version_id: its row.
        at: Unix seconds of the capture.
        content_type: from the server.
        body_kept: whether the store still has its bytes.
        same_text: whether its main text equals that of the version before.
        significant: whether it was the first version or a significant change; else it is noise.
        why: why its difference from the version before is minor, or that it is a return.
    """

    number: int
    version_id: int
    at: float
    content_type: str | None
    body_kept: bool = field(metadata=stored(bool))
    same_text: bool = field(metadata=stored(bool))
    significant: bool = field(default=True, metadata=stored(bool))
    why: str | None = None

    @property
    def fetched_at(self) -> datetime:
        """The time of the capture, in UTC."""
        return datetime.fromtimestamp(self.at, UTC)


_COLUMNS = columns_of(
    StoredVersion,
    "v",
    number="row_number() OVER (ORDER BY v.id)",
    version_id="v.id",
    body_kept="b.digest IS NOT NULL",
    same_text="coalesce(v.text_digest = lag(v.text_digest) OVER (ORDER BY v.id), 0)",
    significant=f"v.id IN ({SIGNIFICANT} AND page_id = :page)",
    why="(SELECT f.detail FROM finding AS f WHERE f.page_id = :page AND f.version_id = v.id "
    f"AND {IS_EXPLAINED} ORDER BY f.id LIMIT 1)",
)


async def versions(db: Reader, page_id: int) -> list[StoredVersion]:
    """Return a page's versions, oldest first."""
    sql = (
        f"SELECT {_COLUMNS} FROM version AS v LEFT JOIN body AS b ON b.digest = v.body_digest "
        "WHERE v.page_id = :page ORDER BY v.id"
    )
    rows = await db.execute_fetchall(sql, {"page": page_id})
    return list(map(row_to(StoredVersion), rows))


async def body(db: Reader, version_id: int) -> bytes | None:
    """Return the decoded bytes of a version, None if not kept. Raises StoreError if damaged."""
    rows = await db.execute_fetchall(
        "SELECT b.zstd, b.size_bytes FROM version AS v JOIN body AS b ON b.digest = v.body_digest "
        "WHERE v.id = ?",
        (version_id,),
    )
    row = next(iter(rows), None)
    if row is None:
        return None
    try:
        key = dictionary_id(row[0])
        return unpacked(row[0], row[1], await dictionary(db, key) if key else None)
    except (zstandard.ZstdError, ValueError, OverflowError, MemoryError) as error:
        raise StoreError(
            f"the body of version {version_id} is damaged: {error}; restore a backup"
        ) from error


async def last_content(db: Reader, page_id: int) -> tuple[bytes, str | None] | None:
    """Return the last bytes of a page and their type; None if not kept, or damaged."""
    sql = "SELECT v.id, v.content_type FROM page AS p JOIN version AS v ON v.id = p.version_id"
    for version_id, content_type in await db.execute_fetchall(f"{sql} WHERE p.id = ?", (page_id,)):
        with suppress(StoreError):
            found = await body(db, version_id)
            return None if found is None else (found, content_type)
    return None


async def channels(db: Reader, page_id: int) -> bytes | None:
    """Return the digests of the parts of the document of a page's last version, or None."""
    sql = "SELECT v.channels FROM page AS p JOIN version AS v ON v.id = p.version_id WHERE p.id = ?"
    return next((row[0] for row in await db.execute_fetchall(sql, (page_id,))), None)


async def by_id(db: Reader, *version_ids: int) -> list[StoredVersion]:
    """Return versions by their rows, in this order; retracted ones are left out."""
    found = []
    for version_id in version_ids:
        rows = await db.execute_fetchall("SELECT page_id FROM version WHERE id = ?", (version_id,))
        for (page_id,) in rows:
            found += [v for v in await versions(db, page_id) if v.version_id == version_id]
    return found


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """The source of a version's document, beside its bytes.

    ``number`` counts the page's versions from 1; ``fetched_at`` is when its bytes were fetched,
    ``changed_at`` the last significant change until then. ``preferences`` has the current
    statements about the page's use, as stored. The rest is known without the bytes.
    """

    version_id: int
    page_id: int
    url: str
    number: int
    fetched_at: float
    changed_at: float
    content_type: str | None
    digest: bytes
    title: str | None
    language: str | None
    canonical_url: str | None
    preferences: str | None


async def document_sources(db: Reader, version_ids: Sequence[int]) -> dict[int, DocumentSource]:
    """Return the sources of the documents of these versions, by version."""
    columns = columns_of(
        DocumentSource, "v", version_id="v.id", url="p.url", fetched_at="v.at",
        number="(SELECT count(*) FROM version WHERE page_id = v.page_id AND id <= v.id)",
        changed_at="coalesce(c.changed_at, c.at, (SELECT f.at FROM finding AS f "
        "WHERE f.page_id = v.page_id AND f.kind IN ('new', 'changed') AND f.at <= v.at "
        "ORDER BY f.at DESC LIMIT 1), v.at)",
        digest="v.body_digest", title="c.title", language="c.language",
        canonical_url="c.canonical_url", preferences="p.preferences",
    )  # fmt: skip
    sql = (
        f"SELECT {columns} FROM json_each(?) AS wanted JOIN version AS v ON v.id = wanted.value "
        "JOIN page AS p ON p.id = v.page_id "
        "LEFT JOIN change AS c ON c.version_id = v.id AND c.kind <> 'noise'"
    )
    rows = await db.execute_fetchall(sql, (as_json(list(version_ids)),))
    return {row[0]: row_to(DocumentSource)(row) for row in rows}
