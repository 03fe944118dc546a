"""The versions of a page that the store keeps, and what was in them. Read-only questions."""

from __future__ import annotations

from dataclasses import dataclass

import aiosqlite
import zstandard

from freshet.storage.errors import StoreError


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A distinct content of a page.

    Attributes:
        number: 1 for the page's first version, and so on.
        version_id: its row.
        at: when it was captured (Unix seconds).
        content_type: as the server said.
        body_kept: whether its bytes are still in the store.
        same_text: whether its main text equals that of the version before.
    """

    number: int
    version_id: int
    at: float
    content_type: str | None
    body_kept: bool
    same_text: bool


async def versions(connection: aiosqlite.Connection, page_id: int) -> list[StoredVersion]:
    """A page's versions, oldest first."""
    rows = await connection.execute_fetchall(
        "SELECT row_number() OVER (ORDER BY v.id), v.id, v.at, v.content_type, "
        "       b.digest IS NOT NULL, "
        "       coalesce(v.text_digest = lag(v.text_digest) OVER (ORDER BY v.id), 0) "
        "FROM version AS v LEFT JOIN body AS b ON b.digest = v.body_digest "
        "WHERE v.page_id = ? ORDER BY v.id",
        (page_id,),
    )
    return [StoredVersion(r[0], r[1], r[2], r[3], bool(r[4]), bool(r[5])) for r in rows]


async def body(connection: aiosqlite.Connection, version_id: int) -> bytes | None:
    """The bytes of a version as they came, decoded; None where they are not kept.

    Raises:
        StoreError: if they cannot be unpacked: the store is damaged.
    """
    rows = await connection.execute_fetchall(
        "SELECT b.zstd, b.size_bytes FROM version AS v JOIN body AS b ON b.digest = v.body_digest "
        "WHERE v.id = ?",
        (version_id,),
    )
    row = next(iter(rows), None)
    if row is None:
        return None
    try:
        return zstandard.ZstdDecompressor().decompress(row[0], max_output_size=row[1])
    except (zstandard.ZstdError, ValueError, OverflowError, MemoryError) as error:
        raise StoreError(f"the body of version {version_id} is damaged: {error}") from error


async def by_id(connection: aiosqlite.Connection, *version_ids: int) -> list[StoredVersion]:
    """Versions by their rows, in the order asked for; those taken back meanwhile are left out."""
    found = []
    for version_id in version_ids:
        rows = await connection.execute_fetchall(
            "SELECT page_id FROM version WHERE id = ?", (version_id,)
        )
        for (page_id,) in rows:
            found += [v for v in await versions(connection, page_id) if v.version_id == version_id]
    return found
